//! Replacements of byte ranges, and their application to a text.

use std::borrow::Borrow;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use super::parse;

/// One replacement of a byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The byte range that is replaced, in the old text; empty for an insertion.
    pub at: Range<usize>,
    /// The replacement. Shared, because many workloads get the same text.
    pub text: Arc<str>,
}

impl Edit {
    /// An edit that inserts a text and replaces nothing.
    pub fn insertion(at: usize, text: impl Into<Arc<str>>) -> Self {
        Edit {
            at: at..at,
            text: text.into(),
        }
    }

    /// An edit that removes a range.
    pub fn removal(at: Range<usize>) -> Self {
        Edit {
            at,
            text: "".into(),
        }
    }

    /// The edit in a text that has more bytes before this one.
    pub fn shifted(self, by: usize) -> Self {
        Edit {
            at: self.at.start + by..self.at.end + by,
            ..self
        }
    }
}

/// Returns the text with the edits applied.
///
/// # Panics
/// When edits overlap or are out of order.
pub fn splice<E: Borrow<Edit>>(text: &[u8], edits: &[E]) -> Vec<u8> {
    splice_part(text, &(0..text.len()), edits)
}

/// Returns a part of the text with the edits applied. The ranges of the edits are those of the whole text.
///
/// # Panics
/// As [`splice`], and when an edit is outside of the part.
pub fn splice_part<E: Borrow<Edit>>(text: &[u8], part: &Range<usize>, edits: &[E]) -> Vec<u8> {
    let added: usize = edits.iter().map(|edit| edit.borrow().text.len()).sum();
    let mut spliced = Vec::with_capacity(part.len() + added);
    write_spliced_part(&text[part.clone()], part.start, edits, &mut spliced)
        .expect("memory takes all that is written");
    spliced
}

/// The edits that have text in a byte range of the result of [`splice_part`], by index, each with the range of the
/// edit's text. `start` is where the part begins in the whole text.
pub fn written_in<E: Borrow<Edit>>(
    edits: &[E],
    start: usize,
    bytes: &Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut moved = 0;
    let edits = edits.iter().map(Borrow::borrow).enumerate();
    edits.filter_map(move |(index, edit)| {
        let start = (edit.at.start - start).saturating_add_signed(moved);
        moved += edit.text.len() as isize - edit.at.len() as isize;
        let from = bytes.start.max(start);
        let to = bytes.end.min(start + edit.text.len());
        (from < to).then(|| (index, from - start..to - start))
    })
}

/// The ranges that the edits replace and the lengths of their replacements, for [`reparse`](super::parse::reparse).
/// The edits must be in order.
pub fn changes_of<'e>(edits: impl IntoIterator<Item = &'e Edit>) -> Vec<parse::ReplacedRange> {
    let change = |edit: &Edit| (edit.at.clone(), edit.text.len());
    edits.into_iter().map(change).collect()
}

/// [`splice`] for a `str`.
///
/// # Panics
/// As [`splice`], and when an edit begins or ends inside a character.
pub fn splice_text<E: Borrow<Edit>>(text: &str, edits: &[E]) -> String {
    let added: usize = edits.iter().map(|edit| edit.borrow().text.len()).sum();
    let mut spliced = String::with_capacity(text.len() + added);
    let mut from = 0;
    for edit in edits.iter().map(Borrow::borrow) {
        spliced.push_str(&text[from..edit.at.start]);
        spliced.push_str(&edit.text);
        from = edit.at.end;
    }
    spliced.push_str(&text[from..]);
    spliced
}

/// Writes the text with the edits applied.
///
/// # Errors
/// Those of the writer.
///
/// # Panics
/// As [`splice`].
pub fn write_spliced<E: Borrow<Edit>>(
    text: &[u8],
    edits: &[E],
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    write_spliced_part(text, 0, edits, out)
}

/// [`write_spliced`] for a part of a text that begins at `start`. The ranges of the edits are those of the whole text.
///
/// # Errors
/// Those of the writer.
///
/// # Panics
/// As [`splice_part`].
pub fn write_spliced_part<E: Borrow<Edit>>(
    part: &[u8],
    start: usize,
    edits: &[E],
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let mut from = 0;
    for edit in edits.iter().map(Borrow::borrow) {
        out.write_all(&part[from..edit.at.start - start])?;
        out.write_all(edit.text.as_bytes())?;
        from = edit.at.end - start;
    }
    out.write_all(&part[from..])
}
