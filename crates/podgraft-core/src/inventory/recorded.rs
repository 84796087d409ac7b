//! The generated objects that the records of earlier runs name.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Inventory, KnownObject, SourceRole, written_name};
use crate::options::Options;
use crate::outcome::{GeneratedObject, ObjectName};
use crate::policy::Policy;
use crate::record::live::as_created;
use crate::record::lock::LockSet;
use crate::record::{PolicyRecord, digest};

/// A policy in the record of a workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedPolicy {
    /// Its name.
    pub name: String,
    /// The set that it belongs to.
    pub set: Option<String>,
}

impl RecordedPolicy {
    /// Whether what the policy did stays: this run neither applies nor removes it.
    pub(crate) fn is_kept(&self, policies: &[Policy], options: &Options) -> bool {
        let is_given = policies.iter().any(|policy| {
            policy.identity == self.name || policy.renamed_from.as_ref() == Some(&self.name)
        });
        !is_given && !options.removes(&self.name, self.set.as_ref())
    }
}

/// Generated objects by name and digest, with the policies that need them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RecordedObjects(BTreeMap<(String, String), BTreeSet<RecordedPolicy>>);

impl RecordedObjects {
    fn insert(&mut self, name: String, digest: String, policy: RecordedPolicy) {
        self.0.entry((name, digest)).or_default().insert(policy);
    }

    /// Adds the objects of a policy's record.
    pub(super) fn add_policy(&mut self, recorded: PolicyRecord) {
        let policy = RecordedPolicy {
            name: recorded.policy,
            set: recorded.set,
        };
        for (name, digests) in recorded.generated {
            for digest in digests.split(' ') {
                self.insert(name.clone(), digest.to_owned(), policy.clone());
            }
        }
    }

    /// Adds the objects of other records.
    pub(super) fn add(&mut self, other: RecordedObjects) {
        for (object, policies) in other.0 {
            self.0.entry(object).or_default().extend(policies);
        }
    }
}

impl Inventory {
    /// The policies that generated an object with this content, as the records of all workloads say.
    pub(crate) fn recorded_policies(
        &self,
        name: &str,
        digest: &str,
    ) -> impl Iterator<Item = &RecordedPolicy> {
        let objects = &self.recorded.0;
        let key = || (name.to_owned(), digest.to_owned());
        let known = (!objects.is_empty()).then(|| objects.get(&key()));
        known.flatten().into_iter().flatten()
    }

    /// Sets the manifest of the object's name aside if an earlier run generated it with other content: what depends on
    /// it must see what this run makes of it. Returns whether there was one.
    pub(super) fn set_replaced_aside(&mut self, companion: &GeneratedObject) -> bool {
        let is_earlier = self.objects.get(&companion.name).is_some_and(|known| {
            known.role == SourceRole::Manifest
                && known.value != companion.object
                && self.is_recorded(&known.value)
        });
        let known = is_earlier.then(|| self.objects.remove(&companion.name));
        let known = known.flatten().map(|known| (companion.name.clone(), known));
        self.replaced.extend(known);
        is_earlier
    }

    /// Sets the manifests aside that an earlier run generated and that this run takes out: those of policies that it
    /// removes, or applies and that do not generate them any more. What it generates is added before, or `present`.
    pub fn set_removed_aside(
        &mut self,
        policies: &[Policy],
        options: &Options,
        present: &[ObjectName],
    ) {
        let known = self.recorded.0.keys();
        let known: BTreeSet<&str> = known.map(|(name, _)| name.as_str()).collect();
        // Workloads that are not chosen keep what they have.
        if known.is_empty() || !options.workloads.is_empty() {
            return;
        }
        let of_run = self.locks.files.keys().map(|name| &**name);
        let elsewhere = self.locks.generated_elsewhere(of_run);
        let elsewhere: BTreeSet<String> = elsewhere.into_iter().map(|object| object.name).collect();
        // A workload may need an object of a folder above its own.
        let generated = present.iter().chain(self.generated.keys());
        let generated: BTreeSet<ObjectName> = generated.map(ObjectName::without_folder).collect();
        let is_removed = |(name, object): &(&ObjectName, &KnownObject<Arc<Value>>)| {
            let written = written_name(&object.value);
            if object.role != SourceRole::Manifest
                || !known.contains(&*written)
                || elsewhere.contains(&written)
                || generated.contains(&name.without_folder())
            {
                return false;
            }
            let digest = digest(&as_created(&object.value));
            let mut recorded = self.recorded_policies(&written, &digest).peekable();
            recorded.peek().is_some() && !recorded.any(|policy| policy.is_kept(policies, options))
        };
        let removed = self.objects.iter().filter(is_removed);
        let removed: Vec<ObjectName> = removed.map(|(name, _)| name.clone()).collect();
        for name in removed {
            self.replaced.extend(self.objects.remove_entry(&name));
            self.data.remove(&name);
        }
    }

    fn is_recorded(&self, object: &Value) -> bool {
        let (name, digest) = key_in_records(object);
        self.recorded_policies(&name, &digest).next().is_some()
    }

    /// Adds the lock files of the run.
    pub fn add_locks(&mut self, locks: Arc<LockSet>) {
        for object in locks.generated() {
            let policy = RecordedPolicy {
                name: object.policy,
                set: object.set,
            };
            self.recorded.insert(object.name, object.digest, policy);
        }
        self.locks = locks;
    }

    /// The lock files of the run.
    pub fn locks(&self) -> &Arc<LockSet> {
        &self.locks
    }
}

/// The name and the digest by which records know an object.
pub(crate) fn key_in_records(object: &Value) -> (String, String) {
    (written_name(object), digest(&as_created(object)))
}
