//! Narrows the edits that replace a generated object by its next version to the lines that differ.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::undo::{ComposedEdit, ComposedPiece};
use crate::yaml::splice::Edit;

use super::policy_diff::differing_lines;

/// Returns edits with the same effect, apart from comments above an earlier version, which stay above the next one. The
/// next version of an object is written right before the earlier one, which goes: these edits become those of the lines
/// that differ, so that they lie in the object and not in the workload before. `replaced` has the extents of the earlier
/// versions: the end of each, by its start.
pub(super) fn only_differing_lines(
    text: &[u8],
    edits: Vec<ComposedEdit>,
    replaced: &BTreeMap<usize, usize>,
) -> Vec<ComposedEdit> {
    // The updated object that an edit removes, or a part of it, by its start.
    let object_of = |removal: &Edit| {
        let (&start, &end) = replaced.range(..removal.at.end).next_back()?;
        (removal.text.is_empty() && removal.at.start < end).then_some(start)
    };
    let mut narrowed = Vec::with_capacity(edits.len());
    let mut edits = edits.into_iter().peekable();
    while let Some(written) = edits.next() {
        let removed = edits.next_if(|next| {
            next.edit.at.start == written.edit.at.end && object_of(&next.edit).is_some()
        });
        let Some(removed) = removed else {
            narrowed.push(written);
            continue;
        };
        let at = written.edit.at.start..removed.edit.at.end;
        let object = object_of(&removed.edit);
        // The `---` line and the object go each by itself if comments stand between them.
        let below_comments = edits.next_if(|next| object_of(&next.edit) == object);
        let new_text = written.edit.text.as_bytes();
        match below_comments {
            Some(below) if new_text.starts_with(&text[at.clone()]) => {
                narrowed.extend(narrow(text, &below.edit.at, &written, at.len()));
            }
            below => {
                narrowed.extend(narrow(text, &at, &written, 0));
                narrowed.extend(below);
            }
        }
    }
    narrowed
}

/// The edits of the lines in which a range of the text differs from the written text, from the offset `skipped` on.
fn narrow(
    text: &[u8],
    at: &Range<usize>,
    written: &ComposedEdit,
    skipped: usize,
) -> Vec<ComposedEdit> {
    let new_text = &written.edit.text[skipped..];
    let ranges = differing_lines(&text[at.clone()], new_text.as_bytes()).into_iter();
    let edits = ranges.map(|(gone, new)| ComposedEdit {
        edit: Edit {
            at: at.start + gone.start..at.start + gone.end,
            text: new_text[new.clone()].into(),
        },
        pieces: pieces_in(&written.pieces, &(skipped + new.start..skipped + new.end)),
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
