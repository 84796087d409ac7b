//! The reasons why a policy changes nothing: it does not select the workload, or no rule or container is chosen.

use crate::inventory::Inventory;
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::policy::{ConditionWord, ContainerList, Policy, Rule};
use crate::select::{NotApplied, select};

use super::added_containers;
use super::draft::Draft;
use super::marks::marked;

/// Returns the reports of [`super::plan`] without planning, if no policy selects the workload. `None` if one does or
/// may, or if there are diagnostics.
pub(crate) fn left_alone(
    workload: &Workload<'_>,
    policies: &[Policy],
    inventory: &Inventory,
) -> Option<Vec<PolicyReport>> {
    if !marked(&Draft::new(workload.tree, workload.object.node)).is_empty() {
        return None;
    }
    let base = added_containers::base_of(workload, policies, inventory);
    let mut warnings = Vec::new();
    let mut reports = Vec::with_capacity(policies.len());
    for policy in policies {
        match select(policy, workload, &base, inventory, &mut warnings) {
            Err(NotApplied::Skip(skip)) => {
                reports.push(PolicyReport::of(&policy.identity, Outcome::Skipped(*skip)));
            }
            Ok(()) | Err(NotApplied::Undecided(_)) => return None,
        }
    }
    (warnings.is_empty() && base.missing.borrow().is_empty()).then_some(reports)
}

/// The skip of a rule that applies but chooses no container.
pub(super) fn no_container(rule: &Rule, workload: &Workload<'_>) -> Skip {
    let choice = &rule.containers;
    let names: Vec<&str> = choice.names.iter().map(|glob| glob.glob().glob()).collect();
    let wanted = match &choice.names_from_annotation {
        Some(key) if workload.has_annotation(key) => format!(" (annotation `{key}` names others)"),
        _ if names.is_empty() && choice.include == [ContainerList::Injected] => {
            " that a policy before it added".to_owned()
        }
        _ if names.is_empty() => String::new(),
        _ => match choice
            .names_word
            .as_ref()
            .and_then(ConditionWord::wanted_part)
        {
            Some(wanted) => format!(" ({wanted} its name)"),
            None => format!(" (wants {})", names.join(", ")),
        },
    };
    let container_names: Vec<&str> = workload
        .containers()
        .iter()
        .map(|container| container.name)
        .collect();
    let at = workload
        .tree
        .get(workload.pod_spec, "containers")
        .map(|containers| workload.tree.span(containers));
    let skip = Skip::because(
        SkipCause::NoContainer,
        format!("matched, no container{wanted}"),
    )
    .found_at(at);
    let hint = format!("its containers are {}", container_names.join(", "));
    let hint = (!container_names.is_empty() && !wanted.is_empty()).then_some(hint);
    Skip {
        is_near_miss: true,
        is_selected: true,
        hint,
        ..skip
    }
}

/// The skip of a policy of which no rule applies.
pub(super) fn no_rule(skips: Vec<(&Rule, Skip)>) -> Skip {
    let is_near_miss = skips.iter().any(|(_, skip)| skip.is_near_miss);
    let is_selected = skips.iter().any(|(_, skip)| skip.is_selected);
    let near = skips
        .iter()
        .find(|(_, skip)| skip.hint.is_some())
        .or(skips.first());
    let near = near.map(|(_, skip)| skip.clone()).unwrap_or_default();
    let reasons = skips.into_iter().map(|(rule, skip)| match &rule.name {
        Some(name) => format!("{name}: {}", skip.reason),
        None => skip.reason,
    });
    Skip {
        reason: reasons.collect::<Vec<_>>().join("; "),
        is_near_miss,
        is_selected,
        ..near
    }
}
