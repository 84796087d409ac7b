//! Finds the record of the workload that another one was copied from.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::moved::prefer;
use super::{Lock, LockedPolicy, LockedRecordError, MarkedWorkload};
use crate::ownership::WorkloadKey;
use crate::record::Record;
use crate::record::path::LISTS;
use crate::record::renamed::RecordedShare;

/// A recorded workload that another one may be a copy of.
struct CopyCandidate {
    key: WorkloadKey,
    /// Its record, with the names that its containers have in the copy.
    record: Record,
    /// How much of it is in the copy as it was put there.
    share: RecordedShare,
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
        let mut found = self.copy_candidates(lock, is_gone);
        let largest = found.iter().map(|candidate| candidate.share).max();
        found.retain(|candidate| Some(candidate.share) == largest);
        let tie_breakers: [&dyn Fn(&CopyCandidate) -> bool; 4] = [
            &|candidate| is_gone(&candidate.key.file),
            &|candidate| candidate.key.file == self.key.file,
            &|candidate| !candidate.has_renamed_containers,
            &|candidate| self.is_in_name(&candidate.key.name),
        ];
        prefer(&mut found, &tie_breakers);
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

    fn copy_candidates(&self, lock: &Lock, is_gone: &dyn Fn(&str) -> bool) -> Vec<CopyCandidate> {
        let mut found = Vec::new();
        let names_in = |list| self.value.container_names(self.paths, list);
        let containers: Vec<&str> = LISTS.into_iter().flat_map(names_in).collect();
        let is_known = |name: &String| containers.contains(&name.as_str());
        for alike in lock.alike.get(|| alike_in(lock)) {
            let of_kind = alike.iter().filter(|(key, _)| key.kind == self.key.kind);
            let best = of_kind.max_by_key(|(key, names)| {
                let has_containers = names.iter().all(is_known);
                let is_of_file = key.file == self.key.file;
                let has_name = self.is_in_name(&key.name);
                (is_gone(&key.file), is_of_file, has_containers, has_name)
            });
            let Some((key, _)) = best else { continue };
            let Ok(Some(mut record)) = lock.record(key, self) else {
                continue;
            };
            let before = record.clone();
            let has_followed = record.follow_renames(self.value).is_ok();
            if !has_followed || record.policies.len() < self.marked.len() {
                continue;
            }
            // What names the workload may have been changed with its name.
            let share = record.share_in_place(self.lookup);
            if let Some(share) = share.filter(RecordedShare::is_most) {
                found.push(CopyCandidate {
                    key: key.clone(),
                    share,
                    has_renamed_containers: record != before,
                    record,
                });
            }
        }
        found
    }

    /// Whether one of the names contains the other.
    pub(super) fn is_in_name(&self, other: &str) -> bool {
        self.key.name.contains(other) || other.contains(&self.key.name)
    }
}

/// The recorded workloads in groups with the same changes, whatever the workloads and their containers are called, so that
/// many copies are found in the time of one.
pub(super) type AlikeWorkloads = Vec<AlikeGroup>;

/// Workloads with the same changes, each with the names of its containers.
pub(super) type AlikeGroup = Vec<(WorkloadKey, Vec<String>)>;

fn alike_in(lock: &Lock) -> AlikeWorkloads {
    let mut groups: BTreeMap<String, AlikeGroup> = BTreeMap::new();
    for (key, locked) in &lock.workloads {
        let (shape, containers) = shape_of(&locked.policies);
        groups
            .entry(shape)
            .or_default()
            .push((key.clone(), containers));
    }
    groups.into_values().collect()
}

/// Returns what was recorded of a workload as text, with numbers for the names of containers, and those names.
fn shape_of(policies: &BTreeMap<String, LockedPolicy>) -> (String, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let mut shape = String::new();
    for (name, policy) in policies {
        let policy = LockedPolicy {
            generated: BTreeMap::new(),
            ..policy.clone()
        };
        let text = serde_json::to_string(&policy).unwrap_or_default();
        shape += name;
        let mut parts = text.split_inclusive("ontainers/");
        shape += parts.next().unwrap_or_default();
        for part in parts {
            // A name without a path behind it is that of an injected container.
            match part.find(['/', '"']) {
                Some(end) if part[end..].starts_with('/') => {
                    let known = names.iter().position(|name| *name == part[..end]);
                    let at = known.unwrap_or(names.len());
                    if known.is_none() {
                        names.push(part[..end].to_owned());
                    }
                    shape += &format!("{at}{}", &part[end..]);
                }
                _ => shape += part,
            }
        }
    }
    (shape, names)
}

fn holders_of(record: &Record) -> usize {
    let effects = record.policies.iter().map(|policy| &policy.effects);
    effects.map(|effects| effects.made.len()).sum()
}

/// Whether two records restore the same values.
fn has_same_originals(left: &Record, right: &Record) -> bool {
    left.policies.len() == right.policies.len()
        && left
            .policies
            .iter()
            .zip(&right.policies)
            .all(|(left, right)| {
                let (left, right) = (&left.effects, &right.effects);
                left.replaced == right.replaced && left.removed == right.removed
            })
}
