//! A node of a tree as its JSON value, as [`crate::value::to_value`] makes it, but with borrowed strings. Code that
//! only reads the value saves nine tenths of the work.

use serde_json::{Number, Value};
use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use super::scalar;
use super::tree::{NodeId, NodeKind, Tree};

/// A mapping with more keys has no view: each key is compared with all before it to find duplicates.
const FEW: usize = 32;

/// A JSON value for reading. Its methods have the names of those of `serde_json::Value`. Unlike there, two mappings
/// are equal only if their fields are in the same order.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum View<'t> {
    /// Null.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(Cow<'t, str>),
    /// A list.
    List(Vec<View<'t>>),
    /// A mapping.
    Mapping(ViewFields<'t>),
}

/// The fields of a mapping, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewFields<'t> {
    /// The bits of all keys. Most lookups are for keys that a mapping does not have, which the bits show.
    key_bits: u64,
    fields: Vec<(Cow<'t, str>, View<'t>)>,
}

impl<'t> ViewFields<'t> {
    #[inline]
    fn get(&self, key: &str) -> Option<&View<'t>> {
        if self.key_bits & key_bit(key) == 0 {
            return None;
        }
        self.find(key)
    }

    fn find(&self, key: &str) -> Option<&View<'t>> {
        let mut fields = self.fields.iter();
        fields.find_map(|(name, value)| (name == key).then_some(value))
    }
}

impl<'t> FromIterator<(Cow<'t, str>, View<'t>)> for ViewFields<'t> {
    fn from_iter<I: IntoIterator<Item = (Cow<'t, str>, View<'t>)>>(fields: I) -> Self {
        let fields: Vec<_> = fields.into_iter().collect();
        let key_bits = fields.iter().fold(0, |bits, (key, _)| bits | key_bit(key));
        ViewFields { key_bits, fields }
    }
}

/// One of 64 bits for a key, which other keys may share.
#[inline]
fn key_bit(key: &str) -> u64 {
    let (first, last) = (key.as_bytes().first(), key.as_bytes().last());
    let ends =
        first.map_or(0, |&byte| usize::from(byte)) + 5 * last.map_or(0, |&byte| usize::from(byte));
    1 << ((ends + 3 * key.len()) % 64)
}

impl<'t> View<'t> {
    /// Returns the value of a node. `None` if the node contains anything that this fast path leaves to
    /// [`crate::value::to_value`]: aliases, tags, merge keys, duplicate keys, keys that are not strings, or mappings
    /// with more than 32 keys.
    pub fn read(tree: &'t Tree<'_>, node: NodeId) -> Option<Self> {
        Self::read_node(tree, node)
    }

    /// [`View::read`] in the loops over collections, where most nodes are scalars.
    #[inline(always)]
    fn read_node(tree: &'t Tree<'_>, node: NodeId) -> Option<Self> {
        let kind = tree.kind(node);
        if kind == NodeKind::Alias || tree.tag(node).is_some() {
            return None;
        }
        if kind.is_collection() {
            return Self::read_collection(tree, node, kind);
        }
        let text = tree.scalar(node)?;
        let is_plain = matches!(kind, NodeKind::Plain | NodeKind::Absent);
        if is_plain && scalar::may_be_typed(text) {
            return Some(scalar::resolve_typed(text).map_or(View::borrowed(text), View::from));
        }
        Some(View::borrowed(text))
    }

    fn read_collection(tree: &'t Tree<'_>, node: NodeId, kind: NodeKind) -> Option<Self> {
        if kind.is_mapping() {
            return Self::read_mapping(tree, node);
        }
        let mut list = Vec::with_capacity(tree.children(node).count());
        for item in tree.children(node) {
            list.push(Self::read_node(tree, item)?);
        }
        Some(View::List(list))
    }

    fn read_mapping(tree: &'t Tree<'_>, node: NodeId) -> Option<Self> {
        let count = tree.entries(node).count();
        if count > FEW {
            return None;
        }
        let mut fields = ViewFields {
            key_bits: 0,
            fields: Vec::with_capacity(count),
        };
        for (key, value) in tree.entries(node) {
            let text = tree.scalar(key)?;
            let is_text = match tree.kind(key) {
                NodeKind::Alias | NodeKind::Absent => false,
                NodeKind::Plain => text != "<<" && !scalar::is_typed(text),
                _ => true,
            };
            let bit = key_bit(text);
            let is_new = fields.key_bits & bit == 0 || fields.find(text).is_none();
            if !is_text || !is_new || tree.tag(key).is_some() {
                return None;
            }
            let value = Self::read_node(tree, value)?;
            fields.key_bits |= bit;
            fields.fields.push((Cow::Borrowed(text), value));
        }
        Some(View::Mapping(fields))
    }

    fn borrowed(text: &'t str) -> Self {
        View::Text(Cow::Borrowed(text))
    }

    /// Returns the value of a key. `None` if this is no mapping or has no such key.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            View::Mapping(fields) => fields.get(key),
            _ => None,
        }
    }

    /// The string, if it is one.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            View::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            View::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if it is one.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            View::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    /// The items, if it is a list.
    #[inline]
    pub fn as_array(&self) -> Option<&Vec<Self>> {
        match self {
            View::List(items) => Some(items),
            _ => None,
        }
    }

    /// The fields, if it is a mapping.
    #[inline]
    pub fn as_object(&self) -> Option<&Vec<(Cow<'t, str>, Self)>> {
        match self {
            View::Mapping(fields) => Some(&fields.fields),
            _ => None,
        }
    }

    /// The string at a key; empty if there is none.
    #[inline]
    pub fn text(&self, key: &str) -> &str {
        self[key].as_str().unwrap_or_default()
    }

    /// The items of the list at a key; none if there is no list.
    #[inline]
    pub fn list(&self, key: &str) -> &[Self] {
        self[key].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, View::Null)
    }

    /// Whether it is a string.
    #[inline]
    pub fn is_string(&self) -> bool {
        matches!(self, View::Text(_))
    }
}

/// The value of a key, or null if there is none.
impl Index<&str> for View<'_> {
    type Output = Self;

    #[inline]
    fn index(&self, key: &str) -> &Self {
        self.get(key).unwrap_or(&View::Null)
    }
}

impl PartialEq<str> for View<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for View<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<bool> for View<'_> {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

impl From<Value> for View<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => View::Null,
            Value::Bool(value) => View::Bool(value),
            Value::Number(number) => View::Number(number),
            Value::String(text) => View::Text(Cow::Owned(text)),
            Value::Array(items) => View::List(items.into_iter().map(View::from).collect()),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(key, value)| (Cow::Owned(key), View::from(value)));
                View::Mapping(fields.collect())
            }
        }
    }
}

impl<'v> From<&'v Value> for View<'v> {
    fn from(value: &'v Value) -> Self {
        match value {
            Value::Null => View::Null,
            Value::Bool(value) => View::Bool(*value),
            Value::Number(number) => View::Number(number.clone()),
            Value::String(text) => View::Text(Cow::Borrowed(text)),
            Value::Array(items) => View::List(items.iter().map(View::from).collect()),
            Value::Object(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(key, value)| (Cow::Borrowed(&**key), View::from(value)));
                View::Mapping(fields.collect())
            }
        }
    }
}

impl From<&View<'_>> for Value {
    fn from(view: &View<'_>) -> Self {
        match view {
            View::Null => Value::Null,
            View::Bool(value) => Value::Bool(*value),
            View::Number(number) => Value::Number(number.clone()),
            View::Text(text) => Value::String(text.to_string()),
            View::List(items) => items.iter().map(Value::from).collect(),
            View::Mapping(fields) => {
                let fields = fields.fields.iter();
                fields
                    .map(|(key, value)| (key.to_string(), Value::from(value)))
                    .collect()
            }
        }
    }
}

/// Writes the value as compact JSON.
impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::from(self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::value::to_value;

    fn view(text: &str) -> Option<Value> {
        let tree = parse(text).unwrap();
        View::read(&tree, tree.roots()[0]).map(|view| Value::from(&view))
    }

    #[test]
    fn a_view_is_the_value() {
        let text = "a: 1\nb: '1'\nc: yes\nd:\n\"e\": |\n  x\nf: [~, 1.5, {g: \"\\t\", 'h': 0444}]\ni: {}\n";
        let tree = parse(text).unwrap();
        let wanted = to_value(&tree, tree.roots()[0]).unwrap();
        assert_eq!(view(text), Some(wanted.clone()));
        assert_eq!(Value::from(&View::from(&wanted)), wanted);
        assert_eq!(View::from(&wanted), View::from(wanted.clone()));
        assert_eq!(View::from(&wanted).to_string(), wanted.to_string());
    }

    #[test]
    fn what_takes_a_closer_look_has_no_view() {
        for text in [
            "a: &a x\nb: *a\n",
            "a: !!str 1\n",
            "a: 1\n'a': 2\n",
            "a: {b: {on: 1}}\n",
            "8080: 1\n",
            "<<: {a: 1}\n",
            ": 1\n",
        ] {
            assert_eq!(view(text), None, "{text}");
        }
    }
}
