//! Who else has to do with a workload: an operator that has been here, another policy of a group of which one is enough.

use globset::GlobMatcher;
use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::policy::{LeaveAlone, Mark, Policy};

use super::draft::Draft;
use super::marks::is_marked;

/// What another injector has left in the input, where podgraft's marker does not say that this policy put it there.
pub(super) fn left_alone(
    policy: &Policy,
    workload: &Workload<'_>,
    draft: &Draft<'_>,
) -> Option<Skip> {
    if policy.leave_alone.is_empty() || is_marked(draft, &policy.identity) {
        return None;
    }
    let sign = |sign: &LeaveAlone| match sign {
        LeaveAlone::Mark(mark, values) => left_mark(workload, mark, values),
        LeaveAlone::Container(name) => left_container(workload, name),
    };
    policy.leave_alone.iter().find_map(sign)
}

fn already(by: String, at: Option<Range<usize>>) -> Skip {
    let reason = format!("already injected by {by}");
    Skip {
        is_near_miss: true,
        ..Skip::because(SkipCause::AlreadyInjected, reason).found_at(at)
    }
}

fn left_mark(workload: &Workload<'_>, mark: &Mark, values: &[GlobMatcher]) -> Option<Skip> {
    let tree = workload.tree;
    let (field, word, key) = match mark {
        Mark::Annotation(key) => ("annotations", "annotation", key),
        Mark::Label(key) => ("labels", "label", key),
    };
    let holders = [(workload.pod_metadata(), "pod "), (workload.metadata(), "")];
    holders.into_iter().find_map(|(metadata, whose)| {
        let node = tree.get(tree.get(metadata?, field)?, key)?;
        let value = tree.scalar(node)?;
        let is_meant = values.is_empty() || values.iter().any(|glob| glob.is_match(value));
        is_meant.then(|| {
            let by = format!("somebody else: the {whose}{word} `{key}: {value}` says so");
            already(by, Some(tree.span(node)))
        })
    })
}

fn left_container(workload: &Workload<'_>, name: &GlobMatcher) -> Option<Skip> {
    let containers = workload.containers();
    let container = containers
        .iter()
        .find(|container| name.is_match(container.name))?;
    let by = format!("somebody else: it has the container `{}`", container.name);
    Some(already(by, Some(workload.tree.span(container.node))))
}

/// An earlier policy of the same group that is for this workload, too.
pub(super) fn rival(
    policy: &Policy,
    workload: &Workload<'_>,
    earlier: &[Policy],
    reports: &[PolicyReport],
) -> Option<Diagnostic> {
    let group = policy.alone_among.as_ref()?;
    let applies = |report: &PolicyReport| !matches!(report.outcome, Outcome::Skipped(_));
    let mut rivals = earlier
        .iter()
        .zip(reports)
        .filter(|(other, report)| other.alone_among.as_ref() == Some(group) && applies(report));
    let (rival, _) = rivals.next()?;
    let message = format!(
        "only one of `{group}` may be for {}, and these are: `{}` and `{}`",
        workload.title(),
        rival.identity,
        policy.identity
    );
    let problem = Diagnostic::error(Code::Conflict, message)
        .at(workload.own_place(), "this workload")
        .at(
            policy.text.place(policy.selects.at.clone()),
            format!("chosen here by `{}`", policy.identity),
        )
        .at(
            rival.text.place(rival.selects.at.clone()),
            format!("and here by `{}`", rival.identity),
        );
    Some(problem.help("let their selectors choose different workloads"))
}
