//! Errors and warnings about objects that earlier runs generated.

use crate::diagnostic::{Code, Diagnostic};
use crate::outcome::GeneratedRecord;
use crate::record::words::forced_undo_command;

/// The error that an object to prune is in the part of a stream that was already written.
pub fn not_taken_out(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "the {}, which policy `{}` generated, is needed no longer, and a stream is read once: it was not taken out",
        generated.name, generated.policy
    );
    Diagnostic::error(Code::TooLate, message).help("leave out --stream")
}

/// The error that somebody changed an object to prune.
pub(super) fn changed_since(generated: &GeneratedRecord, file: &str) -> Diagnostic {
    let message = format!(
        "the {} was changed since policy `{}` generated it",
        generated.name, generated.policy
    );
    let help = format!(
        "to take it out all the same: {}, with the file of its workload if that is another",
        forced_undo_command(&generated.policy, file)
    );
    Diagnostic::error(Code::ChangedSince, message).help(help)
}

/// The error that an object cannot be removed safely.
pub(super) fn cannot_remove(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "the {}, which policy `{}` generated, cannot be taken out of where it stands",
        generated.name, generated.policy
    );
    let problem = Diagnostic::error(Code::CannotEdit, message);
    problem.help("write it as a document of its own, behind a line `---`, or take it out by hand")
}

/// The warning that no file contains an object to prune.
pub(super) fn missing_object(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "the {}, which policy `{}` generated and nothing needs any more, is in none of these files",
        generated.name, generated.policy
    );
    let problem = Diagnostic::warning(Code::MissingObject, message);
    problem.help("if it stands in another file, take it out there")
}

/// The warning that no file contains the version of an object that is to be replaced.
pub(super) fn missing_version(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "an earlier version of the {}, which policy `{}` generated, is in none of these files",
        generated.name, generated.policy
    );
    Diagnostic::warning(Code::MissingObject, message).help(
        "the policy wants another version now; if the earlier one stands in another file, take it out there",
    )
}
