//! The word that anything like a pod template has.

use memchr::memmem::Finder;
use std::sync::LazyLock;

use crate::yaml::stream::Chunk;

/// Without it no document holds anything like a pod template.
static CONTAINERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"containers:"));

/// Where a text holds the word without which there is nothing like a pod template: looked for once, not once a chunk.
pub(super) struct PodWords<'a> {
    text: &'a [u8],
    /// The first place at or behind the last chunk's start.
    next: usize,
}

impl<'a> PodWords<'a> {
    /// Nothing is looked for yet.
    pub(super) fn of(text: &'a [u8]) -> Self {
        PodWords { text, next: 0 }
    }

    /// Whether the word stands in a chunk. Chunks come in order.
    pub(super) fn stand_in(&mut self, chunk: &Chunk<'_>) -> bool {
        if self.next <= chunk.start {
            let found = CONTAINERS.find(&self.text[chunk.start..]);
            self.next = found.map_or(usize::MAX, |found| chunk.start + found);
        }
        self.next < chunk.start + chunk.text.len()
    }
}
