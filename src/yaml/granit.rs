//! The only file that knows the `granit-parser` crate: its events become our [`Tree`], its spans our spans.
//!
//! What is put right here, each seen with granit-parser 2.1: a block scalar's span starts at its content instead of
//! the `|`, and ends in the next line's indentation; a block collection's span ends at the next token, behind comments;
//! a value that is not written is the scalar `~` with an empty span somewhere before the `:`; a block sequence at its
//! parent's indentation starts behind its first dash.

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::parse::{MAX_DEPTH, ParseError, ParseErrorKind};
use super::tree::{Kind, Node, NodeId, Properties, Tree, VERBATIM};

pub(super) fn parse(text: &str) -> Result<Tree<'_>, ParseError> {
    let options = granit_parser::options! {
        emit_anchor_events: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::new(text);
    let mut pending: Option<(Event<'_>, Span)> = None;
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| parse_error(&error, text))?;
        if let Event::Anchor(id, _) = event {
            if let Some((node, node_span)) = pending.take() {
                builder.node(node, &node_span, Some((id, to_range(&span))));
            }
            continue;
        }
        if let Some((node, node_span)) = pending.take() {
            builder.node(node, &node_span, None);
        }
        pending = Some((event, span));
    }
    if let Some((node, span)) = pending.take() {
        builder.node(node, &span, None);
    }
    Ok(builder.tree)
}

fn parse_error(error: &ScanError, text: &str) -> ParseError {
    let at = error.marker().byte_offset().unwrap_or(0).min(text.len());
    let kind = match error.kind() {
        ErrorKind::UnknownAnchor { .. } => ParseErrorKind::UnknownAlias,
        ErrorKind::RecursionLimitExceeded => ParseErrorKind::TooDeep,
        other => ParseErrorKind::Syntax(other.to_string()),
    };
    ParseError { at: at..text.len().min(at + 1), kind }
}

fn to_range(span: &Span) -> Range<u32> {
    let range = span.byte_range().expect("a parser over a str knows byte offsets");
    offset(range.start)..offset(range.end)
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("parse() refuses texts over 4 GiB")
}

struct Builder<'a> {
    tree: Tree<'a>,
    /// The collections that are not closed yet, innermost last.
    open: Vec<NodeId>,
    /// The parser's anchor id to the node.
    anchors: BTreeMap<usize, NodeId>,
    /// The end of what has been read: the next token begins behind it, with only blanks, comments and indicators between.
    cursor: usize,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        Builder { tree: Tree::empty(text), open: Vec::new(), anchors: BTreeMap::new(), cursor: 0 }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, anchor: Option<(usize, Range<u32>)>) {
        match event {
            Event::Scalar(value, style, _, tag) => self.scalar(&value, style, span, anchor, tag),
            Event::SequenceStart(style, _, tag) => {
                let kind = match style {
                    StructureStyle::Block => Kind::BlockSequence,
                    StructureStyle::Flow => Kind::FlowSequence,
                };
                self.start(kind, span, anchor, tag);
            }
            Event::MappingStart(style, _, tag) => {
                let kind = match style {
                    StructureStyle::Block => Kind::BlockMapping,
                    StructureStyle::Flow => Kind::FlowMapping,
                };
                self.start(kind, span, anchor, tag);
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(target) => self.alias(target, span),
            Event::DocumentStart(..) | Event::DocumentEnd => {
                self.cursor = self.cursor.max(to_range(span).end as usize);
            }
            // `non_exhaustive`: stream marks and whatever a later version adds carry no content.
            _ => {}
        }
    }

    fn start(&mut self, kind: Kind, span: &Span, anchor: Option<(usize, Range<u32>)>, tag: Option<Cow<'_, Tag>>) {
        let from = self.behind_properties(span, anchor.as_ref());
        let mut range = to_range(span);
        if kind == Kind::BlockSequence {
            range.start = offset(self.seek(from, b'-').unwrap_or(range.start as usize));
        }
        let id = self.push(kind, range.clone(), anchor, tag, span);
        self.open.push(id);
        self.cursor = self.cursor.max(if kind.is_flow() { range.end as usize } else { range.start as usize });
    }

    fn end(&mut self, span: &Span) {
        let Some(id) = self.open.pop() else { return };
        let after = offset(self.tree.nodes.len());
        let range = to_range(span);
        let node = self.tree.nodes[id.0 as usize];
        let end = if node.kind.is_flow() && range.start != range.end { range.end } else { offset(self.cursor) };
        self.cursor = self.cursor.max(end as usize);
        let node = &mut self.tree.nodes[id.0 as usize];
        node.after = after;
        node.end = end.max(node.start);
    }

    fn alias(&mut self, target: usize, span: &Span) {
        let id = self.push(Kind::Alias, to_range(span), None, None, span);
        let target = *self.anchors.get(&target).expect("the parser refuses an alias without an anchor");
        self.tree.nodes[id.0 as usize].extra = target.0;
        self.tree.nodes[target.0 as usize].is_aliased = true;
        self.cursor = to_range(span).end as usize;
    }

    fn scalar(
        &mut self,
        value: &str,
        style: ScalarStyle,
        span: &Span,
        anchor: Option<(usize, Range<u32>)>,
        tag: Option<Cow<'_, Tag>>,
    ) {
        let raw = to_range(span);
        let from = self.behind_properties(span, anchor.as_ref());
        let (kind, range) = match style {
            ScalarStyle::Plain if raw.is_empty() => (Kind::Absent, self.absent(from, &raw)),
            ScalarStyle::Plain => (Kind::Plain, raw),
            ScalarStyle::SingleQuoted => (Kind::SingleQuoted, raw),
            ScalarStyle::DoubleQuoted => (Kind::DoubleQuoted, raw),
            ScalarStyle::Literal => (Kind::Literal, self.block_scalar(from, &raw, b'|', span.indent)),
            ScalarStyle::Folded => (Kind::Folded, self.block_scalar(from, &raw, b'>', span.indent)),
        };
        self.cursor = self.cursor.max(range.end as usize);
        let id = self.push(kind, range, anchor, tag, span);
        let node = self.tree.nodes[id.0 as usize];
        let written = match kind {
            Kind::SingleQuoted | Kind::DoubleQuoted => &self.tree.text[node.start as usize + 1..node.end as usize - 1],
            _ => &self.tree.text[node.start as usize..node.end as usize],
        };
        if kind != Kind::Absent && written != value {
            self.tree.nodes[id.0 as usize].extra = offset(self.tree.decoded.len());
            self.tree.decoded.push(value.into());
        }
    }

    fn push(
        &mut self,
        kind: Kind,
        range: Range<u32>,
        anchor: Option<(usize, Range<u32>)>,
        tag: Option<Cow<'_, Tag>>,
        span: &Span,
    ) -> NodeId {
        let id = NodeId(offset(self.tree.nodes.len()));
        let has_properties = anchor.is_some() || tag.is_some();
        if self.open.is_empty() && (kind != Kind::Absent || has_properties) {
            self.tree.roots.push(id);
        }
        if has_properties {
            let tag_start = span.tag_start().and_then(|mark| mark.byte_offset()).map(offset);
            let anchor_start = anchor.as_ref().map(|(_, range)| range.start);
            let start = tag_start.into_iter().chain(anchor_start).min().unwrap_or(range.start);
            self.tree.properties.push(Properties {
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
            extra: VERBATIM,
        });
        id
    }

    fn behind_properties(&self, span: &Span, anchor: Option<&(usize, Range<u32>)>) -> usize {
        let tag_end = span.tag_span().and_then(|tag| tag.byte_range()).map_or(0, |range| range.end);
        let anchor_end = anchor.map_or(0, |(_, range)| range.end as usize);
        self.cursor.max(tag_end).max(anchor_end)
    }

    /// The next `wanted` byte behind `from`, with only blanks, line ends, comments and indicators on the way.
    fn seek(&self, from: usize, wanted: u8) -> Option<usize> {
        let bytes = self.tree.text.as_bytes();
        let mut at = from;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                _ if byte == wanted => return Some(at),
                b'#' => at += memchr::memchr2(b'\n', b'\r', &bytes[at..])?,
                b' ' | b'\t' | b'\r' | b'\n' | b':' | b'-' | b'?' | b',' => at += 1,
                _ => return None,
            }
        }
        None
    }

    /// Behind the `:` or `-` that stands there without a value; where there is none (a bare flow key), where we are.
    fn absent(&self, from: usize, raw: &Range<u32>) -> Range<u32> {
        let has_properties = from > self.cursor;
        let at = match self.open.last().map(|&open| self.tree.kind(open)) {
            _ if has_properties => from,
            Some(Kind::BlockSequence) => self.seek(from, b'-').map_or(raw.start as usize, |at| at + 1),
            Some(Kind::BlockMapping | Kind::FlowMapping) => match self.seek_colon(from) {
                Some(at) => at + 1,
                None => raw.start as usize,
            },
            _ => raw.start as usize,
        };
        offset(at)..offset(at)
    }

    fn seek_colon(&self, from: usize) -> Option<usize> {
        let bytes = self.tree.text.as_bytes();
        let blanks = bytes[from..].iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        (bytes.get(from + blanks) == Some(&b':')).then_some(from + blanks)
    }

    fn block_scalar(&self, from: usize, raw: &Range<u32>, indicator: u8, indent: Option<usize>) -> Range<u32> {
        let bytes = self.tree.text.as_bytes();
        let Some(start) = self.seek(from, indicator) else { return raw.clone() };
        let header = bytes[start..].iter().take_while(|&&byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        let keeps = bytes[start..start + header].contains(&b'+');
        let content = start + memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len() - start, |at| at + 1);
        // The raw end may lie in the indentation of the next token's line: that line is not ours.
        let raw_end = (raw.end as usize).max(content);
        let is_cut =
            raw_end < bytes.len() && raw_end > content && bytes[raw_end - 1] != b'\n' && bytes[raw_end - 1] != b'\r';
        let raw_end = if is_cut {
            memchr::memrchr(b'\n', &bytes[content..raw_end]).map_or(content, |at| content + at + 1)
        } else {
            raw_end
        };
        if keeps {
            let end = if raw_end > content { raw_end } else { start + header };
            return offset(start)..offset(end);
        }
        let end = last_content(bytes, content..raw_end, indent.unwrap_or(0));
        offset(start)..offset(end.unwrap_or(start + header))
    }
}

/// The end, without the line end, of the last line that is more than indentation. In a block scalar a line of more
/// blanks than the indentation is content (YAML 1.2.2, 8.1.2).
fn last_content(bytes: &[u8], within: Range<usize>, indent: usize) -> Option<usize> {
    let mut end = within.end;
    while end > within.start {
        let line_start =
            memchr::memrchr(b'\n', &bytes[within.start..end - 1]).map_or(within.start, |at| within.start + at + 1);
        let mut line_end = end;
        while line_end > line_start && matches!(bytes[line_end - 1], b'\n' | b'\r') {
            line_end -= 1;
        }
        let line = &bytes[line_start..line_end];
        if line.len() > indent || line.iter().any(|&byte| byte != b' ') {
            return Some(line_end);
        }
        end = line_start;
    }
    None
}
