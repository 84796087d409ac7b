//! The words of the policy language that mean the same to every stage: as a policy file writes them, and as all stages read them.

use serde::Deserialize;

/// What other content of the same identity means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum OnConflict {
    /// An error.
    #[default]
    Error,
    /// Ours wins.
    Replace,
    /// What is there stays.
    Keep,
}

/// What a problem with one workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum FailurePolicy {
    /// The run fails.
    #[default]
    Fail,
    /// The workload is left alone, with a warning.
    Ignore,
}

/// How a sidecar stands in the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SidecarType {
    /// An init container with `restartPolicy: Always` (Kubernetes 1.29).
    Native,
    /// One more app container.
    Container,
}

/// What to do with a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum EnvOp {
    /// Another value there is a conflict.
    #[default]
    Set,
    /// Only where no variable of that name is.
    SetIfAbsent,
    /// Behind what is there.
    Append,
    /// In front of what is there.
    Prepend,
    /// `k=v,k=v`: pairs that are there win.
    MergeKeys,
    /// Take the variable out.
    Remove,
}

impl EnvOp {
    /// Whether it joins a text with what is there.
    pub fn joins(self) -> bool {
        matches!(self, EnvOp::Append | EnvOp::Prepend | EnvOp::MergeKeys)
    }
}

/// The lists of containers of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ContainerList {
    /// `spec.containers`.
    Containers,
    /// `spec.initContainers` that end.
    InitContainers,
    /// `spec.initContainers` with `restartPolicy: Always`.
    Sidecars,
    /// Containers that policies before this one added in this run.
    Injected,
}

/// All that fit, or the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ContainerMode {
    /// Every container that fits.
    #[default]
    All,
    /// The first that fits.
    First,
}

/// Objects annotated `helm.sh/hook` or `argocd.argoproj.io/hook`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Hooks {
    /// Not these.
    Exclude,
    /// These as well.
    Include,
    /// Nothing else.
    Only,
}

/// Where an item goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Position {
    /// Before all others.
    First,
    /// Behind all others.
    #[default]
    Last,
    /// Just before the one of this name.
    #[serde(rename = "before")]
    Before(String),
    /// Just behind the one of this name.
    #[serde(rename = "after")]
    After(String),
}

/// What a patch's paths begin at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PatchScope {
    /// The whole object.
    Workload,
    /// Its pod template.
    PodTemplate,
    /// Each chosen container.
    Container,
}

/// Where an opt-in or opt-out stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum OptFrom {
    /// On the pod template.
    Pod,
    /// On the workload.
    Workload,
    /// On the Namespace object.
    Namespace,
}

/// All rules, or the first that fits a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ApplyRules {
    /// All rules.
    #[default]
    All,
    /// The first that fits.
    One,
}

/// A stable share of the workloads.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sample {
    /// 0 to 100.
    pub percent: f64,
    /// Chooses another share of the same size.
    #[serde(default)]
    pub salt: String,
}
