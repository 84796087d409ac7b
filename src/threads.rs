//! Maps items on several threads and keeps their order.

use std::num::NonZeroUsize;
use std::thread;

use podgraft_core::threads;

/// The number of threads: as asked for, else one for each core.
pub fn number(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked
        .or_else(|| thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}

/// Maps all items on [`number`] threads. The results are in the order of the items.
pub fn map_in_order<T: Sync, R: Send>(
    items: &[T],
    threads: Option<NonZeroUsize>,
    map: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = number(threads).get().min(items.len());
    threads::map_in_order(threads, items.iter(), map).collect()
}
