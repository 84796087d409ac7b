//! An object as it will be: nodes of the parsed input, mixed with planned values.
//!
//! A draft begins as its root node. To change a mapping or a list, it is opened: its entries are copied, but not what
//! they hold, so the draft grows with the plan and not with the document. All later stages use it: the next policy
//! plans on it, `edit` writes it, and `verify` compares the output with it.

pub(super) mod effects;
mod entries;
mod open;
pub(super) mod part;
mod remove;
mod restore;
mod text_index;
mod texts;

use serde_json::{Map, Value};
use std::sync::Arc;

use crate::record::is_empty;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{key_text, to_value};
use crate::yaml::view::View;

use text_index::TextIndexes;

/// A value of the draft.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftValue {
    /// A node of the input, unchanged.
    Node(NodeId),
    /// An opened mapping or list.
    Open(OpenId),
    /// A new value.
    New(Arc<Value>),
    /// A new value in place of a node of the input. A scalar keeps its style if the new text allows it.
    Instead {
        /// The replaced node.
        of: NodeId,
        /// The new value.
        value: Arc<Value>,
    },
}

/// The index of an opened mapping or list in its draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenId(usize);

/// The current content of an opened mapping or list.
#[derive(Debug, Clone)]
pub enum OpenedCollection {
    /// A mapping.
    Mapping {
        /// The node of the input, or the one that it replaces; may be null. `None` if it is new.
        origin: Option<NodeId>,
        /// Its fields in order.
        fields: Vec<DraftField>,
    },
    /// A list.
    List {
        /// The node of the input, or the one that it replaces; may be null. `None` if it is new.
        origin: Option<NodeId>,
        /// Its items in order.
        items: Vec<DraftValue>,
    },
}

impl OpenedCollection {
    fn origin(&self) -> Option<NodeId> {
        match self {
            OpenedCollection::Mapping { origin, .. } | OpenedCollection::List { origin, .. } => {
                *origin
            }
        }
    }

    /// The number of its fields or items.
    pub(super) fn len(&self) -> usize {
        match self {
            OpenedCollection::Mapping { fields, .. } => fields.len(),
            OpenedCollection::List { items, .. } => items.len(),
        }
    }
}

/// A field of an opened mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftField {
    /// Its key.
    pub key: DraftKey,
    /// Its value.
    pub value: DraftValue,
}

/// A key of an opened mapping.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftKey {
    /// As written in the input.
    Node(NodeId),
    /// A new key.
    New(Arc<str>),
}

/// A node that cannot be edited, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The node.
    pub node: NodeId,
    /// The reason.
    pub reason: RefusalReason,
}

/// The reasons of a [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The value comes from elsewhere, by an alias or a merge key.
    IsShown,
    /// An alias elsewhere refers to the node, so an edit would change both places.
    IsShared,
    /// The node is not a mapping.
    NoMapping,
    /// The node is not a list.
    NoList,
    /// The mapping has a key twice.
    DuplicateKey,
    /// The node has a tag of another type.
    Tagged,
}

/// An object as it will be; see the documentation of the module.
#[derive(Debug, Clone)]
pub struct Draft<'t> {
    /// The parsed input.
    pub tree: &'t Tree<'t>,
    opened: Vec<OpenedCollection>,
    /// Nulls of the input that were replaced by a value which was opened later. Such a null is gone, even if the opened
    /// collection is empty.
    replaced_nulls: Vec<NodeId>,
    /// Whether something was removed, set back to the input's value, or replaced by a collection. Only then can planned
    /// values be equal to the input's again.
    has_removals: bool,
    root: DraftValue,
    indexes: TextIndexes,
}

impl<'t> Draft<'t> {
    /// Returns the draft of an object without changes.
    pub fn new(tree: &'t Tree<'t>, root: NodeId) -> Self {
        Draft {
            tree,
            opened: Vec::new(),
            replaced_nulls: Vec::new(),
            has_removals: false,
            root: DraftValue::Node(root),
            indexes: TextIndexes::default(),
        }
    }

    /// The root of the draft, which is the whole object.
    pub fn root(&self) -> DraftValue {
        self.root.clone()
    }

    /// Whether anything was opened. Collections are opened only to be changed.
    pub fn is_changed(&self) -> bool {
        !self.opened.is_empty()
    }

    /// The current content of an opened collection.
    pub fn opened(&self, id: OpenId) -> &OpenedCollection {
        &self.opened[id.0]
    }

    /// Whether a null of the input was opened and nothing was put into it, so that it stays null.
    pub(crate) fn stays_null(&self, id: OpenId) -> bool {
        let opened = self.opened(id);
        let is_null = |node| self.tree.is_null(node) && !self.replaced_nulls.contains(&node);
        opened.len() == 0 && opened.origin().is_some_and(is_null)
    }

    /// The value at a path of keys.
    pub(crate) fn get_in(&self, part: &DraftValue, path: &[&str]) -> Option<DraftValue> {
        let mut keys = path.iter();
        keys.try_fold(part.clone(), |part, key| self.get(&part, key))
    }

    /// The pod template, to which the path leads. Missing keys of the path are passed over.
    pub(crate) fn template(&self, path: &[String]) -> DraftValue {
        path.iter().fold(self.root(), |part, key| {
            self.get(&part, key).unwrap_or(part)
        })
    }

    /// The value under a key. Aliases and merge keys of the input are followed.
    pub fn get(&self, part: &DraftValue, key: &str) -> Option<DraftValue> {
        match part {
            DraftValue::Node(node) => self.tree.get(*node, key).map(DraftValue::Node),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                member(value, key).map(|value| DraftValue::New(Arc::new(value.clone())))
            }
            DraftValue::Open(id) => match self.opened(*id) {
                OpenedCollection::Mapping { origin, fields } => match self.position_of(fields, key)
                {
                    Some(at) => Some(self.resolve_alias(&fields[at].value)),
                    None => self.merged(*origin, fields, key),
                },
                OpenedCollection::List { .. } => None,
            },
        }
    }

    fn merged(
        &self,
        origin: Option<NodeId>,
        fields: &[DraftField],
        key: &str,
    ) -> Option<DraftValue> {
        let origin = origin.filter(|_| self.has_merge_key(fields))?;
        let entry = self.tree.entry(origin, key)?;
        entry
            .is_merged
            .then(|| DraftValue::Node(self.tree.follow(entry.value)))
    }

    fn is_merge(&self, field: &DraftField) -> bool {
        matches!(field.key, DraftKey::Node(node) if self.tree.is_merge_key(node))
    }

    fn has_merge_key(&self, fields: &[DraftField]) -> bool {
        fields.iter().any(|field| self.is_merge(field))
    }

    fn resolve_alias(&self, part: &DraftValue) -> DraftValue {
        match part {
            DraftValue::Node(node) => DraftValue::Node(self.tree.follow(*node)),
            other => other.clone(),
        }
    }

    fn position_of(&self, fields: &[DraftField], key: &str) -> Option<usize> {
        fields.iter().position(|field| match &field.key {
            DraftKey::Node(node) => self.tree.is_text(*node, key),
            // Injected keys often begin alike, so they are compared from their ends.
            DraftKey::New(text) => {
                text.len() == key.len() && text.bytes().rev().eq(key.bytes().rev())
            }
        })
    }

    /// The key as [`Draft::value`] has it: the key of `y: 1` is "true", since `y` is a YAML 1.1 boolean.
    pub(crate) fn key_in_value(&self, key: &DraftKey) -> Option<String> {
        match key {
            DraftKey::Node(node) => key_text(self.tree, *node),
            DraftKey::New(text) => Some(text.to_string()),
        }
    }

    /// Whether the value is a list.
    pub fn is_list(&self, part: &DraftValue) -> bool {
        match part {
            DraftValue::Node(node) => self.tree.kind(self.tree.follow(*node)).is_sequence(),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => value.is_array(),
            DraftValue::Open(id) => matches!(self.opened(*id), OpenedCollection::List { .. }),
        }
    }

    /// Whether the value is a mapping.
    pub(crate) fn is_mapping(&self, part: &DraftValue) -> bool {
        match part {
            DraftValue::Node(node) => self.tree.kind(self.tree.follow(*node)).is_mapping(),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => value.is_object(),
            DraftValue::Open(id) => matches!(self.opened(*id), OpenedCollection::Mapping { .. }),
        }
    }

    /// Whether the value is null.
    pub fn is_null(&self, part: &DraftValue) -> bool {
        match part {
            DraftValue::Node(node) => self.tree.is_null(self.tree.follow(*node)),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => value.is_null(),
            DraftValue::Open(id) => self.stays_null(*id),
        }
    }

    /// Whether the value is a string, a number or a boolean; null is none of them.
    pub(crate) fn is_scalar(&self, part: &DraftValue) -> bool {
        match part {
            DraftValue::Node(node) => {
                let node = self.tree.follow(*node);
                !self.tree.kind(node).is_collection() && !self.tree.is_null(node)
            }
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                !matches!(**value, Value::Null | Value::Array(_) | Value::Object(_))
            }
            DraftValue::Open(_) => false,
        }
    }

    /// The items of an opened list; aliases are not followed.
    pub(crate) fn raw_items(&self, list: OpenId) -> &[DraftValue] {
        match self.opened(list) {
            OpenedCollection::List { items, .. } => items,
            OpenedCollection::Mapping { .. } => &[],
        }
    }

    /// The number of items of a list; 0 for anything else.
    pub fn count(&self, list: &DraftValue) -> usize {
        match list {
            DraftValue::Node(node) => self.tree.items(*node).count(),
            DraftValue::Open(id) => self.raw_items(*id).len(),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                value.as_array().map_or(0, Vec::len)
            }
        }
    }

    /// Whether the value is null or an empty collection.
    pub fn is_empty(&self, part: &DraftValue) -> bool {
        match part {
            DraftValue::Node(node) => {
                self.tree.is_null(*node)
                    || (self.tree.kind(*node).is_collection()
                        && self.tree.children(*node).next().is_none())
            }
            DraftValue::New(value) | DraftValue::Instead { value, .. } => is_empty(value),
            DraftValue::Open(id) => self.opened(*id).len() == 0,
        }
    }

    /// The value of a part, as JSON. `None` if it has no value that all readers agree on, as with duplicate keys.
    pub fn value(&self, part: &DraftValue) -> Option<Value> {
        match part {
            DraftValue::Node(node) => to_value(self.tree, *node).ok(),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => Some((**value).clone()),
            DraftValue::Open(id) => match self.opened(*id) {
                OpenedCollection::List { items, .. } => {
                    let values = items.iter().map(|item| self.value(item));
                    values.collect::<Option<_>>().map(Value::Array)
                }
                OpenedCollection::Mapping { fields, origin } => {
                    self.value_of_fields(fields, *origin)
                }
            },
        }
    }

    fn value_of_fields(&self, fields: &[DraftField], origin: Option<NodeId>) -> Option<Value> {
        let explicit = fields.iter().filter(|field| !self.is_merge(field));
        let count = explicit.clone().count();
        let mut map = Map::with_capacity(count);
        for field in explicit {
            map.insert(self.key_in_value(&field.key)?, self.value(&field.value)?);
        }
        if map.len() < count {
            return None; // two keys that are one to JSON
        }
        // A field of its own overrides what a merge key brings.
        if let Some(origin) = origin.filter(|_| self.has_merge_key(fields)) {
            let Value::Object(with_merged) = to_value(self.tree, origin).ok()? else {
                return None;
            };
            for (key, value) in with_merged {
                let entry = self.tree.entry(origin, &key);
                if entry.is_some_and(|entry| entry.is_merged) {
                    map.entry(key).or_insert(value);
                }
            }
        }
        Some(Value::Object(map))
    }

    /// Like [`Draft::value`], but borrows from the input if possible.
    pub fn view(&self, part: &DraftValue) -> Option<View<'t>> {
        let borrowed = match part {
            DraftValue::Node(node) => View::read(self.tree, *node),
            DraftValue::Open(_) | DraftValue::New(_) | DraftValue::Instead { .. } => None,
        };
        borrowed.or_else(|| self.value(part).map(View::from))
    }

    /// Like [`Draft::value`], but shares a new value instead of copying it.
    pub(crate) fn shared_value(&self, part: &DraftValue) -> Option<Arc<Value>> {
        match part {
            DraftValue::New(value) | DraftValue::Instead { value, .. } => Some(Arc::clone(value)),
            DraftValue::Node(_) | DraftValue::Open(_) => self.value(part).map(Arc::new),
        }
    }

    /// The node of the input that the part is or replaces.
    pub fn origin(&self, part: &DraftValue) -> Option<NodeId> {
        match part {
            DraftValue::Node(node) | DraftValue::Instead { of: node, .. } => Some(*node),
            DraftValue::New(_) => None,
            DraftValue::Open(id) => self.opened(*id).origin(),
        }
    }
}

/// The value under a key. In a small mapping, comparing all keys is much faster than hashing one.
fn member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    let map = value.as_object()?;
    if map.len() > 8 {
        return map.get(key);
    }
    let mut pairs = map.iter();
    pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
}
