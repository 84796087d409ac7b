//! Collects what a policy's items for one workload need from a cluster, if the options ask for it.

use serde_json::Value;
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::outcome::needs::{Need, NeedKind};
use crate::outcome::{GeneratedObject, ObjectName};
use crate::policy::Rule;
use crate::policy::needs::needs_in;

use super::expand::ExpandedInjection;
use super::{RuleContext, WorkloadPlan};

/// Returns the needs of a rule's items. If the workload lacks some of them, `result` is the workload with the rule, and only
/// what it needs counts.
pub(super) fn of(
    subject: RuleContext<'_, '_>,
    rule: Option<&Rule>,
    expanded: &ExpandedInjection<'_>,
    result: impl FnOnce() -> Option<Value>,
) -> BTreeSet<Need> {
    if !subject.options.needs {
        return BTreeSet::new();
    }
    let in_running_pods = subject.options.ephemeral_containers;
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
    let present = LazyCell::new(|| result().as_ref().map(needs_in));
    let is_present = |need: &&Need| present.as_ref().is_none_or(|all| all.contains(need));
    let needs = of_workload.iter().flatten().chain(common);
    let placed = needs.filter(is_present).map(|need| match need.kind {
        NeedKind::Image | NeedKind::Privilege => need.clone(),
        _ => Need {
            namespace: subject.workload.namespace.clone(),
            ..need.clone()
        },
    });
    placed.collect()
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
