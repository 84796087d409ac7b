//! Reads the records of a document's workloads, from annotations or the lock file, and reports what changes in them.

use memchr::memmem;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::OnceLock;

use crate::change::{Change, ChangeTarget, Operation, RecordCause};
use crate::diagnostic::{Diagnosed, unless};
use crate::manifest::object::{DocumentContent, Object, objects_in};
use crate::manifest::pod::Workload;
use crate::manifest::workload::PodKinds;
use crate::outcome::{GeneratedRecord, Outcome, PolicyReport};
use crate::ownership::{TextAdjustment, WorkloadKey};
use crate::plan::WorkloadPlan;
use crate::plan::draft_paths::DraftPaths;
use crate::record::live::is_live;
use crate::record::lock::{Lock, MarkedWorkload, RecordSearch};
use crate::record::{MARKER, Record, RecordError, RecordPaths, RecordedValue};
use crate::source::Source;
use crate::undo::{RecordedObject, locked_record, read_record};
use crate::yaml::parse::parse;
use crate::yaml::stream::chunks;
use crate::yaml::tree::NodeId;

use super::document::{DocumentTask, ParsedDocument};
use super::pending::PendingWorkload;
use super::prune::generated;
use super::record_refusals::unreadable;
use super::recorded::RecordedDocument;
use super::refusals::refuse_duplicate_in_pod;

/// The records of a document.
#[derive(Default)]
pub(super) struct Records<'t> {
    /// The recorded objects that the run may change.
    pub recorded: Vec<RecordedObject<'t>>,
    /// The objects that were generated for them. They are pruned unless something still needs them.
    pub dropped: Vec<GeneratedRecord>,
    /// How the text was adjusted to make room for generated objects, with the byte offset of the workload in the
    /// file.
    pub rooms: Vec<(usize, TextAdjustment)>,
    /// The objects that were generated for other workloads, which still need them.
    pub needed: Vec<GeneratedRecord>,
}

impl<'t> ParsedDocument<'t> {
    /// Reads the records of a document. Empty if no earlier run left a trace and this run records nothing.
    ///
    /// # Errors
    /// One for each record that cannot be read.
    pub(super) fn read_records(&self, found: &[DocumentContent]) -> Diagnosed<Records<'t>> {
        let mut records = Records::default();
        if !self.has_records() {
            return Ok(records);
        }
        let mut problems = Vec::new();
        for object in found.iter().filter_map(DocumentContent::as_object) {
            let workload = self.read_workload(object);
            let is_selected = || {
                let workload = workload.as_ref();
                workload.is_some_and(|workload| self.is_wanted(workload))
            };
            match self.read_record(object.node, workload.as_ref()) {
                Ok(Some(mut recorded_object)) if is_selected() => {
                    let (record, value) = (&mut recorded_object.record, &recorded_object.value);
                    recorded_object.renamed = self.rename(record, value);
                    records.dropped.extend(generated(&recorded_object.record));
                    if !recorded_object.record.room.is_nothing() {
                        let at = self.start + self.tree.span(object.node).start;
                        records
                            .rooms
                            .push((at, recorded_object.record.room.clone()));
                    }
                    records.recorded.push(recorded_object);
                }
                Ok(recorded_object) => {
                    let others = recorded_object.iter().map(|recorded| &recorded.record);
                    records.needed.extend(others.flat_map(generated));
                }
                Err((node, error)) => {
                    let workload = workload.as_ref();
                    let workload = workload.filter(|_| matches!(error, RecordError::Ambiguous));
                    let problem = || unreadable(&error, self.place_of(node));
                    problems.push(
                        workload
                            .and_then(refuse_duplicate_in_pod)
                            .unwrap_or_else(problem),
                    );
                }
            }
        }
        unless(problems, records)
    }

    /// Returns the record of an object, from its annotation, else from the lock file.
    fn read_record(
        &self,
        object: NodeId,
        workload: Option<&Workload<'t>>,
    ) -> Result<Option<RecordedObject<'t>>, (NodeId, RecordError)> {
        if let Some(annotated) = read_record(self.tree, object)? {
            return Ok(Some(annotated));
        }
        workload.map_or(Ok(None), |workload| self.locked_record(workload))
    }

    pub(super) fn read_workload(&self, object: &Object) -> Option<Workload<'t>> {
        let (kinds, name) = (self.setting.kinds, self.setting.name);
        let namespace = self.setting.options.namespace_in(name);
        Workload::find(self.tree, self.source, object, kinds, namespace)
    }
}

impl DocumentTask<'_> {
    /// Returns the lock file's record of a workload, under its current or an earlier name. With `adopt` an ambiguous
    /// record counts as none.
    pub(super) fn locked_record<'t>(
        &self,
        workload: &Workload<'t>,
    ) -> Result<Option<RecordedObject<'t>>, (NodeId, RecordError)> {
        let is_present = |key: &WorkloadKey| self.is_present(key);
        let (locks, options) = (self.setting.inventory.locks(), self.setting.options);
        let is_gone = |file: &str| locks.is_gone_beside(&workload.source.name, file);
        // Undo takes out what is recorded, and adoption takes what is there.
        let finds_copies = !options.take_out.is_undo() && !options.adopt;
        let gone = |lock: &Lock, file: &str| match self.setting.marked {
            Some(marked) => marked.gone(lock, file),
            None => &[],
        };
        let elsewhere =
            |marked: &MarkedWorkload<'_>| locks.record_elsewhere(marked, &workload.source.name);
        let search = RecordSearch {
            elsewhere: &elsewhere,
            is_present: &is_present,
            gone: &gone,
            is_gone: &is_gone,
            finds_copies,
        };
        let found = locked_record(workload, locks, &search);
        found.or_else(|error| match options.adopt {
            true => Ok(None),
            false => Err(error),
        })
    }

    /// Whether the file still has a recorded workload of it.
    fn is_present(&self, key: &WorkloadKey) -> bool {
        let marked = self.setting.marked;
        marked.is_none_or(|marked| marked.contains(key))
    }

    /// Renames policies in a record: what a policy did under its earlier name is its own. Returns the earlier names, by
    /// the new ones.
    fn rename(&self, record: &mut Record, object: &RecordedValue<'_>) -> BTreeMap<String, String> {
        let policies = self.setting.policies;
        let is_given = |name: &String| policies.iter().any(|policy| policy.identity == *name);
        let recorded = record.policies.iter().map(|policy| &policy.policy);
        let gone = recorded.filter(|name| !is_given(name));
        let renamed = gone.filter_map(|old| {
            let mut policies = policies.iter();
            let policy = policies.find(|policy| policy.renamed_from.as_ref() == Some(old))?;
            Some((policy.identity.clone(), old.clone()))
        });
        let renamed: BTreeMap<String, String> = renamed.collect();
        for (name, old) in &renamed {
            record.rename_policy(old, name, object);
        }
        renamed
    }
}

/// Kind, stated namespace, name.
type MarkedName = (String, String, String);

/// The marked workloads of a file, found on first use.
pub(super) struct MarkedWorkloads<'s> {
    text: &'s [u8],
    kinds: &'s PodKinds,
    names: OnceLock<HashSet<MarkedName>>,
    gone: OnceLock<Vec<WorkloadKey>>,
}

impl<'s> MarkedWorkloads<'s> {
    /// `text` must be that of the whole file.
    pub(super) fn of(text: &'s [u8], kinds: &'s PodKinds) -> Self {
        MarkedWorkloads {
            text,
            kinds,
            names: OnceLock::new(),
            gone: OnceLock::new(),
        }
    }

    /// The recorded workloads that the file does not have any more. Only a file with fewer markers than recorded workloads
    /// is read for it.
    fn gone(&self, lock: &Lock, file: &str) -> &[WorkloadKey] {
        self.gone.get_or_init(|| {
            let recorded = lock.workloads_of(file).count();
            if memmem::find_iter(self.text, MARKER.as_bytes()).count() >= recorded {
                return Vec::new();
            }
            let gone = lock.workloads_of(file).filter(|key| !self.contains(key));
            gone.cloned().collect()
        })
    }

    /// Whether the file has a marked workload with the kind, stated namespace and name of this key.
    pub(super) fn contains(&self, key: &WorkloadKey) -> bool {
        let names = self.names.get_or_init(|| self.find());
        names.contains(&(key.kind.clone(), key.namespace.clone(), key.name.clone()))
    }

    fn find(&self) -> HashSet<MarkedName> {
        let is_marked = |text: &&[u8]| memmem::find(text, MARKER.as_bytes()).is_some();
        let mut names = HashSet::new();
        for text in chunks(self.text).map(|chunk| chunk.text).filter(is_marked) {
            let Ok(text) = std::str::from_utf8(text) else {
                continue;
            };
            let Ok(tree) = parse(text) else { continue };
            let source = Source::new("", text);
            for object in objects_in(&tree, self.kinds) {
                let workload = Workload::find(&tree, &source, &object, self.kinds, None);
                let marked =
                    workload.filter(|workload| workload.workload_annotation(MARKER).is_some());
                names.extend(marked.map(|workload| {
                    let namespace = workload.stated_namespace().to_owned();
                    (workload.object.kind, namespace, workload.name)
                }));
            }
        }
        names
    }
}

impl RecordedDocument<'_> {
    /// Adds a change of the record to the policies that change nothing else, if the text of a recorded workload changes.
    pub(super) fn report_record_changes(&self, pending: &mut PendingWorkload<'_>) {
        let recorded = self.position(pending.workload.object.node);
        let recorded = recorded.map(|index| &self.recorded[index]);
        let Some((recorded, beside)) = recorded.zip(pending.beside.as_ref()) else {
            return;
        };
        let Some(after) = &beside.record else {
            return;
        };
        let reports = &mut pending.policies;
        let mut causes = causes(recorded, after);
        // Another order or another name makes another digest, too.
        if causes.is_empty() {
            let older = reports.iter().filter(|report| report.is_older);
            causes.extend(older.map(|report| (report.policy.to_string(), RecordCause::Version)));
        }
        for (policy, cause) in causes {
            note(reports, &policy, cause);
        }
        let is_said = |report: &PolicyReport| {
            matches!(report.outcome, Outcome::Injected(_)) || report.outcome.removals().is_some()
        };
        if let Some(first) = after.policies.first()
            && !reports.iter().any(is_said)
        {
            let cause = match recorded.is_annotated && !beside.is_annotated {
                true => RecordCause::IntoLock,
                false => RecordCause::Other,
            };
            note(reports, &first.policy, cause);
        }
    }
}

/// The policies whose record is another for a known cause.
fn causes(recorded: &RecordedObject<'_>, after: &Record) -> Vec<(String, RecordCause)> {
    let before = &recorded.record;
    let mut causes = Vec::new();
    for policy in &after.policies {
        let name = policy.policy.as_str();
        if let Some(old_name) = recorded.renamed.get(name) {
            causes.push((name.to_owned(), RecordCause::Renamed(old_name.clone())));
        } else if !before.policy(name).is_some_and(|was| was.covers(policy)) {
            let (owners, owned) = (after.owners_of(policy), before.owners_of(policy));
            let shared = (!owners.is_empty()).then_some(RecordCause::SharedWith(owners));
            let taken = (!owned.is_empty()).then_some(RecordCause::TakenOver(owned));
            let cause = shared.or(taken);
            causes.extend(cause.map(|cause| (name.to_owned(), cause)));
        }
    }
    let order_before = common_names(before, after);
    let order_after = common_names(after, before);
    let mut moved = order_after.zip(order_before);
    if let Some((name, behind)) = moved.find(|(name, behind)| name != behind) {
        causes.push((name.to_owned(), RecordCause::MovedBefore(behind.to_owned())));
    }
    causes
}

/// The policies of a record that another one names, too, in their order.
fn common_names<'r>(record: &'r Record, other: &Record) -> impl Iterator<Item = &'r str> {
    let names = record.policies.iter().map(|policy| policy.policy.as_str());
    names.filter(|name| other.policy(name).is_some())
}

/// Reports a change of the record for a policy, unless the policy changes something else.
fn note(reports: &mut Vec<PolicyReport>, policy: &str, cause: RecordCause) {
    let outcome = Outcome::Injected(vec![Change::of_record(cause)]);
    match reports.iter_mut().find(|report| *report.policy == *policy) {
        Some(report) if report.outcome == Outcome::UpToDate => report.outcome = outcome,
        Some(_) => {}
        // A policy that is not given in this run.
        None => reports.push(PolicyReport::of(policy, outcome)),
    }
}

/// Drops the removal of what stays in an object from an API server: a default, which the server would fill in again.
pub(super) fn drop_kept_defaults(
    planned: &mut WorkloadPlan<'_>,
    written: &Value,
    workload: &Workload<'_>,
) {
    if !is_live(written) {
        return;
    }
    let paths = RecordPaths::of(&workload.pod_kind.path);
    let planned_paths = DraftPaths::of(paths.clone());
    for report in &mut planned.policies {
        let record = planned.record.as_ref();
        let record = record.and_then(|record| record.policy(&report.policy));
        let (Some(record), Outcome::Injected(changes)) = (record, &mut report.outcome) else {
            continue;
        };
        let removed = record.effects.removed.keys();
        // Another policy may put there what one removes.
        let kept = removed.filter(|path| {
            paths.get(written, path).is_some()
                && planned_paths.value(&planned.draft, path).is_none()
        });
        let kept: Vec<ChangeTarget> = kept.map(|path| ChangeTarget::from_path(path)).collect();
        changes.retain(|change| {
            change.operation != Operation::Remove || !kept.contains(&change.target)
        });
        if changes.is_empty() {
            report.outcome = Outcome::UpToDate;
        }
    }
}
