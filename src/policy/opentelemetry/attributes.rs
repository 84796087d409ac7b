//! Resource attributes of a container, and the service's name and version.

use std::collections::{BTreeMap, BTreeSet};

use super::image;
use super::injector::{ATTRIBUTES, Injector, POD_NAME};
use super::pod::ContainerPosition;
use super::resource::Instrumentation;

/// In byte order of their keys.
pub(super) type Attributes = BTreeMap<String, String>;

const PREFIX: &str = "resource.opentelemetry.io/";

/// The owners that give a service its name, in this order.
const OWNERS: [&str; 7] = [
    "deployment",
    "replicaset",
    "statefulset",
    "daemonset",
    "cronjob",
    "job",
    "pod",
];

/// The attribute with the name of a workload of a kind; the operator goes by the kind alone.
pub(super) fn owner_key(kind: &str) -> Option<&'static str> {
    match kind.to_ascii_lowercase().as_str() {
        "deployment" => Some("k8s.deployment.name"),
        "replicaset" => Some("k8s.replicaset.name"),
        "statefulset" => Some("k8s.statefulset.name"),
        "daemonset" => Some("k8s.daemonset.name"),
        "cronjob" => Some("k8s.cronjob.name"),
        "job" => Some("k8s.job.name"),
        "pod" => Some("k8s.pod.name"),
        _ => None,
    }
}

impl Injector<'_> {
    /// The attributes of a container; what its own variable states is not stated again.
    pub(super) fn attributes(
        &self,
        resource: &Instrumentation,
        app: ContainerPosition,
    ) -> Attributes {
        let container = self.pod.get(app);
        let namespace = self.facts.namespace.unwrap_or_default();
        let existing = container.env.text(ATTRIBUTES).unwrap_or_default();
        let stated: BTreeSet<&str> = existing
            .split(',')
            .filter_map(|item| item.trim().split_once('='))
            .filter(|(_, value)| !value.contains('='))
            .map(|(key, _)| key)
            .collect();
        let mut attributes = resource.attributes.clone();
        let node = self.pod.field("nodeName").as_str().unwrap_or_default();
        let mut known = vec![
            ("k8s.namespace.name", namespace.to_owned()),
            ("k8s.container.name", container.name().to_owned()),
            ("k8s.node.name", node.to_owned()),
            ("service.instance.id", self.instance_id(app)),
        ];
        if let (Some(key), Some(name)) = (owner_key(self.facts.kind), self.facts.name) {
            known.push((key, name.to_owned()));
        }
        let known = known.into_iter().filter(|(_, value)| !value.is_empty());
        attributes.extend(known.map(|(key, value)| (key.to_owned(), value)));
        for (key, value) in self.facts.annotations {
            if let Some(key) = key
                .strip_prefix(PREFIX)
                .filter(|key| *key != "service.name")
            {
                attributes.insert(key.to_owned(), value.clone());
            }
        }
        let space = self.annotated("service.namespace").unwrap_or(namespace);
        if !space.is_empty() {
            attributes.insert("service.namespace".to_owned(), space.to_owned());
        }
        attributes.retain(|key, _| !stated.contains(key.as_str()));
        attributes
    }

    /// What a pod annotation says of an attribute.
    fn annotated(&self, attribute: &str) -> Option<&str> {
        let value = self
            .facts
            .annotations
            .get(&format!("{PREFIX}{attribute}"))?;
        (!value.is_empty()).then_some(value)
    }

    /// What labels say, where the resource has them count.
    fn labelled(&self, resource: &Instrumentation, labels: &[&str]) -> Option<&str> {
        let mut values = labels
            .iter()
            .filter_map(|label| self.facts.labels.get(*label))
            .filter(|value| resource.uses_labels && !value.is_empty());
        values.next().map(String::as_str)
    }

    fn instance_id(&self, app: ContainerPosition) -> String {
        let container = self.pod.get(app).name();
        let namespace = self.facts.namespace.unwrap_or_default();
        match self.annotated("service.instance.id") {
            Some(id) => id.to_owned(),
            None if namespace.is_empty() || container.is_empty() => String::new(),
            None => format!("{namespace}.$({POD_NAME}).{container}"),
        }
    }

    /// The name of a container's service.
    pub(super) fn service_name(
        &self,
        resource: &Instrumentation,
        attributes: &Attributes,
        app: ContainerPosition,
    ) -> String {
        let labels = ["app.kubernetes.io/instance", "app.kubernetes.io/name"];
        let stated = self
            .annotated("service.name")
            .or_else(|| self.labelled(resource, &labels));
        let mut owners = OWNERS
            .iter()
            .filter_map(|owner| attributes.get(&format!("k8s.{owner}.name")))
            .filter(|name| !name.is_empty());
        let name = stated.or_else(|| owners.next().map(String::as_str));
        name.unwrap_or_else(|| self.pod.get(app).name()).to_owned()
    }

    /// The version of a container's service, if anything says so.
    pub(super) fn service_version(
        &self,
        resource: &Instrumentation,
        app: ContainerPosition,
    ) -> Option<String> {
        let stated = self
            .annotated("service.version")
            .or_else(|| self.labelled(resource, &["app.kubernetes.io/version"]));
        match stated {
            Some(version) => Some(version.to_owned()),
            None => image::version(self.pod.get(app).field("image")?.as_str()?),
        }
    }
}
