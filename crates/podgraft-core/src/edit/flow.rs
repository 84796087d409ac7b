//! Changes entries inside brackets: flow collections of YAML and JSON, on one line or over several.

use foldhash::HashSet;
use serde_json::Value;
use std::ops::Range;

use crate::plan::draft::{DraftField, DraftKey, DraftValue};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, Tree};

use super::emit::{FlowStyle, flow_field, flow_lines, flow_value};
use super::layout::{comments_above, flow_style, line_end, line_end_at, line_start, next_line};
use super::lower::{EditResult, Lowering, LoweringError, ParentContext};

/// An entry of the draft: one of the input, with its first and last node, or the text of a new one.
enum FlowEntry<'d> {
    Kept {
        first: NodeId,
        last: NodeId,
        part: &'d DraftValue,
    },
    New(String),
}

impl FlowEntry<'_> {
    fn kept(&self) -> Option<NodeId> {
        match self {
            FlowEntry::Kept { first, .. } => Some(*first),
            FlowEntry::New(_) => None,
        }
    }

    fn new_text(&self) -> Option<&str> {
        match self {
            FlowEntry::New(text) => Some(text),
            FlowEntry::Kept { .. } => None,
        }
    }
}

pub(super) fn mapping(
    lowering: &mut Lowering<'_, '_>,
    origin: NodeId,
    fields: &[DraftField],
) -> EditResult {
    let writer = FlowWriter::new(lowering.tree, origin);
    let mut entries = Vec::with_capacity(fields.len());
    for field in fields {
        entries.push(match &field.key {
            DraftKey::New(key) => {
                let value = lowering.value_of(&field.value, origin)?;
                FlowEntry::New(writer.entry(Some(key), &value))
            }
            DraftKey::Node(key) => FlowEntry::Kept {
                first: *key,
                // In the tree, the value of a key is the node behind the key.
                last: lowering.tree.after(*key),
                part: &field.value,
            },
        });
    }
    collection(lowering, origin, &entries, &writer)
}

pub(super) fn sequence(
    lowering: &mut Lowering<'_, '_>,
    origin: NodeId,
    items: &[DraftValue],
) -> EditResult {
    let writer = FlowWriter::new(lowering.tree, origin);
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        entries.push(match lowering.draft.origin(item) {
            Some(node) => FlowEntry::Kept {
                first: node,
                last: node,
                part: item,
            },
            None => {
                let value = lowering.value_of(item, origin)?;
                FlowEntry::New(writer.entry(None, &value))
            }
        });
    }
    collection(lowering, origin, &entries, &writer)
}

fn collection(
    lowering: &mut Lowering<'_, '_>,
    origin: NodeId,
    entries: &[FlowEntry<'_>],
    writer: &FlowWriter<'_>,
) -> EditResult {
    check_brackets(lowering.tree, origin)?;
    let is_tail_replaced = remove(lowering, origin, entries, writer);
    let mut previous: Option<(NodeId, NodeId)> = None;
    let mut waiting: Vec<&str> = Vec::new();
    for entry in entries {
        match entry {
            FlowEntry::New(text) => waiting.push(text),
            &FlowEntry::Kept { first, last, part } => {
                // Most entries of a large list stay as they are, and have no new ones before them.
                if !waiting.is_empty() {
                    match previous {
                        Some((first, last)) => {
                            writer.insert_behind(first, last, &waiting, &mut lowering.edits);
                        }
                        None => waiting.iter().for_each(|text| {
                            writer.insert_before(first, text, &mut lowering.edits);
                        }),
                    }
                    waiting.clear();
                }
                if !matches!(part, DraftValue::Node(_)) {
                    lowering.lower_part(part, ParentContext::Flow)?;
                }
                previous = Some((first, last));
            }
        }
    }
    if let Some((first, last)) = previous.filter(|_| !is_tail_replaced) {
        writer.insert_behind(first, last, &waiting, &mut lowering.edits);
    }
    Ok(())
}

fn check_brackets(tree: &Tree<'_>, collection: NodeId) -> EditResult {
    let mut within = tree.children(collection);
    match is_bare(tree, collection) || within.any(|node| is_bare(tree, node)) {
        true => Err(LoweringError {
            node: collection,
            reason: "is a key-value pair without braces",
        }),
        false => Ok(()),
    }
}

/// Whether a node is a mapping without brackets of its own, to which nothing can be added: `[a: b]`, `[{a: b}: c]` and
/// `[?]` contain such.
fn is_bare(tree: &Tree<'_>, node: NodeId) -> bool {
    let begins_with_key = || {
        let key = tree.children(node).next();
        key.is_some_and(|key| tree.start_with_properties(key) <= tree.start(node))
    };
    let first = tree.text().as_bytes().get(tree.start(node));
    tree.kind(node).is_flow() && (!matches!(first, Some(b'{' | b'[')) || begins_with_key())
}

/// The entries of the input's collection, each a node or a key and its value.
struct FlowEntries<'e, 't> {
    tree: &'e Tree<'t>,
    all: Vec<&'e [NodeId]>,
}

impl FlowEntries<'_, '_> {
    fn start(&self, at: usize) -> usize {
        self.tree.start_with_properties(self.all[at][0])
    }

    fn end(&self, at: usize) -> usize {
        let ends = self.all[at].iter().map(|&node| self.tree.span(node).end);
        ends.max().unwrap_or_default()
    }
}

/// Removes the entries that are not kept, each run of them with one adjacent comma. If the last entries are removed and
/// new ones come last, these are written in their place; returns whether that was done.
fn remove(
    lowering: &mut Lowering<'_, '_>,
    origin: NodeId,
    wanted: &[FlowEntry<'_>],
    writer: &FlowWriter<'_>,
) -> bool {
    let tree = lowering.tree;
    let width = if tree.kind(origin).is_mapping() { 2 } else { 1 };
    let kept = wanted.iter().filter_map(FlowEntry::kept);
    // In the common case all entries are kept, in order.
    if kept.clone().eq(tree.children(origin).step_by(width)) {
        return false;
    }
    let children: Vec<NodeId> = tree.children(origin).collect();
    let entries = FlowEntries {
        tree,
        all: children.chunks(width).collect(),
    };
    let kept: HashSet<NodeId> = kept.collect();
    let is_kept = |entry: &[NodeId]| kept.contains(&entry[0]);
    let tail = wanted.iter().rev().map_while(FlowEntry::new_text);
    let tail = writer.joined(tail.collect());
    let mut is_tail_replaced = false;
    let mut at = 0;
    while at < entries.all.len() {
        let behind = entries.all[at..].iter();
        let length = behind.take_while(|entry| !is_kept(entry)).count();
        if length > 0 {
            let run = entries.start(at)..entries.end(at + length - 1);
            let next = Some(at + length).filter(|next| *next < entries.all.len());
            match (next, at.checked_sub(1).map(|before| entries.end(before))) {
                // `kept, removed, next`: the comma before the run goes with it.
                (Some(_), Some(before)) if writer.is_on_one_line(before, run.start) => {
                    lowering.edits.push(Edit::removal(before..run.end));
                }
                // Up to the next entry, so the comma behind the run goes with it.
                (Some(next), _) => {
                    let range = writer.range_up_to(run.start, entries.start(next));
                    lowering.edits.push(Edit::removal(range));
                }
                // New entries take the place of the last ones, so the commas stay.
                (None, Some(_)) if !tail.is_empty() => {
                    is_tail_replaced = true;
                    let text = tail.clone().into();
                    lowering.edits.push(Edit { at: run, text });
                }
                // Nothing follows, so one comma less is needed.
                (None, Some(before)) => {
                    let last = writer.trailing_ranges(before, run).into_iter();
                    lowering.edits.extend(last.map(Edit::removal));
                }
                // Nothing is kept. Such a collection is written anew and does not come here.
                (None, None) => {}
            }
        }
        at += length + 1;
    }
    is_tail_replaced
}

/// The text of a value that replaces another inside brackets.
pub(super) fn inner_value(tree: &Tree<'_>, node: NodeId, value: &Value) -> String {
    let style = flow_style(tree, node);
    let text = tree.text();
    let is_over_lines = style.is_json && (value.is_object() || value.is_array());
    let Some(unit) = is_over_lines.then(|| json_unit(tree, node)).flatten() else {
        return flow_value(value, &style);
    };
    let start = tree.span(node).start;
    flow_lines(
        value,
        indent_of_line(text, start),
        &unit,
        line_end_at(text, start),
        &style,
    )
}

/// One level of indentation of a JSON document: that of the outermost collection around a node whose entries begin
/// their lines. `None` if all is on one line.
pub(super) fn json_unit(tree: &Tree<'_>, node: NodeId) -> Option<String> {
    let text = tree.text();
    let mut around = tree
        .roots()
        .iter()
        .copied()
        .find(|&root| root <= node && node < tree.after(root));
    while let Some(outer) = around {
        let first = tree.children(outer).next()?;
        let unit = leading_indent(text, tree.span(first).start)
            .and_then(|indent| indent.strip_prefix(indent_of_line(text, tree.span(outer).start)));
        if let Some(unit) = unit.filter(|unit| !unit.is_empty()) {
            return Some(unit.to_owned());
        }
        around = tree
            .children(outer)
            .find(|&inner| inner <= node && node < tree.after(inner));
    }
    None
}

/// The blanks at the start of the line of an offset.
fn indent_of_line(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The blanks before an offset, if nothing else precedes it on its line.
fn leading_indent(text: &str, at: usize) -> Option<&str> {
    // Only the blanks are searched, not the line: compact JSON is a single long line.
    let before = text[..at].trim_end_matches([' ', '\t']);
    (before.is_empty() || before.ends_with('\n')).then(|| &text[before.len()..at])
}

/// The text between two entries.
struct EntryGap {
    comma: Option<usize>,
    has_comment: bool,
}

#[derive(Debug)]
pub(super) struct FlowWriter<'t> {
    text: &'t str,
    tree: &'t Tree<'t>,
    style: FlowStyle,
    /// The indentation of the entries, if the last one begins its line.
    indent: Option<&'t str>,
    unit: String,
}

impl<'t> FlowWriter<'t> {
    /// A writer of items of a list inside brackets.
    ///
    /// # Errors
    /// When no item can be added.
    pub(super) fn of_list(tree: &'t Tree<'t>, list: NodeId) -> EditResult<Self> {
        check_brackets(tree, list)?;
        Ok(FlowWriter::new(tree, list))
    }

    /// Inserts a new item behind another one of the list.
    pub(super) fn insert_item_behind(
        &self,
        previous: NodeId,
        value: &Value,
        edits: &mut Vec<Edit>,
    ) {
        let entry = self.entry(None, value);
        self.insert_behind(previous, previous, &[&entry], edits);
    }

    fn new(tree: &'t Tree<'t>, origin: NodeId) -> Self {
        let text = tree.text();
        let last = tree
            .children(origin)
            .enumerate()
            .filter(|(index, _)| !tree.kind(origin).is_mapping() || index % 2 == 0)
            .last();
        let begins_line = |node: NodeId| leading_indent(text, tree.start_with_properties(node));
        let spans_lines = tree.slice(origin).contains('\n');
        let indent = last
            .and_then(|(_, node)| begins_line(node))
            .filter(|_| spans_lines);
        let style = flow_style(tree, origin);
        let unit = indent.filter(|_| style.is_json);
        let unit = unit.and_then(|_| json_unit(tree, origin));
        FlowWriter {
            text,
            tree,
            style,
            indent,
            unit: unit.unwrap_or_else(|| "  ".to_owned()),
        }
    }

    fn entry(&self, key: Option<&str>, value: &Value) -> String {
        match (self.indent, key) {
            (Some(indent), key) if self.style.is_json => {
                let line_end = line_end_at(self.text, 0);
                let value = flow_lines(value, indent, &self.unit, line_end, &self.style);
                key.map_or(value.clone(), |key| self.style.field(key, &value))
            }
            (_, Some(key)) => flow_field(key, value, &self.style),
            (_, None) => flow_value(value, &self.style),
        }
    }

    /// The text of several entries with separators. They are given from the last to the first.
    fn joined(&self, mut entries: Vec<&str>) -> String {
        entries.reverse();
        match self.indent {
            Some(indent) => entries.join(&format!(",{}{indent}", line_end_at(self.text, 0))),
            None => entries.join(self.style.comma()),
        }
    }

    /// The range from one entry up to the next: whole lines if both begin theirs, without the comments of the next.
    fn range_up_to(&self, from: usize, next: usize) -> Range<usize> {
        if leading_indent(self.text, next).is_none() {
            return from..next;
        }
        let above = comments_above(self.text, next);
        match leading_indent(self.text, from) {
            Some(_) => line_start(self.text, from)..above,
            // The line end before it stays.
            None => from..from + self.text[from..above].trim_end_matches(['\n', '\r']).len(),
        }
    }

    /// Whether only a comma and blanks are between two entries. They are then removed together with the second.
    fn is_on_one_line(&self, end: usize, start: usize) -> bool {
        self.text[end..start]
            .bytes()
            .all(|byte| matches!(byte, b',' | b' ' | b'\t'))
    }

    /// The ranges to remove with the last entries of a collection, behind a kept one: the comma before or behind them,
    /// and whole lines if they have lines of their own. The kept entry keeps its comments and gets none of the removed.
    fn trailing_ranges(&self, kept: usize, last: Range<usize>) -> Vec<Range<usize>> {
        let between = self.separator_between(kept, last.start);
        let behind = self.comma_behind(last.end);
        let tail = behind.map_or(last.end, |comma| comma + 1);
        let rest = self.text[tail..line_end(self.text, tail)].trim_start();
        let has_whole_lines = leading_indent(self.text, last.start).is_some()
            && (rest.is_empty() || rest.starts_with('#'));
        let comma = |comma: usize| comma..comma + 1;
        // On the line of the kept entry: all from its end on goes, with the comma between.
        if !has_whole_lines && !between.has_comment {
            return std::iter::once(kept..last.end).collect();
        }
        if !has_whole_lines {
            return between.comma.map(comma).into_iter().chain([last]).collect();
        }
        // Whole lines. The kept entry keeps its comma only if the removed one had a trailing comma, too.
        let lines = line_start(self.text, last.start)..next_line(self.text, tail);
        let comma = between.comma.filter(|_| behind.is_none()).map(comma);
        comma.into_iter().chain([lines]).collect()
    }

    fn separator_between(&self, from: usize, to: usize) -> EntryGap {
        let mut between = EntryGap {
            comma: None,
            has_comment: false,
        };
        let mut at = from;
        while at < to {
            match self.text.as_bytes()[at] {
                b'#' => {
                    between.has_comment = true;
                    at = line_end(self.text, at);
                }
                b',' => between.comma = Some(at),
                _ => {}
            }
            at += 1;
        }
        between
    }

    fn insert_before(&self, first: NodeId, entry: &str, edits: &mut Vec<Edit>) {
        let at = self.tree.start_with_properties(first);
        // Line ends are searched only if the entry begins its line: compact JSON is a single long line.
        let Some(indent) = self
            .indent
            .filter(|_| leading_indent(self.text, at).is_some())
        else {
            let text = format!("{entry}{}", self.style.comma());
            return edits.push(Edit::insertion(at, text));
        };
        let eol = line_end_at(self.text, at);
        let above = comments_above(self.text, at);
        edits.push(if above < line_start(self.text, at) {
            Edit::insertion(above, format!("{indent}{entry},{eol}"))
        } else {
            Edit::insertion(at, format!("{entry},{eol}{indent}"))
        });
    }

    /// Inserts entries behind another: on lines of their own if the collection is written so, else on the same line.
    fn insert_behind(&self, first: NodeId, last: NodeId, entries: &[&str], edits: &mut Vec<Edit>) {
        if entries.is_empty() {
            return;
        }
        let end = self.tree.span(last).end.max(self.tree.span(first).end);
        let comma = self.comma_behind(end);
        let line_tail = comma.map_or(end, |comma| comma + 1);
        let is_line_done = || {
            let rest = self.text[line_tail..].trim_start_matches([' ', '\t']);
            rest.is_empty() || rest.starts_with(['#', '\n', '\r'])
        };
        let Some(indent) = self.indent.filter(|_| is_line_done()) else {
            let text: String = entries
                .iter()
                .map(|entry| format!("{}{entry}", self.style.comma()))
                .collect();
            edits.push(Edit::insertion(end, text));
            return;
        };
        let eol = line_end_at(self.text, end);
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| format!("{eol}{indent}{entry}"))
            .collect();
        let at = line_end(self.text, line_tail);
        // A collection with a trailing comma keeps one.
        if comma.is_some() {
            edits.push(Edit::insertion(at, lines.join(",") + ","));
        } else {
            edits.push(Edit::insertion(end, ","));
            edits.push(Edit::insertion(at, lines.join(",")));
        }
    }

    /// The offset of the comma that follows on the same line.
    fn comma_behind(&self, end: usize) -> Option<usize> {
        let blanks = self.text[end..]
            .bytes()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        (self.text.as_bytes().get(end + blanks) == Some(&b',')).then_some(end + blanks)
    }
}
