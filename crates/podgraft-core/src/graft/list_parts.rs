//! Cuts a long List into parts that are Lists themselves, so that a run holds the trees and plans of a few items at a
//! time.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

use crate::yaml::tree::Tree;

/// The least length of a part, in bytes: long enough that the lines around the items, which each part repeats, cost
/// nothing.
const LENGTH: usize = 64 << 10;

/// The text of a List in block style or in indented JSON, cut between its items.
pub(super) struct ListParts<'t> {
    text: &'t str,
    style: ListStyle,
    /// The ranges of items, in order and without gaps.
    parts: Vec<Range<usize>>,
}

/// How the lines of a List are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListStyle {
    Block,
    /// JSON whose items begin on lines of their own, as `kubectl get -o json` prints it.
    Json,
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

impl ListPart {
    /// Whether the tree of the part has its items in the field `items` of the document.
    pub(super) fn is_list(&self, tree: &Tree<'_>) -> bool {
        let items = tree.roots().first();
        let items = items.and_then(|&root| tree.get(root, "items"));
        let first = items.and_then(|items| tree.items(items).next());
        let before = first.and_then(|first| self.text.get(self.items..tree.start(first)));
        before.is_some_and(|before| matches!(before.trim(), "" | "-"))
    }
}

impl<'t> ListParts<'t> {
    /// The parts of a document. `None` if it is short, or if its lines are not those of a List. Whether it is one, only a
    /// parser can tell.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        if text.len() < 2 * LENGTH {
            return None;
        }
        let style = match text.trim_start().starts_with('{') {
            true => ListStyle::Json,
            false => ListStyle::Block,
        };
        let mut lines = lines_of(text, style.items_key(text)?);
        lines.next().filter(|line| style.is_items_key(line.text))?;
        let first = lines.find(Line::has_content)?;
        let (items, column) = (first.start, first.indent());
        if !style.is_item(&first, column) {
            return None;
        }
        let (mut parts, mut start, mut end) = (Vec::new(), items, text.len());
        let mut before = first;
        for line in lines {
            if style.is_item(&line, column) {
                if line.start - start >= LENGTH && style.ends_item(&before) {
                    parts.push(start..line.start);
                    start = line.start;
                }
            } else if !style.is_within(&line, column) && line.has_content() {
                end = style.ends_items(&line).then_some(line.start)?;
                break;
            }
            before = line;
        }
        let repeated = items + (text.len() - end);
        parts.push(start..end);
        (parts.len() > 1 && repeated < LENGTH).then_some(ListParts { text, style, parts })
    }

    /// Each part as a List.
    pub(super) fn lists(&self) -> impl Iterator<Item = ListPart> {
        let before = &self.text[..self.parts[0].start];
        let end = self.parts.last().map_or(0, |part| part.end);
        let behind = &self.text[end..];
        self.parts.iter().map(move |part| {
            let items = &self.text[part.clone()];
            let has_more = part.end < end;
            let (items, line_end) = match self.style {
                ListStyle::Json if has_more => items.rsplit_once(',').unwrap_or((items, "")),
                ListStyle::Json | ListStyle::Block => (items, ""),
            };
            ListPart {
                text: [before, items, line_end, behind].concat(),
                start: part.start,
                items: before.len(),
                has_more,
            }
        })
    }
}

impl ListStyle {
    /// The offset of the first line that may have the key of all items.
    fn items_key(self, text: &str) -> Option<usize> {
        let find = |key: &str| memmem::find(text.as_bytes(), key.as_bytes());
        match self {
            ListStyle::Block if text.starts_with("items:") => Some(0),
            ListStyle::Block => find("\nitems:").map(|at| at + 1),
            ListStyle::Json => {
                let before = &text[..find(r#""items": ["#)?];
                Some(before.rfind('\n')? + 1)
            }
        }
    }

    fn is_items_key(self, line: &str) -> bool {
        match self {
            ListStyle::Block => {
                let rest = line.strip_prefix("items:").map(str::trim_start);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
            }
            ListStyle::Json => line.trim() == r#""items": ["#,
        }
    }

    /// Whether an item of the list begins, whose items are in this column.
    fn is_item(self, line: &Line<'_>, column: usize) -> bool {
        let sign = match self {
            ListStyle::Block => "- ",
            ListStyle::Json => "{",
        };
        let item = line.text.as_bytes().get(column..);
        item.is_some_and(|item| item.starts_with(sign.as_bytes())) && line.indent() == column
    }

    /// Whether a line that begins no item is a line of one. The items are in this column.
    fn is_within(self, line: &Line<'_>, column: usize) -> bool {
        let least = match self {
            ListStyle::Block => column + 1,
            ListStyle::Json => column,
        };
        line.indent() >= least
    }

    /// Whether an item certainly ends with this line. Blank lines and comments may belong to the item or to the next one.
    fn ends_item(self, line: &Line<'_>) -> bool {
        match self {
            ListStyle::Block => line.has_content(),
            ListStyle::Json => line.text.trim_end().ends_with(','),
        }
    }

    /// Whether the list ends before this line, which is indented less than its items.
    fn ends_items(self, line: &Line<'_>) -> bool {
        match self {
            ListStyle::Block => line.is_key(),
            ListStyle::Json => line.text.trim_start().starts_with(']'),
        }
    }
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

    /// Whether it can be the line of a key of the whole document.
    fn is_key(&self) -> bool {
        self.text
            .starts_with(|first: char| first.is_ascii_alphabetic())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ListParts;

    #[test]
    fn indented_json_is_cut_between_its_items() {
        let items: Vec<Value> = (0..5000)
            .map(|number| json!({"kind": "Pod", "metadata": {"name": number, "items": []}}))
            .collect();
        let list = json!({"apiVersion": "v1", "items": items, "kind": "List"});
        let text = serde_json::to_string_pretty(&list).expect("a value is JSON");
        let parts = ListParts::of(&text).expect("it is a List");
        let mut found = Vec::new();
        for part in parts.lists() {
            let list: Value = serde_json::from_str(&part.text).expect("a part is JSON");
            assert_eq!(list["kind"], "List");
            found.extend(list["items"].as_array().expect("a list").clone());
        }
        assert!(parts.parts.len() > 2 && found == items);
        assert!(ListParts::of(&list.to_string()).is_none());
    }
}
