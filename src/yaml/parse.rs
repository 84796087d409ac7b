//! Text to [`Tree`]: what can go wrong, and the limits that hold for every parser.

use std::ops::Range;

use super::granit;
use super::tree::Tree;

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
    if u32::try_from(text.len()).is_err() {
        return Err(ParseError { at: 0..0, kind: ParseErrorKind::TooLong });
    }
    granit::parse(text)
}
