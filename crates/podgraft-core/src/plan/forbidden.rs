//! Refuses what the user forbids all policies to inject (`--forbid`).

use serde_json::Value;
use std::cell::LazyCell;
use std::ops::Range;

use crate::dangers::{self, FoundDanger};
use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::written_name;

use super::RuleContext;
use super::expand::ExpandedInjection;
use super::planner::Planner;
use super::uptake::Uptake;

/// Returns an error for each forbidden part of a rule's items for this workload. What the workload does not take as `planner`
/// has planned it counts as not injected.
pub(super) fn refuse(
    subject: RuleContext<'_, '_>,
    expanded: &ExpandedInjection<'_>,
    planner: Option<&Planner<'_, '_>>,
) -> Vec<Diagnostic> {
    if subject.options.forbid.is_empty() {
        return Vec::new();
    }
    let mut problems: Vec<Diagnostic> = Vec::new();
    let title = subject.workload.title();
    let copied = planner.into_iter().flat_map(|planner| &planner.copied);
    let planner = planner.filter(|planner| !planner.takes_all());
    let present = LazyCell::new(|| {
        let results = planner?.results()?;
        let found = results.iter().flat_map(dangers::find);
        Some(found.collect::<Vec<FoundDanger>>())
    });
    let uptake = |form| planner.map_or(Uptake::Taken, |planner| planner.uptake(form));
    let is_present = |form, found: &FoundDanger| {
        uptake(form).takes(found, present.as_ref(), FoundDanger::may_become)
    };
    let parts = expanded.injects();
    let parts = parts.flat_map(|inject| inject.formed_parts(true));
    for (form, part) in parts.chain(copied.cloned()) {
        let found = dangers::find(&part.value).into_iter();
        let found = found.filter(|found| is_present(form, found));
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
