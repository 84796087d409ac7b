//! Compares a text with what is left of it when generated objects are taken out, before it is written.

use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::workload::PodKinds;
use crate::source::Place;
use crate::undo::objects_of;
use crate::yaml::parse::parse;
use crate::yaml::stream::{Chunk, chunks};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

/// Whether a text has the values of another one, without the objects that begin at the `gone` offsets of it. Documents
/// of the same bytes are not parsed.
pub(super) fn is_rest_of(
    after: &[u8],
    before: &[u8],
    gone: &BTreeSet<usize>,
    kinds: &PodKinds,
) -> bool {
    let (mut left, mut found) = (chunks(after).peekable(), VecDeque::new());
    for chunk in chunks(before) {
        let mut gone_here = gone.range(chunk.start..chunk.start + chunk.text.len());
        let is_whole = found.is_empty() && gone_here.next().is_none();
        if is_whole && left.next_if(|next| next.text == chunk.text).is_some() {
            continue;
        }
        // Without the document between them, two documents may be one chunk.
        for wanted in contents(&chunk, kinds, |start| gone.contains(&(chunk.start + start))) {
            while found.is_empty()
                && let Some(next) = left.next()
            {
                found.extend(contents(&next, kinds, |_| false));
            }
            if found.pop_front() != Some(wanted) {
                return false;
            }
        }
    }
    found.is_empty() && left.all(|chunk| contents(&chunk, kinds, |_| false).is_empty())
}

/// The objects of a chunk by their values, without those that are gone. What is no object is its own value, and what
/// cannot be parsed is its text.
fn contents(chunk: &Chunk<'_>, kinds: &PodKinds, is_gone: impl Fn(usize) -> bool) -> Vec<Value> {
    let text = String::from_utf8_lossy(chunk.text);
    let Ok(tree) = parse(&text) else {
        return vec![Value::from(text.trim())];
    };
    let objects = objects_of(&tree, kinds);
    let nodes = if objects.is_empty() {
        tree.roots()
    } else {
        &objects
    };
    let left = nodes
        .iter()
        .filter(|&&node| !is_gone(tree.span(node).start));
    let values = left.map(|&node| value_of(&tree, node));
    values.filter(|value| !value.is_null()).collect()
}

/// The value of a node, or its text where readers do not agree on a value.
fn value_of(tree: &Tree<'_>, node: NodeId) -> Value {
    to_value(tree, node).unwrap_or_else(|_| Value::from(tree.slice(node)))
}

/// The error for a text that [`is_rest_of`] does not take.
pub(super) fn pruned_too_much(place: Place) -> Diagnostic {
    let message = "the file without its generated objects differs from the plan";
    let help = "this is a bug in podgraft, and nothing was written; report it with the file";
    Diagnostic::error(Code::Internal, message)
        .at(place, "in this file")
        .help(help)
}
