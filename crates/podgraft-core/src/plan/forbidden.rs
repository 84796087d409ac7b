//! Refuses what the user forbids all policies to inject (`--forbid`).

use serde_json::Value;
use std::cell::LazyCell;
use std::ops::Range;

use crate::dangers::{self, FoundDanger};
use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::written_name;
use crate::policy::Injection;

use super::RuleContext;
use super::expand::ExpandedInjection;

/// Returns an error for each forbidden part of a rule's items for this workload. If it lacks some of them, `result` is the
/// workload with the rule, and what is not in it counts as not injected.
pub(super) fn refuse(
    subject: RuleContext<'_, '_>,
    expanded: &ExpandedInjection<'_>,
    result: impl FnOnce() -> Option<Value>,
) -> Vec<Diagnostic> {
    if subject.options.forbid.is_empty() {
        return Vec::new();
    }
    let mut problems: Vec<Diagnostic> = Vec::new();
    let title = subject.workload.title();
    let present = LazyCell::new(|| result().as_ref().map(dangers::find));
    let is_present = |found: &FoundDanger| present.as_ref().is_none_or(|all| all.contains(found));
    for part in expanded.injects().flat_map(Injection::parts) {
        let found = dangers::find(&part.value).into_iter().filter(is_present);
        for problem in found.filter_map(|found| forbidden(subject, &found, &part.at, &title)) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems
}

/// Returns an error for each forbidden part of an object that a policy generates.
pub(super) fn refuse_generated(
    subject: RuleContext<'_, '_>,
    object: &Value,
    at: &Range<usize>,
) -> Vec<Diagnostic> {
    if subject.options.forbid.is_empty() {
        return Vec::new();
    }
    let found = dangers::find_generated(object).into_iter();
    let title = format!("the {} that it generates", written_name(object));
    found
        .filter_map(|found| forbidden(subject, &found, at, &title))
        .collect()
}

/// The error for what a policy has at a place of its file, if that is forbidden. `title` is what it goes into.
fn forbidden(
    subject: RuleContext<'_, '_>,
    found: &FoundDanger,
    at: &Range<usize>,
    title: &str,
) -> Option<Diagnostic> {
    if !subject.options.forbid.contains(&found.danger) {
        return None;
    }
    let message = format!(
        "policy `{}` has `{}` for {title}, and `{}` is forbidden",
        subject.policy.identity, found.excerpt, found.danger
    );
    let problem = Diagnostic::error(Code::Forbidden, message)
        .at(subject.workload.name_place(), "this workload")
        .at(
            subject.policy.text.place(at.clone()),
            "forbidden in this run",
        );
    Some(problem.help("change the policy, skip it, or remove the word from `--forbid` or `forbid`"))
}
