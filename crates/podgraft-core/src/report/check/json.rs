//! The findings as JSON: `kind: CheckReport`.

use serde::Serialize;

use super::{CheckedRun, Finding};
use crate::diagnostic::Severity;
use crate::wording;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport<'a> {
    api_version: &'static str,
    kind: &'static str,
    totals: CheckTotals,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckTotals {
    workloads: usize,
    up_to_date: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingJson<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

/// Renders the whole report, indented, with a line end.
pub fn render(checked: &CheckedRun<'_>) -> String {
    let (workloads, up_to_date) = checked.workloads();
    let report = CheckReport {
        api_version: "podgraft.dev/v1alpha1",
        kind: "CheckReport",
        totals: CheckTotals {
            workloads,
            up_to_date,
            errors: checked.number(Severity::Error),
            warnings: checked.number(Severity::Warning),
            notes: checked.number(Severity::Note),
        },
        findings: checked.findings.iter().map(found).collect(),
    };
    wording::pretty_json(&report)
}

fn found(finding: &Finding) -> FindingJson<'_> {
    let diagnostic = &finding.diagnostic;
    let place = finding.place();
    FindingJson {
        code: diagnostic.code.name(),
        severity: wording::severity(diagnostic.severity),
        message: &diagnostic.message,
        workload: finding.workload.as_deref(),
        file: place.map(|place| &*place.source),
        line: place.map(|place| place.line),
        column: place
            .filter(|place| !place.excerpt.is_empty())
            .map(|place| place.column),
        help: diagnostic.help.as_deref(),
    }
}
