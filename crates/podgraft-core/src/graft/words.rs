//! Searches for the key that every pod template has.

use memchr::memmem::Finder;
use std::sync::LazyLock;

use crate::yaml::stream::Chunk;

/// A document without it has no pod template.
static CONTAINERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"containers:"));

/// Searches a text for `containers:`, each byte at most once.
pub(super) struct PodKeywordSearch<'a> {
    text: &'a [u8],
    /// The offset of the first match at or after the start of the last chunk.
    next: usize,
}

impl<'a> PodKeywordSearch<'a> {
    /// Starts before the first chunk.
    pub(super) fn of(text: &'a [u8]) -> Self {
        PodKeywordSearch { text, next: 0 }
    }

    /// Whether a chunk contains the key. Must be called for chunks in order.
    pub(super) fn is_in(&mut self, chunk: &Chunk<'_>) -> bool {
        if self.next <= chunk.start {
            let found = CONTAINERS.find(&self.text[chunk.start..]);
            self.next = found.map_or(usize::MAX, |found| chunk.start + found);
        }
        self.next < chunk.start + chunk.text.len()
    }
}
