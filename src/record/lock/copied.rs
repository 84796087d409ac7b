//! Finds the record of the workload that another one was copied from.

use std::cmp::Reverse;

use super::{Lock, LockedRecordError, MarkedWorkload};
use crate::ownership::WorkloadKey;
use crate::record::Record;

/// A recorded workload that another one may be a copy of.
struct CopyCandidate {
    key: WorkloadKey,
    /// Its record, with the names that its containers have in the copy.
    record: Record,
    has_renamed_containers: bool,
}

impl MarkedWorkload<'_> {
    /// Returns the record of the workload that this one is a copy of: it has the same kind, and all that was injected
    /// into it is here. Among several, prefers those with most content, then those whose file is gone, those of the
    /// same file, those with containers of the same names, and those of which one name contains the other.
    ///
    /// # Errors
    /// If the original values of several candidates differ.
    pub(crate) fn copied_record(
        &self,
        lock: &Lock,
        is_gone: &dyn Fn(&str) -> bool,
    ) -> Result<Option<(WorkloadKey, Record)>, LockedRecordError> {
        let mut found = self.copy_candidates(lock);
        let most = found
            .iter()
            .map(|candidate| size_of(&candidate.record))
            .max();
        found.retain(|candidate| Some(size_of(&candidate.record)) == most);
        let name = &self.key.name;
        let tie_breakers: [&dyn Fn(&CopyCandidate) -> bool; 4] = [
            &|candidate| is_gone(&candidate.key.file),
            &|candidate| candidate.key.file == self.key.file,
            &|candidate| !candidate.has_renamed_containers,
            &|candidate| name.contains(&candidate.key.name) || candidate.key.name.contains(name),
        ];
        for rule in tie_breakers {
            if found.iter().any(rule) {
                found.retain(rule);
            }
        }
        if found
            .windows(2)
            .any(|pair| !has_same_originals(&pair[0].record, &pair[1].record))
        {
            let names = found.iter().map(|candidate| candidate.key.title());
            return Err(LockedRecordError::Workloads(names.collect()));
        }
        // What holds injected items is removed only if it is empty, so the record that knows most of it is right.
        let found = found.into_iter();
        let best = found.min_by_key(|candidate| Reverse(holders_of(&candidate.record)));
        Ok(best.map(|candidate| (candidate.key, candidate.record)))
    }

    fn copy_candidates(&self, lock: &Lock) -> Vec<CopyCandidate> {
        let mut found = Vec::new();
        for key in lock.workloads.keys() {
            if key.kind != self.key.kind {
                continue;
            }
            let record = lock.record(key, self);
            let Ok(Some(mut record)) = record else {
                continue;
            };
            let before = record.clone();
            record.follow_renames(self.value);
            if record.policies.len() == self.marked.len() && record.is_in_place(self.lookup) {
                found.push(CopyCandidate {
                    key: key.clone(),
                    has_renamed_containers: record != before,
                    record,
                });
            }
        }
        found
    }
}

/// How many places a record has, without what holds them.
fn size_of(record: &Record) -> usize {
    let effects = record.policies.iter().map(|policy| &policy.effects);
    let sizes = effects.map(|effects| {
        effects.added.len()
            + effects.shared.len()
            + effects.joined.len()
            + effects.replaced.len()
            + effects.removed.len()
    });
    sizes.sum()
}

fn holders_of(record: &Record) -> usize {
    let effects = record.policies.iter().map(|policy| &policy.effects);
    effects.map(|effects| effects.made.len()).sum()
}

/// Whether two records restore the same values.
fn has_same_originals(left: &Record, right: &Record) -> bool {
    let originals = |record: &Record| {
        let effects = record.policies.iter().map(|policy| &policy.effects);
        effects
            .map(|effects| (effects.replaced.clone(), effects.removed.clone()))
            .collect::<Vec<_>>()
    };
    originals(left) == originals(right)
}
