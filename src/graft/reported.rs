//! Each problem of a document once, without a look at all of them for each: a pod may have one for each of its thousands of
//! containers.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::diagnostic::Diagnostic;

/// Each problem once; of those that are said once a file, each message.
pub(super) fn once(problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut places: HashMap<u64, Vec<usize>, FixedState> = HashMap::default();
    let mut distinct: Vec<Diagnostic> = Vec::with_capacity(problems.len());
    for problem in problems {
        let alike = places.entry(FixedState::default().hash_one(&problem));
        let alike = alike.or_default();
        let is_said = match problem.is_said_once() {
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
