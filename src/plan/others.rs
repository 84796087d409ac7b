//! Who else has to do with a workload: an operator that has been here, another policy of a group of which one is enough.

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::policy::Policy;
use crate::report::{Outcome, PolicyReport, Skip};

use super::draft::Draft;
use super::marked;

/// An operator's own mark on a workload, where podgraft's marker does not say that this policy put it there.
pub(super) fn foreign_mark(
    policy: &Policy,
    workload: &Workload<'_>,
    draft: &Draft<'_>,
) -> Option<Skip> {
    if policy.foreign_marks.is_empty()
        || marked(draft)
            .split(',')
            .any(|name| name.trim() == policy.identity)
    {
        return None;
    }
    let tree = workload.tree;
    let annotations = tree.get(workload.pod_metadata()?, "annotations")?;
    policy.foreign_marks.iter().find_map(|mark| {
        let value = tree.scalar(tree.get(annotations, &mark.annotation)?)?;
        mark.values.iter().any(|own| own == value).then(|| {
            let reason = format!(
                "the pod annotation `{}: {value}` says that somebody else has done it",
                mark.annotation
            );
            let at = tree
                .get(annotations, &mark.annotation)
                .map(|value| tree.span(value));
            Skip {
                is_near_miss: true,
                ..Skip::because(reason).found_at(at)
            }
        })
    })
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
        "two resources of kind {group} are for {}: `{}` and `{}`",
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
