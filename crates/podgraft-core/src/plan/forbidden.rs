//! Refuses what the user forbids all policies to inject (`--forbid`).

use std::ops::Range;

use crate::dangers::{self, FoundDanger};
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::Injection;

use super::RuleContext;
use super::expand::ExpandedInjection;

/// Returns an error for each forbidden part of a rule's items for this workload.
pub(super) fn refuse(
    subject: RuleContext<'_, '_>,
    expanded: &ExpandedInjection<'_>,
) -> Vec<Diagnostic> {
    if subject.options.forbid.is_empty() {
        return Vec::new();
    }
    let mut problems: Vec<Diagnostic> = Vec::new();
    for problem in expanded
        .injects()
        .flat_map(|inject| forbidden_in(subject, inject))
    {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

fn forbidden_in(subject: RuleContext<'_, '_>, inject: &Injection) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for part in inject.parts() {
        let found = dangers::find(&part.value).into_iter();
        problems.extend(found.filter_map(|found| forbidden(subject, &found, &part.at)));
    }
    for entry in &subject.policy.generate {
        let found = dangers::data_of_secret(entry.resource.unevaluated());
        problems.extend(found.and_then(|found| forbidden(subject, &found, &entry.at)));
    }
    problems
}

/// The error for what a policy has at a place of its file, if that is forbidden.
fn forbidden(
    subject: RuleContext<'_, '_>,
    found: &FoundDanger,
    at: &Range<usize>,
) -> Option<Diagnostic> {
    if !subject.options.forbid.contains(&found.danger) {
        return None;
    }
    let message = format!(
        "policy `{}` would put `{}` into {}",
        subject.policy.identity,
        found.excerpt,
        subject.workload.title()
    );
    let problem = Diagnostic::error(Code::Forbidden, message)
        .at(subject.workload.name_place(), "this workload")
        .at(
            subject.policy.text.place(at.clone()),
            format!("`{}` is forbidden in this run", found.danger),
        );
    Some(
        problem.help(
            "change the policy, leave it out, or take the word out of `--forbid` or `forbid`",
        ),
    )
}
