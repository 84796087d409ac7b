//! Cuts a long List into parts that are Lists themselves, so that a run holds the trees and plans of a few items at a
//! time.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

/// The least length of a part, in bytes: long enough that the lines around the items, which each part repeats, cost
/// nothing.
const LENGTH: usize = 64 << 10;

/// The text of a List in block style, cut between its items.
pub(super) struct ListParts<'t> {
    text: &'t str,
    /// The ranges of items, in order and without gaps.
    parts: Vec<Range<usize>>,
}

/// Some of the items of a List.
pub(super) struct ListPart {
    /// The items, between the lines before and behind all items of the List.
    pub text: String,
    /// The byte offset of the items in the List.
    pub start: usize,
    /// The byte offset of the items in `text`.
    pub items: usize,
    /// Whether items of the List follow.
    pub has_more: bool,
}

impl<'t> ListParts<'t> {
    /// The parts of a document. `None` if it is short, or if its lines are not those of a List in block style. Whether it
    /// is one, only a parser can tell.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        if text.len() < 2 * LENGTH {
            return None;
        }
        let mut lines = lines_of(text, items_key(text)?);
        lines.next().filter(|line| is_items_key(line.text))?;
        let first = lines.find(Line::has_content)?;
        let (items, column) = (first.start, first.indent());
        if !first.is_item(column) {
            return None;
        }
        let (mut parts, mut start, mut end) = (Vec::new(), items, text.len());
        let mut before = first;
        for line in lines {
            if line.is_item(column) {
                // Blank lines and comments before an item may belong to either side.
                if line.start - start >= LENGTH && before.has_content() {
                    parts.push(start..line.start);
                    start = line.start;
                }
            } else if !line.is_below(column) && line.has_content() {
                end = line.is_key().then_some(line.start)?;
                break;
            }
            before = line;
        }
        let repeated = items + (text.len() - end);
        parts.push(start..end);
        (parts.len() > 1 && repeated < LENGTH).then_some(ListParts { text, parts })
    }

    /// Each part as a List.
    pub(super) fn lists(&self) -> impl Iterator<Item = ListPart> {
        let before = &self.text[..self.parts[0].start];
        let end = self.parts.last().map_or(0, |part| part.end);
        let behind = &self.text[end..];
        self.parts.iter().map(move |part| ListPart {
            text: [before, &self.text[part.clone()], behind].concat(),
            start: part.start,
            items: before.len(),
            has_more: part.end < end,
        })
    }
}

/// The offset of the first line that may have the key of all items.
fn items_key(text: &str) -> Option<usize> {
    let is_first = text.starts_with("items:");
    let behind_a_line = || memmem::find(text.as_bytes(), b"\nitems:").map(|at| at + 1);
    is_first.then_some(0).or_else(behind_a_line)
}

fn is_items_key(line: &str) -> bool {
    let rest = line.strip_prefix("items:").map(str::trim_start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

/// A line with its end.
struct Line<'t> {
    start: usize,
    text: &'t str,
}

/// The lines from an offset on.
fn lines_of(text: &str, mut start: usize) -> impl Iterator<Item = Line<'_>> {
    let ends = memchr_iter(b'\n', &text.as_bytes()[start..]);
    let ends = ends.map(move |at| start + at + 1).chain([text.len()]);
    ends.map(move |end| {
        let line = Line {
            start,
            text: &text[start..end],
        };
        start = end;
        line
    })
}

impl Line<'_> {
    /// Whether it is neither blank nor a comment.
    fn has_content(&self) -> bool {
        let text = self.text.trim_start();
        !text.is_empty() && !text.starts_with('#')
    }

    fn indent(&self) -> usize {
        self.text.bytes().take_while(|byte| *byte == b' ').count()
    }

    /// Whether an item of a list in this column begins.
    fn is_item(&self, column: usize) -> bool {
        let item = self.text.as_bytes().get(column..);
        item.is_some_and(|item| item.starts_with(b"- ")) && self.indent() == column
    }

    /// Whether it is indented deeper than this column.
    fn is_below(&self, column: usize) -> bool {
        let blanks = self.text.as_bytes().get(..=column);
        blanks.is_some_and(|blanks| blanks.iter().all(|byte| *byte == b' '))
    }

    /// Whether it can be the line of a key of the whole document.
    fn is_key(&self) -> bool {
        self.text
            .starts_with(|first: char| first.is_ascii_alphabetic())
    }
}
