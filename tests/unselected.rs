//! Documents that no policy selects, as their text shows: they are not parsed, and the result is as if they were.

use crate::promises;
use podgraft_core::graft::{Options, graft};
use podgraft_core::outcome::{FileReport, ReportedFile};
use podgraft_core::policy::Policy;
use podgraft_core::report::json::{self, RunVerdict};
use podgraft_core::report::text::{self, ReportMode};
use serde_json::Value;
use std::sync::Arc;

const POLICY: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  match:
    workloadSelector: {matchLabels: {runtime: java}}
    annotations: {example.com/agent: '*'}
  inject:
    env: [{name: A, value: b}]
";

/// Ways to write the key `runtime`.
const KEYS: &[&str] = &[
    "runtime:",
    "\"runtime\":",
    "'runtime':",
    "\"r\\x75ntime\":",
    "? runtime\n    :",
];

/// Ways to write the label `java`, and other labels.
const VALUES: &[&str] = &[
    "java",
    "java # the runtime",
    "'java'",
    "\"java\"",
    "\"\\x6aava\"",
    "\"j\\u0061va\"",
    "\"ja\\\n      va\"",
    "|-\n      java",
    ">-\n      java",
    "!!str java",
    "*runtime",
    "go",
    "\"go\"",
    "javascript",
    "\"ja\n      va\"",
];

/// Lines that may hide an escape, or look like one.
const ARGUMENTS: &[&str] = &[
    "[a]",
    "['\\x6aava', \"b\"]",
    "[\"a\\tb\"]",
    "\n        - |\n          a \\\n          b",
];

fn document(key: &str, value: &str, arguments: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
  annotations:
    example.com/agent: &runtime {alias}
  labels:
    {key} {value}
spec:
  template:
    spec:
      containers:
      - name: app
        image: app
        args: {arguments}
",
        alias = if value == "*runtime" { "java" } else { "x" }
    )
}

fn policies() -> Vec<Policy> {
    promises::policies(POLICY).expect("the policy is right")
}

fn run(text: &str, brief: bool, parse_all: bool) -> FileReport {
    let options = Options {
        brief,
        parse_all,
        ..Options::default()
    };
    graft(
        &Arc::from("orders.yaml"),
        text.as_bytes(),
        &policies(),
        &options,
    )
}

#[test]
fn however_a_label_is_written_its_workload_is_selected() {
    let mut selected = 0;
    for key in KEYS {
        for value in VALUES {
            for arguments in ARGUMENTS {
                let text = document(key, value, arguments);
                let whole = run(&text, false, true);
                assert!(!whole.is_refused(), "{text}\n{:?}", whole.diagnostics);
                for brief in [true, false] {
                    let report = run(&text, brief, false);
                    assert_eq!(report.edits, whole.edits, "{text}");
                    assert_eq!(report.objects, 1, "{text}");
                    assert_eq!(report.diagnostics, whole.diagnostics, "{text}");
                    assert_eq!(report.workloads.len(), usize::from(!brief), "{text}");
                }
                selected += usize::from(!whole.edits.is_empty());
            }
        }
    }
    assert_eq!(selected, KEYS.len() * 11 * ARGUMENTS.len());
}

#[test]
fn an_error_in_a_document_that_is_not_selected_is_reported_with_parse_all_only() {
    let broken = document("runtime:", "go", "[a\n");
    for brief in [true, false] {
        let report = run(&broken, brief, false);
        assert!(!report.is_refused(), "{:?}", report.diagnostics);
        assert_eq!((report.documents, report.objects), (1, 1));
        assert!(run(&broken, brief, true).is_refused());
        let selected = document("runtime:", "java", "[a\n");
        assert!(run(&selected, brief, false).is_refused());
    }
}

#[test]
fn a_workload_that_cannot_be_read_counts_as_not_selected() {
    let broken = document("runtime:", "go", "[a\n");
    let report = run(&broken, false, false);
    let files = [ReportedFile {
        name: "orders.yaml",
        path: b"orders.yaml",
        text: broken.as_bytes(),
        report: &report,
    }];
    let totals = text::totals(&files, ReportMode::Done);
    assert_eq!(totals, "1 workload: 1 not selected; 0 other objects\n");
    let report = json::render(&files, &[], RunVerdict::Succeeded);
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    let totals = &report["totals"];
    assert_eq!(
        (&totals["workloads"], &totals["notSelected"]),
        (&1.into(), &1.into())
    );
    // An explanation reads all workloads.
    let options = Options {
        places: true,
        ..Options::default()
    };
    let name = Arc::from("orders.yaml");
    assert!(graft(&name, broken.as_bytes(), &policies(), &options).is_refused());
}

#[test]
fn a_template_that_is_not_rendered_is_refused() {
    let template = document("runtime:", "{{ .Values.runtime }}", "[a]");
    for brief in [true, false] {
        assert!(run(&template, brief, false).is_refused(), "{template}");
    }
}

#[test]
fn an_object_that_is_looked_up_is_not_passed_over() {
    let condition = "  matchConditions:
  - {name: gateway, expression: \"lookup('apps/v1', 'Deployment', 'gateway').hasValue()\"}
";
    let policy = POLICY.replace("  inject:\n", &format!("{condition}  inject:\n"));
    let policies = promises::policies(&policy).expect("the policy is right");
    let broken = document("runtime:", "go", "[a\n");
    for brief in [true, false] {
        let options = Options {
            brief,
            ..Options::default()
        };
        let name = Arc::from("orders.yaml");
        assert!(graft(&name, broken.as_bytes(), &policies, &options).is_refused());
    }
}

#[test]
fn a_trace_of_an_earlier_run_is_always_looked_at() {
    let marked =
        document("runtime:", "go", "[a\n").replace("example.com/agent", "podgraft.dev/applied");
    for brief in [true, false] {
        assert!(run(&marked, brief, false).is_refused());
    }
}
