//! Builds our [`Tree`] with our spans from the events of the `granit-parser` crate. Only this file and those in
//! `granit/` use that crate.
//!
//! The builder corrects four things, each seen with granit-parser 2.1: the span of a block scalar starts at its
//! content instead of the `|`, and ends in the indentation of the next line; the span of a block collection ends at
//! the next token, after comments; a value that is not written is reported as the scalar `~` with an empty span
//! somewhere before the `:`; a block sequence at its parent's indentation starts after its first dash, and after that
//! dash's comment.
//!
//! To correct them the builder walks along the text: [`TreeBuilder::cursor`] passes the indicator (`-`, `?`, `:`,
//! `,`) in front of every node. So it is at the position of a value that is not written, and the end of what has been
//! read is the end of a block collection.

mod passing;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::parse::{MAX_DEPTH, ParseError, ParseErrorKind};
use super::tree::{Node, NodeId, NodeKind, NodeProperties, Tree, new_extra};

pub(super) fn parse(text: &str) -> Result<Tree<'_>, ParseError> {
    build(text, text).or_else(|error| match without_marks(text) {
        Some(read) => build(text, &read),
        None => Err(error),
    })
}

/// Returns a copy of the text in which line feeds replace the byte order marks at the start of a document, that is,
/// after a `---` line; `None` if there are none. Kubectl splits a file into documents first, so a byte order mark may
/// begin each. The replacement has as many bytes, so spans stay valid.
fn without_marks(text: &str) -> Option<String> {
    const MARK: &str = "\u{feff}";
    if !text.contains(MARK) {
        return None;
    }
    let (mut read, mut is_behind_separator) = (String::with_capacity(text.len()), false);
    for line in text.split_inclusive('\n') {
        match line.strip_prefix(MARK).filter(|_| is_behind_separator) {
            Some(rest) => read.extend(["\n\n\n", rest]),
            None => read.push_str(line),
        }
        is_behind_separator = line.trim_end() == "---";
    }
    (read != text).then_some(read)
}

/// Builds the tree of `text` from the events of `read`, which has the same length.
fn build<'a>(text: &'a str, read: &str) -> Result<Tree<'a>, ParseError> {
    let options = granit_parser::options! {
        emit_anchor_events: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = TreeBuilder::new(text);
    let mut pending: Option<(Event<'_>, Span)> = None;
    for next in Parser::new_from_str_with_options(read, options) {
        let (event, span) = next.map_err(|error| parse_error(&error, read))?;
        // The event of an anchor follows that of its node.
        if let Event::Anchor(id, _) = event {
            if let Some((node, node_span)) = pending.take() {
                builder.event(node, &node_span, Some((id, to_range(&span))))?;
            }
            continue;
        }
        if let Some((node, node_span)) = pending.take() {
            builder.event(node, &node_span, None)?;
        }
        pending = Some((event, span));
    }
    if let Some((node, span)) = pending.take() {
        builder.event(node, &span, None)?;
    }
    Ok(builder.tree)
}

fn parse_error(error: &ScanError, text: &str) -> ParseError {
    let start = error.marker().byte_offset().unwrap_or(0).min(text.len());
    let char_end = start + text[start..].chars().next().map_or(0, char::len_utf8);
    let (end, kind) = match error.kind() {
        ErrorKind::UnknownAnchor => (alias_end(text, start), ParseErrorKind::UnknownAlias),
        ErrorKind::RecursionLimitExceeded => (char_end, ParseErrorKind::TooDeep),
        kind => (char_end, ParseErrorKind::Syntax(kind.to_string())),
    };
    ParseError {
        at: start..end,
        kind,
    }
}

/// Returns the end of an alias. A name ends at a blank, a line end or a flow indicator (YAML 1.2.2, 6.9.2).
fn alias_end(text: &str, start: usize) -> usize {
    text[start..]
        .find([' ', '\t', '\n', '\r', ',', '[', ']', '{', '}'])
        .map_or(text.len(), |length| start + length)
}

fn to_range(span: &Span) -> Range<u32> {
    let range = span
        .byte_range()
        .expect("a parser over a str knows byte offsets");
    offset(range.start)..offset(range.end)
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("parse() refuses texts over 4 GiB")
}

/// The id that the parser gives an anchor, and the byte range of its name.
type AnchorSpan = (usize, Range<u32>);

/// An open collection, and the number of its children so far.
struct OpenCollection {
    id: NodeId,
    children: u32,
}

struct TreeBuilder<'a> {
    tree: Tree<'a>,
    /// The open collections, innermost last.
    open: Vec<OpenCollection>,
    anchors: BTreeMap<usize, NodeId>,
    /// The end of what has been read, including indicators. Only blanks and comments separate it from the next token.
    cursor: usize,
}

impl<'a> TreeBuilder<'a> {
    fn new(text: &'a str) -> Self {
        TreeBuilder {
            tree: Tree::empty(text),
            open: Vec::new(),
            anchors: BTreeMap::new(),
            cursor: 0,
        }
    }

    fn event(
        &mut self,
        event: Event<'_>,
        span: &Span,
        anchor: Option<AnchorSpan>,
    ) -> Result<(), ParseError> {
        match event {
            Event::Scalar(value, style, _, tag) => self.scalar(&value, style, span, anchor, tag),
            Event::SequenceStart(StructureStyle::Block, _, tag) => {
                self.start(NodeKind::BlockSequence, span, anchor, tag)
            }
            Event::SequenceStart(StructureStyle::Flow, _, tag) => {
                self.start(NodeKind::FlowSequence, span, anchor, tag)
            }
            Event::MappingStart(StructureStyle::Block, _, tag) => {
                self.start(NodeKind::BlockMapping, span, anchor, tag)
            }
            Event::MappingStart(StructureStyle::Flow, _, tag) => {
                self.start(NodeKind::FlowMapping, span, anchor, tag)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(target) => self.alias(target, span)?,
            // Without a `---`, the span is that of the document's first token, which may be a block scalar's.
            Event::DocumentStart(false, _) => {}
            Event::DocumentStart(true, _) | Event::DocumentEnd => self.move_to(to_range(span).end),
            // The enum is `non_exhaustive`: stream marks and events of later versions carry no content.
            _ => {}
        }
        Ok(())
    }

    fn move_to(&mut self, at: u32) {
        self.cursor = self.cursor.max(at as usize);
    }

    fn start(
        &mut self,
        kind: NodeKind,
        span: &Span,
        anchor: Option<AnchorSpan>,
        tag: Option<Cow<'_, Tag>>,
    ) {
        self.eat_indicator();
        self.eat_properties(span, anchor.as_ref());
        let mut range = to_range(span);
        if kind == NodeKind::BlockSequence {
            range.start = offset(self.next_token());
        }
        self.move_to(range.start);
        // A pair without braces in a flow sequence, `[a: b]`, begins at its key or `?`, so there is no bracket to
        // pass.
        let has_bracket =
            matches!(self.byte_at(range.start as usize), Some(b'[' | b'{')) && !range.is_empty();
        if kind.is_flow() && has_bracket {
            self.move_to(range.end);
        }
        let id = self.push(kind, range, anchor, tag, span);
        self.open.push(OpenCollection { id, children: 0 });
    }

    fn end(&mut self, span: &Span) {
        let Some(OpenCollection { id, .. }) = self.open.pop() else {
            return;
        };
        let range = to_range(span);
        let is_flow = self.tree.kind(id).is_flow();
        // A pair without braces ends with an empty span at the next token.
        if is_flow && !range.is_empty() {
            self.move_to(range.end);
        }
        // A block collection ends at the cursor, since the span of its end event is at the next token.
        let after = offset(self.tree.nodes.len());
        let node = &mut self.tree.nodes[id.0 as usize];
        node.after = after;
        node.end = offset(self.cursor);
    }

    fn alias(&mut self, target: usize, span: &Span) -> Result<(), ParseError> {
        let range = to_range(span);
        let target = *self
            .anchors
            .get(&target)
            .expect("the parser refuses an alias without an anchor");
        if self.open.iter().any(|open| open.id == target) {
            // It has no finite value. go-yaml reports "value contains itself".
            let kind =
                ParseErrorKind::Syntax("an alias inside the node that its anchor names".to_owned());
            return Err(ParseError {
                at: range.start as usize..range.end as usize,
                kind,
            });
        }
        self.eat_indicator();
        self.move_to(range.end);
        let id = self.push(NodeKind::Alias, range, None, None, span);
        self.tree.nodes[id.0 as usize].extra = target.0;
        self.tree.nodes[target.0 as usize].is_aliased = true;
        Ok(())
    }

    fn scalar(
        &mut self,
        value: &str,
        style: ScalarStyle,
        span: &Span,
        anchor: Option<AnchorSpan>,
        tag: Option<Cow<'_, Tag>>,
    ) {
        let raw = to_range(span);
        let has_indicator = self.eat_indicator();
        let has_properties = self.eat_properties(span, anchor.as_ref());
        let mut has_unended_blanks = false;
        let (kind, range) = match style {
            ScalarStyle::Plain if raw.is_empty() && self.open.is_empty() && !has_properties => {
                return;
            }
            ScalarStyle::Plain if raw.is_empty() => {
                let is_placed = has_indicator || has_properties || !self.is_in_key();
                // An absent key without a `?` is at its `:`, which the parser's span gives.
                let at = if is_placed {
                    offset(self.cursor)
                } else {
                    raw.start
                };
                (NodeKind::Absent, at..at)
            }
            ScalarStyle::Plain => (NodeKind::Plain, raw),
            ScalarStyle::SingleQuoted => (NodeKind::SingleQuoted, raw),
            ScalarStyle::DoubleQuoted => (NodeKind::DoubleQuoted, raw),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let scalar = self.block_scalar(&raw);
                has_unended_blanks = scalar.has_unended_blanks;
                let kind = match style {
                    ScalarStyle::Folded => NodeKind::Folded,
                    _ => NodeKind::Literal,
                };
                (kind, scalar.range)
            }
        };
        self.move_to(range.end);
        let id = self.push(kind, range, anchor, tag, span);
        let is_block = matches!(kind, NodeKind::Literal | NodeKind::Folded);
        let last_blank_line;
        let value = if has_unended_blanks {
            last_blank_line = format!("{value}\n");
            &last_blank_line
        } else if is_block {
            self.without_invented_line_end(id, value)
        } else {
            value
        };
        let is_verbatim = kind == NodeKind::Absent || self.tree.scalar(id) == Some(value);
        if !is_verbatim {
            self.tree.nodes[id.0 as usize].extra = offset(self.tree.decoded.len());
            self.tree.decoded.push(value.into());
        }
    }

    fn push(
        &mut self,
        kind: NodeKind,
        range: Range<u32>,
        anchor: Option<AnchorSpan>,
        tag: Option<Cow<'_, Tag>>,
        span: &Span,
    ) -> NodeId {
        let id = NodeId(offset(self.tree.nodes.len()));
        let has_properties = anchor.is_some() || tag.is_some();
        if self.open.is_empty() {
            self.tree.roots.push(id);
        }
        if has_properties {
            let tag_start = span
                .tag_start()
                .and_then(|mark| mark.byte_offset())
                .map(offset);
            let anchor_start = anchor.as_ref().map(|(_, range)| range.start);
            let start = tag_start
                .into_iter()
                .chain(anchor_start)
                .min()
                .unwrap_or(range.start);
            self.tree.properties.push(NodeProperties {
                node: id,
                start,
                anchor: anchor.as_ref().map(|(_, range)| range.clone()),
                tag: tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()).into()),
            });
        }
        if let Some((anchor, _)) = anchor {
            self.anchors.insert(anchor, id);
        }
        self.tree.nodes.push(Node {
            kind,
            has_properties,
            is_aliased: false,
            start: range.start,
            end: range.end,
            after: id.0 + 1,
            extra: new_extra(self.tree.text, kind, range.start),
        });
        id
    }

    /// Finds the span of a block scalar: from the `|` or `>` to the end of the last content line, or with `+` to
    /// the end of the last blank line.
    fn block_scalar(&self, raw: &Range<u32>) -> BlockScalar {
        let bytes = self.tree.text.as_bytes();
        let start = self.next_token();
        let header = start
            + bytes[start..]
                .iter()
                .take_while(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
                .count();
        let content = line_after(bytes, start);
        // The parser's end may be in the indentation of the next token, or in blanks without a line end at the end of
        // the text. The first is not part of the scalar, and the second only with `+`.
        let raw_end = (raw.end as usize).max(content);
        let last_line = line_start(bytes, content, raw_end);
        let indicators = &bytes[start + 1..header];
        let indent = match indicators.iter().find(|byte| byte.is_ascii_digit()) {
            Some(digit) => self.parent_column() + usize::from(digit - b'0'),
            None => first_indent(&bytes[content..raw_end]),
        };
        let is_part_of_scalar = is_content(&bytes[last_line..raw_end], indent);
        let end = if is_part_of_scalar {
            raw_end
        } else {
            last_line
        };
        let is_kept = indicators.contains(&b'+');
        let blanks = &bytes[end..];
        let ends_in_blanks =
            is_kept && !blanks.is_empty() && blanks.iter().all(|&byte| byte == b' ');
        let kept = match ends_in_blanks {
            true => Some(bytes.len()),
            false => is_kept.then_some(end).filter(|&end| end > content),
        };
        let range_end = kept
            .or_else(|| last_content(bytes, content..end, indent))
            .unwrap_or(header);
        BlockScalar {
            range: offset(start)..offset(range_end),
            has_unended_blanks: ends_in_blanks && end > content,
        }
    }

    /// Removes the line feed that the parser adds if the text ends after the header. It ends the last line of a block
    /// scalar with a line feed even if the text has none. YAML (1.2.2, 8.1.1.2, `b-chomped-last`), libyaml and
    /// go-yaml do not, but kubectl's document reader adds a line end before any of them reads the text. So the added
    /// one is right, except after a header without lines.
    fn without_invented_line_end<'v>(&self, id: NodeId, value: &'v str) -> &'v str {
        if self.tree.slice(id).contains(is_line_end_char) {
            return value;
        }
        value.strip_suffix('\n').map_or(value, |_| "")
    }

    /// Returns the column of the innermost open collection, from which an indentation indicator counts (YAML 1.2.2,
    /// 8.1.1.1). A sequence at its parent's indentation has the same column as the parent.
    fn parent_column(&self) -> usize {
        self.open.last().map_or(0, |open| {
            self.column(self.tree.node(open.id).start as usize)
        })
    }

    fn column(&self, at: usize) -> usize {
        let line = line_start(self.tree.text.as_bytes(), 0, at);
        self.tree.text[line..at]
            .trim_start_matches('\u{feff}')
            .chars()
            .count()
    }
}

fn is_line_end_char(char: char) -> bool {
    matches!(char, '\n' | '\r')
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// A block scalar in the text.
struct BlockScalar {
    range: Range<u32>,
    /// The text ends in a line of blanks without a line end, behind other lines of a scalar that keeps its blank lines
    /// (`|+`). Kubectl's document reader adds a line end to it, so the value has one more.
    has_unended_blanks: bool,
}

/// The start of the line that contains `at`, but not before `floor`.
fn line_start(bytes: &[u8], floor: usize, at: usize) -> usize {
    memchr::memrchr2(b'\n', b'\r', &bytes[floor..at]).map_or(floor, |found| floor + found + 1)
}

/// The start of the line after the one that contains `at`.
fn line_after(bytes: &[u8], at: usize) -> usize {
    let Some(length) = memchr::memchr2(b'\n', b'\r', &bytes[at..]) else {
        return bytes.len();
    };
    let end = at + length;
    if bytes[end..].starts_with(b"\r\n") {
        end + 2
    } else {
        end + 1
    }
}

/// The indentation of the first line with more than spaces (YAML 1.2.2, 8.1.1.1).
fn first_indent(bytes: &[u8]) -> usize {
    let mut lines = bytes.split(|&byte| is_line_end(byte));
    let spaces = |line: &[u8]| line.iter().take_while(|&&byte| byte == b' ').count();
    lines
        .find_map(|line| (spaces(line) < line.len()).then(|| spaces(line)))
        .unwrap_or(usize::MAX)
}

/// Whether a line of a block scalar is content. A line of spaces is content if it has more than the indentation (YAML
/// 1.2.2, 8.1.2).
fn is_content(line: &[u8], indent: usize) -> bool {
    line.len() > indent || line.iter().any(|&byte| byte != b' ')
}

/// The end of the last line of content, without its line end. `None` if there is no content.
fn last_content(bytes: &[u8], within: Range<usize>, indent: usize) -> Option<usize> {
    let mut end = within.end;
    loop {
        let start = line_start(bytes, within.start, end);
        if is_content(&bytes[start..end], indent) {
            return Some(end);
        }
        if start == within.start {
            return None;
        }
        end = start - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_may_begin_a_document_behind_a_separator() {
        let text = "a: 1\n---\r\n\u{feff}# two\nb: [x]\n---\n\u{feff}- c\n";
        let tree = parse(text).expect("each document is read as a text of its own");
        let slices: Vec<&str> = tree.roots().iter().map(|&root| tree.slice(root)).collect();
        assert_eq!(slices, ["a: 1", "b: [x]", "- c"]);
        for wrong in [
            "a: 1\n---\n# two\n\u{feff}b: 2\n",
            "a: 1\n---\n\u{feff}\u{feff}: [\n",
            "---\n\u{feff}\"",
            "a: 1\n\u{feff}b: 2\n",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
