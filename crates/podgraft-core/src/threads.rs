//! Does work on several threads, and puts the results in order.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// The stack of a thread in bytes, as large as that of the main thread on most systems: parsing recurses as deep as the
/// text nests.
const STACK: usize = 8 << 20;

/// Maps items on up to `threads` threads, this one among them. Returns the results in the order of the items.
pub fn map_in_order<T, R: Send>(
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    map: impl Fn(T) -> R + Sync,
) -> impl Iterator<Item = R> {
    let items = Mutex::new(items.enumerate());
    let take = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let map_next = || take().map(|(index, item)| (index, map(item)));
    let work = || std::iter::from_fn(map_next).collect::<Vec<_>>();
    let mut results = thread::scope(|scope| {
        // If the system refuses another thread, the threads that run do all the work.
        let handles = (1..threads).filter_map(|_| {
            let thread = Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, work).ok()
        });
        let handles: Vec<_> = handles.collect();
        let mut results = work();
        for handle in handles {
            results.extend(
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        results
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result)
}
