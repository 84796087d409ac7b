//! The changed workloads of a run with their hunks, optionally in groups, for the formats that reviewers read.

use std::collections::{BTreeMap, HashSet};

use super::codeowners::Codeowners;
use super::hunks::{Hunk, LineSign, ReviewedFile, line_counts};
use crate::change::Change;
use crate::outcome::{ReportedFile, WorkloadReport};

/// How the workloads are grouped.
#[derive(Debug, Clone, Copy)]
pub enum GroupBy<'a> {
    /// No groups.
    Nothing,
    /// By namespace.
    Namespace,
    /// By the folder of the file.
    Dir,
    /// By the owners of the file.
    Owners(&'a Codeowners),
}

/// A workload that changes.
pub(super) struct ReviewedWorkload<'a> {
    pub(super) file: &'a str,
    /// The path of the file in a patch.
    pub(super) path: &'a [u8],
    /// Whether the line numbers of its hunks are those of the file. With `--against-policy`, they are those of the old
    /// policies' result.
    pub(super) is_in_file: bool,
    pub(super) workload: &'a WorkloadReport,
    pub(super) hunks: Vec<Hunk<'a>>,
    /// Number of added lines.
    pub(super) insertions: usize,
    /// Number of removed lines.
    pub(super) deletions: usize,
    /// The name of its group; empty without groups.
    pub(super) group: String,
}

impl ReviewedWorkload<'_> {
    /// The policies that change it, each with its changes.
    pub(super) fn changes_by_policy(&self) -> impl Iterator<Item = (&str, &[Change])> {
        let policies = self.workload.policies.iter();
        policies.filter_map(|policy| Some((&*policy.policy, policy.changes()?)))
    }

    /// The policies that change it.
    pub(super) fn policies(&self) -> Vec<&str> {
        self.changes_by_policy().map(|(policy, _)| policy).collect()
    }
}

/// All workloads that change, in the order of files and lines.
pub(super) fn reviewed<'a>(
    files: &'a [ReportedFile<'a>],
    group_by: GroupBy<'_>,
) -> Vec<ReviewedWorkload<'a>> {
    let mut reviews = Vec::new();
    for file in files.iter().filter(|file| !file.report.edits.is_empty()) {
        let by_workload = ReviewedFile::new(file);
        let workloads = file.report.workloads.iter();
        for workload in workloads.filter(|workload| workload.is_changed()) {
            let hunks = by_workload.hunks(workload);
            let (insertions, deletions) = line_counts(&hunks);
            let group = group_of(file.name, workload, group_by);
            reviews.push(ReviewedWorkload {
                file: file.name,
                path: file.path,
                is_in_file: !file.report.is_hypothetical,
                workload,
                hunks,
                insertions,
                deletions,
                group,
            });
        }
    }
    reviews
}

fn group_of(file: &str, workload: &WorkloadReport, group_by: GroupBy<'_>) -> String {
    match group_by {
        GroupBy::Nothing => String::new(),
        GroupBy::Namespace => workload
            .namespace
            .clone()
            .unwrap_or_else(|| "(no namespace)".to_owned()),
        GroupBy::Dir => match file.rsplit_once('/') {
            Some(("", _)) => "/".to_owned(),
            Some((folder, _)) => folder.to_owned(),
            None => ".".to_owned(),
        },
        GroupBy::Owners(owners) => match owners.of(file) {
            [] => "(no owner)".to_owned(),
            names => names.join(" "),
        },
    }
}

/// The numbers of added and of removed lines of all the workloads. A line that several of them change is one.
pub(super) fn total_lines(reviews: &[ReviewedWorkload<'_>]) -> (usize, usize) {
    let (mut added, mut removed) = (HashSet::new(), HashSet::new());
    for review in reviews {
        for (sign, line) in review.hunks.iter().flat_map(Hunk::changed_lines) {
            match sign {
                LineSign::Added => added.insert((review.file, line)),
                LineSign::Removed | LineSign::Context => removed.insert((review.file, line)),
            };
        }
    }
    (added.len(), removed.len())
}

/// The workloads by the name of their group, in their order.
pub(super) fn groups<'r, 'a>(
    reviews: &'r [ReviewedWorkload<'a>],
) -> BTreeMap<&'r str, Vec<&'r ReviewedWorkload<'a>>> {
    let mut groups: BTreeMap<&str, Vec<&ReviewedWorkload<'a>>> = BTreeMap::new();
    for review in reviews {
        groups.entry(&review.group).or_default().push(review);
    }
    groups
}
