//! Differences between the original text and the text after removing the injected values. They are noted when the
//! record is written, and restored by undo.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::edit::scalar::changed_piece;
use crate::manifest::workload::PodKinds;
use crate::record::{Record, TextDifference, TextDifferences, digest_of_bytes};
use crate::yaml::parse::parse;
use crate::yaml::splice::Edit;

use super::objects_of;

/// The byte range of an object, and where the next object begins or the text ends. The text between two objects may
/// have changed by the time of undo, since other objects come and go.
struct ObjectRegion<'t> {
    start: usize,
    /// The text of the object.
    object: &'t str,
    /// The text behind it, up to the next object.
    behind: &'t str,
    /// Both.
    whole: &'t str,
}

fn regions_of<'t>(text: &'t str, kinds: &PodKinds) -> Result<Vec<ObjectRegion<'t>>, String> {
    let tree = parse(text).map_err(|error| format!("it cannot be parsed ({:?})", error.kind))?;
    let objects = objects_of(&tree, kinds).into_iter();
    let spans: Vec<Range<usize>> = objects.map(|node| tree.span(node)).collect();
    let regions = spans.iter().enumerate().map(|(index, span)| {
        let next = spans.get(index + 1).map_or(text.len(), |next| next.start);
        let end = span.end.min(next);
        // An alias may bring an object that stands before the one in front of it.
        let between = |from, to| text.get(from..to).unwrap_or_default();
        ObjectRegion {
            start: span.start,
            object: between(span.start, end),
            behind: between(end, next),
            whole: between(span.start, next),
        }
    });
    Ok(regions.collect())
}

/// Returns, for each object, what must change in the text after removal to restore the original. Empty if the texts
/// are equal.
///
/// # Errors
/// If both texts do not have the same objects, in words.
pub(crate) fn places_between(
    undone: &str,
    original: &str,
    kinds: &PodKinds,
) -> Result<Vec<Option<TextDifferences>>, String> {
    if undone == original {
        return Ok(Vec::new());
    }
    let (undone_regions, original_regions) =
        (regions_of(undone, kinds)?, regions_of(original, kinds)?);
    if undone_regions.len() != original_regions.len() {
        return Err("it has a different number of objects".to_owned());
    }
    let start = |regions: &[ObjectRegion<'_>]| regions.first().map_or(0, |first| first.start);
    if undone[..start(&undone_regions)] != original[..start(&original_regions)] {
        return Err("the text before its objects is different".to_owned());
    }
    let pairs = undone_regions.into_iter().zip(original_regions);
    // The text up to the next object is included only if it differs.
    let differences = pairs.map(
        |(undone, original)| match undone.behind == original.behind {
            true => differences(undone.object, original.object),
            false => differences(undone.whole, original.whole),
        },
    );
    Ok(differences.collect())
}

fn differences(undone: &str, original: &str) -> Option<TextDifferences> {
    if undone == original {
        return None;
    }
    let old: Vec<&str> = undone.split_inclusive('\n').collect();
    let new: Vec<&str> = original.split_inclusive('\n').collect();
    let lines: Vec<String> = numbered_lines(undone).collect();
    let changes = capture_diff_slices(Algorithm::Myers, &old, &new);
    let changes = changes.iter();
    let places = changes
        .filter(|change| !matches!(change, DiffOp::Equal { .. }))
        .map(|change| {
            let line = change.old_range().start;
            let (removed, original) = (
                old[change.old_range()].concat(),
                new[change.new_range()].concat(),
            );
            // Without the common prefix and suffix.
            let (column, removed, original) = changed_piece(&removed, &original);
            TextDifference {
                line,
                column,
                removed: removed.to_owned(),
                original: original.to_owned(),
                line_digest: lines
                    .get(line)
                    .map_or_else(String::new, |line| digest_of_bytes(line.as_bytes())),
            }
        });
    Some(TextDifferences {
        of: digest_of_bytes(undone.as_bytes()),
        places: places.collect(),
    })
}

/// The lines of a text, each with the number of lines that equal it, and which of them it is: `1/2 env: null`.
fn numbered_lines(text: &str) -> impl Iterator<Item = String> {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for line in text.lines() {
        counts.entry(line).or_default().1 += 1;
    }
    text.lines().map(move |line| {
        let (place, count) = counts.entry(line).or_default();
        *place += 1;
        format!("{place}/{count} {line}")
    })
}

/// The edits that restore recorded text differences.
pub(super) struct RestoringEdits {
    /// In order, without overlaps.
    pub edits: Vec<Edit>,
    /// Every object has the text that it had when the differences were noted.
    pub is_as_it_was: bool,
    /// Some differences were skipped: somebody changed the object since, and their places are not certain any more.
    pub has_lost: bool,
}

/// Finds recorded text differences in the text after removal. `records` are in it by the index of their object.
pub(super) fn edits_of(
    text: &str,
    kinds: &PodKinds,
    records: &[(usize, &Record)],
) -> Result<RestoringEdits, String> {
    let regions = regions_of(text, kinds)?;
    let (mut edits, mut are_as_they_were, mut has_lost) = (Vec::new(), true, false);
    for (at, record) in records {
        let (Some(region), Some(texts)) = (regions.get(*at), &record.text) else {
            continue;
        };
        let candidates = [region.object, region.whole];
        let is_noted = |text: &str| digest_of_bytes(text.as_bytes()) == texts.of;
        let is_unchanged = candidates.into_iter().any(is_noted);
        let was_converted =
            !is_unchanged && candidates.iter().any(|text| is_noted(&converted(text)));
        let region_text = &*match was_converted {
            true => Cow::from(converted(region.whole)),
            false => Cow::from(region.whole),
        };
        let as_it_is = |noted: &str| match was_converted {
            true => converted(noted),
            false => noted.to_owned(),
        };
        let is_as_it_was = is_unchanged || was_converted;
        are_as_they_were &= is_as_it_was;
        let found = find_differences(region_text, &texts.places, is_as_it_was);
        has_lost |= found.len() < texts.places.len();
        edits.extend(found.into_iter().map(|(offset, difference)| {
            let start = region.start + as_it_is(&region_text[..offset]).len();
            Edit {
                at: start..start + as_it_is(&difference.removed).len(),
                text: as_it_is(&difference.original).into(),
            }
        }));
    }
    // In a text with both kinds of line ends, lengths that count with one of them lead beyond its end.
    let (found, is_within) = (edits.len(), |edit: &Edit| edit.at.end <= text.len());
    edits.retain(is_within);
    has_lost |= edits.len() < found;
    edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    // Overlapping edits would make `splice` panic. A changed record could have some.
    edits.dedup_by(|next, before| next.at.start < before.at.end || next == before);
    Ok(RestoringEdits {
        edits,
        is_as_it_was: are_as_they_were,
        has_lost,
    })
}

/// Changes edits that would remove the last line end of a text so that they keep it. Returns whether there were any.
pub(super) fn keep_line_end(text: &str, edits: &mut Vec<Edit>) -> bool {
    let line_end = if text.ends_with("\r\n") { "\r\n" } else { "\n" };
    let Some(last) = edits
        .last_mut()
        .filter(|last| text.ends_with('\n') && last.at.end == text.len())
    else {
        return false;
    };
    let before = if last.text.is_empty() {
        &text[..last.at.start]
    } else {
        &*last.text
    };
    if before.ends_with('\n') {
        return false;
    }
    let kept: String = [&*last.text, line_end].concat();
    match text[last.at.clone()] == kept {
        true => drop(edits.pop()),
        false => last.text = kept.into(),
    }
    true
}

/// The text with the line ends of the other kind of systems, as git and editors convert them.
fn converted(text: &str) -> String {
    match text.contains("\r\n") {
        true => text.replace("\r\n", "\n"),
        false => text.replace('\n', "\r\n"),
    }
}

/// Finds the places of recorded differences in the text after removal.
struct PlaceFinder<'t> {
    text: &'t str,
    /// Where each line starts.
    lines: Vec<usize>,
    /// The lines by their digest, if somebody changed the object since.
    moved_lines: HashMap<String, usize>,
    /// Whether the line numbers are certain.
    is_unmoved: bool,
}

impl<'t> PlaceFinder<'t> {
    /// `is_as_it_was`: the text is the recorded one.
    fn of(text: &'t str, differences: &[TextDifference], is_as_it_was: bool) -> Self {
        let line_breaks = memchr::memchr_iter(b'\n', text.as_bytes());
        let mut finder = PlaceFinder {
            text,
            lines: std::iter::once(0)
                .chain(line_breaks.map(|at| at + 1))
                .collect(),
            moved_lines: HashMap::new(),
            is_unmoved: is_as_it_was,
        };
        if !is_as_it_was {
            let digests = numbered_lines(text).map(|line| digest_of_bytes(line.as_bytes()));
            finder.moved_lines = digests.zip(0..).collect();
            // If all noted texts are still at their places, somebody changed something else.
            let has_text = differences.iter().any(|place| !place.removed.is_empty());
            let mut differences = differences.iter();
            finder.is_unmoved =
                has_text && differences.all(|place| finder.in_line(place.line, place).is_some());
        }
        finder
    }

    /// The offset of a difference. `None` if it is not certain.
    fn offset(&self, difference: &TextDifference) -> Option<usize> {
        let moved = self.moved_lines.get(&difference.line_digest);
        let moved = moved.and_then(|line| self.in_line(*line, difference));
        moved.or_else(|| match self.is_unmoved {
            true => self.in_line(difference.line, difference),
            false => self.only_place(&difference.removed),
        })
    }

    fn in_line(&self, line: usize, difference: &TextDifference) -> Option<usize> {
        let at = self.lines.get(line)?.checked_add(difference.column)?;
        let rest = self.text.get(at..)?;
        rest.starts_with(&difference.removed).then_some(at)
    }

    /// The offset of a text that occurs only once, since then its place is certain. `None` for very short texts.
    fn only_place(&self, removed: &str) -> Option<usize> {
        let first = self
            .text
            .find(removed)
            .filter(|_| removed.trim().len() > 3)?;
        (self.text.rfind(removed) == Some(first)).then_some(first)
    }
}

/// Returns the differences whose place is certain, with their offsets.
fn find_differences<'d>(
    text: &str,
    differences: &'d [TextDifference],
    is_as_it_was: bool,
) -> Vec<(usize, &'d TextDifference)> {
    let finder = PlaceFinder::of(text, differences, is_as_it_was);
    let found = differences.iter();
    let mut found: Vec<(usize, &TextDifference)> = found
        .filter_map(|difference| Some((finder.offset(difference)?, difference)))
        .collect();
    if found.len() < differences.len() {
        let moved = found.iter();
        let moved: Vec<MovedComments> = moved
            .map(|(offset, difference)| MovedComments::of(text, *offset, difference))
            .collect();
        let mut all = moved.iter();
        found.retain(|_| {
            all.next()
                .is_some_and(|comments| comments.are_kept(text, &moved))
        });
    }
    found
}

/// The comments that a difference takes away and those that it brings. A comment that moves is two differences: one of
/// them alone would lose it, or write it twice.
struct MovedComments {
    taken: Vec<String>,
    brought: Vec<String>,
}

impl MovedComments {
    fn of(text: &str, offset: usize, difference: &TextDifference) -> Self {
        let end = offset + difference.removed.len();
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at);
        let restored = [
            &text[start..offset],
            &difference.original,
            &text[end..line_end],
        ]
        .concat();
        let (before, after) = (comments_in(&text[start..line_end]), comments_in(&restored));
        MovedComments {
            taken: missing_in(&before, &after),
            brought: missing_in(&after, &before),
        }
    }

    /// Whether each comment stands once when the differences with the `moved` comments are restored.
    fn are_kept(&self, text: &str, moved: &[MovedComments]) -> bool {
        let is_brought =
            |comment: &String| moved.iter().any(|other| other.brought.contains(comment));
        let is_taken = |comment: &String| moved.iter().any(|other| other.taken.contains(comment));
        let is_new = |comment: &String| is_taken(comment) || !text.contains(comment.as_str());
        self.taken.iter().all(is_brought) && self.brought.iter().all(is_new)
    }
}

fn missing_in(some: &[&str], others: &[&str]) -> Vec<String> {
    let missing = some.iter().filter(|comment| !others.contains(comment));
    missing.map(|comment| (*comment).to_owned()).collect()
}

/// What may be the comments of a text: what follows a `#` at the beginning of a line or behind a blank.
pub(crate) fn comments_in(text: &str) -> Vec<&str> {
    let start_of_comment = |line: &str| {
        let mut signs = line.match_indices('#').map(|(at, _)| at);
        signs.find(|at| *at == 0 || line[..*at].ends_with(char::is_whitespace))
    };
    let lines = text.lines();
    lines
        .filter_map(|line| Some(line[start_of_comment(line)?..].trim_end()))
        .collect()
}
