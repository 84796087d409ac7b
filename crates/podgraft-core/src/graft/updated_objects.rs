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
    // The last updated object of which an edit removes something, by its start.
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
        let Some(ComposedEdit { edit: removed, .. }) = removed else {
            narrowed.push(written);
            continue;
        };
        // The `---` line and the object go each by itself if comments stand between them.
        let separator = &text[written.edit.at.start..removed.at.end];
        let is_after_separator = written.edit.text.as_bytes().starts_with(separator);
        let below_comments = edits
            .next_if(|next| is_after_separator && object_of(&next.edit) == object_of(&removed));
        let (gone, skipped) = match below_comments {
            Some(below) => (below.edit.at, separator.len()),
            None => (written.edit.at.start..removed.at.end, 0),
        };
        let mut updated = updated_part(text, &gone, replaced);
        if !written.edit.at.is_empty() {
            // The text that is written begins with what it replaces.
            updated.start = gone.start;
        }
        let removal = |at: Range<usize>| ComposedEdit {
            edit: Edit::removal(at),
            pieces: Vec::new(),
        };
        let [before, behind] = [gone.start..updated.start, updated.end..gone.end].map(removal);
        narrowed.extend(Some(before).filter(|removal| !removal.edit.at.is_empty()));
        narrowed.extend(narrow(text, &updated, &written, skipped));
        narrowed.extend(Some(behind).filter(|removal| !removal.edit.at.is_empty()));
    }
    narrowed
}

/// The part of a removed range from its first updated object to its last. Documents before and behind go without a next
/// version.
fn updated_part(
    text: &[u8],
    gone: &Range<usize>,
    replaced: &BTreeMap<usize, usize>,
) -> Range<usize> {
    let is_line_start = |at: usize| text[..at].ends_with(b"\n");
    let first = replaced.range(..=gone.start).next_back();
    let first = first.filter(|&(_, &end)| gone.start < end);
    let first = first.or_else(|| replaced.range(gone.clone()).next());
    let last = replaced.range(..gone.end).next_back();
    let start = first.map_or(gone.start, |(&start, _)| start.max(gone.start));
    let end = last.map_or(gone.end, |(_, &end)| end.min(gone.end));
    match is_line_start(start) && is_line_start(end) {
        true => start..end,
        false => gone.clone(),
    }
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
