//! The entries of `inject` that have words of ours beside those of Kubernetes.

use k8s_openapi::api::core::v1::EnvVar;
use serde::Deserialize;
use serde_json::Value;

use crate::policy::words::{EnvOp, PatchScope, Position};

/// A variable and what to do with it.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EnvEntry {
    /// The variable.
    #[serde(flatten)]
    pub var: EnvVar,
    /// What to do.
    #[serde(default)]
    pub op: EnvOp,
    /// The text between the existing value and the added one.
    pub separator: Option<String>,
    /// Where a new variable goes.
    #[serde(default)]
    pub position: Position,
}

/// A label or annotation and what to do with it.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TextEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// What to do.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "super::types::TextOp"))]
    pub op: EnvOp,
    /// The text between the existing value and the added one.
    pub separator: Option<String>,
}

/// An annotation with the checksum of ConfigMaps and Secrets.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// All ConfigMaps or Secrets that the pod template refers to.
    #[serde(default)]
    pub references: Vec<ReferenceKind>,
    /// Only these keys.
    #[serde(default)]
    pub keys: Vec<String>,
    /// What to do if an object is missing.
    #[serde(default)]
    pub on_missing: OnMissing,
}

/// What a pod template refers to.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ReferenceKind {
    /// ConfigMaps.
    ConfigMap,
    /// Secrets.
    Secret,
}

/// What to do if an object is missing.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum OnMissing {
    /// An error.
    #[default]
    Error,
    /// No annotation.
    Skip,
}

/// A JSON patch.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// `JSONPatch`.
    pub patch_type: PatchType,
    /// What the paths are relative to.
    pub scope: PatchScope,
    /// RFC 6902 operations; all are applied, or none.
    pub patch: Vec<JsonPatchOperation>,
}

/// An operation of RFC 6902.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Operation"))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// Adds a value; missing parents are created.
    Add,
    /// Removes the value.
    Remove,
    /// Replaces the value.
    Replace,
    /// Moves a value.
    Move,
    /// Copies a value.
    Copy,
    /// Applies the patch only if this is the value; null tests that there is none.
    Test,
}

/// The kinds of patch.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PatchType {
    /// RFC 6902.
    #[serde(rename = "JSONPatch")]
    JsonPatch,
}
