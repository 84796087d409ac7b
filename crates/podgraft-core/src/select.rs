//! Decides whether a policy applies to a workload, and which containers it chooses. If it does not apply, the first
//! reason is the result.

mod conditions;
mod containers;
mod filters;
mod namespaces;
mod near_miss;
mod opt;
mod required_texts;
mod scope;

pub mod kinds;

use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::manifest::pod::Metadata;
use crate::outcome::{Skip, SkipCause};
use crate::policy::expression::EvaluationCache;
use crate::policy::{Hooks, Injection, MetadataKey, Policy, Rule};
use crate::yaml::tree::NodeId;
use namespaces::NamespaceUncertainty;
pub use required_texts::RequiredTexts;
pub use scope::WorkloadFacts;

/// The input without what podgraft injected before. Selection works on it, so that no policy matches, or fails to
/// match, because of its own output.
#[derive(Debug, Default)]
pub struct Baseline {
    /// Nodes of list items and field values that are left out.
    pub left_out: BTreeSet<NodeId>,
    /// Containers of the input that have the form which the policies of this run give them together.
    pub injected: BTreeMap<NodeId, InjectedContainer>,
    /// The names of unknown objects that expressions looked up for this workload.
    pub missing: RefCell<BTreeSet<String>>,
    /// Cached values of names in expressions, by policy and container.
    memories: RefCell<BTreeMap<String, EvaluationCaches>>,
    /// Cached injections of rules with expressions.
    pub expanded: RefCell<Expansions>,
}

/// A container that is already injected in the form of this run.
#[derive(Debug, Default)]
pub struct InjectedContainer {
    /// The container as the first policy adds it.
    pub added: Arc<Value>,
    /// The container as it is before each policy that includes injected containers, by the policy's identity.
    pub before: BTreeMap<String, Arc<Value>>,
}

/// The injections for the pod and for each container, by the address of the rule's template and the chosen containers.
pub type Expansions = BTreeMap<(usize, Vec<NodeId>), Rc<(Injection, Vec<Injection>)>>;

#[derive(Debug, Default)]
struct EvaluationCaches {
    of_workload: EvaluationCache,
    of_containers: BTreeMap<NodeId, EvaluationCache>,
}

impl Baseline {
    /// The baseline without these nodes.
    pub fn without(left_out: BTreeSet<NodeId>) -> Self {
        Baseline {
            left_out,
            ..Baseline::default()
        }
    }

    /// The cached values of names in a policy's expressions, for the workload or for one of its containers.
    pub fn memory(&self, policy: &Policy, container: Option<NodeId>) -> EvaluationCache {
        let mut memories = self.memories.borrow_mut();
        let of_policy = match memories.get_mut(&policy.identity) {
            Some(found) => found,
            None => memories.entry(policy.identity.clone()).or_default(),
        };
        let of_workload = &of_policy.of_workload;
        match container {
            Some(node) => of_policy
                .of_containers
                .entry(node)
                .or_insert_with(|| of_workload.of_another_container())
                .clone(),
            None => of_workload.of_another_container(),
        }
    }
}

const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

/// Why a policy does not apply.
#[derive(Debug, Clone)]
pub enum NotApplied {
    /// A condition does not hold.
    Skip(Box<Skip>),
    /// Whether it applies cannot be decided.
    Undecided(Box<Diagnostic>),
}

impl From<Skip> for NotApplied {
    fn from(skip: Skip) -> Self {
        NotApplied::Skip(Box::new(skip))
    }
}

impl WorkloadFacts<'_, '_> {
    /// Decides whether the policy applies to the workload.
    ///
    /// # Errors
    /// The first reason why not. Warnings go to `warnings`.
    pub fn select(&self, warnings: &mut Vec<Diagnostic>) -> Result<(), NotApplied> {
        self.check(warnings).map_err(|no| match no {
            // A workload that opts in wants to be selected, so any other reason is worth reporting.
            NotApplied::Skip(skip) if !self.policy.suspend && self.opts_in_only() => {
                NotApplied::from(Skip {
                    is_near_miss: true,
                    is_opted_in: true,
                    ..*skip
                })
            }
            result => result,
        })
    }

    fn check(&self, warnings: &mut Vec<Diagnostic>) -> Result<(), NotApplied> {
        let (policy, workload) = (self.policy, self.workload);
        if policy.suspend {
            let reason = match policy.kind() {
                Some(_) => "the resource selects nothing",
                None if policy.rules.is_empty() => {
                    "the policy is suspended, or all lists of its `forEach` are empty"
                }
                None => "the policy is suspended",
            };
            return Err(Skip::because(SkipCause::Suspended, reason).into());
        }
        if self.annotation(LOCAL_CONFIG) == Some("true") {
            let reason = format!("annotated `{LOCAL_CONFIG}`");
            return Err(Skip::because(SkipCause::LocalConfig, reason).into());
        }
        if let Some(wanted) = &policy.namespace {
            match &workload.namespace {
                Some(namespace) if namespace == wanted => {}
                Some(namespace) => {
                    let subject = policy.kind().unwrap_or("policy");
                    let reason = format!(
                        "the {subject} is in namespace `{wanted}`, the workload in `{namespace}`"
                    );
                    return Err(Skip::because(SkipCause::OtherNamespace, reason).into());
                }
                None => {
                    let unknown = NamespaceUncertainty::Name;
                    return Err(self.does_not_hold(unknown, warnings));
                }
            }
        }
        let owner = ("policy", Hooks::Exclude);
        self.check_filters(owner, &policy.selects, &policy.excludes, warnings)?;
        self.check_opts(warnings)?;
        self.check_conditions(&policy.match_conditions)
    }

    /// Decides whether a rule of the policy applies to the workload, to which the policy applies.
    ///
    /// # Errors
    /// The first reason why not. Warnings go to `warnings`.
    pub(crate) fn select_rule(
        &self,
        rule: &Rule,
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<(), NotApplied> {
        // The policy's `match` has decided about hooks already, so the rule includes them by default.
        let owner = ("rule", Hooks::Include);
        self.check_filters(owner, &rule.selects, &rule.excludes, warnings)?;
        self.check_conditions(&rule.match_conditions)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.text_under(self.workload.metadata().annotations, key)
    }

    /// An annotation of the pod template, or else of the workload.
    fn any_annotation(&self, key: &str) -> Option<&str> {
        let mut annotations = self.any_texts("annotations").into_iter();
        annotations.find_map(|annotations| self.text_under(annotations, key))
    }

    /// The nodes of `labels` or `annotations` of the pod template and of the workload.
    fn any_texts(&self, field: &str) -> [Option<NodeId>; 2] {
        [self.workload.pod_metadata(), self.workload.metadata()]
            .map(|metadata| metadata.texts(field))
    }

    fn mark_in(&self, metadata: Metadata, mark: &MetadataKey) -> Option<&str> {
        let (field, key) = mark.field_and_key();
        self.text_under(metadata.texts(field), key)
    }

    fn text_under(&self, mapping: Option<NodeId>, key: &str) -> Option<&str> {
        let value = self.workload.tree.get_in(mapping, key)?;
        if self.base.left_out.contains(&value) {
            None
        } else {
            self.workload.tree.string(value)
        }
    }
}

impl MetadataKey {
    /// The field of metadata that has the key, and the key.
    fn field_and_key(&self) -> (&'static str, &str) {
        match self {
            MetadataKey::Annotation(key) => ("annotations", key),
            MetadataKey::Label(key) => ("labels", key),
        }
    }
}
