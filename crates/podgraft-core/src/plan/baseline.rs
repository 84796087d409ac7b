//! Finds podgraft's own work in an input that has no record: items of the input that equal those of the given policies.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::change::MetadataOwner;
use crate::inventory::Inventory;
use crate::manifest::pod::{Container, Workload};
use crate::policy::parts::{CONTAINER_LISTS, POD_LISTS};
use crate::policy::template::has_expression;
use crate::policy::{EnvOp, Injection, Policy, PolicyValue, Rule};
use crate::select::{Baseline, choose_containers};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{field, to_value};

use super::equality::is_same;
use super::expand::expand;

/// Returns the baseline of a workload under the given policies: first without what they put into the pod, then without
/// what they put into the remaining containers. Also returns the containers that have the name of an injected one, but
/// other content. `is_own_work` tells whether an item of the input that equals one of a policy is its own work: people
/// write the same labels and variables, but hardly ever the same container, so those of any policy are left out.
pub(super) fn base_of(
    workload: &Workload<'_>,
    policies: &[Policy],
    inventory: &Inventory,
    is_own_work: impl Fn(&Policy) -> bool,
) -> (Baseline, BTreeSet<NodeId>) {
    let (mut base, mut unlike) = (Baseline::default(), BTreeSet::new());
    let input = Baseline::default();
    let looks_at_items = policies.iter().any(looks_at_items);
    let given = policies.iter().filter(|policy| !policy.suspend);
    let given: Vec<(&Policy, bool)> = given.map(|policy| (policy, is_own_work(policy))).collect();
    each_rule(
        workload,
        &given,
        inventory,
        &input,
        PassScope::Pod,
        |inject, is_own_work, _| {
            leave_out_containers(workload, inject, &mut base, &mut unlike);
            if is_own_work {
                leave_out_texts(workload, inject, &mut base);
            }
            if is_own_work && looks_at_items {
                leave_out_pod_items(workload, inject, &mut base);
            }
        },
    );
    if !looks_at_items {
        return (base, unlike);
    }
    let given: Vec<(&Policy, bool)> = given.into_iter().filter(|(_, is_own)| *is_own).collect();
    // If nothing is left out, the expressions evaluated over the input keep their results.
    let of_pod = match base.left_out.is_empty() {
        true => input,
        false => Baseline::without(base.left_out.clone()),
    };
    each_rule(
        workload,
        &given,
        inventory,
        &of_pod,
        PassScope::Container,
        |inject, _, chosen| {
            for container in chosen {
                leave_out_container_items(workload, container, inject, &mut base);
            }
        },
    );
    // `of_pod` has noted missing objects that rules looked up which may not even apply. Do not report those.
    let looks_up = policies.iter().any(|policy| !policy.looks_up.is_empty());
    if of_pod.left_out == base.left_out && !looks_up {
        return (of_pod, unlike);
    }
    (base, unlike)
}

/// Whether a policy can see list items other than containers: by an expression, or by the names of variables.
fn looks_at_items(policy: &Policy) -> bool {
    !policy.match_conditions.is_empty() || policy.rules.iter().any(does_rule_look_at_items)
}

fn does_rule_look_at_items(rule: &Rule) -> bool {
    let choice = &rule.containers;
    rule.template.is_some()
        || !rule.match_conditions.is_empty()
        || !choice.match_conditions.is_empty()
        || choice.computed_names.iter().any(Option::is_some)
        || !choice.with_env.is_empty()
        || !choice.without_env.is_empty()
}

/// Whether a pass looks at what goes into the pod or into its containers.
#[derive(Debug, Clone, Copy)]
enum PassScope {
    Pod,
    Container,
}

fn each_rule(
    workload: &Workload<'_>,
    given: &[(&Policy, bool)],
    inventory: &Inventory,
    seen: &Baseline,
    level: PassScope,
    mut call: impl FnMut(&Injection, bool, &[Container<'_>]),
) {
    for &(policy, is_own_work) in given {
        for rule in &policy.rules {
            let template = rule.template.as_ref();
            let may_be_present =
                |inject: &Value| may_be_present(workload, inject, level, is_own_work);
            if template.is_some_and(|template| !may_be_present(template.written())) {
                continue;
            }
            let chosen = match (template, level) {
                (None, PassScope::Pod) => Vec::new(),
                _ => {
                    let chosen =
                        choose_containers(policy, &rule.containers, workload, seen, inventory, &[]);
                    let Ok(chosen) = chosen else { continue };
                    chosen
                }
            };
            // What cannot be evaluated was not injected either. Planning reports the error if the rule applies.
            if let Ok(expanded) = expand(policy, rule, workload, seen, inventory, &chosen) {
                call(&expanded.inject, is_own_work, &chosen);
                for (container, inject) in chosen.iter().zip(&expanded.of_containers) {
                    call(inject, is_own_work, std::slice::from_ref(container));
                }
            }
        }
    }
}

/// Whether the input may hold something of an `inject`, judging by names without expressions. If not, the expressions
/// of the `inject` need not be evaluated.
fn may_be_present(
    workload: &Workload<'_>,
    inject: &Value,
    level: PassScope,
    is_own_work: bool,
) -> bool {
    let tree = workload.tree;
    let holds = |holder: NodeId, list: &&str| {
        inject.get(list).is_some() && tree.get(holder, list).is_some()
    };
    let mut containers = workload.containers().iter();
    if let PassScope::Container = level {
        let has_list = |node| CONTAINER_LISTS.iter().any(|list| holds(node, list));
        return containers.any(|container| has_list(container.node));
    }
    let lists = ["initContainers", "sidecars"];
    let mut lists = lists.iter().filter_map(|list| inject.get(list));
    let mut texts = texts_of(workload).into_iter();
    let has_container = lists.any(|list| may_have_container(workload, list));
    if has_container || !is_own_work {
        return has_container;
    }
    POD_LISTS.iter().any(|list| holds(workload.pod_spec, list))
        || texts.any(|(word, metadata, field)| {
            let mapping = metadata.filter(|_| inject.get(word).is_some());
            let mapping = mapping.and_then(|metadata| tree.get(metadata, field));
            mapping.is_some_and(|mapping| may_have_entry(tree, mapping, &inject[word]))
        })
}

fn may_have_container(workload: &Workload<'_>, injected: &Value) -> bool {
    let mut items = injected.as_array().into_iter().flatten();
    let may_be_there = |name: &str| {
        let mut containers = workload.containers().iter();
        has_expression(name) || containers.any(|container| container.name == name)
    };
    !injected.is_array()
        || items.any(|item| {
            field(item, "name")
                .and_then(Value::as_str)
                .is_none_or(may_be_there)
        })
}

fn may_have_entry(tree: &Tree<'_>, mapping: NodeId, injected: &Value) -> bool {
    let is_present = |key: &String| has_expression(key) || tree.get(mapping, key).is_some();
    injected
        .as_object()
        .is_none_or(|entries| entries.keys().any(is_present))
}

/// The fields of `inject` for labels and annotations, each with the metadata and the field that it is for.
fn texts_of(workload: &Workload<'_>) -> [(&'static str, Option<NodeId>, &'static str); 4] {
    let (pod, object) = (workload.pod_metadata(), workload.metadata());
    [
        ("podAnnotations", pod, "annotations"),
        ("podLabels", pod, "labels"),
        ("annotations", object, "annotations"),
        ("labels", object, "labels"),
    ]
}

fn leave_out_pod_items(workload: &Workload<'_>, inject: &Injection, base: &mut Baseline) {
    let (of_pod, _) = inject.items_of_lists();
    for (list, items) in POD_LISTS.iter().zip(of_pod) {
        leave_out_items(workload, workload.pod_spec, list, &items, base);
    }
}

fn leave_out_container_items(
    workload: &Workload<'_>,
    container: &Container<'_>,
    inject: &Injection,
    base: &mut Baseline,
) {
    let (_, of_container) = inject.items_of_lists();
    for (list, items) in CONTAINER_LISTS.iter().zip(of_container) {
        leave_out_items(workload, container.node, list, &items, base);
    }
}

/// Leaves out the items of a list that equal one of the policy's.
fn leave_out_items(
    workload: &Workload<'_>,
    holder: NodeId,
    list: &str,
    policy_items: &[&PolicyValue],
    base: &mut Baseline,
) {
    let Some(node) = workload
        .tree
        .get(holder, list)
        .filter(|_| !policy_items.is_empty())
    else {
        return;
    };
    for item in workload.tree.items(node) {
        if let Ok(value) = to_value(workload.tree, item)
            && policy_items
                .iter()
                .any(|wanted| is_same(&value, &wanted.value))
        {
            base.left_out.insert(item);
        }
    }
}

fn leave_out_containers(
    workload: &Workload<'_>,
    inject: &Injection,
    base: &mut Baseline,
    unlike: &mut BTreeSet<NodeId>,
) {
    let init = inject.init_containers.iter().map(|(item, _)| item);
    let policy_containers: Vec<&PolicyValue> = init
        .chain(inject.sidecars.iter().map(|(item, ..)| item))
        .collect();
    if policy_containers.is_empty() {
        return;
    }
    for container in workload.containers() {
        let counterpart = policy_containers.iter().find(|item| {
            field(&item.value, "name").and_then(Value::as_str) == Some(container.name)
        });
        let value = counterpart.and_then(|_| to_value(workload.tree, container.node).ok());
        if let (Some(item), Some(value)) = (counterpart, value) {
            match is_same(&value, &item.value) {
                true => base.left_out.insert(container.node),
                false => unlike.insert(container.node),
            };
        }
    }
}

fn leave_out_texts(workload: &Workload<'_>, inject: &Injection, base: &mut Baseline) {
    let policy_texts = [
        &inject.pod_annotations,
        &inject.pod_labels,
        &inject.annotations,
        &inject.labels,
    ];
    for ((_, metadata, field), policy_texts) in texts_of(workload).into_iter().zip(policy_texts) {
        let Some(mapping) = metadata.and_then(|metadata| workload.tree.get(metadata, field)) else {
            continue;
        };
        for (key, item) in policy_texts {
            let found = workload.tree.get(mapping, key);
            let has_policy_value =
                |node: &NodeId| workload.tree.string(*node) == item.value.as_str();
            base.left_out.extend(found.filter(has_policy_value));
        }
    }
    let texts = inject.text_changes.iter();
    for text in texts.filter(|text| text.change.op != EnvOp::Remove) {
        let metadata = match text.owner {
            MetadataOwner::Pod => workload.pod_metadata(),
            MetadataOwner::Workload => workload.metadata(),
        };
        let mapping = metadata.and_then(|metadata| workload.tree.get(metadata, text.field));
        let found = mapping.and_then(|mapping| workload.tree.get(mapping, &text.change.name));
        let wanted = field(&text.change.item.value, "value").and_then(Value::as_str);
        let has_policy_value = |node: &NodeId| {
            wanted.is_some_and(|wanted| workload.tree.string(*node) == Some(wanted))
        };
        base.left_out.extend(found.filter(has_policy_value));
    }
}
