//! Composes edits of a text with edits of its result into edits of the text.

use std::ops::Range;

use crate::yaml::splice::Edit;

/// An edit that has the effect of first and second edits.
pub(crate) struct ComposedEdit {
    pub(crate) edit: Edit,
    /// What its text has of the texts of first edits, in order.
    pub(crate) pieces: Vec<ComposedPiece>,
}

/// A piece of a composed edit's text that is a piece of a first edit's text.
pub(crate) struct ComposedPiece {
    /// The byte range in the text of the composed edit.
    pub(crate) bytes: Range<usize>,
    /// The index of the first edit.
    pub(crate) first: usize,
    /// Where the piece begins in the text of the first edit.
    pub(crate) start: usize,
}

/// A segment of the text after the first edits.
enum TextSegment<'e> {
    /// Bytes of the text that stay.
    Kept(Range<usize>),
    /// Bytes of the text that the second edits remove.
    Gone(Range<usize>),
    /// Text of a first edit: the index of the edit, and where the text begins in that of the edit.
    First(&'e str, usize, usize),
    /// Text of a second edit.
    Second(&'e str),
}

impl<'e> TextSegment<'e> {
    fn len(&self) -> usize {
        match self {
            TextSegment::Kept(range) | TextSegment::Gone(range) => range.len(),
            TextSegment::First(text, ..) | TextSegment::Second(text) => text.len(),
        }
    }

    fn cut(&self, from: usize, to: usize) -> TextSegment<'e> {
        match self {
            TextSegment::Kept(range) => TextSegment::Kept(range.start + from..range.start + to),
            TextSegment::Gone(range) => TextSegment::Gone(range.start + from..range.start + to),
            TextSegment::First(text, edit, start) => {
                TextSegment::First(&text[from..to], *edit, start + from)
            }
            TextSegment::Second(text) => TextSegment::Second(&text[from..to]),
        }
    }
}

/// Returns edits with the effect of `first` and then `second`. `length` is that of the text in bytes.
pub(crate) fn compose(length: usize, first: &[Edit], second: &[Edit]) -> Vec<Edit> {
    let composed = compose_traced(length, first, second).into_iter();
    composed.map(|composed| composed.edit).collect()
}

/// [`compose`], with what the edits have of the texts of the first ones.
pub(crate) fn compose_traced(length: usize, first: &[Edit], second: &[Edit]) -> Vec<ComposedEdit> {
    let mut rest = SegmentCursor {
        parts: parts_of(length, first),
        next: 0,
        cut: 0,
    };
    let mut result: Vec<TextSegment<'_>> = Vec::new();
    let mut from = 0;
    for edit in second {
        rest.take(edit.at.start - from, |part| result.push(part));
        result.push(TextSegment::Second(&edit.text));
        rest.take(edit.at.len(), |part| {
            if let TextSegment::Kept(range) = part {
                result.push(TextSegment::Gone(range));
            }
        });
        from = edit.at.end;
    }
    rest.take(usize::MAX, |part| result.push(part));
    to_edits(length, &result)
}

/// A cursor over the segments of the first result.
struct SegmentCursor<'e> {
    parts: Vec<TextSegment<'e>>,
    next: usize,
    /// How many bytes of the next part are taken already.
    cut: usize,
}

impl<'e> SegmentCursor<'e> {
    /// Passes the next `length` bytes to `emit`, or all that are left.
    fn take(&mut self, length: usize, mut emit: impl FnMut(TextSegment<'e>)) {
        let mut left = length;
        while left > 0
            && let Some(part) = self.parts.get(self.next)
        {
            let end = self.cut.saturating_add(left).min(part.len());
            if self.cut < end {
                emit(part.cut(self.cut, end));
            }
            left -= end - self.cut;
            self.cut = end;
            if end == part.len() {
                (self.next, self.cut) = (self.next + 1, 0);
            }
        }
    }
}

fn parts_of(length: usize, edits: &[Edit]) -> Vec<TextSegment<'_>> {
    let mut parts = Vec::new();
    let mut at = 0;
    for (index, edit) in edits.iter().enumerate() {
        parts.push(TextSegment::Kept(at..edit.at.start));
        parts.push(TextSegment::First(&edit.text, index, 0));
        at = edit.at.end;
    }
    parts.push(TextSegment::Kept(at..length));
    parts
}

/// Converts segments to edits. Removals of the second edits stay separate edits, not merged with replacements beside
/// them.
fn to_edits(length: usize, parts: &[TextSegment<'_>]) -> Vec<ComposedEdit> {
    let mut edits: Vec<ComposedEdit> = Vec::new();
    let (mut at, mut removed_until, mut text) = (0, None, NewText::default());

    for part in parts {
        match part {
            TextSegment::Second(new) => text.text.push_str(new),
            TextSegment::First(new, edit, start) => text.push_first(new, *edit, *start),
            TextSegment::Kept(range) | TextSegment::Gone(range) if range.is_empty() => {}
            TextSegment::Kept(range) => {
                text.flush(&mut edits, at..range.start);
                at = range.end;
            }
            TextSegment::Gone(range) => {
                text.flush(&mut edits, at..range.start);
                let last = edits.last_mut().map(|last| &mut last.edit.at);
                match last.filter(|at| removed_until == Some(at.end) && at.end == range.start) {
                    Some(at) => at.end = range.end,
                    None => edits.push(ComposedEdit {
                        edit: Edit::removal(range.clone()),
                        pieces: Vec::new(),
                    }),
                }
                at = range.end;
                removed_until = Some(at);
            }
        }
    }
    text.flush(&mut edits, at..length);
    edits
}

/// The text of the next edit.
#[derive(Default)]
struct NewText {
    text: String,
    pieces: Vec<ComposedPiece>,
}

impl NewText {
    fn push_first(&mut self, new: &str, first: usize, start: usize) {
        let before = self.text.len();
        self.text.push_str(new);
        self.pieces.push(ComposedPiece {
            bytes: before..self.text.len(),
            first,
            start,
        });
    }

    /// Ends the edit, which replaces this range, unless it changes nothing.
    fn flush(&mut self, edits: &mut Vec<ComposedEdit>, at: Range<usize>) {
        let NewText { text, pieces } = std::mem::take(self);
        if !at.is_empty() || !text.is_empty() {
            let text = text.into();
            edits.push(ComposedEdit {
                edit: Edit { at, text },
                pieces,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::splice::splice;

    #[test]
    fn both_at_once_is_one_after_the_other() {
        let edit = |at: Range<usize>, text: &str| Edit {
            at,
            text: text.into(),
        };
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

    #[test]
    fn an_edit_knows_what_it_has_of_the_first_ones() {
        let first = [Edit::insertion(1, "XY"), Edit::insertion(2, "Z")];
        // aXYbZcd: without the `X` and the `b`.
        let second = [Edit::removal(1..2), Edit::removal(3..4)];
        let composed = compose_traced(4, &first, &second);
        let pieces = composed.iter().flat_map(|composed| &composed.pieces);
        let pieces = pieces.map(|piece| (piece.bytes.clone(), piece.first, piece.start));
        assert_eq!(pieces.collect::<Vec<_>>(), [(0..1, 0, 1), (0..1, 1, 0)]);
    }
}
