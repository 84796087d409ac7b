//! Objects that policies generate for workloads (companions), as data.

use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::source::Place;
use crate::yaml::splice::Edit;

/// The identity of an object in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The API group; empty for the core group. The version is left out, because all versions of a group show the
    /// same objects.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// `metadata.namespace`, or the one given for the run.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
    /// The folder of the file, if no namespace is known.
    pub folder: Option<String>,
}

impl ObjectName {
    /// The same in no folder, which comes before those in folders.
    pub(crate) fn without_folder(&self) -> Self {
        ObjectName {
            folder: None,
            ..self.clone()
        }
    }

    /// Whether both have the same group, kind, namespace and name.
    pub(crate) fn is_same_except_folder(&self, other: &Self) -> bool {
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
    /// The identity of the object.
    pub name: ObjectName,
    /// The whole object.
    pub object: Arc<Value>,
    /// Its place in the policy.
    pub place: Place,
    /// The earlier version among the manifests, which must go.
    pub replaces: Option<EarlierVersion>,
}

/// The version of a generated object that an earlier run wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierVersion {
    /// Its name and its digest, as records have them.
    pub key: (String, String),
    /// Where it stands.
    pub place: Place,
}

/// A generated object and its workload. If several workloads need the same object, the first writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedObject {
    /// The index of the workload in the file's report.
    pub workload: usize,
    /// The indices of the workload's own edits in the file's edits.
    pub edits: Range<usize>,
    /// The object.
    pub companion: GeneratedObject,
    /// Its text. `None` if the text is among the file's edits already, or nothing is written.
    pub text: Option<ObjectText>,
}

/// The text of a generated object after its workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectText {
    /// The edits that make room for it. They are the same for all companions at a place, and made once.
    pub room: Vec<Edit>,
    /// The edit that inserts the object.
    pub edit: Edit,
    /// The separator before it, if it is not the first companion at its place.
    pub between: &'static str,
    /// The edit after all companions at the place, made once.
    pub end: Option<Edit>,
}
