//! What became of results that could not be written.

use podgraft::diagnostic::Diagnostic;

/// Why results are not written, or not all of them.
#[derive(Debug)]
pub struct WriteFailure {
    /// What is wrong.
    pub problems: Vec<Diagnostic>,
    /// Whether all files are as they were.
    pub nothing_written: bool,
}

impl WriteFailure {
    /// A failure behind the first written result.
    pub fn midway(problem: Diagnostic) -> Self {
        WriteFailure {
            problems: vec![problem],
            nothing_written: false,
        }
    }
}

/// What shows before anything is written.
impl From<Vec<Diagnostic>> for WriteFailure {
    fn from(problems: Vec<Diagnostic>) -> Self {
        WriteFailure {
            problems,
            nothing_written: true,
        }
    }
}
