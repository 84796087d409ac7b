//! Reads the layout of the text around an edit: indentation, list style, line ends. New text follows it.

use serde_json::Value;

use crate::yaml::tree::{NodeId, NodeKind, Tree};

use super::emit::{BlockStyle, FlowStyle, block_at_end};

/// Reads the block style of an object: what most of its block collections use. Its line end is the first of the
/// document.
pub(super) fn block_style(tree: &Tree<'_>, object: NodeId) -> BlockStyle {
    let mut steps = IndentVotes::default();
    let mut offsets = IndentVotes::default();
    // The stack of block collections around the current node: is it a mapping, its column, the id behind it.
    let mut around: Vec<(bool, usize, NodeId)> = Vec::with_capacity(16);
    for id in tree.within(object) {
        let kind = tree.kind(id);
        if !matches!(kind, NodeKind::BlockMapping | NodeKind::BlockSequence) {
            continue;
        }
        while around.pop_if(|(.., after)| *after <= id).is_some() {}
        let node_column = tree.column(id);
        if let Some(&(true, outer, _)) = around.last()
            && let Some(offset) = node_column.checked_sub(outer)
        {
            let votes = if kind == NodeKind::BlockSequence {
                &mut offsets
            } else {
                &mut steps
            };
            votes.cast(offset);
        }
        around.push((kind == NodeKind::BlockMapping, node_column, tree.after(id)));
    }
    let step = steps.winner().filter(|&step| step > 0).unwrap_or(2);
    BlockStyle {
        step,
        list_offset: offsets.winner().unwrap_or(0),
        line_end: tree.line_end(),
    }
}

/// Counts how often each indentation occurs. In a tie, the first one wins.
#[derive(Default)]
struct IndentVotes(Vec<(usize, usize)>);

impl IndentVotes {
    fn cast(&mut self, value: usize) {
        match self.0.iter_mut().find(|(known, _)| *known == value) {
            Some((_, votes)) => *votes += 1,
            None => self.0.push((value, 1)),
        }
    }

    fn winner(&self) -> Option<usize> {
        let most_votes = self.0.iter().map(|(_, votes)| *votes).max()?;
        self.0
            .iter()
            .find(|(_, votes)| *votes == most_votes)
            .map(|(value, _)| *value)
    }
}

/// The start of the line of an offset.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |found| found + 1)
}

/// The end of the line of an offset, before its line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |found| at + found);
    if end > at && text.as_bytes()[end - 1] == b'\r' {
        end - 1
    } else {
        end
    }
}

/// The start of the next line, or the text's end.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |found| at + found + 1)
}

/// The start of the line behind content that ends at `end`. The span of a block scalar that keeps its blank lines (`|+`)
/// includes its last line end.
pub(super) fn line_behind(text: &str, end: usize) -> usize {
    match text[..end].ends_with('\n') {
        true => end,
        false => next_line(text, end),
    }
}

/// The start of the comment lines right above the line whose content begins at `at`, in the same column: they belong to
/// that content. Without such lines, the start of its own line.
pub(super) fn comments_above(text: &str, at: usize) -> usize {
    let content_line = line_start(text, at);
    let blanks = &text[content_line..at];
    let mut start = content_line;
    while start > 0 && blanks.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
        let above = line_start(text, start - 1);
        if !text[above..start]
            .strip_prefix(blanks)
            .is_some_and(|rest| rest.starts_with('#'))
        {
            break;
        }
        start = above;
    }
    start
}

/// The offset behind the comment lines from here on that are indented deeper than `column`: they belong to what
/// precedes them, and are often a commented-out part of it. So does a block of comments in `column` with a
/// commented-out item (`# - `), which must not be cut in two.
pub(super) fn behind_attached_comments(text: &str, from: usize, column: usize) -> usize {
    let (mut at, mut cursor) = (from, from);
    while cursor < text.len() {
        match comment_at(text, cursor) {
            Some((indent, _)) if indent > column => {
                cursor = next_line(text, cursor);
                at = cursor;
            }
            Some((indent, _)) if indent == column => {
                let Some(end) = behind_commented_items(text, cursor, column) else {
                    break;
                };
                (at, cursor) = (end, end);
            }
            None if text[cursor..line_end(text, cursor)]
                .trim_matches(' ')
                .is_empty() =>
            {
                cursor = next_line(text, cursor);
            }
            _ => break,
        }
    }
    at
}

/// The number of blanks that a line begins with.
fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The offset behind the last commented-out item and its lines, in the block of comment lines that begins here.
fn behind_commented_items(text: &str, from: usize, column: usize) -> Option<usize> {
    let (mut cursor, mut dash, mut end) = (from, None, None);
    while cursor < text.len()
        && let Some((indent, comment)) = comment_at(text, cursor)
        && indent >= column
    {
        let words = comment.trim_start_matches('#').trim_start();
        let at = line_end(text, cursor) - cursor - words.len();
        cursor = next_line(text, cursor);
        if words.starts_with("- ") {
            dash = Some(at);
        }
        if dash.is_some_and(|dash| at > dash || words.starts_with("- ")) {
            end = Some(cursor);
        }
    }
    end
}

/// The indentation and the text of a comment line; `None` if the line is none.
fn comment_at(text: &str, at: usize) -> Option<(usize, &str)> {
    let line = &text[at..line_end(text, at)];
    let comment = line.trim_start_matches(' ');
    let indent = line.len() - comment.len();
    comment.starts_with('#').then_some((indent, comment))
}

/// Lines behind a block scalar that may become a part of its content: blank lines and comments.
#[derive(Clone, Copy)]
pub(super) struct BlockScalarEnd {
    /// A longer line of blanks is content, and so is a comment that is indented deeper.
    column: usize,
    /// All blank lines are content (`|+`).
    keeps_blanks: bool,
}

impl BlockScalarEnd {
    /// That of the text of a new value whose key or dash is in a column. `None` if it does not end in a block scalar.
    pub(super) fn of_value(value: &Value, column: usize) -> Option<Self> {
        let text = block_at_end(value)?;
        let keeps_blanks = text.ends_with("\n\n");
        Some(BlockScalarEnd {
            column,
            keeps_blanks,
        })
    }

    /// That of a node. `None` if it is no block scalar.
    pub(super) fn of_node(tree: &Tree<'_>, node: NodeId) -> Option<Self> {
        if !matches!(tree.kind(node), NodeKind::Literal | NodeKind::Folded) {
            return None;
        }
        let slice = tree.slice(node);
        let end = BlockScalarEnd::of_header(slice, tree.text(), tree.start(node))?;
        // The header may be all that there is.
        let (header, lines) = slice.split_once('\n').unwrap_or((slice, ""));
        let mut lines = lines.lines().filter(|line| !is_blank(line));
        match lines.next() {
            // With an indicator, the first line may be indented deeper than the others.
            Some(first) if !header.contains(|char: char| char.is_ascii_digit()) => {
                let column = indent_of(first).saturating_sub(1);
                Some(BlockScalarEnd { column, ..end })
            }
            _ => Some(end),
        }
    }

    /// That of a block scalar with this header, in the line of an offset. `None` if it is none.
    pub(super) fn of_header(header: &str, text: &str, at: usize) -> Option<Self> {
        let header = header.trim_start_matches(' ').lines().next()?;
        let indicators = header.strip_prefix(['|', '>'])?;
        Some(BlockScalarEnd {
            column: indent_of(&text[line_start(text, at)..]),
            keeps_blanks: indicators.split('#').next()?.contains('+'),
        })
    }

    /// The offset behind the lines from `from` on that would become content. `removed` gives the end of what is removed
    /// from an offset on: the lines behind stand behind the block scalar, too.
    pub(super) fn behind_content(
        self,
        text: &str,
        from: usize,
        removed: impl Fn(usize) -> Option<usize>,
    ) -> usize {
        let (mut at, mut cursor) = (from, from);
        while cursor < text.len() {
            if let Some(end) = removed(cursor) {
                cursor = end;
                continue;
            }
            let line = &text[cursor..line_end(text, cursor)];
            let is_content = match comment_at(text, cursor) {
                Some((indent, _)) if indent > self.column => true,
                None if is_blank(line) => {
                    self.keeps_blanks || line.len() > self.column || line.contains('\t')
                }
                _ => break,
            };
            cursor = next_line(text, cursor);
            if is_content {
                at = cursor;
            }
        }
        at
    }
}

/// The line end in use at an offset: that of its line, else of the line before it.
pub(super) fn line_end_at(text: &str, at: usize) -> &'static str {
    let behind = memchr::memchr(b'\n', &text.as_bytes()[at..]).map(|found| at + found);
    match behind.or_else(|| memchr::memrchr(b'\n', &text.as_bytes()[..at])) {
        Some(end) if end > 0 && text.as_bytes()[end - 1] == b'\r' => "\r\n",
        Some(_) | None => "\n",
    }
}

/// The flow style of a flow collection and of what is around it.
pub(super) fn flow_style(tree: &Tree<'_>, id: NodeId) -> FlowStyle {
    let text = tree.text();
    let root = tree
        .roots()
        .iter()
        .copied()
        .find(|&root| root <= id && id < tree.after(root));
    let outer = root.filter(|&root| tree.kind(root).is_flow());
    let is_json =
        outer.is_some_and(|root| tree.slice(root).starts_with('{') && keys_are_quoted(tree, root));
    let written = tree.slice(outer.unwrap_or(id));
    let bytes = text.as_bytes();
    let mut colon_space = None;
    let mut comma_space = None;
    for node in tree.within(outer.unwrap_or(id)) {
        let end = tree.span(node).end;
        colon_space = colon_space.or_else(|| has_blank_behind(bytes, end, b':'));
        comma_space = comma_space.or_else(|| has_blank_behind(bytes, end, b','));
        if colon_space.is_some() && comma_space.is_some() {
            break;
        }
    }
    FlowStyle {
        is_json,
        colon_space: !is_json || colon_space.unwrap_or(true),
        comma_space: comma_space.unwrap_or(colon_space.unwrap_or(true)),
        brace_space: written.starts_with("{ "),
    }
}

/// Whether a blank follows the sign that is next behind a place; `None` if the next sign is another one.
fn has_blank_behind(bytes: &[u8], end: usize, sign: u8) -> Option<bool> {
    let mut rest = bytes[end..].trim_ascii_start().iter();
    let is_next = rest.next() == Some(&sign);
    is_next.then(|| rest.next().is_some_and(u8::is_ascii_whitespace))
}

fn keys_are_quoted(tree: &Tree<'_>, mapping: NodeId) -> bool {
    tree.entries(mapping)
        .all(|(key, _)| tree.kind(key) == NodeKind::DoubleQuoted)
}
