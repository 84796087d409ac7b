//! What became of results that could not be written.

use std::io;

use podgraft_core::diagnostic::{Diagnosed, Diagnostic, unless};
use podgraft_core::wording::count;

use crate::problems::not_written;

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

/// Collects all values, or the failures with the names of their files: one for each cause, as a full disk fails all files
/// alike.
pub(super) fn collect_by_cause<T>(
    results: impl Iterator<Item = Result<T, (String, io::Error)>>,
) -> Diagnosed<Vec<T>> {
    let mut values = Vec::new();
    let mut causes: Vec<(String, io::Error, usize)> = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err((name, error)) => {
                let text = error.to_string();
                let known = |(_, known, _): &&mut (_, io::Error, _)| known.to_string() == text;
                match causes.iter_mut().find(known) {
                    Some((_, _, others)) => *others += 1,
                    None => causes.push((name, error, 0)),
                }
            }
        }
    }
    let problems = causes.into_iter().map(|(name, error, others)| {
        let problem = not_written(name, error);
        match others {
            0 => problem,
            _ => problem.help(format!("the same in {}", count(others, "other file"))),
        }
    });
    unless(problems.collect(), values)
}
