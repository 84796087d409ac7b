//! Maps items on several threads and keeps their order.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use podgraft::threads::in_order;

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
    let wanted = if items.len() < 2 {
        Some(NonZeroUsize::MIN)
    } else {
        threads
    };
    let threads = number(wanted).get().min(items.len());
    if threads < 2 {
        return items.iter().map(map).collect();
    }
    let next = AtomicUsize::new(0);
    let map_next = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        Some((index, map(items.get(index)?)))
    };
    in_order(threads, map_next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_things() {
        let numbers: Vec<usize> = (0..1000).collect();
        let doubled = map_in_order(&numbers, NonZeroUsize::new(4), |number| number * 2);
        assert_eq!(
            doubled,
            (0..1000).map(|number| number * 2).collect::<Vec<_>>()
        );
    }
}
