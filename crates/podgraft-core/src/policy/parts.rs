//! Lists the parts that an `inject` adds, as Kubernetes values.

use json_patch::PatchOperation;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::{Injection, PolicyValue};

impl Injection {
    /// All injected parts except labels and annotations.
    pub fn parts(&self) -> Vec<PolicyValue> {
        let ephemeral = self.ephemeral_containers.iter().cloned();
        ephemeral.chain(self.parts_of_workload()).collect()
    }

    /// The parts that are written into a workload. Ephemeral containers are for running pods only.
    pub(crate) fn parts_of_workload(&self) -> Vec<PolicyValue> {
        let init = self.init_containers.iter().map(|(item, _)| item);
        let sidecars = self.sidecars.iter().map(|(item, ..)| item);
        let volumes = self.volumes.iter().map(|(item, _)| item);
        let lists = [&self.env_from, &self.ports];
        let env = self.env.iter().map(|change| &change.item);
        let single = [
            &self.pod_spec,
            &self.container_defaults,
            &self.pod_security_context,
        ];
        let items = init
            .chain(sidecars)
            .chain(volumes)
            .chain(lists.into_iter().flatten())
            .chain(env)
            .chain(single.into_iter().flatten());
        let mut parts: Vec<PolicyValue> = items.cloned().collect();
        for item in &self.image_pull_secrets {
            parts.push(PolicyValue {
                value: Arc::new(json!({"imagePullSecrets": [&*item.value]})),
                at: item.at.clone(),
            });
        }
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
