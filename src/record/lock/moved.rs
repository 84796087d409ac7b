//! Workloads whose name, namespace, kind or file is another one since they were recorded.

use serde_json::Value;

use super::super::path::Paths;
use super::{Lock, Locked, LockedPolicy};
use crate::ownership::WorkloadKey;

/// A marked workload may be any of several recorded ones, and what stood there before the injection differs between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeveralRecords {
    /// Their names in the lock file.
    pub names: Vec<String>,
}

/// A marked workload that no line of the lock file names.
pub(super) struct Unknown<'u> {
    pub key: &'u WorkloadKey,
    /// The policies of its mark.
    pub marked: &'u [&'u str],
    pub value: &'u Value,
    pub paths: &'u Paths,
    /// Whether a recorded workload of its file is still there.
    pub is_here: &'u dyn Fn(&WorkloadKey) -> bool,
}

/// A line's workload and what is recorded of it.
type Candidate<'l> = (&'l WorkloadKey, &'l Locked);

impl Unknown<'_> {
    /// The recorded workload that it was: one of its kind, namespace and name in another file; else one of its own file
    /// that is gone from there; else one of its own file, of which it is a copy. Of several it is the one with its name,
    /// or whose name is a part of its name or the other way round, and that has all that was put into it.
    pub(super) fn earlier_place<'l>(
        &self,
        lock: &'l Lock,
    ) -> Result<Option<&'l WorkloadKey>, SeveralRecords> {
        let key = self.key;
        let is_namesake = |other: &WorkloadKey| {
            (&other.kind, &other.namespace, &other.name) == (&key.kind, &key.namespace, &key.name)
        };
        let is_of_file = |other: &WorkloadKey| other.file == key.file;
        let is_gone = |other: &WorkloadKey| is_of_file(other) && !(self.is_here)(other);
        let ways: [&dyn Fn(&WorkloadKey) -> bool; 3] = [&is_namesake, &is_gone, &is_of_file];
        let mut found = ways.iter().map(|way| {
            let all = lock.workloads.iter();
            all.filter(|(other, _)| way(other)).collect::<Vec<_>>()
        });
        let found = found.find(|found| !found.is_empty());
        found.map_or(Ok(None), |found| self.choose(found))
    }

    fn choose<'l>(
        &self,
        mut found: Vec<Candidate<'l>>,
    ) -> Result<Option<&'l WorkloadKey>, SeveralRecords> {
        let name = &self.key.name;
        let rules: [&dyn Fn(&Candidate<'_>) -> bool; 4] = [
            &|(other, _)| other.kind == self.key.kind,
            &|(other, _)| other.name == *name,
            &|(other, _)| name.contains(&other.name) || other.name.contains(name),
            &|(_, locked)| self.has_all(locked),
        ];
        for rule in rules {
            if found.len() > 1 && found.iter().any(rule) {
                found.retain(rule);
            }
        }
        let (first, locked) = found[0];
        if found.iter().all(|(_, other)| self.is_same(locked, other)) {
            return Ok(Some(first));
        }
        if found.iter().any(|(_, own)| self.has_originals(own)) {
            let names = found.iter().map(|(other, _)| other.name.clone());
            return Err(SeveralRecords {
                names: names.collect(),
            });
        }
        Ok(None)
    }

    /// Whether all that is recorded of the policies of its mark is there.
    fn has_all(&self, locked: &Locked) -> bool {
        self.policies_of(locked).all(|own| {
            let added = own.added.iter().chain(&own.shared);
            let changed = own.joined.keys().chain(own.replaced.keys());
            let mut paths = added.chain(changed);
            paths.all(|path| self.paths.get(self.value, path).is_some())
        })
    }

    fn is_same(&self, one: &Locked, other: &Locked) -> bool {
        self.policies_of(one).eq(self.policies_of(other))
    }

    /// Whether what stood there before is known from the record alone.
    fn has_originals(&self, locked: &Locked) -> bool {
        self.policies_of(locked)
            .any(|own| !own.replaced.is_empty() || !own.removed.is_empty())
    }

    /// What is recorded of the policies of its mark, in their order.
    fn policies_of<'l>(&self, locked: &'l Locked) -> impl Iterator<Item = &'l LockedPolicy> {
        let marked = self.marked.iter();
        marked.filter_map(|name| locked.policies.get(*name))
    }
}
