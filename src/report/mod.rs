//! Renders what a run did and why: each file of this folder renders [`outcome`](crate::outcome) in one format. Nothing
//! here prints.

pub mod check;
pub mod codeowners;
pub mod diff_json;
pub mod diff_sarif;
pub mod explain;
pub mod grouping;
pub mod html;
mod hunks;
pub mod inspect;
pub mod json;
mod lines;
pub mod markdown;
pub(crate) mod needs;
mod pruned;
pub mod review;
mod sarif;
pub mod stat;
pub mod summary;
pub mod text;
pub mod unified;
mod workload_head;

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::diagnostic::Diagnostic;
use crate::outcome::{ReportedFile, WorkloadReport, WorkloadStatus};
use crate::wording::count;

/// Cuts podgraft's own record in a line. It is one long line of no use to people.
fn without_record(line: &str) -> Cow<'_, str> {
    match line.find("podgraft.dev/record") {
        Some(at) if line.len() > at + MAX_RECORD => {
            let end = (at + MAX_RECORD..line.len())
                .find(|&end| line.is_char_boundary(end))
                .unwrap_or(line.len());
            Cow::Owned(format!("{}…", &line[..end]))
        }
        Some(_) | None => Cow::Borrowed(line),
    }
}

/// Bytes of a record, with its key, that are shown.
const MAX_RECORD: usize = 60;

/// Merges diagnostics that many files have alike ([`Diagnostic::is_reported_once`]): the first one stays, and counts the
/// others in its help.
pub fn merge_repeated(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut counted: Vec<(Diagnostic, usize)> = Vec::with_capacity(diagnostics.len());
    let mut first: HashMap<String, usize> = HashMap::new();
    for diagnostic in diagnostics {
        if diagnostic.is_reported_once() {
            match first.entry(diagnostic.message.clone()) {
                Entry::Occupied(first) => {
                    counted[*first.get()].1 += 1;
                    continue;
                }
                Entry::Vacant(free) => drop(free.insert(counted.len())),
            }
        }
        counted.push((diagnostic, 0));
    }
    let merged =
        counted.into_iter().map(
            |(diagnostic, twins)| match (twins, diagnostic.help.clone()) {
                (0, _) => diagnostic,
                (_, help) => {
                    let places = format!("the same in {}", count(twins, "other file"));
                    diagnostic
                        .help(help.map_or(places.clone(), |help| format!("{help} ({places})")))
                }
            },
        );
    merged.collect()
}

/// What became of each workload of the input, without generated objects.
fn statuses(files: &[ReportedFile<'_>]) -> Vec<WorkloadStatus> {
    let workloads = files.iter().flat_map(|file| file.report.input_workloads());
    workloads.map(WorkloadReport::status).collect()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use crate::change::{Change, ChangeTarget, Operation, PodItem};
    use crate::outcome::{FileReport, Outcome, PolicyReport, WorkloadReport};

    pub(super) fn report_of(workloads: Vec<WorkloadReport>) -> FileReport {
        FileReport {
            workloads,
            documents: 1,
            ..FileReport::default()
        }
    }

    /// `volume agent` is new.
    pub(super) fn added_volume() -> Change {
        let target = ChangeTarget::PodItem(PodItem::Volume, "agent".to_owned());
        Change::new(Operation::Add, target)
    }

    /// `Deployment shop/NAME` as the policy `agent` met it; each in a document of its own.
    pub(super) fn workload(name: &str, edits: Range<usize>, outcome: Outcome) -> WorkloadReport {
        let document = name.bytes().map(usize::from).sum();
        WorkloadReport {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
            line: 1,
            document: document..document + 1,
            extent: document..document + 1,
            edits,
            policies: vec![PolicyReport {
                policy: "agent".into(),
                outcome,
                rules: Vec::new(),
                is_older: false,
            }],
            ..WorkloadReport::default()
        }
    }
}
