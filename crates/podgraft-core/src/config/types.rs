//! The words of `podgraft.dev/v1alpha1 Config` and `PodgraftFunction` as Rust types: their schemas are derived from them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::policy::images::ImageMirror;
use crate::policy::native::types::{Containers, Filter, Scalar};

/// `podgraft.yaml`: the configuration for every podgraft run in a repository or on a host.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigFile {
    /// `podgraft.dev/v1alpha1`.
    pub api_version: String,
    /// `Config`.
    pub kind: String,
    /// Not used; a name for readers.
    pub metadata: Option<ObjectMeta>,
    /// Everything else.
    #[serde(flatten)]
    pub settings: Settings,
    /// Globs: in folders, read only these files.
    #[serde(default)]
    pub include: Vec<String>,
    /// Globs: in folders, skip these files and folders.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// The namespace of objects that specify none, by a glob for the folder of their file; the first match is used.
    #[serde(default)]
    pub namespaces: BTreeMap<String, String>,
    /// The namespace of objects that specify none, in all other files.
    pub namespace: Option<String>,
    /// Variables that images set, such as `app:JAVA_TOOL_OPTIONS=-Xmx1g`.
    #[serde(default)]
    pub image_env: Vec<String>,
    /// Whether warnings are errors.
    #[serde(default)]
    pub strict: bool,
    /// Requirements on all workloads together; `check` fails if they are not met.
    #[serde(default)]
    pub require: Vec<RequireEntry>,
    /// Findings that are known and accepted.
    #[serde(default)]
    pub acknowledge: Vec<AcknowledgeEntry>,
    /// Whether an application's own `podgraft.yaml` can set parameters that a policy marks as `overridable`.
    #[serde(default)]
    pub allow_application_config: bool,
}

/// Workloads that a policy must apply to.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequireEntry {
    /// The policy.
    pub policy: String,
    /// The minimum number of workloads that the policy must apply to.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub at_least: Option<i64>,
    /// The policy must apply to all workloads whose pod template has these labels.
    pub selector: Option<LabelSelector>,
}

/// A finding that is known and accepted.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AcknowledgeEntry {
    /// The code of the finding.
    pub code: String,
    /// Only for these workloads, in the form of `--workload`.
    pub workload: Option<String>,
    /// Only for this policy.
    pub policy: Option<String>,
    /// Why it is accepted.
    pub reason: String,
}

/// A policy, and what is different here from its file.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PolicyEntry {
    /// In the form of `-p`.
    Given(String),
    /// With changes.
    Changed(Box<ChangedPolicy>),
}

/// A policy with changes.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangedPolicy {
    /// The policy, in the form of `-p`.
    pub r#use: String,
    /// The SHA-256 of its file, in hexadecimal digits: a different file is rejected.
    pub sha256: Option<String>,
    /// The values of its parameters.
    #[serde(default)]
    pub params: BTreeMap<String, Scalar>,
    /// Each of these replaces the same field of the policy's `match`.
    pub r#match: Option<Filter>,
    /// Each of these replaces the same field of the policy's `containers`.
    pub containers: Option<Containers>,
}

/// The functionConfig of `podgraft fn`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FunctionFile {
    /// `podgraft.dev/v1alpha1`.
    pub api_version: String,
    /// `PodgraftFunction`.
    pub kind: String,
    /// A name for readers, and annotations of the host.
    pub metadata: Option<ObjectMeta>,
    /// What to do.
    pub spec: FunctionSpec,
}

/// What to do.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FunctionSpec {
    /// The policies and their settings.
    #[serde(flatten)]
    pub settings: Settings,
    /// Apply the policies, or check that they are applied.
    #[serde(default)]
    pub mode: FunctionMode,
}

/// What a function does with its policies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Mode"))]
pub enum FunctionMode {
    /// Applies the policies.
    #[default]
    Apply,
    /// Changes nothing, and fails if applying the policies would: a gate, for `validators`.
    Check,
}

/// The settings that both have.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Policies in the form of `-p`, or with changes; paths are relative to this file's folder.
    #[serde(default)]
    pub policies: Vec<PolicyEntry>,
    /// The values of parameters, by the policy's identity and the parameter's name.
    #[serde(default)]
    pub params: BTreeMap<String, BTreeMap<String, Scalar>>,
    /// More kinds that have a pod template, such as `argoproj.io/v1alpha1/Rollout=spec.template`.
    #[serde(default)]
    pub pod_templates: Vec<String>,
    /// The version of the cluster that the manifests are for, such as `"1.33"`.
    pub kube_version: Option<Scalar>,
    /// Manifests that are only read for facts; paths are relative to this file's folder.
    #[serde(default)]
    pub context: Vec<String>,
    /// The name of this set of policies, for `--prune`.
    pub set: Option<String>,
    /// When the record is written.
    pub record: Option<RecordMode>,
    /// What no policy may inject.
    #[serde(default)]
    pub forbid: Vec<String>,
    /// Mirrors for the images that policies inject.
    #[serde(default)]
    pub image_mirrors: Vec<ImageMirror>,
    /// How the OpenTelemetry Operator is configured, which podgraft imitates for an Instrumentation.
    #[serde(default)]
    pub open_telemetry: OpenTelemetry,
}

/// How the OpenTelemetry Operator is configured.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenTelemetry {
    /// Its release, such as `0.158.0`.
    pub operator_release: Option<String>,
    /// What is enabled in addition to its defaults: `go`, `nginx`.
    #[serde(default)]
    pub enable: Vec<String>,
    /// What is disabled: languages, `multi-instrumentation`.
    #[serde(default)]
    pub disable: Vec<String>,
    /// The images of languages whose Instrumentation specifies none.
    #[serde(default)]
    pub images: BTreeMap<String, String>,
}

/// When the record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Record"))]
pub enum RecordMode {
    /// With `--in-place`, in `podgraft.lock`.
    InPlace,
    /// With every run, in annotations.
    Always,
    /// Never.
    Never,
}
