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

use crate::change::{Change, ChangeKind, ChangeTarget, Operation, list, list_removed};
use crate::diagnostic::{Diagnostic, Label};
use crate::ownership::{RecordedWorkload, TextAdjustment};
use crate::yaml::splice::Edit;
pub use companion::{EarlierVersion, GeneratedObject, ObjectName, ObjectText, PlacedObject};
use needs::RunNeeds;
pub use status::WorkloadStatus;
use view::WorkloadView;

/// What happened to one file.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    /// The edits of the text, in order and without overlaps. Byte ranges are those of the whole file.
    pub edits: Vec<Edit>,
    /// The workloads that policies were compared with, and pruned objects, in file order.
    pub workloads: Vec<WorkloadReport>,
    /// The objects that policies generate, in file order. When all files are planned, only those that this file
    /// writes.
    pub companions: Vec<PlacedObject>,
    /// The names of those that are among the manifests already. Only where the objects are listed.
    pub present: Vec<ObjectName>,
    /// The generated objects that the records of the input name.
    pub dropped: Vec<GeneratedRecord>,
    /// How the text was adjusted to make room for them, with the byte offset of the workload in the file.
    pub rooms: Vec<(usize, TextAdjustment)>,
    /// The generated objects that the records of the output name.
    pub needed: Vec<GeneratedRecord>,
    /// What was done to workloads, for the lock file, if the run writes one.
    pub records: Vec<RecordedWorkload>,
    /// Something was injected that no record of the output can undo.
    pub has_unrecorded: bool,
    /// The diagnostics, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of documents with content.
    pub documents: usize,
    /// The number of Kubernetes objects: documents with an apiVersion and a kind.
    pub objects: usize,
    /// Some document is a List without items, which `kubectl get` prints for an empty namespace.
    pub has_empty_list: bool,
    /// The numbers of workloads that are not listed, by status: there are too many, or they cannot be read.
    pub unlisted: BTreeMap<WorkloadStatus, usize>,
    /// What injections need from a cluster, if the run's options ask for it.
    pub needs: RunNeeds,
    /// The input text is not that of the file, but the result of other policies.
    pub is_hypothetical: bool,
    /// `metadata` of the first List, if the run's options ask for views.
    pub list_metadata: Option<Value>,
}

impl FileReport {
    /// Returns a report with problems only.
    pub(crate) fn of_problems(problems: Vec<Diagnostic>) -> Self {
        FileReport {
            diagnostics: problems,
            ..FileReport::default()
        }
    }

    /// Whether an error keeps the edits from being written.
    pub fn is_refused(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// The workloads of the input, without generated objects.
    pub(crate) fn input_workloads(&self) -> impl Iterator<Item = &WorkloadReport> + Clone {
        self.workloads
            .iter()
            .filter(|workload| !workload.is_generated)
    }

    /// Counts documents and objects that were not read.
    pub(crate) fn count_unread(&mut self, documents: usize, objects: usize) {
        self.documents += documents;
        self.objects += objects;
    }

    /// Counts a document with a workload that cannot be read and that no policy selects.
    pub(crate) fn count_unselected(&mut self) {
        self.count_unread(1, 1);
        *self
            .unlisted
            .entry(WorkloadStatus::NotSelected)
            .or_default() += 1;
    }

    /// Appends the report of the next part of the same file.
    pub fn append(&mut self, next: FileReport) {
        let (edits_before, workloads_before) = (self.edits.len(), self.workloads.len());
        self.present.extend(next.present);
        self.dropped.extend(next.dropped);
        self.rooms.extend(next.rooms);
        self.needed.extend(next.needed);
        self.records.extend(next.records);
        self.has_unrecorded |= next.has_unrecorded;
        self.has_empty_list |= next.has_empty_list;
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
            // Such a problem is reported once per file, not once per workload.
            let is_said = diagnostic.is_reported_once()
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
    /// Kind, namespace and name, such as `ConfigMap shop/orders-jmx`.
    pub name: String,
    /// The digest of the content that was written.
    pub digest: String,
    /// The policy that generated it.
    pub policy: String,
    /// The set of the policy.
    pub set: Option<String>,
}

impl GeneratedRecord {
    /// The name and digest, which identify an object with its content.
    pub fn key(&self) -> (String, String) {
        (self.name.clone(), self.digest.clone())
    }
}

/// One file of a run, as input of the renderers.
#[derive(Debug, Clone, Copy)]
pub struct ReportedFile<'a> {
    /// The name that the user gave.
    pub name: &'a str,
    /// The bytes of its path for a patch header; `stdin` for the standard input.
    pub path: &'a [u8],
    /// The text before the edits.
    pub text: &'a [u8],
    /// The report of the file.
    pub report: &'a FileReport,
}

/// What happened to one workload.
#[derive(Debug, Clone, Default)]
pub struct WorkloadReport {
    /// The pod template's labels, if the run's options ask for them.
    pub labels: BTreeMap<String, String>,
    /// The API version, such as `apps/v1`.
    pub api_version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The namespace that the manifest states, or that is given for the run.
    pub namespace: Option<String>,
    /// The manifest states the namespace.
    pub states_namespace: bool,
    /// `metadata.name`, or `metadata.generateName` with a `*`; empty when there is none.
    pub name: String,
    /// 1-based line of the file on which the object begins.
    pub line: usize,
    /// The byte range of the object's document in the file, from its `---` line.
    pub document: Range<usize>,
    /// The byte range of the file whose lines may be shown with its changes: the document, or the object where it
    /// has others, too.
    pub extent: Range<usize>,
    /// The indices of this workload's edits in the file's edits.
    pub edits: Range<usize>,
    /// The authors of each of these edits, if asked for and if several policies made them.
    pub authors: Vec<Vec<Author>>,
    /// The plan as an RFC 6902 patch, if asked for.
    pub patch: Option<Patch>,
    /// The parts of the workload before the run, if asked for.
    pub view: Option<Box<WorkloadView>>,
    /// The parts of the workload after the run, if it changes.
    pub view_after: Option<Box<WorkloadView>>,
    /// One report per policy, in the order in which they apply.
    pub policies: Vec<PolicyReport>,
    /// It is not a workload but a generated object that is pruned.
    pub is_generated: bool,
    /// Ephemeral containers for its pods, if asked for.
    pub ephemeral_containers: Vec<Value>,
    /// The port at which its pods serve metrics, by the annotations that Prometheus looks for, including injected
    /// ones.
    pub metrics_port: Option<u16>,
}

impl WorkloadReport {
    /// Returns kind, namespace and name as diagnostics and diffs show them: `Deployment shop/orders`.
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
    /// The byte range in the edit's text. Empty for text that the edit removes.
    pub bytes: Range<usize>,
    /// Indices in the workload's list of policies.
    pub policies: Vec<usize>,
}

/// What one policy did to one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyReport {
    /// The policy's identity.
    pub policy: Arc<str>,
    /// The outcome.
    pub outcome: Outcome,
    /// The indices of the policy's rules that match the workload.
    pub rules: Vec<usize>,
    /// The workload has a record of another version of the policy.
    pub is_older: bool,
}

impl PolicyReport {
    /// Returns a report without rules.
    pub fn of(policy: &str, outcome: Outcome) -> Self {
        PolicyReport {
            policy: Arc::from(policy),
            outcome,
            rules: Vec::new(),
            is_older: false,
        }
    }

    /// The policy with what it changed: `jmx (init container agent)`, behind `injected` if it injected something. `None` if
    /// it changed nothing.
    pub(crate) fn words(&self, injected: &str) -> Option<String> {
        let policy = &self.policy;
        match &self.outcome {
            Outcome::Injected(changes) => Some(format!("{injected}{policy} ({})", list(changes))),
            Outcome::TakenOut(changes) | Outcome::Failed(Some(changes)) => {
                Some(format!("{policy} removed ({})", list_removed(changes)))
            }
            Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed(None) => None,
        }
    }

    /// What the policy changed, if it did.
    pub(crate) fn changes(&self) -> Option<&[Change]> {
        match &self.outcome {
            Outcome::Injected(changes)
            | Outcome::TakenOut(changes)
            | Outcome::Failed(Some(changes)) => Some(changes),
            Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed(None) => None,
        }
    }

    /// Whether the policy adopted something that was there.
    pub fn is_adopted(&self) -> bool {
        let Outcome::Injected(changes) = &self.outcome else {
            return false;
        };
        let mut changes = changes.iter();
        changes.any(|change| change.kind() == ChangeKind::Adopt)
    }

    /// Adds that an object was generated, unless the changes name the object already. A change since an earlier run has
    /// the name of the record, which lacks the namespace of the run.
    pub(crate) fn add_object(&mut self, name: String, name_in_record: String) {
        let target = ChangeTarget::Object(name);
        let recorded = ChangeTarget::Object(name_in_record);
        let is_named = |changes: &[Change]| {
            let mut targets = changes.iter().map(|change| &change.target);
            targets.any(|known| *known == target || *known == recorded)
        };
        match &mut self.outcome {
            Outcome::Injected(changes) if is_named(changes) => {}
            Outcome::Injected(changes) => changes.push(Change::new(Operation::Add, target)),
            outcome @ Outcome::UpToDate => {
                *outcome = Outcome::Injected(vec![Change::new(Operation::Add, target)]);
            }
            Outcome::TakenOut(_) | Outcome::Skipped(_) | Outcome::Failed(_) => {}
        }
    }
}

/// The outcome of one policy for one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Selected and changed. The changes in order, if the run reports details.
    Injected(Vec<Change>),
    /// Selected, and everything is in place already.
    UpToDate,
    /// What an earlier run injected was removed; the removed things in order.
    TakenOut(Vec<Change>),
    /// Not selected.
    Skipped(Skip),
    /// Failed; the diagnostics say why. What an earlier run injected was removed, if there was something.
    Failed(Option<Vec<Change>>),
}

impl Outcome {
    /// What the policy injected. `None` if it injected nothing.
    pub fn injections(&self) -> Option<&[Change]> {
        match self {
            Outcome::Injected(changes) => Some(changes),
            Outcome::TakenOut(_) | Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed(_) => {
                None
            }
        }
    }

    /// What an earlier run injected and this one removed. `None` if the policy still applies or had injected nothing.
    pub fn removals(&self) -> Option<&[Change]> {
        match self {
            Outcome::TakenOut(removals) | Outcome::Failed(Some(removals)) => Some(removals),
            Outcome::Injected(_)
            | Outcome::UpToDate
            | Outcome::Skipped(_)
            | Outcome::Failed(None) => None,
        }
    }
}

/// The kind of reason for which a policy does not apply to a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SkipCause {
    /// `--workload` names other workloads.
    NotAskedFor,
    /// The object's kind has pods, but the object has no pod template.
    NoPodTemplate,
    /// The policy is suspended, or the resource chooses nothing.
    Suspended,
    /// The object has the annotation for local configuration, so it is not applied to a cluster.
    LocalConfig,
    /// The policy belongs to another namespace.
    OtherNamespace,
    /// The namespace, or its Namespace object, is not known.
    UnknownNamespace,
    /// A field of `match` does not match.
    Match(&'static str),
    /// An `exclude` matches.
    Excluded,
    /// `optIn` does not match.
    NotOptedIn,
    /// `optOut` matches.
    OptedOut,
    /// A CEL condition is false.
    Condition,
    /// No rule of the policy matches the workload.
    #[default]
    NoRule,
    /// A rule matches the workload but chooses no container.
    NoContainer,
    /// Another injector has changed the workload.
    AlreadyInjected,
    /// `adopt` did not find everything that the policy injects.
    NotAdopted,
    /// The policy comes from an operator's resource, and that operator leaves the pod alone.
    OfOperator,
}

/// Why a policy did not apply to a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skip {
    /// What keeps the policy from the workload.
    pub cause: SkipCause,
    /// The reason in words: `selector wants runtime=java, the template has runtime=go`.
    pub reason: String,
    /// It was probably meant to apply: a label is spelt nearly as wanted, the workload says that it opts in, or it was
    /// selected and no container was chosen.
    pub is_near_miss: bool,
    /// It was selected, and no container was chosen.
    pub is_selected: bool,
    /// A suggestion in case it was meant to apply: ``did you mean `runtime: java`?``.
    pub hint: Option<String>,
    /// The workload says that it opts in.
    pub is_opted_in: bool,
    /// The byte range of the failed condition in the policy's file.
    pub in_policy: Option<Range<usize>>,
    /// The byte range of what does not match it in the document.
    pub in_manifest: Option<Range<usize>>,
    /// Both places, if the run's options ask for them.
    pub places: Vec<Label>,
}

impl Skip {
    /// Returns a skip without places.
    pub fn because(cause: SkipCause, reason: impl Into<String>) -> Self {
        Skip {
            cause,
            reason: reason.into(),
            ..Skip::default()
        }
    }

    /// Sets the place of the condition in the policy's file.
    pub(crate) fn wanted_at(mut self, at: Range<usize>) -> Self {
        self.in_policy = Some(at);
        self
    }

    /// Sets the place in the document that does not match it.
    pub(crate) fn found_at(mut self, at: Option<Range<usize>>) -> Self {
        self.in_manifest = at;
        self
    }

    /// Adds a suggestion, if there is one, and marks the skip as a near miss. An earlier suggestion stays.
    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.is_near_miss |= hint.is_some();
        self.hint = self.hint.or(hint);
        self
    }
}
