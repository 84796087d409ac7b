//! Parses a document without the contents of its pod template's `spec`, which most policies do not need. The lines of
//! the `spec` are skipped; they are only scanned for constructs that could continue after it.
//!
//! A line is skipped if it is deeper than the `spec` and everything that begins on it ends on it, especially quoted
//! text and brackets. Then every reader agrees that the first line that is not deeper follows the `spec`. In any
//! doubt the whole document is parsed. Errors in skipped YAML are not found.

use std::ops::Range;

use super::super::tree::{ALL_READ, NodeKind, Tree, VERBATIM};
use super::{OpenBlockCollection, Parser, characters};

/// The longest line that is scanned, in bytes. Real ones are far shorter, and a key may not be longer than 1024
/// characters.
const MAX_LINE: usize = 4000;

/// How a skipped line continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkippedLine {
    /// The line is complete; only plain text may continue on the next.
    Whole,
    /// The line ends with `|` or `>`. Lines deeper than this column are text.
    Text(usize),
}

/// A document, parsed in full or only as an outline.
pub struct Outline<'a> {
    /// The tree of what was parsed.
    pub tree: Tree<'a>,
    /// The state from which the skipped part can be parsed; `None` if nothing was skipped.
    rest: Option<ParserState>,
}

/// The state of the parser where it began to skip lines.
struct ParserState {
    open: Vec<OpenBlockCollection>,
    next: usize,
    end: u32,
    due: Option<usize>,
    nodes: usize,
    decoded: usize,
    marks: usize,
}

/// Returns the outline of a text with at most one document. All of it is parsed if there is nothing to skip, or in
/// doubt. `None` if the fast parser gives up.
pub(crate) fn parse_outline(text: &str) -> Option<Outline<'_>> {
    if !characters::are_known(text) {
        return None;
    }
    let mut parser = Parser::new(text);
    parser.skip_separator()?;
    let mut rest = None;
    let mut is_first = true;
    while parser.read_next()? {
        if is_first && parser.begins_pod_spec() {
            is_first = false;
            let state = parser.state();
            match parser.skip_block_mapping() {
                Some(()) => rest = Some(state),
                None => parser.rewind(&state),
            }
        }
    }
    Some(Outline {
        tree: parser.finish(),
        rest,
    })
}

impl<'a> Outline<'a> {
    /// Parses the skipped part and returns the whole tree. `None` if the fast parser gives up.
    pub fn parse_whole(self) -> Option<Tree<'a>> {
        let Some(state) = self.rest else {
            return Some(self.tree);
        };
        let tree = self.tree;
        let mut parser = Parser {
            bytes: tree.text.as_bytes(),
            tree,
            open: Vec::new(),
            next: 0,
            end: 0,
            due: None,
        };
        parser.rewind(&state);
        while parser.read_next()? {}
        Some(parser.finish())
    }
}

impl Parser<'_> {
    /// Whether the last line read is the key `spec` without a value, in the mapping under `template`.
    fn begins_pod_spec(&self) -> bool {
        if self.due.is_none() {
            return false;
        }
        let Some(mapping) = self
            .open
            .last()
            .filter(|open| !open.is_sequence)
            .map(|open| open.id as usize)
        else {
            return false;
        };
        self.is_text_before(mapping, b"template")
            && self.is_text_before(self.tree.nodes.len(), b"spec")
    }

    fn is_text_before(&self, id: usize, text: &[u8]) -> bool {
        let node = id.checked_sub(1).and_then(|id| self.tree.nodes.get(id));
        node.is_some_and(|node| &self.bytes[node.start as usize..node.end as usize] == text)
    }

    fn state(&self) -> ParserState {
        ParserState {
            open: self.open.clone(),
            next: self.next,
            end: self.end,
            due: self.due,
            nodes: self.tree.nodes.len(),
            decoded: self.tree.decoded.len(),
            marks: self.tree.marks.len(),
        }
    }

    fn rewind(&mut self, state: &ParserState) {
        self.open.clone_from(&state.open);
        (self.next, self.end, self.due) = (state.next, state.end, state.due);
        self.tree.nodes.truncate(state.nodes);
        self.tree.decoded.truncate(state.decoded);
        self.tree.marks.truncate(state.marks);
        self.tree.roots.clear();
        self.tree.unread = ALL_READ;
    }

    /// Skips the block mapping that is the value of the last key. `None` if there is none, or in doubt.
    fn skip_block_mapping(&mut self) -> Option<()> {
        let parent = self.open.last()?.column;
        let first = self
            .next_line()
            .filter(|first| first.at - first.start > parent)?;
        if self.is_dash(first.at) || self.scan_scalar(first.at)?.colon.is_none() {
            return None;
        }
        let region = first.start..self.skip_deeper(parent, first.start, SkippedLines::Nodes);
        self.check_single_line_tokens(region.clone())?;
        self.next = region.end;
        let end = region.start + self.bytes[region].trim_ascii_end().len();
        self.tree.unread = self.push(NodeKind::BlockMapping, first.at, end, VERBATIM);
        Some(())
    }

    /// Returns the start of the first line, from `next` on, that is not deeper than `column`. Empty lines do not
    /// count. Neither do comments, except in text, where a `#` that is not deeper ends it.
    fn skip_deeper(&self, column: usize, mut next: usize, lines: SkippedLines) -> usize {
        while next < self.bytes.len() {
            if !characters::begins_with_spaces(self.bytes, next, column + 1) {
                match self.byte(characters::skip_indentation(self.bytes, next)) {
                    b'\n' | b'\r' => {}
                    b'#' if lines == SkippedLines::Nodes => {}
                    _ => break,
                }
            }
            next = (self.line_end(next) + 1).min(self.bytes.len());
        }
        next
    }

    /// Checks that everything that begins on a line ends on it; `None` if not. Only quoted text, brackets, and text
    /// below `|` and `>` may continue over lines that look like something else, so only lines with these are scanned.
    fn check_single_line_tokens(&self, region: Range<usize>) -> Option<()> {
        let bytes = &self.bytes[..region.end];
        let mut passed = region.start;
        let mut specials = MultilineMarkers {
            bytes,
            quote_or_bracket: region.start,
            block_or_brace: region.start,
        };
        while let Some(found) = specials.next_at_or_after(passed) {
            let start =
                memchr::memrchr(b'\n', &bytes[passed..found]).map_or(passed, |at| passed + at + 1);
            let at = characters::skip_indentation(bytes, start);
            let end = self.line_end(at).min(region.end);
            passed = end + 1;
            if let SkippedLine::Text(column) = scan_line(&bytes[at..end], at - start)? {
                passed = self.skip_deeper(column, passed, SkippedLines::Text);
            }
        }
        Some(())
    }
}

/// What deeper lines are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkippedLines {
    /// Nodes, with comments between them.
    Nodes,
    /// The text below a `|` or `>`.
    Text,
}

/// Finds the bytes that may begin a multi-line construct. Each offset is the next match at or after the last offset
/// that was asked for, so that no byte is searched twice.
struct MultilineMarkers<'b> {
    bytes: &'b [u8],
    quote_or_bracket: usize,
    block_or_brace: usize,
}

impl MultilineMarkers<'_> {
    /// The first of these bytes at or after `from`.
    fn next_at_or_after(&mut self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        let end = self.bytes.len();
        if self.quote_or_bracket <= from {
            self.quote_or_bracket =
                memchr::memchr3(b'"', b'\'', b'[', rest).map_or(end, |at| from + at);
        }
        if self.block_or_brace <= from {
            self.block_or_brace =
                memchr::memchr3(b'{', b'|', b'>', rest).map_or(end, |at| from + at);
        }
        Some(self.quote_or_bracket.min(self.block_or_brace)).filter(|&first| first < end)
    }
}

/// Scans a line without its indentation. `None` if it may begin something that does not end on it, or in doubt.
fn scan_line(line: &[u8], indentation: usize) -> Option<SkippedLine> {
    if line.len() > MAX_LINE {
        return None;
    }
    // The column of the key, or of the last item's dash: block scalar text is deeper than it.
    let mut column = indentation;
    let mut at = 0;
    while line.get(at) == Some(&b'-') && matches!(line.get(at + 1), None | Some(b' ' | b'\r')) {
        column = indentation + at;
        at = skip_blanks(line, at + 1);
    }
    let mut is_key_possible = true;
    loop {
        let begin = at;
        let end = match line.get(at) {
            None | Some(b'\r' | b'#') => return Some(SkippedLine::Whole),
            Some(quote @ (b'"' | b'\'')) => end_of_quoted(line, at + 1, *quote)?,
            Some(b'[' | b'{') => end_of_brackets(line, at)?,
            Some(b'|' | b'>') => {
                return ends_with_text(&line[at + 1..]).then_some(SkippedLine::Text(column));
            }
            // Properties, aliases, `? ` keys, directives, and characters that may not begin a plain scalar.
            Some(b'&' | b'*' | b'!' | b'?' | b'%' | b'@' | b'`' | b'\t' | b',' | b']' | b'}') => {
                return None;
            }
            // A key that is not written, or a list behind a key.
            Some(b':' | b'-') if matches!(line.get(at + 1), None | Some(b' ' | b'\r')) => {
                return None;
            }
            Some(_) => match end_of_plain(line, at)? {
                Some(colon) => colon,
                None => return Some(SkippedLine::Whole),
            },
        };
        at = skip_blanks(line, end);
        match line.get(at) {
            None | Some(b'\r') => return Some(SkippedLine::Whole),
            Some(b'#') if at > end => return Some(SkippedLine::Whole),
            Some(b':')
                if is_key_possible && matches!(line.get(at + 1), None | Some(b' ' | b'\r')) =>
            {
                // Only dashes may precede a key on its line.
                column = if begin == 0 {
                    column
                } else {
                    indentation + begin
                };
                is_key_possible = false;
                at = skip_blanks(line, at + 1);
            }
            Some(_) => return None,
        }
    }
}

fn skip_blanks(line: &[u8], from: usize) -> usize {
    from + line[from..]
        .iter()
        .take_while(|&&byte| byte == b' ')
        .count()
}

/// Returns the offset after the closing quote. `None` if there is an escape, or no closing quote on this line.
fn end_of_quoted(line: &[u8], from: usize, quote: u8) -> Option<usize> {
    let found = from + memchr::memchr2(quote, b'\\', &line[from..])?;
    let is_end = line[found] == quote && line.get(found + 1) != Some(&quote);
    // In single quotes a backslash is text, but too rare to be worth a case of its own.
    is_end.then_some(found + 1)
}

/// Returns the offset after the closing bracket. `None` for anything but plain and quoted text in the brackets.
fn end_of_brackets(line: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(&byte) = line.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'"' | b'\'' if !can_begin_in_brackets(&line[from..at - 1]) => return None,
            b'"' | b'\'' => at = end_of_quoted(line, at, byte)?,
            b'#' | b'\\' | b'\t' | b'&' | b'*' | b'!' | b'?' => return None,
            _ => {}
        }
    }
    None
}

/// Whether a quote after this text begins a quoted scalar. Inside a plain scalar a quote is text.
fn can_begin_in_brackets(before: &[u8]) -> bool {
    match before.trim_ascii_end() {
        [.., b'[' | b'{' | b','] => true,
        [rest @ .., b':'] => rest.len() + 1 < before.len(),
        _ => false,
    }
}

/// Returns the offset of the `:` after a plain key. The inner `None` is a plain scalar that ends with the line, the
/// outer one a doubt.
fn end_of_plain(line: &[u8], from: usize) -> Option<Option<usize>> {
    let mut at = from;
    loop {
        at = characters::find_stop(line, at);
        match line.get(at) {
            Some(b':') if matches!(line.get(at + 1), None | Some(b' ' | b'\r')) => {
                return Some(Some(at));
            }
            Some(b'#') if line[at - 1] == b' ' => return Some(None),
            Some(b'\t') => return None,
            None | Some(b'\r') => return Some(None),
            Some(_) => at += 1,
        }
    }
}

/// Whether a block scalar's header has no indentation indicator, and only a comment follows it.
fn ends_with_text(head: &[u8]) -> bool {
    let head = head
        .strip_prefix(b"-")
        .or_else(|| head.strip_prefix(b"+"))
        .unwrap_or(head);
    let rest = skip_blanks(head, 0);
    matches!(head.get(rest), None | Some(b'\r')) || head[rest] == b'#' && rest > 0
}
