//! `inject` as Rust types, from which its schema is derived. Its entries are read one by one, because some wait for a
//! workload.

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvFromSource, EphemeralContainer, PodSecurityContext, PodSpec,
    ResourceRequirements, SecurityContext, Volume, VolumeMount,
};
use schemars::JsonSchema;
use std::collections::BTreeMap;

use super::types::{Checksum, EnvEntry, Patch, Position, SidecarType, TextEntry};

/// What to inject.
#[derive(Debug, Default, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Inject {
    /// Init containers.
    pub init_containers: Vec<InitContainer>,
    /// Containers that run next to the app.
    pub sidecars: Vec<Sidecar>,
    /// Printed separately, never written into the workload.
    pub ephemeral_containers: Vec<EphemeralContainer>,
    /// Volumes of the pod.
    pub volumes: Vec<VolumeEntry>,
    /// Volume mounts of each selected container.
    pub volume_mounts: Vec<VolumeMount>,
    /// Environment variables of each selected container.
    pub env: Vec<EnvEntry>,
    /// `envFrom` of each selected container.
    pub env_from: Vec<EnvFromSource>,
    /// Ports of each selected container.
    pub ports: Vec<ContainerPort>,
    /// Annotations of the pod template.
    pub pod_annotations: Texts,
    /// Labels of the pod template.
    pub pod_labels: Texts,
    /// Annotations of the workload.
    pub annotations: Texts,
    /// Labels of the workload.
    pub labels: Texts,
    /// Fields that are filled in where they are absent.
    pub defaults: Option<Defaults>,
    /// Other fields of the pod spec.
    pub pod_spec: Option<PartialPodSpec>,
    /// Secrets for pulling images.
    pub image_pull_secrets: Vec<PullSecret>,
    /// Annotations with the checksum of ConfigMaps and Secrets.
    pub checksums: Vec<Checksum>,
    /// JSON patches (RFC 6902), applied last.
    pub patches: Vec<Patch>,
}

/// A container and where it goes among the init containers.
#[derive(Debug, JsonSchema)]
pub struct InitContainer {
    /// The container.
    #[serde(flatten)]
    pub container: Container,
    /// Where it goes.
    #[serde(default)]
    pub position: Position,
}

/// A volume and where it goes.
#[derive(Debug, JsonSchema)]
pub struct VolumeEntry {
    /// The volume; without a source it is an `emptyDir`.
    #[serde(flatten)]
    pub volume: Volume,
    /// Where it goes.
    #[serde(default)]
    pub position: Position,
}

/// A container that runs next to the app.
#[derive(Debug, JsonSchema)]
pub struct Sidecar {
    /// The container.
    #[serde(flatten)]
    pub container: Container,
    /// `Native` (an init container with `restartPolicy: Always`) or `Container` (one more app container).
    pub r#type: SidecarType,
    /// Where it goes.
    #[serde(default)]
    pub position: Position,
}

/// Labels or annotations.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
pub enum Texts {
    /// Keys and values.
    Map(BTreeMap<String, String>),
    /// Entries that also say what to do if the key exists.
    List(Vec<TextEntry>),
}

impl Default for Texts {
    fn default() -> Self {
        Texts::Map(BTreeMap::new())
    }
}

/// What to do with a label or annotation.
#[derive(Debug, JsonSchema)]
pub enum TextOp {
    /// Sets the value; a different existing value is a conflict.
    Set,
    /// Sets the value only if the key does not exist.
    SetIfAbsent,
    /// Adds the value after the existing one.
    Append,
    /// Merges pairs such as `k=v,k=v`: existing pairs are kept.
    MergeKeys,
}

/// Fields that are filled in where they are absent.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defaults {
    /// The resources of each selected container.
    pub resources: Option<ResourceRequirements>,
    /// The security context of each selected container.
    pub security_context: Option<SecurityContext>,
    /// The image pull policy of each selected container.
    pub image_pull_policy: Option<String>,
    /// The security context of the pod.
    pub pod_security_context: Option<PodSecurityContext>,
}

/// A Secret for pulling images.
#[derive(Debug, JsonSchema)]
pub struct PullSecret {
    /// The name of the Secret.
    pub name: String,
}

/// Fields of a pod spec, none of them required.
#[derive(Debug)]
pub struct PartialPodSpec(pub PodSpec);

impl JsonSchema for PartialPodSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PartOfPodSpec".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = PodSpec::json_schema(generator);
        schema.remove("required");
        schema
    }
}
