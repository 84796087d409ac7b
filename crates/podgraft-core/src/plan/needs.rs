//! Collects what a policy's items for one workload need from a cluster, if the options ask for it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::outcome::needs::{Need, NeedKind};
use crate::outcome::{GeneratedObject, ObjectName};
use crate::policy::Rule;

use super::expand::ExpandedInjection;
use super::{RuleContext, WorkloadPlan};

/// Adds the needs of a rule's items.
pub(super) fn collect(
    subject: RuleContext<'_, '_>,
    rule: Option<&Rule>,
    expanded: &ExpandedInjection<'_>,
    needs: &mut BTreeSet<Need>,
) {
    if !subject.options.needs {
        return;
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
    for mut need in of_workload.iter().flatten().chain(common).cloned() {
        if !matches!(need.kind, NeedKind::Image | NeedKind::Privilege) {
            need.namespace.clone_from(&subject.workload.namespace);
        }
        needs.insert(need);
    }
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
