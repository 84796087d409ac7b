//! Policies and workloads in, the containers that get something out, or the first reason why nothing does.

mod conditions;
mod containers;
mod filters;
mod namespaces;
mod near_miss;
mod opt;
mod scope;

pub mod kinds;

use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::inventory::Inventory;
use crate::manifest::pod::Workload;
use crate::outcome::{Skip, SkipCause};
use crate::policy::expression::EvaluationCache;
use crate::policy::{Hooks, Injection, MetadataKey, Policy, Rule};
use crate::yaml::tree::NodeId;
pub use containers::choose_containers;
use namespaces::{NamespaceUncertainty, does_not_hold};
pub use scope::WorkloadFacts;

/// The input minus what podgraft put there before: selection sees this, so that no policy fails to match, or matches,
/// because of its own output.
#[derive(Debug, Default)]
pub struct Baseline {
    /// Nodes of list items and field values that are left out.
    pub left_out: BTreeSet<NodeId>,
    /// Containers that stand there as policies of the run make them, one after the other.
    pub injected: BTreeMap<NodeId, InjectedContainer>,
    /// Objects that expressions looked up for this workload, and that are not known.
    pub missing: RefCell<BTreeSet<String>>,
    /// What the names in expressions stand for, by policy and container.
    memories: RefCell<BTreeMap<String, EvaluationCaches>>,
    /// What rules with expressions inject.
    pub expanded: RefCell<Expansions>,
}

/// A container that is already injected in the form of this run.
#[derive(Debug, Default)]
pub struct InjectedContainer {
    /// As the first of them adds it.
    pub added: Arc<Value>,
    /// As it is before a policy that is for such containers, by its identity.
    pub before: BTreeMap<String, Arc<Value>>,
}

/// What goes into the pod and into each container, by the address of a rule's template and the chosen containers.
pub type Expansions = BTreeMap<(usize, Vec<NodeId>), Rc<(Injection, Vec<Injection>)>>;

#[derive(Debug, Default)]
struct EvaluationCaches {
    of_workload: EvaluationCache,
    of_containers: BTreeMap<NodeId, EvaluationCache>,
}

impl Baseline {
    /// The input without these nodes.
    pub fn without(left_out: BTreeSet<NodeId>) -> Self {
        Baseline {
            left_out,
            ..Baseline::default()
        }
    }

    /// What is known of the names in a policy's expressions, for those that evaluate over this base.
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
    /// It cannot be decided.
    Undecided(Box<Diagnostic>),
}

fn skip(cause: SkipCause, reason: String) -> NotApplied {
    NotApplied::Skip(Box::new(Skip::because(cause, reason)))
}

/// Decides whether a policy applies to a workload.
///
/// # Errors
/// The first reason why not. Warnings go to `warnings`.
pub fn select(
    policy: &Policy,
    workload: &Workload<'_>,
    base: &Baseline,
    inventory: &Inventory,
    warnings: &mut Vec<Diagnostic>,
) -> Result<(), NotApplied> {
    let view = BaselineView {
        workload,
        base,
        inventory,
    };
    check(&view, policy, warnings).map_err(|no| match no {
        // Who opts in wants to be selected: whatever stands in the way is worth a word.
        NotApplied::Skip(skip) if !policy.suspend && view.opts_in_only(policy) => {
            NotApplied::Skip(Box::new(Skip {
                is_near_miss: true,
                is_opted_in: true,
                ..*skip
            }))
        }
        result => result,
    })
}

fn check(
    view: &BaselineView<'_, '_>,
    policy: &Policy,
    warnings: &mut Vec<Diagnostic>,
) -> Result<(), NotApplied> {
    let workload = view.workload;
    if policy.suspend {
        let reason = if policy.kind().is_some() {
            "the resource chooses nothing"
        } else {
            "the policy is suspended"
        };
        return Err(skip(SkipCause::Suspended, reason.to_owned()));
    }
    if view
        .annotation(LOCAL_CONFIG)
        .is_some_and(|value| value == "true")
    {
        return Err(skip(
            SkipCause::LocalConfig,
            format!("annotated `{LOCAL_CONFIG}`"),
        ));
    }
    if let Some(wanted) = &policy.namespace {
        match &workload.namespace {
            Some(namespace) if namespace == wanted => {}
            Some(namespace) => {
                return Err(skip(
                    SkipCause::OtherNamespace,
                    format!("the policy is of namespace `{wanted}`, the workload of `{namespace}`"),
                ));
            }
            None => {
                return Err(does_not_hold(
                    policy,
                    workload,
                    NamespaceUncertainty::Name,
                    warnings,
                ));
            }
        }
    }
    view.check_filters(
        policy,
        (&policy.selects, Hooks::Exclude),
        ("policy", &policy.excludes),
        warnings,
    )?;
    view.check_opts(policy, warnings)?;
    view.check_conditions(policy, &policy.match_conditions)
}

/// Decides whether a rule of a policy that applies is for a workload.
///
/// # Errors
/// The first reason why not. Warnings go to `warnings`.
pub fn select_rule(
    policy: &Policy,
    rule: &Rule,
    workload: &Workload<'_>,
    base: &Baseline,
    inventory: &Inventory,
    warnings: &mut Vec<Diagnostic>,
) -> Result<(), NotApplied> {
    // Whether hooks are meant at all is the policy's `match` to say.
    let view = BaselineView {
        workload,
        base,
        inventory,
    };
    view.check_filters(
        policy,
        (&rule.selects, Hooks::Include),
        ("rule", &rule.excludes),
        warnings,
    )?;
    view.check_conditions(policy, &rule.match_conditions)
}

/// A view of a workload on the baseline.
struct BaselineView<'v, 't> {
    workload: &'v Workload<'t>,
    base: &'v Baseline,
    inventory: &'v Inventory,
}

impl BaselineView<'_, '_> {
    fn annotation(&self, key: &str) -> Option<&str> {
        let metadata = self.workload.metadata()?;
        self.text_under(self.workload.tree.get(metadata, "annotations"), key)
    }

    fn pod_annotation(&self, key: &str) -> Option<&str> {
        let metadata = self.workload.pod_metadata()?;
        self.text_under(self.workload.tree.get(metadata, "annotations"), key)
    }

    /// An annotation of the pod template, or else of the workload.
    fn any_annotation(&self, key: &str) -> Option<&str> {
        self.pod_annotation(key).or_else(|| self.annotation(key))
    }

    fn mark_in(&self, metadata: Option<NodeId>, mark: &MetadataKey) -> Option<&str> {
        let (field, key) = match mark {
            MetadataKey::Annotation(key) => ("annotations", key),
            MetadataKey::Label(key) => ("labels", key),
        };
        self.text_under(self.workload.tree.get(metadata?, field), key)
    }

    fn text_under(&self, mapping: Option<NodeId>, key: &str) -> Option<&str> {
        let value = self.workload.tree.get(mapping?, key)?;
        if self.base.left_out.contains(&value) {
            None
        } else {
            self.workload.tree.scalar(value)
        }
    }
}
