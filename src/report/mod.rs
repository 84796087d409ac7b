//! What a run did and why, as data. Each file of this folder renders it to text; nothing here prints.

pub mod alike;
pub mod check;
pub mod codeowners;
mod companion;
pub mod diff_json;
pub mod diff_sarif;
pub mod explain;
mod head;
pub mod html;
mod hunks;
pub mod inspect;
pub mod json;
mod lines;
pub mod markdown;
pub mod mask;
pub mod needs;
mod retired;
pub mod reviewed;
mod sarif;
pub mod shown;
pub mod stat;
pub mod summary;
pub mod text;
pub mod unified;
pub mod view;

use json_patch::Patch;
use serde_json::Value;
use std::borrow::{Borrow, Cow};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::change::{Change, Verb};
use crate::diagnostic::{Diagnostic, Label};
use crate::ownership::{RecordedWorkload, Room};
use crate::yaml::parse;
pub use companion::{Companion, CompanionText, ObjectName, PlacedCompanion};
use needs::NeedsOfRun;
pub use shown::one_line;
pub use text::Fate;
use view::WorkloadView;

/// What happened to one file.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    /// The changes to the text: in order, none touching another. Ranges are bytes of the whole file.
    pub edits: Vec<Edit>,
    /// Every workload that a policy was compared with, and generated objects that go, in file order.
    pub workloads: Vec<WorkloadReport>,
    /// What policies generate beside workloads, in file order; when all files are settled, what this file writes.
    pub companions: Vec<PlacedCompanion>,
    /// Objects that the records of the input name.
    pub dropped: Vec<Generated>,
    /// What was done to make room for them, each with the byte at which its workload begins.
    pub rooms: Vec<(usize, Room)>,
    /// Objects that the records of the output name.
    pub needed: Vec<Generated>,
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
    pub unlisted: BTreeMap<Fate, usize>,
    /// What was injected needs from a cluster, where the run's options ask for it.
    pub needs: NeedsOfRun,
    /// The text is not what stands in the file, but that with other policies applied.
    pub is_imagined: bool,
    /// `metadata` of the first List, where the run's options ask for views.
    pub list_metadata: Option<Value>,
}

impl FileReport {
    /// The workloads without the objects that were generated beside them.
    pub fn own_workloads(&self) -> impl Iterator<Item = &WorkloadReport> + Clone {
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
            .for_each(|(fate, number)| *self.unlisted.entry(fate).or_default() += number);
    }
}

/// An object that a record says was generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// `ConfigMap shop/orders-jmx`.
    pub name: String,
    /// Of what was written.
    pub digest: String,
    /// The policy that wanted it.
    pub policy: String,
}

impl Generated {
    /// What tells whether it is the same object with the same content.
    pub fn key(&self) -> (String, String) {
        (self.name.clone(), self.digest.clone())
    }
}

/// One replacement of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that go; empty for an insertion.
    pub at: Range<usize>,
    /// What stands there instead; what many workloads get is there once.
    pub text: Arc<str>,
}

/// The text with the edits made.
///
/// # Panics
/// When edits overlap or are out of order: the edit stage never gives such.
pub fn splice<E: Borrow<Edit>>(text: &[u8], edits: &[E]) -> Vec<u8> {
    let added: usize = edits.iter().map(|edit| edit.borrow().text.len()).sum();
    let mut spliced = Vec::with_capacity(text.len() + added);
    write_spliced(text, edits, &mut spliced).expect("memory takes all that is written");
    spliced
}

/// What edits, in order, do to a text, for [`parse_again`](crate::yaml::parse::parse_again).
pub fn changes_of<'e>(edits: impl IntoIterator<Item = &'e Edit>) -> Vec<parse::Change> {
    let change = |edit: &Edit| (edit.at.clone(), edit.text.len());
    edits.into_iter().map(change).collect()
}

/// [`splice`] for text.
///
/// # Panics
/// As [`splice`], and when an edit cuts a character.
pub fn splice_text<E: Borrow<Edit>>(text: &str, edits: &[E]) -> String {
    let added: usize = edits.iter().map(|edit| edit.borrow().text.len()).sum();
    let mut spliced = String::with_capacity(text.len() + added);
    let mut from = 0;
    for edit in edits.iter().map(Borrow::borrow) {
        spliced.push_str(&text[from..edit.at.start]);
        spliced.push_str(&edit.text);
        from = edit.at.end;
    }
    spliced.push_str(&text[from..]);
    spliced
}

/// Writes the text with the edits made.
///
/// # Errors
/// Those of the writer.
///
/// # Panics
/// As [`splice`].
pub fn write_spliced<E: Borrow<Edit>>(
    text: &[u8],
    edits: &[E],
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let mut from = 0;
    for edit in edits.iter().map(Borrow::borrow) {
        out.write_all(&text[from..edit.at.start])?;
        out.write_all(edit.text.as_bytes())?;
        from = edit.at.end;
    }
    out.write_all(&text[from..])
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

/// Whether a text is for a terminal that shows colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Text alone.
    Plain,
    /// With ANSI colours.
    Colours,
}

impl Paint {
    /// The text between the ANSI codes of a style (`1`, `32`), or the text alone.
    pub fn wrap(self, style: &str, text: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Colours => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
        }
    }
}

/// A line for people to read: podgraft's own record in it is a long line that says nothing to them.
fn without_record(line: &str) -> Cow<'_, str> {
    match line.find("podgraft.dev/record") {
        Some(at) if line.len() > at + LONGEST_RECORD => {
            let end = (at + LONGEST_RECORD..line.len())
                .find(|&end| line.is_char_boundary(end))
                .unwrap_or(line.len());
            Cow::Owned(format!("{}…", &line[..end]))
        }
        Some(_) | None => Cow::Borrowed(line),
    }
}

/// So much of a record is shown, with its key.
const LONGEST_RECORD: usize = 60;

/// `1 workload`, `2 workloads`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Says once what holds for many workloads: of the notes that say the same, the first stays and counts the others.
pub fn say_once(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut once: Vec<(Diagnostic, usize)> = Vec::with_capacity(diagnostics.len());
    let mut first: HashMap<String, usize> = HashMap::new();
    for diagnostic in diagnostics {
        if diagnostic.is_said_once() {
            match first.entry(diagnostic.message.clone()) {
                Entry::Occupied(first) => {
                    once[*first.get()].1 += 1;
                    continue;
                }
                Entry::Vacant(free) => drop(free.insert(once.len())),
            }
        }
        once.push((diagnostic, 0));
    }
    let told = once.into_iter().map(
        |(diagnostic, twins)| match (twins, diagnostic.help.clone()) {
            (0, _) => diagnostic,
            (_, help) => {
                let places = format!("the same in {}", count(twins, "other file"));
                diagnostic.help(help.map_or(places.clone(), |help| format!("{help} ({places})")))
            }
        },
    );
    told.collect()
}

/// What happened to one workload.
#[derive(Debug, Clone, Default)]
pub struct WorkloadReport {
    /// The pod template's labels, where they were asked for.
    pub labels: std::collections::BTreeMap<String, String>,
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

/// Who wrote a piece of an edit's text.
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
        changes.any(|change| change.verb() == Verb::Adopt)
    }
}

/// `volume agent, app: mount /agent`.
pub(crate) fn list(changes: &[Change]) -> String {
    let words = changes.iter().map(|change| match change.verb() {
        Verb::TakeOut => format!("{change} taken out"),
        Verb::Add | Verb::Change | Verb::Adopt => change.to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Of what was taken out as a whole.
pub(crate) fn list_gone(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing was left of it".to_owned();
    }
    let words = changes.iter().map(Change::to_string);
    words.collect::<Vec<_>>().join(", ")
}

/// `add volume agent, app: mount /agent and change app: env X`.
fn in_sentence(changes: &[Change]) -> String {
    let verbs = [Verb::Add, Verb::Change, Verb::TakeOut, Verb::Adopt];
    let parts = verbs.into_iter().filter_map(|verb| {
        let own = changes.iter().filter(|change| change.verb() == verb);
        let what: Vec<String> = own.map(Change::object_of_verb).collect();
        (!what.is_empty()).then(|| format!("{} {}", verb.word(), what.join(", ")))
    });
    parts.collect::<Vec<_>>().join(" and ")
}

/// How one policy and one workload met.
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

/// Why a policy did not apply to a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skip {
    /// The first condition that does not hold, in words: `selector wants runtime=java, the template has runtime=go`.
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
    pub fn because(reason: impl Into<String>) -> Self {
        Skip {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Operation, PodItem, Target};

    pub(super) fn report_of(workloads: Vec<WorkloadReport>) -> FileReport {
        FileReport {
            workloads,
            documents: 1,
            ..FileReport::default()
        }
    }

    /// `volume agent` is new.
    pub(super) fn added_volume() -> Change {
        let target = Target::PodItem(PodItem::Volume, "agent".to_owned());
        Change::new(Operation::Add, target)
    }

    /// `Deployment shop/NAME` as the policy `agent` met it; each in a document of its own.
    pub(super) fn workload(name: &str, edits: Range<usize>, outcome: Outcome) -> WorkloadReport {
        let document = name.bytes().map(usize::from).sum();
        WorkloadReport {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
            line: 1,
            document: document..document + 1,
            extent: document..document + 1,
            edits,
            policies: vec![PolicyReport {
                policy: "agent".into(),
                outcome,
                rules: Vec::new(),
                is_older: false,
            }],
            ..WorkloadReport::default()
        }
    }
}
