//! Where taking out alone leaves other bytes than there were: noted when the record is written, and put right by undo.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::ops::Range;

use crate::manifest::workload::PodKinds;
use crate::record::{Record, TextPlace, Texts, digest_of_bytes};
use crate::report::Edit;
use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};

use super::objects_of;

/// The bytes of each object up to the next, all bytes of the document together.
fn regions(tree: &Tree<'_>, objects: &[NodeId]) -> Vec<Range<usize>> {
    let start = |at: usize| match objects.get(at) {
        Some(_) if at == 0 => 0,
        Some(node) => tree.span(*node).start,
        None => tree.text().len(),
    };
    (0..objects.len()).map(|at| start(at)..start(at + 1)).collect()
}

fn regions_of(text: &str, kinds: &PodKinds) -> Result<Vec<Range<usize>>, String> {
    let tree = parse(text).map_err(|error| format!("it cannot be parsed ({:?})", error.kind))?;
    Ok(regions(&tree, &objects_of(&tree, kinds)))
}

/// What the text after taking out needs to have the bytes of the original, object by object.
///
/// # Errors
/// When the two do not hold the same objects, in words.
pub fn places_between(undone: &str, original: &str, kinds: &PodKinds) -> Result<Vec<Option<Texts>>, String> {
    let (own, wanted) = (regions_of(undone, kinds)?, regions_of(original, kinds)?);
    if own.len() != wanted.len() {
        return Err("it has another number of objects".to_owned());
    }
    Ok(own.into_iter().zip(wanted).map(|(own, wanted)| between(&undone[own], &original[wanted])).collect())
}

fn between(undone: &str, original: &str) -> Option<Texts> {
    if undone == original {
        return None;
    }
    let old: Vec<&str> = undone.split_inclusive('\n').collect();
    let new: Vec<&str> = original.split_inclusive('\n').collect();
    let changes = capture_diff_slices(Algorithm::Myers, &old, &new);
    let places = changes.iter().filter(|change| !matches!(change, DiffOp::Equal { .. })).map(|change| {
        let (is, was) = (old[change.old_range()].concat(), new[change.new_range()].concat());
        trimmed(change.old_range().start, &is, &was)
    });
    Some(Texts { of: digest_of_bytes(undone.as_bytes()), places: places.collect() })
}

/// Without what both begin and end with.
fn trimmed(line: usize, is: &str, was: &str) -> TextPlace {
    let same = is.char_indices().zip(was.chars()).find(|((_, one), other)| one != other);
    let start = same.map_or(is.len().min(was.len()), |((at, _), _)| at);
    let (is, was) = (&is[start..], &was[start..]);
    let twins = is.chars().rev().zip(was.chars().rev()).take_while(|(one, other)| one == other);
    let end: usize = twins.map(|(one, _)| one.len_utf8()).sum();
    (line, start, is[..is.len() - end].to_owned(), was[..was.len() - end].to_owned())
}

/// The edits that the records' places are on a text. Where somebody changed the object since, what cannot be found
/// without doubt is left.
pub(super) fn edits_of(text: &str, kinds: &PodKinds, records: &[(usize, &Record)]) -> Result<Vec<Edit>, String> {
    let regions = regions_of(text, kinds)?;
    let mut edits = Vec::new();
    for (at, record) in records {
        let (Some(region), Some(texts)) = (regions.get(*at), &record.text) else { continue };
        let own = &text[region.clone()];
        let is_as_it_was = digest_of_bytes(own.as_bytes()) == texts.of;
        for place in &texts.places {
            let found = if is_as_it_was { offset_of(own, place) } else { only_place_of(own, place) };
            edits.extend(found.map(|offset| {
                let start = region.start + offset;
                Edit { at: start..start + place.2.len(), text: place.3.as_str().into() }
            }));
        }
    }
    edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    edits.dedup_by(|next, before| next.at.start < before.at.end);
    Ok(edits)
}

fn offset_of(text: &str, (line, column, is, _): &TextPlace) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(*line).map(str::len).sum();
    let at = start.checked_add(*column)?;
    text.get(at..)?.starts_with(is.as_str()).then_some(at)
}

/// Whole lines that stand in the text once say by themselves where they belong.
fn only_place_of(text: &str, (_, _, is, _): &TextPlace) -> Option<usize> {
    let mut found = text.match_indices(is.as_str()).map(|(at, _)| at);
    let first = found.next().filter(|_| is.trim().len() > 3)?;
    found.next().is_none().then_some(first)
}
