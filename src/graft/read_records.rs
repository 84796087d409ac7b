//! The records of a document's workloads: of their annotations, or of the lock file.

use crate::manifest::object::{Found, Object};
use crate::manifest::pod::Workload;
use crate::ownership::WorkloadKey;
use crate::policy::Policy;
use crate::record::{Record, Unreadable};
use crate::source::Source;
use crate::undo::{Recorded, locked_record, read_record};
use crate::yaml::tree::{NodeId, Tree};

use super::Chunk;
use super::record_refusals::unreadable;
use super::retire::generated;

impl<'a> Chunk<'a, '_> {
    /// The records of the objects that are looked at; `None` after a problem.
    pub(super) fn read_records<'t>(
        &mut self,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        found: &[Found],
    ) -> Option<Vec<Recorded>>
    where
        'a: 't,
    {
        let objects = found.iter().filter_map(|found| match found {
            Found::Object(object) => Some(object),
            Found::Untyped { .. } => None,
        });
        let mut recorded = Vec::new();
        let mut is_readable = true;
        for object in objects {
            match self.read_record(object, tree, source) {
                Ok(Some(mut one)) if self.is_looked_at(object, tree, source) => {
                    self.rename(&mut one.record);
                    self.report.dropped.extend(generated(&one.record));
                    if !one.record.room.is_nothing() {
                        let at = self.place.start + tree.span(object.node).start;
                        self.report.rooms.push((at, one.record.room.clone()));
                    }
                    recorded.push(one);
                }
                // Who is not looked at needs what it has.
                Ok(one) => self
                    .report
                    .needed
                    .extend(one.iter().flat_map(|one| generated(&one.record))),
                Err((node, why)) => {
                    is_readable = false;
                    self.report
                        .diagnostics
                        .push(unreadable(&why, source.place(tree.span(node))));
                }
            }
        }
        is_readable.then_some(recorded)
    }

    /// The record of an object: of its annotation, else of the lock file.
    fn read_record<'t>(
        &self,
        object: &Object,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
    ) -> Result<Option<Recorded>, (NodeId, Unreadable)> {
        if let Some(annotated) = read_record(tree, object.node)? {
            return Ok(Some(annotated));
        }
        let workload = self.read_workload(object, tree, source);
        workload.map_or(Ok(None), |workload| self.locked_record(&workload))
    }

    /// What the lock file knows of a workload, under its name or an earlier one. Who adopts it needs none.
    pub(super) fn locked_record(
        &self,
        workload: &Workload<'_>,
    ) -> Result<Option<Recorded>, (NodeId, Unreadable)> {
        let is_here = |key: &WorkloadKey| self.setting.marked.is_none_or(|own| own.has(key));
        let found = locked_record(workload, self.setting.inventory.locks(), &is_here);
        found.or_else(|why| match self.setting.options.adopt {
            true => Ok(None),
            false => Err(why),
        })
    }

    /// What a policy did under its earlier name is its own.
    fn rename(&self, record: &mut Record) {
        let policies = self.setting.policies;
        for at in 0..record.policies.len() {
            let old = &record.policies[at].policy;
            let is_it = |policy: &&Policy| policy.renamed_from.as_ref() == Some(old);
            let is_given = policies.iter().any(|policy| policy.identity == *old);
            let Some(policy) = policies.iter().find(is_it).filter(|_| !is_given) else {
                continue;
            };
            if record.policy(&policy.identity).is_none() {
                record.policies[at].policy.clone_from(&policy.identity);
            }
        }
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

    fn is_looked_at<'t>(&self, object: &Object, tree: &'t Tree<'t>, source: &'t Source<'t>) -> bool
    where
        'a: 't,
    {
        let workload = self.read_workload(object, tree, source);
        workload.is_some_and(|workload| self.is_wanted(&workload))
    }
}
