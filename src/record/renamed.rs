//! Follows containers that were renamed since a record was written, so that their injected content is not left behind
//! and reported as removed.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use super::joined_text::without;
use super::lock::PathLookup;
use super::path::{RecordPaths, split_last};
use super::recorded_value::RecordedValue;
use super::{Effects, Record, digest};

const LISTS: [&str; 2] = ["containers", "initContainers"];

impl Record {
    /// Renames containers in the paths of the record. A container that is gone gets the name of the only unrecorded
    /// container that has all its injected content, else of the only one that has most of it: somebody may have changed
    /// the rest.
    pub fn follow_renames(&mut self, object: &RecordedValue<'_>) {
        let template = || self.pod.split('.').filter(|key| !key.is_empty());
        let has_all = LISTS.into_iter().all(|list| {
            let names = object.container_names(template(), list);
            let known = self.containers(list);
            known.iter().all(|name| names.contains(&name.as_str()))
        });
        if has_all {
            return;
        }
        let template = template().try_fold(object.whole(), |value, key| value.get(key));
        let Some(spec) = template.and_then(|template| template.get("spec")) else {
            return;
        };
        for list in LISTS {
            let items = spec.get(list).and_then(Value::as_array);
            let containers: BTreeMap<&str, &Value> = items
                .into_iter()
                .flatten()
                .filter_map(|item| Some((item.get("name")?.as_str()?, item)))
                .collect();
            let known = self.containers(list);
            let mut free: Vec<_> = containers
                .iter()
                .filter(|(name, _)| !known.contains(**name))
                .collect();
            let gone = known
                .iter()
                .filter(|name| !containers.contains_key(name.as_str()));
            let mut gone: Vec<_> = gone.collect();
            for is_fitting in [RecordedShare::is_all, RecordedShare::is_most] {
                gone.retain(|old_name| {
                    let is_fit = |container| is_fitting(&self.share(list, old_name, container));
                    let fitting: Vec<usize> = (0..free.len())
                        .filter(|&index| is_fit(free[index].1))
                        .collect();
                    let [index] = fitting[..] else { return true };
                    let (name, _) = free.remove(index);
                    self.rename(list, old_name, name);
                    false
                });
            }
        }
    }

    /// Returns how much of what the record names is in place with content that its policies put there. `None` if a
    /// place is missing, or one that they removed is not. What a later policy changed again does not count.
    pub(super) fn share_in_place(&self, lookup: PathLookup<'_>) -> Option<RecordedShare> {
        let mut share = RecordedShare { found: 0, all: 0 };
        for (index, policy) in self.policies.iter().enumerate() {
            let later = &self.policies[index + 1..];
            let is_last =
                |path: &String| !later.iter().any(|policy| affects(&policy.effects, path));
            let effects = &policy.effects;
            let added = effects.added.iter().chain(&effects.shared);
            let replaced = effects.replaced.iter();
            let replaced = replaced.map(|(path, replaced)| (path, &replaced.now));
            for (path, digests) in added.chain(replaced).filter(|(path, _)| is_last(path)) {
                share.count(is_one_of(&lookup(path)?, digests));
            }
            for (path, joined) in effects.joined.iter().filter(|(path, _)| is_last(path)) {
                let value = lookup(&format!("{path}/value"))?;
                let rest = value.as_str().and_then(|text| without(text, joined));
                // A variable of the policy's own is another thing than one that the text was joined to.
                if rest
                    .as_ref()
                    .is_some_and(|rest| rest.is_empty() != joined.new)
                {
                    return None;
                }
                share.count(rest.is_some());
            }
            for path in effects.removed.keys().filter(|path| is_last(path)) {
                if lookup(path).is_some() {
                    return None;
                }
                share.count(true);
            }
        }
        Some(share)
    }

    fn effects(&self) -> impl Iterator<Item = &Effects> {
        self.policies.iter().map(|policy| &policy.effects)
    }

    /// The names of recorded containers in a list: those with injected content, and those that were injected.
    fn containers(&self, list: &str) -> BTreeSet<String> {
        let within = format!("pod/spec/{list}/");
        let paths = self.effects().flat_map(|effects| {
            let added = effects.added.keys().chain(effects.joined.keys());
            added.chain(effects.replaced.keys())
        });
        paths
            .filter_map(|path| path.strip_prefix(&within)?.split('/').next())
            .filter(|name| !name.contains('~'))
            .map(str::to_owned)
            .collect()
    }

    /// How much a container has of what the record says about the container `name`. What a later policy removed or
    /// changed again does not count.
    fn share(&self, list: &str, name: &str, container: &Value) -> RecordedShare {
        let container_path = format!("pod/spec/{list}/{name}");
        let within = format!("{container_path}/");
        let mut named = container.clone();
        named["name"] = Value::from(name);
        let mut share = RecordedShare { found: 0, all: 0 };
        for (index, policy) in self.policies.iter().enumerate() {
            let later = &self.policies[index + 1..];
            let effects = &policy.effects;
            let added = effects.added.iter().filter_map(|(path, now)| {
                if *path == container_path {
                    return Some((path, is_one_of(&named, now)));
                }
                let current = below(container, path.strip_prefix(&within)?);
                Some((path, current.is_some_and(|current| is_one_of(current, now))))
            });
            let joined = effects.joined.iter().filter_map(|(path, joined)| {
                let (list, _) = split_last(path.strip_prefix(&within)?);
                let variable = (list == "env").then(|| below(container, &path[within.len()..]));
                let text = variable
                    .flatten()
                    .and_then(|item| item.get("value")?.as_str());
                Some((
                    path,
                    text.is_some_and(|text| without(text, joined).is_some()),
                ))
            });
            let replaced = effects.replaced.iter().filter_map(|(path, replaced)| {
                let current = below(container, path.strip_prefix(&within)?);
                let fits = current.is_some_and(|current| is_one_of(current, &replaced.now));
                Some((path, fits))
            });
            for (path, fits) in added.chain(joined).chain(replaced) {
                if !later.iter().any(|later| affects(&later.effects, path)) {
                    share.count(fits);
                }
            }
        }
        share
    }

    fn rename(&mut self, list: &str, old_name: &str, new_name: &str) {
        let (old_path, new_path) = (
            format!("pod/spec/{list}/{old_name}"),
            format!("pod/spec/{list}/{new_name}"),
        );
        let follow = |path: String| match path.strip_prefix(&old_path) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{new_path}{rest}"),
            _ => path,
        };
        fn rename_keys<T>(map: &mut BTreeMap<String, T>, follow: impl Fn(String) -> String) {
            let entries = std::mem::take(map).into_iter();
            *map = entries.map(|(path, value)| (follow(path), value)).collect();
        }
        for effects in self.policies.iter_mut().map(|policy| &mut policy.effects) {
            let Effects {
                added,
                shared,
                made,
                filled,
                joined,
                replaced,
                removed,
            } = effects;
            rename_keys(added, follow);
            rename_keys(shared, follow);
            rename_keys(filled, follow);
            rename_keys(joined, follow);
            rename_keys(replaced, follow);
            rename_keys(removed, follow);
            *made = std::mem::take(made).into_iter().map(follow).collect();
        }
    }
}

/// How many of the recorded effects on a container another one has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordedShare {
    all: usize,
    found: usize,
}

impl RecordedShare {
    fn count(&mut self, is_found: bool) {
        self.all += 1;
        self.found += usize::from(is_found);
    }

    fn is_all(&self) -> bool {
        self.all > 0 && self.found == self.all
    }

    pub(super) fn is_most(&self) -> bool {
        self.found * 2 > self.all
    }
}

/// Whether a policy changed a path, something above it or something below it.
pub(super) fn affects(effects: &Effects, path: &str) -> bool {
    let below = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let keys = effects.added.keys().chain(effects.joined.keys());
    let keys = keys.chain(effects.replaced.keys());
    let mut keys = keys.chain(effects.removed.keys());
    keys.any(|changed_path| below(path, changed_path) || below(changed_path, path))
}

/// Whether a value has one of the recorded digests, which are separated by spaces.
fn is_one_of(value: &Value, digests: &str) -> bool {
    let current_digest = digest(value);
    digests.split(' ').any(|known| known == current_digest)
}

/// Returns the value at a path below a container.
fn below<'v>(container: &'v Value, path: &str) -> Option<&'v Value> {
    RecordPaths::of(&[]).get(container, path)
}
