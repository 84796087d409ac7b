//! Work on many things at once, with results in the order of the things.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

/// As the main thread has it: parsing goes as deep as the text nests.
const STACK: usize = 8 << 20;

/// As many as are asked for, or as there are cores.
pub fn number(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked
        .or_else(|| thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}

/// Maps all, on as many threads as are asked for or as there are cores.
pub fn map_in_order<T: Sync, R: Send>(
    things: &[T],
    threads: Option<NonZeroUsize>,
    map: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let wanted = if things.len() < 2 {
        Some(NonZeroUsize::MIN)
    } else {
        threads
    };
    let threads = number(wanted).get().min(things.len());
    if threads < 2 {
        return things.iter().map(map).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(index) else {
                return done;
            };
            done.push((index, map(thing)));
        }
    };
    let mut done = thread::scope(|scope| {
        // Where the system gives no more threads, those that run do the work.
        let spawn = |_| {
            Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, work)
                .ok()
        };
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut done = work();
        for other in others {
            done.extend(
                other
                    .join()
                    .expect("a panic has ended the program in its hook"),
            );
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_things() {
        let things: Vec<usize> = (0..1000).collect();
        let doubled = map_in_order(&things, NonZeroUsize::new(4), |thing| thing * 2);
        assert_eq!(
            doubled,
            (0..1000).map(|thing| thing * 2).collect::<Vec<_>>()
        );
    }
}
