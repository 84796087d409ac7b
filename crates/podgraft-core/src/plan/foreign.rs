//! Looks for others that inject into a workload: an operator that has done so already, or another policy of a group of
//! which only one may apply.

use globset::GlobMatcher;
use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::policy::{MetadataKey, OtherInjector, Policy};

use super::draft::Draft;
use super::marks::is_marked;

/// Returns a skip if another injector has left its mark in the input, unless podgraft's marker names this policy.
pub(super) fn left_alone(
    policy: &Policy,
    workload: &Workload<'_>,
    draft: &Draft<'_>,
) -> Option<Skip> {
    if policy.leave_alone.is_empty() || is_marked(draft, &policy.identity) {
        return None;
    }
    let sign = |sign: &OtherInjector| match sign {
        OtherInjector::Mark(mark, values) => foreign_mark(workload, mark, values),
        OtherInjector::Container(name) => foreign_container(workload, name),
    };
    policy.leave_alone.iter().find_map(sign)
}

fn already_injected(by: String, at: Option<Range<usize>>) -> Skip {
    let reason = format!("already injected by {by}");
    Skip {
        is_near_miss: true,
        ..Skip::because(SkipCause::AlreadyInjected, reason).found_at(at)
    }
}

fn foreign_mark(
    workload: &Workload<'_>,
    mark: &MetadataKey,
    values: &[GlobMatcher],
) -> Option<Skip> {
    let tree = workload.tree;
    let (field, word, key) = match mark {
        MetadataKey::Annotation(key) => ("annotations", "annotation", key),
        MetadataKey::Label(key) => ("labels", "label", key),
    };
    let holders = [(workload.pod_metadata(), "pod "), (workload.metadata(), "")];
    holders.into_iter().find_map(|(metadata, prefix)| {
        let node = tree.get_in(metadata.texts(field), key)?;
        let value = tree.string(node)?;
        let is_meant = values.is_empty() || values.iter().any(|glob| glob.is_match(value));
        is_meant.then(|| {
            let by = format!("another tool: it has the {prefix}{word} `{key}: {value}`");
            already_injected(by, Some(tree.span(node)))
        })
    })
}

fn foreign_container(workload: &Workload<'_>, name: &GlobMatcher) -> Option<Skip> {
    let containers = workload.containers();
    let container = containers
        .iter()
        .find(|container| name.is_match(container.name))?;
    let by = format!("another tool: it has the container `{}`", container.name);
    Some(already_injected(
        by,
        Some(workload.tree.span(container.node)),
    ))
}

/// Returns an error if an earlier policy of the same group applies to this workload, too.
pub(super) fn conflicting_policy(
    policy: &Policy,
    workload: &Workload<'_>,
    earlier: &[Policy],
    reports: &[PolicyReport],
) -> Option<Diagnostic> {
    let group = policy.alone_among.as_ref()?;
    let applies = |report: &PolicyReport| !matches!(report.outcome, Outcome::Skipped(_));
    let mut rivals = earlier.iter().zip(reports).filter(|(candidate, report)| {
        candidate.alone_among.as_ref() == Some(group) && applies(report)
    });
    let (rival, _) = rivals.next()?;
    let message = format!(
        "only one `{group}` may apply to {}, but two do: `{}` and `{}`",
        workload.title(),
        rival.identity,
        policy.identity
    );
    let problem = Diagnostic::error(Code::Conflict, message)
        .at(workload.name_place(), "this workload")
        .at(
            policy.text.place(policy.selects.at.clone()),
            format!("selected here by `{}`", policy.identity),
        )
        .at(
            rival.text.place(rival.selects.at.clone()),
            format!("and here by `{}`", rival.identity),
        );
    Some(problem.help("make their selectors match different workloads"))
}
