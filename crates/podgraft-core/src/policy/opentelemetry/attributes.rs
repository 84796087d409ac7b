//! Computes the resource attributes of a container, and the name and version of its service.

use std::collections::{BTreeMap, BTreeSet};

use super::image;
use super::injector::{ATTRIBUTES, Injector, POD_NAME};
use super::pod::ContainerPosition;

/// Attributes sorted by key, as the operator writes them.
pub(super) type Attributes = BTreeMap<String, String>;

const PREFIX: &str = "resource.opentelemetry.io/";

/// Owner kinds whose attribute can name the service, by precedence.
pub(super) const OWNERS: [&str; 7] = [
    "deployment",
    "replicaset",
    "statefulset",
    "daemonset",
    "cronjob",
    "job",
    "pod",
];

/// The attribute for the name of a workload of a kind. Like the operator, ignores the API group.
pub(super) fn owner_key(kind: &str) -> Option<String> {
    let kind = kind.to_ascii_lowercase();
    OWNERS
        .contains(&kind.as_str())
        .then(|| format!("k8s.{kind}.name"))
}

impl Injector<'_> {
    /// The attributes of a container, without those that its `OTEL_RESOURCE_ATTRIBUTES` states already.
    pub(super) fn attributes(&self, app: ContainerPosition) -> Attributes {
        let container = self.pod.get(app);
        let namespace = self.facts.namespace.unwrap_or_default();
        let existing = container.env.text(ATTRIBUTES).unwrap_or_default();
        // The operator ignores a pair with a second `=`.
        let stated: BTreeSet<&str> = existing
            .split(',')
            .filter_map(|item| item.trim().split_once('='))
            .filter(|(_, value)| !value.contains('='))
            .map(|(key, _)| key)
            .collect();
        let mut attributes = self.resource.attributes.clone();
        let node = self.pod.field("nodeName").as_str().unwrap_or_default();
        let known = [
            ("k8s.namespace.name", namespace.to_owned()),
            ("k8s.container.name", container.name().to_owned()),
            ("k8s.node.name", node.to_owned()),
            ("service.instance.id", self.instance_id(app)),
        ];
        let owner = owner_key(self.facts.kind).zip(self.facts.name.map(str::to_owned));
        let known = known.map(|(key, value)| (key.to_owned(), value));
        let known = known.into_iter().chain(owner);
        attributes.extend(known.filter(|(_, value)| !value.is_empty()));
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

    /// The value of an attribute in the pod's annotations; `None` if empty.
    fn annotated(&self, attribute: &str) -> Option<&str> {
        let value = self
            .facts
            .annotations
            .get(&format!("{PREFIX}{attribute}"))?;
        (!value.is_empty()).then_some(value)
    }

    /// The first non-empty label, if the resource has `useLabelsForResourceAttributes`.
    fn labelled(&self, labels: &[&str]) -> Option<String> {
        if !self.resource.uses_labels {
            return None;
        }
        let mut of_pod = (self.facts.labels)();
        let mut values = labels.iter().filter_map(|label| of_pod.remove(*label));
        values.find(|value| !value.is_empty())
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

    /// The service name of a container: the stated one, or the container's own.
    pub(super) fn service_name(&self, attributes: &Attributes, app: ContainerPosition) -> String {
        self.stated_service_name(attributes)
            .unwrap_or_else(|| self.pod.get(app).name().to_owned())
    }

    /// The service name that an annotation, a label, or an attribute for the owner states.
    pub(super) fn stated_service_name(&self, attributes: &Attributes) -> Option<String> {
        let labels = ["app.kubernetes.io/instance", "app.kubernetes.io/name"];
        let stated = self
            .annotated("service.name")
            .map(str::to_owned)
            .or_else(|| self.labelled(&labels));
        let mut owners = OWNERS
            .iter()
            .filter_map(|owner| attributes.get(&format!("k8s.{owner}.name")))
            .filter(|name| !name.is_empty());
        stated.or_else(|| owners.next().cloned())
    }

    /// The service version of a container: from an annotation, a label, or the image.
    pub(super) fn service_version(&self, app: ContainerPosition) -> Option<String> {
        let stated = self
            .annotated("service.version")
            .map(str::to_owned)
            .or_else(|| self.labelled(&["app.kubernetes.io/version"]));
        stated.or_else(|| image::version(self.pod.get(app).field("image")?.as_str()?))
    }
}
