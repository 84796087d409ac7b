//! Finds the items of long lists by their text under a key. Each of many injected items asks whether the list has it
//! already, so a look at all items for each would make the work grow with the square of their number.

use foldhash::HashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Draft, DraftValue, OpenId};

/// The length up to which looking at all items is cheaper.
pub(super) const SHORT: usize = 64;

/// The indexes of the long lists of a draft. A copy of a draft begins without them.
#[derive(Debug, Default)]
pub(super) struct TextIndexes(RefCell<BTreeMap<(OpenId, &'static str), TextIndex>>);

/// Which items of a list have which text under a key.
#[derive(Debug, Default)]
struct TextIndex {
    /// The number of items that were read: items behind them are new.
    known: usize,
    /// The indexes of the items by their text without slashes at its end.
    positions: HashMap<String, Vec<usize>>,
    /// Items that were opened or replaced. Their text may have changed, and may change again.
    changed: Vec<usize>,
}

impl Clone for TextIndexes {
    fn clone(&self) -> Self {
        TextIndexes::default()
    }
}

impl TextIndexes {
    /// Notes that an item was opened or replaced.
    pub(super) fn note_change(&mut self, list: OpenId, at: usize) {
        for (_, index) in self.of(list).filter(|(_, index)| at < index.known) {
            index.changed.push(at);
        }
    }

    /// Forgets a list in which items have moved.
    pub(super) fn forget(&mut self, list: OpenId) {
        self.of(list)
            .for_each(|(_, index)| *index = TextIndex::default());
    }

    fn of(
        &mut self,
        list: OpenId,
    ) -> impl Iterator<Item = (&(OpenId, &'static str), &mut TextIndex)> {
        let indexes = self.0.get_mut().range_mut((list, "")..);
        indexes.take_while(move |((of, _), _)| *of == list)
    }
}

impl Draft<'_> {
    /// The indexes of the items of a long list that have this text under a key, or one that is the same: `is_same`
    /// may pass over slashes at the end.
    pub(super) fn indexed_positions(
        &self,
        list: OpenId,
        key: &'static str,
        text: &str,
        is_same: impl Fn(&str) -> bool,
    ) -> Vec<usize> {
        let items = self.raw_items(list);
        let mut indexes = self.indexes.0.borrow_mut();
        let index = indexes.entry((list, key)).or_default();
        for (at, item) in items.iter().enumerate().skip(index.known) {
            match item {
                DraftValue::Open(_) => index.changed.push(at),
                DraftValue::Node(_) | DraftValue::New(_) | DraftValue::Instead { .. } => {
                    if let Some(text) = self.text_at(item, key) {
                        let positions = index.positions.entry(without_slashes(&text).to_owned());
                        positions.or_default().push(at);
                    }
                }
            }
        }
        index.known = items.len();
        let read = index
            .positions
            .get(without_slashes(text))
            .into_iter()
            .flatten();
        let mut found: Vec<usize> = read.chain(&index.changed).copied().collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|at| self.is_text_where(&items[*at], key, &is_same));
        found
    }
}

/// A path without the slashes at its end, which make no difference to a mount.
pub(super) fn without_slashes(path: &str) -> &str {
    path.trim_end_matches('/')
}
