//! Problems that many parts of the program meet: files that cannot be read or written, and lists of problems.

use std::fmt::Display;

use podgraft_core::diagnostic::{Code, Diagnostic, unless};

/// The error for a file that cannot be read.
pub fn not_read(name: impl Display, reason: impl Display) -> Diagnostic {
    Diagnostic::error(Code::File, format!("`{name}` cannot be read: {reason}"))
}

/// The error for a file that cannot be written.
pub fn not_written(name: impl Display, reason: impl Display) -> Diagnostic {
    Diagnostic::error(Code::File, format!("`{name}` cannot be written: {reason}"))
}

/// Collects all values, or all problems: unlike `Result::from_iter`, it does not stop at the first one.
pub fn collect_all<T>(
    results: impl IntoIterator<Item = Result<T, Diagnostic>>,
) -> Result<Vec<T>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let values = results.into_iter();
    let values = values.filter_map(|result| result.map_err(|problem| problems.push(problem)).ok());
    let values = values.collect();
    unless(problems, values)
}
