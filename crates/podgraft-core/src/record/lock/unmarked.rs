//! Finds what a workload's own lines do not say, or not under its marker, although it is in place. Two branches each changed
//! something, and the merge kept one side of a line of the manifest, or left what a policy did under an earlier name of
//! the workload.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::moved::placed;
use super::{Lock, LockedPolicy, LockedWorkload, MarkedWorkload, RecordSearch};
use crate::ownership::Record;
use crate::record::own_content::is_present;

impl Lock {
    /// Adds the policies that the marker does not name. A line that a merge brought back after an undo names nothing
    /// that is in place.
    pub(super) fn add_unmarked(
        &self,
        locked: &LockedWorkload,
        workload: &MarkedWorkload<'_>,
        record: &mut Record,
    ) {
        for (name, locked_policy) in &locked.policies {
            if workload.marked.contains(&name.as_str()) {
                continue;
            }
            if let Ok(policy) = self.policy_record(name, locked_policy, workload.lookup)
                && policy.effects.has_own_content(record, workload.lookup)
            {
                // Of policies that join texts to a variable, the one that made it came first.
                let is_first = policy.effects.joined.values().any(|joined| joined.new);
                let at = if is_first { 0 } else { record.policies.len() };
                record.policies.insert(at, policy);
            }
        }
    }

    /// Returns what is recorded of a workload, with what is recorded under names and files that it had before: one branch
    /// renamed it, and the other one changed what is injected. A workload that is gone may also have been another one,
    /// so what the manifest had before is not its own.
    pub(super) fn with_earlier<'l>(
        &'l self,
        own: &'l LockedWorkload,
        workload: &MarkedWorkload<'_>,
        search: &RecordSearch<'_>,
    ) -> Cow<'l, LockedWorkload> {
        let mut joined = Cow::Borrowed(own);
        let namesakes = self.namesakes(workload.key);
        let namesakes = namesakes.filter(|key| (search.is_gone)(&key.file));
        let of_file = (search.gone)(self, &workload.key.file).iter().cloned();
        for key in namesakes.chain(of_file) {
            let Some(earlier) = self.workloads.get(&key).filter(|_| key != *workload.key) else {
                continue;
            };
            let Ok(Some(record)) = self.record_of(&joined, workload) else {
                continue;
            };
            let mut has_joined = false;
            let policies = earlier.policies.iter();
            let marked = policies.filter(|(name, _)| workload.marked.contains(&name.as_str()));
            for (name, locked_policy) in marked {
                let own = joined.policies.get(name);
                if own.is_some_and(|own| has_other_places(own, locked_policy, workload)) {
                    continue;
                }
                let Ok(mut policy) = self.policy_record(name, locked_policy, workload.lookup)
                else {
                    continue;
                };
                // Which text was joined, the line of another workload does not say.
                if let Some(own) = own {
                    let is_other = |path: &String, _: &mut _| !own.joined.contains_key(path);
                    policy.effects.joined.retain(is_other);
                }
                policy.effects.retain_items();
                let is_in_place = policy.effects.has_own_content(&record, workload.lookup);
                if is_in_place {
                    let policies = &mut joined.to_mut().policies;
                    let own = policies.remove(name).unwrap_or_default();
                    let mut both = locked_policy.clone();
                    both.remove_present(&own.present);
                    both.join(own);
                    policies.insert(name.clone(), both);
                    has_joined = true;
                }
            }
            if has_joined {
                joined.to_mut().rest.join(earlier.rest.clone());
            }
        }
        joined
    }
}

impl LockedPolicy {
    /// Removes what the manifest had already, as the workload's own line says.
    fn remove_present(&mut self, present: &BTreeSet<String>) {
        let is_absent = |path: &String| !is_present(present, path);
        self.added.retain(is_absent);
        self.shared.retain(is_absent);
        self.joined.retain(|path, _| is_absent(path));
        self.replaced.retain(|path, _| is_absent(path));
    }
}

/// Whether something is in place where only the workload's own line has it. Then that line is of the version that is in
/// place, and lacks nothing.
fn has_other_places(
    own: &LockedPolicy,
    earlier: &LockedPolicy,
    workload: &MarkedWorkload<'_>,
) -> bool {
    placed(own).any(|path| {
        let is_known = placed(earlier).any(|known| known == path);
        !is_known && (workload.lookup)(path).is_some()
    })
}
