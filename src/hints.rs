//! Commands in help texts, with the flags and paths of this run: what help names can be typed as it stands.

use std::path::PathBuf;

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::wording::shell_path;

use crate::args::relevant_flags::shared_flags;
use crate::walk::reads_stdin;

/// Commands that the library names without the flags and paths, which it does not know.
const COMMANDS: [&str; 8] = [
    "diff",
    "explain",
    "apply --in-place",
    "adopt --in-place",
    "debug",
    "inspect -A",
    "inspect -o yaml",
    "undo",
];
/// How the library names a command that undoes a policy in a file.
const UNDO_ONLY: &str = "`podgraft undo --only ";
/// The most paths that a help names. A hook or `xargs` gives hundreds.
const MAX_PATHS: usize = 3;

/// Adds the flags and paths of this run to the commands in help texts.
pub fn complete_commands<'d>(
    diagnostics: impl IntoIterator<Item = &'d mut Diagnostic>,
    paths: &[PathBuf],
) {
    let diagnostics = diagnostics.into_iter();
    let helps = diagnostics.filter_map(|diagnostic| diagnostic.help.as_mut());
    let mut helps: Vec<&mut String> = helps.filter(|help| help.contains("`podgraft ")).collect();
    let mut replace = |bare: &str, named: &dyn Fn() -> String| {
        if helps.iter().any(|help| help.contains(bare)) {
            let named = named();
            helps
                .iter_mut()
                .for_each(|help| **help = help.replace(bare, &named));
        }
    };
    for name in COMMANDS {
        replace(&format!("`podgraft {name}`"), &|| command(name, paths));
    }
    replace(UNDO_ONLY, &|| {
        format!("`podgraft undo{} --only ", shared_flags("undo"))
    });
}

/// A command with those flags of this run that say what is read and injected, and with its paths.
pub fn command(name: &str, paths: &[PathBuf]) -> String {
    let flags = shared_flags(name);
    match reads_stdin(paths) || paths.len() > MAX_PATHS {
        true => format!("`podgraft {name}{flags} PATH`"),
        false => format!("`podgraft {name}{flags} {}`", words_of(paths)),
    }
}

/// Paths as words of a command line.
pub fn words_of(paths: &[PathBuf]) -> String {
    let words = paths.iter().map(|path| shell_path(&path.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}
