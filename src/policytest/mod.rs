//! Tests of policies: what a policy is expected to do to manifests, and whether it did. Texts and reports in, verdicts
//! out; the program runs the policies.

pub mod junit;
mod read;
pub mod table;
pub mod types;

use similar::TextDiff;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::change::Change;
use crate::diagnostic::{Diagnostic, Severity};
use crate::glob::{self, Of};
use crate::outcome::{Outcome, PolicyReport, WorkloadReport};

pub use read::{KIND, read};
use types::{Expect, ExpectedResult, Spec, Word};

/// One test.
#[derive(Debug)]
pub struct PolicyTest {
    /// `metadata.name`.
    pub name: String,
    /// The file that it stands in, as the user calls it.
    pub file: Arc<str>,
    /// What to run, and what to expect.
    pub spec: Spec,
}

/// What came of a test's policies on its manifests.
#[derive(Debug, Default)]
pub struct Ran {
    /// What `apply` would print; `None` where it refuses.
    pub output: Option<Vec<u8>>,
    /// What happened to each workload.
    pub workloads: Vec<WorkloadReport>,
    /// All that was said.
    pub problems: Vec<Diagnostic>,
}

/// A test and its verdicts.
#[derive(Debug)]
pub struct Judged {
    /// The test.
    pub test: PolicyTest,
    /// One for each expectation.
    pub verdicts: Vec<Verdict>,
}

/// Whether one expectation holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The expectation.
    pub what: String,
    /// What is otherwise; `None`: it holds.
    pub failure: Option<String>,
}

/// Compares what came with what is expected. `expected` is the text of the file of `expect.output`.
pub fn judge(spec: &Spec, ran: &Ran, expected: Option<&str>) -> Vec<Verdict> {
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
        verdicts.push(Verdict {
            what: format!("output {name}"),
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

/// A run that is refused although nothing says so fails, whatever else is expected.
fn not_refused(ran: &Ran) -> Option<Verdict> {
    let errors: Vec<String> = ran
        .problems
        .iter()
        .filter(|problem| problem.is_error())
        .map(|problem| format!("{}: {}", problem.code.name(), problem.message))
        .collect();
    (!errors.is_empty()).then(|| Verdict {
        what: "not refused".to_owned(),
        failure: Some(errors.join("\n")),
    })
}

fn codes_of(ran: &Ran, severity: Severity) -> BTreeSet<String> {
    let found = ran
        .problems
        .iter()
        .filter(|problem| problem.severity == severity);
    found
        .map(|problem| problem.code.name().to_owned())
        .collect()
}

fn codes(what: &str, wanted: &[String], found: &BTreeSet<String>) -> Verdict {
    let wanted: BTreeSet<String> = wanted.iter().cloned().collect();
    let list = |codes: &BTreeSet<String>| match codes.is_empty() {
        true => "none".to_owned(),
        false => codes
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let failure = (wanted != *found).then(|| format!("there are: {}", list(found)));
    Verdict {
        what: format!("{what} {}", list(&wanted)),
        failure,
    }
}

fn differs(ran: &Ran, name: &str, expected: &str) -> Option<String> {
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

fn in_results(wanted: &ExpectedResult, ran: &Ran) -> Verdict {
    let workload = match &wanted.namespace {
        Some(namespace) => format!("{} {namespace}/{}", wanted.kind, wanted.name),
        None => format!("{} {}", wanted.kind, wanted.name),
    };
    let of_policy = wanted
        .policy
        .as_ref()
        .map(|policy| format!(" by {policy}"))
        .unwrap_or_default();
    let what = format!("{workload}: {:?}{of_policy}", wanted.result);
    let is_it = |report: &&WorkloadReport| {
        fits(&wanted.kind, &report.kind)
            && fits(&wanted.name, &report.name)
            && wanted
                .namespace
                .as_ref()
                .is_none_or(|own| fits(own, report.namespace.as_deref().unwrap_or_default()))
    };
    let is_policy = |report: &&PolicyReport| {
        wanted
            .policy
            .as_ref()
            .is_none_or(|policy| **policy == *report.policy)
    };
    let found: Vec<&PolicyReport> = ran
        .workloads
        .iter()
        .filter(is_it)
        .flat_map(|report| report.policies.iter().filter(is_policy))
        .collect();
    if found.is_empty() {
        return Verdict {
            what,
            failure: Some("no such workload was compared with such a policy".to_owned()),
        };
    }
    let wrong: Vec<String> = found
        .into_iter()
        .filter_map(|report| is_otherwise(wanted, report))
        .collect();
    Verdict {
        what,
        failure: (!wrong.is_empty()).then(|| wrong.join("\n")),
    }
}

fn fits(glob: &str, text: &str) -> bool {
    glob == text || glob::compile(glob, Of::Text).is_ok_and(|glob| glob.is_match(text))
}

fn words(changes: &[Change]) -> String {
    changes
        .iter()
        .map(Change::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// What the report says, where it is not what is wanted.
fn is_otherwise(wanted: &ExpectedResult, report: &PolicyReport) -> Option<String> {
    let (word, reason) = match &report.outcome {
        Outcome::Injected(changes) => (Word::Injected, words(changes)),
        Outcome::TakenOut(changes) => (Word::TakenOut, words(changes)),
        Outcome::UpToDate => (Word::UpToDate, String::new()),
        Outcome::Skipped(skip) => (Word::Skipped, skip.reason.clone()),
        Outcome::Failed => (Word::Failed, String::new()),
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
