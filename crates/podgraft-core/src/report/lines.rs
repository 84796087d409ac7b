//! Converts edits to changes of lines: which lines of the old text are removed and which are added, exactly where the
//! edits are.

use std::ops::Range;

use similar::{Algorithm, DiffOp};

use crate::yaml::splice::{Edit, splice_part, written_in};

/// A text with the byte offsets of its lines.
#[derive(Debug)]
pub(super) struct LineIndex<'a> {
    text: &'a [u8],
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        let behind_breaks = memchr::memchr_iter(b'\n', text).map(|at| at + 1);
        let found = std::iter::once(0).chain(behind_breaks);
        // Lines of manifests are longer than this, so the list does not grow.
        let mut starts = Vec::with_capacity(text.len() / 24);
        starts.extend(found.filter(|&at| at < text.len()));
        LineIndex { text, starts }
    }

    /// The number of lines. A last line without a line end counts.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The line with its line end.
    pub(super) fn get(&self, line: usize) -> &'a [u8] {
        &self.text[self.start(line)..self.start(line + 1)]
    }

    /// The byte offset of a line; the length of the text for lines after the last.
    pub(super) fn start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// The 0-based line that holds a byte; the last line for the end of the text.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        self.starts
            .partition_point(|&start| start <= byte)
            .saturating_sub(1)
    }

    /// The lines that a byte range touches. For an empty range, the empty range of lines at its place.
    pub(super) fn lines_touched(&self, bytes: &Range<usize>) -> Range<usize> {
        if self.starts.is_empty() || bytes.is_empty() {
            let line = self.starts.partition_point(|&start| start < bytes.start);
            return line..line;
        }
        self.line_at(bytes.start)..self.line_at(bytes.end - 1) + 1
    }
}

/// Removed lines, and the lines added in their place. At least one of them is not empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineChange {
    /// 0-based lines of the old text.
    pub(super) old: Range<usize>,
    /// The lines that are added.
    pub(super) new: Vec<AddedLine>,
    /// The edits that made it, as indices into the given edits.
    pub(super) edits: Range<usize>,
}

/// An added line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AddedLine {
    /// The text with its line end.
    pub(super) text: Vec<u8>,
    /// Its byte offset in the text after all the given edits.
    pub(super) at: usize,
    /// The edits that it has text of, by index in order, each with the byte range of the edit's text.
    pub(super) written_by: Vec<(usize, Range<usize>)>,
}

impl AddedLine {
    /// What some of the edits wrote of it. Found by binary search: all edits of a compact JSON text are in one line.
    pub(super) fn written_by(&self, edits: &Range<usize>) -> &[(usize, Range<usize>)] {
        let before = |limit| self.written_by.partition_point(|(edit, _)| *edit < limit);
        &self.written_by[before(edits.start)..before(edits.end)]
    }
}

/// The changes that edits make to a text, in order; no two of them share a line. The edits are in order and do not
/// overlap.
pub(super) fn changes_of(edits: &[Edit], lines: &LineIndex<'_>) -> Vec<LineChange> {
    let mut moved = 0;
    let mut changes = Vec::new();
    for region in regions(edits, lines) {
        let region_edits = &edits[region.edits.clone()];
        changes.extend(changes_in(&region, region_edits, moved, lines));
        moved += region_edits
            .iter()
            .map(|edit| edit.text.len() as isize - edit.at.len() as isize)
            .sum::<isize>();
    }
    changes
}

/// A range of whole lines of the old text with its edits, as indices.
struct LineRegion {
    old: Range<usize>,
    edits: Range<usize>,
}

/// Groups edits that touch the same lines. Only regions are diffed, so a change can never be shown away from its edit.
fn regions(edits: &[Edit], lines: &LineIndex<'_>) -> Vec<LineRegion> {
    let mut regions: Vec<LineRegion> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let old = lines.line_at(edit.at.start)..(lines.line_at(edit.at.end) + 1).min(lines.len());
        match regions.last_mut() {
            Some(last) if old.start < last.old.end => {
                last.old.end = last.old.end.max(old.end);
                last.edits.end = index + 1;
            }
            _ => regions.push(LineRegion {
                old,
                edits: index..index + 1,
            }),
        }
    }
    regions
}

/// Diffs the lines of a region. `moved` is the number of bytes by which the edits before the region move it.
fn changes_in(
    region: &LineRegion,
    edits: &[Edit],
    moved: isize,
    lines: &LineIndex<'_>,
) -> Vec<LineChange> {
    let part = lines.start(region.old.start)..lines.start(region.old.end);
    let old_text = &lines.text[part.clone()];
    let new_text = splice_part(lines.text, &part, edits);
    let old: Vec<&[u8]> = old_text.split_inclusive(|&byte| byte == b'\n').collect();
    let new: Vec<&[u8]> = new_text.split_inclusive(|&byte| byte == b'\n').collect();
    let starts: Vec<usize> = starts_of(&new);

    let ops = similar::capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut changes: Vec<LineChange> = Vec::new();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let mut inserted = Vec::new();
        for line in op.new_range() {
            let bytes = starts[line]..starts[line] + new[line].len();
            let pieces = written_in(edits, part.start, &bytes);
            let written_by = pieces.map(|(edit, piece)| (edit + region.edits.start, piece));
            inserted.push(AddedLine {
                text: new[line].to_vec(),
                at: part.start.saturating_add_signed(moved) + bytes.start,
                written_by: written_by.collect(),
            });
        }
        let deleted =
            op.old_range().start + region.old.start..op.old_range().end + region.old.start;
        match changes.last_mut() {
            Some(last) if last.old.end == deleted.start => {
                last.old.end = deleted.end;
                last.new.extend(inserted);
            }
            _ => changes.push(LineChange {
                old: deleted,
                new: inserted,
                edits: region.edits.clone(),
            }),
        }
    }
    changes
}

/// Lines of context before and after a change.
const CONTEXT: usize = 3;

/// The changes of a hunk, and its old lines with their context.
pub(super) struct ChangeGroup<'c> {
    pub(super) changes: &'c [LineChange],
    pub(super) old: Range<usize>,
}

/// A line of a hunk: one of the old text by its number, or an added one.
pub(super) enum GroupLine<'c> {
    Context(usize),
    Removed(usize),
    Added(&'c AddedLine),
}

impl<'c> ChangeGroup<'c> {
    pub(super) fn lines(&self) -> impl Iterator<Item = GroupLine<'c>> {
        let mut at = self.old.start;
        let of_changes = self.changes.iter().flat_map(move |change| {
            let context = (at..change.old.start).map(GroupLine::Context);
            at = change.old.end;
            context
                .chain(change.old.clone().map(GroupLine::Removed))
                .chain(change.new.iter().map(GroupLine::Added))
        });
        let last = self.changes.last();
        let rest = last.map_or(self.old.start, |last| last.old.end)..self.old.end;
        of_changes.chain(rest.map(GroupLine::Context))
    }
}

/// Groups changes whose contexts meet. `around` says which lines may be context of a change, and `may_touch` whether a
/// hunk with some old lines takes in a change whose context begins where these end.
pub(super) fn group<'c>(
    changes: &'c [LineChange],
    around: impl Fn(&LineChange) -> Range<usize>,
    may_touch: impl Fn(&Range<usize>, &Range<usize>) -> bool,
) -> Vec<ChangeGroup<'c>> {
    let mut groups: Vec<ChangeGroup<'c>> = Vec::new();
    let mut first = 0;
    for (index, change) in changes.iter().enumerate() {
        let around = around(change);
        let from = change.old.start.saturating_sub(CONTEXT).max(around.start);
        let to = (change.old.end + CONTEXT).min(around.end);
        match groups.last_mut() {
            Some(ChangeGroup { old, changes: of })
                if from < old.end || from == old.end && may_touch(old, &around) =>
            {
                old.end = to;
                *of = &changes[first..=index];
            }
            _ => {
                first = index;
                groups.push(ChangeGroup {
                    changes: &changes[index..=index],
                    old: from..to,
                });
            }
        }
    }
    groups
}

fn starts_of(lines: &[&[u8]]) -> Vec<usize> {
    let ends = lines.iter().scan(0, |end, line| {
        *end += line.len();
        Some(*end - line.len())
    });
    ends.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::splice::splice;

    fn changed(text: &str, edits: &[(Range<usize>, &str)]) -> Vec<(Range<usize>, String)> {
        let edits: Vec<Edit> = edits
            .iter()
            .map(|(at, text)| Edit {
                at: at.clone(),
                text: (*text).into(),
            })
            .collect();
        let changes = changes_of(&edits, &LineIndex::of(text.as_bytes()));
        let new_text = splice(text.as_bytes(), &edits);
        for line in changes.iter().flat_map(|change| &change.new) {
            assert!(new_text[line.at..].starts_with(&line.text), "{line:?}");
        }
        let text = |change: &LineChange| {
            change
                .new
                .iter()
                .flat_map(|line| line.text.clone())
                .collect()
        };
        changes
            .iter()
            .map(|change| (change.old.clone(), String::from_utf8(text(change)).unwrap()))
            .collect()
    }

    #[test]
    fn an_insertion_between_lines_takes_no_line_away() {
        assert_eq!(
            changed("a\nb\n", &[(2..2, "x\n")]),
            [(1..1, "x\n".to_owned())]
        );
        assert_eq!(
            changed("a\nb\n", &[(1..1, "\nx")]),
            [(1..1, "x\n".to_owned())]
        );
        assert_eq!(
            changed("a\nb\n", &[(4..4, "x\n")]),
            [(2..2, "x\n".to_owned())]
        );
    }

    #[test]
    fn a_last_line_without_an_end_is_replaced_when_text_follows() {
        assert_eq!(
            changed("a\nb", &[(3..3, "\nx")]),
            [(1..2, "b\nx".to_owned())]
        );
    }

    #[test]
    fn edits_of_one_line_are_one_change() {
        assert_eq!(
            changed("a b\n", &[(0..1, "x"), (2..3, "y")]),
            [(0..1, "x y\n".to_owned())]
        );
    }

    #[test]
    fn an_edit_may_reach_over_lines() {
        assert_eq!(changed("a\nb\nc\n", &[(1..3, "")]), [(1..2, String::new())]);
    }

    #[test]
    fn a_line_knows_which_edits_wrote_it() {
        let edit = |at: Range<usize>, text: &str| Edit {
            at,
            text: text.into(),
        };
        let edits = [edit(0..0, "x\n"), edit(4..5, "yy"), edit(5..5, "z")];
        let changes = changes_of(&edits, &LineIndex::of(b"aa\nb c\n"));
        let wrote: Vec<_> = changes
            .iter()
            .flat_map(|change| &change.new)
            .map(|line| line.written_by.clone())
            .collect();
        assert_eq!(wrote, [vec![(0, 0..2)], vec![(1, 0..2), (2, 0..1)]]);
    }
}
