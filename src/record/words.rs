//! Describes record paths in words, as reports do, and formats the undo command.

use crate::change::ChangeTarget;
use crate::wording::shell_word;

/// Describes a record path: `pod/spec/containers/app/env/X` as `app: env X`, `pod/spec/volumes/agent` as `volume
/// agent`.
pub(crate) fn words_of(path: &str) -> String {
    ChangeTarget::from_path(path).to_string()
}

/// Returns the command that removes what a policy injected into the workloads of a file, quoted for a shell. With
/// `is_forced` it also removes what was changed since.
pub(crate) fn undo_command(policy: &str, file: &str, is_forced: bool) -> String {
    let policy = shell_word(policy);
    let force = if is_forced { " --force" } else { "" };
    match file {
        "<stdin>" => format!("podgraft undo --only {policy}{force}"),
        _ => format!(
            "podgraft undo --only {policy}{force} --in-place {}",
            shell_word(file)
        ),
    }
}
