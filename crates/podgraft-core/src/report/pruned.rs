//! Changes the report of a file when generated objects of earlier runs are pruned.

use std::collections::BTreeSet;

use crate::outcome::{FileReport, GeneratedRecord};
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
    pub(crate) fn set_edits(&mut self, edits: Vec<Edit>) {
        let old = std::mem::replace(&mut self.edits, edits);
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
            workload.edits = from..first;
            // Authors are stored for each edit. If the number of edits differs, they cannot be matched any more.
            if workload.authors.len() != workload.edits.len() {
                workload.authors.clear();
            }
        }
    }
}
