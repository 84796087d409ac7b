//! Lookups in a tree as a YAML reader does them: aliases are followed, and merge keys (`<<`) are resolved.
//!
//! Merge keys work as in <https://yaml.org/type/merge.html>: a key of the mapping itself wins over a merged one, an
//! earlier merged mapping over a later one. In kubectl (go-yaml v2) a merged key also wins over an explicit key
//! before the `<<`. Because readers disagree, such a mapping is treated as one with a duplicate key.

use super::scalar;
use super::tree::{Node, NodeId, NodeKind, Tree, VERBATIM};

/// The most mappings that one lookup visits through merge keys, which may be nested; real files use one or two
/// levels.
const MAX_MERGES: usize = 256;

const MERGE_KEY: &str = "<<";

/// An entry of a mapping, written in it or merged into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingEntry {
    /// The key's node.
    pub key: NodeId,
    /// The value's node; an alias is not followed.
    pub value: NodeId,
    /// Comes from a merge key, so it is written elsewhere.
    pub is_merged: bool,
}

impl Node {
    /// Nearly all keys are longer than a merge key.
    #[inline]
    fn may_be_merge_key(&self) -> bool {
        (self.end - self.start) as usize == MERGE_KEY.len()
    }
}

impl Tree<'_> {
    /// Returns the value of the key, aliases followed. `None` if there is none or the node is no mapping.
    #[inline]
    pub fn get(&self, mapping: NodeId, key: &str) -> Option<NodeId> {
        self.entry(mapping, key)
            .map(|entry| self.follow(entry.value))
    }

    /// [`Tree::get`] of a mapping that may be missing.
    #[inline]
    pub fn get_in(&self, mapping: Option<NodeId>, key: &str) -> Option<NodeId> {
        self.get(mapping?, key)
    }

    /// Returns the scalar at the key, aliases followed. `None` if there is none.
    pub fn scalar_at(&self, mapping: NodeId, key: &str) -> Option<&str> {
        self.scalar(self.get(mapping, key)?)
    }

    /// Returns the entry of the key, from the mapping itself or from its merge keys. `None` if there is none.
    pub fn entry(&self, mapping: NodeId, key: &str) -> Option<MappingEntry> {
        self.entry_within(self.follow(mapping), key, &mut Vec::new())
    }

    /// `visited` are the mappings that were searched through merge keys. Each is searched once; otherwise nested
    /// merge keys could make a lookup exponential.
    fn entry_within(
        &self,
        mapping: NodeId,
        key: &str,
        visited: &mut Vec<NodeId>,
    ) -> Option<MappingEntry> {
        let root = self.node(mapping);
        if !root.kind.is_mapping() {
            return None;
        }
        // Most lookups of a document pass over many keys, so nodes are looked at where they are.
        let nodes = &self.nodes[..root.after as usize];
        let (mut merged, mut at) = (None, mapping.0 + 1);
        while let Some(node) = nodes.get(at as usize) {
            let (key_node, value) = (NodeId(at), NodeId(node.after));
            if self.is_text_of(node, key_node, key) {
                return Some(MappingEntry {
                    key: key_node,
                    value,
                    is_merged: false,
                });
            }
            if node.may_be_merge_key() && self.is_written_as_merge_key(key_node) {
                merged = Some(value);
            }
            at = nodes[value.0 as usize].after;
        }
        self.merged_entry(merged?, key, visited)
    }

    /// Looks the key up in the mappings that a merge key's value refers to, in order.
    fn merged_entry(
        &self,
        value: NodeId,
        key: &str,
        visited: &mut Vec<NodeId>,
    ) -> Option<MappingEntry> {
        let source = self.follow(value);
        let sources = if self.kind(source).is_sequence() {
            self.children(source).collect()
        } else {
            vec![source]
        };
        let found = sources
            .into_iter()
            .map(|source| self.follow(source))
            .find_map(|source| {
                if visited.len() >= MAX_MERGES || visited.contains(&source) {
                    return None;
                }
                visited.push(source);
                self.entry_within(source, key, visited)
            });
        found.map(|found| MappingEntry {
            is_merged: true,
            ..found
        })
    }

    /// The last node that begins before an offset: a scalar, or an empty collection. `None` if there is none.
    pub fn last_before(&self, offset: usize) -> Option<NodeId> {
        let before = self
            .nodes
            .partition_point(|node| (node.start as usize) < offset);
        let last = u32::try_from(before).ok()?.checked_sub(1)?;
        Some(NodeId(last))
    }

    /// Whether a key is a merge key: a plain `<<` without a tag, or with the tag `!!merge`.
    #[inline]
    pub fn is_merge_key(&self, key: NodeId) -> bool {
        self.node(key).may_be_merge_key() && self.is_written_as_merge_key(key)
    }

    fn is_written_as_merge_key(&self, key: NodeId) -> bool {
        let is_merge = self.kind(key) == NodeKind::Plain && self.slice(key) == MERGE_KEY;
        is_merge
            && self
                .tag(key)
                .is_none_or(|tag| tag == "tag:yaml.org,2002:merge")
    }

    /// Whether a merge key of the mapping provides the key, even if the mapping has that key itself.
    pub fn is_brought_by_merge(&self, mapping: NodeId, key: &str) -> bool {
        let mut merges = self
            .entries(mapping)
            .filter(|(key, _)| self.is_merge_key(*key));
        merges.any(|(_, value)| self.merged_entry(value, key, &mut Vec::new()).is_some())
    }

    /// Finds a `<<` that provides a key which is also written before it: readers disagree about which of both wins.
    fn late_merge(&self, mapping: NodeId) -> Option<NodeId> {
        let mut before: Vec<&str> = Vec::new();
        for (key, value) in self.entries(mapping) {
            if !self.is_merge_key(key) {
                before.extend(self.scalar(key));
            } else if before
                .iter()
                .any(|name| self.merged_entry(value, name, &mut Vec::new()).is_some())
            {
                return Some(key);
            }
        }
        None
    }

    /// Whether a node is a scalar with this value, aliases followed.
    #[inline]
    pub fn is_text(&self, id: NodeId, text: &str) -> bool {
        self.is_text_of(self.node(id), id, text)
    }

    #[inline(always)]
    fn is_text_of(&self, node: &Node, id: NodeId, text: &str) -> bool {
        if node.kind != NodeKind::Plain || node.extra != VERBATIM {
            return self.scalar(id) == Some(text);
        }
        // Most keys have another length.
        (node.end - node.start) as usize == text.len()
            && self.text.as_bytes()[node.start as usize..node.end as usize] == *text.as_bytes()
    }

    /// Whether a merge key is written in the mapping.
    pub fn has_merge_key(&self, mapping: NodeId) -> bool {
        self.entries(mapping).any(|(key, _)| self.is_merge_key(key))
    }

    /// Whether the value is null: `~`, `null`, or not written.
    pub fn is_null(&self, id: NodeId) -> bool {
        let id = self.follow(id);
        match self.kind(id) {
            NodeKind::Absent => true,
            NodeKind::Plain => self.tag(id).is_none() && scalar::is_null(self.slice(id)),
            _ => false,
        }
    }

    /// The text that Kubernetes reads where it wants a string: that of a scalar, and the empty text for null. `None`
    /// for collections.
    #[inline]
    pub fn string(&self, id: NodeId) -> Option<&str> {
        let text = self.scalar(id)?;
        // A value that is not written is the empty text already.
        let may_be_null = matches!(text.as_bytes().first(), Some(b'n' | b'N' | b'~'));
        Some(match may_be_null && self.is_null(id) {
            true => "",
            false => text,
        })
    }

    /// The items of a sequence, aliases followed; empty for anything else.
    pub fn items(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let id = self.follow(id);
        let end = if self.kind(id).is_sequence() {
            id
        } else {
            NodeId(u32::MAX)
        };
        let children = (end == id).then(|| self.children(id));
        children.into_iter().flatten().map(|item| self.follow(item))
    }

    /// Whether the keys of a mapping are distinct strings and none is `<<`. `false` if the quick check cannot tell.
    pub fn has_usual_keys(&self, mapping: NodeId) -> bool {
        let mut seen = SeenHashes::default();
        self.entries(mapping).all(|(key, _)| {
            let kind = self.kind(key);
            let text = self.scalar(key).filter(|text| {
                *text != "<<" && (kind != NodeKind::Plain || !scalar::is_typed(text))
            });
            kind != NodeKind::Absent && text.is_some_and(|text| seen.insert(text.as_bytes()))
        })
    }

    /// Returns the second of two equal keys of a mapping, or a `<<` that provides a key written before it. `None` if
    /// there is neither.
    pub fn duplicate_key(&self, mapping: NodeId) -> Option<NodeId> {
        let keys = self.inspect_keys(mapping);
        if keys.are_distinct {
            return if keys.may_merge {
                self.late_merge(mapping)
            } else {
                None
            };
        }
        let keys: Vec<(NodeId, &str)> = self
            .entries(mapping)
            .filter_map(|(key, _)| Some((key, self.scalar(key)?)))
            .collect();
        // Comparing all pairs is faster than a set for few keys.
        if keys.len() <= 32 {
            let is_duplicate = |at: usize| keys[..at].iter().any(|(_, text)| *text == keys[at].1);
            let second = (1..keys.len())
                .find(|&at| is_duplicate(at))
                .map(|at| keys[at].0);
            return second.or_else(|| self.late_merge(mapping));
        }
        let mut seen = std::collections::BTreeSet::new();
        let second = keys
            .into_iter()
            .find(|(_, text)| !seen.insert(*text))
            .map(|(key, _)| key);
        second.or_else(|| self.late_merge(mapping))
    }

    /// A cheap check of the keys. `are_distinct` is only set if all have different hashes, so it may be `false` for
    /// distinct keys.
    fn inspect_keys(&self, mapping: NodeId) -> KeySummary {
        let mut seen = SeenHashes::default();
        let mut keys = KeySummary {
            are_distinct: true,
            may_merge: false,
        };
        for (key, _) in self.entries(mapping) {
            let Some(text) = self.scalar_bytes(key) else {
                continue;
            };
            keys.may_merge |= text == MERGE_KEY.as_bytes();
            keys.are_distinct &= seen.insert(text);
        }
        keys
    }

    /// The bytes of [`Tree::scalar`].
    #[inline]
    fn scalar_bytes(&self, id: NodeId) -> Option<&[u8]> {
        let node = self.node(id);
        match node.kind == NodeKind::Plain && node.extra == VERBATIM {
            true => Some(&self.text.as_bytes()[node.start as usize..node.end as usize]),
            false => self.scalar(id).map(str::as_bytes),
        }
    }
}

/// See [`Tree::inspect_keys`].
struct KeySummary {
    are_distinct: bool,
    may_merge: bool,
}

/// The hashes of the keys of a mapping so far.
struct SeenHashes([u64; HASHES / 64]);

impl Default for SeenHashes {
    fn default() -> Self {
        SeenHashes([0; HASHES / 64])
    }
}

impl SeenHashes {
    /// Returns whether the hash of the text is new.
    fn insert(&mut self, text: &[u8]) -> bool {
        let hash = small_hash(text);
        let (word, bit) = (&mut self.0[hash / 64], 1 << (hash % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Enough that the keys of a usual mapping rarely share one.
const HASHES: usize = 2048;

/// Returns a number below [`HASHES`], from the length and both ends of the text.
fn small_hash(text: &[u8]) -> usize {
    let (first, last) = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
            (Some(first), Some(last)) => (
                u64::from(u32::from_le_bytes(*first)),
                u64::from(u32::from_le_bytes(*last)),
            ),
            _ => (
                text.iter()
                    .fold(0, |word, &byte| word << 8 | u64::from(byte)),
                0,
            ),
        },
    };
    let hash = (first ^ last.rotate_left(17) ^ (text.len() as u64) << 56)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 53) as usize
}
