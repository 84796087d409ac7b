//! A run as JSON: `apiVersion: podgraft.dev/v1alpha1`, `kind: Report`; and diagnostics as JSON, one on each line.

use serde::Serialize;
use serde_json::{Value, json};

use super::diff_json::{ChangeJson, done};
use super::needs::as_data;
use super::statuses;
use super::text::other_objects;
use super::workload_head::WorkloadHeader;
use crate::diagnostic::{Diagnostic, Label};
use crate::outcome::needs::RunNeeds;
use crate::outcome::view::MetricsEndpoint;
use crate::outcome::{PolicyReport, ReportedFile, WorkloadReport, WorkloadStatus};
use crate::wording::{self, without_nulls};

/// Whether the run did what it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunVerdict {
    /// The result was written.
    Succeeded,
    /// Nothing was written.
    Refused,
}

/// The first bytes of every report, by which an earlier report is recognized.
pub const HEADER: &str = "{\n  \"apiVersion\": \"podgraft.dev/v1alpha1\",\n  \"kind\": \"Report\",";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    api_version: &'static str,
    kind: &'static str,
    verdict: RunVerdict,
    totals: Value,
    files: Vec<FileJson<'a>>,
    metrics_endpoints: Vec<MetricsEndpoint>,
    needs: Vec<Value>,
    diagnostics: Vec<Value>,
}

/// The workloads that serve metrics, in the order of the files.
pub(crate) fn metrics_endpoints(files: &[ReportedFile<'_>]) -> Vec<MetricsEndpoint> {
    let workloads = files.iter().flat_map(|file| &file.report.workloads);
    workloads.filter_map(endpoint).collect()
}

fn endpoint(workload: &WorkloadReport) -> Option<MetricsEndpoint> {
    let namespace = workload.namespace.as_deref();
    let port = workload.metrics_port?.to_string();
    Some(MetricsEndpoint::of(
        &workload.kind,
        namespace,
        &workload.name,
        port,
    ))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileJson<'a> {
    file: &'a str,
    changed: bool,
    documents: usize,
    objects: usize,
    workloads: Vec<WorkloadJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadJson<'a> {
    #[serde(flatten)]
    head: WorkloadHeader<'a>,
    changed: bool,
    policies: Vec<PolicyJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyJson<'a> {
    policy: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ChangeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    near_miss: Option<bool>,
}

/// Renders the whole run, indented, with a line end.
pub fn render(
    files: &[ReportedFile<'_>],
    diagnostics: &[Diagnostic],
    verdict: RunVerdict,
) -> String {
    let needs = RunNeeds::of_files(files);
    let report = Report {
        api_version: "podgraft.dev/v1alpha1",
        kind: "Report",
        verdict,
        totals: totals(files, verdict),
        files: files
            .iter()
            .map(|reported| file(reported, verdict))
            .collect(),
        metrics_endpoints: metrics_endpoints(files),
        needs: as_data(&needs),
        diagnostics: diagnostics.iter().map(problem).collect(),
    };
    wording::pretty_json(&report)
}

/// One diagnostic as one line of JSON, without a line end.
pub fn render_diagnostic(diagnostic: &Diagnostic) -> String {
    wording::json(problem(diagnostic).to_string())
}

/// The number of workloads by status. A refused run leaves alone what would change.
fn totals(files: &[ReportedFile<'_>], verdict: RunVerdict) -> Value {
    let mut statuses = statuses(files);
    if verdict == RunVerdict::Refused {
        let changing = statuses.iter_mut().filter(|status| status.is_change());
        changing.for_each(|status| *status = WorkloadStatus::Failed);
    }
    let with = |wanted: WorkloadStatus| statuses.iter().filter(|&&status| status == wanted).count();
    json!({
        "workloads": statuses.len(),
        "injected": with(WorkloadStatus::Injected) + with(WorkloadStatus::Adopted),
        "takenOut": with(WorkloadStatus::TakenOut),
        "unchanged": with(WorkloadStatus::Unchanged),
        "notSelected": with(WorkloadStatus::NotSelected),
        "leftAlone": with(WorkloadStatus::Failed),
        "otherObjects": other_objects(files),
    })
}

fn file<'a>(file: &ReportedFile<'a>, verdict: RunVerdict) -> FileJson<'a> {
    let workloads = file.report.input_workloads();
    FileJson {
        file: file.name,
        changed: verdict == RunVerdict::Succeeded && !file.report.edits.is_empty(),
        documents: file.report.documents,
        objects: file.report.objects,
        workloads: workloads.map(|found| workload(found, verdict)).collect(),
    }
}

fn workload(workload: &WorkloadReport, verdict: RunVerdict) -> WorkloadJson<'_> {
    WorkloadJson {
        head: WorkloadHeader::of(workload),
        changed: verdict == RunVerdict::Succeeded && workload.is_changed(),
        policies: workload.policies.iter().map(policy).collect(),
    }
}

fn policy(policy_report: &PolicyReport) -> PolicyJson<'_> {
    let skip = policy_report.skip();
    let changes = policy_report.changes().unwrap_or_default();
    PolicyJson {
        policy: &policy_report.policy,
        outcome: policy_report.outcome_name(),
        changes: changes.iter().map(done).collect(),
        reason: skip.map(|skip| skip.reason.as_str()),
        near_miss: skip.map(|skip| skip.is_near_miss),
    }
}

/// A diagnostic as the JSON formats have it.
pub fn problem(diagnostic: &Diagnostic) -> Value {
    let labels = diagnostic.labels.iter().map(labelled);
    without_nulls(json!({
        "code": diagnostic.code.name(),
        "severity": wording::severity(diagnostic.severity),
        "message": diagnostic.message,
        "labels": labels.collect::<Vec<_>>(),
        "help": diagnostic.help,
    }))
}

/// A place and what is there.
pub(super) fn labelled(label: &Label) -> Value {
    json!({
        "file": &*label.place.source,
        "line": label.place.line,
        "column": label.place.column,
        "text": label.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;
    use crate::source::Source;

    #[test]
    fn a_diagnostic_is_one_line() {
        let place = Source::new("a.yaml", "a: 1\nb: 2\n").place(8..9);
        let diagnostic = Diagnostic::error(Code::NotYaml, "no\nYAML").at(place, "here");
        let line = render_diagnostic(&diagnostic);
        assert_eq!(
            line,
            r#"{"code":"not-yaml","severity":"error","message":"no\nYAML","labels":[{"file":"a.yaml","line":2,"column":4,"text":"here"}]}"#
        );
    }
}
