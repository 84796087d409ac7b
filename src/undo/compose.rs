//! Edits of a text and edits of what comes of it, as edits of the text.

use std::ops::Range;

use crate::report::Edit;

/// A part of the text after the first edits.
enum Part<'e> {
    /// Bytes of the text.
    Kept(Range<usize>),
    New(&'e str),
}

impl Part<'_> {
    fn len(&self) -> usize {
        match self {
            Part::Kept(range) => range.len(),
            Part::New(text) => text.len(),
        }
    }

    fn cut(&self, from: usize, to: usize) -> Self {
        match self {
            Part::Kept(range) => Part::Kept(range.start + from..range.start + to),
            Part::New(text) => Part::New(&text[from..to]),
        }
    }
}

/// The edits that do at once what both do one after the other. `length` is the text's.
pub(super) fn compose(length: usize, first: &[Edit], second: &[Edit]) -> Vec<Edit> {
    let parts = parts_of(length, first);
    let mut result: Vec<Part<'_>> = Vec::new();
    let mut from = 0;
    for edit in second {
        copy(&parts, from..edit.at.start, &mut result);
        result.push(Part::New(&edit.text));
        from = edit.at.end;
    }
    copy(&parts, from..usize::MAX, &mut result);
    to_edits(length, &result)
}

fn parts_of(length: usize, edits: &[Edit]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut at = 0;
    for edit in edits {
        parts.push(Part::Kept(at..edit.at.start));
        parts.push(Part::New(&edit.text));
        at = edit.at.end;
    }
    parts.push(Part::Kept(at..length));
    parts
}

fn copy<'e>(parts: &[Part<'e>], wanted: Range<usize>, result: &mut Vec<Part<'e>>) {
    let mut start = 0;
    for part in parts {
        let end = start + part.len();
        let (from, to) = (wanted.start.clamp(start, end), wanted.end.clamp(start, end));
        if from < to {
            result.push(match part {
                Part::Kept(_) => part.cut(from - start, to - start),
                Part::New(text) => Part::New(&text[from - start..to - start]),
            });
        }
        start = end;
    }
}

fn to_edits(length: usize, parts: &[Part<'_>]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut at, mut text) = (0, String::new());
    let mut flush = |at: usize, next: usize, text: &mut String| {
        if at < next || !text.is_empty() {
            edits.push(Edit { at: at..next, text: std::mem::take(text).into() });
        }
    };
    for part in parts {
        match part {
            Part::New(new) => text.push_str(new),
            Part::Kept(range) if range.is_empty() => {}
            Part::Kept(range) => {
                flush(at, range.start, &mut text);
                at = range.end;
            }
        }
    }
    flush(at, length, &mut text);
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::splice;

    #[test]
    fn both_at_once_is_one_after_the_other() {
        let edit = |at: Range<usize>, text: &str| Edit { at, text: text.into() };
        let first = [edit(1..2, "XY"), edit(4..4, "Z"), edit(6..8, "")];
        let once = splice(b"abcdefgh", &first);
        for start in 0..=once.len() {
            for end in start..=once.len() {
                let second = [edit(start..end, "-")];
                let both = splice(b"abcdefgh", &compose(8, &first, &second));
                assert_eq!(both, splice(&once, &second), "{start}..{end}");
            }
        }
    }
}
