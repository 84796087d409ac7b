//! Objects that policies generate beside workloads, as data.

use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::source::Place;
use crate::yaml::splice::Edit;

/// The identity of an object in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// The API group; empty is the core group. The versions of a group show the same objects.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// `metadata.namespace`, or as given for the run.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
    /// Where no namespace is known, the folder of the file.
    pub folder: Option<String>,
}

impl ObjectName {
    /// Whether both are of one kind, namespace and name.
    pub fn is_same_except_folder(&self, other: &Self) -> bool {
        let Self {
            group,
            kind,
            namespace,
            name,
            folder: _,
        } = self;
        (group, kind, namespace, name) == (&other.group, &other.kind, &other.namespace, &other.name)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// An object that a policy generates for a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedObject {
    /// The policy's identity.
    pub policy: Arc<str>,
    /// Which object it is.
    pub name: ObjectName,
    /// The whole of it.
    pub object: Arc<Value>,
    /// Where it stands in the policy.
    pub place: Place,
}

/// A generated object and its workload. If several workloads need the same object, the first writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedObject {
    /// The workload, by its place in the file's report.
    pub workload: usize,
    /// Which of the file's edits are the workload's own.
    pub edits: Range<usize>,
    /// The object.
    pub companion: GeneratedObject,
    /// How it is written; `None` when that is among the edits, or nothing is written.
    pub text: Option<ObjectText>,
}

/// The text of a generated object behind its workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectText {
    /// What makes room for it: the same for all companions of a place, and made once.
    pub room: Vec<Edit>,
    /// The object's text.
    pub edit: Edit,
    /// What stands before it where it is not the first of its place.
    pub between: &'static str,
    /// What stands behind all companions of the place, made once.
    pub end: Option<Edit>,
}
