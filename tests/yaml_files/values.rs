//! A tree's values against those of `yaml_serde`, which reads with a port of libyaml.

use std::collections::BTreeSet;

use podgraft_core::yaml::tree::{NodeId, NodeKind, Tree};
use serde::Deserialize;
use serde_yaml::{Mapping, Value};

#[derive(Debug, Default)]
pub struct Counts {
    pub equal: usize,
    /// Refused by the other parser, or tagged with something that is not in the core schema.
    pub not_compared: usize,
}

pub fn compare(name: &str, tree: &Tree<'_>, counts: &mut Counts) {
    // The other parser numbers anchors by their distinct names, so behind a name that stands twice it takes one for
    // another.
    let mut anchors = BTreeSet::new();
    if !tree
        .ids()
        .filter_map(|id| tree.anchor(id))
        .all(|anchor| anchors.insert(anchor))
    {
        counts.not_compared += 1;
        return;
    }
    // A last line without a line end gets one before YAML is parsed, as in kubectl's reader of documents.
    let text = match tree.text() {
        text if text.ends_with(['\n', '\r']) => text.to_owned(),
        text => format!("{text}\n"),
    };
    let documents = serde_yaml::Deserializer::from_str(&text).map(Value::deserialize);
    let Ok(theirs) = documents.collect::<Result<Vec<Value>, _>>() else {
        counts.not_compared += 1;
        return;
    };
    let Some(ours) = tree
        .roots()
        .iter()
        .map(|&root| value(tree, root))
        .collect::<Option<Vec<Value>>>()
    else {
        counts.not_compared += 1;
        return;
    };
    // An empty document has no root, there it is null.
    let written = |values: Vec<Value>| {
        values
            .into_iter()
            .filter(|value| !value.is_null())
            .collect::<Vec<_>>()
    };
    assert_eq!(written(ours), written(theirs), "{name}");
    counts.equal += 1;
}

fn value(tree: &Tree<'_>, id: NodeId) -> Option<Value> {
    let id = tree.follow(id);
    let tag = match tree.tag(id) {
        Some(tag) => Some(
            tag.strip_prefix("tag:yaml.org,2002:")
                .filter(|tag| ["str", "map", "seq"].contains(tag))?,
        ),
        None => None,
    };
    Some(match tree.kind(id) {
        NodeKind::BlockMapping | NodeKind::FlowMapping => {
            let mut mapping = Mapping::new();
            for (key, entry) in tree.entries(id) {
                mapping.insert(value(tree, key)?, value(tree, entry)?);
            }
            Value::Mapping(mapping)
        }
        NodeKind::BlockSequence | NodeKind::FlowSequence => Value::Sequence(
            tree.children(id)
                .map(|item| value(tree, item))
                .collect::<Option<_>>()?,
        ),
        NodeKind::Plain if tag.is_none() => resolve(tree.scalar(id)?),
        NodeKind::Absent if tag.is_none() => Value::Null,
        _ => Value::String(tree.scalar(id)?.to_owned()),
    })
}

/// The other parser's own opinion about a word.
fn resolve(text: &str) -> Value {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
    let is_word =
        text.bytes().all(is_part) && text.bytes().any(|byte| byte.is_ascii_alphanumeric());
    if is_word || text == "~" {
        serde_yaml::from_str(text).unwrap()
    } else {
        Value::String(text.to_owned())
    }
}
