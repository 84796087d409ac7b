//! The companions of all files together: the same object once, behind the first workload that wants it.

use std::collections::BTreeSet;

use crate::outcome::{FileReport, ObjectName, ObjectText, PlacedObject};
use crate::yaml::splice::Edit;

/// The generated objects that this run has written.
#[derive(Debug, Default)]
pub struct WrittenObjects {
    written: BTreeSet<ObjectName>,
}

impl WrittenObjects {
    /// Another run writes it.
    pub fn mark_written(&mut self, name: ObjectName) {
        self.written.insert(name);
    }

    /// Writes what is not written yet: adds the edits of companions to those of their workloads. Files, or parts of one
    /// with its edits, come in their order. What another workload has written goes from the report.
    pub fn write_companions(&mut self, report: &mut FileReport) {
        report.companions.retain(|placed| {
            placed.text.is_none() || self.written.insert(placed.companion.name.clone())
        });
        if report.companions.iter().all(|placed| placed.text.is_none()) {
            return;
        }
        let (edits, added) = merge(&report.edits, 0, report.companions.iter());
        report.edits = edits;
        report
            .companions
            .iter_mut()
            .for_each(|placed| placed.text = None);
        let mut groups = added.iter().peekable();
        let mut before = 0;
        for (index, workload) in report.workloads.iter_mut().enumerate() {
            let start = workload.edits.start + before;
            while let Some((_, added)) = groups.next_if(|(owner, _)| *owner <= index) {
                before += added;
            }
            workload.edits = start..workload.edits.end + before;
        }
    }
}

/// Edits with those of companions behind those of their workloads, and for each place the workload and how many came.
/// `first` is the number of the first edit in the file.
pub(super) fn merge<'p>(
    edits: &[Edit],
    first: usize,
    companions: impl Iterator<Item = &'p PlacedObject>,
) -> (Vec<Edit>, Vec<(usize, usize)>) {
    let placed: Vec<(&PlacedObject, &ObjectText)> = companions
        .filter_map(|placed| Some((placed, placed.text.as_ref()?)))
        .collect();
    let (mut merged, mut added, mut taken) = (
        Vec::with_capacity(edits.len() + placed.len()),
        Vec::new(),
        0,
    );
    for group in placed.chunk_by(|(left, left_text), (right, right_text)| {
        (left.workload, &left.edits, left_text.edit.at.start)
            == (right.workload, &right.edits, right_text.edit.at.start)
    }) {
        let edit_range = group[0].0.edits.start - first..group[0].0.edits.end - first;
        merged.extend_from_slice(&edits[taken..edit_range.start]);
        taken = edit_range.end;
        let texts: Vec<&ObjectText> = group.iter().map(|(_, text)| *text).collect();
        let with_companions = write(&texts, edits[edit_range.clone()].to_vec());
        added.push((
            group[0].0.workload,
            with_companions.len() - edit_range.len(),
        ));
        merged.extend(with_companions);
    }
    merged.extend_from_slice(&edits[taken..]);
    (merged, added)
}

/// The edits of a workload, and what is written behind it.
fn write(texts: &[&ObjectText], mut edits: Vec<Edit>) -> Vec<Edit> {
    let Some(first) = texts.first() else {
        return edits;
    };
    for room in &first.room {
        // A block may have been closed for other new text already.
        if !edits.contains(room) {
            // At the place of the companions it comes behind the workload's own edits.
            let is_at_end = room.at.start == first.edit.at.start;
            let is_before = |edit: &Edit| {
                edit.at.start < room.at.start || is_at_end && edit.at.start == room.at.start
            };
            edits.insert(edits.partition_point(is_before), room.clone());
        }
    }
    for (index, text) in texts.iter().enumerate() {
        let between = if index == 0 { "" } else { text.between };
        let Edit { at, text } = &text.edit;
        edits.push(Edit {
            at: at.clone(),
            text: [between, text].concat().into(),
        });
    }
    edits.extend(first.end.clone());
    edits
}
