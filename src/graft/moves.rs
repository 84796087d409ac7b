//! Translates places in a stripped document, without its recorded changes, to places in the document itself.

use std::cell::Cell;
use std::ops::Range;

use crate::source::{Place, Source};

use super::recorded::RecordedDocument;

/// Maps positions in the stripped text (the base) to positions in the document.
pub(super) struct OffsetMap<'m> {
    base: &'m Source<'m>,
    source: &'m Source<'m>,
    /// The offset of each line of the base.
    lines: Vec<usize>,
    /// For each edit, the range of its text in the base, and the end of the replaced range in the document.
    edits: Vec<(Range<usize>, usize)>,
    counted: Cell<(usize, usize)>,
}

impl<'m> OffsetMap<'m> {
    pub(super) fn of(base: &'m Source<'m>, pair: &'m RecordedDocument<'m>) -> Self {
        let ends = base.text.match_indices('\n').map(|(at, _)| at + 1);
        let (mut base_offset, mut document_offset) = (0, 0);
        let edits = pair.stripped.edits.iter().map(|edit| {
            let start = base_offset + edit.at.start - document_offset;
            (base_offset, document_offset) = (start + edit.text.len(), edit.at.end);
            (start..base_offset, document_offset)
        });
        OffsetMap {
            base,
            source: pair.source,
            lines: std::iter::once(0).chain(ends).collect(),
            edits: edits.collect(),
            counted: Cell::default(),
        }
    }

    /// Returns the place in the document of a place in the base. A place that is not in the base, such as that of an
    /// object in another document of the file, stays.
    pub(super) fn place_before(&self, place: &Place) -> Place {
        let Some(line_start) = self.line_start(place) else {
            return place.clone();
        };
        let column: usize = self.base.text[line_start..]
            .chars()
            .take(place.column - 1)
            .map(char::len_utf8)
            .sum();
        let wanted = line_start + column;
        let behind = self
            .edits
            .partition_point(|(base_range, _)| base_range.start <= wanted);
        let last = behind.checked_sub(1).map(|last| &self.edits[last]);
        let (base_end, document_end) = last.map_or((0, 0), |(base_range, document_end)| {
            (base_range.end, *document_end)
        });
        let at = document_end + wanted.saturating_sub(base_end);
        let span = at..at + (place.end - place.start);
        self.source.place_near(span, &self.counted)
    }

    /// The offset of the line of a place in the base; `None` if the place is not in the base. Two documents of a file
    /// may have the same line numbers, as the base is shorter or longer than the document. The excerpt tells.
    fn line_start(&self, place: &Place) -> Option<usize> {
        let line = place.line.checked_sub(self.base.first_line)?;
        let start = *self.lines.get(line)?;
        let text = self.base.text[start..].lines().next().unwrap_or_default();
        text.contains(&place.excerpt).then_some(start)
    }
}
