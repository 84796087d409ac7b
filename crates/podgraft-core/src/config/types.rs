//! The words of `podgraft.dev/v1alpha1 Config` and `PodgraftFunction` as Rust types: their schemas are derived from them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::policy::images::ImageMirror;
use crate::policy::native::types::{Containers, Filter, Scalar};

/// `podgraft.yaml`: what holds wherever podgraft runs in a repository, or on a host.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigFile {
    /// `podgraft.dev/v1alpha1`.
    pub api_version: String,
    /// `Config`.
    pub kind: String,
    /// Not used; a name for people.
    pub metadata: Option<ObjectMeta>,
    /// Everything else.
    #[serde(flatten)]
    pub settings: Settings,
    /// Globs: in folders, only these files.
    #[serde(default)]
    pub include: Vec<String>,
    /// Globs: in folders, not these files and folders.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// The namespace of objects that state none, by the folder of their file: globs, of which the first that fits counts.
    #[serde(default)]
    pub namespaces: BTreeMap<String, String>,
    /// The namespace of objects that state none, in all other files.
    pub namespace: Option<String>,
    /// Variables that images set, such as `app:JAVA_TOOL_OPTIONS=-Xmx1g`.
    #[serde(default)]
    pub image_env: Vec<String>,
    /// Warnings fail.
    #[serde(default)]
    pub strict: bool,
    /// What must be true of all workloads together; `check` fails where it is not.
    #[serde(default)]
    pub require: Vec<RequireEntry>,
    /// Findings that are known and accepted.
    #[serde(default)]
    pub acknowledge: Vec<AcknowledgeEntry>,
    /// An application's own `podgraft.yaml` may set parameters that a policy marks `overridable`.
    #[serde(default)]
    pub allow_application_config: bool,
}

/// Workloads that a policy must be for.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequireEntry {
    /// The policy.
    pub policy: String,
    /// It must be for so many workloads.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub at_least: Option<i64>,
    /// It must be for all workloads whose pod template has these labels.
    pub selector: Option<LabelSelector>,
}

/// A finding that is known and accepted.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AcknowledgeEntry {
    /// The code of the finding.
    pub code: String,
    /// Only of these workloads, as `--workload` takes them.
    pub workload: Option<String>,
    /// Only of this policy.
    pub policy: Option<String>,
    /// Why it is accepted.
    pub reason: String,
}

/// A policy, and what is other here than in its file.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PolicyEntry {
    /// As `-p` takes it.
    Given(String),
    /// With changes.
    Changed(Box<ChangedPolicy>),
}

/// A policy with changes.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangedPolicy {
    /// The policy, as `-p` takes it.
    pub r#use: String,
    /// The SHA-256 of its file, in hexadecimal digits: another file is refused.
    pub sha256: Option<String>,
    /// Values of its parameters.
    #[serde(default)]
    pub params: BTreeMap<String, Scalar>,
    /// Each of these takes the place of the same field of the policy's `match`.
    pub r#match: Option<Filter>,
    /// Each of these takes the place of the same field of the policy's `containers`.
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
    /// A name for people, and what a host notes there.
    pub metadata: Option<ObjectMeta>,
    /// What to do.
    pub spec: FunctionSpec,
}

/// What to do.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FunctionSpec {
    /// With which policies.
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
    /// Applies them.
    #[default]
    Apply,
    /// Changes nothing, and fails where applying them would: a gate, for `validators`.
    Check,
}

/// What both have.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Policies as `-p` takes them, or with changes; paths from this file's folder.
    #[serde(default)]
    pub policies: Vec<PolicyEntry>,
    /// Values of parameters, by the policy's identity and the parameter's name.
    #[serde(default)]
    pub params: BTreeMap<String, BTreeMap<String, Scalar>>,
    /// More kinds that hold a pod template, such as `argoproj.io/v1alpha1/Rollout=spec.template`.
    #[serde(default)]
    pub pod_templates: Vec<String>,
    /// The version of the cluster that the manifests are for, such as `"1.33"`.
    pub kube_version: Option<Scalar>,
    /// Manifests that are read for facts only; paths from this file's folder.
    #[serde(default)]
    pub context: Vec<String>,
    /// The name of this set of policies, for `--prune`.
    pub set: Option<String>,
    /// When the record is written.
    pub record: Option<RecordMode>,
    /// What no policy may inject.
    #[serde(default)]
    pub forbid: Vec<String>,
    /// Other places for the images that policies inject.
    #[serde(default)]
    pub image_mirrors: Vec<ImageMirror>,
    /// How the OpenTelemetry Operator is set up, whose work an Instrumentation asks for.
    #[serde(default)]
    pub open_telemetry: OpenTelemetry,
}

/// How the OpenTelemetry Operator is set up.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenTelemetry {
    /// Its release, such as `0.158.0`.
    pub operator_release: Option<String>,
    /// What is on beside its defaults: `go`, `nginx`.
    #[serde(default)]
    pub enable: Vec<String>,
    /// What is off: languages, `multi-instrumentation`.
    #[serde(default)]
    pub disable: Vec<String>,
    /// The images of languages whose Instrumentation states none.
    #[serde(default)]
    pub images: BTreeMap<String, String>,
}

/// When the record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Record"))]
pub enum RecordMode {
    /// With `--in-place`, in `podgraft.lock`.
    InPlace,
    /// By every run, in annotations.
    Always,
    /// Not at all.
    Never,
}
