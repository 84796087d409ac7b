//! Parses text into a [`Tree`]: the entry points, their errors, and the limits that both parsers share.

use std::ops::Range;

pub use super::fast::ReplacedRange;
use super::tree::Tree;
use super::{fast, granit};

/// The deepest nesting of block collections, and of flow collections. Real manifests stay under 30. The limit keeps
/// hostile ones from overflowing the stack of a recursive walk.
pub const MAX_DEPTH: usize = 256;

/// Why a text cannot be parsed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The byte range of the problem.
    pub at: Range<usize>,
    /// What is wrong.
    pub kind: ParseErrorKind,
}

/// The kinds of parse errors, by what the user has to do about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Not YAML, with the parser's message.
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

/// Parses a text with the fast parser. `None` if it is not a single document of the plain YAML that programs write;
/// it may still be valid YAML.
pub fn parse_fast(text: &str) -> Option<Tree<'_>> {
    if is_too_long(text) {
        None
    } else {
        fast::parse(text)
    }
}

/// Parses a text that was made from a parsed one. `changes` are the replaced byte ranges of the old text, in order,
/// with the lengths of their replacements. Nodes between the changes are copied from the old tree where the result is
/// the same.
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

/// Parses all documents of a text with the complete parser, `granit`. Tests use it as the oracle for [`parse_fast`].
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

fn is_unprintable(char: char) -> bool {
    match char {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{fffe}' | '\u{ffff}' => true,
        _ => char.is_control(),
    }
}

/// Finds the first character that YAML does not allow anywhere (1.2.2, 5.1). Checked here because granit takes a NUL
/// for the end of the text, and go-yaml refuses the other ones in quotes, too.
fn find_unprintable(text: &str) -> Option<(usize, char)> {
    let is_suspect =
        |byte: &u8| (*byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')) || *byte >= 0x7f;
    let first = text.bytes().position(|byte| is_suspect(&byte))?;
    text[first..]
        .char_indices()
        .find(|&(_, char)| is_unprintable(char))
        .map(|(at, char)| (first + at, char))
}
