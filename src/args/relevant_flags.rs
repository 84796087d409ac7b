//! The command line as each command shows it: what does nothing there is refused and hidden, what is seldom needed
//! stands in `--help` only, and wrong usage is said with the usage line of the command that runs.

use std::ffi::OsString;
use std::fmt::Display;
use std::sync::OnceLock;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};
use podgraft_core::mask;
use podgraft_core::wording::shell_word;

use super::{ApplyArgs, CheckArgs, Cli, DiffArgs, ExplainArgs, HostArgs, InspectArgs};

/// Flags that a command shares with others and that do nothing in it.
const UNUSED_FLAGS: &[(&str, &str)] = &[
    (
        "policy lint",
        "record no_record no_marker set prune only skip",
    ),
    (
        "policy images",
        "record no_record no_marker set prune only skip forbid",
    ),
    ("undo", "image_env context kube_version"),
    ("inspect", "image_env context kube_version strict"),
    ("debug", "record no_record"),
    (
        "argocd parameters",
        "params only skip debug_mode release enable disable images no_marker record no_record set prune forbid",
    ),
];

/// What the short help shows; `--help` shows all.
const COMMON: &str = "paths files given params only skip namespace workloads context include exclude in_place output_dir \
                      output format strict quiet force require against_policy update all_namespaces help";

/// Whether a list separated by blanks has the word.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|entry| entry == word)
}

/// The name of the command that runs: `policy lint`.
static RUNNING: OnceLock<String> = OnceLock::new();

/// The command line of this run.
static GIVEN: OnceLock<ArgMatches> = OnceLock::new();

/// All commands.
pub fn command() -> Command {
    with_relevant_flags(Cli::command(), "")
}

fn with_relevant_flags(command: Command, path: &str) -> Command {
    let unused = unused_flags(path);
    let mut command = command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let (is_unused, is_rare) = (has(unused, id), !has(COMMON, id));
        argument.hide(is_unused).hide_short_help(is_rare)
    });
    // Examples belong to the long help; at the top they are all there is.
    if !path.is_empty()
        && let Some(examples) = command.get_after_help().cloned()
    {
        command = command.after_long_help(examples).after_help("");
    }
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        with_relevant_flags(inner, path.trim_start())
    })
}

fn unused_flags(path: &str) -> &'static str {
    let mut commands = UNUSED_FLAGS.iter();
    let found = commands.find(|(command, _)| *command == path);
    found.map_or("", |(_, flags)| flags)
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
    let matches = GIVEN.get_or_init(|| matches);
    let (names, inner) = innermost(matches);
    let path = RUNNING.get_or_init(|| names.join(" "));
    let mut unused = unused_flags(path).split_terminator(' ');
    if let Some(flag) = unused.find(|flag| is_given(inner, flag)) {
        let running = running();
        let mut arguments = running.get_arguments();
        let argument = arguments.find(|argument| argument.get_id() == flag);
        let shown = argument.and_then(|argument| argument.get_long());
        let shown = shown.unwrap_or(flag);
        let message = format!("--{shown} has no effect with `{path}`: remove it");
        usage(ErrorKind::UnknownArgument, message).exit();
    }
    Cli::from_arg_matches(matches).unwrap_or_else(|error| error.format(&mut command()).exit())
}

/// The names of the subcommands, and the matches of the last one.
pub fn innermost(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut names, mut inner) = (Vec::new(), matches);
    while let Some((name, matches)) = inner.subcommand() {
        names.push(name);
        inner = matches;
    }
    (names, inner)
}

/// Of the flags of this run, those that say what is read and injected and that another command has, as they can be
/// typed: ` -p policy.yaml --namespace shop`.
pub fn shared_flags(name: &str) -> String {
    let Some(matches) = GIVEN.get() else {
        return String::new();
    };
    let (_, given) = innermost(matches);
    let wanted = name.split(' ').next().unwrap_or_default();
    let unused = unused_flags(wanted);
    let program = find_command(wanted).unwrap_or_else(Cli::command);
    let arguments = program.find_subcommand(wanted).into_iter();
    let shared = arguments
        .flat_map(Command::get_arguments)
        .filter(|argument| {
            let heading = argument.get_help_heading();
            let id = argument.get_id().as_str();
            matches!(heading, Some("Policies" | "Manifests"))
                && !has(unused, id)
                && is_given(given, id)
        });
    shared.map(|argument| as_typed(argument, given)).collect()
}

/// A flag with its values. The secrets in them are masked: reports go to other places than a terminal.
fn as_typed(argument: &Arg, given: &ArgMatches) -> String {
    let long = argument.get_long().unwrap_or_default();
    let flag = match argument.get_short() {
        Some(short) => format!(" -{short}"),
        None => format!(" --{long}"),
    };
    if !argument.get_action().takes_values() {
        return flag;
    }
    let values = given.get_raw(argument.get_id().as_str());
    let values = values.into_iter().flatten().map(|value| {
        let value = value.to_string_lossy();
        let word = shell_word(&mask::text(&value));
        match word.starts_with('-') && word != "-" {
            true => format!(" --{long}={word}"),
            false => format!("{flag} {word}"),
        }
    });
    values.collect()
}

fn is_given(matches: &ArgMatches, flag: &str) -> bool {
    let source = matches
        .try_contains_id(flag)
        .ok()
        .and_then(|_| matches.value_source(flag));
    source == Some(ValueSource::CommandLine)
}

/// A usage error of the command that runs.
pub fn usage(kind: ErrorKind, message: impl Display) -> clap::Error {
    running().error(kind, message)
}

fn running() -> Command {
    let mut command = command();
    command.build();
    for name in RUNNING.get().into_iter().flat_map(|path| path.split(' ')) {
        match command.find_subcommand(name) {
            Some(inner) => command = inner.clone(),
            None => break,
        }
    }
    command
}

#[cfg(test)]
#[test]
fn a_flag_that_does_nothing_is_one_of_the_command() {
    let mut all = command();
    all.build();
    for (path, flags) in UNUSED_FLAGS {
        let command = path.split(' ').fold(&all, |command, name| {
            command.find_subcommand(name).expect("the command is there")
        });
        for flag in flags.split(' ') {
            let mut arguments = command.get_arguments();
            assert!(
                arguments.any(|argument| argument.get_id() == flag),
                "{path} has no {flag}"
            );
        }
    }
}
