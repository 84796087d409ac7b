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
    /// Containers that run beside the app.
    pub sidecars: Vec<Sidecar>,
    /// Emitted beside the workload, never written into it.
    pub ephemeral_containers: Vec<EphemeralContainer>,
    /// Volumes of the pod.
    pub volumes: Vec<VolumeEntry>,
    /// In each chosen container.
    pub volume_mounts: Vec<VolumeMount>,
    /// In each chosen container.
    pub env: Vec<EnvEntry>,
    /// In each chosen container.
    pub env_from: Vec<EnvFromSource>,
    /// In each chosen container.
    pub ports: Vec<ContainerPort>,
    /// On the pod template.
    pub pod_annotations: Texts,
    /// On the pod template.
    pub pod_labels: Texts,
    /// On the workload.
    pub annotations: Texts,
    /// On the workload.
    pub labels: Texts,
    /// Filled in where absent.
    pub defaults: Option<Defaults>,
    /// Other fields of the pod spec.
    pub pod_spec: Option<PartialPodSpec>,
    /// Secrets to pull images with.
    pub image_pull_secrets: Vec<PullSecret>,
    /// Annotations with the checksum of ConfigMaps and Secrets.
    pub checksums: Vec<Checksum>,
    /// JSON patches (RFC 6902), last.
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

/// A container that runs beside the app.
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
    /// Key and value each.
    Map(BTreeMap<String, String>),
    /// Each with what to do where the key is there.
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
    /// Another value there is a conflict.
    Set,
    /// Only where the key is not there.
    SetIfAbsent,
    /// Behind what is there.
    Append,
    /// `k=v,k=v`: pairs that are there win.
    MergeKeys,
}

/// What is filled in where it is absent.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defaults {
    /// Of each chosen container.
    pub resources: Option<ResourceRequirements>,
    /// Of each chosen container.
    pub security_context: Option<SecurityContext>,
    /// Of each chosen container.
    pub image_pull_policy: Option<String>,
    /// Of the pod.
    pub pod_security_context: Option<PodSecurityContext>,
}

/// A Secret to pull images with.
#[derive(Debug, JsonSchema)]
pub struct PullSecret {
    /// The Secret's name.
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
