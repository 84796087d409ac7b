//! Whether a problem stands in a list already, without a look at all of the list: a pod may have one for each of its
//! thousands of containers.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::diagnostic::Diagnostic;

/// A list's problems by their hashes, as far as it was read.
#[derive(Default)]
pub(super) struct Said {
    read: usize,
    places: HashMap<u64, Vec<usize>, FixedState>,
}

impl Said {
    /// Whether the list has it. The list may have grown at its end since the last time, and changed in no other way.
    pub(super) fn has(&mut self, problem: &Diagnostic, list: &[Diagnostic]) -> bool {
        let hash = |problem: &Diagnostic| FixedState::default().hash_one(problem);
        for (at, one) in list.iter().enumerate().skip(self.read) {
            self.places.entry(hash(one)).or_default().push(at);
        }
        self.read = list.len();
        let alike = self.places.get(&hash(problem)).into_iter().flatten();
        alike.into_iter().any(|&at| list[at] == *problem)
    }
}
