//! The content that policies injected, which a lock file stores once for all workloads.

use std::collections::{BTreeMap, BTreeSet};

use super::policy::contents_of;
use super::{Lock, NewRecord};
use crate::ownership::WorkloadKey;

/// For how many generations content is kept. Older content is only kept while it is in use.
const GENERATIONS: u64 = 8;

/// The key of injected content: kind, policy and path, without the workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContentKey {
    pub kind: ContentKind,
    pub policy: String,
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContentKind {
    /// The digest of an item.
    Item,
    /// A text that is joined to a variable.
    Text,
}

/// The content that the workloads of a run have, by its key.
pub(super) type SeenContents = BTreeMap<ContentKey, BTreeSet<String>>;

impl Lock {
    /// Adds the content that policies injected, and returns it.
    pub(super) fn add_contents(&mut self, records: &[NewRecord<'_>]) -> SeenContents {
        let mut seen = SeenContents::new();
        let records = records
            .iter()
            .filter_map(|new| new.workload.record.as_ref());
        let policies = records.flat_map(|record| &record.policies);
        for (key, content) in policies.flat_map(contents_of) {
            let contents = seen.entry(key).or_default();
            if !contents.contains(content) {
                contents.insert(content.to_owned());
            }
        }
        for (key, contents) in &seen {
            let known = self.contents.entry(key.clone()).or_default();
            // All new content of one run has the same generation.
            let next = newest_generation(known).saturating_add(1);
            for content in contents {
                known.entry(content.clone()).or_insert(next);
            }
        }
        seen
    }

    /// Returns those of the keys whose content recorded workloads have that are meant.
    pub(super) fn used_among(
        &self,
        keys: &BTreeSet<ContentKey>,
        is_meant: impl Fn(&WorkloadKey) -> bool,
    ) -> BTreeSet<ContentKey> {
        let mut used = BTreeSet::new();
        if keys.is_empty() {
            return used;
        }
        let workloads = self.workloads.iter().filter(|(key, _)| is_meant(key));
        let policies = workloads.flat_map(|(_, locked)| &locked.policies);
        for (policy, locked_policy) in policies {
            let items = locked_policy.added.iter();
            let items = items
                .chain(&locked_policy.shared)
                .chain(locked_policy.replaced.keys());
            used.extend(items.map(|path| ContentKey::of(ContentKind::Item, policy, path)));
            let texts = locked_policy.joined.keys();
            used.extend(texts.map(|path| ContentKey::of(ContentKind::Text, policy, path)));
        }
        used.retain(|key| keys.contains(key));
        used
    }

    /// Removes old content, except what this run has `seen` and what workloads that this run has not `written` may have:
    /// their values are not known here. The content of `unseen` keys may have fallen out of use:
    /// a branch that is merged later may still have it. So it is kept for as many versions of its policy or, if no
    /// workload has the policy any more, of the policy with the most versions.
    pub(super) fn remove_old_contents(
        &mut self,
        unseen: &BTreeSet<ContentKey>,
        used_before: &BTreeSet<ContentKey>,
        seen: &SeenContents,
        written: &BTreeSet<WorkloadKey>,
    ) {
        let used = self.used_among(unseen, |_| true);
        let aged = self.contents.iter().filter(|(_, known)| has_aged(known));
        let aged = aged.map(|(key, _)| key.clone()).collect();
        let used_elsewhere = self.used_among(&aged, |key| !written.contains(key));
        let policies = self.workloads.values().flat_map(|locked| &locked.policies);
        let mut policies: BTreeMap<&str, u64> =
            policies.map(|(policy, _)| (policy.as_str(), 0)).collect();
        for (key, known) in &self.contents {
            if let Some(newest) = policies.get_mut(key.policy.as_str()) {
                *newest = newest_generation(known).max(*newest);
            }
        }
        let of_file = self.contents.values().map(newest_generation).max();
        let newest = NewestGenerations {
            of_file: of_file.unwrap_or_default(),
            policies,
        };
        self.contents.retain(|key, known| {
            if used_elsewhere.contains(key) {
                return true;
            }
            let newest = match unseen.contains(key) && !used.contains(key) {
                true => newest.of_unused(key, known, used_before.contains(key)),
                false => newest_generation(known),
            };
            let seen = seen.get(key);
            known.retain(|content, generation| {
                let is_seen = seen.is_some_and(|contents| contents.contains(content));
                is_seen || generation.saturating_add(GENERATIONS) > newest
            });
            !known.is_empty()
        });
    }
}

/// The newest generations of contents.
struct NewestGenerations<'l> {
    /// Of each policy in use.
    policies: BTreeMap<&'l str, u64>,
    of_file: u64,
}

impl NewestGenerations<'_> {
    /// The generation that counts for contents that nothing uses: that of their policy. If they fall out of use with
    /// this run, they age with the policy from now on.
    fn of_unused(
        &self,
        key: &ContentKey,
        known: &mut BTreeMap<String, u64>,
        falls_out: bool,
    ) -> u64 {
        // A policy that falls out of use counts as a version of the file, so that such policies age, too.
        let of_file = self.of_file.saturating_add(u64::from(falls_out));
        let newest = *self.policies.get(key.policy.as_str()).unwrap_or(&of_file);
        if falls_out {
            let shift = newest - newest_generation(known);
            known
                .values_mut()
                .for_each(|generation| *generation += shift);
        }
        newest
    }
}

/// Whether some of the content is older than what is kept in any case.
fn has_aged(known: &BTreeMap<String, u64>) -> bool {
    let newest = newest_generation(known);
    let mut generations = known.values();
    generations.any(|generation| generation.saturating_add(GENERATIONS) <= newest)
}

fn newest_generation(known: &BTreeMap<String, u64>) -> u64 {
    known.values().copied().max().unwrap_or_default()
}

impl ContentKey {
    /// Returns the key of content at a path. The content is the same in all containers, so the container's name
    /// becomes `*`.
    pub(super) fn of(kind: ContentKind, policy: &str, path: &str) -> Self {
        let in_list = ["pod/spec/containers/", "pod/spec/initContainers/"]
            .into_iter()
            .find_map(|list| Some((list, path.strip_prefix(list)?)));
        let in_container = in_list.and_then(|(list, rest)| Some((list, rest.split_once('/')?.1)));
        ContentKey {
            kind,
            policy: policy.to_owned(),
            path: match in_container {
                Some((list, rest)) => [list, "*/", rest].concat(),
                None => path.to_owned(),
            },
        }
    }
}
