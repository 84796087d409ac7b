//! Proves before anything is written that undo restores the original bytes: of each document, and of all files
//! together if objects are generated beside workloads.

use memchr::memmem;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::TextCache;
use crate::inventory::Inventory;
use crate::options::{Options, RemovalSelection};
use crate::outcome::FileReport;
use crate::plan::removal::{Drift, DriftHandling};
use crate::record::lock::LockSet;
use crate::record::{RECORD, Record, RecordedValue, TextDifferences};
use crate::source::Source;
use crate::undo::{
    RecordedObject, RemovalObstacle, StrippedDocument, compose, indices_of, objects_of,
    places_between, read_record, strip,
};
use crate::verify::verify;
use crate::yaml::parse::reparse;
use crate::yaml::splice::{Edit, changes_of, splice, splice_text};
use crate::yaml::tree::{NodeId, Tree};

use super::lost_text::gives_back;
use super::orphaned_objects::warn_of_orphans;
use super::pending::{PendingWorkload, Plan};
use super::prune::{RunFile, generated, prune, restore_end, unended};
use super::record_refusals::{changed_since, places_of, reason_of};
use super::recorded::RecordedDocument;
use super::{RunContext, graft_on_threads};

/// The result of undoing an edited document.
enum UndoProof {
    /// The original bytes. `is_checked` tells whether the edited document is also what was planned.
    Exact { is_checked: bool },
    /// Other bytes, unless the records also note these text differences, one entry per object.
    Texts(Vec<Option<TextDifferences>>),
    /// Not the original, for this reason.
    Not(String),
}

impl<'t> RecordedDocument<'t> {
    /// Undoes the edited document if it has records, and notes in the records which text differences undo must
    /// restore.
    pub(super) fn prove_all(&self, plan: &mut Plan<'t>, texts: &mut TextCache) {
        let has_record = |pending: &PendingWorkload<'_>| pending.record().is_some();
        let has_records = !self.recorded.is_empty() || plan.pending.iter().any(has_record);
        let is_changed =
            |entry: &PendingWorkload<'_>| entry.is_changed() || loses_text(self, entry);
        let is_to_prove =
            plan.pending.iter().any(is_changed) || ends_unended(self, plan.pending.iter());
        if !has_records || !is_to_prove || plan.is_refused() {
            return;
        }
        let gives_back = plan.pending.iter().any(|entry| gives_back(self, entry));
        let with_own_text = gives_back.then(|| self.prove_with_own_text(plan, texts));
        let proof = with_own_text.flatten();
        let proof = proof.unwrap_or_else(|| self.prove_with_texts(plan, texts));
        let problem = match proof {
            UndoProof::Exact { is_checked } => return plan.is_checked = is_checked,
            UndoProof::Not(why) => why,
            UndoProof::Texts(_) => "the bytes differ".to_owned(),
        };
        plan.problems = report_inexact_undo(self, &plan.pending, &problem);
        if plan.problems.iter().any(Diagnostic::is_error) {
            let pending = plan.pending.iter_mut();
            pending.for_each(|pending| pending.edits.clear());
        }
    }

    /// Proves that undo gives the bytes back, and notes in the records the text differences that it must restore.
    fn prove_with_texts(&self, plan: &mut Plan<'t>, texts: &mut TextCache) -> UndoProof {
        let proof = self.prove(&plan.pending);
        let UndoProof::Texts(found) = proof else {
            return proof;
        };
        self.note_texts(&mut plan.pending, found);
        self.write_all(plan, texts);
        self.prove(&plan.pending)
    }

    /// Like [`Self::prove_with_texts`], where what comes back has its own text. `None` if there is none, or if undo would
    /// not give the bytes back with it; then all is written as before.
    fn prove_with_own_text(&self, plan: &mut Plan<'t>, texts: &mut TextCache) -> Option<UndoProof> {
        let mut found = Vec::new();
        for _ in 0..2 {
            self.note_texts(&mut plan.pending, found);
            self.write_all(plan, texts);
            if !self.give_back_lost_text(&mut plan.pending) {
                return None;
            }
            match self.prove(&plan.pending) {
                UndoProof::Texts(texts) => found = texts,
                proof @ UndoProof::Exact { .. } => return Some(proof),
                UndoProof::Not(_) => break,
            }
        }
        self.write_all(plan, texts);
        None
    }

    fn note_texts(&self, pending: &mut [PendingWorkload<'_>], texts: Vec<Option<TextDifferences>>) {
        let nodes = objects_of(self.tree, self.setting.kinds);
        let indices = indices_of(pending.iter().map(|entry| entry.workload.object.node));
        let texts = texts.into_iter().chain(std::iter::repeat(None));
        for (node, text) in nodes.iter().zip(texts) {
            let entry = indices.get(node).map(|&index| &mut pending[index]);
            if let Some(record) = entry.and_then(|entry| entry.beside.as_mut()?.record.as_mut()) {
                record.text = text;
            }
        }
    }

    fn prove(&self, pending: &[PendingWorkload<'_>]) -> UndoProof {
        let mut edits = flatten_edits(pending);
        let is_unended = ends_unended(self, pending.iter());
        if is_unended {
            let output = splice_text(self.source.text, &edits);
            let end = unended(&output).map_or(output.len(), str::len)..output.len();
            edits = compose(self.source.text.len(), &edits, &[Edit::removal(end)]);
        }
        let output = splice_text(self.source.text, &edits);
        let Ok(tree) = reparse(self.tree, &output, &changes_of(&edits)) else {
            return UndoProof::Not("it cannot be parsed".to_owned());
        };
        // What leaves still has the line end, until prune takes it.
        let is_checked = !is_unended && is_planned(&tree, self.tree, pending);
        let pending = self.entries_of_objects(pending);
        let mut recorded = self.recorded_after(&tree, &pending);
        let matters = |index: usize| {
            let entry = pending.get(index).copied().flatten();
            entry.is_some_and(|entry| entry.record().is_some() || entry.is_base())
        };
        let mut texts = (0..).zip(match self.undo(&tree, &recorded, &pending) {
            Ok(texts) => texts,
            // The text differences noted by an earlier run do not fit what this run changed. Note them anew.
            Err(RemovalObstacle::Forged(_)) => {
                return self.prove_anew(&tree, &mut recorded, &pending);
            }
            Err(obstacle) => return UndoProof::Not(reason_of(&obstacle)),
        });
        match texts.any(|(index, text)| text.is_some() && matters(index)) {
            true => self.prove_anew(&tree, &mut recorded, &pending),
            false => UndoProof::Exact { is_checked },
        }
    }

    /// The entry of each object of the document; `None` for those that are no workloads.
    pub(super) fn entries_of_objects<'p>(
        &self,
        pending: &'p [PendingWorkload<'t>],
    ) -> Vec<Option<&'p PendingWorkload<'t>>> {
        let objects = objects_of(self.tree, self.setting.kinds);
        let indices = indices_of(pending.iter().map(|entry| entry.workload.object.node));
        let entry_of = |node| indices.get(node).map(|&index| &pending[index]);
        objects.iter().map(entry_of).collect()
    }

    /// Returns the text differences that records without any must note.
    fn prove_anew(
        &self,
        tree: &Tree<'_>,
        recorded: &mut [RecordedObject<'_>],
        pending: &[Option<&PendingWorkload<'_>>],
    ) -> UndoProof {
        for recorded_object in recorded.iter_mut() {
            recorded_object.record.text = None;
        }
        match self.undo(tree, recorded, pending) {
            Ok(texts) => UndoProof::Texts(texts),
            Err(obstacle) => UndoProof::Not(reason_of(&obstacle)),
        }
    }

    /// Returns the records of the edited document: of its annotations, or the new ones for the lock file.
    pub(super) fn recorded_after<'o>(
        &self,
        tree: &'o Tree<'o>,
        pending: &[Option<&PendingWorkload<'_>>],
    ) -> Vec<RecordedObject<'o>> {
        let mut recorded = Vec::new();
        let nodes = objects_of(tree, self.setting.kinds);
        for (node, pending_object) in nodes.into_iter().zip(pending) {
            let Some(record) = pending_object.and_then(PendingWorkload::record) else {
                continue;
            };
            let annotated = read_record(tree, node).ok().flatten();
            recorded.push(annotated.unwrap_or_else(|| beside(tree, node, record)));
        }
        recorded
    }

    /// Undoes the edited document. Returns the text differences between the result and what undo must restore.
    fn undo(
        &self,
        tree: &Tree<'_>,
        recorded: &[RecordedObject<'_>],
        pending: &[Option<&PendingWorkload<'_>>],
    ) -> Result<Vec<Option<TextDifferences>>, RemovalObstacle> {
        let kinds = self.setting.kinds;
        let (original, has_more) = match ends_unended(self, pending.iter().copied().flatten()) {
            true => (unended(self.original()).unwrap_or(self.original()), false),
            false => (self.original(), self.has_more),
        };
        let undone = strip(tree, kinds, recorded, has_more, |_| DriftHandling::Leave)?;
        // What an earlier run noted of the text is still found, but it does not know the text of this run.
        if undone.is_inexact
            && !self.stripped.is_inexact
            && let Some(noted) = recorded
                .iter()
                .find(|recorded| recorded.record.text.is_some())
        {
            return Err(RemovalObstacle::Forged(noted.at));
        }
        // The text that undo must restore is proven already.
        if undone.text != original {
            undone.parse(tree, recorded)?;
        }
        let is_new = |changed: &&Drift| {
            !changed_in(&self.stripped)
                .any(|drift| (&drift.policy, &drift.path) == (&changed.policy, &changed.path))
        };
        if let Some(changed) = changed_in(&undone).find(is_new) {
            return Err(RemovalObstacle::Wrong(format!(
                "`{}` of {} would count as changed",
                changed.path, changed.policy
            )));
        }
        let text = self.restore_end(&undone.text, pending);
        places_between(&text, original, kinds).map_err(RemovalObstacle::Wrong)
    }

    /// Removes the line end that prune removes together with the object generated after the document.
    fn restore_end(&self, undone: &str, pending: &[Option<&PendingWorkload<'_>>]) -> String {
        let records = pending.iter().filter_map(|entry| entry.as_ref()?.record());
        let mut rooms = records.map(|record| &record.room);
        match rooms.find(|room| room.unended && !self.original().ends_with('\n')) {
            Some(room) => splice_text(undone, &restore_end(undone, room, self.setting.kinds, None)),
            None => undone.to_owned(),
        }
    }
}

/// Whether the new record lacks the text differences that the earlier one notes: they do not fit any more.
fn loses_text(pair: &RecordedDocument<'_>, pending: &PendingWorkload<'_>) -> bool {
    let earlier = pair.position(pending.workload.object.node);
    let has_text = earlier.is_some_and(|at| pair.recorded[at].record.text.is_some());
    has_text && pending.record().is_some_and(|record| record.text.is_none())
}

/// Whether the objects go for which the text got its last line end: with them, prune removes that line end.
fn ends_unended<'p, 'a: 'p>(
    pair: &RecordedDocument<'_>,
    mut pending: impl Iterator<Item = &'p PendingWorkload<'a>>,
) -> bool {
    let mut earlier = pair.recorded.iter();
    earlier.any(|recorded| recorded.record.room.unended)
        && !pending.any(|entry| {
            entry
                .record()
                .is_some_and(|record| generated(record).next().is_some())
        })
}

fn beside<'o>(tree: &'o Tree<'o>, node: NodeId, record: &Record) -> RecordedObject<'o> {
    RecordedObject {
        is_copied: false,
        node,
        at: node,
        is_annotated: false,
        from: None,
        record: record.clone(),
        adopted: Vec::new(),
        renamed: BTreeMap::new(),
        // Only objects with a value have a record.
        value: RecordedValue::known(tree, node),
    }
}

fn changed_in<'s>(stripped: &'s StrippedDocument<'_>) -> impl Iterator<Item = &'s Drift> {
    stripped.taken.iter().flat_map(|taken| &taken.changed)
}

/// Whether the edited document is what was planned. `false` if a workload returns to its base, which no draft
/// describes.
pub(super) fn is_planned(
    output: &Tree<'_>,
    input: &Tree<'_>,
    pending: &[PendingWorkload<'_>],
) -> bool {
    let changed = pending.iter().filter(|pending| pending.is_changed());
    let drafts =
        changed.map(|pending| Some((pending.workload.object.node, pending.draft()?.clone())));
    let drafts: Option<Vec<_>> = drafts.collect();
    drafts.is_some_and(|drafts| verify(output, input, &drafts, &[]).is_ok())
}

/// Returns all edits of a document, in order.
pub(super) fn flatten_edits(pending: &[PendingWorkload<'_>]) -> Vec<Edit> {
    let edits = pending.iter().flat_map(|pending| &pending.edits);
    let mut flat: Vec<Edit> = edits.cloned().collect();
    // At the same offset, insertions go before replacements.
    flat.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    flat
}

/// Reports that undo would not restore every byte. Expected if somebody changed what was injected; otherwise it is a
/// bug.
fn report_inexact_undo(
    pair: &RecordedDocument<'_>,
    pending: &[PendingWorkload<'_>],
    difference: &str,
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (recorded, taken) in pair.recorded.iter().zip(&pair.stripped.taken) {
        let workload = pending
            .iter()
            .map(|entry| &entry.workload)
            .find(|workload| workload.object.node == recorded.node);
        let Some(workload) = workload else { continue };
        let places = places_of(workload);
        let changed = taken.changed.iter();
        problems.extend(changed.map(|drift| changed_since(workload, &places, drift)));
    }
    if problems.is_empty() {
        problems.push(inexact_undo(difference).at(pair.source.place(0..0), "in this document"));
    }
    problems
}

/// Only a warning: what the run writes is right, and only undo would be inexact.
fn inexact_undo(difference: &str) -> Diagnostic {
    let message = format!("undo of this output would not restore every byte: {difference}");
    Diagnostic::warning(Code::InexactUndo, message).help(
        "commit the files before the run, so that their history has every byte; this is a gap in \
         podgraft: report it",
    )
}

/// Prunes the objects that no workload of the run needs any more, and proves that the run as a whole can be undone.
pub fn prune_proven(
    files: &mut [RunFile<'_>],
    options: &Options,
    locks: &Arc<LockSet>,
) -> Option<Diagnostic> {
    prune(files, options, locks);
    if !options.brief && options.workloads.is_empty() {
        warn_of_orphans(files, options, locks);
    }
    prove_companions(files, options, locks)
}

/// Undoes the whole run if it wrote or pruned generated objects. The result must equal that of undoing the input.
/// Returns nothing if an error was already reported, or if nothing can be proven because a workload has no record.
fn prove_companions(
    files: &[RunFile<'_>],
    options: &Options,
    locks: &Arc<LockSet>,
) -> Option<Diagnostic> {
    let has_companions =
        |report: &FileReport| !report.dropped.is_empty() || !report.needed.is_empty();
    let companion_files: Vec<&RunFile<'_>> = files
        .iter()
        .filter(|(.., report)| has_companions(report))
        .collect();
    let mut reports = companion_files.iter().map(|(.., report)| report);
    if files.iter().any(|(.., report)| report.is_refused())
        || reports.clone().all(|report| report.edits.is_empty())
        || reports.any(|report| report.has_unrecorded)
    {
        return None;
    }
    // If the input cannot be undone because somebody changed it, there is nothing to compare with.
    let before = without_records(&companion_files, options, locks)?;
    let outputs = companion_files
        .iter()
        .map(|(name, text, report)| (Arc::clone(name), splice(text, &report.edits)));
    let mut locks_after = LockSet::clone(locks);
    let records = files.iter();
    locks_after.put_all(records.map(|(name, _, report)| (&**name, report.records.as_slice())));
    let after = undone(outputs.collect(), options, Arc::new(locks_after));
    let index = match &after {
        Some(after) => before
            .iter()
            .zip(after)
            .position(|(before, after)| before != after)?,
        None => 0,
    };
    let (name, text, _) = companion_files[index];
    let place = Source::new(Arc::clone(name), &String::from_utf8_lossy(text)).place(0..0);
    Some(
        inexact_undo("bytes other than those of the generated objects differ")
            .at(place, "in this file"),
    )
}

/// Returns the input files without their recorded changes. `None` if undo refuses one.
fn without_records(
    files: &[&RunFile<'_>],
    options: &Options,
    locks: &Arc<LockSet>,
) -> Option<Vec<Vec<u8>>> {
    let has_record = |(name, text, _): &&RunFile<'_>| {
        memmem::find(text, RECORD.as_bytes()).is_some() || locks.has_file(name)
    };
    let inputs = files
        .iter()
        .map(|(name, text, _)| (Arc::clone(name), text.to_vec()));
    match files.iter().any(has_record) {
        true => undone(inputs.collect(), options, Arc::clone(locks)),
        false => Some(inputs.map(|(_, text)| text).collect()),
    }
}

/// Undoes all recorded changes of texts. `None` if undo refuses one.
fn undone(
    texts: Vec<(Arc<str>, Vec<u8>)>,
    options: &Options,
    locks: Arc<LockSet>,
) -> Option<Vec<Vec<u8>>> {
    // Only options that decide what is read are kept: the proof must not depend on what the run reports.
    let options = Options {
        namespace: options.namespace.clone(),
        pod_templates: options.pod_templates.clone(),
        parse_all: options.parse_all,
        take_out: RemovalSelection::All,
        brief: true,
        ..Options::default()
    };
    let mut inventory = Inventory::default();
    inventory.add_locks(locks);
    let run = RunContext::new(&[], &options, &inventory);
    let graft = |name, text: &[u8]| graft_on_threads(NonZeroUsize::MIN, name, text, run);
    let mut reports: Vec<FileReport> = texts.iter().map(|(name, text)| graft(name, text)).collect();
    let files = texts.iter().zip(&mut reports);
    prune(
        &mut files
            .map(|((name, text), report)| (Arc::clone(name), text.as_slice(), report))
            .collect::<Vec<_>>(),
        &options,
        inventory.locks(),
    );
    let is_refused = reports.iter().any(FileReport::is_refused);
    let outputs = texts.iter().zip(&reports);
    let outputs = outputs.map(|((_, text), report)| splice(text, &report.edits));
    (!is_refused).then(|| outputs.collect())
}
