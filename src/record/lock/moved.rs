//! Finds the records of workloads whose name, namespace, kind or file has changed since.

use super::{Lock, LockedPolicy, LockedRecordError, LockedWorkload, PathLookup};
use crate::ownership::WorkloadKey;
use crate::record::Record;
use crate::record::path::RecordPaths;

impl Lock {
    /// Returns the record of a workload, with its key in the lock file and the policies that its marker names. If
    /// nothing is recorded under its name, looks for the recorded workload that it was before a rename, move or copy.
    /// `is_present` tells whether a recorded workload of the file is still there.
    ///
    /// # Errors
    /// If several records may be meant.
    pub fn find_record(
        &self,
        key: &WorkloadKey,
        paths: &RecordPaths,
        marked: &[&str],
        lookup: PathLookup<'_>,
        is_present: &dyn Fn(&WorkloadKey) -> bool,
    ) -> Result<Option<(WorkloadKey, Record)>, LockedRecordError> {
        let unknown = UnrecordedWorkload {
            key,
            marked,
            lookup,
            is_present,
        };
        let key = match self.workloads.contains_key(key) {
            true => Some(key),
            false => unknown.earlier_place(self)?,
        };
        let Some(key) = key else { return Ok(None) };
        let record = self.record(key, paths, marked, lookup)?;
        Ok(record.map(|record| (key.clone(), record)))
    }
}

/// A marked workload without an entry in the lock file.
struct UnrecordedWorkload<'u> {
    key: &'u WorkloadKey,
    /// The policies that its marker names.
    marked: &'u [&'u str],
    lookup: PathLookup<'u>,
    /// Whether a recorded workload of its file is still there.
    is_present: &'u dyn Fn(&WorkloadKey) -> bool,
}

/// A recorded workload that it may have been.
type Candidate<'l> = (&'l WorkloadKey, &'l LockedWorkload);

impl UnrecordedWorkload<'_> {
    /// Returns the recorded workload that it was: one of the same kind, namespace and name in another file; else one
    /// of its own file that is gone; else one of its own file, of which it is a copy. Among several, prefers the same
    /// kind, the same name, a name that contains the other, and all injected content in place, in this order.
    fn earlier_place<'l>(
        &self,
        lock: &'l Lock,
    ) -> Result<Option<&'l WorkloadKey>, LockedRecordError> {
        let key = self.key;
        let is_namesake = |candidate: &WorkloadKey| {
            (&candidate.kind, &candidate.namespace, &candidate.name)
                == (&key.kind, &key.namespace, &key.name)
        };
        let is_of_file = |candidate: &WorkloadKey| candidate.file == key.file;
        let is_gone =
            |candidate: &WorkloadKey| is_of_file(candidate) && !(self.is_present)(candidate);
        let matchers: [&dyn Fn(&WorkloadKey) -> bool; 3] = [&is_namesake, &is_gone, &is_of_file];
        let mut found = matchers.iter().map(|matcher| {
            let workloads = lock.workloads.iter();
            workloads
                .filter(|(candidate, _)| matcher(candidate))
                .collect::<Vec<_>>()
        });
        let found = found.find(|found| !found.is_empty());
        found.map_or(Ok(None), |found| self.choose_candidate(found))
    }

    fn choose_candidate<'l>(
        &self,
        mut found: Vec<Candidate<'l>>,
    ) -> Result<Option<&'l WorkloadKey>, LockedRecordError> {
        let name = &self.key.name;
        let tie_breakers: [&dyn Fn(&Candidate<'_>) -> bool; 4] = [
            &|(key, _)| key.kind == self.key.kind,
            &|(key, _)| key.name == *name,
            &|(key, _)| name.contains(&key.name) || key.name.contains(name),
            &|(_, locked)| self.has_all(locked),
        ];
        for rule in tie_breakers {
            if found.len() > 1 && found.iter().any(rule) {
                found.retain(rule);
            }
        }
        // Equal records restore the same values, so any of them will do. If they differ but have no original values,
        // none is lost without a record.
        let (first, locked) = found[0];
        if found
            .iter()
            .all(|(_, candidate)| self.is_same(locked, candidate))
        {
            return Ok(Some(first));
        }
        if found.iter().any(|(_, locked)| self.has_originals(locked)) {
            let names = found.iter().map(|(key, _)| key.title());
            return Err(LockedRecordError::Workloads(names.collect()));
        }
        Ok(None)
    }

    /// Whether everything recorded for the policies of its marker is in place.
    fn has_all(&self, locked: &LockedWorkload) -> bool {
        self.policies_of(locked).all(|locked_policy| {
            let added = locked_policy.added.iter().chain(&locked_policy.shared);
            let changed = locked_policy
                .joined
                .keys()
                .chain(locked_policy.replaced.keys());
            let mut paths = added.chain(changed);
            paths.all(|path| (self.lookup)(path).is_some())
        })
    }

    fn is_same(&self, left: &LockedWorkload, right: &LockedWorkload) -> bool {
        self.policies_of(left).eq(self.policies_of(right))
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
