//! Narrows the edits that replace a generated object by its next version to the lines that differ.

use std::ops::Range;

use crate::outcome::WorkloadReport;
use crate::undo::{ComposedEdit, ComposedPiece};
use crate::yaml::splice::Edit;

use super::policy_diff::differing_lines;
use super::removed_objects::is_updated;

/// Returns edits with the same effect. The next version of an object is written right before the earlier one, which goes:
/// these two edits become those of the lines that differ, so that they lie in the object and not in the workload before.
pub(super) fn only_differing_lines(
    text: &[u8],
    edits: Vec<ComposedEdit>,
    described: &[WorkloadReport],
) -> Vec<ComposedEdit> {
    let is_of_updated = |at: &Range<usize>| {
        let mut objects = described.iter().filter(|object| is_updated(object));
        objects.any(|object| object.extent.start < at.end && at.start < object.extent.end)
    };
    let mut narrowed = Vec::with_capacity(edits.len());
    let mut edits = edits.into_iter().peekable();
    while let Some(written) = edits.next() {
        let removed = edits.next_if(|next| {
            let Edit { at, text } = &next.edit;
            text.is_empty() && at.start == written.edit.at.end && is_of_updated(at)
        });
        match removed {
            Some(removed) => {
                let at = written.edit.at.start..removed.edit.at.end;
                narrowed.extend(narrow(text, &at, &written));
            }
            None => narrowed.push(written),
        }
    }
    narrowed
}

/// The edits of the lines in which a range of the text differs from the text that is written in its place.
fn narrow(text: &[u8], at: &Range<usize>, written: &ComposedEdit) -> Vec<ComposedEdit> {
    let new_text = &*written.edit.text;
    let ranges = differing_lines(&text[at.clone()], new_text.as_bytes()).into_iter();
    let edits = ranges.map(|(gone, new)| ComposedEdit {
        edit: Edit {
            at: at.start + gone.start..at.start + gone.end,
            text: new_text[new.clone()].into(),
        },
        pieces: pieces_in(&written.pieces, &new),
    });
    edits.collect()
}

/// The pieces of a text that are in a part of it, with byte ranges of the part.
fn pieces_in(pieces: &[ComposedPiece], part: &Range<usize>) -> Vec<ComposedPiece> {
    let cut = pieces.iter().filter_map(|piece| {
        let start = piece.bytes.start.max(part.start);
        let end = piece.bytes.end.min(part.end);
        (start < end).then(|| ComposedPiece {
            bytes: start - part.start..end - part.start,
            first: piece.first,
            start: piece.start + start - piece.bytes.start,
        })
    });
    cut.collect()
}
