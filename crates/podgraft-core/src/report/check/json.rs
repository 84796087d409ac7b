//! The findings as JSON: `kind: CheckReport`.

use serde_json::{Value, json};

use super::{CheckedRun, Finding};
use crate::diagnostic::Severity;
use crate::report::json::labelled;
use crate::wording::{self, without_nulls};

/// Renders the whole report, indented, with a line end.
pub fn render(checked: &CheckedRun<'_>) -> String {
    let (workloads, up_to_date) = checked.workloads();
    wording::pretty_json(&json!({
        "apiVersion": "podgraft.dev/v1alpha1",
        "kind": "CheckReport",
        "totals": {
            "workloads": workloads,
            "upToDate": up_to_date,
            "errors": checked.number(Severity::Error),
            "warnings": checked.number(Severity::Warning),
            "notes": checked.number(Severity::Note),
        },
        "findings": checked.findings.iter().map(found).collect::<Vec<_>>(),
    }))
}

fn found(finding: &Finding) -> Value {
    let diagnostic = &finding.diagnostic;
    let place = diagnostic.place();
    let others = diagnostic.other_places().iter().map(labelled);
    let others: Vec<Value> = others.collect();
    let exact = place.filter(|place| !place.excerpt.is_empty());
    without_nulls(json!({
        "code": diagnostic.code.name(),
        "severity": wording::severity(diagnostic.severity),
        "message": diagnostic.message,
        "workload": finding.workload,
        "policy": diagnostic.policy.as_deref(),
        "file": place.map(|place| &*place.source),
        "line": place.map(|place| place.line),
        "column": exact.map(|place| place.column),
        "otherPlaces": (!others.is_empty()).then_some(others),
        "help": diagnostic.help,
    }))
}
