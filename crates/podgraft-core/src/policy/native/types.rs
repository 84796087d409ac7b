//! The words of `podgraft.dev/v1alpha1 InjectionPolicy` as Rust types: the JSON Schema and the CRD are derived from
//! them. The first sentence of a field's text is shown where the field is missing.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

#[cfg(test)]
pub use super::inject_schema::*;
pub use super::inject_types::*;
pub use crate::policy::words::*;

/// Injects agents, sidecars and settings into pod templates.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InjectionPolicy {
    /// `podgraft.dev/v1alpha1`.
    pub api_version: String,
    /// `InjectionPolicy`.
    pub kind: String,
    /// The name, and optionally the namespace that the policy is limited to.
    pub metadata: ObjectMeta,
    /// What to inject, and where.
    pub spec: InjectionPolicySpec,
}

/// What to inject, and where.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Spec"))]
#[serde(rename_all = "camelCase")]
pub struct InjectionPolicySpec {
    /// A description of the policy.
    pub description: Option<String>,
    /// A lower weight is applied first; then the order on the command line and in the files decides.
    #[serde(default)]
    pub weight: i64,
    /// Inject nothing, and remove what was injected before.
    #[serde(default)]
    pub suspend: bool,
    /// Parameters that a user can set with `--param`.
    #[serde(default)]
    pub params: Vec<Param>,
    /// The kind of custom resource that the policy is for: each resource is one instance of the policy.
    pub source: Option<SourceSpec>,
    /// Conditions that the resource and the parameters must meet.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// Selects the workloads.
    pub r#match: Option<Filter>,
    /// Excludes workloads that match any of these filters.
    #[serde(default)]
    pub exclude: Vec<Filter>,
    /// CEL conditions that must all be true.
    #[serde(default)]
    pub match_conditions: Vec<NamedExpression>,
    /// Apply the policy only to workloads that opt in.
    pub opt_in: Option<Opt>,
    /// Do not apply the policy to workloads that opt out.
    pub opt_out: Option<Opt>,
    /// Signs that another tool has already injected into a workload, which is then skipped.
    #[serde(default)]
    pub leave_alone: Vec<LeaveAlone>,
    /// CEL expressions and values with `${...}`, available as `variables.NAME`.
    #[serde(default)]
    pub variables: Vec<Variable>,
    /// Selects the containers that get the container-level parts.
    #[serde(default)]
    pub containers: Containers,
    /// What to do if an item of the same name exists with different content.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// What to do if the policy fails for a workload.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// What to inject.
    #[cfg_attr(test, schemars(with = "Option<Inject>"))]
    pub inject: Option<IgnoredAny>,
    /// Several injections, each with its own selection.
    #[serde(default)]
    pub rules: Vec<RuleEntry>,
    /// Apply all rules, or only the first that matches a container.
    #[serde(default)]
    pub apply_rules: ApplyRules,
    /// Objects to generate, written after the workload.
    #[serde(default)]
    pub generate: Vec<Companion>,
    /// Of the policies with the same value here, only one can apply to a workload.
    pub alone_among: Option<String>,
    /// Keys of ConfigMaps in the workload's namespace that its pods need to start.
    #[serde(default)]
    pub requires: Vec<RequiredKey>,
    /// Notes to show when the policy has injected something.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// A parameter that a user can set with `--param`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Param {
    /// The name, as in `${params.NAME}`.
    pub name: String,
    /// The value if none is set.
    pub default: Option<Scalar>,
    /// A description of the parameter.
    pub description: Option<String>,
    /// A regular expression that the whole value must match.
    pub pattern: Option<String>,
    /// The accepted values.
    #[serde(default)]
    pub r#enum: Vec<Scalar>,
    /// Whether a value must be set.
    #[serde(default)]
    pub required: bool,
    /// Whether an application's own `podgraft.yaml` can set it.
    #[serde(default)]
    pub overridable: bool,
}

/// The kind of custom resource that the policy is for: each resource is one instance of the policy.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Source"))]
#[serde(rename_all = "camelCase")]
pub struct SourceSpec {
    /// The group and version of the resources; all versions of the group are read.
    pub api_version: String,
    /// The kind of the resources.
    pub kind: String,
    /// Which workloads a resource can change.
    #[serde(default)]
    pub scope: Scope,
    /// The schema of the resources.
    pub schema: Option<SourceSchema>,
}

/// Which workloads a resource can change.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Scope {
    /// Workloads in its own namespace.
    #[default]
    Namespaced,
    /// All workloads.
    Cluster,
}

/// The schema of resources, as in a CustomResourceDefinition.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceSchema {
    /// A structural schema: types, defaults, and bounds.
    #[serde(rename = "openAPIV3Schema")]
    pub open_api_v3_schema: Value,
}

/// A condition that the resource and the parameters must meet.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// A CEL condition.
    pub expression: String,
    /// The message if the condition is false; it can contain `${...}`.
    pub message: String,
    /// How severe a failed validation is.
    #[serde(default)]
    pub severity: ValidationSeverity,
    /// The field of the resource that the message is about, such as `spec.port`.
    pub path: Option<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// The diagnostic code in the report, one of those in docs/errors; the default is `invalid`.
    pub code: Option<String>,
    /// Repeats the validation for each entry of a list; further lists can be lists of an entry.
    #[serde(default)]
    pub for_each: Vec<ForEach>,
}

/// A list, and the name of its entries.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Each"))]
pub struct ForEach {
    /// The name of the entry in expressions.
    pub name: String,
    /// An expression for a list, which can use the resource and the parameters.
    pub list: String,
}

/// A key of a ConfigMap in the workload's namespace.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Required"))]
#[serde(rename_all = "camelCase")]
pub struct RequiredKey {
    /// The ConfigMap.
    pub config_map: String,
    /// The key.
    pub key: String,
}

/// A note to show when the policy has injected something.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Note {
    /// The message; it can contain `${...}`.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// The diagnostic code in the report, one of those in docs/errors.
    pub code: String,
    /// A CEL condition on the resource and the parameters.
    pub when: Option<String>,
}

/// How severe a failed validation is.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Severity"))]
pub enum ValidationSeverity {
    /// An error: nothing is written.
    #[default]
    Error,
    /// A warning: the result is written, but should be reviewed.
    Warning,
    /// A note.
    Note,
}

/// A string; numbers and booleans are used as written.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Scalar {
    /// A string.
    Text(String),
    /// A number.
    Number(f64),
    /// A boolean.
    Bool(bool),
}

/// Selects workloads: all given fields must match.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// `Deployment`, `apps/v1/Deployment`, `*`.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Globs for the name.
    #[serde(default)]
    pub names: Vec<String>,
    /// A part of the name, not a glob; a warning if it matches several workloads. Empty: any name.
    #[serde(default)]
    pub name_contains: String,
    /// Globs for the namespace.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// A part of the namespace, not a glob. Empty: any namespace.
    #[serde(default)]
    pub namespace_contains: String,
    /// Labels of the pod template.
    pub selector: Option<LabelSelector>,
    /// Labels of the workload itself.
    pub workload_selector: Option<LabelSelector>,
    /// Labels of the Namespace object.
    pub namespace_selector: Option<LabelSelector>,
    /// Keys and globs for values, on template or workload.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Globs; the image of a container must match one.
    #[serde(default)]
    pub images: Vec<String>,
    /// Helm and Argo CD hooks.
    pub hooks: Option<Hooks>,
    /// A stable share of the workloads.
    pub sample: Option<Sample>,
    /// Filters; at least one must match.
    #[serde(default)]
    pub any: Vec<Filter>,
}

/// A CEL expression with a name.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Named"))]
pub struct NamedExpression {
    /// The name.
    pub name: String,
    /// The CEL expression.
    pub expression: String,
}

/// A named value, evaluated once per workload.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Variable {
    /// The name.
    pub name: String,
    /// A CEL expression.
    pub expression: Option<String>,
    /// Any value; it can contain `${...}`.
    pub value: Option<Value>,
}

/// How a workload opts in or out.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Opt {
    /// The key of an annotation.
    pub annotation: Option<String>,
    /// The key of a label.
    pub label: Option<String>,
    /// The values that opt in or out.
    #[serde(default)]
    pub values: Vec<String>,
    /// Where to look.
    #[serde(default)]
    pub from: Vec<OptFrom>,
    /// Whether to ignore the case of values.
    #[serde(default)]
    pub ignore_case: bool,
}

/// An annotation, a label, or a container that another injector leaves in the input.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeaveAlone {
    /// The key of an annotation on the pod template or the workload.
    pub annotation: Option<String>,
    /// The key of a label on the pod template or the workload.
    pub label: Option<String>,
    /// A glob for the name of a container.
    pub container: Option<String>,
    /// Globs for the value of the annotation or label. Empty: any value.
    #[serde(default)]
    pub values: Vec<String>,
}

/// Selects the containers that get the container-level parts.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Containers {
    /// Globs for the name.
    #[serde(default)]
    pub names: Vec<String>,
    /// A part of the name, not a glob. Empty: any name.
    #[serde(default)]
    pub name_contains: String,
    /// Globs for the image.
    #[serde(default)]
    pub images: Vec<String>,
    /// Globs for the names of containers to exclude.
    #[serde(default)]
    pub exclude_names: Vec<String>,
    /// Globs for the images of containers to exclude.
    #[serde(default)]
    pub exclude_images: Vec<String>,
    /// Only containers with these variables.
    #[serde(default)]
    pub with_env: Vec<String>,
    /// Only containers without these variables.
    #[serde(default)]
    pub without_env: Vec<String>,
    /// The key of an annotation that lists the names.
    pub names_from_annotation: Option<String>,
    /// CEL conditions on `container` that must all be true.
    #[serde(default)]
    pub match_conditions: Vec<NamedExpression>,
    /// The lists of containers to select from.
    #[serde(default)]
    pub include: Vec<ContainerList>,
    /// Select all containers that match, or only the first.
    #[serde(default)]
    pub mode: ContainerMode,
}

/// One of several injections.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleEntry {
    /// The name of the rule in messages.
    pub name: Option<String>,
    /// Selects the workloads.
    pub r#match: Option<Filter>,
    /// Excludes workloads that match any of these filters.
    #[serde(default)]
    pub exclude: Vec<Filter>,
    /// CEL conditions that must all be true.
    #[serde(default)]
    pub match_conditions: Vec<NamedExpression>,
    /// Selects the containers that get the container-level parts.
    #[serde(default)]
    pub containers: Containers,
    /// What to do if an item of the same name exists with different content.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// What to inject.
    #[cfg_attr(test, schemars(with = "Inject"))]
    pub inject: IgnoredAny,
    /// Repeats the rule for each entry of a list; further lists can be lists of an entry.
    #[serde(default)]
    pub for_each: Vec<ForEach>,
}

/// An object that is written after the workload.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Companion {
    /// A CEL condition.
    pub when: Option<String>,
    /// The whole object.
    pub resource: Value,
}
