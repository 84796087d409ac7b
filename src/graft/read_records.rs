//! Reads the records of a document's workloads, from annotations or the lock file.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::manifest::object::{DocumentContent, Object};
use crate::manifest::pod::Workload;
use crate::outcome::GeneratedRecord;
use crate::ownership::{TextAdjustment, WorkloadKey};
use crate::policy::Policy;
use crate::record::lock::RecordSearch;
use crate::record::{Record, RecordError};
use crate::source::Source;
use crate::undo::{RecordedObject, locked_record, read_record};
use crate::yaml::tree::{NodeId, Tree};

use super::document::DocumentTask;
use super::prune::generated;
use super::record_refusals::unreadable;

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

impl<'a> DocumentTask<'a> {
    /// Reads the records of a document. Empty if no earlier run left a trace and this run records nothing.
    ///
    /// # Errors
    /// One for each record that cannot be read.
    pub(super) fn read_records<'t>(
        &self,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        found: &[DocumentContent],
    ) -> Result<Records<'t>, Vec<Diagnostic>>
    where
        'a: 't,
    {
        let mut records = Records::default();
        if !self.has_records() {
            return Ok(records);
        }
        let mut problems = Vec::new();
        for found in found {
            let DocumentContent::Object(object) = found else {
                continue;
            };
            let workload = self.read_workload(object, tree, source);
            let is_selected = || {
                let workload = workload.as_ref();
                workload.is_some_and(|workload| self.is_wanted(workload))
            };
            match self.read_record(tree, object.node, workload.as_ref()) {
                Ok(Some(mut recorded_object)) if is_selected() => {
                    recorded_object.renamed = self.rename(&mut recorded_object.record);
                    records.dropped.extend(generated(&recorded_object.record));
                    if !recorded_object.record.room.is_nothing() {
                        let at = self.place.start + tree.span(object.node).start;
                        records
                            .rooms
                            .push((at, recorded_object.record.room.clone()));
                    }
                    records.recorded.push(recorded_object);
                }
                Ok(recorded_object) => {
                    let needed = recorded_object
                        .iter()
                        .flat_map(|recorded_object| generated(&recorded_object.record));
                    records.needed.extend(needed);
                }
                Err((node, error)) => {
                    problems.push(unreadable(&error, source.place(tree.span(node))));
                }
            }
        }
        match problems.is_empty() {
            true => Ok(records),
            false => Err(problems),
        }
    }

    /// Returns the record of an object, from its annotation, else from the lock file.
    fn read_record<'t>(
        &self,
        tree: &'t Tree<'t>,
        object: NodeId,
        workload: Option<&Workload<'t>>,
    ) -> Result<Option<RecordedObject<'t>>, (NodeId, RecordError)> {
        if let Some(annotated) = read_record(tree, object)? {
            return Ok(Some(annotated));
        }
        workload.map_or(Ok(None), |workload| self.locked_record(workload))
    }

    /// Returns the lock file's record of a workload, under its current or an earlier name. With `adopt` an ambiguous
    /// record counts as none.
    pub(super) fn locked_record<'t>(
        &self,
        workload: &Workload<'t>,
    ) -> Result<Option<RecordedObject<'t>>, (NodeId, RecordError)> {
        let marked = self.setting.marked;
        let is_present = |key: &WorkloadKey| marked.is_none_or(|marked| marked.contains(key));
        let (locks, options) = (self.setting.inventory.locks(), self.setting.options);
        let is_gone = |file: &str| locks.is_gone_beside(&workload.source.name, file);
        // Undo takes out what is recorded, and adoption takes what is there.
        let finds_copies = !options.take_out.is_undo() && !options.adopt;
        let search = RecordSearch {
            is_present: &is_present,
            is_gone: finds_copies.then_some(&is_gone),
        };
        let found = locked_record(workload, locks, &search);
        found.or_else(|error| match options.adopt {
            true => Ok(None),
            false => Err(error),
        })
    }

    /// Renames policies in a record: what a policy did under its earlier name is its own. Returns the earlier names, by
    /// the new ones.
    fn rename(&self, record: &mut Record) -> BTreeMap<String, String> {
        let mut renamed = BTreeMap::new();
        let policies = self.setting.policies;
        for at in 0..record.policies.len() {
            let old = &record.policies[at].policy;
            let is_renamed = |policy: &&Policy| policy.renamed_from.as_ref() == Some(old);
            let is_given = policies.iter().any(|policy| policy.identity == *old);
            let Some(policy) = policies.iter().find(is_renamed).filter(|_| !is_given) else {
                continue;
            };
            if record.policy(&policy.identity).is_none() {
                let name = &mut record.policies[at].policy;
                let before = std::mem::replace(name, policy.identity.clone());
                renamed.insert(policy.identity.clone(), before);
            }
        }
        renamed
    }

    pub(super) fn read_workload<'t>(
        &self,
        object: &Object,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
    ) -> Option<Workload<'t>>
    where
        'a: 't,
    {
        let kind = self.setting.kinds.find(&object.api_version, &object.kind)?;
        let namespace = self.setting.options.namespace_in(self.setting.name);
        Workload::read(tree, source, object.clone(), kind, namespace).ok()
    }
}
