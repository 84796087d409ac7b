//! Paths of a record in words, as reports name what a policy does, and the command that takes its work out.

use crate::change::ChangeTarget;
use crate::wording::shell_word;

/// `pod/spec/containers/app/env/X` as `app: env X`, `pod/spec/volumes/agent` as `volume agent`.
pub(crate) fn words_of(path: &str) -> String {
    ChangeTarget::from_path(path).to_string()
}

/// The command that takes out what a policy injected into the workloads of a file, as a shell reads it; forced: what was
/// changed since, too.
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
