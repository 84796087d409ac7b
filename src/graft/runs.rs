//! Splits a text into runs of documents for several threads, and joins their reports in order.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use crate::outcome::FileReport;
use crate::threads::in_order;
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

struct DocumentRuns<'a> {
    chunks: Chunks<'a>,
    next: usize,
    first_line: usize,
}

impl<'a> DocumentRuns<'a> {
    fn next(&mut self) -> Option<(usize, DocumentRun<'a>)> {
        let run = self.chunks.next_run(LENGTH)?;
        let (index, first_line) = (self.next, self.first_line);
        self.next += 1;
        self.first_line += memchr::memchr_iter(b'\n', run.text).count();
        let has_more = !self.chunks.rest().is_empty();
        Some((
            index,
            DocumentRun {
                start: run.start,
                text: run.text,
                first_line,
                has_more,
            },
        ))
    }
}

/// Processes all runs of a text on up to `threads` threads, and joins their reports in order.
pub(super) fn on_threads(
    threads: NonZeroUsize,
    chunks: Chunks<'_>,
    work: impl Fn(DocumentRun<'_>) -> FileReport + Sync,
) -> FileReport {
    let runs = Mutex::new(DocumentRuns {
        chunks,
        next: 0,
        first_line: 1,
    });
    let take = || runs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work_on_next = || take().map(|(index, run)| (index, work(run)));
    let mut merged = FileReport::default();
    in_order(threads.get(), work_on_next).for_each(|report| merged.append(report));
    merged
}
