//! Where taking out alone leaves other bytes than there were: noted when the record is written, and put right by undo.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::ops::Range;

use crate::manifest::workload::PodKinds;
use crate::record::{Record, TextPlace, Texts, digest_of_bytes};
use crate::yaml::parse::parse;
use crate::yaml::splice::Edit;

use super::objects_of;

/// Where each object begins and ends, and where the next begins or the text ends. What comes between two objects may be
/// another thing by the time of undo: other objects come and go.
struct Region {
    own: Range<usize>,
    next: usize,
}

fn regions_of(text: &str, kinds: &PodKinds) -> Result<Vec<Region>, String> {
    let tree = parse(text).map_err(|error| format!("it cannot be parsed ({:?})", error.kind))?;
    let spans: Vec<Range<usize>> = objects_of(&tree, kinds)
        .into_iter()
        .map(|node| tree.span(node))
        .collect();
    let next = |at: usize| spans.get(at + 1).map_or(text.len(), |next| next.start);
    Ok(spans
        .iter()
        .enumerate()
        .map(|(at, own)| Region {
            own: own.start..own.end.min(next(at)),
            next: next(at),
        })
        .collect())
}

/// What the text after taking out needs to have the bytes of the original, object by object; nothing where it has them.
///
/// # Errors
/// When the two do not hold the same objects, in words.
pub(crate) fn places_between(
    undone: &str,
    original: &str,
    kinds: &PodKinds,
) -> Result<Vec<Option<Texts>>, String> {
    if undone == original {
        return Ok(Vec::new());
    }
    let (own, wanted) = (regions_of(undone, kinds)?, regions_of(original, kinds)?);
    if own.len() != wanted.len() {
        return Err("it has another number of objects".to_owned());
    }
    let head = |text: &str, regions: &[Region]| {
        text[..regions.first().map_or(0, |first| first.own.start)].to_owned()
    };
    if head(undone, &own) != head(original, &wanted) {
        return Err("what stands before its objects is another".to_owned());
    }
    let pairs = own.into_iter().zip(wanted);
    Ok(pairs
        .map(|(own, wanted)| between((undone, &own), (original, &wanted)))
        .collect())
}

/// Within the object where that is enough.
fn between((undone, own): (&str, &Region), (original, wanted): (&str, &Region)) -> Option<Texts> {
    if undone[own.own.end..own.next] == original[wanted.own.end..wanted.next] {
        return differences(&undone[own.own.clone()], &original[wanted.own.clone()]);
    }
    differences(
        &undone[own.own.start..own.next],
        &original[wanted.own.start..wanted.next],
    )
}

fn differences(undone: &str, original: &str) -> Option<Texts> {
    if undone == original {
        return None;
    }
    let old: Vec<&str> = undone.split_inclusive('\n').collect();
    let new: Vec<&str> = original.split_inclusive('\n').collect();
    let changes = capture_diff_slices(Algorithm::Myers, &old, &new);
    let places = changes
        .iter()
        .filter(|change| !matches!(change, DiffOp::Equal { .. }))
        .map(|change| {
            let (is, was) = (
                old[change.old_range()].concat(),
                new[change.new_range()].concat(),
            );
            trimmed(change.old_range().start, &is, &was)
        });
    Some(Texts {
        of: digest_of_bytes(undone.as_bytes()),
        places: places.collect(),
    })
}

/// Without what both begin and end with.
fn trimmed(line: usize, is: &str, was: &str) -> TextPlace {
    let same = is
        .char_indices()
        .zip(was.chars())
        .find(|((_, one), other)| one != other);
    let start = same.map_or(is.len().min(was.len()), |((at, _), _)| at);
    let (is, was) = (&is[start..], &was[start..]);
    let twins = is
        .chars()
        .rev()
        .zip(was.chars().rev())
        .take_while(|(one, other)| one == other);
    let end: usize = twins.map(|(one, _)| one.len_utf8()).sum();
    (
        line,
        start,
        is[..is.len() - end].to_owned(),
        was[..was.len() - end].to_owned(),
    )
}

/// What the records' places come to on a text.
pub(super) struct Further {
    /// In order, without overlaps.
    pub edits: Vec<Edit>,
    /// Every object is as it was when the places were noted.
    pub is_as_it_was: bool,
    /// Some places were left, as somebody changed the object since and they cannot be found without doubt.
    pub has_lost: bool,
}

/// What the records' places come to on a text.
pub(super) fn edits_of(
    text: &str,
    kinds: &PodKinds,
    records: &[(usize, &Record)],
) -> Result<Further, String> {
    let regions = regions_of(text, kinds)?;
    let (mut edits, mut are_as_they_were, mut has_lost) = (Vec::new(), true, false);
    for (at, record) in records {
        let (Some(region), Some(texts)) = (regions.get(*at), &record.text) else {
            continue;
        };
        let own = &text[region.own.start..region.next];
        let is_as_it_was = [&text[region.own.clone()], own]
            .iter()
            .any(|own| digest_of_bytes(own.as_bytes()) == texts.of);
        are_as_they_were &= is_as_it_was;
        // Where all texts still stand where they stood, somebody changed something else.
        let has_text = texts.places.iter().any(|place| !place.2.is_empty());
        let is_there = |place| offset_of(own, place).is_some();
        let is_unmoved = is_as_it_was || has_text && texts.places.iter().all(is_there);
        for place in &texts.places {
            let found = if is_unmoved {
                offset_of(own, place)
            } else {
                only_place_of(own, place)
            };
            has_lost |= found.is_none();
            edits.extend(found.map(|offset| {
                let start = region.own.start + offset;
                Edit {
                    at: start..start + place.2.len(),
                    text: place.3.as_str().into(),
                }
            }));
        }
    }
    edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    edits.dedup_by(|next, before| next.at.start < before.at.end);
    Ok(Further {
        edits,
        is_as_it_was: are_as_they_were,
        has_lost,
    })
}

/// Makes edits that take a text's last line end leave it. Whether there are any.
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

fn offset_of(text: &str, (line, column, is, _): &TextPlace) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(*line).map(str::len).sum();
    let at = start.checked_add(*column)?;
    text.get(at..)?.starts_with(is.as_str()).then_some(at)
}

/// Whole lines that stand in the text once say by themselves where they belong.
fn only_place_of(text: &str, (_, _, is, _): &TextPlace) -> Option<usize> {
    let first = text.find(is.as_str()).filter(|_| is.trim().len() > 3)?;
    (text.rfind(is.as_str()) == Some(first)).then_some(first)
}
