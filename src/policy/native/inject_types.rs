//! The words of `inject`: Kubernetes' own types, with the few words of ours beside them.

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvFromSource, EnvVar, EphemeralContainer, PodSecurityContext,
    PodSpec, ResourceRequirements, SecurityContext, Volume, VolumeMount,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

use crate::policy::words::{EnvOp, PatchScope, Position, SidecarType};

/// What to inject.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Inject {
    /// Init containers.
    #[serde(default)]
    pub init_containers: Vec<InitContainer>,
    /// Containers that run beside the app.
    #[serde(default)]
    pub sidecars: Vec<Sidecar>,
    /// Emitted beside the workload, never written into it.
    #[serde(default)]
    pub ephemeral_containers: Vec<EphemeralContainer>,
    /// Volumes of the pod.
    #[serde(default)]
    pub volumes: Vec<VolumeEntry>,
    /// In each chosen container.
    #[serde(default)]
    pub volume_mounts: Vec<VolumeMount>,
    /// In each chosen container.
    #[serde(default)]
    pub env: Vec<EnvEntry>,
    /// In each chosen container.
    #[serde(default)]
    pub env_from: Vec<EnvFromSource>,
    /// In each chosen container.
    #[serde(default)]
    pub ports: Vec<ContainerPort>,
    /// On the pod template.
    #[serde(default)]
    pub pod_annotations: Texts,
    /// On the pod template.
    #[serde(default)]
    pub pod_labels: Texts,
    /// On the workload.
    #[serde(default)]
    pub annotations: Texts,
    /// On the workload.
    #[serde(default)]
    pub labels: Texts,
    /// Filled in where absent.
    pub defaults: Option<Defaults>,
    /// Other fields of the pod spec.
    pub pod_spec: Option<PartialPodSpec>,
    /// Secrets to pull images with.
    #[serde(default)]
    pub image_pull_secrets: Vec<PullSecret>,
    /// Annotations with the checksum of ConfigMaps and Secrets.
    #[serde(default)]
    pub checksums: Vec<Checksum>,
    /// JSON patches (RFC 6902), last.
    #[serde(default)]
    pub patches: Vec<Patch>,
}

/// A container and where it goes among the init containers.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InitContainer {
    /// The container.
    #[serde(flatten)]
    pub container: Container,
    /// Where it goes.
    #[serde(default)]
    pub position: Position,
}

/// A volume and where it goes.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct VolumeEntry {
    /// The volume; without a source it is an `emptyDir`.
    #[serde(flatten)]
    pub volume: Volume,
    /// Where it goes.
    #[serde(default)]
    pub position: Position,
}

/// A container that runs beside the app.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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

/// A variable and what to do with it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct EnvEntry {
    /// The variable.
    #[serde(flatten)]
    pub var: EnvVar,
    /// What to do.
    #[serde(default)]
    pub op: EnvOp,
    /// Between what is there and what is added.
    pub separator: Option<String>,
    /// Where a new variable goes.
    #[serde(default)]
    pub position: Position,
}

/// Labels or annotations.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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

/// A label or annotation and what to do with it.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TextEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// What to do.
    #[serde(default)]
    pub op: TextOp,
    /// Between what is there and what is added.
    pub separator: Option<String>,
}

/// What to do with a label or annotation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum TextOp {
    /// Another value there is a conflict.
    #[default]
    Set,
    /// Only where the key is not there.
    SetIfAbsent,
    /// Behind what is there.
    Append,
    /// `k=v,k=v`: pairs that are there win.
    MergeKeys,
}

impl From<TextOp> for EnvOp {
    fn from(op: TextOp) -> Self {
        match op {
            TextOp::Set => Self::Set,
            TextOp::SetIfAbsent => Self::SetIfAbsent,
            TextOp::Append => Self::Append,
            TextOp::MergeKeys => Self::MergeKeys,
        }
    }
}

/// What is filled in where it is absent.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PullSecret {
    /// The Secret's name.
    pub name: String,
}

/// Fields of a pod spec, none of them required.
#[derive(Debug, Deserialize)]
pub struct PartialPodSpec(pub PodSpec);

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for PartialPodSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PartOfPodSpec".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = PodSpec::json_schema(generator);
        schema.remove("required");
        schema
    }
}

/// An annotation with the checksum of ConfigMaps and Secrets.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Checksum {
    /// The annotation's key.
    pub annotation: String,
    /// Names of ConfigMaps.
    #[serde(default)]
    pub config_maps: Vec<String>,
    /// Names of Secrets.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// All that the pod template names.
    #[serde(default)]
    pub references: Vec<ReferenceKind>,
    /// Only these keys.
    #[serde(default)]
    pub keys: Vec<String>,
    /// What an object that is not there means.
    #[serde(default)]
    pub on_missing: OnMissing,
}

/// What a pod template refers to.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum ReferenceKind {
    /// ConfigMaps.
    ConfigMap,
    /// Secrets.
    Secret,
}

/// What an object that is not there means.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum OnMissing {
    /// An error.
    #[default]
    Error,
    /// No annotation.
    Skip,
}

/// A JSON patch.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// `JSONPatch`.
    pub patch_type: PatchType,
    /// What the paths begin at.
    pub scope: PatchScope,
    /// RFC 6902 operations, all or none of them.
    pub patch: Vec<JsonPatchOperation>,
}

/// An operation of RFC 6902.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemas", schemars(rename = "Operation"))]
pub struct JsonPatchOperation {
    /// What to do.
    pub op: OperationKind,
    /// A JSON pointer (RFC 6901): `/` before every key, `~1` for a `/` in a key.
    pub path: String,
    /// Where to take the value, for `move` and `copy`.
    pub from: Option<String>,
    /// The value, for `add`, `replace` and `test`.
    pub value: Option<Value>,
}

/// The operations of RFC 6902.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// Put a value there; missing parents are made.
    Add,
    /// Take out what is there.
    Remove,
    /// Another value for what is there.
    Replace,
    /// Take out there, put here.
    Move,
    /// What is there, here as well.
    Copy,
    /// Unless this value is there, the patch does not apply; null: nothing is there.
    Test,
}

/// The kinds of patch.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum PatchType {
    /// RFC 6902.
    #[serde(rename = "JSONPatch")]
    JsonPatch,
}
