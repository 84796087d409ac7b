//! Policies: every format is translated to the internal [`Policy`], which is all that later stages know.

pub mod builtin;
pub(crate) mod changed_texts;
mod condition_words;
pub mod conversion;
pub(crate) mod defaults;
pub(crate) mod document;
pub(crate) mod expression;
pub mod format;
pub(crate) mod found;
pub(crate) mod functions;
mod generate;
pub mod images;
mod label_selector;
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
pub(crate) mod pruning;
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
use std::sync::{Arc, OnceLock};

use crate::change::MetadataOwner;
use crate::diagnostic::Diagnostic;
use crate::outcome::needs::Need;
use crate::source::{Place, Source};
use changed_texts::ChangedTexts;
pub use condition_words::{ConditionWord, ConditionWords};
use expression::{Expression, ObjectKinds, PolicyVariable};
pub use generate::{ChecksumAnnotation, ChecksumKey, GenerateEntry};
use images::{ImageMirror, mirror_images};
pub use label_selector::{LabelSelector, SelectorOperator, SelectorRequirement};
pub use native::expand::InjectionTemplate;
pub use native::generate::ResourceTemplate;
use opentelemetry::InstrumentationMutation;
pub use other_injectors::{ConfigKey, OtherInjector};
pub use patches::PatchEntry;
use template::{ParamValues, ValueTemplate};
pub use words::{
    ApplyRules, ContainerList, ContainerMode, EnvOp, FailurePolicy, Hooks, OnConflict, OptFrom,
    PatchScope, Position, Sample, SidecarType,
};

/// A validated policy with its parameters filled in. The default matches all workloads and does nothing.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `[Kind/][namespace/]name`. The kind is omitted for `InjectionPolicy`.
    pub identity: String,
    /// An earlier identity. What was injected under it belongs to this policy.
    pub renamed_from: Option<String>,
    /// If set, only workloads of this namespace are changed.
    pub namespace: Option<String>,
    /// A description for lists and reports.
    pub description: Option<String>,
    /// Policies are applied in ascending order.
    pub weight: i64,
    /// The policy injects nothing.
    pub suspend: bool,
    /// The effect of a problem with one workload.
    pub failure_policy: FailurePolicy,
    /// Selects workloads.
    pub selects: WorkloadFilter,
    /// Excludes selected workloads.
    pub excludes: Vec<WorkloadFilter>,
    /// If set, only workloads with this mark are changed.
    pub opt_in: Option<OptRule>,
    /// If set, workloads with this mark are not changed.
    pub opt_out: Option<OptRule>,
    /// Conditions that a selected workload must also meet.
    pub match_conditions: Vec<MatchCondition>,
    /// The values of the parameters.
    pub params: ParamValues,
    /// Required parameters without a value. Empty unless policies are only shown.
    pub open_params: BTreeSet<String>,
    /// The variables, in order. Each can read those before it.
    pub variables: Vec<PolicyVariable>,
    /// Groups and kinds of the objects that its expressions look up.
    pub looks_up: ObjectKinds,
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// Whether a container gets all matching rules or only the first.
    pub apply_rules: ApplyRules,
    /// Objects to write behind its workloads.
    pub generate: Vec<GenerateEntry>,
    /// Replacements for the names of injected images.
    pub image_mirrors: Arc<[ImageMirror]>,
    /// Marks of other injectors. A workload with one of them is not changed.
    pub leave_alone: Vec<OtherInjector>,
    /// A group of policies of which only one may apply to a workload.
    pub alone_among: Option<Arc<str>>,
    /// Keys of ConfigMaps that the injected parts need.
    pub config_keys: Vec<ConfigKey>,
    /// Notes to show once the policy has changed a workload.
    pub effects: Vec<Diagnostic>,
    /// Changes a whole pod, for behaviour that rules cannot express.
    pub(crate) mutation: Option<Arc<InstrumentationMutation>>,
    /// The variables, labels and annotations that it changes. Found when it is asked for.
    pub(crate) changed_texts: OnceLock<ChangedTexts>,
    /// The file of the policy.
    pub text: Arc<PolicyFile>,
}

impl Policy {
    /// The kind of the resource that the policy was made from; `None` for an `InjectionPolicy`.
    pub fn kind(&self) -> Option<&str> {
        // Names and namespaces are lower case, so a capital starts a kind.
        let (kind, _) = self.identity.split_once('/')?;
        kind.starts_with(|char: char| char.is_ascii_uppercase())
            .then_some(kind)
    }

    /// The policy with image replacements applied to its rules and its mutation.
    pub fn with_image_mirrors(mut self, mirrors: &Arc<[ImageMirror]>) -> Self {
        for rule in &mut self.rules {
            mirror_images(&mut rule.inject, mirrors);
        }
        if let Some(mutation) = &mut self.mutation {
            Arc::make_mut(mutation).mirrors = Arc::clone(mirrors);
        }
        self.image_mirrors = Arc::clone(mirrors);
        self
    }
}

/// A file of policies, such as one that is given with `-p`. Its text is kept for diagnostics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyFile {
    /// The name for messages, usually the path as given.
    pub name: Arc<str>,
    /// The whole text.
    pub text: String,
}

impl PolicyFile {
    /// The place of a byte range of the file.
    pub fn place(&self, span: Range<usize>) -> Place {
        Source::new(Arc::clone(&self.name), &self.text).place(span)
    }
}

/// `match` or an item of `exclude`: all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct WorkloadFilter {
    /// The byte range of the filter in the policy's file.
    pub at: Range<usize>,
    /// Kinds of workloads. Empty for any.
    pub kinds: Vec<KindPattern>,
    /// Globs for the workload's name. Empty for any.
    pub names: Vec<GlobMatcher>,
    /// Globs for the namespace. Empty for any.
    pub namespaces: Vec<GlobMatcher>,
    /// For the labels of the pod template.
    pub selector: Option<LabelSelector>,
    /// For the labels of the workload.
    pub workload_selector: Option<LabelSelector>,
    /// For the labels of the Namespace.
    pub namespace_selector: Option<LabelSelector>,
    /// Keys and globs for annotations of the pod template or the workload.
    pub annotations: Vec<(String, GlobMatcher)>,
    /// Globs of which one must match the image of some container. Empty for any.
    pub images: Vec<GlobMatcher>,
    /// Whether hook workloads match. `None` means `Exclude` in `match` and no condition in `exclude`.
    pub hooks: Option<Hooks>,
    /// Selects a stable share of the workloads.
    pub sample: Option<Sample>,
    /// Alternatives, of which one must hold. Empty for no condition.
    pub any: Vec<WorkloadFilter>,
    /// What its author calls these conditions.
    pub words: ConditionWords,
}

impl WorkloadFilter {
    /// What its author calls one of the conditions.
    pub fn word<'f>(&'f self, condition: &'f str) -> &'f str {
        self.words
            .get(condition)
            .map_or(condition, |word| &word.field)
    }
}

/// A pattern such as `Deployment`, `apps/v1/Deployment`, `apps/*/Deployment` or `*`.
#[derive(Debug, Clone)]
pub struct KindPattern {
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
    /// The glob for the apiVersion; `None` for any.
    pub api_version: Option<GlobMatcher>,
    /// The glob for the kind.
    pub kind: GlobMatcher,
}

/// An entry of `matchConditions`.
#[derive(Debug, Clone)]
pub struct MatchCondition {
    /// The name for reports.
    pub name: String,
    /// The expression, which must be `true`.
    pub expression: Expression,
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
}

/// `optIn` or `optOut`: a mark on objects with which their owners decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptRule {
    /// The annotation or label of the mark.
    pub mark: MetadataKey,
    /// The values that count. `*` stands for any value.
    pub values: Vec<String>,
    /// Where the mark may be. The first of these objects that has it decides.
    pub from: BTreeSet<OptFrom>,
    /// Compares values without regard to case.
    pub ignores_case: bool,
    /// The policy states `from`. Only then does an unknown Namespace in it make the decision ambiguous.
    pub is_from_stated: bool,
}

impl OptRule {
    /// Whether a value of the mark counts.
    pub fn accepts(&self, value: &str) -> bool {
        let is_meant = |wanted: &str| {
            wanted == value || self.ignores_case && wanted.eq_ignore_ascii_case(value)
        };
        self.values
            .iter()
            .any(|wanted| wanted == "*" || is_meant(wanted))
    }
}

/// The key of an annotation or label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataKey {
    /// An annotation of this key.
    Annotation(String),
    /// A label of this key.
    Label(String),
}

/// A rule: parts to inject, and the workloads and containers that get them.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// The name for messages, or `rules[N]`. `None` if the policy has `inject` instead of rules.
    pub name: Option<String>,
    /// The text of `nameContains` and its place, if the rule selects workloads by it. It is kept for a warning, because
    /// it may match more than was meant.
    pub name_part: Option<(String, Range<usize>)>,
    /// Selects among the policy's workloads.
    pub selects: WorkloadFilter,
    /// Excludes selected workloads.
    pub excludes: Vec<WorkloadFilter>,
    /// Conditions that a workload must also meet.
    pub match_conditions: Vec<MatchCondition>,
    /// The containers that get the parts for containers.
    pub containers: ContainerChoice,
    /// What to do if a part with the same identity and other content exists.
    pub on_conflict: OnConflict,
    /// The parts to inject, except for those that depend on the workload.
    pub inject: Injection,
    /// All parts as a template; `None` if nothing depends on the workload.
    pub template: Option<Arc<InjectionTemplate>>,
    /// What `inject` needs from a cluster, without namespaces: in workloads, and in running pods. Found when it is
    /// asked for.
    pub(crate) needs: [OnceLock<BTreeSet<Need>>; 2],
}

impl Rule {
    /// Whether it applies to a pod of which it chooses no container: it chooses by nothing, and has only checksums.
    pub(crate) fn needs_no_container(&self) -> bool {
        let only_checksums = || Injection {
            checksums: self.inject.checksums.clone(),
            ..Injection::default()
        };
        self.template.is_none()
            && self.containers.is_any()
            && !self.inject.checksums.is_empty()
            && self.inject == only_checksums()
    }

    /// Whether `inject` has something under a key. In a template, only the key is checked.
    pub fn has(&self, key: &str, is_present: impl FnOnce(&Injection) -> bool) -> bool {
        is_present(&self.inject)
            || self
                .template
                .as_ref()
                .is_some_and(|template| template.has(key))
    }

    /// Whether it changes variables other than by setting or removing them.
    pub(crate) fn joins_env(&self) -> bool {
        let joins = |op: EnvOp| !matches!(op, EnvOp::Set | EnvOp::Remove);
        self.has("env", |inject| {
            inject.env.iter().any(|change| joins(change.op))
        })
    }
}

/// Names of containers that depend on the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedNames {
    /// A list of globs.
    pub template: ValueTemplate,
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
}

/// `containers`: which containers of a workload get the parts for containers.
#[derive(Debug, Clone, Default)]
pub struct ContainerChoice {
    /// Globs for the name. Empty for any.
    pub names: Vec<GlobMatcher>,
    /// What their author calls them, if not by this name.
    pub names_word: Option<ConditionWord>,
    /// Globs for the image. Empty for any.
    pub images: Vec<GlobMatcher>,
    /// Globs for names that are excluded.
    pub exclude_names: Vec<GlobMatcher>,
    /// Globs for images that are excluded.
    pub exclude_images: Vec<GlobMatcher>,
    /// Variables that the container must all have.
    pub with_env: Vec<String>,
    /// Variables of which the container must have none.
    pub without_env: Vec<String>,
    /// Templates of `names` and `excludeNames`, if they depend on the workload.
    pub computed_names: [Option<ComputedNames>; 2],
    /// Conditions that the container must meet.
    pub match_conditions: Vec<MatchCondition>,
    /// An annotation with a list of container names. If it exists, it alone decides.
    pub names_from_annotation: Option<String>,
    /// The lists of the pod spec to look in.
    pub include: Vec<ContainerList>,
    /// Whether all matching containers are chosen, or the first.
    pub mode: ContainerMode,
}

impl ContainerChoice {
    /// Whether it says nothing about which containers are chosen.
    fn is_any(&self) -> bool {
        let globs = [
            &self.names,
            &self.images,
            &self.exclude_names,
            &self.exclude_images,
        ];
        globs.into_iter().all(Vec::is_empty)
            && self.include == [ContainerList::Containers]
            && self.with_env.is_empty()
            && self.without_env.is_empty()
            && self.computed_names.iter().all(Option::is_none)
            && self.match_conditions.is_empty()
            && self.names_from_annotation.is_none()
    }
}

/// A value that a policy injects, and its place in the policy's file.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyValue {
    /// The Kubernetes value, without podgraft's own fields (`op`, `position`, `type`). Shared by all drafts.
    pub value: Arc<Value>,
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
}

/// The parts of an `inject`. Every list is in the policy's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Injection {
    /// Init containers that run to completion.
    pub init_containers: Vec<(PolicyValue, Position)>,
    /// Sidecars. A native one has `restartPolicy: Always` in its value.
    pub sidecars: Vec<(PolicyValue, SidecarType, Position)>,
    /// Ephemeral containers. They are never written into a workload, only added to running pods.
    pub ephemeral_containers: Vec<PolicyValue>,
    /// Volumes of the pod.
    pub volumes: Vec<(PolicyValue, Position)>,
    /// Mounts for each chosen container.
    pub volume_mounts: Vec<PolicyValue>,
    /// Changes of variables in each chosen container.
    pub env: Vec<EnvChange>,
    /// `envFrom` sources for each chosen container.
    pub env_from: Vec<PolicyValue>,
    /// Ports for each chosen container.
    pub ports: Vec<PolicyValue>,
    /// Annotations of the pod template. The values are strings.
    pub pod_annotations: Vec<(String, PolicyValue)>,
    /// Labels of the pod template.
    pub pod_labels: Vec<(String, PolicyValue)>,
    /// Annotations of the workload.
    pub annotations: Vec<(String, PolicyValue)>,
    /// Labels of the workload.
    pub labels: Vec<(String, PolicyValue)>,
    /// Labels and annotations with another `op` than `Set`.
    pub text_changes: Vec<TextChange>,
    /// Entries of `imagePullSecrets`, each a mapping with `name`.
    pub image_pull_secrets: Vec<PolicyValue>,
    /// A mapping of other fields of the pod spec.
    pub pod_spec: Option<PolicyValue>,
    /// The byte range of each leaf of `pod_spec`, by its path.
    pub pod_spec_places: BTreeMap<Vec<String>, Range<usize>>,
    /// A mapping of container fields (`resources`, `securityContext`, `imagePullPolicy`). Only leaves that a chosen
    /// container lacks are set.
    pub container_defaults: Option<PolicyValue>,
    /// A mapping for the pod's `securityContext`. Only absent leaves are set.
    pub pod_security_context: Option<PolicyValue>,
    /// Checksums of ConfigMaps and Secrets, for annotations of the pod template.
    pub checksums: Vec<ChecksumAnnotation>,
    /// JSON patches. They are planned after everything else.
    pub patches: Vec<PatchEntry>,
}

/// A change of a label or annotation that depends on its current value.
#[derive(Debug, Clone, PartialEq)]
pub struct TextChange {
    /// What the label or annotation is on.
    pub owner: MetadataOwner,
    /// `labels` or `annotations`.
    pub field: &'static str,
    /// The change, in the form of a variable whose value is the text.
    pub change: EnvChange,
}

/// An entry of `env`: a change of a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvChange {
    /// The EnvVar: `name` and `value` or `valueFrom`.
    pub item: PolicyValue,
    /// The name of the variable.
    pub name: String,
    /// The kind of change.
    pub op: EnvOp,
    /// The text between the current value and the new one.
    pub separator: String,
    /// The position of a variable that does not exist yet.
    pub position: Position,
}
