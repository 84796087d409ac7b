//! The document as it will be: the nodes of the one parse, with planned values among them.
//!
//! A draft begins as its root node. Opening a mapping or a list copies only its entries, not what they hold, so the
//! draft grows with the plan and not with the document. Every later stage works from it: the next policy plans on it,
//! the edit stage writes it, verification compares the output with it.

mod difference;
mod open;
mod settle;

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{key_text, to_value};
use crate::yaml::view::View;

/// A part of the draft.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// As it is in the input.
    Node(NodeId),
    /// An opened mapping or list.
    Open(OpenId),
    /// A new value.
    New(Arc<Value>),
    /// A new value in the place of an input's node: a scalar keeps its style where it can.
    Instead {
        /// What stood there.
        of: NodeId,
        /// What stands there now.
        value: Arc<Value>,
    },
}

/// An opened mapping or list of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenId(usize);

/// What an opened mapping or list holds now.
#[derive(Debug, Clone)]
pub enum Opened {
    /// A mapping.
    Mapping {
        /// The input's node: a mapping, or null. `None` for a new one.
        origin: Option<NodeId>,
        /// Its fields in order.
        fields: Vec<Field>,
    },
    /// A list.
    List {
        /// The input's node: a sequence, or null. `None` for a new one.
        origin: Option<NodeId>,
        /// Its items in order.
        items: Vec<Part>,
    },
}

/// A field of an opened mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Part,
}

/// A key of an opened mapping.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// As written in the input.
    Node(NodeId),
    /// A new one.
    New(Arc<str>),
}

/// Why a place cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub node: NodeId,
    /// Why.
    pub why: WhyNot,
}

/// The kinds of [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// It stands elsewhere and is shown here by an alias or a merge key.
    IsShown,
    /// An alias shows it elsewhere, too.
    IsShared,
    /// It is no mapping.
    NoMapping,
    /// It is no list.
    NoList,
    /// A key of it stands there twice.
    DuplicateKey,
    /// Its tag says that it is something else.
    Tagged,
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Draft<'t> {
    /// The input.
    pub tree: &'t Tree<'t>,
    opened: Vec<Opened>,
    /// Nulls of the input that another value took the place of, before that was opened.
    replaced_nulls: Vec<NodeId>,
    /// Something of the input was taken out, was put back, or has another collection in its place.
    has_removals: bool,
    root: Part,
}

impl<'t> Draft<'t> {
    /// The input's object, nothing changed.
    pub fn new(tree: &'t Tree<'t>, root: NodeId) -> Self {
        Draft {
            tree,
            opened: Vec::new(),
            replaced_nulls: Vec::new(),
            has_removals: false,
            root: Part::Node(root),
        }
    }

    /// The object.
    pub fn root(&self) -> Part {
        self.root.clone()
    }

    /// Whether anything was opened, which is done only to change it.
    pub fn is_changed(&self) -> bool {
        !self.opened.is_empty()
    }

    /// What an opened part holds.
    pub fn opened(&self, id: OpenId) -> &Opened {
        &self.opened[id.0]
    }

    /// Whether a null was opened to put something into it, and nothing came of it.
    pub fn stays_null(&self, id: OpenId) -> bool {
        let (origin, is_empty) = match self.opened(id) {
            Opened::Mapping { origin, fields } => (*origin, fields.is_empty()),
            Opened::List { origin, items } => (*origin, items.is_empty()),
        };
        is_empty
            && origin
                .is_some_and(|node| self.tree.is_null(node) && !self.replaced_nulls.contains(&node))
    }

    /// What stands at the end of a path of keys.
    pub fn get_in(&self, part: &Part, path: &[&str]) -> Option<Part> {
        let mut keys = path.iter();
        keys.try_fold(part.clone(), |part, key| self.get(&part, key))
    }

    /// The value under a key; aliases and merge keys are followed in what is the input's.
    pub fn get(&self, part: &Part, key: &str) -> Option<Part> {
        match part {
            Part::Node(node) => self.tree.get(*node, key).map(Part::Node),
            Part::New(value) | Part::Instead { value, .. } => {
                member(value, key).map(|value| Part::New(Arc::new(value.clone())))
            }
            Part::Open(id) => match self.opened(*id) {
                Opened::Mapping { origin, fields } => match self.position_of(fields, key) {
                    Some(at) => Some(self.followed(&fields[at].value)),
                    None => self.merged(*origin, fields, key),
                },
                Opened::List { .. } => None,
            },
        }
    }

    fn merged(&self, origin: Option<NodeId>, fields: &[Field], key: &str) -> Option<Part> {
        let origin = origin.filter(|_| self.has_merge_key(fields))?;
        let entry = self.tree.entry(origin, key)?;
        entry
            .is_merged
            .then(|| Part::Node(self.tree.follow(entry.value)))
    }

    fn is_merge(&self, field: &Field) -> bool {
        matches!(field.key, Key::Node(node) if self.tree.is_merge_key(node))
    }

    fn has_merge_key(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.is_merge(field))
    }

    /// The fields of a mapping of the input.
    fn fields_in(&self, mapping: NodeId) -> impl Iterator<Item = Field> + Clone {
        let entries = self.tree.entries(mapping);
        entries.map(|(key, value)| Field {
            key: Key::Node(key),
            value: Part::Node(value),
        })
    }

    fn followed(&self, part: &Part) -> Part {
        match part {
            Part::Node(node) => Part::Node(self.tree.follow(*node)),
            other => other.clone(),
        }
    }

    fn position_of(&self, fields: &[Field], key: &str) -> Option<usize> {
        fields.iter().position(|field| match &field.key {
            Key::Node(node) => self.tree.is_text(*node, key),
            Key::New(text) => **text == *key,
        })
    }

    /// A key as the value has it: that of `y: 1` is "true".
    pub fn key_in_value(&self, key: &Key) -> Option<String> {
        match key {
            Key::Node(node) => key_text(self.tree, *node),
            Key::New(text) => Some(text.to_string()),
        }
    }

    /// The items of a list; empty for anything else.
    pub fn items(&self, part: &Part) -> Vec<Part> {
        match part {
            Part::Node(node) => self.tree.items(*node).map(Part::Node).collect(),
            Part::Open(id) => match self.opened(*id) {
                Opened::List { items, .. } => {
                    items.iter().map(|item| self.followed(item)).collect()
                }
                Opened::Mapping { .. } => Vec::new(),
            },
            Part::New(value) | Part::Instead { value, .. } => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                items
                    .iter()
                    .map(|item| Part::New(Arc::new(item.clone())))
                    .collect()
            }
        }
    }

    /// Whether a list stands there.
    pub fn is_list(&self, part: &Part) -> bool {
        match part {
            Part::Node(node) => self.tree.kind(self.tree.follow(*node)).is_sequence(),
            Part::New(value) | Part::Instead { value, .. } => value.is_array(),
            Part::Open(id) => matches!(self.opened(*id), Opened::List { .. }),
        }
    }

    /// Whether something stands there that holds nothing: a text, a number, a boolean.
    pub fn is_scalar(&self, part: &Part) -> bool {
        match part {
            Part::Node(node) => {
                let node = self.tree.follow(*node);
                !self.tree.kind(node).is_collection() && !self.tree.is_null(node)
            }
            Part::New(value) | Part::Instead { value, .. } => {
                !matches!(**value, Value::Null | Value::Array(_) | Value::Object(_))
            }
            Part::Open(_) => false,
        }
    }

    /// The items of an opened list as they stand there: aliases are not followed.
    pub fn raw_items(&self, list: OpenId) -> &[Part] {
        match self.opened(list) {
            Opened::List { items, .. } => items,
            Opened::Mapping { .. } => &[],
        }
    }

    /// How many items a list has; none for anything else.
    pub fn count(&self, list: &Part) -> usize {
        match list {
            Part::Node(node) => self.tree.items(*node).count(),
            Part::Open(id) => self.raw_items(*id).len(),
            Part::New(value) | Part::Instead { value, .. } => value.as_array().map_or(0, Vec::len),
        }
    }

    /// The places of a list's items that have this text under a key.
    pub fn positions_by(&self, list: &Part, key: &str, text: &str) -> Vec<usize> {
        match list {
            Part::Node(node) => places(self.tree.items(*node), |item| {
                self.is_text_at(&Part::Node(*item), key, text)
            }),
            Part::Open(id) => places(self.raw_items(*id).iter(), |item| {
                self.is_text_at(item, key, text)
            }),
            Part::New(value) | Part::Instead { value, .. } => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                places(items.iter(), |item| is_text_in(item, key, text))
            }
        }
    }

    /// An item of a list, an alias followed.
    pub fn item(&self, list: &Part, at: usize) -> Option<Part> {
        match list {
            Part::Node(node) => self.tree.items(*node).nth(at).map(Part::Node),
            Part::Open(id) => self.raw_items(*id).get(at).map(|item| self.followed(item)),
            Part::New(value) | Part::Instead { value, .. } => value
                .as_array()?
                .get(at)
                .map(|item| Part::New(Arc::new(item.clone()))),
        }
    }

    /// Whether this text stands under a key.
    pub fn is_text_at(&self, part: &Part, key: &str, text: &str) -> bool {
        match part {
            Part::Node(node) => {
                let value = self.tree.get(*node, key);
                value.is_some_and(|value| {
                    self.tree.is_text(value, text) && !self.tree.is_null(value)
                })
            }
            Part::New(value) | Part::Instead { value, .. } => is_text_in(value, key, text),
            Part::Open(_) => self.text_at(part, key).as_deref() == Some(text),
        }
    }

    /// The text of a scalar; `None` for collections and null.
    pub fn text(&self, part: &Part) -> Option<Cow<'t, str>> {
        match part {
            Part::Node(node) if self.tree.is_null(*node) => None,
            Part::Node(node) => self.tree.scalar(*node).map(Cow::Borrowed),
            Part::New(value) | Part::Instead { value, .. } => text_of_value(value),
            Part::Open(_) => None,
        }
    }

    /// The text under a key.
    pub fn text_at(&self, part: &Part, key: &str) -> Option<Cow<'t, str>> {
        match part {
            Part::New(value) | Part::Instead { value, .. } => text_of_value(member(value, key)?),
            Part::Node(_) | Part::Open(_) => self.text(&self.get(part, key)?),
        }
    }

    /// Whether nothing is there: null, or an empty collection.
    pub fn is_empty(&self, part: &Part) -> bool {
        match part {
            Part::Node(node) => {
                self.tree.is_null(*node)
                    || (self.tree.kind(*node).is_collection()
                        && self.tree.children(*node).next().is_none())
            }
            Part::New(value) | Part::Instead { value, .. } => match &**value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            },
            Part::Open(id) => match self.opened(*id) {
                Opened::Mapping { fields, .. } => fields.is_empty(),
                Opened::List { items, .. } => items.is_empty(),
            },
        }
    }

    /// The value of a part; `None` where a reader of Kubernetes would find none.
    pub fn value(&self, part: &Part) -> Option<Value> {
        match part {
            Part::Node(node) => to_value(self.tree, *node).ok(),
            Part::New(value) | Part::Instead { value, .. } => Some((**value).clone()),
            Part::Open(id) => match self.opened(*id) {
                Opened::List { items, .. } => items
                    .iter()
                    .map(|item| self.value(item))
                    .collect::<Option<_>>()
                    .map(Value::Array),
                Opened::Mapping { fields, origin } => {
                    let own = fields.iter().filter(|field| !self.is_merge(field));
                    let count = own.clone().count();
                    let mut map = Map::with_capacity(count);
                    for field in own {
                        map.insert(self.key_in_value(&field.key)?, self.value(&field.value)?);
                    }
                    if map.len() < count {
                        return None; // two keys that are one to JSON
                    }
                    if let Some(origin) = origin.filter(|_| self.has_merge_key(fields)) {
                        let Value::Object(all) = to_value(self.tree, origin).ok()? else {
                            return None;
                        };
                        let merged = all.into_iter().filter(|(key, _)| {
                            self.tree
                                .entry(origin, key)
                                .is_some_and(|entry| entry.is_merged)
                        });
                        merged.for_each(|(key, value)| {
                            map.entry(key).or_insert(value);
                        });
                    }
                    Some(Value::Object(map))
                }
            },
        }
    }

    /// [`Draft::value`], borrowed where it can be.
    pub fn view(&self, part: &Part) -> Option<View<'t>> {
        let borrowed = match part {
            Part::Node(node) => View::read(self.tree, *node),
            Part::Open(_) | Part::New(_) | Part::Instead { .. } => None,
        };
        borrowed.or_else(|| self.value(part).map(View::from))
    }

    /// [`Draft::value`], not copied where it is new.
    pub fn shared_value(&self, part: &Part) -> Option<Arc<Value>> {
        match part {
            Part::New(value) | Part::Instead { value, .. } => Some(Arc::clone(value)),
            Part::Node(_) | Part::Open(_) => self.value(part).map(Arc::new),
        }
    }

    /// The input's node that stands, or stood, where the part stands.
    pub fn origin(&self, part: &Part) -> Option<NodeId> {
        match part {
            Part::Node(node) | Part::Instead { of: node, .. } => Some(*node),
            Part::New(_) => None,
            Part::Open(id) => match self.opened(*id) {
                Opened::Mapping { origin, .. } | Opened::List { origin, .. } => *origin,
            },
        }
    }
}

fn places<T>(items: impl Iterator<Item = T>, is_meant: impl Fn(&T) -> bool) -> Vec<usize> {
    items
        .enumerate()
        .filter(|(_, item)| is_meant(item))
        .map(|(at, _)| at)
        .collect()
}

/// The value under a key. In a mapping of few keys to look at each takes a fraction of what its hash takes.
fn member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    let map = value.as_object()?;
    if map.len() > 8 {
        return map.get(key);
    }
    let mut pairs = map.iter();
    pairs.find(|(own, _)| *own == key).map(|(_, value)| value)
}

fn is_text_in(value: &Value, key: &str, text: &str) -> bool {
    match member(value, key) {
        Some(Value::String(own)) => own == text,
        other => other.and_then(text_of_value).as_deref() == Some(text),
    }
}

fn text_of_value(value: &Value) -> Option<Cow<'static, str>> {
    match value {
        Value::String(text) => Some(Cow::Owned(text.clone())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(bool) => Some(Cow::Owned(bool.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
