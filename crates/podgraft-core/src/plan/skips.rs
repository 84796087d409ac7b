//! The reasons why a policy that selects a workload changes nothing: no rule or no container is chosen.

use crate::outcome::{Skip, SkipCause};
use crate::policy::{ConditionWord, ContainerChoice, ContainerList, Rule};

use super::apply::RuleContext;

/// The skip of a rule that applies but chooses no container.
pub(super) fn no_container(subject: RuleContext<'_, '_>, rule: &Rule) -> Skip {
    let workload = subject.workload;
    let choice = &rule.containers;
    let names: Vec<&str> = choice.names.iter().map(|glob| glob.glob().glob()).collect();
    let reason = subject.facts().reason_for_no_container(choice);
    let is_explained = reason.is_some();
    let wanted = match (&choice.names_from_annotation, reason) {
        (Some(key), _) if workload.has_annotation(key) => {
            format!(" (annotation `{key}` lists others)")
        }
        (_, Some(reason)) => format!(": {reason}"),
        (_, None) if choice.include == [ContainerList::Injected] => {
            " added by an earlier policy".to_owned()
        }
        (_, None) => wanted_names(choice, &names),
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
    let hint = format!("its containers: {}", container_names.join(", "));
    let is_useful = !container_names.is_empty() && !wanted.is_empty() && !is_explained;
    let hint = is_useful.then_some(hint);
    Skip {
        is_near_miss: true,
        is_selected: true,
        hint,
        ..skip
    }
}

/// The names that a rule wants, in parentheses.
fn wanted_names(choice: &ContainerChoice, names: &[&str]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let word = choice.names_word.as_ref();
    match word.and_then(ConditionWord::wanted_part) {
        Some(wanted) => format!(" ({wanted} its name)"),
        None => format!(" (wants {})", names.join(", ")),
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
