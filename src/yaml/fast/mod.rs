//! A parser for the YAML that Helm, kustomize and kubectl write, many times faster than a complete one: text in, the
//! same [`Tree`] out that the complete parser makes of it, or `None`, "don't know", which says nothing about the text.
//!
//! It knows block mappings and sequences, plain and quoted scalars on one line, flow collections (so JSON), block
//! scalars without an indentation indicator, comments, and one leading `---`. It does not know anchors, aliases, tags,
//! `? ` keys, plain and quoted scalars of several lines, directives, `...`, tabs outside of text, and whatever readers
//! disagree about. Every rule here is narrower than YAML's, never wider: in doubt it gives up.
//!
//! This file has the lines and the indentation; [`scalar`], [`block_scalar`] and [`flow`] have what stands on a line.

mod block_scalar;
mod characters;
mod flow;
mod scalar;

use super::tree::{Kind, Node, NodeId, Tree, VERBATIM};

/// Far below the complete parser's limit, so that both agree on what is too deep.
const MAX_DEPTH: usize = 64;

/// Of a key with the blanks behind it. YAML says 1024 characters (1.2.2, 7.4.2).
const MAX_KEY: usize = 1000;

/// Parses a text with at most one document.
pub(super) fn parse(text: &str) -> Option<Tree<'_>> {
    if !characters::are_known(text) {
        return None;
    }
    let mut parser = Parser::new(text);
    parser.skip_separator()?;
    parser.read_document()?;
    Some(parser.tree)
}

/// An open block collection.
#[derive(Debug, Clone, Copy)]
struct Open {
    id: u32,
    column: usize,
    is_sequence: bool,
}

/// A line that has content: where it starts, where its content does, and its end without the line end.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: usize,
    at: usize,
    end: usize,
}

/// What may stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A node that has not begun: the document's, a value's or an item's.
    New,
    /// The next entry of the innermost open collection.
    Next,
}

struct Parser<'a> {
    bytes: &'a [u8],
    tree: Tree<'a>,
    open: Vec<Open>,
    /// Where the next line starts.
    next: usize,
    /// The end of the last content.
    end: u32,
    /// Behind the `:` or `-` of the innermost collection that has no value so far.
    due: Option<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut tree = Tree::empty(text);
        tree.nodes.reserve(text.len() / 12);
        Parser { bytes: text.as_bytes(), tree, open: Vec::with_capacity(16), next: 0, end: 0, due: None }
    }

    fn byte(&self, at: usize) -> u8 {
        // A line feed as the end of the text: it ends a line either way.
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    fn skip_spaces(&self, mut at: usize) -> usize {
        while self.byte(at) == b' ' {
            at += 1;
        }
        at
    }

    fn line_end(&self, at: usize) -> usize {
        memchr::memchr(b'\n', &self.bytes[at..]).map_or(self.bytes.len(), |length| at + length)
    }

    /// The next line with more than blanks and a comment.
    fn next_line(&mut self) -> Option<Line> {
        while self.next < self.bytes.len() {
            let start = self.next;
            let at = self.skip_spaces(start);
            let line_feed = self.line_end(at);
            self.next = line_feed + 1;
            match self.byte(at) {
                b'\n' | b'\r' | b'#' => {}
                _ => {
                    let has_return = self.bytes[line_feed - 1] == b'\r';
                    return Some(Line { start, at, end: line_feed - usize::from(has_return) });
                }
            }
        }
        None
    }

    /// A `---` before the document, with nothing but a comment on its line.
    fn skip_separator(&mut self) -> Option<()> {
        let Some(line) = self.next_line() else { return Some(()) };
        let is_separator = line.at == line.start && self.bytes[line.at..line.end].starts_with(b"---");
        if !is_separator {
            self.next = line.start;
            return Some(());
        }
        self.check_rest(line.at + 3, line.end)
    }

    fn read_document(&mut self) -> Option<()> {
        while let Some(line) = self.next_line() {
            let place = self.find_place(&line)?;
            self.read_line(place, line)?;
        }
        self.end_value();
        self.close_while(|_| true);
        if !self.tree.nodes.is_empty() {
            self.tree.roots.push(NodeId(0));
        }
        Some(())
    }

    /// Closes what a line's indentation ends, and says what the line may hold.
    fn find_place(&mut self, line: &Line) -> Option<Place> {
        let column = line.at - line.start;
        let Some(&innermost) = self.open.last() else {
            return self.tree.nodes.is_empty().then_some(Place::New);
        };
        let is_item = self.is_dash(line.at);
        if self.due.is_some() {
            // A sequence may stand at the column of its key (YAML 1.2.2, 8.2.2).
            let is_indentless = is_item && !innermost.is_sequence && column == innermost.column;
            if column > innermost.column || is_indentless {
                return Some(Place::New);
            }
            self.end_value();
        }
        self.close_while(|open| open.column > column || (open.column == column && open.is_sequence && !is_item));
        let innermost = self.open.last()?;
        (innermost.column == column && innermost.is_sequence == is_item).then_some(Place::Next)
    }

    fn read_line(&mut self, mut place: Place, line: Line) -> Option<()> {
        let mut at = line.at;
        while self.is_dash(at) {
            if place == Place::New {
                self.open(Kind::BlockSequence, at, at - line.start)?;
            }
            self.end = offset(at + 1);
            self.due = Some(at + 1);
            at = self.skip_spaces(at + 1);
            if at >= line.end || self.bytes[at] == b'#' {
                return Some(());
            }
            place = Place::New;
        }
        self.read_entry_or_value(place, at, line)
    }

    fn read_entry_or_value(&mut self, place: Place, at: usize, line: Line) -> Option<()> {
        if matches!(self.bytes[at], b'[' | b'{' | b'|' | b'>') {
            // In front of a `:` they would be a key: `read_value` gives up on anything behind them.
            return if place == Place::New { self.read_value(at, line.end) } else { None };
        }
        let scalar = self.scan_scalar(at, line.end)?;
        let Some(colon) = scalar.colon else {
            let is_value = place == Place::New && !self.open.is_empty();
            return is_value.then(|| self.push_scalar(scalar));
        };
        if colon - at > MAX_KEY {
            return None;
        }
        if place == Place::New {
            self.open(Kind::BlockMapping, at, at - line.start)?;
        }
        self.push_scalar(scalar);
        self.end = offset(colon + 1);
        let value = self.skip_spaces(colon + 1);
        if value >= line.end || self.bytes[value] == b'#' {
            self.due = Some(colon + 1);
            return Some(());
        }
        if matches!(self.bytes[value], b'[' | b'{' | b'|' | b'>') {
            return self.read_value(value, line.end);
        }
        let scalar = self.scan_scalar(value, line.end)?;
        // `key: value: x` is not YAML.
        scalar.colon.is_none().then(|| self.push_scalar(scalar))
    }

    /// A value that may have several lines.
    fn read_value(&mut self, at: usize, line_end: usize) -> Option<()> {
        self.due = None;
        match self.bytes[at] {
            b'|' | b'>' => self.read_block_scalar(at, line_end),
            _ => self.read_flow(at),
        }
    }

    fn is_dash(&self, at: usize) -> bool {
        self.byte(at) == b'-' && matches!(self.byte(at + 1), b' ' | b'\n' | b'\r')
    }

    /// Nothing but a comment may stand behind a value; it needs a blank in front.
    fn check_rest(&self, from: usize, line_end: usize) -> Option<()> {
        let at = self.skip_spaces(from);
        (at >= line_end || (at > from && self.bytes[at] == b'#')).then_some(())
    }

    fn open(&mut self, kind: Kind, at: usize, column: usize) -> Option<()> {
        let id = self.push(kind, at, at, VERBATIM);
        self.open.push(Open { id, column, is_sequence: kind == Kind::BlockSequence });
        (self.open.len() <= MAX_DEPTH).then_some(())
    }

    fn close_while(&mut self, is_over: impl Fn(&Open) -> bool) {
        while let Some(open) = self.open.pop_if(|open| is_over(open)) {
            let after = offset(self.tree.nodes.len());
            let node = &mut self.tree.nodes[open.id as usize];
            node.end = self.end;
            node.after = after;
        }
    }

    /// A value that is due and has not come is not written at all.
    fn end_value(&mut self) {
        if let Some(at) = self.due.take() {
            self.push(Kind::Absent, at, at, VERBATIM);
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize, extra: u32) -> u32 {
        self.due = None;
        let id = offset(self.tree.nodes.len());
        self.tree.nodes.push(Node {
            kind,
            has_properties: false,
            is_aliased: false,
            start: offset(start),
            end: offset(end),
            after: id + 1,
            extra,
        });
        self.end = offset(end);
        id
    }

    fn push_decoded(&mut self, kind: Kind, start: usize, end: usize, value: String) {
        let extra = offset(self.tree.decoded.len());
        self.tree.decoded.push(value.into_boxed_str());
        self.push(kind, start, end, extra);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "parse() refuses texts over 4 GiB")]
fn offset(at: usize) -> u32 {
    at as u32
}
