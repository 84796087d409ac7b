//! `--shard I/N`: several runs divide the files among them.

use std::num::NonZeroUsize;
use std::str::FromStr;

/// The I-th of N runs; `index` counts from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: NonZeroUsize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=NonZeroUsize::get(count)).contains(&index) => Ok(Shard {
                index: index - 1,
                count,
            }),
            _ => Err("expected I/N, where I is a number from 1 to N".to_owned()),
        }
    }
}

impl Shard {
    /// Whether this run works on the text with this number, counted from 0.
    pub fn has(self, number: usize) -> bool {
        number % self.count.get() == self.index
    }

    /// The items that this run works on: every N-th. All runs get about as many, and every run over the same files
    /// divides them in the same way.
    pub fn keep<T>(self, items: Vec<T>) -> Vec<T> {
        items
            .into_iter()
            .skip(self.index)
            .step_by(self.count.get())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_counted_from_1() {
        for wrong in ["", "1", "0/3", "4/3", "1/0", "a/b", "1/3/5", "-1/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
