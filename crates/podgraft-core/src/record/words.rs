//! Describes record paths in words, as reports do, and formats the undo command.

use crate::change::ChangeTarget;
use crate::wording::{shell_path, shell_word};

/// Describes a record path: `pod/spec/containers/app/env/X` as `app: env X`, `pod/spec/volumes/agent` as `volume
/// agent`.
pub(crate) fn words_of(path: &str) -> String {
    ChangeTarget::from_path(path).to_string()
}

/// Returns the command that removes what a policy injected into the workloads of a file, quoted for a shell.
pub(crate) fn undo_command(policy: &str, file: &str) -> String {
    format_undo(&shell_word(policy), file)
}

/// Like [`undo_command`]; the command also removes what was changed since.
pub(crate) fn forced_undo_command(policy: &str, file: &str) -> String {
    format_undo(&format!("{} --force", shell_word(policy)), file)
}

fn format_undo(options: &str, file: &str) -> String {
    match file {
        "<stdin>" => format!("podgraft undo --only {options}"),
        _ => format!(
            "podgraft undo --only {options} --in-place {}",
            shell_path(file)
        ),
    }
}
