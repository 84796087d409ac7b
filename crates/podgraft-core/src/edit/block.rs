//! Writes the entries of block mappings and block sequences: removes, inserts and changes them.

use foldhash::HashSet;
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

use crate::plan::draft::{DraftField, DraftKey, DraftValue, OpenedCollection};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, NodeKind};

use super::emit::{needs_line_end, push_blanks, write_plain_or_quoted};
use super::layout::{
    BlockScalarEnd, behind_attached_comments, comments_above, line_behind, line_end_at, line_start,
    next_line,
};
use super::lower::{EditResult, Lowering, LoweringError, ParentContext};
use super::text_cache::ValuePosition;

/// Bytes that most new entries fit into.
const ROOM: usize = 128;

/// New entries of a collection that are not inserted yet.
#[derive(Default)]
struct NewLines {
    /// The first line has no indentation, and the last no line end.
    text: String,
    /// The last value.
    last: Option<Arc<Value>>,
}

impl Lowering<'_, '_> {
    pub(super) fn block_mapping(&mut self, origin: NodeId, fields: &[DraftField]) -> EditResult {
        self.remove_fields(origin, fields)?;
        let column = self.tree.column(origin);
        let mut previous: Option<NodeId> = None;
        let mut new = NewLines::default();
        for field in fields {
            match &field.key {
                DraftKey::New(key) => {
                    self.begin_entry(&mut new, column);
                    write_plain_or_quoted(&mut new.text, key);
                    new.text.push(':');
                    self.add_field_value(&mut new, &field.value, column, origin)?;
                }
                DraftKey::Node(key) => {
                    // Most fields of a large collection have no new ones before them.
                    if !new.text.is_empty() {
                        let start = self.tree.start_with_properties(*key);
                        self.insert(&mut new, previous, Some((*key, start)), column)?;
                    }
                    self.lower_part(&field.value, ParentContext::BlockField(*key))?;
                    // In the tree, the value of a key is the node behind the key.
                    previous = Some(self.tree.after(*key));
                }
            }
        }
        self.insert(&mut new, previous, None, column)
    }

    pub(super) fn block_sequence(&mut self, origin: NodeId, items: &[DraftValue]) -> EditResult {
        let dashes = self.dashes(origin);
        let column = self.tree.column(origin);
        let width = dashes
            .first()
            .map_or(2, |&(dash, node)| self.item_width(dash, node));
        let kept = items.iter().filter_map(|item| self.draft.origin(item));
        // In the common case all items are kept, in order.
        if !kept.clone().eq(dashes.iter().map(|&(_, node)| node)) {
            let kept: HashSet<NodeId> = kept.collect();
            for &(dash, node) in dashes.iter().filter(|(_, node)| !kept.contains(node)) {
                self.remove_item(dash, node)?;
            }
        }
        let mut next_dash = 0;
        let mut previous: Option<NodeId> = None;
        let mut new = NewLines::default();
        for item in items {
            match self.draft.origin(item) {
                None => {
                    let value = self.value_of(item, origin)?;
                    self.begin_entry(&mut new, column);
                    self.add_item(&mut new, value, column, width);
                }
                Some(node) => {
                    let index = index_of(node, &dashes, next_dash)?;
                    next_dash = index + 1;
                    let dash = dashes[index].0;
                    // Most items of a large list have no new ones before them.
                    if !new.text.is_empty() {
                        self.insert(&mut new, previous, Some((node, dash)), column)?;
                    }
                    if !matches!(item, DraftValue::Node(_)) {
                        self.lower_part(item, ParentContext::BlockItem(dash))?;
                    }
                    previous = Some(node);
                }
            }
        }
        self.insert(&mut new, previous, None, column)
    }

    /// Inserts a new item behind another one of a block sequence, as [`Self::block_sequence`] does. `first` is the first
    /// item.
    pub(super) fn insert_item_behind(
        &mut self,
        sequence: NodeId,
        first: NodeId,
        previous: NodeId,
        value: Arc<Value>,
    ) {
        let column = self.tree.column(sequence);
        let dash = find_dash(self.tree.text(), self.tree.span(sequence).start);
        let width = self.item_width(dash, first);
        let mut new = NewLines::default();
        self.begin_entry(&mut new, column);
        self.add_item(&mut new, value, column, width);
        self.insert_behind(previous, column, &new);
    }

    /// Begins the line of a new entry, if it is not the first one.
    fn begin_entry(&self, new: &mut NewLines, column: usize) {
        match new.text.is_empty() {
            true => new.text.reserve(ROOM),
            false => self.begin_line(&mut new.text, column),
        }
    }

    fn begin_line(&self, text: &mut String, column: usize) {
        text.push_str(self.style.line_end);
        push_blanks(text, column);
    }

    /// Adds the value of a new field. A list of shared items is not copied into one value, so that the text cache
    /// recognizes its items.
    fn add_field_value(
        &mut self,
        new: &mut NewLines,
        part: &DraftValue,
        column: usize,
        near: NodeId,
    ) -> EditResult {
        if let Some(items) = self.shared_items(part) {
            let column = column + self.style.list_offset;
            for item in items {
                self.begin_line(&mut new.text, column);
                self.add_item(new, item, column, 2);
            }
            return Ok(());
        }
        let value = self.value_of(part, near)?;
        let position = ValuePosition::Field(column);
        self.texts
            .write(&mut new.text, &value, position, self.style);
        new.last = Some(value);
        Ok(())
    }

    fn add_item(&mut self, new: &mut NewLines, value: Arc<Value>, column: usize, width: usize) {
        let position = ValuePosition::Item { column, width };
        self.texts
            .write(&mut new.text, &value, position, self.style);
        new.last = Some(value);
    }

    /// The items of a new list that has mappings or lists in it, if each is a whole value.
    fn shared_items(&self, part: &DraftValue) -> Option<Vec<Arc<Value>>> {
        let DraftValue::Open(id) = part else {
            return None;
        };
        let OpenedCollection::List {
            origin: None,
            items,
        } = self.draft.opened(*id)
        else {
            return None;
        };
        let values = items.iter().map(|item| match item {
            DraftValue::New(value) => Some(Arc::clone(value)),
            DraftValue::Node(_) | DraftValue::Open(_) | DraftValue::Instead { .. } => None,
        });
        let values: Vec<Arc<Value>> = values.collect::<Option<_>>()?;
        let is_collection = |value: &Arc<Value>| value.is_object() || value.is_array();
        values.iter().any(is_collection).then_some(values)
    }

    /// Inserts new entries behind the one before them, or else before the next one, which begins at this offset.
    #[inline]
    fn insert(
        &mut self,
        new: &mut NewLines,
        previous: Option<NodeId>,
        next: Option<(NodeId, usize)>,
        column: usize,
    ) -> EditResult {
        // Most entries of a large collection have none before them.
        if new.text.is_empty() {
            return Ok(());
        }
        let new = std::mem::take(new);
        match (previous, next) {
            (Some(previous), _) => self.insert_behind(previous, column, &new),
            (None, Some((next, at))) => self.insert_before(next, at, column, &new.text)?,
            (None, None) => {}
        }
        Ok(())
    }

    /// Inserts lines behind the line on which a node ends, and behind the comments that belong to it.
    fn insert_behind(&mut self, previous: NodeId, column: usize, new: &NewLines) {
        let text = self.tree.text();
        let end = self.tree.span(previous).end;
        let at = behind_attached_comments(text, line_behind(text, end), column);
        let last = new.last.as_deref();
        let behind = last.map_or(at, |value| self.behind_content(at, column, value));
        let at = self.behind_skipped_blanks(at..behind);
        let eol = line_end_at(text, text[..end].trim_end_matches('\n').len());
        let (eol, end) = if at == text.len() && !text.ends_with('\n') {
            let eol = if self.is_line_begun() { "" } else { eol };
            let end = match last.is_some_and(needs_line_end) {
                true => self.style.line_end,
                false => "",
            };
            (eol, end)
        } else {
            ("", eol)
        };
        let mut lines = String::with_capacity(eol.len() + column + new.text.len() + end.len());
        lines.push_str(eol);
        push_blanks(&mut lines, column);
        lines.push_str(&new.text);
        lines.push_str(end);
        self.edits.push(Edit::insertion(at, lines));
    }

    /// Removes a range of entries.
    pub(super) fn remove(&mut self, at: Range<usize>) {
        self.removals.insert(at.start, at.end);
        self.edits.push(Edit::removal(at));
    }

    /// The offset for new lines that belong at `at`: behind the lines that would become content of a block scalar at
    /// their end.
    pub(super) fn behind_content(&self, at: usize, column: usize, value: &Value) -> usize {
        let end = BlockScalarEnd::of_value(value, column);
        end.map_or(at, |end| {
            end.behind_content(self.tree.text(), at, |from| self.end_of_removal(from))
        })
    }

    /// The end of the entries that are removed from an offset on.
    pub(super) fn end_of_removal(&self, from: usize) -> Option<usize> {
        self.removals.get(&from).copied()
    }

    /// The offset for new entries that belong at the start of a range and must be written at its end or behind it.
    fn behind_skipped_blanks(&mut self, blanks: Range<usize>) -> usize {
        let known = &self.skipped_blanks;
        let is_among = known.contains(&blanks.start);
        let end = if is_among {
            known.end.max(blanks.end)
        } else {
            blanks.end
        };
        if end > blanks.start {
            self.skipped_blanks = blanks.start..end;
        }
        end
    }

    /// Whether new text at the end of a text without a last line end begins a line: what is inserted there already ends
    /// with one, or the last lines are removed.
    fn is_line_begun(&self) -> bool {
        let end = self.tree.text().len();
        let mut edits = self.edits.iter().rev();
        if let Some(last) = edits.find(|edit| edit.at.start == end && !edit.text.is_empty()) {
            return last.text.ends_with('\n');
        }
        let is_removal = |edit: &Edit| {
            let before = &self.tree.text()[..edit.at.start];
            let is_of_lines = before.is_empty() || before.ends_with('\n');
            is_of_lines && edit.at.end == end && !edit.at.is_empty() && edit.text.is_empty()
        };
        self.edits.iter().any(is_removal)
    }

    /// Inserts lines before what begins at `at`, which may share its line with dashes.
    fn insert_before(&mut self, next: NodeId, at: usize, column: usize, lines: &str) -> EditResult {
        let text = self.tree.text();
        let before = text[line_start(text, at)..at].trim_start_matches('\u{feff}');
        if !before.bytes().all(|byte| matches!(byte, b' ' | b'-')) {
            return Err(LoweringError {
                node: next,
                reason: "does not start its line",
            });
        }
        let (eol, pad) = (line_end_at(text, at), " ".repeat(column));
        let above = comments_above(text, at);
        self.edits.push(match above < line_start(text, at) {
            true => Edit::insertion(above, [&pad, lines, eol].concat()),
            false => Edit::insertion(at, [lines, eol, &pad].concat()),
        });
        Ok(())
    }

    /// The offset of each item's dash, and the item.
    fn dashes(&self, sequence: NodeId) -> Vec<(usize, NodeId)> {
        let mut from = self.tree.span(sequence).start;
        let children = self.tree.children(sequence);
        children
            .map(|child| {
                let dash = find_dash(self.tree.text(), from);
                from = self.tree.span(child).end.max(dash + 1);
                (dash, child)
            })
            .collect()
    }

    /// The number of columns from a dash to its content; 2 if they are not on one line.
    pub(super) fn item_width(&self, dash: usize, item: NodeId) -> usize {
        let start = self.tree.start_with_properties(item);
        let is_on_line = start > dash && !self.tree.text()[dash..start].contains('\n');
        if is_on_line && self.tree.kind(item) != NodeKind::Absent {
            start - dash
        } else {
            2
        }
    }

    fn remove_item(&mut self, dash: usize, node: NodeId) -> EditResult {
        let text = self.tree.text();
        let start = line_start(text, dash);
        if !text[start..dash].bytes().all(|byte| byte == b' ') {
            return Err(LoweringError {
                node,
                reason: "shares its line with its parent list",
            });
        }
        self.remove(start..line_behind(text, self.tree.span(node).end));
        Ok(())
    }
}

/// The index of an item. The search begins at `next`, behind the one that was found last, where it mostly is.
fn index_of(node: NodeId, dashes: &[(usize, NodeId)], next: usize) -> EditResult<usize> {
    let is_node = |(_, item): &(usize, NodeId)| *item == node;
    let behind = dashes[next..].iter().position(is_node);
    let found = behind
        .map(|steps| next + steps)
        .or_else(|| dashes.iter().position(is_node));
    found.ok_or(LoweringError {
        node,
        reason: "is not an item of this list",
    })
}

fn find_dash(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    // Comments before the dash may have dashes of their own, so they are skipped.
    while at < bytes.len() && bytes[at] != b'-' {
        at = if bytes[at] == b'#' {
            next_line(text, at)
        } else {
            at + 1
        };
    }
    at
}
