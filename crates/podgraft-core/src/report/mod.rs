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
use crate::outcome::{Outcome, PolicyReport, ReportedFile, Skip, WorkloadReport, WorkloadStatus};
use crate::wording::{self, count};

/// Cuts podgraft's own record in a line. It is one long line of no use to people.
fn without_record(line: &str) -> Cow<'_, str> {
    match line.find("podgraft.dev/record") {
        Some(at) if line.len() > at + MAX_RECORD => {
            let end = line.ceil_char_boundary(at + MAX_RECORD);
            Cow::Owned(format!("{}…", &line[..end]))
        }
        Some(_) | None => Cow::Borrowed(line),
    }
}

/// Bytes of a record, with its key, that are shown.
const MAX_RECORD: usize = 60;

/// A line of a diff for a person, with control characters escaped. Nobody applies it, so it need not be exact.
fn escaped_line(line: &str) -> String {
    wording::lines(&without_record(line.strip_suffix('\r').unwrap_or(line)))
}

/// Merges diagnostics that many files have alike (`Diagnostic::is_reported_once`): the first one stays, and counts the
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

impl PolicyReport {
    /// Why the policy does not apply, if it does not.
    fn skip(&self) -> Option<&Skip> {
        match &self.outcome {
            Outcome::Skipped(skip) => Some(skip),
            Outcome::Injected(_)
            | Outcome::TakenOut(_)
            | Outcome::UpToDate
            | Outcome::Failed(_) => None,
        }
    }

    /// The outcome as the JSON formats name it.
    fn outcome_name(&self) -> &'static str {
        match &self.outcome {
            Outcome::Injected(_) => "injected",
            Outcome::UpToDate => "upToDate",
            Outcome::TakenOut(_) => "takenOut",
            Outcome::Skipped(_) => "skipped",
            Outcome::Failed(_) => "failed",
        }
    }
}

/// What became of each workload of the input, without generated objects. Those that are not listed come last.
fn statuses(files: &[ReportedFile<'_>]) -> Vec<WorkloadStatus> {
    let workloads = files.iter().flat_map(|file| file.report.input_workloads());
    let unlisted = files.iter().flat_map(|file| &file.report.unlisted);
    let unlisted = unlisted.flat_map(|(status, number)| std::iter::repeat_n(*status, *number));
    workloads
        .map(WorkloadReport::status)
        .chain(unlisted)
        .collect()
}
