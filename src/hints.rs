//! Commands in help texts, with the paths of this run: what help names can be typed as it stands.

use std::path::PathBuf;

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::wording::{shell_path, shell_word};

use crate::args;
use crate::walk::reads_stdin;

/// Commands that the library names without the paths, which it does not know.
const COMMANDS: [&str; 4] = ["diff", "explain", "apply --in-place", "adopt --in-place"];
/// The most paths that a help names. A hook or `xargs` gives hundreds.
const MAX_PATHS: usize = 3;

/// Adds the paths of this run to the commands in help texts.
pub fn name_paths<'d>(
    diagnostics: impl IntoIterator<Item = &'d mut Diagnostic>,
    paths: &[PathBuf],
) {
    if reads_stdin(paths) || paths.len() > MAX_PATHS {
        return;
    }
    let paths = words_of(paths);
    let commands = COMMANDS.map(|command| {
        let bare = format!("`podgraft {command}`");
        (bare, format!("`podgraft {command} {paths}`"))
    });
    let diagnostics = diagnostics.into_iter();
    let helps = diagnostics.filter_map(|diagnostic| diagnostic.help.as_mut());
    for help in helps.filter(|help| help.contains("`podgraft ")) {
        for (bare, named) in &commands {
            if help.contains(bare) {
                *help = help.replace(bare, named);
            }
        }
    }
}

/// A command with the policies, their parameters and the paths that stand on the command line of this run.
pub fn command(name: &str, run: &args::RunArgs) -> String {
    let policies = &run.policies;
    let config = policies.configuration.config.iter();
    let flags = config.map(|path| ("--config", shell_path(&path.to_string_lossy())));
    let given = policies.given.iter();
    let flags = flags.chain(given.map(|path| ("-p", shell_path(&path.to_string_lossy()))));
    let params = policies.params.iter();
    let flags = flags.chain(params.map(|param| ("--param", shell_word(&param.to_string()))));
    let flags: String = flags
        .map(|(flag, value)| format!(" {flag} {value}"))
        .collect();
    let paths = match reads_stdin(&run.paths) || run.paths.len() > MAX_PATHS {
        true => String::new(),
        false => format!(" {}", words_of(&run.paths)),
    };
    format!("`podgraft {name}{flags}{paths}`")
}

/// Paths as words of a command line.
pub fn words_of(paths: &[PathBuf]) -> String {
    let words = paths.iter().map(|path| shell_path(&path.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}
