//! What an API server would refuse in a workload, looked for in a draft. Comparing a draft with the one before it tells
//! what a step has brought in.

use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::policy::names;

use super::draft::{Draft, Part};
use super::quantity;

/// One thing that an API server would refuse, as a sentence without a full stop.
pub(super) type Fault = String;

/// The faults of a draft.
pub(super) struct Faults<'d, 't> {
    draft: &'d Draft<'t>,
    pod_spec: Part,
    found: Vec<Fault>,
}

impl<'d, 't> Faults<'d, 't> {
    /// All faults of a pod spec.
    pub fn of(draft: &'d Draft<'t>, pod_spec: Part) -> Vec<Fault> {
        let mut faults = Faults { draft, pod_spec, found: Vec::new() };
        faults.names();
        faults.containers();
        faults.namespaces();
        faults.found
    }

    fn add(&mut self, fault: impl Into<Fault>) {
        self.found.push(fault.into());
    }

    fn list(&self, part: &Part, key: &str) -> Vec<Part> {
        self.draft.get(part, key).map(|list| self.draft.items(&list)).unwrap_or_default()
    }

    fn text(&self, part: &Part, key: &str) -> Cow<'t, str> {
        self.draft.text_at(part, key).unwrap_or_default()
    }

    fn all_containers(&self) -> Vec<Part> {
        let lists = ["containers", "initContainers"].map(|key| self.list(&self.pod_spec, key));
        lists.concat()
    }

    /// Containers share one name space; volumes have their own.
    fn names(&mut self) {
        let volumes = self.list(&self.pod_spec, "volumes");
        for (what, items) in [("container", self.all_containers()), ("volume", volumes)] {
            let mut seen: BTreeSet<String> = BTreeSet::new();
            for item in items {
                let name = self.text(&item, "name").into_owned();
                if let Err(rule) = names::check_dns_label(&name) {
                    self.add(format!("the name of the {what} `{name}` {rule}"));
                }
                if !seen.insert(name.clone()) {
                    self.add(format!("two {what}s are called `{name}`"));
                }
            }
        }
    }

    fn containers(&mut self) {
        let mut port_names: BTreeSet<String> = BTreeSet::new();
        for container in self.all_containers() {
            let name = self.text(&container, "name").into_owned();
            if self.text(&container, "image").is_empty() {
                self.add(format!("container `{name}` has no image"));
            }
            self.ports(&container, &name, &mut port_names);
            self.mount_paths(&container, &name);
            self.variables(&container, &name);
            self.resources(&container, &name);
        }
    }

    fn ports(&mut self, container: &Part, owner: &str, names: &mut BTreeSet<String>) {
        let mut numbers: BTreeSet<(String, String)> = BTreeSet::new();
        let mut own: BTreeSet<String> = BTreeSet::new();
        for port in self.list(container, "ports") {
            let number = self.text(&port, "containerPort").into_owned();
            if !number.parse().is_ok_and(|number: u32| (1..=65535).contains(&number)) {
                self.add(format!("container `{owner}` has a port `{number}`, and ports are 1 to 65535"));
            }
            let protocol = match self.text(&port, "protocol").as_ref() {
                "" => "TCP".to_owned(),
                protocol => protocol.to_owned(),
            };
            if !numbers.insert((number.clone(), protocol.clone())) {
                self.add(format!("container `{owner}` states the port {number}/{protocol} twice"));
            }
            let name = self.text(&port, "name").into_owned();
            if name.is_empty() {
                continue;
            }
            if let Err(rule) = names::check_port_name(&name) {
                self.add(format!("the port name `{name}` of container `{owner}` {rule}"));
            }
            if names.contains(&name) || !own.insert(name.clone()) {
                self.add(format!("two ports of the pod are called `{name}`"));
            }
        }
        names.extend(own);
    }

    fn mount_paths(&mut self, container: &Part, owner: &str) {
        let mut paths: BTreeSet<String> = BTreeSet::new();
        for mount in self.list(container, "volumeMounts") {
            let path = self.text(&mount, "mountPath").into_owned();
            if !paths.insert(path.clone()) {
                self.add(format!("container `{owner}` mounts `{path}` twice"));
            }
        }
    }

    fn variables(&mut self, container: &Part, owner: &str) {
        for variable in self.list(container, "env") {
            let name = self.text(&variable, "name").into_owned();
            if let Err(rule) = names::check_env_name(&name) {
                self.add(format!("the variable `{name}` of container `{owner}` {rule}"));
            }
            let has_source = self.draft.get(&variable, "valueFrom").is_some_and(|source| !self.draft.is_empty(&source));
            if has_source && !self.text(&variable, "value").is_empty() {
                self.add(format!("the variable `{name}` of container `{owner}` has `value` beside `valueFrom`"));
            }
        }
    }

    fn resources(&mut self, container: &Part, owner: &str) {
        let Some(resources) = self.draft.get(container, "resources") else { return };
        let amount = |kind: &str, name: &str| -> Option<i128> {
            let amounts = self.draft.get(&resources, kind)?;
            quantity::parse(&self.draft.value(&self.draft.get(&amounts, name)?)?)
        };
        let above = ["cpu", "memory", "ephemeral-storage"].map(|name| {
            let is_above = amount("requests", name) > amount("limits", name) && amount("limits", name).is_some();
            is_above.then(|| format!("container `{owner}` requests more {name} than its limit"))
        });
        self.found.extend(above.into_iter().flatten());
    }

    fn namespaces(&mut self) {
        let is_true = |key: &str| self.text(&self.pod_spec, key) == "true";
        if is_true("hostPID") && is_true("shareProcessNamespace") {
            self.add("the pod has both `hostPID` and `shareProcessNamespace`");
        }
    }
}

/// Mounts of volumes that the pod does not have.
pub(super) fn lost_mounts(draft: &Draft<'_>, pod_spec: &Part, volumes: &BTreeSet<Cow<'_, str>>) -> Vec<Fault> {
    let lists = ["containers", "initContainers"].map(|key| draft.get(pod_spec, key));
    let containers = lists.into_iter().flatten().flat_map(|list| draft.items(&list));
    let mut found = Vec::new();
    for container in containers {
        let owner = draft.text_at(&container, "name").unwrap_or_default();
        for mount in draft.get(&container, "volumeMounts").map(|list| draft.items(&list)).unwrap_or_default() {
            let name = draft.text_at(&mount, "name").unwrap_or_default();
            if !volumes.contains(&name) {
                found.push(format!("container `{owner}` mounts the volume `{name}`, which the pod does not have"));
            }
        }
    }
    found
}

/// Labels that the workload's selector wants and the pod template does not have: the API server refuses them.
pub(super) fn broken_selector(selector: &Value, labels: Option<&Value>) -> Vec<Fault> {
    // A ReplicationController's selector is the labels themselves.
    let is_plain = selector.as_object().is_some_and(|map| map.values().all(Value::is_string));
    let wanted = if is_plain { Some(selector) } else { selector.get("matchLabels") };
    let wanted = wanted.and_then(Value::as_object).into_iter().flatten();
    let own = |key: &str| labels.and_then(|labels| labels.get(key));
    let broken = wanted.filter(|(key, value)| own(key) != Some(value));
    broken
        .map(|(key, value)| {
            format!(
                "the selector wants the label `{key}: {}`, which the pod template does not have",
                value.as_str().unwrap_or_default()
            )
        })
        .collect()
}
