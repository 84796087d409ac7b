//! Edits of a text and edits of what comes of it, as edits of the text.

use std::ops::Range;

use crate::yaml::splice::Edit;

/// A part of the text after the first edits.
enum Part<'e> {
    /// Bytes of the text.
    Kept(Range<usize>),
    /// Bytes of the text that the second edits take out.
    Gone(Range<usize>),
    New(&'e str),
}

impl<'e> Part<'e> {
    fn len(&self) -> usize {
        match self {
            Part::Kept(range) | Part::Gone(range) => range.len(),
            Part::New(text) => text.len(),
        }
    }

    fn cut(&self, from: usize, to: usize) -> Part<'e> {
        match self {
            Part::Kept(range) => Part::Kept(range.start + from..range.start + to),
            Part::Gone(range) => Part::Gone(range.start + from..range.start + to),
            Part::New(text) => Part::New(&text[from..to]),
        }
    }
}

/// The edits that do at once what both do one after the other. `length` is the text's.
pub(crate) fn compose(length: usize, first: &[Edit], second: &[Edit]) -> Vec<Edit> {
    let mut rest = Rest {
        parts: parts_of(length, first),
        next: 0,
        cut: 0,
    };
    let mut result: Vec<Part<'_>> = Vec::new();
    let mut from = 0;
    for edit in second {
        rest.take(edit.at.start - from, |part| result.push(part));
        result.push(Part::New(&edit.text));
        rest.take(edit.at.len(), |part| {
            if let Part::Kept(range) = part {
                result.push(Part::Gone(range));
            }
        });
        from = edit.at.end;
    }
    rest.take(usize::MAX, |part| result.push(part));
    to_edits(length, &result)
}

/// The parts from some byte on.
struct Rest<'e> {
    parts: Vec<Part<'e>>,
    next: usize,
    /// So many bytes of the next part are gone.
    cut: usize,
}

impl<'e> Rest<'e> {
    /// The next bytes, as far as there are as many.
    fn take(&mut self, length: usize, mut give: impl FnMut(Part<'e>)) {
        let mut left = length;
        while left > 0
            && let Some(part) = self.parts.get(self.next)
        {
            let end = self.cut.saturating_add(left).min(part.len());
            if self.cut < end {
                give(part.cut(self.cut, end));
            }
            left -= end - self.cut;
            self.cut = end;
            if end == part.len() {
                (self.next, self.cut) = (self.next + 1, 0);
            }
        }
    }
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

/// What the second take out stays an edit of its own.
fn to_edits(length: usize, parts: &[Part<'_>]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let (mut at, mut gone, mut text) = (0, None, String::new());
    let flush = |edits: &mut Vec<Edit>, at: usize, next: usize, text: &mut String| {
        if at < next || !text.is_empty() {
            edits.push(Edit {
                at: at..next,
                text: std::mem::take(text).into(),
            });
        }
    };
    for part in parts {
        match part {
            Part::New(new) => text.push_str(new),
            Part::Kept(range) | Part::Gone(range) if range.is_empty() => {}
            Part::Kept(range) => {
                flush(&mut edits, at, range.start, &mut text);
                at = range.end;
            }
            Part::Gone(range) => {
                flush(&mut edits, at, range.start, &mut text);
                match edits
                    .last_mut()
                    .filter(|last| gone == Some(last.at.end) && last.at.end == range.start)
                {
                    Some(last) => last.at.end = range.end,
                    None => edits.push(Edit {
                        at: range.clone(),
                        text: "".into(),
                    }),
                }
                at = range.end;
                gone = Some(at);
            }
        }
    }
    flush(&mut edits, at, length, &mut text);
    edits
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
