//! Parses flow collections, `[a, b]` and `{a: b}`, on one line or several, and so JSON.

use super::super::tree::{NodeKind, VERBATIM};
use super::scalar::{ScannedScalar, can_begin_plain};
use super::{MAX_DEPTH, MAX_KEY, Parser, offset};

/// An open flow collection.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenFlowCollection {
    id: u32,
    is_mapping: bool,
}

/// The tokens that may come next in a flow collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedToken {
    /// An item, a key, or the closing bracket. YAML allows a comma before the bracket.
    Entry,
    /// The value after the `:` that ends at `from`.
    Value { from: usize },
    /// A comma or the closing bracket.
    Comma,
}

impl Parser<'_> {
    /// Reads a flow collection, and checks that nothing follows it on its last line.
    pub(super) fn read_flow(&mut self, at: usize) -> Option<()> {
        let is_root = self.open.is_empty();
        let end = self.read_brackets(at)?;
        self.end_line(end)?;
        // A flow collection at the root is the whole document.
        (!is_root || self.next_line().is_none()).then_some(())
    }

    fn read_brackets(&mut self, at: usize) -> Option<usize> {
        let mut open = std::mem::take(&mut self.brackets);
        let mut at = self.open_flow(at, &mut open)?;
        let mut expected = ExpectedToken::Entry;
        while let Some(&innermost) = open.last() {
            at = self.skip_flow_blanks(at)?;
            (at, expected) = match (self.bytes[at], expected) {
                (b']' | b'}', ExpectedToken::Entry | ExpectedToken::Comma) => {
                    open.pop();
                    (self.close_flow(at, innermost)?, ExpectedToken::Comma)
                }
                (b',', ExpectedToken::Comma) => (at + 1, ExpectedToken::Entry),
                (b',' | b'}', ExpectedToken::Value { from }) => {
                    self.push(NodeKind::Absent, from, from, VERBATIM);
                    (at, ExpectedToken::Comma)
                }
                (_, ExpectedToken::Comma) => return None,
                (_, ExpectedToken::Entry) if innermost.is_mapping => {
                    let key = self.scan_flow_scalar(at)?;
                    let from = self.find_flow_colon(at, key)? + 1;
                    self.push_scalar(at, key);
                    (from, ExpectedToken::Value { from })
                }
                (b'[' | b'{', _) => (self.open_flow(at, &mut open)?, ExpectedToken::Entry),
                _ => {
                    let scalar = self.scan_flow_scalar(at)?;
                    self.push_scalar(at, scalar);
                    (scalar.end as usize, ExpectedToken::Comma)
                }
            };
        }
        self.brackets = open;
        Some(at)
    }

    fn open_flow(&mut self, at: usize, open: &mut Vec<OpenFlowCollection>) -> Option<usize> {
        let is_mapping = self.bytes[at] == b'{';
        let id = self.push(
            if is_mapping {
                NodeKind::FlowMapping
            } else {
                NodeKind::FlowSequence
            },
            at,
            at,
            VERBATIM,
        );
        open.push(OpenFlowCollection { id, is_mapping });
        (open.len() <= MAX_DEPTH).then_some(at + 1)
    }

    fn close_flow(&mut self, at: usize, open: OpenFlowCollection) -> Option<usize> {
        let after = offset(self.tree.nodes.len());
        let node = &mut self.tree.nodes[open.id as usize];
        node.end = offset(at + 1);
        node.after = after;
        self.end = offset(at + 1);
        // `None` for a bracket of the wrong kind, as in `[}`.
        ((self.bytes[at] == b'}') == open.is_mapping).then_some(at + 1)
    }

    /// Returns the offset of the next byte that is not blank. Lines must be indented deeper than the collection's
    /// parent, as YAML says (1.2.2, 8.2.1) although not all readers insist. A line that could be `---` or `...` is
    /// rejected. Tabs are blanks only in a collection at the root, as in JSON.
    fn skip_flow_blanks(&self, mut at: usize) -> Option<usize> {
        let parent = self.open.last().map(|open| open.column);
        loop {
            match *self.bytes.get(at)? {
                b' ' | b'\r' => at += 1,
                b'\t' if parent.is_none() => at += 1,
                b'\n' => {
                    let content = self.skip_spaces(at + 1);
                    let column = content - at - 1;
                    let is_blank = matches!(self.byte(content), b'\n' | b'\r' | b'\t');
                    let is_indented = parent.is_none_or(|parent| column > parent);
                    let may_be_marker = column == 0 && matches!(self.byte(content), b'-' | b'.');
                    if (!is_blank && !is_indented) || may_be_marker {
                        return None;
                    }
                    at = content;
                }
                _ => return Some(at),
            }
        }
    }

    fn scan_flow_scalar(&mut self, at: usize) -> Option<ScannedScalar> {
        match self.bytes[at] {
            quote @ (b'"' | b'\'') => {
                let scalar = self.scan_quoted(at, quote, None)?;
                let behind = self.byte(self.skip_spaces(scalar.end as usize));
                matches!(behind, b',' | b']' | b'}' | b':' | b'\n' | b'\r').then_some(scalar)
            }
            _ => self.scan_flow_plain(at),
        }
    }

    /// Scans a plain scalar in a flow collection, where it also ends at brackets and commas (YAML 1.2.2, 7.3.3).
    fn scan_flow_plain(&self, at: usize) -> Option<ScannedScalar> {
        let is_lone_dash = self.bytes[at] == b'-' && !can_begin_plain(self.byte(at + 1));
        if is_lone_dash || !can_begin_plain(self.bytes[at]) {
            return None;
        }
        let mut end = at + 1;
        loop {
            match self.byte(end) {
                b',' | b']' | b'}' | b'\n' | b'\r' => break,
                b'[' | b'{' | b'?' | b'\t' => return None,
                b'#' if self.bytes[end - 1] == b' ' => return None,
                b':' => match self.byte(end + 1) {
                    b' ' | b'\n' | b'\r' => break,
                    b',' | b'[' | b']' | b'{' | b'}' | b'\t' => return None,
                    _ => end += 1,
                },
                _ => end += 1,
            }
        }
        while self.bytes[end - 1] == b' ' {
            end -= 1;
        }
        Some(ScannedScalar {
            kind: NodeKind::Plain,
            end: offset(end),
            extra: VERBATIM,
            colon: None,
        })
    }

    /// Finds the `:` after a key, on the same line. A quoted key needs no blank after its `:`, as in JSON (YAML
    /// 1.2.2, 7.4.2).
    fn find_flow_colon(&self, at: usize, key: ScannedScalar) -> Option<usize> {
        let colon = self.skip_spaces(key.end as usize);
        let ends_plain = matches!(self.byte(colon + 1), b' ' | b'\n' | b'\r');
        let is_colon = self.byte(colon) == b':' && (ends_plain || key.kind != NodeKind::Plain);
        (is_colon && colon - at <= MAX_KEY).then_some(colon)
    }
}
