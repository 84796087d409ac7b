//! What of the input is podgraft's own work, when no record says so: items of the given policies that stand in the
//! input with the same content.

use serde_json::Value;

use crate::manifest::pod::Workload;
use crate::policy::{Inject, Item, Policy};
use crate::select::{Base, choose_containers};
use crate::yaml::tree::NodeId;
use crate::yaml::value::to_value;

use super::expand::expand;
use super::same::is_same;

/// The base of a workload under the given policies, in one pass.
pub fn base_of(workload: &Workload<'_>, policies: &[Policy]) -> Base {
    let mut base = Base::default();
    let input = Base::default();
    for policy in policies.iter().filter(|policy| !policy.suspend) {
        for rule in &policy.rules {
            // What cannot be evaluated was not put there; where it matters, planning says why.
            let chosen = match &rule.template {
                Some(_) => choose_containers(&rule.containers, workload, &input),
                None => Vec::new(),
            };
            if let Ok(expanded) = expand(policy, rule, workload, &input, &chosen) {
                leave_out_containers(workload, &expanded.inject, &mut base);
                leave_out_texts(workload, &expanded.inject, &mut base);
            }
        }
    }
    base
}

fn leave_out_containers(workload: &Workload<'_>, inject: &Inject, base: &mut Base) {
    let init = inject.init_containers.iter().map(|(item, _)| item);
    let ours: Vec<&Item> = init.chain(inject.sidecars.iter().map(|(item, ..)| item)).collect();
    if ours.is_empty() {
        return;
    }
    for container in workload.containers() {
        let twin = ours.iter().find(|item| item.value.get("name").and_then(Value::as_str) == Some(container.name));
        let value = twin.and_then(|_| to_value(workload.tree, container.node).ok());
        if let (Some(item), Some(value)) = (twin, value)
            && is_same(&value, &item.value)
        {
            base.left_out.insert(container.node);
        }
    }
}

fn leave_out_texts(workload: &Workload<'_>, inject: &Inject, base: &mut Base) {
    let lists = [
        (workload.pod_metadata(), "annotations", &inject.pod_annotations),
        (workload.pod_metadata(), "labels", &inject.pod_labels),
        (workload.metadata(), "annotations", &inject.annotations),
        (workload.metadata(), "labels", &inject.labels),
    ];
    for (metadata, field, ours) in lists {
        let Some(mapping) = metadata.and_then(|metadata| workload.tree.get(metadata, field)) else { continue };
        for (key, item) in ours {
            let found = workload.tree.get(mapping, key);
            let is_ours = |node: &NodeId| workload.tree.scalar(*node) == item.value.as_str();
            base.left_out.extend(found.filter(is_ours));
        }
    }
}
