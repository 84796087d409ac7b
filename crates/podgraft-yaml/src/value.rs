//! Converts a node to the JSON value that a reader of Kubernetes manifests gets, with aliases and merge keys (`<<`)
//! resolved, and finds the nodes of a path in that value.

use serde_json::{Map, Number, Value};
use std::ops::Range;

use super::parse::MAX_DEPTH;
pub use super::path::{Path, Step};
use super::scalar;
use super::tree::{NodeId, NodeKind, Tree};

/// The most nodes that the aliases of one document may expand to. Limits "billion laughs" documents.
pub const MAX_EXPANDED: usize = 1_000_000;

/// Up to this many keys, a linear search is faster than hashing the key.
const FEW: usize = 16;

/// Why a node has no value, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// The byte range of the problem.
    pub at: Range<usize>,
    /// What is wrong.
    pub kind: ValueErrorKind,
}

/// The kinds of value errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueErrorKind {
    /// A key occurs twice in one mapping. The range is that of the first one.
    DuplicateKey(String, Range<usize>),
    /// A key that is a mapping, a list or null.
    BadKey,
    /// A tag that Kubernetes manifests do not use, or one that does not fit its value.
    BadTag(String),
    /// A `<<` whose value is neither a mapping nor a list of mappings.
    BadMerge,
    /// An alias inside the node that its anchor names.
    Cyclic,
    /// Aliases expand to more than [`MAX_EXPANDED`] nodes.
    TooLarge,
    /// Nested deeper than [`MAX_DEPTH`], aliases followed.
    TooDeep,
}

/// Returns the value of a node, with aliases and merge keys resolved and scalars typed as `kubectl` types them.
pub fn to_value(tree: &Tree<'_>, node: NodeId) -> Result<Value, ValueError> {
    ValueReader {
        tree,
        expanded: 0,
        alias_depth: 0,
    }
    .value(node, 0)
}

/// Whether [`to_value`] succeeds for a node. Builds no value if the nodes alone show it.
pub fn has_value(tree: &Tree<'_>, node: NodeId) -> bool {
    tree.within(node).all(|node| is_usual(tree, node)) || to_value(tree, node).is_ok()
}

fn is_usual(tree: &Tree<'_>, node: NodeId) -> bool {
    match tree.kind(node) {
        _ if tree.tag(node).is_some() => false,
        NodeKind::Alias => false,
        kind if kind.is_mapping() => tree.has_usual_keys(node),
        _ => true,
    }
}

/// The nodes at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocatedNode {
    /// The key's node if the last step is a key.
    pub key: Option<NodeId>,
    /// The value's node; an alias is not followed.
    pub value: NodeId,
}

/// Finds the node of a path, or of its longest prefix that exists. Aliases and merge keys are followed.
pub fn find(tree: &Tree<'_>, root: NodeId, path: &Path) -> LocatedNode {
    let mut found = LocatedNode {
        key: None,
        value: root,
    };
    for step in &path.0 {
        let next = match step {
            Step::Key(key) => tree.entry(found.value, key).map(|entry| LocatedNode {
                key: Some(entry.key),
                value: entry.value,
            }),
            Step::Index(index) => {
                let at = tree.children(tree.follow(found.value)).nth(*index);
                at.map(|value| LocatedNode { key: None, value })
            }
        };
        let Some(next) = next else { return found };
        found = next;
    }
    found
}

/// Whether two values are equal. Fast if their fields are in the same order.
pub fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((key, value), (right_key, right_value))| {
                        let counterpart = if key == right_key {
                            Some(right_value)
                        } else {
                            right.get(key)
                        };
                        counterpart.is_some_and(|counterpart| is_equal(value, counterpart))
                    })
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| is_equal(left, right))
        }
        (left, right) => left == right,
    }
}

/// Like `Value::get` for a key, but faster for mappings with few keys, as manifests have.
pub fn field<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    field_in(value.as_object()?, key)
}

/// Like [`field`], for a path of keys.
pub fn field_at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let mut keys = path.iter();
    keys.try_fold(value, |value, key| field(value, key))
}

/// Like [`field`], for the fields of a mapping.
pub fn field_in<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    if fields.len() > FEW {
        return fields.get(key);
    }
    let mut fields = fields.iter();
    fields.find_map(|(name, value)| (name == key).then_some(value))
}

/// Calls `call` with every leaf and the keys that lead to it. Leaves are empty mappings and all values that are no
/// mappings, so also lists.
pub fn leaves(value: &Value, path: &mut Vec<String>, call: &mut dyn FnMut(&[String], &Value)) {
    let inner: Option<&Map<String, Value>> = value.as_object().filter(|map| !map.is_empty());
    let Some(map) = inner else {
        call(path, value);
        return;
    };
    for (key, value) in map {
        path.push(key.clone());
        leaves(value, path, call);
        path.pop();
    }
}

/// Finds a key in a node that YAML 1.1 reads as a boolean, such as `n` and `on`. The target of an alias is only
/// searched where it is written.
pub fn boolean_key(tree: &Tree<'_>, node: NodeId) -> Option<NodeId> {
    let is_boolean = |key: &NodeId| matches!(scalar_value(tree, *key), Ok(Value::Bool(_)));
    (node.0..tree.after(node).0)
        .map(NodeId)
        .filter(|&node| tree.kind(node).is_mapping())
        .find_map(|mapping| tree.children(mapping).step_by(2).find(is_boolean))
}

/// Returns a key as the JSON key that `kubectl` makes of it: `8080` and `yes` become "8080" and "true". `None` if it
/// cannot be a key.
pub fn key_text(tree: &Tree<'_>, key: NodeId) -> Option<String> {
    text_of_key(scalar_value(tree, tree.follow(key)).ok()?)
}

fn text_of_key(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(scalar::number_as_key(&number)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value of a scalar node by its style and tag.
pub fn scalar_value(tree: &Tree<'_>, node: NodeId) -> Result<Value, ValueErrorKind> {
    // Only a collection has no text, and only keys get here without a check of their kind.
    let Some(text) = tree.scalar(node) else {
        return Err(ValueErrorKind::BadKey);
    };
    let is_plain = matches!(tree.kind(node), NodeKind::Plain | NodeKind::Absent);
    let Some(tag) = tree.tag(node) else {
        return Ok(if is_plain {
            scalar::resolve(text)
        } else {
            Value::String(text.to_owned())
        });
    };
    let short = tag.strip_prefix("tag:yaml.org,2002:").unwrap_or(tag);
    let bad_tag = || ValueErrorKind::BadTag(short.to_owned());
    let resolved = scalar::resolve(text);
    match (short, resolved) {
        ("str" | "!", _) => Ok(Value::String(text.to_owned())),
        ("int", value @ Value::Number(_)) if !value.is_f64() => Ok(value),
        ("float", Value::Number(number)) => number
            .as_f64()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(bad_tag),
        ("bool", value @ Value::Bool(_)) | ("null", value @ Value::Null) => Ok(value),
        _ => Err(bad_tag()),
    }
}

/// Whether the value of a scalar node is a boolean or a number.
pub fn is_boolean_or_number(tree: &Tree<'_>, node: NodeId) -> bool {
    let value = match (tree.kind(node), tree.tag(node)) {
        (NodeKind::Plain, None) => tree.scalar(node).and_then(scalar::resolve_typed),
        (_, None) => None,
        (_, Some(_)) => scalar_value(tree, node).ok(),
    };
    matches!(value, Some(Value::Bool(_) | Value::Number(_)))
}

struct ValueReader<'t, 'a> {
    tree: &'t Tree<'a>,
    /// Nodes converted inside aliases so far.
    expanded: usize,
    /// How many aliases enclose the current node.
    alias_depth: usize,
}

impl ValueReader<'_, '_> {
    fn error<T>(&self, node: NodeId, kind: ValueErrorKind) -> Result<T, ValueError> {
        Err(ValueError {
            at: self.tree.span(node),
            kind,
        })
    }

    fn value(&mut self, node: NodeId, depth: usize) -> Result<Value, ValueError> {
        if depth > MAX_DEPTH {
            return self.error(node, ValueErrorKind::TooDeep);
        }
        let kind = self.tree.kind(node);
        if kind == NodeKind::Alias {
            return self.alias(node, depth);
        }
        if self.alias_depth > 0 {
            self.expanded += 1;
            if self.expanded > MAX_EXPANDED {
                return self.error(node, ValueErrorKind::TooLarge);
            }
        }
        if !kind.is_collection() {
            return scalar_value(self.tree, node).or_else(|kind| self.error(node, kind));
        }
        self.check_collection_tag(node)?;
        if kind.is_mapping() {
            self.mapping(node, depth).map(Value::Object)
        } else {
            self.sequence(node, depth)
        }
    }

    fn check_collection_tag(&self, node: NodeId) -> Result<(), ValueError> {
        let Some(tag) = self.tree.tag(node) else {
            return Ok(());
        };
        let wanted = if self.tree.kind(node).is_mapping() {
            "map"
        } else {
            "seq"
        };
        let short = tag.strip_prefix("tag:yaml.org,2002:").unwrap_or(tag);
        if short == wanted || short == "!" {
            return Ok(());
        }
        self.error(node, ValueErrorKind::BadTag(short.to_owned()))
    }

    fn alias(&mut self, node: NodeId, depth: usize) -> Result<Value, ValueError> {
        let target = self.enter(node)?;
        self.alias_depth += 1;
        let value = self.value(target, depth + 1);
        self.alias_depth -= 1;
        value
    }

    /// Returns the target of an alias, or an error if the alias is inside it.
    fn enter(&self, alias: NodeId) -> Result<NodeId, ValueError> {
        let target = self.tree.follow(alias);
        if target < alias && alias < self.tree.after(target) {
            return self.error(alias, ValueErrorKind::Cyclic);
        }
        Ok(target)
    }

    fn sequence(&mut self, node: NodeId, depth: usize) -> Result<Value, ValueError> {
        let tree = self.tree;
        tree.children(node)
            .map(|entry| self.value(entry, depth + 1))
            .collect()
    }

    fn mapping(&mut self, node: NodeId, depth: usize) -> Result<Map<String, Value>, ValueError> {
        let tree = self.tree;
        if tree.has_merge_key(node) {
            return self.merged_mapping(node, depth);
        }
        let mut map = Map::with_capacity(tree.entries(node).count());
        for (key, value) in tree.entries(node) {
            let name = self.key(key)?;
            let read = self
                .value(value, depth + 1)
                .map(|value| map.insert(name, value));
            // A duplicate key is reported rather than an error in its value.
            if !matches!(read, Ok(None)) {
                self.keys(node)?;
            }
            read?;
        }
        Ok(map)
    }

    /// The explicit keys of a mapping, so without `<<`, or the error that one occurs twice.
    fn keys(&self, mapping: NodeId) -> Result<Vec<(String, NodeId)>, ValueError> {
        let entries = self.tree.entries(mapping);
        let explicit = entries.filter(|&(key, _)| !self.tree.is_merge_key(key));
        let keys: Vec<(String, NodeId)> = explicit
            .map(|(key, _)| Ok((self.key(key)?, key)))
            .collect::<Result<_, _>>()?;
        self.check_duplicates(&keys)?;
        Ok(keys)
    }

    fn merged_mapping(
        &mut self,
        node: NodeId,
        depth: usize,
    ) -> Result<Map<String, Value>, ValueError> {
        let tree = self.tree;
        let keys = self.keys(node)?;
        if let Some(late) = tree.duplicate_key(node) {
            return self.error(
                late,
                ValueErrorKind::DuplicateKey("<<".to_owned(), tree.span(node)),
            );
        }
        let explicit: Vec<String> = keys.iter().map(|(key, _)| key.clone()).collect();
        let mut explicit_keys = keys.into_iter();
        let mut map = Map::new();
        for (key, value) in tree.entries(node) {
            if tree.is_merge_key(key) {
                self.merge(value, &explicit, &mut map, depth)?;
            } else {
                let (name, _) = explicit_keys
                    .next()
                    .expect("every key that is no merge was read above");
                map.insert(name, self.value(value, depth + 1)?);
            }
        }
        Ok(map)
    }

    fn key(&self, key: NodeId) -> Result<String, ValueError> {
        let value = scalar_value(self.tree, self.tree.follow(key));
        let text = value.and_then(|value| text_of_key(value).ok_or(ValueErrorKind::BadKey));
        text.or_else(|kind| self.error(key, kind))
    }

    fn check_duplicates(&self, keys: &[(String, NodeId)]) -> Result<(), ValueError> {
        let mut sorted: Vec<&(String, NodeId)> = keys.iter().collect();
        sorted.sort();
        // The first duplicate in the document is reported, not the first by name.
        let twice = sorted
            .windows(2)
            .filter(|pair| pair[0].0 == pair[1].0)
            .min_by_key(|pair| pair[1].1);
        match twice {
            Some(pair) => self.error(
                pair[1].1,
                ValueErrorKind::DuplicateKey(pair[0].0.clone(), self.tree.span(pair[0].1)),
            ),
            None => Ok(()),
        }
    }

    /// Adds the entries that a `<<` provides. An explicit key of the mapping wins over them, then the earlier source.
    fn merge(
        &mut self,
        value: NodeId,
        explicit: &[String],
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ValueError> {
        let is_alias = self.tree.kind(value) == NodeKind::Alias;
        let target = if is_alias { self.enter(value)? } else { value };
        let sources: Vec<NodeId> = if self.tree.kind(target).is_sequence() {
            self.tree.children(target).collect()
        } else {
            vec![value]
        };
        for source in sources {
            let Value::Object(merged) = self.value(source, depth + 1)? else {
                return self.error(source, ValueErrorKind::BadMerge);
            };
            for (key, value) in merged {
                if !explicit.contains(&key) && !map.contains_key(&key) {
                    map.insert(key, value);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
