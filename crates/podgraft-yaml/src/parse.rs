//! Text to [`Tree`]: what can go wrong, and the limits that hold for every parser.

use std::ops::Range;

pub use super::fast::{Outline, ReplacedRange};
use super::tree::Tree;
use super::{fast, granit};

/// Deepest nesting of block collections, and of flow collections. Real manifests stay under 30; a hostile one must not
/// overflow the stack of any later walk.
pub const MAX_DEPTH: usize = 256;

/// Why a text is not YAML, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The bytes that the message speaks of.
    pub at: Range<usize>,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// The kinds of fault that need a different answer from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Not YAML; the parser's words.
    Syntax(String),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// `*name` without an anchor `&name` before it in the document.
    UnknownAlias,
    /// More than 4 GiB in one document.
    TooLong,
}

/// Parses all documents of a text.
pub fn parse(text: &str) -> Result<Tree<'_>, ParseError> {
    parse_fast(text).map_or_else(|| parse_with_granit(text), Ok)
}

/// Parses a text if it is one document of the plain YAML that programs write; `None` says nothing about the text.
pub fn parse_fast(text: &str) -> Option<Tree<'_>> {
    if is_too_long(text) {
        None
    } else {
        fast::parse(text)
    }
}

/// Parses a text like [`parse_fast`], but for what stands in the `spec` of a pod template, where that can be passed over:
/// it becomes a mapping without entries, of which [`Tree::has_unread_access`] says whether anybody looked at it.
pub fn parse_outline(text: &str) -> Option<Outline<'_>> {
    if is_too_long(text) {
        None
    } else {
        fast::parse_outline(text)
    }
}

/// Parses a text that came from a parsed one by changes: bytes of the old text, in order, and how many stand there
/// instead. What lies between the changes is taken over from the old tree where that makes no difference.
pub fn reparse<'t>(
    old: &Tree<'_>,
    text: &'t str,
    changes: &[ReplacedRange],
) -> Result<Tree<'t>, ParseError> {
    let again = if old.is_plain && !is_too_long(text) {
        fast::reparse(old, text, changes)
    } else {
        None
    };
    debug_assert!(
        again.is_none() || again == parse_fast(text),
        "what is taken over is what is there"
    );
    again.map_or_else(|| parse(text), Ok)
}

fn is_too_long(text: &str) -> bool {
    u32::try_from(text.len()).is_err()
}

/// Parses all documents of a text with the complete parser: also the oracle for tests of [`parse_fast`].
pub fn parse_with_granit(text: &str) -> Result<Tree<'_>, ParseError> {
    if is_too_long(text) {
        return Err(ParseError {
            at: 0..0,
            kind: ParseErrorKind::TooLong,
        });
    }
    if let Some((at, char)) = find_unprintable(text) {
        let kind =
            ParseErrorKind::Syntax(format!("the control character U+{:04X}", u32::from(char)));
        return Err(ParseError {
            at: at..at + char.len_utf8(),
            kind,
        });
    }
    granit::parse(text)
}

/// The first character that YAML does not allow anywhere (1.2.2, 5.1). To the parser a NUL is the end of the text, and
/// go-yaml refuses the others, as YAML says, in quotes too.
fn find_unprintable(text: &str) -> Option<(usize, char)> {
    let is_suspect =
        |byte: &u8| (*byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')) || *byte >= 0x7f;
    let first = text.bytes().position(|byte| is_suspect(&byte))?;
    let is_unprintable = |char: char| match char {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{fffe}' | '\u{ffff}' => true,
        _ => char.is_control(),
    };
    text[first..]
        .char_indices()
        .find(|&(_, char)| is_unprintable(char))
        .map(|(at, char)| (first + at, char))
}
