//! A parser for the YAML that Helm, kustomize and kubectl write, many times faster than a complete one. It makes the
//! same [`Tree`] of a text as the complete parser, or `None`, which only means that it gave up, not that the text is
//! wrong.
//!
//! It supports block mappings and sequences, plain, quoted and block scalars, flow collections (so JSON), comments,
//! and one leading `---`. It does not support anchors, aliases, tags, `? ` keys, keys and flow scalars of several
//! lines, indentation indicators, directives, `...`, tabs outside of text, and everything that readers disagree
//! about. Every rule here is narrower than YAML's, never wider: in doubt it gives up.
//!
//! This file handles lines and indentation. [`scalar`], [`folding`], [`block_scalar`] and [`flow`] handle the content
//! of lines. [`mod@reparse`] parses an edited text around its edits.

mod block_scalar;
mod characters;
mod flow;
mod folding;
mod reparse;
mod scalar;

use super::tree::{Node, NodeId, NodeKind, Tree, VERBATIM};
use flow::OpenFlowCollection;
use reparse::NOTHING_DUE;
pub use reparse::ReplacedRange;
pub(super) use reparse::{Checkpoint, reparse};
use scalar::ScannedScalar;

/// The deepest nesting. Far below the complete parser's limit, so only that one decides what is too deep.
const MAX_DEPTH: usize = 64;

/// The longest key, in bytes, with the blanks before its `:`. YAML's limit is 1024 characters (1.2.2, 7.4.2).
const MAX_KEY: usize = 1000;

/// Parses a text with at most one document.
pub(super) fn parse(text: &str) -> Option<Tree<'_>> {
    if !characters::are_known(text) {
        return None;
    }
    let mut parser = Parser::new(text);
    parser.skip_separator()?;
    while parser.read_next()? {}
    Some(parser.finish())
}

/// An open block collection.
#[derive(Debug, Clone, Copy)]
struct OpenBlockCollection {
    id: u32,
    column: usize,
    is_sequence: bool,
}

/// A line that has content: the offsets of its start and of its content.
#[derive(Debug, Clone, Copy)]
struct ContentLine {
    start: usize,
    at: usize,
}

/// What the current position may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodePosition {
    /// A new node: the document's root, or a value or item.
    New,
    /// The next entry of the innermost open collection.
    Next,
}

struct Parser<'a> {
    bytes: &'a [u8],
    tree: Tree<'a>,
    open: Vec<OpenBlockCollection>,
    /// Room for the flow collections that are open at a time.
    brackets: Vec<OpenFlowCollection>,
    /// The offset at which the next line starts.
    next: usize,
    /// The end of the last content.
    end: u32,
    /// The offset after the last `:` or `-`, as long as its value has not come.
    due: Option<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let tree = Tree {
            is_plain: true,
            nodes: Vec::with_capacity(text.len() / 12),
            marks: Vec::with_capacity(text.len() / 24),
            ..Tree::empty(text)
        };
        Parser {
            bytes: text.as_bytes(),
            tree,
            open: Vec::with_capacity(16),
            brackets: Vec::new(),
            next: 0,
            end: 0,
            due: None,
        }
    }

    #[inline]
    fn byte(&self, at: usize) -> u8 {
        // The end of the text ends a line as a line feed does.
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    #[inline]
    fn skip_spaces(&self, mut at: usize) -> usize {
        while self.byte(at) == b' ' {
            at += 1;
        }
        at
    }

    fn line_end(&self, at: usize) -> usize {
        memchr::memchr(b'\n', &self.bytes[at..]).map_or(self.bytes.len(), |length| at + length)
    }

    /// Finds the next line with more than blanks and a comment. The caller moves `next` past it.
    fn next_line(&mut self) -> Option<ContentLine> {
        while self.next < self.bytes.len() {
            let start = self.next;
            let at = characters::skip_indentation(self.bytes, start);
            if !self.skip_rest(at) {
                return Some(ContentLine { start, at });
            }
        }
        None
    }

    /// Moves to the next line if at most a comment is left of this one. Returns whether it did.
    #[inline(always)]
    fn skip_rest(&mut self, at: usize) -> bool {
        self.next = match self.byte(at) {
            b'\n' => at + 1,
            b'\r' => at + 2,
            b'#' => self.line_end(at) + 1,
            _ => return false,
        };
        true
    }

    /// Moves to the next line. `None` if more than a comment follows the value, or a comment without a blank before
    /// it.
    fn end_line(&mut self, from: usize) -> Option<()> {
        let at = self.skip_spaces(from);
        let is_comment_apart = at > from || self.byte(at) != b'#';
        (is_comment_apart && self.skip_rest(at)).then_some(())
    }

    /// Skips a `---` before the document. `None` if more than a comment is on its line.
    fn skip_separator(&mut self) -> Option<()> {
        let Some(line) = self.next_line() else {
            return Some(());
        };
        if line.at != line.start || !self.bytes[line.at..].starts_with(b"---") {
            self.next = line.start;
            return Some(());
        }
        self.end_line(line.at + 3)
    }

    /// Reads the next line with content and the lines that continue it. `false` at the end of the text.
    #[inline(always)]
    fn read_next(&mut self) -> Option<bool> {
        let at = offset(self.next);
        let due = self.due.map_or(NOTHING_DUE, offset);
        let mark = Checkpoint {
            at,
            nodes: offset(self.tree.nodes.len()),
            due,
            end: self.end,
        };
        let Some(line) = self.next_line() else {
            return Some(false);
        };
        self.tree.marks.push(mark);
        let place = self.find_place(&line)?;
        self.read_line(place, line)?;
        Some(true)
    }

    fn finish(mut self) -> Tree<'a> {
        self.end_value();
        self.close_while(|_| true);
        if !self.tree.nodes.is_empty() {
            self.tree.roots.push(NodeId(0));
        }
        self.tree
    }

    /// Closes the collections that a line's indentation ends, and returns what the line may begin.
    fn find_place(&mut self, line: &ContentLine) -> Option<NodePosition> {
        let column = line.at - line.start;
        let Some(&innermost) = self.open.last() else {
            return self.tree.nodes.is_empty().then_some(NodePosition::New);
        };
        let is_item = self.is_dash(line.at);
        if self.due.is_some() {
            // A sequence may stand at the column of its key (YAML 1.2.2, 8.2.2).
            let is_indentless = is_item && !innermost.is_sequence && column == innermost.column;
            if column > innermost.column || is_indentless {
                return Some(NodePosition::New);
            }
            self.end_value();
        }
        self.close_while(|open| {
            open.column > column || (open.column == column && open.is_sequence && !is_item)
        });
        let innermost = self.open.last()?;
        (innermost.column == column && innermost.is_sequence == is_item)
            .then_some(NodePosition::Next)
    }

    fn read_line(&mut self, mut place: NodePosition, line: ContentLine) -> Option<()> {
        let mut at = line.at;
        while self.is_dash(at) {
            if place == NodePosition::New {
                self.open(NodeKind::BlockSequence, at, at - line.start)?;
            }
            self.end = offset(at + 1);
            self.due = Some(at + 1);
            at = self.skip_spaces(at + 1);
            if self.skip_rest(at) {
                return Some(());
            }
            place = NodePosition::New;
        }
        if let b'[' | b'{' | b'|' | b'>' = self.bytes[at] {
            // As a key they are not supported: the functions that read them give up on a `:` after them.
            return if place == NodePosition::New {
                self.read_value(at)
            } else {
                None
            };
        }
        let scalar = self.scan_scalar(at)?;
        match scalar.colon {
            Some(colon) => {
                if place == NodePosition::New {
                    self.open(NodeKind::BlockMapping, at, at - line.start)?;
                }
                self.read_entry(at, scalar, colon.get() as usize)
            }
            None if place == NodePosition::New && !self.open.is_empty() => {
                self.push_value(at, scalar)
            }
            None => None,
        }
    }

    #[inline(always)]
    fn read_entry(&mut self, at: usize, key: ScannedScalar, colon: usize) -> Option<()> {
        if colon - at > MAX_KEY {
            return None;
        }
        self.push_scalar(at, key);
        self.end = offset(colon + 1);
        self.due = Some(colon + 1);
        let at = self.skip_spaces(colon + 1);
        if self.skip_rest(at) {
            Some(())
        } else {
            self.read_value(at)
        }
    }

    fn read_value(&mut self, at: usize) -> Option<()> {
        match self.bytes[at] {
            b'|' | b'>' => self.read_block_scalar(at),
            b'[' | b'{' => self.read_flow(at),
            _ => {
                let scalar = self.scan_scalar(at)?;
                // `key: value: x` is not YAML.
                if scalar.colon.is_some() {
                    None
                } else {
                    self.push_value(at, scalar)
                }
            }
        }
    }

    fn push_value(&mut self, at: usize, scalar: ScannedScalar) -> Option<()> {
        let end = scalar.end as usize;
        let parent = self.open.last().map_or(0, |open| open.column);
        // Nearly always the line ends here, and the next is not deep enough to go on.
        if self.byte(end) == b'\n' && self.byte(end + 1 + parent) != b' ' {
            self.push_scalar(at, scalar);
            self.next = end + 1;
            return Some(());
        }
        if scalar.kind == NodeKind::Plain
            && let Some(next) = self.find_plain_continuation(end)
        {
            return self.read_plain_lines(at, end, next);
        }
        self.push_scalar(at, scalar);
        self.end_line(end)
    }

    #[inline]
    fn is_dash(&self, at: usize) -> bool {
        self.byte(at) == b'-' && matches!(self.byte(at + 1), b' ' | b'\n' | b'\r')
    }

    fn open(&mut self, kind: NodeKind, at: usize, column: usize) -> Option<()> {
        let id = self.push(kind, at, at, offset(column));
        self.open.push(OpenBlockCollection {
            id,
            column,
            is_sequence: kind == NodeKind::BlockSequence,
        });
        (self.open.len() <= MAX_DEPTH).then_some(())
    }

    fn close_while(&mut self, is_over: impl Fn(&OpenBlockCollection) -> bool) {
        while let Some(open) = self.open.pop_if(|open| is_over(open)) {
            let after = offset(self.tree.nodes.len());
            let node = &mut self.tree.nodes[open.id as usize];
            node.end = self.end;
            node.after = after;
        }
    }

    /// Adds the absent value of a `:` or `-` that got none.
    fn end_value(&mut self) {
        if let Some(at) = self.due.take() {
            self.push(NodeKind::Absent, at, at, VERBATIM);
        }
    }

    #[inline]
    fn push(&mut self, kind: NodeKind, start: usize, end: usize, extra: u32) -> u32 {
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

    /// Stores a scalar's value that differs from its text, and returns the `extra` for its node.
    fn keep(&mut self, value: String) -> u32 {
        let extra = offset(self.tree.decoded.len());
        self.tree.decoded.push(value.into_boxed_str());
        extra
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "parse() refuses texts over 4 GiB"
)]
fn offset(at: usize) -> u32 {
    at as u32
}
