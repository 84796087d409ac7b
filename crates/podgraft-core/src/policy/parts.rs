//! Lists the parts that an `inject` adds, as Kubernetes values, and the lists of a pod that it adds items to.

use json_patch::PatchOperation;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::dangers::APP_ARMOR;

use super::{EnvOp, Injection, PolicyValue};

/// Lists of a PodSpec, other than containers, that policies add items to.
pub(crate) const POD_LISTS: [&str; 2] = ["volumes", "imagePullSecrets"];
/// Lists of a container that policies add items to.
pub(crate) const CONTAINER_LISTS: [&str; 4] = ["envFrom", "ports", "env", "volumeMounts"];

impl Injection {
    /// All injected parts except labels and annotations that are no settings of a pod.
    pub fn parts(&self) -> Vec<PolicyValue> {
        let ephemeral = self.ephemeral_containers.iter().cloned();
        ephemeral.chain(self.parts_of_workload()).collect()
    }

    /// The parts that are written into a workload. Ephemeral containers are for running pods only.
    pub(crate) fn parts_of_workload(&self) -> Vec<PolicyValue> {
        let init = self.init_containers.iter().map(|(item, _)| item);
        let sidecars = self.sidecars.iter().map(|(item, ..)| item);
        let mut parts: Vec<PolicyValue> = init.chain(sidecars).cloned().collect();
        let (of_pod, of_container) = self.items_of_lists();
        let of_pod = POD_LISTS.iter().zip(of_pod);
        for (list, items) in of_pod.chain(CONTAINER_LISTS.iter().zip(of_container)) {
            parts.extend(items.into_iter().map(|item| match *list {
                // Only the key says that such an item is the name of a Secret.
                "imagePullSecrets" => PolicyValue {
                    value: Arc::new(json!({*list: [&*item.value]})),
                    at: item.at.clone(),
                },
                _ => item.clone(),
            }));
        }
        let single = [
            &self.pod_spec,
            &self.container_defaults,
            &self.pod_security_context,
        ];
        parts.extend(single.into_iter().flatten().cloned());
        // Only the key says that such an annotation is a profile of AppArmor.
        let annotations = self.pod_annotations.iter().chain(&self.annotations);
        let set = annotations.map(|(key, item)| (key, &*item.value, &item.at));
        let changes = self.text_changes.iter().map(|text| &text.change);
        let changed = changes.filter_map(|change| {
            let text = change.item.value.get("value")?;
            Some((&change.name, text, &change.item.at))
        });
        let profiles = set.chain(changed);
        let profiles = profiles.filter(|(key, ..)| key.starts_with(APP_ARMOR));
        parts.extend(profiles.map(|(key, text, at)| PolicyValue {
            value: Arc::new(json!({key.as_str(): text})),
            at: at.clone(),
        }));
        for entry in &self.patches {
            for operation in &entry.patch.0 {
                if let PatchOperation::Add(_) | PatchOperation::Replace(_) = operation {
                    parts.push(PolicyValue {
                        value: Arc::new(patched_value(operation)),
                        at: entry.item.at.clone(),
                    });
                }
            }
        }
        parts
    }

    /// The items for each of [`POD_LISTS`] and each of [`CONTAINER_LISTS`]. All fields are named here, so that the compiler
    /// asks whether a new one is such a list: if it is left out, a second run takes its items for the user's, `--forbid`
    /// and `policy lint` do not see them, and expressions in them do not know `container`.
    pub(crate) fn items_of_lists(&self) -> ([Vec<&PolicyValue>; 2], [Vec<&PolicyValue>; 4]) {
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
                volumes.iter().map(|(item, _)| item).collect(),
                image_pull_secrets.iter().collect(),
            ],
            [
                env_from.iter().collect(),
                ports.iter().collect(),
                env.map(|change| &change.item).collect(),
                volume_mounts.iter().collect(),
            ],
        )
    }
}

/// The value that an `add` or `replace` operation writes, nested in the keys of its pointer.
fn patched_value(operation: &PatchOperation) -> Value {
    let value = match operation {
        PatchOperation::Add(add) => add.value.clone(),
        PatchOperation::Replace(replace) => replace.value.clone(),
        PatchOperation::Remove(_)
        | PatchOperation::Move(_)
        | PatchOperation::Copy(_)
        | PatchOperation::Test(_) => Value::Null,
    };
    let keys: Vec<String> = operation
        .path()
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
    fn an_item_of_each_list_is_named_by_its_path() {
        for list in POD_LISTS {
            let target = ChangeTarget::from_path(&format!("pod/spec/{list}/x"));
            assert!(
                matches!(target, ChangeTarget::PodItem(..)),
                "{list}: {target}"
            );
        }
        for list in CONTAINER_LISTS {
            let target = ChangeTarget::from_path(&format!("pod/spec/containers/app/{list}/x"));
            assert!(
                matches!(target, ChangeTarget::ContainerItem(..)),
                "{list}: {target}"
            );
        }
    }
}
