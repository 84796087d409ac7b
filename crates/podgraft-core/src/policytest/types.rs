//! The words of `podgraft.dev/v1alpha1 PolicyTest` as Rust types: its schema is derived from them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

/// What policies are expected to do to manifests.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyTestFile {
    /// `podgraft.dev/v1alpha1`.
    pub api_version: String,
    /// `PolicyTest`.
    pub kind: String,
    /// The test's name.
    pub metadata: ObjectMeta,
    /// What to run, and what to expect.
    pub spec: PolicyTestSpec,
}

/// What to run, and what to expect. Paths are from the test's own folder.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Spec"))]
#[serde(rename_all = "camelCase")]
pub struct PolicyTestSpec {
    /// For people.
    pub description: Option<String>,
    /// Policies as `-p` takes them: files, folders, `builtin:NAME`.
    pub policies: Vec<String>,
    /// Parameters as `--param` takes them: `[POLICY:]NAME=VALUE`.
    #[serde(default)]
    pub params: Vec<String>,
    /// Manifests: files or folders.
    pub inputs: Vec<String>,
    /// Manifests that are read for facts only.
    #[serde(default)]
    pub context: Vec<String>,
    /// For objects that state no namespace.
    pub namespace: Option<String>,
    /// The version of the cluster, such as `"1.33"`.
    pub kube_version: Option<String>,
    /// What must come of it.
    pub expect: Expect,
}

/// What must come of it.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Expect {
    /// A file with what `podgraft apply` prints.
    pub output: Option<String>,
    /// The diagnostic codes with which the run is refused, all of them; none: it is not refused.
    #[serde(default)]
    pub refused: Vec<String>,
    /// The diagnostic codes of the warnings, all of them.
    pub warnings: Option<Vec<String>>,
    /// What happens to single workloads.
    #[serde(default)]
    pub results: Vec<ExpectedResult>,
}

/// What happens to workloads of a name.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExpectedResult {
    /// The policy's identity; any when it is not stated.
    pub policy: Option<String>,
    /// A glob on the kind.
    pub kind: String,
    /// A glob on the namespace.
    pub namespace: Option<String>,
    /// A glob on the name.
    pub name: String,
    /// What the policy does.
    pub result: ExpectedOutcome,
    /// A glob on what the report says beside: the changes, or why the policy does not apply.
    pub reason: Option<String>,
}

/// What a policy does to a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Word"))]
pub enum ExpectedOutcome {
    /// It injects.
    Injected,
    /// It does not apply any more, and what it injected before is taken out.
    TakenOut,
    /// It applies, and all is there already.
    UpToDate,
    /// It does not apply.
    Skipped,
    /// It applies, and cannot.
    Failed,
}
