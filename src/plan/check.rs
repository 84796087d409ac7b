//! What a cluster would refuse, looked for in the planned result as far as our plan introduces it.
//! Faults that were in the input already are not ours to report as errors.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::diagnostic::Code;
use crate::policy::Item;

use super::containers::text_of;
use super::draft::Part;
use super::planner::{Planner, Step};
use super::quantity;

impl Planner<'_, '_> {
    /// Checks the rule's items against the draft that they are part of now.
    pub(super) fn check_result(&mut self) {
        let inject = self.inject;
        let injects = self.all_injects();
        for item in injects.iter().flat_map(|inject| &inject.volume_mounts) {
            self.attempt(|planner| planner.check_mount(&item.value, item));
        }
        let init = inject.init_containers.iter().map(|(item, _)| item);
        for item in init.chain(inject.sidecars.iter().map(|(item, ..)| item)) {
            self.attempt(|planner| planner.check_new_container(item));
        }
        for item in injects.iter().filter_map(|inject| inject.container_defaults.as_ref()) {
            self.attempt(|planner| planner.check_resources(item));
        }
        if let Some(item) = &inject.pod_spec {
            self.attempt(|planner| planner.check_namespaces(item));
        }
    }

    fn has_volume(&self, name: &str) -> bool {
        self.position_by(self.pod_list("volumes").as_ref(), "name", name).is_some()
            || self.claim_templates().iter().any(|(_, own)| own.as_deref() == Some(name))
    }

    fn check_mount(&self, mount: &Value, item: &Item) -> Step {
        let name = mount.get("name").and_then(Value::as_str).unwrap_or_default();
        if self.has_volume(name) {
            return Ok(());
        }
        let message = format!("a mount names the volume `{name}`, which {} does not have", self.workload.title());
        Err(Box::new(
            self.problem(Code::Invalid, message, item).help("add the volume to the policy's `inject.volumes`"),
        ))
    }

    fn check_new_container(&self, item: &Item) -> Step {
        let mounts = item.value.get("volumeMounts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut paths = BTreeSet::new();
        for mount in mounts {
            self.check_mount(mount, item)?;
            let path = mount.get("mountPath").and_then(Value::as_str).unwrap_or_default();
            if !paths.insert(path) {
                let message = format!("the container `{}` mounts `{path}` twice", text_of(item, "name"));
                return Err(Box::new(self.problem(Code::Invalid, message, item)));
            }
        }
        Ok(())
    }

    /// A request that we fill in above a limit that is there, or the other way round.
    fn check_resources(&self, item: &Item) -> Step {
        for container in &self.chosen {
            let Some(resources) = self.container_part(container).and_then(|part| self.draft.get(&part, "resources"))
            else {
                continue;
            };
            let amount = |kind: &str, name: &str| -> Option<i128> {
                let part: Part = self.draft.get(&self.draft.get(&resources, kind)?, name)?;
                quantity::parse(&self.draft.value(&part)?)
            };
            for name in ["cpu", "memory", "ephemeral-storage"] {
                if let (Some(request), Some(limit)) = (amount("requests", name), amount("limits", name))
                    && request > limit
                {
                    let message = format!("container `{}` would request more {name} than its limit", container.name);
                    return Err(Box::new(self.problem(Code::Invalid, message, item)));
                }
            }
        }
        Ok(())
    }

    /// The API server refuses hostPID together with shareProcessNamespace.
    fn check_namespaces(&self, item: &Item) -> Step {
        let is_true = |key: &str| self.draft.text_at(&self.pod_spec_part(), key).as_deref() == Some("true");
        if !(is_true("hostPID") && is_true("shareProcessNamespace")) {
            return Ok(());
        }
        let message = format!("{} would have both `hostPID` and `shareProcessNamespace`", self.workload.title());
        Err(Box::new(self.problem(Code::Invalid, message, item)))
    }
}
