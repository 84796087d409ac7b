//! The words of the policy language that mean the same to every stage: as a policy file writes them, and as all stages read them.

use serde::Deserialize;

/// What to do if an item of the same name exists with different content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum OnConflict {
    /// Reports an error.
    #[default]
    Error,
    /// Overrides the existing item.
    Replace,
    /// Keeps the existing item.
    Keep,
}

/// What to do if the policy fails for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum FailurePolicy {
    /// The run fails.
    #[default]
    Fail,
    /// The workload is left unchanged, with a warning.
    Ignore,
}

/// How a sidecar is added to the pod.
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
    /// Sets the variable; a different existing value is a conflict.
    #[default]
    Set,
    /// Sets the variable only if it does not exist.
    SetIfAbsent,
    /// Adds the value after the existing one.
    Append,
    /// Adds the value before the existing one.
    Prepend,
    /// Merges pairs such as `k=v,k=v`: existing pairs are kept.
    MergeKeys,
    /// Removes the variable.
    Remove,
}

impl EnvOp {
    /// Whether it joins a text with what is there.
    pub fn joins(self) -> bool {
        matches!(self, EnvOp::Append | EnvOp::Prepend | EnvOp::MergeKeys)
    }

    /// The separator if the policy states none: `:` for variables that are search paths, `,` for `MergeKeys`, else a space,
    /// as in lists of flags.
    pub(crate) fn default_separator(self, name: &str) -> &'static str {
        const PATH_LISTS: [&str; 16] = [
            "CLASSPATH",
            "CPATH",
            "GEM_PATH",
            "GOPATH",
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "LIBRARY_PATH",
            "MANPATH",
            "NODE_PATH",
            "PATH",
            "PERL5LIB",
            "PKG_CONFIG_PATH",
            "PYTHONPATH",
            "RUBYLIB",
            "XDG_CONFIG_DIRS",
            "XDG_DATA_DIRS",
        ];
        match self {
            EnvOp::MergeKeys => ",",
            _ if PATH_LISTS.contains(&name) => ":",
            EnvOp::Set | EnvOp::SetIfAbsent | EnvOp::Append | EnvOp::Prepend | EnvOp::Remove => " ",
        }
    }
}

/// The lists of containers of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ContainerList {
    /// `spec.containers`.
    Containers,
    /// `spec.initContainers` without `restartPolicy: Always`.
    InitContainers,
    /// `spec.initContainers` with `restartPolicy: Always`.
    Sidecars,
    /// Containers that earlier policies added in this run.
    Injected,
}

/// Select all containers that match, or only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ContainerMode {
    /// All containers that match.
    #[default]
    All,
    /// The first that matches.
    First,
}

/// Objects annotated `helm.sh/hook` or `argocd.argoproj.io/hook`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Hooks {
    /// Excludes hooks.
    Exclude,
    /// Includes hooks.
    Include,
    /// Selects only hooks.
    Only,
}

/// Where an item goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Position {
    /// Before all others.
    First,
    /// After all others.
    #[default]
    Last,
    /// Directly before the item with this name.
    #[serde(rename = "before")]
    Before(String),
    /// Directly after the item with this name.
    #[serde(rename = "after")]
    After(String),
}

/// What the paths of a patch are relative to.
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

/// Where an opt-in or opt-out can be.
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

/// Apply all rules, or only the first that matches a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ApplyRules {
    /// All rules.
    #[default]
    All,
    /// The first that matches.
    One,
}

/// A stable share of the workloads.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sample {
    /// Percent, from 0 to 100.
    pub percent: f64,
    /// Selects a different share of the same size.
    #[serde(default)]
    pub salt: String,
}
