//! Lists the parts that an `inject` adds, as Kubernetes values, and the lists of a pod that it adds items to.

use json_patch::PatchOperation;
use json_patch::jsonptr::Pointer;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::dangers::APP_ARMOR;

use super::{EnvOp, Injection, PatchEntry, PolicyValue};

/// Lists of a PodSpec, other than containers, that policies add items to.
pub(crate) const POD_LISTS: [&str; 2] = ["volumes", "imagePullSecrets"];
/// Lists of a container that policies add items to.
pub(crate) const CONTAINER_LISTS: [&str; 4] = ["envFrom", "ports", "env", "volumeMounts"];

/// The items that an `inject` adds to a list, and the key of the list.
pub(crate) type ListItems<'i> = (&'static str, Vec<&'i PolicyValue>);

/// How a part gets into a workload, and so where it can be found there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PartForm {
    /// As it is stated.
    Whole,
    /// As a piece of a text, or not into the workload at all.
    Hidden,
    /// By the patch of this index.
    Patch(usize),
}

/// A part and its form.
pub(crate) type FormedPart = (PartForm, PolicyValue);

impl Injection {
    /// All injected parts except labels and annotations that are no settings of a pod.
    pub fn parts(&self) -> Vec<PolicyValue> {
        let parts = self.formed_parts(true).into_iter();
        parts.map(|(_, part)| part).collect()
    }

    /// The parts that are written into a workload. Ephemeral containers are for running pods only.
    pub(crate) fn parts_of_workload(&self) -> Vec<PolicyValue> {
        let parts = self.formed_parts(false).into_iter();
        parts.map(|(_, part)| part).collect()
    }

    /// The parts with their forms, with or without those for running pods only.
    pub(crate) fn formed_parts(&self, in_running_pods: bool) -> Vec<FormedPart> {
        let ephemeral = self.ephemeral_containers.iter();
        let ephemeral = ephemeral.filter(|_| in_running_pods);
        let init = self.init_containers.iter().map(|(item, _)| item);
        let containers = init.chain(self.sidecars.iter().map(|(item, ..)| item));
        let single = [
            &self.pod_spec,
            &self.container_defaults,
            &self.pod_security_context,
        ];
        let single = single.into_iter().flatten();
        let hidden = ephemeral.map(|item| (PartForm::Hidden, item.clone()));
        let whole = |item: &PolicyValue| (PartForm::Whole, item.clone());
        hidden
            .chain(containers.map(whole))
            .chain(self.parts_of_lists())
            .chain(single.map(whole))
            .chain(self.profiles())
            .chain(self.patched_parts())
            .collect()
    }

    fn parts_of_lists(&self) -> Vec<FormedPart> {
        let joined = self.env.iter().filter(|change| change.op.joins());
        let joined: BTreeSet<&str> = joined.map(|change| change.name.as_str()).collect();
        let form = |list: &str, item: &PolicyValue| match item.value["name"].as_str() {
            Some(name) if list == "env" && joined.contains(name) => PartForm::Hidden,
            _ => PartForm::Whole,
        };
        let mut parts = Vec::new();
        let (of_pod, of_container) = self.items_of_lists();
        for (list, items) in of_pod.into_iter().chain(of_container) {
            parts.extend(items.into_iter().map(|item| match list {
                // Only the key says that such an item is the name of a Secret.
                "imagePullSecrets" => {
                    let value = Arc::new(json!({list: [&*item.value]}));
                    let at = item.at.clone();
                    (PartForm::Whole, PolicyValue { value, at })
                }
                _ => (form(list, item), item.clone()),
            }));
        }
        parts
    }

    /// The annotations that are profiles of AppArmor. Only the key says so.
    fn profiles(&self) -> impl Iterator<Item = FormedPart> {
        let annotations = self.pod_annotations.iter().chain(&self.annotations);
        let set = annotations.map(|(key, item)| (PartForm::Whole, key, &*item.value, &item.at));
        let changes = self.text_changes.iter().map(|text| &text.change);
        let changed = changes.filter_map(|change| {
            let form = match change.op.joins() {
                true => PartForm::Hidden,
                false => PartForm::Whole,
            };
            let text = change.item.value.get("value")?;
            Some((form, &change.name, text, &change.item.at))
        });
        let profiles = set.chain(changed);
        let profiles = profiles.filter(|(_, key, ..)| key.starts_with(APP_ARMOR));
        profiles.map(|(form, key, text, at)| {
            let value = Arc::new(json!({key.as_str(): text}));
            let at = at.clone();
            (form, PolicyValue { value, at })
        })
    }

    /// What patches add or replace.
    fn patched_parts(&self) -> Vec<FormedPart> {
        let mut parts = Vec::new();
        for entry in &self.patches {
            for operation in &entry.patch.0 {
                let value = match operation {
                    PatchOperation::Add(add) => &add.value,
                    PatchOperation::Replace(replace) => &replace.value,
                    // What is copied or moved is the workload's: the planner finds it.
                    PatchOperation::Remove(_)
                    | PatchOperation::Move(_)
                    | PatchOperation::Copy(_)
                    | PatchOperation::Test(_) => continue,
                };
                parts.push(entry.part(operation, value.clone()));
            }
        }
        parts
    }

    /// The items for each of [`POD_LISTS`] and each of [`CONTAINER_LISTS`]. All fields are named here, so that the compiler
    /// asks whether a new one is such a list: if it is left out, a second run takes its items for the user's, `--forbid`
    /// and `policy lint` do not see them, and expressions in them do not know `container`.
    pub(crate) fn items_of_lists(&self) -> ([ListItems<'_>; 2], [ListItems<'_>; 4]) {
        let Injection {
            volumes,
            image_pull_secrets,
            env,
            volume_mounts,
            ports,
            env_from,
            // Containers.
            init_containers: _,
            sidecars: _,
            // Labels and annotations.
            pod_annotations: _,
            pod_labels: _,
            annotations: _,
            labels: _,
            // No items of lists, or none that are written into a workload.
            ephemeral_containers: _,
            text_changes: _,
            pod_spec: _,
            pod_spec_places: _,
            container_defaults: _,
            pod_security_context: _,
            checksums: _,
            patches: _,
        } = self;
        let env = env.iter().filter(|change| change.op != EnvOp::Remove);
        (
            [
                ("volumes", volumes.iter().map(|(item, _)| item).collect()),
                ("imagePullSecrets", image_pull_secrets.iter().collect()),
            ],
            [
                ("envFrom", env_from.iter().collect()),
                ("ports", ports.iter().collect()),
                ("env", env.map(|change| &change.item).collect()),
                ("volumeMounts", volume_mounts.iter().collect()),
            ],
        )
    }
}

impl PatchEntry {
    /// A value that an operation of the patch writes, as a part of the pod or of the workload.
    pub(crate) fn part(&self, operation: &PatchOperation, value: Value) -> FormedPart {
        let value = Arc::new(nested_value(operation.path(), value));
        let at = self.item.at.clone();
        (PartForm::Patch(self.index), PolicyValue { value, at })
    }
}

/// A value that an operation writes, nested in the keys of its pointer.
fn nested_value(path: &Pointer, value: Value) -> Value {
    let keys: Vec<String> = path
        .tokens()
        .map(|token| token.decoded().into_owned())
        .collect();
    keys.iter()
        .rev()
        .fold(value, |inner, key| match key.parse::<usize>() {
            Ok(_) => json!([inner]),
            Err(_) if key == "-" => json!([inner]),
            Err(_) => Value::Object(Map::from_iter([(key.clone(), inner)])),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::ChangeTarget;

    #[test]
    fn the_items_of_each_list_are_known() {
        let inject = Injection::default();
        let (of_pod, of_container) = inject.items_of_lists();
        assert_eq!(of_pod.map(|(list, _)| list), POD_LISTS);
        assert_eq!(of_container.map(|(list, _)| list), CONTAINER_LISTS);
    }

    #[test]
    fn an_item_of_each_list_is_named_by_its_path() {
        for list in POD_LISTS {
            let target = ChangeTarget::from_path(&format!("pod/spec/{list}/x"));
            assert!(
                matches!(target, ChangeTarget::PodItem(..)),
                "add `{list}` to `from_path` in change.rs, which says `{target}`"
            );
        }
        for list in CONTAINER_LISTS {
            let target = ChangeTarget::from_path(&format!("pod/spec/containers/app/{list}/x"));
            assert!(
                matches!(target, ChangeTarget::ContainerItem(..)),
                "add `{list}` to `in_container` in change.rs, which says `{target}`"
            );
        }
    }
}
