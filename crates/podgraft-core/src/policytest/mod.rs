//! Tests of policies: compares what policies did to manifests with what is expected. Takes texts and reports, returns
//! results; the program runs the policies.

pub mod junit;
mod read;
pub mod table;
pub mod types;

use similar::TextDiff;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::change::Change;
use crate::diagnostic::{Diagnostic, Severity};
use crate::glob::{self, GlobSubject};
use crate::outcome::{Outcome, PolicyReport, WorkloadReport};
use crate::source::Place;

pub use read::{KIND, read};
use types::{Expect, ExpectedOutcome, ExpectedResult, PolicyTestSpec};

/// A test, from an object of kind `PolicyTest`.
#[derive(Debug)]
pub struct PolicyTest {
    /// `metadata.name`.
    pub name: String,
    /// The file of the test, as named by the user.
    pub file: Arc<str>,
    /// The place of the test in the file.
    pub at: Place,
    /// The places of `params`.
    pub params_at: Vec<Place>,
    /// The place of `kubeVersion`.
    pub kube_version_at: Place,
    /// What to run, and the expectations.
    pub spec: PolicyTestSpec,
}

/// The result of running the policies of a test on its manifests.
#[derive(Debug, Default)]
pub struct TestRun {
    /// The output of `apply`; `None` if the run is refused.
    pub output: Option<Vec<u8>>,
    /// The reports of all workloads.
    pub workloads: Vec<WorkloadReport>,
    /// All diagnostics of the run.
    pub problems: Vec<Diagnostic>,
}

/// A test and the result of each expectation.
#[derive(Debug)]
pub struct TestResult {
    /// The test.
    pub test: PolicyTest,
    /// The result of each expectation, in order.
    pub verdicts: Vec<ExpectationResult>,
}

impl TestResult {
    /// The number of expectations that are not met.
    pub fn failures(&self) -> usize {
        let verdicts = self.verdicts.iter();
        verdicts.filter(|verdict| verdict.failure.is_some()).count()
    }
}

/// The result of an expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectationResult {
    /// The expectation, for messages.
    pub expectation: String,
    /// The difference from the expectation; `None` if it is met.
    pub failure: Option<String>,
}

/// Compares a run with the expectations of a test. `expected` is the content of the file that `expect.output` names.
pub fn judge(
    spec: &PolicyTestSpec,
    ran: &TestRun,
    expected: Option<&str>,
) -> Vec<ExpectationResult> {
    let Expect {
        output,
        refused,
        warnings,
        results,
    } = &spec.expect;
    let mut verdicts = Vec::new();
    if refused.is_empty() {
        verdicts.extend(not_refused(ran));
    } else {
        verdicts.push(codes(
            "refused with",
            refused,
            &codes_of(ran, Severity::Error),
        ));
    }
    if let (Some(name), Some(expected)) = (output, expected) {
        verdicts.push(ExpectationResult {
            expectation: format!("output {name}"),
            failure: differs(ran, name, expected),
        });
    }
    if let Some(warnings) = warnings {
        verdicts.push(codes(
            "warnings",
            warnings,
            &codes_of(ran, Severity::Warning),
        ));
    }
    verdicts.extend(results.iter().map(|result| in_results(result, ran)));
    verdicts
}

/// A failure if the run has errors. A test that does not expect a refusal fails on any error.
fn not_refused(ran: &TestRun) -> Option<ExpectationResult> {
    let errors: Vec<String> = ran
        .problems
        .iter()
        .filter(|problem| problem.is_error())
        .map(|problem| format!("{}: {}", problem.code.name(), problem.message))
        .collect();
    (!errors.is_empty()).then(|| ExpectationResult {
        expectation: "not refused".to_owned(),
        failure: Some(errors.join("\n")),
    })
}

fn codes_of(ran: &TestRun, severity: Severity) -> BTreeSet<String> {
    let found = ran
        .problems
        .iter()
        .filter(|problem| problem.severity == severity);
    found
        .map(|problem| problem.code.name().to_owned())
        .collect()
}

fn codes(subject: &str, wanted: &[String], found: &BTreeSet<String>) -> ExpectationResult {
    let wanted: BTreeSet<String> = wanted.iter().cloned().collect();
    let failure = (wanted != *found).then(|| format!("there are: {}", list_codes(found)));
    ExpectationResult {
        expectation: format!("{subject} {}", list_codes(&wanted)),
        failure,
    }
}

fn list_codes(codes: &BTreeSet<String>) -> String {
    if codes.is_empty() {
        return "none".to_owned();
    }
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    codes.join(", ")
}

fn differs(ran: &TestRun, name: &str, expected: &str) -> Option<String> {
    let Some(output) = &ran.output else {
        return Some("there is no output: the run was refused".to_owned());
    };
    let output = String::from_utf8_lossy(output);
    if output == expected {
        return None;
    }
    Some(
        TextDiff::from_lines(expected, &output)
            .unified_diff()
            .header(name, "what came out")
            .to_string(),
    )
}

fn in_results(wanted: &ExpectedResult, ran: &TestRun) -> ExpectationResult {
    let workload = match &wanted.namespace {
        Some(namespace) => format!("{} {namespace}/{}", wanted.kind, wanted.name),
        None => format!("{} {}", wanted.kind, wanted.name),
    };
    let of_policy = wanted
        .policy
        .as_ref()
        .map(|policy| format!(" by {policy}"))
        .unwrap_or_default();
    let expectation = format!("{workload}: {:?}{of_policy}", wanted.result);
    let policy = wanted.policy.as_deref();
    let is_policy = |report: &&PolicyReport| policy.is_none_or(|policy| *policy == *report.policy);
    let workloads = ran.workloads.iter();
    let found: Vec<&PolicyReport> = workloads
        .filter(|report| is_meant(wanted, report))
        .flat_map(|report| report.policies.iter().filter(is_policy))
        .collect();
    if found.is_empty() {
        return ExpectationResult {
            expectation,
            failure: Some("no such workload was compared with such a policy".to_owned()),
        };
    }
    let wrong: Vec<String> = found
        .into_iter()
        .filter_map(|report| is_mismatch(wanted, report))
        .collect();
    ExpectationResult {
        expectation,
        failure: (!wrong.is_empty()).then(|| wrong.join("\n")),
    }
}

fn is_meant(wanted: &ExpectedResult, report: &WorkloadReport) -> bool {
    let namespace = report.namespace.as_deref().unwrap_or_default();
    fits(&wanted.kind, &report.kind)
        && fits(&wanted.name, &report.name)
        && wanted
            .namespace
            .iter()
            .all(|wanted| fits(wanted, namespace))
}

fn fits(glob: &str, text: &str) -> bool {
    glob == text || glob::compile(glob, GlobSubject::Text).is_ok_and(|glob| glob.is_match(text))
}

fn words(changes: &[Change]) -> String {
    changes
        .iter()
        .map(Change::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The difference between a report and the expected result; `None` if they agree.
fn is_mismatch(wanted: &ExpectedResult, report: &PolicyReport) -> Option<String> {
    let (word, reason) = match &report.outcome {
        Outcome::Injected(changes) => (ExpectedOutcome::Injected, words(changes)),
        Outcome::TakenOut(changes) => (ExpectedOutcome::TakenOut, words(changes)),
        Outcome::UpToDate => (ExpectedOutcome::UpToDate, String::new()),
        Outcome::Skipped(skip) => (ExpectedOutcome::Skipped, skip.reason.clone()),
        Outcome::Failed(_) => (ExpectedOutcome::Failed, String::new()),
    };
    let has_reason = wanted
        .reason
        .as_ref()
        .is_none_or(|glob| fits(glob, &reason));
    if word == wanted.result && has_reason {
        return None;
    }
    let reason = if reason.is_empty() {
        reason
    } else {
        format!(" ({reason})")
    };
    Some(format!("{word:?} by {}{reason}", report.policy))
}
