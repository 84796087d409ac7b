//! Collects what a policy's items for one workload need from a cluster, if the options ask for it.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::dangers::Danger;
use crate::outcome::needs::{Need, NeedKind};
use crate::outcome::{GeneratedObject, ObjectName};
use crate::policy::Rule;
use crate::policy::needs::needs_in;

use super::expand::ExpandedInjection;
use super::planner::Planner;
use super::{RuleContext, WorkloadPlan};

/// Returns the needs of a rule's items. What the workload does not take as `planner` has planned it is not needed.
pub(super) fn of(
    subject: RuleContext<'_, '_>,
    rule: Option<&Rule>,
    expanded: &ExpandedInjection<'_>,
    planner: Option<&Planner<'_, '_>>,
) -> BTreeSet<Need> {
    if !subject.options.needs {
        return BTreeSet::new();
    }
    let placed = |need: &Need| match need.kind {
        NeedKind::Image | NeedKind::Privilege => need.clone(),
        _ => Need {
            namespace: subject.workload.namespace.clone(),
            ..need.clone()
        },
    };
    let in_running_pods = subject.options.ephemeral_containers;
    if let Some(planner) = planner.filter(|planner| !planner.takes_all()) {
        let needs = of_taken(planner, expanded, in_running_pods);
        return needs.iter().map(placed).collect();
    }
    let of_containers = expanded.of_containers.iter();
    let mut of_workload: Vec<BTreeSet<Need>> = of_containers
        .map(|inject| inject.needs(in_running_pods))
        .collect();
    // What is borrowed is the rule's, and the same for all workloads.
    let common = match (&expanded.inject, rule) {
        (Cow::Borrowed(_), Some(rule)) => rule.common_needs(in_running_pods),
        (inject, _) => {
            of_workload.push(inject.needs(in_running_pods));
            &BTreeSet::new()
        }
    };
    let needs = of_workload.iter().flatten().chain(common);
    needs.map(placed).collect()
}

/// The needs of a rule's items that the workload takes, without namespaces.
fn of_taken(
    planner: &Planner<'_, '_>,
    expanded: &ExpandedInjection<'_>,
    in_running_pods: bool,
) -> BTreeSet<Need> {
    let present: LazyCell<Option<BTreeSet<Need>>, _> = LazyCell::new(|| {
        let results = planner.results()?;
        Some(results.iter().flat_map(needs_in).collect())
    });
    let is_present = |form, need: &Need| {
        let uptake = planner.uptake(form);
        uptake.takes(need, present.as_ref(), may_become)
    };
    let mut needs = BTreeSet::new();
    for inject in expanded.injects() {
        for (form, part) in inject.formed_parts(in_running_pods) {
            let found = needs_in(&part.value).into_iter();
            needs.extend(found.filter(|need| is_present(form, need)));
        }
    }
    needs
}

/// Whether a need may have become the other one when a patch wrote it: the patch may write the name alone, and capabilities
/// go into a list with others.
fn may_become(need: &Need, other: &Need) -> bool {
    let is_exact = need.kind == NeedKind::Privilege && need.name != Danger::Capabilities.name();
    let is_same = (need.kind, &need.name) == (other.kind, &other.name);
    is_same && (!is_exact || need.detail == other.detail)
}

/// Adds the needs of all rules to the plan, except for objects that the policy generates itself.
pub(super) fn add_needs(
    subject: RuleContext<'_, '_>,
    mut needs: BTreeSet<Need>,
    companions: &[(GeneratedObject, bool)],
    planned: &mut WorkloadPlan<'_>,
) {
    if subject.options.needs {
        needs.retain(|need| {
            !companions
                .iter()
                .any(|(companion, _)| provides(&companion.name, need))
        });
        planned
            .needs
            .add(&Arc::from(subject.policy.identity.as_str()), needs);
    }
}

/// Whether a generated object meets a need.
fn provides(object: &ObjectName, need: &Need) -> bool {
    object.group.is_empty()
        && NeedKind::of_object(&object.kind) == Some(need.kind)
        && (&object.namespace, &object.name) == (&need.namespace, &need.name)
}
