//! Changes the report of a file when generated objects of earlier runs are pruned.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::outcome::{Author, FileReport, GeneratedRecord, WorkloadReport};
use crate::undo::{ComposedEdit, ComposedPiece};
use crate::yaml::splice::Edit;

impl FileReport {
    /// The generated objects that records of the input name and no record of the output does.
    pub fn prunable(&self) -> Vec<&GeneratedRecord> {
        let needed: BTreeSet<_> = self.needed.iter().map(GeneratedRecord::key).collect();
        self.dropped
            .iter()
            .filter(|generated| !needed.contains(&generated.key()))
            .collect()
    }

    /// Replaces the edits of the text, and gives each workload those new edits that lie where its old edits were.
    pub(crate) fn set_edits(&mut self, composed: Vec<ComposedEdit>) {
        let edits = composed.iter().map(|composed| composed.edit.clone());
        let old = std::mem::replace(&mut self.edits, edits.collect());
        let mut first = 0;
        for workload in &mut self.workloads {
            let old_edits = &old[workload.edits.clone()];
            let (Some(start), Some(end)) = (old_edits.first(), old_edits.last()) else {
                workload.edits = first..first;
                continue;
            };
            let is_before =
                |edit: &Edit| edit.at.start < start.at.start && edit.at.end <= start.at.start;
            let is_up_to = |edit: &Edit| {
                edit.at.start < end.at.end || edit.at.start == end.at.end && edit.at.is_empty()
            };
            let from = self.edits.partition_point(is_before).max(first);
            first = self.edits.partition_point(is_up_to).max(from);
            if !workload.authors.is_empty() {
                let of = |composed| authors_of(composed, workload, old_edits);
                workload.authors = composed[from..first].iter().map(of).collect();
            }
            workload.edits = from..first;
        }
    }

    /// Gives the edits that are of no workload to one beside them in whose document they are. Where an object was
    /// removed, the last line end of another one may go, too.
    pub(crate) fn assign_edits_between(&mut self) {
        let (mut first, mut before) = (0, None);
        let changed = self.workloads.iter().enumerate();
        let changed = changed.filter(|(_, workload)| workload.is_changed());
        let changed: Vec<usize> = changed.map(|(index, _)| index).collect();
        for index in changed {
            let next = self.workloads[index].edits.clone();
            let left = before.map_or(first, |before| {
                self.extend_behind(before, first..next.start)
            });
            let left = left..next.start;
            let workload = &mut self.workloads[index];
            if !left.is_empty() && is_inside(&self.edits[left.clone()], &workload.document) {
                if !workload.authors.is_empty() {
                    let none = left.clone().map(|_| Vec::new());
                    workload.authors.splice(0..0, none);
                }
                workload.edits.start = left.start;
            }
            (first, before) = (next.end, Some(index));
        }
        if let Some(last) = self.workloads.len().checked_sub(1) {
            if !self.workloads[last].is_changed() {
                self.workloads[last].edits = first..first;
            }
            self.extend_behind(last, first..self.edits.len());
        }
    }

    /// Gives those of the edits to a workload that are in its document and no further behind it than a line end. Returns
    /// the first that is not.
    fn extend_behind(&mut self, index: usize, edits: Range<usize>) -> usize {
        let workload = &mut self.workloads[index];
        let end = (workload.extent.end + "\r\n".len()).min(workload.document.end);
        let near = workload.extent.start..end;
        let taken = self.edits[edits.clone()].iter();
        let taken = taken.take_while(|edit| is_inside(std::slice::from_ref(edit), &near));
        workload.edits.end = edits.start + taken.count();
        workload.edits.end
    }
}

fn is_inside(edits: &[Edit], range: &Range<usize>) -> bool {
    let mut edits = edits.iter();
    edits.all(|edit| range.start <= edit.at.start && edit.at.end <= range.end)
}

/// The authors of a composed edit: those of the text that it has of a workload's earlier edits, and of what they removed.
fn authors_of(composed: &ComposedEdit, workload: &WorkloadReport, earlier: &[Edit]) -> Vec<Author> {
    let at = &composed.edit.at;
    let from = earlier.partition_point(|edit| edit.at.end <= at.start);
    let to = earlier
        .partition_point(|edit| edit.at.start < at.end)
        .max(from);
    let removers = workload.authors.get(from..to).unwrap_or_default().iter();
    let removers = removers.flatten().filter(|author| author.bytes.is_empty());
    let writers = composed.pieces.iter().flat_map(|piece| {
        let number = piece.first.checked_sub(workload.edits.start);
        let authors = number.and_then(|number| workload.authors.get(number));
        let authors = authors.map(Vec::as_slice).unwrap_or_default().iter();
        authors.filter_map(|author| in_piece(author, piece))
    });
    removers.cloned().chain(writers).collect()
}

/// The author of what a piece has of the author's bytes. `None` if it has none.
fn in_piece(author: &Author, piece: &ComposedPiece) -> Option<Author> {
    let start = author.bytes.start.max(piece.start);
    let end = author.bytes.end.min(piece.start + piece.bytes.len());
    let moved = |at: usize| at - piece.start + piece.bytes.start;
    (start < end).then(|| Author {
        bytes: moved(start)..moved(end),
        policies: author.policies.clone(),
    })
}
