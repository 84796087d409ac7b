//! Finds the records of workloads whose name, namespace, kind or file has changed since.

use std::collections::BTreeSet;

use super::{Lock, LockedPolicy, LockedRecordError, LockedWorkload, PathLookup};
use crate::ownership::WorkloadKey;
use crate::record::path::RecordPaths;
use crate::record::{Record, RecordedValue};

impl Lock {
    /// Returns the record of a workload, with its key in the lock file and the policies that its marker names. If
    /// nothing is recorded under its name, looks for the recorded workload that it was before a rename, move or copy.
    ///
    /// # Errors
    /// If several records may be meant.
    pub(crate) fn find_record(
        &self,
        workload: &MarkedWorkload<'_>,
        search: &RecordSearch<'_>,
    ) -> SearchResult {
        if let Some(own) = self.workloads.get(workload.key) {
            let locked = self.with_earlier(own, workload, search);
            let record = self.record_of(&locked, workload)?;
            return Ok(record.map(|record| found_at(workload.key, record)));
        }
        if self.namesakes(workload.key).next().is_none()
            && let Some(found) = (search.elsewhere)(workload)?
        {
            return Ok(Some(found));
        }
        let moved = self.earlier_places(workload.key, search.is_present);
        let key = if !moved.is_empty() {
            workload.choose_candidate(moved, search.is_gone)?
        } else if workload.value.has_twin_containers(workload.paths) {
            None
        } else if search.finds_copies
            && let Some(copied) = workload.copied_record(self, search.is_gone)?
        {
            let (from, record) = copied;
            return Ok(Some(FoundRecord {
                is_copied: !(search.is_gone)(&from.file),
                from,
                record,
            }));
        } else {
            let is_of_file = |candidate: &WorkloadKey| candidate.file == workload.key.file;
            workload.choose_candidate(self.candidates(&is_of_file), search.is_gone)?
        };
        key.map_or(Ok(None), |key| self.record_at(key, workload))
    }

    fn candidates(&self, is_meant: &dyn Fn(&WorkloadKey) -> bool) -> Vec<Candidate<'_>> {
        let workloads = self.workloads.iter();
        workloads.filter(|(key, _)| is_meant(key)).collect()
    }

    pub(super) fn record_at(
        &self,
        key: &WorkloadKey,
        workload: &MarkedWorkload<'_>,
    ) -> SearchResult {
        let record = self.record(key, workload)?;
        Ok(record.map(|record| found_at(key, record)))
    }
}

fn found_at(key: &WorkloadKey, record: Record) -> FoundRecord {
    FoundRecord {
        from: key.clone(),
        record,
        is_copied: false,
    }
}

/// The record that is meant for a workload.
pub(crate) struct FoundRecord {
    /// The key of its entry in the lock file.
    pub from: WorkloadKey,
    /// The record.
    pub record: Record,
    /// It is that of another workload, of which this one may be a copy.
    pub is_copied: bool,
}

/// What decides which workload without an entry of its own is meant by which entry.
pub(crate) struct RecordSearch<'s> {
    /// Whether a recorded workload of the same file is still there.
    pub is_present: &'s dyn Fn(&WorkloadKey) -> bool,
    /// Recorded workloads of a file that are not there any more, as far as that is seen at first sight.
    pub gone: &'s dyn Fn(&Lock, &str) -> &'s [WorkloadKey],
    /// Whether a recorded file is gone.
    pub is_gone: &'s dyn Fn(&str) -> bool,
    /// Whether copies of workloads of other files are looked for.
    pub finds_copies: bool,
    /// The record of a workload whose file was below another lock file before.
    pub elsewhere: &'s dyn Fn(&MarkedWorkload<'_>) -> SearchResult,
}

/// What a search of the lock files finds.
pub(crate) type SearchResult = Result<Option<FoundRecord>, LockedRecordError>;

/// A workload with podgraft's marker.
pub(crate) struct MarkedWorkload<'u> {
    /// The key that its entry in the lock file has, or would have.
    pub key: &'u WorkloadKey,
    /// The paths of its kind.
    pub paths: &'u RecordPaths,
    /// The policies that its marker names.
    pub marked: &'u [&'u str],
    /// The values in it.
    pub lookup: PathLookup<'u>,
    /// Its whole value.
    pub value: &'u RecordedValue<'u>,
}

/// Of several candidates, keeps those that fit the first rule, if there are any, of these those that fit the next, and so
/// on.
pub(super) fn prefer<C>(found: &mut Vec<C>, rules: &[&dyn Fn(&C) -> bool]) {
    for rule in rules {
        if found.len() > 1 && found.iter().any(rule) {
            found.retain(rule);
        }
    }
}

/// A recorded workload that it may have been.
type Candidate<'l> = (&'l WorkloadKey, &'l LockedWorkload);

impl Lock {
    /// Whether something is recorded of a workload, under its name or one that it may have had.
    pub(crate) fn may_name(
        &self,
        key: &WorkloadKey,
        is_present: &dyn Fn(&WorkloadKey) -> bool,
    ) -> bool {
        self.workloads.contains_key(key) || !self.earlier_places(key, is_present).is_empty()
    }

    /// Returns the recorded workloads that one may have been before it was moved or renamed: those of the same kind,
    /// namespace and name in other files, else those of its own file that are gone.
    fn earlier_places(
        &self,
        key: &WorkloadKey,
        is_present: &dyn Fn(&WorkloadKey) -> bool,
    ) -> Vec<Candidate<'_>> {
        let namesakes = self.namesakes(key);
        let namesakes: Vec<Candidate<'_>> = namesakes
            .filter_map(|key| self.workloads.get_key_value(&key))
            .collect();
        match namesakes.is_empty() {
            true => {
                self.candidates(&|candidate| candidate.file == key.file && !is_present(candidate))
            }
            false => namesakes,
        }
    }
}

impl MarkedWorkload<'_> {
    /// Returns the one that is meant. Among several, prefers those whose file is gone, the same kind, the same name, a
    /// name that contains the other, the file whose path has most in common if all files are gone, and all injected
    /// content in place, in this order.
    ///
    /// # Errors
    /// If several may be meant, and their records differ in what is the user's.
    fn choose_candidate<'l>(
        &self,
        mut found: Vec<Candidate<'l>>,
        is_gone: &dyn Fn(&str) -> bool,
    ) -> Result<Option<&'l WorkloadKey>, LockedRecordError> {
        let tie_breakers: [&dyn Fn(&Candidate<'l>) -> bool; 4] = [
            &|(key, _)| is_gone(&key.file),
            &|(key, _)| key.kind == self.key.kind,
            &|(key, _)| key.name == self.key.name,
            &|(key, _)| self.is_in_name(&key.name),
        ];
        prefer(&mut found, &tie_breakers);
        // A copy may be of a file far away, but a folder that was renamed keeps its files.
        if found.iter().all(|(key, _)| is_gone(&key.file)) {
            let in_common =
                |(key, _): &Candidate<'l>| components_in_common(&key.file, &self.key.file);
            let most = found.iter().map(in_common).max();
            found.retain(|candidate| Some(in_common(candidate)) == most);
        }
        prefer(&mut found, &[&|(_, locked)| self.has_all(locked)]);
        // What holds injected items is removed only if it is empty, so the record that knows most of it is right.
        let holders = |(_, locked): &&Candidate<'l>| {
            let policies = self.policies_of(locked);
            policies.map(|policy| policy.made.len()).sum::<usize>()
        };
        let Some(&(best, locked)) = found.iter().max_by_key(holders) else {
            return Ok(None);
        };
        // Equal records restore the same values, so any of them will do.
        if found
            .iter()
            .all(|(_, candidate)| self.is_same(locked, candidate))
        {
            return Ok(Some(best));
        }
        let says_whose =
            |(key, locked): &Candidate<'l>| key.file != self.key.file || self.has_originals(locked);
        if found.iter().any(says_whose) {
            let names = found.iter().map(|(key, _)| key.title());
            return Err(LockedRecordError::Workloads(names.collect()));
        }
        // Without original values, none is lost without a record.
        Ok(None)
    }

    /// Whether everything recorded for the policies of its marker is in place.
    fn has_all(&self, locked: &LockedWorkload) -> bool {
        let mut policies = self.policies_of(locked);
        policies.all(|policy| placed(policy).all(|path| (self.lookup)(path).is_some()))
    }

    /// Whether two records say the same, except of what was created to hold injected items.
    fn is_same(&self, left: &LockedWorkload, right: &LockedWorkload) -> bool {
        let [left, right] = [left, right].map(|locked| {
            let policies = self.policies_of(locked).cloned();
            policies.map(|policy| LockedPolicy {
                made: BTreeSet::new(),
                ..policy
            })
        });
        left.eq(right)
    }

    /// Whether the record has what cannot be found anywhere else: original values, or which text was joined.
    fn has_originals(&self, locked: &LockedWorkload) -> bool {
        self.policies_of(locked).any(|locked_policy| {
            let mut joined = locked_policy.joined.values();
            !locked_policy.replaced.is_empty()
                || !locked_policy.removed.is_empty()
                || joined.any(|join| join.text.is_some())
        })
    }

    /// The recorded changes of the policies that its marker names, in their order.
    fn policies_of<'l>(
        &self,
        locked: &'l LockedWorkload,
    ) -> impl Iterator<Item = &'l LockedPolicy> {
        let marked = self.marked.iter();
        marked.filter_map(|name| locked.policies.get(*name))
    }
}

/// The number of folders and names with which both paths begin or end.
fn components_in_common(left: &str, right: &str) -> usize {
    let is_same = |(left, right): &(&str, &str)| left == right;
    let from_start = left.split('/').zip(right.split('/')).take_while(is_same);
    let from_end = left.rsplit('/').zip(right.rsplit('/')).take_while(is_same);
    from_start.count() + from_end.count()
}

/// The places of what a policy put there.
pub(super) fn placed(policy: &LockedPolicy) -> impl Iterator<Item = &String> {
    let added = policy.added.iter().chain(&policy.shared);
    added.chain(policy.joined.keys().chain(policy.replaced.keys()))
}
