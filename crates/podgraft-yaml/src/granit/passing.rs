//! Moves the cursor over the text between two nodes that no event describes: indicators, properties, comments.

use granit_parser::Span;

use super::{AnchorSpan, TreeBuilder, is_line_end, line_start};
use crate::tree::NodeKind;

impl TreeBuilder<'_> {
    /// Moves the cursor past the indicator in front of the next node. Returns whether there is one: a flow item may
    /// have none, a key need not have a `?`, and a key without a value need not have a `:`.
    pub(super) fn eat_indicator(&mut self) -> bool {
        let Some(open) = self.open.last_mut() else {
            return false;
        };
        let is_first = open.children == 0;
        open.children += 1;
        let is_key = open.children % 2 == 1;
        match self.tree.kind(open.id) {
            NodeKind::BlockSequence => self.eat(b'-'),
            NodeKind::FlowSequence => !is_first && self.eat(b','),
            NodeKind::BlockMapping if is_key => self.eat_question_mark(),
            NodeKind::FlowMapping if is_key => {
                if !is_first {
                    self.eat(b',');
                }
                self.eat_question_mark()
            }
            NodeKind::FlowMapping => self.eat(b':'),
            NodeKind::BlockMapping => self.eat_block_colon(),
            NodeKind::Plain
            | NodeKind::SingleQuoted
            | NodeKind::DoubleQuoted
            | NodeKind::Literal
            | NodeKind::Folded => false,
            NodeKind::Absent | NodeKind::Alias => false,
        }
    }

    pub(super) fn eat(&mut self, indicator: u8) -> bool {
        let at = self.next_token();
        let is_found = self.byte_at(at) == Some(indicator);
        if is_found {
            self.cursor = at + 1;
        }
        is_found
    }

    /// Moves past a `?` that is followed by a blank. Otherwise it begins a plain scalar.
    pub(super) fn eat_question_mark(&mut self) -> bool {
        let behind = self.byte_at(self.next_token() + 1);
        matches!(behind, None | Some(b' ' | b'\t' | b'\r' | b'\n')) && self.eat(b'?')
    }

    /// Moves past the `:` of a block mapping's entry. It follows an implicit key on the same line, and is in the
    /// column of its mapping after an explicit key. Any other `:` begins an entry without a key, or a plain scalar.
    pub(super) fn eat_block_colon(&mut self) -> bool {
        let bytes = self.tree.text.as_bytes();
        let at = self.next_token();
        let is_same_line = line_start(bytes, 0, at) <= self.cursor;
        let is_indicator = matches!(
            self.byte_at(at + 1),
            None | Some(b' ' | b'\t' | b'\r' | b'\n')
        );
        is_indicator && (is_same_line || self.column(at) == self.parent_column()) && self.eat(b':')
    }

    /// Whether the current node is a key of a mapping.
    pub(super) fn is_in_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| self.tree.kind(open.id).is_mapping() && open.children % 2 == 1)
    }

    pub(super) fn eat_properties(&mut self, span: &Span, anchor: Option<&AnchorSpan>) -> bool {
        let tag_end = span
            .tag_span()
            .and_then(|tag| tag.byte_range())
            .map_or(0, |range| range.end);
        let anchor_end = anchor.map_or(0, |(_, range)| range.end as usize);
        let end = tag_end.max(anchor_end);
        self.cursor = self.cursor.max(end);
        end != 0
    }

    pub(super) fn byte_at(&self, at: usize) -> Option<u8> {
        self.tree.text.as_bytes().get(at).copied()
    }

    /// Returns the offset after the blanks, line ends and comments at the cursor. Before a document, also after byte
    /// order marks and `...` lines, since the parser reports only the first `...`.
    pub(super) fn next_token(&self) -> usize {
        let bytes = self.tree.text.as_bytes();
        let mut at = self.cursor;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => at += 1,
                b'#' => match memchr::memchr2(b'\n', b'\r', &bytes[at..]) {
                    Some(length) => at += length,
                    None => return bytes.len(),
                },
                _ if self.open.is_empty() && bytes[at..].starts_with("\u{feff}".as_bytes()) => {
                    at += "\u{feff}".len()
                }
                b'.' if self.open.is_empty() && self.is_document_end(at) => at += "...".len(),
                _ => return at,
            }
        }
        at
    }

    pub(super) fn is_document_end(&self, at: usize) -> bool {
        let is_at_line_start = at == 0 || self.byte_at(at - 1).is_some_and(is_line_end);
        let line = &self.tree.text.as_bytes()[at..];
        is_at_line_start
            && line.starts_with(b"...")
            && matches!(line.get(3), None | Some(b' ' | b'\t' | b'\r' | b'\n'))
    }
}
