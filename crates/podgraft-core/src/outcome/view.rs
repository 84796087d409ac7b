//! The parts of a workload as `inspect` and the review formats show them, named as in the Kubernetes API.

use serde::{Serialize, Serializer};

/// A workload and its pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadView {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// The stated namespace, or the one given for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `metadata.name`, or `metadata.generateName` with a `*`.
    pub name: String,
    /// App containers.
    pub containers: Vec<ContainerView>,
    /// Init containers that run to completion.
    pub init_containers: Vec<ContainerView>,
    /// Native sidecars: init containers with `restartPolicy: Always`.
    pub sidecars: Vec<ContainerView>,
    /// The volumes of the pod, and `volumeClaimTemplates`.
    pub volumes: Vec<VolumeView>,
    /// Annotations of the pod template, by their keys.
    #[serde(serialize_with = "as_map")]
    pub pod_annotations: Vec<(String, String)>,
    /// Labels of the pod template, by their keys.
    #[serde(serialize_with = "as_map")]
    pub pod_labels: Vec<(String, String)>,
    /// The policies that the annotation `podgraft.dev/applied` names.
    pub policies: Vec<String>,
    /// The ports that serve metrics: the one that the scrape annotations name, and container ports of agents.
    pub metrics_endpoints: Vec<MetricsEndpoint>,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerView {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Its ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortView>,
    /// Its variables, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvView>,
    /// The ConfigMaps and Secrets whose keys become variables: `configMap/settings`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<String>,
    /// Its volume mounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<MountView>,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PortView {
    /// Its name, or empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The port as it is written. Serialized as a number if it is one.
    #[serde(serialize_with = "as_number")]
    pub container_port: String,
    /// The protocol; `TCP` if none is stated.
    pub protocol: String,
}

/// An environment variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvView {
    /// Its name.
    pub name: String,
    /// Its value, if one is stated; hidden if the name suggests a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The kind of source of its value: `secretKeyRef`, `fieldRef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<String>,
}

/// A mount of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MountView {
    /// The name of the volume.
    pub name: String,
    /// The path in the container.
    pub mount_path: String,
    /// The mount is read-only.
    pub read_only: bool,
}

/// A volume of the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeView {
    /// Its name.
    pub name: String,
    /// The type of the volume: `emptyDir`, `configMap`, `volumeClaimTemplate`.
    pub source: String,
}

/// A port at which a workload's pods serve metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsEndpoint {
    /// `Deployment/shop/orders`, or `Deployment/orders` where no namespace is known.
    pub workload: String,
    /// The port.
    #[serde(serialize_with = "as_number")]
    pub port: String,
}

/// The annotation that asks Prometheus to scrape the pods.
pub(crate) const SCRAPE: &str = "prometheus.io/scrape";
/// The annotation that names the port to scrape.
pub(crate) const SCRAPE_PORT: &str = "prometheus.io/port";

/// Returns the port that the scrape annotations name. `None` if they do not ask for scraping.
pub(crate) fn scraped_port(scrape: Option<&str>, port: Option<&str>) -> Option<u16> {
    port.filter(|_| scrape == Some("true"))?
        .parse()
        .ok()
        .filter(|port| *port > 0)
}

impl MetricsEndpoint {
    /// An endpoint of the workload with this kind, namespace and name.
    pub fn of(kind: &str, namespace: Option<&str>, name: &str, port: String) -> Self {
        let parts: Vec<&str> = [Some(kind), namespace, Some(name)]
            .into_iter()
            .flatten()
            .collect();
        MetricsEndpoint {
            workload: parts.join("/"),
            port,
        }
    }
}

fn as_map<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// Serializes a number, or text that is no number as a string.
fn as_number<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match text.parse::<u32>() {
        Ok(number) => serializer.serialize_u32(number),
        Err(_) => serializer.serialize_str(text),
    }
}

impl WorkloadView {
    /// Init containers, native sidecars and app containers, in the order in which they start.
    pub fn all_containers(&self) -> impl Iterator<Item = &ContainerView> {
        self.init_containers
            .iter()
            .chain(&self.sidecars)
            .chain(&self.containers)
    }
}
