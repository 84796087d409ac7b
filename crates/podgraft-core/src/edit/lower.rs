//! Turns a draft into edits of the input's text: walks the opened collections and writes each new or changed part.

use foldhash::HashMap;
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

use crate::plan::draft::{Draft, DraftKey, DraftValue, OpenId, OpenedCollection};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, NodeKind, Tree, column_of};

use super::emit::{
    BlockStyle, FlowStyle, block_at_end, block_item, block_value, flow_value, needs_line_end,
};
use super::layout::{block_style, line_behind, line_end};
use super::remove::not_key_and_value;
use super::text_cache::TextCache;
use super::{flow, scalar};

/// A change that cannot be written safely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoweringError {
    /// The node at which it would be written.
    pub node: NodeId,
    /// The reason, as the end of a sentence about the node.
    pub reason: &'static str,
}

/// The result of an edit, or why the text cannot be edited.
pub type EditResult<T = ()> = Result<T, LoweringError>;

/// Returns the edits that turn the input's text into the draft's, sorted by offset.
///
/// # Errors
/// Where the text is written in a way that leaves no safe place for the change.
pub fn lower(draft: &Draft<'_>, object: NodeId, texts: &mut TextCache) -> EditResult<Vec<Edit>> {
    let style = block_style(draft.tree, object);
    let mut lowering = Lowering::new(style, draft, texts);
    lowering.lower_part(&draft.root(), ParentContext::Root)?;
    Ok(lowering.finish())
}

fn is_inside_scalar(tree: &Tree<'_>, at: usize) -> bool {
    let is_inside = |id: NodeId| {
        let span = tree.span(id);
        !tree.kind(id).is_collection() && span.start < at && at < span.end
    };
    tree.ids().any(is_inside)
}

/// Whether a value has the type that a tag states.
fn is_true_of(tag: &str, value: &Value) -> bool {
    match tag {
        "tag:yaml.org,2002:str" => value.is_string(),
        "tag:yaml.org,2002:seq" => value.is_array(),
        "tag:yaml.org,2002:map" => value.is_object(),
        _ => false,
    }
}

/// Where a node is: in which kind of collection, and behind what.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParentContext {
    Root,
    /// The value of this key of a block mapping.
    BlockField(NodeId),
    /// An item of a block sequence, behind the dash at this offset.
    BlockItem(usize),
    /// Inside brackets.
    Flow,
}

pub(super) struct Lowering<'d, 't> {
    pub draft: &'d Draft<'t>,
    pub tree: &'t Tree<'t>,
    pub style: BlockStyle,
    pub edits: Vec<Edit>,
    /// The blank lines before the last entry that had to be written behind them. What would come before them, but
    /// behind this entry, goes behind them, too.
    pub skipped_blanks: Range<usize>,
    /// The end of each removal of entries, by its start.
    pub removals: HashMap<usize, usize>,
    pub texts: &'d mut TextCache,
}

impl<'d, 't> Lowering<'d, 't> {
    pub(super) fn new(style: BlockStyle, draft: &'d Draft<'t>, texts: &'d mut TextCache) -> Self {
        Lowering {
            draft,
            tree: draft.tree,
            style,
            edits: Vec::with_capacity(8),
            skipped_blanks: 0..0,
            removals: HashMap::default(),
            texts,
        }
    }

    /// The edits, sorted by offset.
    pub(super) fn finish(mut self) -> Vec<Edit> {
        self.widen_removals();
        let Lowering {
            tree, mut edits, ..
        } = self;
        edits.retain(|edit| !(edit.at.is_empty() && edit.text.is_empty()));
        // The sort is stable: insertions at one offset keep the order of the walk, inner ones first. A removal that
        // begins there comes behind them.
        edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
        for index in 0..edits.len() {
            let (end, text) = (edits[index].at.end, &edits[index].text);
            let is_last_at_end = edits.get(index + 1).is_none_or(|next| next.at.start > end);
            let ends_in_token = text.ends_with(|last: char| !last.is_whitespace());
            // Text in place of an absent value may end right before a comment. Without a blank, `#` would be part of it.
            if tree.text()[end..].starts_with('#')
                && is_last_at_end
                && ends_in_token
                && !is_inside_scalar(tree, end)
            {
                edits[index].text = format!("{text} ").into();
            }
        }
        edits
    }

    pub(super) fn lower_part(&mut self, part: &DraftValue, around: ParentContext) -> EditResult {
        match part {
            DraftValue::Node(_) | DraftValue::New(_) => Ok(()),
            DraftValue::Instead { of: node, value } => self.replace(*node, value, around),
            DraftValue::Open(id) => self.lower_opened(*id, around),
        }
    }

    fn lower_opened(&mut self, id: OpenId, around: ParentContext) -> EditResult {
        let draft = self.draft;
        match draft.opened(id) {
            OpenedCollection::Mapping {
                origin: Some(origin),
                fields,
            } => {
                let keeps_some = fields
                    .iter()
                    .any(|field| matches!(field.key, DraftKey::Node(_)));
                match self.tree.kind(*origin) {
                    NodeKind::BlockMapping if keeps_some => self.block_mapping(*origin, fields),
                    NodeKind::FlowMapping if keeps_some => flow::mapping(self, *origin, fields),
                    _ if draft.stays_null(id) => Ok(()),
                    _ => self.rewrite(id, *origin, around),
                }
            }
            OpenedCollection::List {
                origin: Some(origin),
                items,
            } => {
                let keeps_some = items.iter().any(|item| draft.origin(item).is_some());
                match self.tree.kind(*origin) {
                    NodeKind::BlockSequence if keeps_some => self.block_sequence(*origin, items),
                    NodeKind::FlowSequence if keeps_some => flow::sequence(self, *origin, items),
                    _ if draft.stays_null(id) => Ok(()),
                    _ => self.rewrite(id, *origin, around),
                }
            }
            OpenedCollection::Mapping { origin: None, .. }
            | OpenedCollection::List { origin: None, .. } => Ok(()),
        }
    }

    /// Writes a collection that was empty or null, or that keeps none of its entries.
    fn rewrite(&mut self, id: OpenId, origin: NodeId, around: ParentContext) -> EditResult {
        let value = self
            .draft
            .value(&DraftValue::Open(id))
            .ok_or(LoweringError {
                node: origin,
                reason: "has no unambiguous value",
            })?;
        self.write_replacement(origin, &value, around)
    }

    fn replace(&mut self, node: NodeId, value: &Value, around: ParentContext) -> EditResult {
        if let Some(edit) = value.as_str().and_then(|text| {
            scalar::extend_or_respell(self.tree, node, text, around)
                .or_else(|| scalar::replace_piece(self.tree, node, text, around))
        }) {
            self.edits.push(edit);
            return Ok(());
        }
        if self
            .tree
            .tag(node)
            .is_some_and(|tag| !is_true_of(tag, value))
        {
            return Err(LoweringError {
                node,
                reason: "has a tag that would apply to the new value",
            });
        }
        self.write_replacement(node, value, around)
    }

    fn write_replacement(
        &mut self,
        node: NodeId,
        value: &Value,
        around: ParentContext,
    ) -> EditResult {
        let style = self.style;
        let end = self.tree.span(node).end;
        match around {
            ParentContext::Root => Err(LoweringError {
                node,
                reason: "is the whole document",
            }),
            ParentContext::Flow => self.write_inside_brackets(node, value),
            ParentContext::BlockField(key) => {
                let start_column = self.tree.column(key);
                let text = match self.takes_lines_behind(end, start_column, value) {
                    true => format!(" {}", flow_value(value, &FlowStyle::in_block())),
                    false => block_value(value, start_column, style),
                };
                if self.write_before_lines((key, node), &text) {
                    return Ok(());
                }
                let from = self.behind_colon(key, node)?;
                let text = self.with_last_line_end(text, end, value);
                let text = self.with_header_comment(node, text);
                self.replace_range(from..end, &text, block_at_end(value).is_some());
                Ok(())
            }
            ParentContext::BlockItem(dash) => {
                let width = self.item_width(dash, node);
                let start_column = column_of(self.tree.text(), dash);
                let text = match self.takes_lines_behind(end, start_column, value) {
                    true => {
                        let value = flow_value(value, &FlowStyle::in_block());
                        format!("-{}{value}", " ".repeat(width - 1))
                    }
                    false => block_item(value, start_column, width, style),
                };
                let text = self.with_last_line_end(text, end, value);
                let text = self.with_header_comment(node, text);
                self.replace_range(dash + 1..end, &text[1..], block_at_end(value).is_some());
                Ok(())
            }
        }
    }

    fn write_inside_brackets(&mut self, of: NodeId, value: &Value) -> EditResult {
        let at = self.tree.start_with_properties(of)..self.tree.span(of).end;
        let text = flow::inner_value(self.tree, of, value);
        let text = match at.is_empty() {
            true => self.behind_flow_key(of)? + &text,
            false => text,
        };
        let text = text.into();
        self.edits.push(Edit { at, text });
        Ok(())
    }

    /// Whether a value that ends in a block scalar would make blank lines or comments behind it part of its content.
    fn takes_lines_behind(&self, end: usize, column: usize, value: &Value) -> bool {
        let text = self.tree.text();
        let from = line_behind(text, end);
        self.behind_content(from, column, value) > from
    }

    /// The text between a key and a value written in place of an absent one: a blank for `{env:}`, none for `{env: }`.
    fn behind_flow_key(&self, node: NodeId) -> EditResult<String> {
        let before = &self.tree.text()[..self.tree.span(node).start];
        match (before.ends_with(':'), before.trim_end().ends_with(':')) {
            (true, _) => Ok(" ".to_owned()),
            (false, true) => Ok(String::new()),
            (false, false) => Err(LoweringError {
                node,
                reason: "is a key without a value",
            }),
        }
    }

    /// Adds the last line end of a block scalar that comes to the very end of a text without one.
    fn with_last_line_end(&self, mut text: String, end: usize, value: &Value) -> String {
        let source = self.tree.text();
        let is_at_end = line_behind(source, end) == source.len() && !source.ends_with('\n');
        if needs_line_end(value) && is_at_end {
            text.push_str(self.style.line_end);
        }
        text
    }

    /// Adds the comment behind the `|` or `>` of a replaced block scalar to the first line of the new text.
    fn with_header_comment(&self, replaced: NodeId, mut text: String) -> String {
        if let NodeKind::Literal | NodeKind::Folded = self.tree.kind(replaced) {
            let header = self.tree.slice(replaced).lines().next().unwrap_or_default();
            if let Some(behind) = header.find([' ', '\t']) {
                let first_end = text.find(['\r', '\n']).unwrap_or(text.len());
                text.insert_str(first_end, header[behind..].trim_end());
            }
        }
        text
    }

    /// The offset behind the `:` of a field, or behind the anchor and tag of its value, which stay.
    fn behind_colon(&self, key: NodeId, value: NodeId) -> EditResult<usize> {
        let text = self.tree.text();
        let key_end = self.tree.span(key).end;
        let blanks = text[key_end..]
            .bytes()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if text.as_bytes().get(key_end + blanks) != Some(&b':') {
            return Err(not_key_and_value(key));
        }
        let start = self.tree.span(value).start;
        let head = self.behind_properties(key, value);
        let head = head.ok_or(LoweringError {
            node: value,
            reason: "has an anchor or tag on a different line than its key",
        })?;
        // Comments between the key and a value on another line would be lost with it.
        if text[head..start.max(head)].contains('#') {
            return Err(LoweringError {
                node: value,
                reason: "has a comment before it",
            });
        }
        Ok(head)
    }

    /// Replaces a range by a text. A comment that follows a range of several lines stays at the end of the last line. One
    /// behind a single line stays there, and further lines of the text go behind it; so does one that would become part
    /// of a block scalar.
    fn replace_range(&mut self, range: Range<usize>, text: &str, ends_in_block_scalar: bool) {
        let Range {
            start: from,
            end: to,
        } = range;
        let source = self.tree.text();
        // The span of a `|+` block includes its last line end, which must stay.
        let taken = &source[from..to];
        let line_end_taken = taken.len()
            - taken
                .strip_suffix('\n')
                .map_or(taken, |rest| rest.trim_end_matches('\r'))
                .len();
        let to = to - line_end_taken;
        let has_lines = source[from..to].trim_start().contains('\n');
        let first_end = match has_lines && !ends_in_block_scalar {
            true => None,
            false => text.find(['\r', '\n']),
        };
        let (head, tail) = first_end.map_or((text, ""), |at| text.split_at(at));
        self.edits.push(Edit {
            at: from..to,
            text: head.into(),
        });
        if !tail.is_empty() {
            let at = line_end(source, to);
            self.edits.push(Edit::insertion(at, tail));
        }
    }

    pub(super) fn value_of(&self, part: &DraftValue, near: NodeId) -> EditResult<Arc<Value>> {
        self.draft.shared_value(part).ok_or(LoweringError {
            node: near,
            reason: "has no unambiguous value",
        })
    }
}
