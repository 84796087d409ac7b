//! The reasons why a policy that selects a workload changes nothing: no rule or no container is chosen.

use crate::manifest::pod::Workload;
use crate::outcome::{Skip, SkipCause};
use crate::policy::{ConditionWord, ContainerList, Rule};

/// The skip of a rule that applies but chooses no container.
pub(super) fn no_container(rule: &Rule, workload: &Workload<'_>) -> Skip {
    let choice = &rule.containers;
    let names: Vec<&str> = choice.names.iter().map(|glob| glob.glob().glob()).collect();
    let wanted = match &choice.names_from_annotation {
        Some(key) if workload.has_annotation(key) => format!(" (annotation `{key}` lists others)"),
        _ if names.is_empty() && choice.include == [ContainerList::Injected] => {
            " added by an earlier policy".to_owned()
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
    let hint = format!("its containers: {}", container_names.join(", "));
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
