//! Policies: every format becomes the one internal [`Policy`] that the later stages know.

pub mod builtin;
pub mod conversion;
pub(crate) mod defaults;
pub(crate) mod document;
pub(crate) mod expression;
pub mod format;
mod found;
pub(crate) mod functions;
mod generate;
pub mod images;
pub(crate) mod mutation;
pub(crate) mod names;
pub mod native;
pub mod needs;
pub(crate) mod objects;
pub mod opentelemetry;
pub(crate) mod other_injectors;
pub mod params;
pub(crate) mod parts;
mod patches;
pub(crate) mod places;
pub(crate) mod quantity;
pub mod read;
pub mod reference;
pub(crate) mod replacement;
pub mod schema;
pub mod stored_schemas;
pub(crate) mod template;
mod unread;
pub(crate) mod validation;
pub(crate) mod vocabulary;
pub mod words;

use globset::GlobMatcher;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::source::{Place, Source};
use expression::{Expression, ObjectKinds, PolicyVariable};
pub use generate::{ChecksumAnnotation, ChecksumKey, GenerateEntry};
use images::{ImageMirror, mirror_images};
use mutation::Mutation;
pub use native::expand::InjectionTemplate;
pub use native::generate::ResourceTemplate;
pub use other_injectors::{ConfigKey, OtherInjector};
pub use patches::PatchEntry;
use template::{ParamValues, ValueTemplate};
pub use words::{
    ApplyRules, ContainerList, ContainerMode, EnvOp, FailurePolicy, Hooks, OnConflict, OptFrom,
    PatchScope, Position, Sample, SidecarType,
};

/// One policy, checked, its parameters filled in.
#[derive(Debug, Clone)]
pub struct Policy {
    /// `[Kind/][namespace/]name`; the kind is left out for `InjectionPolicy`.
    pub identity: String,
    /// The identity that it had before: what it injected under that name is its own.
    pub renamed_from: Option<String>,
    /// The policy's own namespace: it touches only workloads of it.
    pub namespace: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// Lower first.
    pub weight: i64,
    /// Injects nothing.
    pub suspend: bool,
    /// What a problem with one workload does.
    pub failure_policy: FailurePolicy,
    /// Which workloads.
    pub selects: WorkloadFilter,
    /// Which of these not.
    pub excludes: Vec<WorkloadFilter>,
    /// Only workloads that say so.
    pub opt_in: Option<OptRule>,
    /// Not the workloads that say so.
    pub opt_out: Option<OptRule>,
    /// What must hold beside.
    pub match_conditions: Vec<MatchCondition>,
    /// The values of its parameters.
    pub params: ParamValues,
    /// Required parameters without a value: only where policies are looked at, not applied.
    pub open_params: BTreeSet<String>,
    /// Its variables, each read by those after it.
    pub variables: Vec<PolicyVariable>,
    /// Groups and kinds of the objects that its expressions look up.
    pub looks_up: ObjectKinds,
    /// What to inject, in order.
    pub rules: Vec<Rule>,
    /// Whether a container gets all rules that fit it.
    pub apply_rules: ApplyRules,
    /// What to write behind its workloads.
    pub generate: Vec<GenerateEntry>,
    /// Other places for the images that it injects.
    pub image_mirrors: Arc<[ImageMirror]>,
    /// What shows that somebody else has done it: such a workload is left alone.
    pub leave_alone: Vec<OtherInjector>,
    /// Of all policies of this group, only one may apply to a workload.
    pub alone_among: Option<Arc<str>>,
    /// Keys of ConfigMaps that what it injects reads.
    pub config_keys: Vec<ConfigKey>,
    /// What to tell the user once it has changed a workload.
    pub effects: Vec<Diagnostic>,
    /// What becomes of a whole pod, where rules have no words for it.
    pub mutation: Option<Arc<dyn Mutation>>,
    /// The file it came from.
    pub text: Arc<PolicyText>,
}

impl Policy {
    /// A policy for all workloads that does nothing yet.
    pub fn empty(identity: String, text: Arc<PolicyText>) -> Self {
        Policy {
            identity,
            renamed_from: None,
            namespace: None,
            description: None,
            weight: 0,
            suspend: false,
            failure_policy: FailurePolicy::default(),
            selects: WorkloadFilter::default(),
            excludes: Vec::new(),
            opt_in: None,
            opt_out: None,
            match_conditions: Vec::new(),
            params: ParamValues::default(),
            open_params: BTreeSet::new(),
            variables: Vec::new(),
            looks_up: BTreeSet::new(),
            rules: Vec::new(),
            apply_rules: ApplyRules::default(),
            generate: Vec::new(),
            image_mirrors: Arc::default(),
            leave_alone: Vec::new(),
            alone_among: None,
            config_keys: Vec::new(),
            effects: Vec::new(),
            mutation: None,
            text,
        }
    }

    /// The kind of the resource of another operator that it was made of.
    pub fn kind(&self) -> Option<&str> {
        // Names of objects and namespaces have no capitals.
        let (kind, _) = self.identity.split_once('/')?;
        kind.starts_with(|char: char| char.is_ascii_uppercase())
            .then_some(kind)
    }

    /// The same policy with its images from other places.
    pub fn with_image_mirrors(mut self, mirrors: &Arc<[ImageMirror]>) -> Self {
        for rule in &mut self.rules {
            mirror_images(&mut rule.inject, mirrors);
        }
        if let Some(mutation) = &mut self.mutation {
            *mutation = mutation.with_image_mirrors(mirrors);
        }
        self.image_mirrors = Arc::clone(mirrors);
        self
    }
}

/// The text of a policy's file, kept for diagnostics.
#[derive(Debug)]
pub struct PolicyText {
    /// As the user calls it.
    pub name: Arc<str>,
    /// The whole file.
    pub text: String,
}

impl PolicyText {
    /// The place of a byte range of the file.
    pub fn place(&self, span: Range<usize>) -> Place {
        Source::new(Arc::clone(&self.name), &self.text).place(span)
    }
}

/// `match` or one item of `exclude`: all given fields must hold.
#[derive(Debug, Clone, Default)]
pub struct WorkloadFilter {
    /// Where the filter stands in the policy's file.
    pub at: Range<usize>,
    /// Empty: any kind.
    pub kinds: Vec<KindPattern>,
    /// Empty: any name.
    pub names: Vec<GlobMatcher>,
    /// Empty: any namespace.
    pub namespaces: Vec<GlobMatcher>,
    /// On the pod template's labels.
    pub selector: Option<LabelSelector>,
    /// On the workload's own labels.
    pub workload_selector: Option<LabelSelector>,
    /// On the labels of the Namespace object.
    pub namespace_selector: Option<LabelSelector>,
    /// Key and glob, on template or workload.
    pub annotations: Vec<(String, GlobMatcher)>,
    /// Some container's image matches one of them. Empty: any.
    pub images: Vec<GlobMatcher>,
    /// `None`: the default, which is `Exclude` in `match` and no condition in `exclude`.
    pub hooks: Option<Hooks>,
    /// A stable share of the workloads.
    pub sample: Option<Sample>,
    /// One must hold. Empty: no condition.
    pub any: Vec<WorkloadFilter>,
}

/// `Deployment`, `apps/v1/Deployment`, `apps/*/Deployment` or `*`.
#[derive(Debug, Clone)]
pub struct KindPattern {
    /// The apiVersion's glob, where one is stated.
    pub api_version: Option<GlobMatcher>,
    /// The kind's glob.
    pub kind: GlobMatcher,
}

/// Kubernetes' label selector: all requirements must hold. `matchLabels` are requirements of one value.
#[derive(Debug, Clone, Default)]
pub struct LabelSelector {
    /// In the order in which they stand in the policy.
    pub requirements: Vec<SelectorRequirement>,
}

/// One requirement of a label selector.
#[derive(Debug, Clone)]
pub struct SelectorRequirement {
    /// Where it stands in the policy's file.
    pub at: Range<usize>,
    /// The label.
    pub key: String,
    /// The operator.
    pub operator: SelectorOperator,
    /// For `In` and `NotIn`.
    pub values: Vec<String>,
}

/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectorOperator {
    /// The label is there with one of the values.
    In,
    /// The label is absent, or there with another value.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// One of `matchConditions`.
#[derive(Debug, Clone)]
pub struct MatchCondition {
    /// For the report.
    pub name: String,
    /// It must come to `true`.
    pub expression: Expression,
    /// Where it stands in the policy's file.
    pub at: Range<usize>,
}

/// `optIn` or `optOut`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptRule {
    /// What carries the word.
    pub mark: MetadataKey,
    /// The values that say so.
    pub values: Vec<String>,
    /// Where to look; the first of these that has the mark decides.
    pub from: BTreeSet<OptFrom>,
    /// Values in capitals are the same.
    pub ignores_case: bool,
    /// The policy names the places itself, so that one which is not known is a doubt.
    pub is_from_stated: bool,
}

impl OptRule {
    /// Whether a value says so; `*` is any value.
    pub fn accepts(&self, value: &str) -> bool {
        let is_meant = |wanted: &str| {
            wanted == value || self.ignores_case && wanted.eq_ignore_ascii_case(value)
        };
        self.values
            .iter()
            .any(|wanted| wanted == "*" || is_meant(wanted))
    }
}

/// The annotation or label of an opt-in or opt-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataKey {
    /// An annotation of this key.
    Annotation(String),
    /// A label of this key.
    Label(String),
}

/// What to inject into which containers.
#[derive(Debug, Clone)]
pub struct Rule {
    /// For messages: the name, or `rules[N]`. `None` when the policy is one rule.
    pub name: Option<String>,
    /// The text that a workload's name must contain, where that is how the rule names workloads, and its place: it may
    /// fit more than was meant.
    pub name_part: Option<(String, Range<usize>)>,
    /// Which of the policy's workloads.
    pub selects: WorkloadFilter,
    /// Which of these not.
    pub excludes: Vec<WorkloadFilter>,
    /// What must hold beside.
    pub match_conditions: Vec<MatchCondition>,
    /// Which containers get the container-level parts.
    pub containers: ContainerChoice,
    /// What other content of the same identity means.
    pub on_conflict: OnConflict,
    /// What to put there; what has to be evaluated for each workload is left out.
    pub inject: Injection,
    /// All of it, where something has to be evaluated.
    pub template: Option<Arc<InjectionTemplate>>,
}

impl Rule {
    /// Whether there is something under a key of `inject`; what is evaluated for each workload is not looked into.
    pub fn has(&self, key: &str, is_present: impl FnOnce(&Injection) -> bool) -> bool {
        is_present(&self.inject)
            || self
                .template
                .as_ref()
                .is_some_and(|template| template.has(key))
    }

    /// Whether it joins texts with variables, or sets them where they are absent.
    pub fn joins_env(&self) -> bool {
        let joins = |op: EnvOp| !matches!(op, EnvOp::Set | EnvOp::Remove);
        self.has("env", |inject| {
            inject.env.iter().any(|change| joins(change.op))
        })
    }
}

/// `containers`.
#[derive(Debug, Clone, Default)]
pub struct ContainerChoice {
    /// Empty: any name.
    pub names: Vec<GlobMatcher>,
    /// Empty: any image.
    pub images: Vec<GlobMatcher>,
    /// Not these.
    pub exclude_names: Vec<GlobMatcher>,
    /// Not these.
    pub exclude_images: Vec<GlobMatcher>,
    /// Only containers that state all these variables.
    pub with_env: Vec<String>,
    /// Only containers that state none of these variables.
    pub without_env: Vec<String>,
    /// `names` and `excludeNames` of which something depends on the workload.
    pub computed_names: [Option<ValueTemplate>; 2],
    /// What must hold of a container.
    pub match_conditions: Vec<MatchCondition>,
    /// An annotation with a list of names: where it is there, it alone decides.
    pub names_from_annotation: Option<String>,
    /// Containers of these lists.
    pub include: Vec<ContainerList>,
    /// All that fit, or the first.
    pub mode: ContainerMode,
}

/// A value of the policy and its bytes in the policy's file.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyValue {
    /// The Kubernetes value, without podgraft's own words (`op`, `position`, `type`). Every draft shares it.
    pub value: Arc<Value>,
    /// Where it stands.
    pub at: Range<usize>,
}

/// `inject`. Every list is in the policy's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Injection {
    /// Init containers.
    pub init_containers: Vec<(PolicyValue, Position)>,
    /// Sidecars in either form. A native one carries `restartPolicy: Always` in its value.
    pub sidecars: Vec<(PolicyValue, SidecarType, Position)>,
    /// Never written into a workload: for pods that run.
    pub ephemeral_containers: Vec<PolicyValue>,
    /// Volumes.
    pub volumes: Vec<(PolicyValue, Position)>,
    /// In each chosen container.
    pub volume_mounts: Vec<PolicyValue>,
    /// In each chosen container.
    pub env: Vec<EnvChange>,
    /// In each chosen container.
    pub env_from: Vec<PolicyValue>,
    /// In each chosen container.
    pub ports: Vec<PolicyValue>,
    /// On the pod template. Values are strings.
    pub pod_annotations: Vec<(String, PolicyValue)>,
    /// On the pod template.
    pub pod_labels: Vec<(String, PolicyValue)>,
    /// On the workload.
    pub annotations: Vec<(String, PolicyValue)>,
    /// On the workload.
    pub labels: Vec<(String, PolicyValue)>,
    /// Labels and annotations that are not just set.
    pub text_changes: Vec<TextChange>,
    /// `{name}` each.
    pub image_pull_secrets: Vec<PolicyValue>,
    /// Other fields of the pod spec, a mapping.
    pub pod_spec: Option<PolicyValue>,
    /// Where each of them is written.
    pub pod_spec_places: BTreeMap<Vec<String>, Range<usize>>,
    /// Absent leaves of the chosen containers: `resources`, `securityContext`, `imagePullPolicy`, a mapping.
    pub container_defaults: Option<PolicyValue>,
    /// Absent leaves of the pod's `securityContext`, a mapping.
    pub pod_security_context: Option<PolicyValue>,
    /// Checksums of ConfigMaps and Secrets, on the pod template.
    pub checksums: Vec<ChecksumAnnotation>,
    /// JSON patches, planned last.
    pub patches: Vec<PatchEntry>,
}

/// One entry of `podAnnotations` and the like that joins a text with what is there, or sets it where nothing is.
#[derive(Debug, Clone, PartialEq)]
pub struct TextChange {
    /// On the workload, not on the pod template.
    pub is_of_workload: bool,
    /// `labels` or `annotations`.
    pub field: &'static str,
    /// What to do; its item is the text.
    pub change: EnvChange,
}

/// One entry of `env`.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvChange {
    /// The EnvVar: `name` and `value` or `valueFrom`.
    pub item: PolicyValue,
    /// The variable's name.
    pub name: String,
    /// What to do.
    pub op: EnvOp,
    /// Between what is there and what is appended.
    pub separator: String,
    /// Where a new variable goes.
    pub position: Position,
}
