//! Composes edits of a text with edits of its result into edits of the text.

use std::ops::Range;

use crate::yaml::splice::Edit;

/// A segment of the text after the first edits.
enum TextSegment<'e> {
    /// Bytes of the text that stay.
    Kept(Range<usize>),
    /// Bytes of the text that the second edits remove.
    Gone(Range<usize>),
    New(&'e str),
}

impl<'e> TextSegment<'e> {
    fn len(&self) -> usize {
        match self {
            TextSegment::Kept(range) | TextSegment::Gone(range) => range.len(),
            TextSegment::New(text) => text.len(),
        }
    }

    fn cut(&self, from: usize, to: usize) -> TextSegment<'e> {
        match self {
            TextSegment::Kept(range) => TextSegment::Kept(range.start + from..range.start + to),
            TextSegment::Gone(range) => TextSegment::Gone(range.start + from..range.start + to),
            TextSegment::New(text) => TextSegment::New(&text[from..to]),
        }
    }
}

/// Returns edits with the effect of `first` and then `second`. `length` is that of the text in bytes.
pub(crate) fn compose(length: usize, first: &[Edit], second: &[Edit]) -> Vec<Edit> {
    let mut rest = SegmentCursor {
        parts: parts_of(length, first),
        next: 0,
        cut: 0,
    };
    let mut result: Vec<TextSegment<'_>> = Vec::new();
    let mut from = 0;
    for edit in second {
        rest.take(edit.at.start - from, |part| result.push(part));
        result.push(TextSegment::New(&edit.text));
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
    for edit in edits {
        parts.push(TextSegment::Kept(at..edit.at.start));
        parts.push(TextSegment::New(&edit.text));
        at = edit.at.end;
    }
    parts.push(TextSegment::Kept(at..length));
    parts
}

/// Converts segments to edits. Removals of the second edits stay separate edits, not merged with replacements beside
/// them.
fn to_edits(length: usize, parts: &[TextSegment<'_>]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let (mut at, mut removed_until, mut text) = (0, None, String::new());

    for part in parts {
        match part {
            TextSegment::New(new) => text.push_str(new),
            TextSegment::Kept(range) | TextSegment::Gone(range) if range.is_empty() => {}
            TextSegment::Kept(range) => {
                flush(&mut edits, at..range.start, &mut text);
                at = range.end;
            }
            TextSegment::Gone(range) => {
                flush(&mut edits, at..range.start, &mut text);
                match edits
                    .last_mut()
                    .filter(|last| removed_until == Some(last.at.end) && last.at.end == range.start)
                {
                    Some(last) => last.at.end = range.end,
                    None => edits.push(Edit {
                        at: range.clone(),
                        text: "".into(),
                    }),
                }
                at = range.end;
                removed_until = Some(at);
            }
        }
    }
    flush(&mut edits, at..length, &mut text);
    edits
}

fn flush(edits: &mut Vec<Edit>, at: Range<usize>, text: &mut String) {
    if !at.is_empty() || !text.is_empty() {
        let text = std::mem::take(text).into();
        edits.push(Edit { at, text });
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
}
