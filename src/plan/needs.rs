//! Collects what a policy's items for one workload need from a cluster, if the options ask for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::outcome::needs::{Need, NeedKind};
use crate::outcome::{GeneratedObject, ObjectName};

use super::expand::ExpandedInjection;
use super::{RuleContext, WorkloadPlan};

/// Adds the needs of a rule's items.
pub(super) fn collect(
    subject: RuleContext<'_, '_>,
    expanded: &ExpandedInjection<'_>,
    needs: &mut BTreeSet<Need>,
) {
    if subject.options.needs {
        let (namespace, in_running_pods) = (
            subject.workload.namespace.as_deref(),
            subject.options.ephemeral_containers,
        );
        needs.extend(
            expanded
                .injects()
                .flat_map(|inject| inject.needs(namespace, in_running_pods)),
        );
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
    let kind = match need.kind {
        NeedKind::Secret => "Secret",
        NeedKind::ConfigMap => "ConfigMap",
        NeedKind::VolumeClaim => "PersistentVolumeClaim",
        NeedKind::ServiceAccount => "ServiceAccount",
        NeedKind::Image | NeedKind::Privilege => return false,
    };
    object.group.is_empty()
        && object.kind == kind
        && (&object.namespace, &object.name) == (&need.namespace, &need.name)
}
