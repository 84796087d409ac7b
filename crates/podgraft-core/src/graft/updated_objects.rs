//! Narrows the edits that replace a generated object by its next version to the lines that differ.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::outcome::{Outcome, WorkloadReport};
use crate::undo::{ComposedEdit, ComposedPiece};
use crate::yaml::splice::Edit;

use super::policy_diff::{bytes_of, lines};

/// Returns edits with the same effect. The next version of an object is written right before the earlier one, which goes:
/// these two edits become those of the lines that differ, so that they lie in the object and not in the workload before.
pub(super) fn only_differing_lines(
    text: &[u8],
    edits: Vec<ComposedEdit>,
    described: &[WorkloadReport],
) -> Vec<ComposedEdit> {
    let is_updated = |at: &Range<usize>| {
        let mut objects = described.iter();
        objects.any(|object| {
            let extent = &object.extent;
            extent.start < at.end
                && at.start < extent.end
                && object.has_outcome(|outcome| matches!(outcome, Outcome::Injected(_)))
        })
    };
    let mut narrowed = Vec::with_capacity(edits.len());
    let mut edits = edits.into_iter().peekable();
    while let Some(written) = edits.next() {
        let removed = edits.next_if(|next| {
            let Edit { at, text } = &next.edit;
            text.is_empty() && at.start == written.edit.at.end && is_updated(at)
        });
        match removed {
            Some(removed) => {
                let at = written.edit.at.start..removed.edit.at.end;
                narrowed.extend(differing_lines(text, &at, &written));
            }
            None => narrowed.push(written),
        }
    }
    narrowed
}

/// The edits of the lines in which a range of the text differs from the text that is written in its place.
fn differing_lines(text: &[u8], at: &Range<usize>, written: &ComposedEdit) -> Vec<ComposedEdit> {
    let (old_text, new_text) = (&text[at.clone()], &*written.edit.text);
    let (old_lines, new_lines) = (lines(old_text), lines(new_text.as_bytes()));
    let of_old = old_lines.iter().map(|line| &old_text[line.clone()]);
    let of_new = new_lines
        .iter()
        .map(|line| &new_text.as_bytes()[line.clone()]);
    let (of_old, of_new): (Vec<&[u8]>, Vec<&[u8]>) = (of_old.collect(), of_new.collect());
    let ops = capture_diff_slices(Algorithm::Myers, &of_old, &of_new);
    let ops = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let edits = ops.map(|op| {
        let gone = bytes_of(&old_lines, op.old_range(), old_text.len());
        let new = bytes_of(&new_lines, op.new_range(), new_text.len());
        ComposedEdit {
            edit: Edit {
                at: at.start + gone.start..at.start + gone.end,
                text: new_text[new.clone()].into(),
            },
            pieces: pieces_in(&written.pieces, &new),
        }
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
