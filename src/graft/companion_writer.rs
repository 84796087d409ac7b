//! Writes the generated objects of all files. An object that several workloads need is written once, after the first
//! of them.

use std::collections::BTreeSet;

use crate::inventory::written_name;
use crate::outcome::{FileReport, ObjectName, ObjectText, PlacedObject};
use crate::yaml::splice::Edit;

/// The generated objects that this run has written.
#[derive(Debug, Default)]
pub struct WrittenObjects {
    written: BTreeSet<ObjectName>,
}

impl WrittenObjects {
    /// Marks an object as written, because another run writes it.
    pub fn mark_written(&mut self, name: ObjectName) {
        self.written.insert(name);
    }

    /// Writes the objects that are not written yet, by adding their edits to those of their workloads, and removes
    /// the others from the report. Must be called for the files, or the parts of a file, in order.
    pub fn write_companions(&mut self, report: &mut FileReport) {
        report.companions.retain(|placed| {
            placed.text.is_none() || self.written.insert(placed.companion.name.clone())
        });
        if report.companions.iter().all(|placed| placed.text.is_none()) {
            return;
        }
        report_written(report);
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

/// Reports the written objects of policies that were up to date before, because the file that held the object is gone.
fn report_written(report: &mut FileReport) {
    for placed in report
        .companions
        .iter()
        .filter(|placed| placed.text.is_some())
    {
        let companion = &placed.companion;
        let workload = report.workloads.get_mut(placed.workload);
        let policies = workload
            .into_iter()
            .flat_map(|workload| &mut workload.policies);
        let mut policies =
            policies.filter(|policy_report| policy_report.policy == companion.policy);
        if let Some(policy_report) = policies.next() {
            let name_in_record = written_name(&companion.object);
            policy_report.add_object(companion.name.to_string(), name_in_record);
        }
    }
}

/// Merges the edits of companions into those of a file, after those of their workloads. Also returns, for each
/// position, the index of the workload and the number of edits added. `first` is the index in the file of the first
/// edit in `edits`.
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

/// Returns the edits of a workload followed by those of its companions.
fn write(texts: &[&ObjectText], mut edits: Vec<Edit>) -> Vec<Edit> {
    let Some(first) = texts.first() else {
        return edits;
    };
    for room in &first.room {
        // The workload's own edits may have made the same room already.
        if !edits.contains(room) {
            // At the offset of the companions, the room goes after the workload's own edits.
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
