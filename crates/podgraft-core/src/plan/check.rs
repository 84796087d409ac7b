//! Checks the planned result for what a cluster would refuse, as far as the plan introduces it. Faults that the input
//! already had are not reported as errors here.

use std::borrow::Cow;

use foldhash::{HashSet, HashSetExt};
use serde_json::Value;

use crate::diagnostic::Code;
use crate::manifest::pod::ContainerListKey;
use crate::yaml::value::{Path, field, field_at};

use super::containers::{ListPlace, items_of, list_of, port_of, text_of};
use super::draft::{Draft, DraftValue};
use super::planner::{PlanResult, Planner};
use super::pod_rules;
use crate::policy::{PolicyValue, Position, SidecarType, quantity};

/// Whether a container has a field that is valid only together with other parts of the pod.
fn references_other_parts(container: &Value) -> bool {
    let has = |path: &[&str]| field_at(container, path).is_some();
    has(&["volumeDevices"])
        || has(&["resizePolicy"])
        || has(&["resources", "claims"])
        || has(&["securityContext", "windowsOptions"])
        || has(&["securityContext", "procMount"])
        || items_of(container, "env").iter().any(has_file)
}

/// Whether a variable gets its value from a file of a volume.
fn has_file(variable: &Value) -> bool {
    field_at(variable, &["valueFrom", "fileKeyRef"]).is_some()
}

impl<'c> Planner<'c, '_> {
    /// Checks the rule's items in the draft that now contains them.
    pub(super) fn check_result(&mut self) {
        let inject = self.inject;
        let expanded = self.expanded;
        for item in self.injected_mounts() {
            self.note_mount(&item.value, item);
        }
        let sidecars = self.injected_sidecars();
        for item in self.injected_init_containers().iter().chain(&sidecars) {
            let mounts = items_of(&item.value, "volumeMounts").iter();
            mounts.for_each(|mount| self.note_mount(mount, item));
        }
        for item in sidecars {
            self.attempt(|planner| planner.check_sidecar_ports(item));
        }
        for item in expanded
            .injects()
            .filter_map(|inject| inject.container_defaults.as_ref())
        {
            self.attempt(|planner| planner.check_resources(item));
        }
        if let Some(item) = &inject.pod_spec {
            self.attempt(|planner| planner.check_namespaces(item));
        }
        for item in expanded.injects().flat_map(|inject| &inject.volume_mounts) {
            self.attempt(|planner| planner.check_devices(item));
        }
        if let Some(item) = self.doubtful_annotation() {
            self.check_annotations(item);
        }
        if let Some(item) = self.item_with_wide_effect() {
            self.attempt(|planner| planner.check_together(item));
        }
    }

    /// The rule's mounts, without those that no container gets.
    fn injected_mounts(&self) -> Vec<&'c PolicyValue> {
        // Most containers share the items of their rule.
        let mut seen = HashSet::new();
        let mut mounts = Vec::new();
        for (container, inject) in self.chosen.iter().zip(self.container_injects()) {
            let list = ListPlace::OfContainer(container, "volumeMounts");
            let items = inject.volume_mounts.iter();
            let injected = items.filter(|item| !self.is_kept(list, item));
            mounts.extend(injected.filter(|item| seen.insert(std::ptr::from_ref(*item))));
        }
        mounts
    }

    fn injected_init_containers(&self) -> Vec<&'c PolicyValue> {
        let list = ListPlace::OfPod(ContainerListKey::InitContainers.key());
        let items = self.inject.init_containers.iter().map(|(item, _)| item);
        items.filter(|item| !self.is_kept(list, item)).collect()
    }

    fn injected_sidecars(&self) -> Vec<&'c PolicyValue> {
        let is_injected = |(item, kind, _): &&(PolicyValue, SidecarType, Position)| {
            !self.is_kept(ListPlace::OfPod(list_of(*kind).key()), item)
        };
        let sidecars = self.inject.sidecars.iter().filter(is_injected);
        sidecars.map(|(item, ..)| item).collect()
    }

    /// The first item that may conflict with other parts of the pod. `None` if the whole pod need not be checked.
    fn item_with_wide_effect(&self) -> Option<&'c PolicyValue> {
        let has_host_port = |port: &Value| field(port, "hostPort").is_some();
        let has_host_ports =
            |item: &&PolicyValue| items_of(&item.value, "ports").iter().any(has_host_port);
        let has_sleep = |item: &&PolicyValue| {
            let hooks = field(&item.value, "lifecycle").and_then(Value::as_object);
            hooks.is_some_and(|hooks| hooks.values().any(|hook| hook.get("sleep").is_some()))
        };
        // These fields of the pod spec restrict all containers, so any new container must be checked against them.
        let spec = self.pod_spec_part();
        let is_limited = || {
            let mut fields = pod_rules::FIELDS_OF_ALL_CONTAINERS.iter();
            fields.any(|field| self.draft.get(&spec, field).is_some())
        };
        let inject = self.inject;
        let new = inject.sidecars.iter().map(|(item, ..)| item);
        let new = new.chain(inject.init_containers.iter().map(|(item, _)| item));
        let new = new.filter(|item| {
            has_host_ports(item)
                || has_sleep(item)
                || references_other_parts(&item.value)
                || is_limited()
        });
        let injects = self.expanded.injects();
        let ports = injects.clone().flat_map(|inject| &inject.ports);
        let ports = ports.filter(|item| has_host_port(&item.value) || is_limited());
        let variables = injects.clone().flat_map(|inject| &inject.env);
        let variables = variables
            .map(|change| &change.item)
            .filter(|item| has_file(&item.value));
        let defaults = injects
            .filter_map(|inject| inject.container_defaults.as_ref())
            .filter(|item| references_other_parts(&item.value) || is_limited());
        let of_pod = inject.pod_spec.iter().filter(|item| {
            let mut fields = pod_rules::FIELDS.iter();
            fields.any(|field| item.value.get(field).is_some())
        });
        let mut effects = of_pod
            .chain(&inject.pod_security_context)
            .chain(new)
            .chain(ports)
            .chain(variables)
            .chain(defaults);
        effects.next()
    }

    fn check_together(&mut self, item: &PolicyValue) -> PlanResult {
        let spec = self.draft.view(&self.pod_spec_part()).unwrap_or_default();
        let input = Draft::new(self.workload.tree, self.workload.object.node);
        let before = input
            .view(&DraftValue::Node(self.workload.pod_spec))
            .unwrap_or_default();
        let before = pod_rules::refused(self.workload.pod_kind, &before);
        let mut found = pod_rules::refused(self.workload.pod_kind, &spec);
        found.retain(|(_, sentence)| !before.iter().any(|(_, known)| known == sentence));
        for (_, sentence) in found {
            let message = format!("{}: {sentence}", self.workload.title());
            self.problems
                .push(self.problem(Code::Invalid, message, item));
        }
        Ok(())
    }

    /// Refuses a mount at the path of a device (`ValidateVolumeMounts`), and bidirectional propagation in containers
    /// that are not privileged (`validateMountPropagation`).
    fn check_devices(&self, mount: &PolicyValue) -> PlanResult {
        let path = text_of(mount, "mountPath");
        let is_shared = text_of(mount, "mountPropagation") == "Bidirectional";
        for container in &self.chosen {
            if self.is_kept(ListPlace::OfContainer(container, "volumeMounts"), mount) {
                continue;
            }
            let part = self.container_part(container);
            let is_privileged = || {
                let context = self.draft.get(part.as_ref()?, "securityContext")?;
                Some(self.draft.is_text_at(&context, "privileged", "true"))
            };
            if is_shared && is_privileged() != Some(true) {
                let message = format!(
                    "`mountPropagation: Bidirectional` requires a privileged container, and `{}` \
                     is not privileged",
                    container.name
                );
                return Err(self.problem(Code::Invalid, message, mount).into());
            }
            let devices = part.and_then(|part| self.draft.get(&part, "volumeDevices"));
            if self
                .position_by(devices.as_ref(), "devicePath", path)
                .is_some()
            {
                let message = format!(
                    "container `{}` already has a device at `{path}`",
                    container.name
                );
                return Err(self.problem(Code::Invalid, message, mount).into());
            }
        }
        Ok(())
    }

    /// The policy's first annotation, if all annotations together may be too long or one names an AppArmor profile,
    /// which a field may contradict. `None` if the checks can be skipped.
    fn doubtful_annotation(&self) -> Option<&'c PolicyValue> {
        let inject = self.inject;
        let annotations = || inject.pod_annotations.iter().chain(&inject.annotations);
        let length = |(key, item): &(String, PolicyValue)| {
            key.len() + item.value.as_str().map_or(0, str::len)
        };
        // The length of the source text is an upper bound. Aliases may repeat text from anywhere in the document;
        // without them the object's own text is enough, which matters for the items of a long List.
        let tree = self.workload.tree;
        let text = if tree.is_plain() {
            tree.slice(self.workload.object.node)
        } else {
            tree.text()
        };
        let most = text.len() + annotations().map(length).sum::<usize>();
        let names_profile = annotations().any(|(key, _)| key.starts_with(pod_rules::APP_ARMOR));
        let (_, first) = annotations().next()?;
        (names_profile || most > pod_rules::MAX_ANNOTATIONS).then_some(first)
    }

    fn check_annotations(&mut self, item: &PolicyValue) {
        let input = Draft::new(self.workload.tree, self.workload.object.node);
        let before = self.annotation_faults(&input, &DraftValue::Node(self.workload.template));
        for (_, sentence) in self.annotation_faults(&self.draft, &self.template_part()) {
            if !before.iter().any(|(_, known)| *known == sentence) {
                let message = format!("{}: {sentence}", self.workload.title());
                self.problems
                    .push(self.problem(Code::Invalid, message, item));
            }
        }
    }

    fn annotation_faults(&self, draft: &Draft<'_>, template: &DraftValue) -> Vec<(Path, String)> {
        let view = |holder: &DraftValue, path: &[&str]| {
            let part = draft.get_in(holder, path);
            part.and_then(|part| draft.view(&part)).unwrap_or_default()
        };
        let path = ["metadata", "annotations"];
        let mut found = pod_rules::annotations(&view(template, &path), &view(template, &["spec"]));
        if !self.workload.pod_kind.path.is_empty() {
            found.extend(pod_rules::too_long(&view(&draft.root(), &path), "object"));
        }
        found
    }

    /// Refuses ports of a sidecar that a container which runs beside it has: they share one network namespace.
    fn check_sidecar_ports(&self, item: &PolicyValue) -> PlanResult {
        let ports = items_of(&item.value, "ports");
        if ports.is_empty() {
            return Ok(());
        }
        for list in [
            ContainerListKey::Containers,
            ContainerListKey::InitContainers,
        ] {
            for (sibling, name) in self.pod_items(list.key()) {
                let runs_beside = list == ContainerListKey::Containers
                    || self.draft.is_text_at(&sibling, "restartPolicy", "Always");
                if runs_beside && name.as_deref() != Some(text_of(item, "name")) {
                    let sibling_ports =
                        self.named_items(self.draft.get(&sibling, "ports").as_ref());
                    ports
                        .iter()
                        .try_for_each(|port| self.check_port_beside(port, &sibling_ports, item))?;
                }
            }
        }
        Ok(())
    }

    fn check_port_beside(
        &self,
        port: &Value,
        sibling_ports: &[(DraftValue, Option<Cow<'_, str>>)],
        item: &PolicyValue,
    ) -> PlanResult {
        let wanted = port_of(port);
        let name = port.get("name").and_then(Value::as_str);
        for (sibling_port, sibling_name) in sibling_ports {
            let is_same_name = name.is_some() && sibling_name.as_deref() == name;
            let is_same_number = self.port_identity(sibling_port) == wanted;
            if is_same_name || is_same_number {
                let description = match is_same_number {
                    true => format!(
                        "the port {} of the sidecar `{}`",
                        wanted.0,
                        text_of(item, "name")
                    ),
                    false => format!("the port name `{}`", name.unwrap_or_default()),
                };
                return Err(self.port_clash(sibling_port, description, item));
            }
            self.check_host_port(port, sibling_port, item)?;
        }
        Ok(())
    }

    /// Refuses a host port that another container of the pod has already (`checkHostPortConflicts` of Kubernetes).
    pub(super) fn check_host_port(
        &self,
        port: &Value,
        existing: &DraftValue,
        item: &PolicyValue,
    ) -> PlanResult {
        let Some(number) = port
            .get("hostPort")
            .and_then(Value::as_i64)
            .filter(|number| *number != 0)
        else {
            return Ok(());
        };
        let text = |key: &str| port.get(key).and_then(Value::as_str).unwrap_or_default();
        let is_same = self
            .draft
            .is_text_at(existing, "hostPort", &number.to_string())
            && self.draft.text_at(existing, "hostIP").unwrap_or_default() == text("hostIP")
            && self.port_identity(existing).1 == port_of(port).1;
        match is_same {
            true => Err(self.port_clash(existing, format_args!("host port {number}"), item)),
            false => Ok(()),
        }
    }

    /// Refuses a request above its limit: the policy's default for one may not fit what the manifest has for the other.
    fn check_resources(&self, item: &PolicyValue) -> PlanResult {
        for container in &self.chosen {
            let Some(resources) = self
                .container_part(container)
                .and_then(|part| self.draft.get(&part, "resources"))
            else {
                continue;
            };
            let amount = |kind: &str, name: &str| -> Option<i128> {
                let part: DraftValue = self.draft.get(&self.draft.get(&resources, kind)?, name)?;
                quantity::parse(&self.draft.value(&part)?)
            };
            for name in ["cpu", "memory", "ephemeral-storage"] {
                if let (Some(request), Some(limit)) =
                    (amount("requests", name), amount("limits", name))
                    && request > limit
                {
                    let message = format!(
                        "container `{}` would request more {name} than its limit",
                        container.name
                    );
                    return Err(self.problem(Code::Invalid, message, item).into());
                }
            }
        }
        Ok(())
    }

    /// Refuses `hostPID` together with `shareProcessNamespace`, as the API server does.
    fn check_namespaces(&self, item: &PolicyValue) -> PlanResult {
        let is_true =
            |key: &str| self.draft.text_at(&self.pod_spec_part(), key).as_deref() == Some("true");
        if !(is_true("hostPID") && is_true("shareProcessNamespace")) {
            return Ok(());
        }
        let message = format!(
            "{} would have both `hostPID` and `shareProcessNamespace`",
            self.workload.title()
        );
        Err(self.problem(Code::Invalid, message, item).into())
    }
}
