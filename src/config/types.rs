//! The words of `podgraft.dev/v1alpha1 Config` and `PodgraftFunction` as Rust types: their schemas are derived from them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::policy::native::types::Scalar;

/// `podgraft.yaml`: what holds wherever podgraft runs in a repository, or on a host.
#[derive(Debug, Deserialize, JsonSchema)]
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
    /// An application's own `podgraft.yaml` may set parameters that a policy marks `overridable`.
    #[serde(default)]
    pub allow_application_config: bool,
}

/// The functionConfig of `podgraft fn`.
#[derive(Debug, Deserialize, JsonSchema)]
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
#[derive(Debug, Deserialize, JsonSchema)]
pub struct FunctionSpec {
    /// With which policies.
    #[serde(flatten)]
    pub settings: Settings,
    /// Apply the policies, or check that they are applied.
    #[serde(default)]
    pub mode: Mode,
}

/// What a function does with its policies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Mode {
    /// Applies them.
    #[default]
    Apply,
    /// Changes nothing, and fails where applying them would: a gate, for `validators`.
    Check,
}

/// What both have.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Policies as `-p` takes them; paths from this file's folder.
    #[serde(default)]
    pub policies: Vec<String>,
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
    pub record: Option<Record>,
    /// What no policy may inject.
    #[serde(default)]
    pub forbid: Vec<String>,
    /// Other places for the images that policies inject.
    #[serde(default)]
    pub image_mirrors: Vec<Image>,
}

/// When the record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Record {
    /// With `--in-place`.
    InPlace,
    /// By every run.
    Always,
    /// Not at all.
    Never,
}

/// An entry of kustomize's `images`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The image without tag and digest, as the policy writes it.
    pub name: String,
    /// Instead of the name.
    pub new_name: Option<String>,
    /// Instead of tag and digest.
    pub new_tag: Option<String>,
    /// Behind the tag.
    pub tag_suffix: Option<String>,
    /// Instead of tag and digest, such as `sha256:...`.
    pub digest: Option<String>,
}
