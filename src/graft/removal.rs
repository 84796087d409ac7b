//! Removes whole objects from a text: objects of a tree in, edits out.

use std::collections::BTreeMap;

use crate::edit::{TextCache, lower};
use crate::manifest::object::{ListMembership, Object};
use crate::plan::draft::{Draft, DraftValue, OpenedCollection};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, Tree};

/// Returns the length of the first line, with its line end, if it is a bare `---` line. Otherwise 0.
pub(super) fn separator_of(text: &[u8]) -> usize {
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
    match text[..end].trim_ascii() {
        b"---" => end,
        _ => 0,
    }
}

/// Sorts removals and merges those that overlap.
pub(super) fn merge_overlapping(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| edit.at.start);
    let mut merged: Vec<Edit> = Vec::new();
    for edit in edits {
        match merged.last_mut() {
            Some(last) if edit.at.start < last.at.end => {
                last.at.end = last.at.end.max(edit.at.end);
            }
            _ => merged.push(edit),
        }
    }
    merged
}

/// Returns the edits that remove objects, as whole documents or as list items. `separator` is the length of a bare
/// `---` line after the text. `None` if there is no safe way.
pub(super) fn remove(tree: &Tree<'_>, objects: &[&Object], separator: usize) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    let mut lists: BTreeMap<NodeId, Vec<ListMembership>> = BTreeMap::new();
    for object in objects {
        match object.within {
            Some(within) => lists.entry(within.list).or_default().push(within),
            None => edits.push(remove_document(tree, object, separator)?),
        }
    }
    for (list, items) in lists {
        edits.extend(remove_items(tree, list, &items)?);
    }
    Some(edits)
}

fn remove_items(tree: &Tree<'_>, list: NodeId, removed: &[ListMembership]) -> Option<Vec<Edit>> {
    let mut draft = Draft::new(tree, list);
    let root = draft.open_root().ok()?;
    let items = draft.open_list(root, "items", &[]).ok()?;
    for within in removed {
        let OpenedCollection::List { items: parts, .. } = draft.opened(items) else {
            return None;
        };
        let index = parts
            .iter()
            .position(|item| *item == DraftValue::Node(within.item))?;
        draft.remove(items, index).ok()?;
    }
    lower(&draft, list, &mut TextCache::default()).ok()
}

/// Removes a document with its own `---` line. A first document without one is removed with the separator after it
/// instead, which is `behind` bytes long.
fn remove_document(tree: &Tree<'_>, object: &Object, behind: usize) -> Option<Edit> {
    let (text, span) = (tree.text(), tree.span(object.node));
    let line = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let separator = text[..line].trim_end().rfind('\n').map_or(0, |at| at + 1);
    if span.start != line {
        return None;
    }
    if text[separator..line].trim_end() != "---" {
        let has_none = !text[..line]
            .lines()
            .any(|text_line| text_line.starts_with("---"));
        return has_none.then(|| Edit::removal(line..text.len() + behind));
    }
    let has_line_end = text[..span.end].ends_with('\n');
    let end = if has_line_end {
        span.end
    } else {
        text[span.end..]
            .find('\n')
            .map_or(text.len(), |at| span.end + at + 1)
    };
    Some(Edit::removal(separator..end))
}
