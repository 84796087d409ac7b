//! The command line as each command shows it: what does nothing there is refused and hidden, what is seldom needed
//! stands in `--help` only, and wrong usage is said with the usage line of the command that runs.

use std::ffi::OsString;
use std::sync::OnceLock;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};

use super::{ApplyArgs, CheckArgs, Cli, DiffArgs, ExplainArgs, HostArgs, InspectArgs};

/// Flags that a command shares with others and that do nothing in it.
const UNUSED_FLAGS: &[(&[&str], &[&str])] = &[
    (
        &["policy", "lint"],
        &[
            "record",
            "no_record",
            "no_marker",
            "set",
            "prune",
            "only",
            "skip",
        ],
    ),
    (
        &["policy", "images"],
        &[
            "record",
            "no_record",
            "no_marker",
            "set",
            "prune",
            "only",
            "skip",
            "forbid",
        ],
    ),
    (&["undo"], &["image_env", "context", "kube_version"]),
    (
        &["inspect"],
        &["image_env", "context", "kube_version", "strict"],
    ),
    (&["debug"], &["record", "no_record"]),
];

/// What the short help shows; `--help` shows all.
const COMMON: &[&str] = &[
    "paths",
    "files",
    "given",
    "params",
    "only",
    "skip",
    "namespace",
    "workloads",
    "context",
    "include",
    "exclude",
    "in_place",
    "output_dir",
    "output",
    "format",
    "strict",
    "quiet",
    "force",
    "require",
    "against_policy",
    "update",
    "all_namespaces",
    "help",
];

/// The names of the command that runs.
static RUNNING: OnceLock<Vec<String>> = OnceLock::new();

/// All commands.
pub fn command() -> Command {
    with_relevant_flags(Cli::command(), &mut Vec::new())
}

fn with_relevant_flags(command: Command, names: &mut Vec<String>) -> Command {
    let unused = unused_flags(names);
    let mut command = command.mut_args(|argument| {
        let id = argument.get_id().as_str().to_owned();
        let is_unused = unused.contains(&id.as_str());
        let is_rare = !COMMON.contains(&id.as_str());
        argument.hide(is_unused).hide_short_help(is_rare)
    });
    // Examples belong to the long help; at the top they are all there is.
    if !names.is_empty()
        && let Some(examples) = command.get_after_help().cloned()
    {
        command = command.after_long_help(examples).after_help("");
    }
    let inner: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    for name in inner {
        names.push(name.clone());
        command = command.mut_subcommand(&name, |inner| with_relevant_flags(inner, names));
        names.pop();
    }
    command
}

fn unused_flags(names: &[String]) -> &'static [&'static str] {
    let is_same_path = |(path, _): &&(&[&str], &[&str])| path.iter().eq(names.iter());
    UNUSED_FLAGS
        .iter()
        .find(is_same_path)
        .map_or(&[], |(_, flags)| flags)
}

/// The program with the one command that is asked for: reading the arguments takes less time than making all commands.
fn find_command(name: &str) -> Option<Command> {
    /// The program's own flags.
    #[derive(Parser)]
    #[command(name = "podgraft", version)]
    struct Bare;

    type Augment = fn(Command) -> Command;
    const FREQUENT_COMMANDS: [(&str, Augment); 7] = [
        ("apply", ApplyArgs::augment_args),
        ("check", CheckArgs::augment_args),
        ("diff", DiffArgs::augment_args),
        ("explain", ExplainArgs::augment_args),
        ("fn", HostArgs::augment_args),
        ("inspect", InspectArgs::augment_args),
        ("post-render", HostArgs::augment_args),
    ];
    if let "--version" | "-V" = name {
        return Some(Bare::command());
    }
    let (name, augment) = FREQUENT_COMMANDS
        .iter()
        .find(|(frequent, _)| *frequent == name)?;
    Some(Bare::command().subcommand(augment(Command::default().name(*name))))
}

/// Reads the command line, or ends with what is wrong with it.
pub fn parse(arguments: Vec<OsString>) -> Cli {
    let name = arguments.get(1).and_then(|name| name.to_str());
    // How the commands are shown matters only where help or wrong usage is.
    let command_asked_for = name.and_then(find_command).unwrap_or_else(Cli::command);
    let matches = match command_asked_for.try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayVersion => error.exit(),
        Err(_) => command().get_matches_from(arguments),
    };
    let (mut names, mut inner) = (Vec::new(), &matches);
    while let Some((name, matches)) = inner.subcommand() {
        names.push(name.to_owned());
        inner = matches;
    }
    let idle = unused_flags(&names)
        .iter()
        .find(|flag| is_given(inner, flag));
    let _ = RUNNING.set(names);
    if let Some(flag) = idle {
        let shown = running()
            .get_arguments()
            .find(|argument| argument.get_id() == flag)
            .and_then(|argument| argument.get_long().map(str::to_owned))
            .unwrap_or_else(|| (*flag).to_owned());
        let message = format!("--{shown} does nothing for `{}`: leave it out", title());
        running().error(ErrorKind::UnknownArgument, message).exit();
    }
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command()).exit())
}

fn is_given(matches: &ArgMatches, flag: &str) -> bool {
    let source = matches
        .try_contains_id(flag)
        .ok()
        .and_then(|_| matches.value_source(flag));
    source == Some(ValueSource::CommandLine)
}

fn title() -> String {
    RUNNING
        .get()
        .map_or_else(String::new, |names| names.join(" "))
}

/// The command that runs.
pub fn running() -> Command {
    let mut command = command();
    command.build();
    for name in RUNNING.get().into_iter().flatten() {
        match command.find_subcommand(name) {
            Some(inner) => command = inner.clone(),
            None => break,
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_does_nothing_is_one_of_the_command() {
        let mut all = command();
        all.build();
        for (names, flags) in UNUSED_FLAGS {
            let mut command = &all;
            for name in *names {
                command = command.find_subcommand(name).expect("the command is there");
            }
            for flag in *flags {
                assert!(
                    command
                        .get_arguments()
                        .any(|argument| argument.get_id() == flag),
                    "{names:?} has no {flag}"
                );
            }
        }
    }
}
