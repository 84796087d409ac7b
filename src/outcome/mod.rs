//! What a run did and why, as data; `report` renders it.

mod companion;
pub mod needs;
mod status;
pub(crate) mod view;

use json_patch::Patch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::change::{Change, ChangeVerb};
use crate::diagnostic::{Diagnostic, Label};
use crate::ownership::{RecordedWorkload, TextAdjustment};
use crate::yaml::splice::Edit;
pub use companion::{GeneratedObject, ObjectName, ObjectText, PlacedObject};
use needs::RunNeeds;
pub use status::WorkloadStatus;
use view::WorkloadView;

/// What happened to one file.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    /// The changes to the text: in order, none touching another. Ranges are bytes of the whole file.
    pub edits: Vec<Edit>,
    /// Every workload that a policy was compared with, and generated objects that go, in file order.
    pub workloads: Vec<WorkloadReport>,
    /// What policies generate beside workloads, in file order; when all files are settled, what this file writes.
    pub companions: Vec<PlacedObject>,
    /// Objects that the records of the input name.
    pub dropped: Vec<GeneratedRecord>,
    /// What was done to make room for them, each with the byte at which its workload begins.
    pub rooms: Vec<(usize, TextAdjustment)>,
    /// Objects that the records of the output name.
    pub needed: Vec<GeneratedRecord>,
    /// What was done to workloads, where the run's options ask for it.
    pub records: Vec<RecordedWorkload>,
    /// Something was injected that no record of the output tells how to take out.
    pub has_unrecorded: bool,
    /// What is wrong, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// Documents with content, workloads and others.
    pub documents: usize,
    /// Documents that are Kubernetes objects (have an apiVersion and a kind).
    pub objects: usize,
    /// Workloads that are only counted, where there were too many to list.
    pub unlisted: BTreeMap<WorkloadStatus, usize>,
    /// What was injected needs from a cluster, where the run's options ask for it.
    pub needs: RunNeeds,
    /// The text is not what stands in the file, but that with other policies applied.
    pub is_hypothetical: bool,
    /// `metadata` of the first List, where the run's options ask for views.
    pub list_metadata: Option<Value>,
}

impl FileReport {
    /// Nothing but problems.
    pub fn of_problems(problems: Vec<Diagnostic>) -> Self {
        FileReport {
            diagnostics: problems,
            ..FileReport::default()
        }
    }

    /// The workloads without the objects that were generated beside them.
    pub fn input_workloads(&self) -> impl Iterator<Item = &WorkloadReport> + Clone {
        self.workloads
            .iter()
            .filter(|workload| !workload.is_generated)
    }

    /// Adds what happened to the next part of the same file.
    pub fn append(&mut self, next: FileReport) {
        let (edits_before, workloads_before) = (self.edits.len(), self.workloads.len());
        self.dropped.extend(next.dropped);
        self.rooms.extend(next.rooms);
        self.needed.extend(next.needed);
        self.records.extend(next.records);
        self.has_unrecorded |= next.has_unrecorded;
        self.companions
            .extend(next.companions.into_iter().map(|mut placed| {
                placed.workload += workloads_before;
                placed.edits = placed.edits.start + edits_before..placed.edits.end + edits_before;
                placed
            }));
        self.edits.extend(next.edits);
        self.workloads
            .extend(next.workloads.into_iter().map(|mut workload| {
                workload.edits =
                    workload.edits.start + edits_before..workload.edits.end + edits_before;
                workload
            }));
        for diagnostic in next.diagnostics {
            // Said once a file, not once a workload.
            let is_said = diagnostic.is_said_once()
                && self
                    .diagnostics
                    .iter()
                    .any(|other| other.message == diagnostic.message);
            if !is_said {
                self.diagnostics.push(diagnostic);
            }
        }
        self.needs.append(next.needs);
        self.documents += next.documents;
        self.objects += next.objects;
        self.list_metadata = self.list_metadata.take().or(next.list_metadata);
        next.unlisted
            .into_iter()
            .for_each(|(status, number)| *self.unlisted.entry(status).or_default() += number);
    }
}

/// The record of a generated object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedRecord {
    /// `ConfigMap shop/orders-jmx`.
    pub name: String,
    /// Of what was written.
    pub digest: String,
    /// The policy that wanted it.
    pub policy: String,
}

impl GeneratedRecord {
    /// What tells whether it is the same object with the same content.
    pub fn key(&self) -> (String, String) {
        (self.name.clone(), self.digest.clone())
    }
}

/// One file of a run, as the renderers take it.
#[derive(Debug, Clone, Copy)]
pub struct ReportedFile<'a> {
    /// As the user calls it.
    pub name: &'a str,
    /// The bytes of its path, as a patch has to name it; `stdin` for the standard input.
    pub path: &'a [u8],
    /// The text before the edits.
    pub text: &'a [u8],
    /// What happened.
    pub report: &'a FileReport,
}

/// What happened to one workload.
#[derive(Debug, Clone, Default)]
pub struct WorkloadReport {
    /// The pod template's labels, where they were asked for.
    pub labels: BTreeMap<String, String>,
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// As stated in the manifest or given for the run.
    pub namespace: Option<String>,
    /// The manifest states it.
    pub states_namespace: bool,
    /// `metadata.name`, or `metadata.generateName` with a `*`; empty when there is none.
    pub name: String,
    /// 1-based line of the file on which the object begins.
    pub line: usize,
    /// Bytes of the file: the document that holds the object, from its `---` line.
    pub document: Range<usize>,
    /// Bytes of the file whose lines may be shown with its changes: the document, or the item of a list.
    pub extent: Range<usize>,
    /// Which of the file's edits are this workload's.
    pub edits: Range<usize>,
    /// Who wrote which bytes of each of these edits, where it was asked for and more than one policy did.
    pub authors: Vec<Vec<Author>>,
    /// The plan as an RFC 6902 patch, where it was asked for.
    pub patch: Option<Patch>,
    /// What it is made of before the run, where it was asked for.
    pub view: Option<Box<WorkloadView>>,
    /// What it is made of after the run, where it changes.
    pub view_after: Option<Box<WorkloadView>>,
    /// One entry a policy, in the order in which they apply.
    pub policies: Vec<PolicyReport>,
    /// It is no workload: an object that an earlier run generated, and that goes.
    pub is_generated: bool,
    /// Ephemeral containers for its pods, where they were asked for.
    pub ephemeral_containers: Vec<Value>,
    /// Where its pods serve metrics, by the annotations that Prometheus looks for, ours included.
    pub metrics_port: Option<u16>,
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

/// The policies that wrote a byte range of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Bytes of the edit's text; empty for what the edit takes away.
    pub bytes: Range<usize>,
    /// Places in the workload's list of policies.
    pub policies: Vec<usize>,
}

/// What one policy did to one workload.
#[derive(Debug, Clone)]
pub struct PolicyReport {
    /// The policy's identity.
    pub policy: Arc<str>,
    /// What happened.
    pub outcome: Outcome,
    /// The numbers of the policy's rules that are for the workload.
    pub rules: Vec<usize>,
    /// The workload's record is of another version of the policy.
    pub is_older: bool,
}

impl PolicyReport {
    /// The policy took over what stood there.
    pub fn is_adopted(&self) -> bool {
        let Outcome::Injected(changes) = &self.outcome else {
            return false;
        };
        let mut changes = changes.iter();
        changes.any(|change| change.verb() == ChangeVerb::Adopt)
    }
}

/// The outcome of one policy for one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Changed; what was added or changed, in order, where the run reports details.
    Injected(Vec<Change>),
    /// Selected, and everything is there already.
    UpToDate,
    /// What an earlier run had put there was taken out; what it was, in order.
    TakenOut(Vec<Change>),
    /// Not selected.
    Skipped(Skip),
    /// A problem; the diagnostics say which.
    Failed,
}

/// What keeps a policy from a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SkipCause {
    /// `--workload` names others.
    NotAskedFor,
    /// The kind has pods and this object has no pod template.
    NoPodTemplate,
    /// The policy is suspended, or the resource chooses nothing.
    Suspended,
    /// The object is annotated as none for a cluster.
    LocalConfig,
    /// The policy is of another namespace.
    OtherNamespace,
    /// The namespace or its object is not known.
    UnknownNamespace,
    /// A field of `match` does not hold.
    Match(&'static str),
    /// An `exclude` holds.
    Excluded,
    /// `optIn` does not hold.
    NotOptedIn,
    /// `optOut` holds.
    OptedOut,
    /// A condition in CEL does not hold.
    Condition,
    /// No rule of the policy is for the workload.
    #[default]
    NoRule,
    /// A rule is for the workload and chooses no container.
    NoContainer,
    /// Another injector has been here.
    AlreadyInjected,
    /// `adopt` found that something that the policy puts here is missing.
    NotAdopted,
    /// The operator whose resource the policy is leaves the pod alone.
    OfOperator,
}

/// Why a policy did not apply to a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skip {
    /// What keeps the policy from the workload.
    pub cause: SkipCause,
    /// The same in words: `selector wants runtime=java, the template has runtime=go`.
    pub reason: String,
    /// It was probably meant to apply: a label is spelt nearly as wanted, the workload says that it opts in, or it was
    /// selected and no container was chosen.
    pub is_near_miss: bool,
    /// It was selected, and no container was chosen.
    pub is_selected: bool,
    /// What to do where it was meant to apply: ``did you mean `runtime: java`?``.
    pub hint: Option<String>,
    /// The workload says that it opts in.
    pub is_opted_in: bool,
    /// The condition: bytes of the policy's file.
    pub in_policy: Option<Range<usize>>,
    /// What does not fit it: bytes of the document.
    pub in_manifest: Option<Range<usize>>,
    /// Both places, where the run's options ask for them.
    pub places: Vec<Label>,
}

impl Skip {
    /// For a reason that has no place.
    pub fn because(cause: SkipCause, reason: impl Into<String>) -> Self {
        Skip {
            cause,
            reason: reason.into(),
            ..Skip::default()
        }
    }

    /// Where the condition stands in the policy's file.
    pub fn wanted_at(mut self, at: Range<usize>) -> Self {
        self.in_policy = Some(at);
        self
    }

    /// What of the document does not fit it.
    pub fn found_at(mut self, at: Option<Range<usize>>) -> Self {
        self.in_manifest = at;
        self
    }

    /// It was probably meant to apply, and this is what to do.
    pub fn hint(mut self, hint: Option<String>) -> Self {
        self.is_near_miss |= hint.is_some();
        self.hint = self.hint.or(hint);
        self
    }
}
