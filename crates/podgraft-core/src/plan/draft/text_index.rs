//! Finds the items of long lists by their text under a key. Each of many injected items asks whether the list has it
//! already, so a look at all items for each would make the work grow with the square of their number.

use foldhash::HashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Draft, DraftValue, OpenId};
use crate::yaml::tree::NodeId;

/// The length up to which looking at all items is cheaper.
const SHORT: usize = 64;

/// The indexes of the long lists of a draft. A copy of a draft begins without them.
#[derive(Debug, Default)]
pub(super) struct TextIndexes(RefCell<BTreeMap<(LongList, &'static str), TextIndex>>);

/// A list that has an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LongList {
    /// One that was opened.
    Open(OpenId),
    /// One of the input, which nothing changes.
    Node(NodeId),
}

/// Which items of a list have which text under a key.
#[derive(Debug, Default)]
struct TextIndex {
    /// The items of a list of the input.
    nodes: Vec<DraftValue>,
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
    ) -> impl Iterator<Item = (&(LongList, &'static str), &mut TextIndex)> {
        let list = LongList::Open(list);
        let indexes = self.0.get_mut().range_mut((list, "")..);
        indexes.take_while(move |((of, _), _)| *of == list)
    }
}

impl Draft<'_> {
    /// The items of a long list that have this text under a key, or one that is the same: `is_same` may pass over slashes
    /// at the end. Each with its index. `None` if the list has no index.
    pub(super) fn indexed_items(
        &self,
        list: &DraftValue,
        key: &'static str,
        text: &str,
        is_same: impl Fn(&str) -> bool,
    ) -> Option<Vec<(usize, DraftValue)>> {
        let id = match list {
            DraftValue::Open(id) if self.raw_items(*id).len() > SHORT => LongList::Open(*id),
            DraftValue::Node(node) if self.tree.items(*node).nth(SHORT).is_some() => {
                LongList::Node(*node)
            }
            _ => return None,
        };
        let mut indexes = self.indexes.0.borrow_mut();
        let index = indexes.entry((id, key)).or_default();
        let items = match id {
            LongList::Open(id) => self.raw_items(id),
            LongList::Node(node) => {
                if index.nodes.is_empty() {
                    index.nodes = self.tree.items(node).map(DraftValue::Node).collect();
                }
                &index.nodes
            }
        };
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
        let read = index.positions.get(without_slashes(text));
        let read = read.into_iter().flatten();
        let mut found: Vec<usize> = read.chain(&index.changed).copied().collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|at| self.is_text_where(&items[*at], key, &is_same));
        let found = found.into_iter();
        Some(
            found
                .map(|at| (at, self.resolve_alias(&items[at])))
                .collect(),
        )
    }
}

/// A path without the slashes at its end, which make no difference to a mount.
pub(super) fn without_slashes(path: &str) -> &str {
    path.trim_end_matches('/')
}
