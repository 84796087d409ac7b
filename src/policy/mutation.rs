//! Policies that say what becomes of a whole pod, where rules have no words for what an operator does: a function from
//! what is known of a pod to the pod spec that it gets. What it writes is planned, reported and checked like anything
//! else.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::images::ImageMirror;
use super::parts::PolicyPart;
use crate::diagnostic::{Code, Severity};
use crate::outcome::Skip;
use crate::yaml::value::Path;

/// What an operator's webhook does to pods.
pub trait Mutation: fmt::Debug + Send + Sync {
    /// What becomes of a pod.
    fn mutate(&self, pod: &PodFacts<'_>) -> MutationResult;

    /// Whether it asks which ConfigMaps and Secrets there are.
    fn asks_data(&self) -> bool;

    /// What it may put into a pod, as far as that does not depend on the pod.
    fn parts(&self) -> Vec<PolicyPart>;

    /// The same with its images from other places.
    fn with_image_mirrors(&self, mirrors: &Arc<[ImageMirror]>) -> Arc<dyn Mutation>;
}

/// What is known of a pod before any cluster has it.
pub struct PodFacts<'p> {
    /// The workload's kind.
    pub kind: &'p str,
    /// The workload's `metadata.name`, where it has one.
    pub name: Option<&'p str>,
    /// As stated, or as given for the run.
    pub namespace: Option<&'p str>,
    /// Of objects that state none.
    pub default_namespace: Option<&'p str>,
    /// Of the pod template.
    pub annotations: &'p BTreeMap<String, String>,
    /// Of the pod template.
    pub labels: &'p BTreeMap<String, String>,
    /// Of the workload.
    pub workload_annotations: &'p BTreeMap<String, String>,
    /// Of its Namespace; `None` where no object says so.
    pub namespace_annotations: Option<&'p BTreeMap<String, String>>,
    /// Podgraft's marker on the workload names a policy of this kind.
    pub is_marked: bool,
    /// The pod spec, which is made where it is asked for.
    pub spec: &'p dyn Fn() -> Option<Value>,
    /// Whether a ConfigMap (`false`: a Secret) of a name is known in the workload's namespace.
    pub has_object: &'p dyn Fn(bool, &str) -> bool,
}

/// What becomes of a pod.
#[derive(Debug)]
pub enum MutationResult {
    /// The policy is not for it.
    Skipped(Skip),
    /// It has what the policy would give it.
    UpToDate,
    /// The operator would do nothing, and not because nobody wants it: the remarks say why.
    LeftAlone(Vec<Remark>),
    /// It gets another spec.
    Changed(Value, Vec<Remark>),
}

/// Something to tell the user of a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// The kind of problem.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Without a full stop; the workload is named where `{}` stands.
    pub message: String,
    /// Where, from the pod template.
    pub at: Option<Path>,
    /// Where the policy's file says so.
    pub in_policy: Option<Range<usize>>,
    /// What to do next.
    pub help: Option<String>,
}

impl Remark {
    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Remark {
            code,
            severity: Severity::Warning,
            message: message.into(),
            at: None,
            in_policy: None,
            help: None,
        }
    }

    /// Worth knowing, and nothing to mend.
    pub fn note(code: Code, message: impl Into<String>) -> Self {
        Remark {
            severity: Severity::Note,
            ..Self::warning(code, message)
        }
    }

    /// Where it is in the pod template.
    pub fn at(mut self, path: Option<Path>) -> Self {
        self.at = path;
        self
    }

    /// Where the policy's file says so.
    pub fn in_policy(mut self, at: Range<usize>) -> Self {
        self.in_policy = Some(at);
        self
    }

    /// What to do next.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}
