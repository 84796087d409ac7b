//! Collects the findings of `check`: workloads that the policies would change, near misses, and all warnings of the
//! run. Each file of this folder renders them in one format.

pub mod github;
pub mod json;
pub mod junit;
pub mod sarif;
mod subject;
pub mod text;

use std::collections::HashSet;

use super::statuses;
use crate::change::{Operation, RecordCause, in_sentence};
use crate::diagnostic::{Code, Diagnostic, Label, Severity};
use crate::source::Place;
use crate::wording::{self, one_line};

use crate::outcome::{Outcome, PolicyReport, ReportedFile, Skip, WorkloadReport, WorkloadStatus};
use subject::{Subject, Subjects};

/// The findings of a run, by file and line.
#[derive(Debug)]
pub struct CheckedRun<'a> {
    /// The files of the run.
    pub files: &'a [ReportedFile<'a>],
    /// The findings, sorted by file and line.
    pub findings: Vec<Finding>,
}

/// A diagnostic and the workload that it belongs to.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The problem.
    pub diagnostic: Diagnostic,
    /// The title of the workload (`Deployment shop/orders`); `None` if it is about none.
    pub workload: Option<String>,
    /// What it is about.
    subject: Subject,
}

type WorkloadAndPolicy<'f> = (Option<&'f str>, Option<&'f str>);

fn workload_and_policy(finding: &Finding) -> WorkloadAndPolicy<'_> {
    let policy = finding.diagnostic.policy.as_deref();
    (finding.workload.as_deref(), policy)
}

impl<'a> CheckedRun<'a> {
    /// Collects the findings of the files and of the run's diagnostics.
    pub fn new(files: &'a [ReportedFile<'a>], diagnostics: &[Diagnostic]) -> Self {
        let subjects = Subjects::of(files);
        let mut findings: Vec<Finding> = Vec::new();
        for (index, file) in files.iter().enumerate() {
            for (at, workload) in file.report.workloads.iter().enumerate() {
                findings.extend(of_workload(file, workload, Subject::Workload(index, at)));
            }
        }
        let reported: Vec<Finding> = diagnostics
            .iter()
            .map(|diagnostic| of_diagnostic(diagnostic, &subjects))
            .collect();
        // An error about a workload says more than that a policy left it alone.
        let errors = reported
            .iter()
            .filter(|finding| finding.diagnostic.is_error());
        let failed: HashSet<Option<&str>> = errors.map(|error| error.workload.as_deref()).collect();
        // The unknown namespace is the cause of the near miss, and is reported itself.
        let causes = reported
            .iter()
            .filter(|finding| finding.diagnostic.code == Code::UnknownNamespace);
        let unknown: HashSet<WorkloadAndPolicy<'_>> = causes.map(workload_and_policy).collect();
        findings.retain(|finding| match finding.diagnostic.code {
            Code::LeftAlone => !failed.contains(&finding.workload.as_deref()),
            Code::NearMiss => !unknown.contains(&workload_and_policy(finding)),
            _ => true,
        });
        findings.extend(reported);
        findings.sort_by_cached_key(|finding| position_of(finding, &subjects));
        CheckedRun { files, findings }
    }

    /// Drops findings that are accepted. Errors that stop `apply` cannot be accepted.
    pub fn accept(&mut self, is_accepted: impl Fn(&Diagnostic) -> bool) {
        self.findings.retain(|finding| {
            !may_be_accepted(&finding.diagnostic) || !is_accepted(&finding.diagnostic)
        });
    }

    /// Whether an error that stops `apply` may hide other findings.
    pub fn is_partial(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.diagnostic.is_error() && !may_be_accepted(&finding.diagnostic))
    }

    /// Adds findings that are not about a manifest.
    pub fn add(&mut self, diagnostics: &[Diagnostic]) {
        let subjects = Subjects::of(self.files);
        let findings = diagnostics.iter().map(|diagnostic| Finding {
            diagnostic: diagnostic.clone(),
            workload: None,
            subject: subjects.other(diagnostic),
        });
        self.findings.extend(findings);
    }

    /// Turns warnings into errors, in what every format shows (`--strict`).
    pub fn fail_on_warnings(&mut self) {
        for finding in &mut self.findings {
            if finding.diagnostic.severity == Severity::Warning {
                finding.diagnostic.severity = Severity::Error;
            }
        }
    }

    /// The number of findings with a severity.
    pub fn number(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.diagnostic.severity == severity)
            .count()
    }

    /// The number of workloads, and of those that policies select and that are up to date.
    fn workloads(&self) -> (usize, usize) {
        let statuses = statuses(self.files);
        let is_settled = |status: &&WorkloadStatus| **status == WorkloadStatus::Unchanged;
        let settled = statuses.iter().filter(is_settled).count();
        (statuses.len(), settled)
    }
}

/// A further place of a finding in one line: ``at p.yaml:6:11: policy `agent` wants this``.
fn pointer(label: &Label) -> String {
    let text = wording::brief(&label.text);
    one_line(&format!("at {}: {text}", label.place.link()))
}

fn may_be_accepted(found: &Diagnostic) -> bool {
    let code = found.code;
    !found.is_error()
        || matches!(
            code,
            Code::OutOfDate | Code::OptedIn | Code::LeftAlone | Code::NotCovered
        )
}

/// The index of the file that a finding is in, and the line; findings without a place come last.
fn position_of(finding: &Finding, subjects: &Subjects<'_>) -> (usize, usize) {
    let place = finding.diagnostic.place();
    let file = place.and_then(|place| subjects.file(place));
    (
        file.unwrap_or(usize::MAX),
        place.map_or(0, |place| place.line),
    )
}

fn of_workload(
    file: &ReportedFile<'_>,
    workload: &WorkloadReport,
    subject: Subject,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let title = workload.title();
    if workload.is_changed() {
        found.push(out_of_date(workload));
    }
    for policy_report in &workload.policies {
        match &policy_report.outcome {
            Outcome::Skipped(skip) if skip.is_near_miss => {
                found.push(near_miss(&title, &policy_report.policy, skip))
            }
            Outcome::Failed(_) => {
                let message = format!(
                    "{title} is left alone by {}, which failed",
                    policy_report.policy
                );
                found.push(
                    Diagnostic::error(Code::LeftAlone, message)
                        .of_policy(&*policy_report.policy)
                        .help("see the message of that policy for the cause"),
                );
            }
            Outcome::Injected(_)
            | Outcome::TakenOut(_)
            | Outcome::UpToDate
            | Outcome::Skipped(_) => {}
        }
    }
    let place = |diagnostic: Diagnostic| match diagnostic.labels.is_empty() {
        true => diagnostic.at(first_line(file, workload), ""),
        false => diagnostic,
    };
    found
        .into_iter()
        .map(|diagnostic| Finding {
            diagnostic: place(diagnostic).of_workload(title.clone()),
            workload: Some(title.clone()),
            subject,
        })
        .collect()
}

fn out_of_date(workload: &WorkloadReport) -> Diagnostic {
    let by: Vec<String> = workload
        .policies
        .iter()
        .filter_map(pending_changes)
        .collect();
    let by = match by.as_slice() {
        [] => "only its record would change".to_owned(),
        by => by.join("; "),
    };
    let message = format!("{} is not up to date: {by}", workload.title());
    Diagnostic::error(Code::OutOfDate, message).help(
        "review the changes with `podgraft diff`, and make them with `podgraft apply --in-place`",
    )
}

/// What a policy would still change in a workload, in words; `None` if nothing.
fn pending_changes(policy_report: &PolicyReport) -> Option<String> {
    let policy = &policy_report.policy;
    let changes = policy_report.changes()?;
    if changes.is_empty() {
        return Some(format!("nothing is left of {policy}"));
    }
    let cause = changes.iter().find_map(|change| match &change.operation {
        Operation::Record(cause) => Some(cause),
        _ => None,
    });
    let changes = in_sentence(changes);
    Some(match (policy_report.is_older, cause) {
        // Whichever of the two was given another weight.
        (_, Some(RecordCause::MovedBefore(other))) => {
            format!("{policy} now applies before {other}")
        }
        (_, Some(RecordCause::Version)) => {
            format!("injected by a different version of {policy}, with the same result")
        }
        (true, None) => {
            format!("injected by a different version of {policy}, which would {changes}")
        }
        (false, None) | (_, Some(_)) => format!("{policy} would {changes}"),
    })
}

fn near_miss(title: &str, policy: &str, skip: &Skip) -> Diagnostic {
    let reason = &skip.reason;
    let diagnostic = match skip.is_opted_in {
        true => Diagnostic::error(
            Code::OptedIn,
            format!("{title} opts in to {policy}, which does not apply: {reason}"),
        ),
        false => Diagnostic::warning(
            Code::NearMiss,
            format!("{policy} nearly applies to {title}: {reason}"),
        ),
    };
    // The user has to fix the manifest, and its place is the last one.
    let diagnostic = match skip.places.last() {
        Some(label) if skip.in_manifest.is_some() => diagnostic.at(label.place.clone(), "found"),
        _ => diagnostic,
    };
    let diagnostic = diagnostic.of_policy(policy);
    match &skip.hint {
        Some(hint) => diagnostic.help(hint.clone()),
        None => diagnostic,
    }
}

/// The first line of the object.
fn first_line(file: &ReportedFile<'_>, workload: &WorkloadReport) -> Place {
    Place::of_line(file.name, workload.line)
}

/// Converts a diagnostic to a finding. An injection by another version of a policy is out of date in any case, so it is
/// an error.
fn of_diagnostic(diagnostic: &Diagnostic, subjects: &Subjects<'_>) -> Finding {
    let severity = match diagnostic.code {
        Code::AppliedBefore => Severity::Error,
        _ => diagnostic.severity,
    };
    let subject = subjects.about(diagnostic);
    let named = diagnostic.workload.as_deref().map(str::to_owned);
    Finding {
        diagnostic: diagnostic.clone().with_severity(severity),
        workload: named.or_else(|| subjects.workload(subject).map(WorkloadReport::title)),
        subject,
    }
}
