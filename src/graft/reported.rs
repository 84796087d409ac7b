//! Removes duplicate problems of a document. Hashes them, because a pod may have a problem in each of thousands of
//! containers.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::diagnostic::Diagnostic;

/// Returns each problem once, in order. Of problems that are reported once per file, those with equal messages count
/// as duplicates wherever they are.
pub(super) fn once(problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut places: HashMap<u64, Vec<usize>, FixedState> = HashMap::default();
    let mut distinct: Vec<Diagnostic> = Vec::with_capacity(problems.len());
    for problem in problems {
        let alike = places.entry(FixedState::default().hash_one(&problem));
        let alike = alike.or_default();
        let is_said = match problem.is_reported_once() {
            true => distinct
                .iter()
                .any(|other| other.message == problem.message),
            false => alike.iter().any(|&at| distinct[at] == problem),
        };
        if !is_said {
            alike.push(distinct.len());
            distinct.push(problem);
        }
    }
    distinct
}
