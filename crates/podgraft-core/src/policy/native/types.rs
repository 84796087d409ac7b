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
    /// Name, and optionally the namespace that the policy is bound to.
    pub metadata: ObjectMeta,
    /// What to inject, and where.
    pub spec: InjectionPolicySpec,
}

/// What to inject, and where.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Spec"))]
#[serde(rename_all = "camelCase")]
pub struct InjectionPolicySpec {
    /// For people.
    pub description: Option<String>,
    /// Lower first; then command-line order, then document order.
    #[serde(default)]
    pub weight: i64,
    /// Inject nothing, and take out what was injected before.
    #[serde(default)]
    pub suspend: bool,
    /// Values that a user may set with `--param`.
    #[serde(default)]
    pub params: Vec<Param>,
    /// The resources of which each is one instance of the policy.
    pub source: Option<SourceSpec>,
    /// What must hold of the resource and the parameters.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// Which workloads.
    pub r#match: Option<Filter>,
    /// Which of these not; one filter that holds is enough.
    #[serde(default)]
    pub exclude: Vec<Filter>,
    /// CEL conditions that must all hold.
    #[serde(default)]
    pub match_conditions: Vec<NamedExpression>,
    /// Only workloads that say so.
    pub opt_in: Option<Opt>,
    /// Not the workloads that say so.
    pub opt_out: Option<Opt>,
    /// What shows that somebody else has done it: such a workload is left alone.
    #[serde(default)]
    pub leave_alone: Vec<LeaveAlone>,
    /// CEL expressions and values with `${...}`, read as `variables.NAME`.
    #[serde(default)]
    pub variables: Vec<Variable>,
    /// Which containers get the container-level parts.
    #[serde(default)]
    pub containers: Containers,
    /// What other content of the same identity means.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// What a problem with one workload does.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// What to inject.
    #[cfg_attr(test, schemars(with = "Option<Inject>"))]
    pub inject: Option<IgnoredAny>,
    /// Several injections, each with its own choice.
    #[serde(default)]
    pub rules: Vec<RuleEntry>,
    /// All rules, or the first that fits a container.
    #[serde(default)]
    pub apply_rules: ApplyRules,
    /// Companion objects, written behind the workload.
    #[serde(default)]
    pub generate: Vec<Companion>,
    /// Of the policies that state the same here, only one may apply to a workload.
    pub alone_among: Option<String>,
    /// Keys of ConfigMaps of the workload's namespace without which its pods do not start.
    #[serde(default)]
    pub requires: Vec<RequiredKey>,
    /// What to tell the user once the policy has injected something.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// A value that a user may set with `--param`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Param {
    /// The name, as in `${params.NAME}`.
    pub name: String,
    /// The value when none is given.
    pub default: Option<Scalar>,
    /// For people.
    pub description: Option<String>,
    /// A regular expression that the whole value must match.
    pub pattern: Option<String>,
    /// The values that are accepted.
    #[serde(default)]
    pub r#enum: Vec<Scalar>,
    /// A value must be given.
    #[serde(default)]
    pub required: bool,
    /// An application's own folder may set it.
    #[serde(default)]
    pub overridable: bool,
}

/// The resources of which each is one instance of the policy.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Source"))]
#[serde(rename_all = "camelCase")]
pub struct SourceSpec {
    /// Group and version of the resources; every version of the group is read.
    pub api_version: String,
    /// The kind of the resources.
    pub kind: String,
    /// Which workloads a resource may touch.
    #[serde(default)]
    pub scope: Scope,
    /// What the resources look like.
    pub schema: Option<SourceSchema>,
}

/// Which workloads a resource may touch.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Scope {
    /// Those of its own namespace.
    #[default]
    Namespaced,
    /// All.
    Cluster,
}

/// What resources look like, as a CustomResourceDefinition says it.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceSchema {
    /// A structural schema: types, defaults and bounds.
    #[serde(rename = "openAPIV3Schema")]
    pub open_api_v3_schema: Value,
}

/// What must hold of the resource and the parameters.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// A CEL condition.
    pub expression: String,
    /// What to say where it does not hold; `${...}` in it is filled in.
    pub message: String,
    /// What it means.
    #[serde(default)]
    pub severity: ValidationSeverity,
    /// The field of the resource that the message is about, such as `spec.port`.
    pub path: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// The code that the report shows, one of those in docs/errors; `invalid` where none is stated.
    pub code: Option<String>,
    /// Asked for each entry of a list; further lists may be those of an entry.
    #[serde(default)]
    pub for_each: Vec<ForEach>,
}

/// A list, and the name that an entry of it has.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Each"))]
pub struct ForEach {
    /// What expressions call the entry.
    pub name: String,
    /// An expression that is a list: of the resource or the parameters.
    pub list: String,
}

/// A key of a ConfigMap of the workload's namespace.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Required"))]
#[serde(rename_all = "camelCase")]
pub struct RequiredKey {
    /// The ConfigMap.
    pub config_map: String,
    /// The key.
    pub key: String,
}

/// What to tell the user once the policy has injected something.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Note {
    /// What to say; `${...}` in it is filled in.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The code that the report shows, one of those in docs/errors.
    pub code: String,
    /// A CEL condition on the resource and the parameters.
    pub when: Option<String>,
}

/// What a validation that does not hold means.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Severity"))]
pub enum ValidationSeverity {
    /// Nothing is written.
    #[default]
    Error,
    /// It is done, but look at it.
    Warning,
    /// Worth knowing.
    Note,
}

/// A string; numbers and booleans are taken as they are written.
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

/// Which workloads: all given fields must hold.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// `Deployment`, `apps/v1/Deployment`, `*`.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Globs on the name.
    #[serde(default)]
    pub names: Vec<String>,
    /// A part of the name, not a glob; a warning says so where it fits several workloads. Empty: any name.
    #[serde(default)]
    pub name_contains: String,
    /// Globs on the namespace.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// A part of the namespace, not a glob. Empty: any namespace.
    #[serde(default)]
    pub namespace_contains: String,
    /// On the pod template's labels.
    pub selector: Option<LabelSelector>,
    /// On the workload's own labels.
    pub workload_selector: Option<LabelSelector>,
    /// On the labels of the Namespace object.
    pub namespace_selector: Option<LabelSelector>,
    /// Key and glob, on template or workload.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Globs; some container's image matches one.
    #[serde(default)]
    pub images: Vec<String>,
    /// Objects of Helm and Argo CD hooks.
    pub hooks: Option<Hooks>,
    /// A stable share of the workloads.
    pub sample: Option<Sample>,
    /// Filters of which one must hold.
    #[serde(default)]
    pub any: Vec<Filter>,
}

/// A CEL expression with a name.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Named"))]
pub struct NamedExpression {
    /// Its name.
    pub name: String,
    /// The CEL expression.
    pub expression: String,
}

/// A value with a name, made once a workload.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// A CEL expression.
    pub expression: Option<String>,
    /// Any value, with `${...}` in it.
    pub value: Option<Value>,
}

/// How a workload opts in or out.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Opt {
    /// An annotation's key.
    pub annotation: Option<String>,
    /// A label's key.
    pub label: Option<String>,
    /// The values that say so.
    #[serde(default)]
    pub values: Vec<String>,
    /// Where to look.
    #[serde(default)]
    pub from: Vec<OptFrom>,
    /// Values in capitals are the same.
    #[serde(default)]
    pub ignore_case: bool,
}

/// An annotation, a label or a container that another injector leaves; asked of the input as it is.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeaveAlone {
    /// An annotation's key, on the pod template or the workload.
    pub annotation: Option<String>,
    /// A label's key, on the pod template or the workload.
    pub label: Option<String>,
    /// A glob on the name of a container.
    pub container: Option<String>,
    /// Globs on the value of the annotation or label; none: any value.
    #[serde(default)]
    pub values: Vec<String>,
}

/// Which containers get the container-level parts.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Containers {
    /// Globs on the name.
    #[serde(default)]
    pub names: Vec<String>,
    /// A part of the name, not a glob. Empty: any name.
    #[serde(default)]
    pub name_contains: String,
    /// Globs on the image.
    #[serde(default)]
    pub images: Vec<String>,
    /// Globs on the name: not these.
    #[serde(default)]
    pub exclude_names: Vec<String>,
    /// Globs on the image: not these.
    #[serde(default)]
    pub exclude_images: Vec<String>,
    /// Only containers with these variables.
    #[serde(default)]
    pub with_env: Vec<String>,
    /// Only containers without these variables.
    #[serde(default)]
    pub without_env: Vec<String>,
    /// An annotation that lists the names.
    pub names_from_annotation: Option<String>,
    /// CEL conditions on `container` that must all hold.
    #[serde(default)]
    pub match_conditions: Vec<NamedExpression>,
    /// Containers of these lists.
    #[serde(default)]
    pub include: Vec<ContainerList>,
    /// All that fit, or the first.
    #[serde(default)]
    pub mode: ContainerMode,
}

/// One of several injections.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleEntry {
    /// For messages.
    pub name: Option<String>,
    /// Which workloads.
    pub r#match: Option<Filter>,
    /// Which of these not.
    #[serde(default)]
    pub exclude: Vec<Filter>,
    /// CEL conditions that must all hold.
    #[serde(default)]
    pub match_conditions: Vec<NamedExpression>,
    /// Which containers get the container-level parts.
    #[serde(default)]
    pub containers: Containers,
    /// What other content of the same identity means.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// What to inject.
    #[cfg_attr(test, schemars(with = "Inject"))]
    pub inject: IgnoredAny,
    /// A rule for each entry of a list; further lists may be those of an entry.
    #[serde(default)]
    pub for_each: Vec<ForEach>,
}

/// An object that is written behind the workload.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Companion {
    /// A CEL condition.
    pub when: Option<String>,
    /// The whole object.
    pub resource: Value,
}
