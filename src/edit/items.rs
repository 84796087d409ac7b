//! Writes the items of a block sequence: removes, inserts and changes them.

use std::collections::HashSet;

use crate::plan::draft::DraftValue;
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, NodeKind};

use super::layout::{column, line_start, next_line};
use super::lower::{Lowering, LoweringError, ParentContext};
use super::text_cache::InsertedLines;

impl Lowering<'_, '_> {
    pub(super) fn block_sequence(
        &mut self,
        origin: NodeId,
        items: &[DraftValue],
    ) -> Result<(), LoweringError> {
        let dashes = self.dashes(origin);
        let sequence_column = column(self.tree, origin);
        let width = dashes
            .first()
            .map_or(2, |&(dash, node)| self.item_width(dash, node));
        let kept = items.iter().filter_map(|item| self.item_node(item));
        // In the common case all items are kept, in order.
        if !kept.clone().eq(dashes.iter().map(|&(_, node)| node)) {
            let kept: HashSet<NodeId> = kept.collect();
            for &(dash, node) in dashes.iter().filter(|(_, node)| !kept.contains(node)) {
                self.remove_item(dash, node)?;
            }
        }
        let mut next_dash = 0;
        let mut previous: Option<NodeId> = None;
        let mut pending = Vec::new();
        for item in items {
            match self.item_node(item) {
                None => pending.push(self.value_of(item, origin)?),
                Some(node) => {
                    let index = index_of(node, &dashes, next_dash)?;
                    next_dash = index + 1;
                    let dash = dashes[index].0;
                    if !pending.is_empty() {
                        let lines = InsertedLines::Items(&pending, width);
                        match previous {
                            Some(previous) => self.insert_behind(previous, sequence_column, lines),
                            None => self.insert_before(node, dash, sequence_column, lines)?,
                        }
                        pending.clear();
                    }
                    self.lower_part(item, ParentContext::BlockItem(dash))?;
                    previous = Some(node);
                }
            }
        }
        if let Some(previous) = previous.filter(|_| !pending.is_empty()) {
            self.insert_behind(
                previous,
                sequence_column,
                InsertedLines::Items(&pending, width),
            );
        }
        Ok(())
    }

    /// The item of the input that an item of the draft is or replaces. Aliases are not followed.
    fn item_node(&self, item: &DraftValue) -> Option<NodeId> {
        self.draft.origin(item)
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

    fn remove_item(&mut self, dash: usize, node: NodeId) -> Result<(), LoweringError> {
        let text = self.tree.text();
        let start = line_start(text, dash);
        if !text[start..dash].bytes().all(|byte| byte == b' ') {
            return Err(LoweringError {
                node,
                reason: "shares its line with the list around it",
            });
        }
        let end = self.tree.span(node).end;
        let end = if end > dash + 1 && text.as_bytes()[end - 1] == b'\n' {
            end
        } else {
            next_line(text, end)
        };
        self.edits.push(Edit::removal(start..end));
        Ok(())
    }
}

/// The index of an item. The search begins at `next`, behind the one that was found last, where it mostly is.
fn index_of(node: NodeId, dashes: &[(usize, NodeId)], next: usize) -> Result<usize, LoweringError> {
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
