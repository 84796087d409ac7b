//! The word that anything like a pod template has.

use memchr::memmem::Finder;
use std::sync::LazyLock;

use crate::yaml::stream::ChunkGraft;

/// Without it no document holds anything like a pod template.
static CONTAINERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"containers:"));

/// Searches a text once for `containers:`, without which a document has no pod template.
pub(super) struct PodKeywordSearch<'a> {
    text: &'a [u8],
    /// The first place at or behind the last chunk's start.
    next: usize,
}

impl<'a> PodKeywordSearch<'a> {
    /// Nothing is looked for yet.
    pub(super) fn of(text: &'a [u8]) -> Self {
        PodKeywordSearch { text, next: 0 }
    }

    /// Whether the word stands in a chunk. Chunks come in order.
    pub(super) fn stand_in(&mut self, chunk: &ChunkGraft<'_>) -> bool {
        if self.next <= chunk.start {
            let found = CONTAINERS.find(&self.text[chunk.start..]);
            self.next = found.map_or(usize::MAX, |found| chunk.start + found);
        }
        self.next < chunk.start + chunk.text.len()
    }
}
