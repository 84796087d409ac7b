//! What a run did and why, as data. Each file of this folder renders it to text; nothing here prints.

use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;

/// What happened to one file.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    /// The changes to the text: in order, none touching another. Ranges are bytes of the whole file.
    pub edits: Vec<Edit>,
    /// Every workload that a policy was compared with, in file order.
    pub workloads: Vec<WorkloadReport>,
    /// What is wrong, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// Documents with content, workloads and others.
    pub documents: usize,
    /// Documents that are Kubernetes objects (have an apiVersion and a kind).
    pub objects: usize,
}

/// One replacement of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that go; empty for an insertion.
    pub at: Range<usize>,
    /// What stands there instead.
    pub text: String,
}

/// The text with the edits made.
///
/// # Panics
/// When edits overlap or are out of order: the edit stage never gives such.
pub fn splice(text: &[u8], edits: &[Edit]) -> Vec<u8> {
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut spliced = Vec::with_capacity(text.len() + added);
    let mut from = 0;
    for edit in edits {
        spliced.extend_from_slice(&text[from..edit.at.start]);
        spliced.extend_from_slice(edit.text.as_bytes());
        from = edit.at.end;
    }
    spliced.extend_from_slice(&text[from..]);
    spliced
}

/// What happened to one workload.
#[derive(Debug, Clone)]
pub struct WorkloadReport {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// As stated in the manifest or given for the run.
    pub namespace: Option<String>,
    /// `metadata.name`, or `metadata.generateName` with a `*`; empty when there is none.
    pub name: String,
    /// 1-based line of the file on which the object begins.
    pub line: usize,
    /// Bytes of the file: the document that holds the object, from its `---` line.
    pub document: Range<usize>,
    /// Which of the file's edits are this workload's.
    pub edits: Range<usize>,
    /// One entry a policy, in the order in which they apply.
    pub policies: Vec<PolicyReport>,
}

impl WorkloadReport {
    /// `Deployment shop/orders`, as diagnostics and diffs call it.
    pub fn title(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }

    /// Whether any policy changed it.
    pub fn is_changed(&self) -> bool {
        !self.edits.is_empty()
    }
}

/// What one policy did to one workload.
#[derive(Debug, Clone)]
pub struct PolicyReport {
    /// The policy's identity.
    pub policy: Arc<str>,
    /// What happened.
    pub outcome: Outcome,
}

/// How one policy and one workload met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Changed; what was added or changed, in order.
    Injected(Vec<String>),
    /// Selected, and everything is there already.
    UpToDate,
    /// Not selected.
    Skipped(Skip),
    /// A problem; the diagnostics say which.
    Failed,
}

/// Why a policy did not apply to a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The first condition that does not hold, in words: `selector wants runtime=java, the template has runtime=go`.
    pub reason: String,
    /// Selected as a workload, but no container was chosen.
    pub is_near_miss: bool,
}
