//! The changed workloads of a run with their hunks, one by one or in groups: what the formats for reviewers show.

use std::collections::BTreeMap;

use super::codeowners::Codeowners;
use super::hunks::{Hunk, ReviewedFile, tally};
use crate::outcome::{Outcome, ReportedFile, WorkloadReport};

/// By what the workloads are grouped.
#[derive(Debug, Clone, Copy)]
pub enum GroupBy<'a> {
    /// Not at all.
    Nothing,
    /// The namespace.
    Namespace,
    /// The file's folder.
    Dir,
    /// The owners of the file.
    Owners(&'a Codeowners),
}

/// A workload that changes.
pub(super) struct Reviewed<'a> {
    pub(super) file: &'a str,
    /// The lines of its hunks are those of the file.
    pub(super) is_in_file: bool,
    pub(super) workload: &'a WorkloadReport,
    pub(super) hunks: Vec<Hunk<'a>>,
    /// Lines that come and go.
    pub(super) come: usize,
    pub(super) go: usize,
    /// The name of its group; empty without groups.
    pub(super) group: String,
}

impl Reviewed<'_> {
    /// The policies that change it and what each does.
    pub(super) fn changes_by_policy(
        &self,
    ) -> impl Iterator<Item = (&str, &[crate::change::Change])> {
        self.workload
            .policies
            .iter()
            .filter_map(|met| match &met.outcome {
                Outcome::Injected(changes) | Outcome::TakenOut(changes) => {
                    Some((&*met.policy, changes.as_slice()))
                }
                Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed => None,
            })
    }
}

/// All workloads that change, in the order of files and lines.
pub(super) fn reviewed<'a>(
    files: &'a [ReportedFile<'a>],
    group_by: GroupBy<'_>,
) -> Vec<Reviewed<'a>> {
    let mut all = Vec::new();
    for file in files.iter().filter(|file| !file.report.edits.is_empty()) {
        let by_workload = ReviewedFile::new(file);
        for workload in file
            .report
            .workloads
            .iter()
            .filter(|workload| workload.is_changed())
        {
            let hunks = by_workload.hunks(workload);
            let (come, go) = tally(&hunks);
            let group = group_of(file.name, workload, group_by);
            all.push(Reviewed {
                file: file.name,
                is_in_file: !file.report.is_imagined,
                workload,
                hunks,
                come,
                go,
                group,
            });
        }
    }
    all
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

/// The groups by name, each in order.
pub(super) fn groups<'r, 'a>(all: &'r [Reviewed<'a>]) -> BTreeMap<&'r str, Vec<&'r Reviewed<'a>>> {
    let mut groups: BTreeMap<&str, Vec<&Reviewed<'a>>> = BTreeMap::new();
    for one in all {
        groups.entry(&one.group).or_default().push(one);
    }
    groups
}
