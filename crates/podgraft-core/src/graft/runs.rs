//! Splits a text into runs of documents for several threads, and joins their reports in order.

use std::num::NonZeroUsize;

use crate::outcome::FileReport;
use crate::threads::map_in_order;
use crate::yaml::stream::Chunks;

/// The bytes of a run: long enough that handing it out costs nothing, short enough to stay in the cache and to keep
/// all threads busy.
const LENGTH: usize = 1 << 20;

/// Consecutive documents of a text.
#[derive(Debug, Clone, Copy)]
pub struct DocumentRun<'a> {
    /// Byte offset in the whole text.
    pub start: usize,
    /// The bytes of the run.
    pub text: &'a [u8],
    /// The line of the whole text on which it begins, from 1.
    pub first_line: usize,
    /// More text follows.
    pub has_more: bool,
}

/// Processes all runs of a text on up to `threads` threads, and joins their reports in order.
pub(super) fn on_threads(
    threads: NonZeroUsize,
    mut chunks: Chunks<'_>,
    work: impl Fn(DocumentRun<'_>) -> FileReport + Sync,
) -> FileReport {
    let mut first_line = 1;
    let runs = std::iter::from_fn(|| {
        let run = chunks.next_run(LENGTH)?;
        let run = DocumentRun {
            start: run.start,
            text: run.text,
            first_line,
            has_more: !chunks.rest().is_empty(),
        };
        first_line += memchr::memchr_iter(b'\n', run.text).count();
        Some(run)
    });
    let mut merged = FileReport::default();
    map_in_order(threads.get(), runs, work).for_each(|report| merged.append(report));
    merged
}
