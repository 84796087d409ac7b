//! Policies that change a whole pod, for behaviour of operators that rules cannot express. A mutation is a function
//! from the known facts of a pod to its new pod spec. The changes are planned, reported and verified like those of
//! rules.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::{Code, Severity};
use crate::outcome::Skip;
use crate::yaml::value::Path;

/// The facts of a pod that are known without a cluster.
pub(crate) struct PodFacts<'p> {
    /// The workload's kind.
    pub kind: &'p str,
    /// The workload's `metadata.name`, if it has one.
    pub name: Option<&'p str>,
    /// The namespace, from the workload or from the options of the run.
    pub namespace: Option<&'p str>,
    /// The namespace of the run for objects that state none.
    pub default_namespace: Option<&'p str>,
    /// The annotations of the pod template.
    pub annotations: &'p BTreeMap<String, String>,
    /// Returns the labels of the pod template.
    pub labels: &'p dyn Fn() -> BTreeMap<String, String>,
    /// Returns the annotations of the workload.
    pub workload_annotations: &'p dyn Fn() -> BTreeMap<String, String>,
    /// The annotations of the Namespace; `None` if the Namespace is unknown.
    pub namespace_annotations: Option<&'p BTreeMap<String, String>>,
    /// Whether the workload has podgraft's marker with a policy of this kind.
    pub is_marked: &'p dyn Fn() -> bool,
    /// Returns the pod spec, computed on demand. `None` if it has no plain value.
    pub spec: &'p dyn Fn() -> Option<Value>,
    /// Whether an object of a kind (`ConfigMap`, `Secret`) and a name is known in the workload's namespace.
    pub has_object: &'p dyn Fn(&str, &str) -> bool,
}

/// The result of a mutation.
#[derive(Debug)]
pub(crate) enum MutationResult {
    /// The policy does not apply to the pod.
    Skipped(Skip),
    /// The pod already has what the policy would inject.
    UpToDate,
    /// The pod spec has no plain value.
    Unreadable,
    /// The pod requests an injection and the operator would do nothing. The remarks say why.
    LeftAlone(Vec<Remark>),
    /// The new pod spec.
    Changed(Value, Vec<Remark>),
}

/// A message to the user about a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Remark {
    /// The diagnostic code.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The message, without a full stop. `{}` stands for the workload.
    pub message: String,
    /// The path in the pod template that it is about.
    pub at: Option<Path>,
    /// The byte range in the policy's file that it is about.
    pub in_policy: Option<Range<usize>>,
    /// What the user can do.
    pub help: Option<String>,
}

impl Remark {
    /// A warning.
    pub(crate) fn warning(code: Code, message: impl Into<String>) -> Self {
        Remark {
            code,
            severity: Severity::Warning,
            message: message.into(),
            at: None,
            in_policy: None,
            help: None,
        }
    }

    /// A note: good to know, nothing to fix.
    pub(crate) fn note(code: Code, message: impl Into<String>) -> Self {
        Remark {
            severity: Severity::Note,
            ..Self::warning(code, message)
        }
    }

    /// Sets the path in the pod template.
    pub(crate) fn at(mut self, path: Option<Path>) -> Self {
        self.at = path;
        self
    }

    /// Sets the byte range in the policy's file.
    pub(crate) fn in_policy(mut self, at: Range<usize>) -> Self {
        self.in_policy = Some(at);
        self
    }

    /// Sets the help.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}
