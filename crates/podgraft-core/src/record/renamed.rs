//! Follows containers that were renamed since a record was written, so that their injected content is not left behind
//! and reported as removed.

use foldhash::HashSet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use super::joined_text::without;
use super::lock::PathLookup;
use super::path::{LISTS, RecordPaths, rest_below, split_last};
use super::recorded_value::{RecordedValue, container_names};
use super::{Effects, JoinedText, Record, RecordError, digest};
use crate::ownership::TextCandidates;
use crate::yaml::tree::{NodeId, Tree};

impl Record {
    /// Renames containers in the paths of the record. A container that is gone gets the name of the unrecorded container
    /// that has all its injected content, else of the one that has most of it: somebody may have changed the rest.
    ///
    /// # Errors
    /// If several containers may have had the name, and the record says different things of them.
    pub(crate) fn follow_renames(&mut self, object: &RecordedValue<'_>) -> Result<(), RecordError> {
        self.follow_containers(object)?;
        self.decide_texts(object);
        Ok(())
    }

    fn follow_containers(&mut self, object: &RecordedValue<'_>) -> Result<(), RecordError> {
        let paths = self.paths();
        let has_all = LISTS.into_iter().all(|list| {
            let names = object.container_names(&paths, list);
            let known = self.containers(list);
            known.iter().all(|name| names.contains(&name.as_str()))
        });
        if has_all {
            return Ok(());
        }
        let mut keys = paths.template_keys();
        let template = keys.try_fold(object.whole(), |value, key| value.get(key));
        let Some(spec) = template.and_then(|template| template.get("spec")) else {
            return Ok(());
        };
        for (list, other_list) in LISTS.into_iter().zip(LISTS.into_iter().rev()) {
            self.follow_moves(list, other_list, spec);
        }
        for list in LISTS {
            let mut containers = containers_in(spec, list);
            let mut gone = self.containers(list);
            let known = gone.clone();
            gone.retain(|name| !containers.contains_key(name.as_str()));
            let lookup = |path: &str| paths.get(object.whole(), path).cloned();
            self.join_renamed(list, &mut gone, &containers, &lookup)?;
            containers.retain(|name, container| {
                let is_untouched = self.untouched.contains(&format!("{list}/{name}"));
                // It may be another container under the name of one that is gone.
                let has_all = |name: &String| self.share(list, name, container).is_all();
                !known.contains(*name) && (!is_untouched || gone.iter().any(has_all))
            });
            self.follow_in(list, gone, containers)?;
        }
        Ok(())
    }

    /// Decides by the variables which texts were joined to them.
    fn decide_texts(&mut self, object: &RecordedValue<'_>) {
        let paths = self.paths();
        let effects = self.policies.iter_mut().map(|policy| &mut policy.effects);
        let joined = effects.flat_map(|effects| &mut effects.joined);
        for (path, joined) in joined.filter(|(_, joined)| !joined.candidates.0.is_empty()) {
            let value = paths.get(object.whole(), &format!("{path}/value"));
            let value = value.and_then(Value::as_str).unwrap_or_default();
            if let Some(text) = joined.candidate_in(value).map(str::to_owned) {
                joined.text = text;
            }
            joined.candidates = TextCandidates::default();
        }
    }

    /// Notes the containers of a pod that the record does not name, if it names some.
    pub(crate) fn note_untouched(&mut self, tree: &Tree<'_>, pod_spec: NodeId) {
        let known = LISTS.map(|list| self.changed_containers(list).collect::<HashSet<&str>>());
        if known.iter().all(HashSet::is_empty) {
            return;
        }
        let mut found = BTreeSet::new();
        for (list, known) in LISTS.into_iter().zip(known) {
            let names = container_names(tree, pod_spec, list);
            let untouched = names.filter(|name| !known.contains(*name));
            found.extend(untouched.map(|name| format!("{list}/{name}")));
        }
        self.untouched = found;
    }

    /// Follows containers that somebody moved to the other list, as one that becomes a native sidecar.
    fn follow_moves(&mut self, list: &str, other_list: &str, spec: &Value) {
        let (present, moved) = (containers_in(spec, list), containers_in(spec, other_list));
        let known = self.containers(other_list);
        for name in self.containers(list) {
            let is_gone = !present.contains_key(name.as_str()) && !known.contains(&name);
            let container = moved.get(name.as_str()).filter(|_| is_gone);
            if container.is_some_and(|container| self.share(list, &name, container).is_most()) {
                self.rename([list, &name], [other_list, &name]);
            }
        }
    }

    /// Joins what is recorded under two names of a container: one branch renamed it, and the other one changed what is
    /// injected. Such a name is no longer `gone`.
    fn join_renamed(
        &mut self,
        list: &str,
        gone: &mut BTreeSet<String>,
        containers: &BTreeMap<&str, &Value>,
        lookup: PathLookup<'_>,
    ) -> Result<(), RecordError> {
        for old_name in std::mem::take(gone) {
            let within = format!("pod/spec/{list}/{old_name}");
            let is_within = |path: &str| rest_below(path, &within).is_some();
            let (mut alone, mut others) = (self.clone(), self.clone());
            for policy in &mut alone.policies {
                policy.effects.retain(is_within);
            }
            for policy in &mut others.policies {
                policy.effects.retain(|path| !is_within(path));
            }
            let known = others.containers(list);
            let names = containers.keys().filter(|name| known.contains(**name));
            let names = names.filter(|name| !self.tells_apart(list, &old_name, name));
            let joined = names.filter_map(|name| {
                let mut renamed = alone.clone();
                renamed.rename([list, &old_name], [list, name]);
                let is_in_place = |effects: &Effects| effects.has_own_content(&others, lookup);
                let has_own = renamed.effects().any(is_in_place);
                has_own.then_some((*name, renamed))
            });
            let mut joined: Vec<(&str, Record)> = joined.collect();
            match joined.pop() {
                None => {
                    gone.insert(old_name);
                }
                Some((_, renamed)) if joined.is_empty() => {
                    for (policy, renamed) in others.policies.iter_mut().zip(renamed.policies) {
                        let own = std::mem::replace(&mut policy.effects, renamed.effects);
                        policy.effects.extend(own);
                    }
                    *self = others;
                }
                Some((last, _)) => {
                    let names = joined.iter().map(|(name, _)| *name).chain([last]);
                    let names = names.map(str::to_owned).collect();
                    return Err(RecordError::Containers(old_name, names));
                }
            }
        }
        Ok(())
    }

    /// Whether one run of a policy changed both containers, so that they are two.
    fn tells_apart(&self, list: &str, old_name: &str, name: &str) -> bool {
        let has_changed =
            |effects: &Effects, name: &str| affects(effects, &format!("pod/spec/{list}/{name}"));
        let mut of_one_run = self.policies.iter().filter(|policy| !policy.is_merged.0);
        of_one_run.any(|policy| {
            has_changed(&policy.effects, old_name) && has_changed(&policy.effects, name)
        })
    }

    /// Gives the containers that are `gone` the names of `free` ones.
    fn follow_in(
        &mut self,
        list: &str,
        mut gone: BTreeSet<String>,
        mut free: BTreeMap<&str, &Value>,
    ) -> Result<(), RecordError> {
        for is_fitting in [RecordedShare::is_all, RecordedShare::is_most] {
            let fitting = self.fitting(list, &gone, &free, is_fitting);
            for (old_name, names) in &fitting {
                let [name] = names[..] else { continue };
                let rivals = fitting.iter().filter(|(_, others)| others.contains(&name));
                if rivals.count() == 1 {
                    self.rename([list, old_name], [list, name]);
                    gone.remove(old_name);
                    free.remove(name);
                }
            }
        }
        let fitting = self.fitting(list, &gone, &free, RecordedShare::is_most);
        if let Some((first, names)) = fitting.first() {
            // Where the record says the same of all of them, it makes no difference which is which.
            let effects = self.effects_on(list, first);
            let is_alike = |(old_name, others): &(String, Vec<&str>)| {
                others == names && self.effects_on(list, old_name) == effects
            };
            if !fitting.iter().all(is_alike) || fitting.len() < names.len() {
                let names = names.iter().map(|name| (*name).to_owned()).collect();
                return Err(RecordError::Containers(first.clone(), names));
            }
            for ((old_name, _), name) in fitting.iter().zip(names) {
                self.rename([list, old_name], [list, name]);
                gone.remove(old_name);
                free.remove(name);
            }
        }
        // What was only removed leaves no trace in a container.
        if let ([old_name], [(name, container)]) =
            (&*Vec::from_iter(&gone), &*Vec::from_iter(&free))
            && self.share(list, old_name, container).is_unknown()
        {
            self.rename([list, old_name], [list, name]);
            return Ok(());
        }
        gone.iter()
            .try_for_each(|old_name| self.refuse_doubt(list, old_name, &free))
    }

    /// Refuses a container that is gone if others have some of what was injected into it, or may lack what was removed
    /// from it: its record would be lost.
    fn refuse_doubt(
        &self,
        list: &str,
        old_name: &str,
        free: &BTreeMap<&str, &Value>,
    ) -> Result<(), RecordError> {
        let is_in_doubt = |container: &Value| {
            let share = self.share(list, old_name, container);
            share.found > 0 || share.is_unknown()
        };
        let names = free.iter().filter(|(_, container)| is_in_doubt(container));
        let names: Vec<String> = names.map(|(name, _)| (*name).to_owned()).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(RecordError::Containers(old_name.to_owned(), names))
    }

    /// The containers that fit each name, for those names that one fits.
    fn fitting<'f>(
        &self,
        list: &str,
        gone: &BTreeSet<String>,
        free: &BTreeMap<&'f str, &Value>,
        is_fitting: fn(&RecordedShare) -> bool,
    ) -> Vec<(String, Vec<&'f str>)> {
        let fitting = gone.iter().map(|old_name| {
            let is_fit = |container| is_fitting(&self.share(list, old_name, container));
            let names = free.iter().filter(|(_, container)| is_fit(container));
            (old_name.clone(), names.map(|(name, _)| *name).collect())
        });
        fitting
            .filter(|(_, names): &(_, Vec<&str>)| !names.is_empty())
            .collect()
    }

    /// What each policy did to a container, without its name.
    fn effects_on(&self, list: &str, name: &str) -> Vec<Effects> {
        let within = format!("pod/spec/{list}/{name}");
        let is_within = |path: &str| rest_below(path, &within).is_some();
        let mut alone = self.clone();
        for policy in &mut alone.policies {
            policy.effects.retain(is_within);
        }
        alone.rename([list, name], [list, ""]);
        let policies = alone.policies.into_iter();
        policies.map(|policy| policy.effects).collect()
    }

    /// Returns how much of what the record names is in place with content that its policies put there. `None` if a
    /// place is missing, or one that they removed is not. What a later policy changed again does not count.
    pub(super) fn share_in_place(&self, lookup: PathLookup<'_>) -> Option<RecordedShare> {
        let mut share = RecordedShare { found: 0, all: 0 };
        for (path, content) in self.last_contents() {
            share.count(match content {
                RecordedContent::Added(digests)
                | RecordedContent::Shared(digests)
                | RecordedContent::Replaced(digests) => is_one_of(&lookup(path)?, digests),
                RecordedContent::Joined(joined) => {
                    let value = lookup(&format!("{path}/value"))?;
                    let rest = value.as_str().and_then(|text| without(text, joined));
                    // A variable of the policy's own is another thing than one that the text was joined to.
                    let is_other = |rest: &String| rest.is_empty() != joined.new;
                    if rest.as_ref().is_some_and(is_other) {
                        return None;
                    }
                    rest.is_some()
                }
                RecordedContent::Removed if lookup(path).is_some() => return None,
                RecordedContent::Removed => true,
            });
        }
        Some(share)
    }

    /// What the record says of each place, unless a later policy changed it again.
    fn last_contents(&self) -> impl Iterator<Item = (&String, RecordedContent<'_>)> {
        self.policies.iter().enumerate().flat_map(|(at, policy)| {
            let later = &self.policies[at + 1..];
            let is_last = |path| !later.iter().any(|later| affects(&later.effects, path));
            contents_of(&policy.effects).filter(move |(path, _)| is_last(path))
        })
    }

    fn effects(&self) -> impl Iterator<Item = &Effects> {
        self.policies.iter().map(|policy| &policy.effects)
    }

    /// The names of recorded containers in a list: those with changed content, and those that were injected.
    fn containers(&self, list: &str) -> BTreeSet<String> {
        self.changed_containers(list).map(str::to_owned).collect()
    }

    /// Like [`Self::containers`], each name as often as the record has it.
    fn changed_containers<'s>(&'s self, list: &str) -> impl Iterator<Item = &'s str> {
        let within = format!("pod/spec/{list}/");
        let paths = self.effects().flat_map(|effects| {
            let added = effects.added.keys().chain(effects.joined.keys());
            let items = added.chain(effects.replaced.keys());
            // A container that a policy removed is no longer there.
            let removed = effects.removed.keys();
            items.chain(removed.filter(|path| path.matches('/').count() > 3))
        });
        paths
            .filter_map(move |path| path.strip_prefix(&within)?.split('/').next())
            .filter(|name| !name.contains('~'))
    }

    /// How much a container has of what the record says about the container `name`. What a later policy removed or
    /// changed again does not count.
    fn share(&self, list: &str, name: &str, container: &Value) -> RecordedShare {
        let container_path = format!("pod/spec/{list}/{name}");
        let within = format!("{container_path}/");
        let mut named = container.clone();
        named["name"] = Value::from(name);
        let mut share = RecordedShare { found: 0, all: 0 };
        for (path, content) in self.last_contents() {
            let current = |path| RecordPaths::of(&[]).get(container, path);
            share.count(match (content, path.strip_prefix(&within)) {
                (RecordedContent::Added(now), _) if *path == container_path => {
                    is_one_of(&named, now)
                }
                (RecordedContent::Added(now) | RecordedContent::Replaced(now), Some(path)) => {
                    current(path).is_some_and(|current| is_one_of(current, now))
                }
                (RecordedContent::Joined(joined), Some(path)) => {
                    let variable = current(path).filter(|_| split_last(path).0 == "env");
                    let text = variable.and_then(|item| item.get("value")?.as_str());
                    text.is_some_and(|text| joined.is_in(text))
                }
                (RecordedContent::Removed, Some(path)) if current(path).is_some() => false,
                _ => continue,
            });
        }
        share
    }

    /// Gives a container another list and name, each in this order.
    fn rename(&mut self, old: [&str; 2], new: [&str; 2]) {
        let [old_path, new_path] = [old, new].map(|[list, name]| format!("pod/spec/{list}/{name}"));
        let follow = |path: String| match rest_below(&path, &old_path) {
            Some(rest) => format!("{new_path}{rest}"),
            None => path,
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
                present,
            } = effects;
            rename_keys(added, follow);
            rename_keys(shared, follow);
            rename_keys(filled, follow);
            rename_keys(joined, follow);
            rename_keys(replaced, follow);
            rename_keys(removed, follow);
            for paths in [made, present] {
                *paths = std::mem::take(paths).into_iter().map(follow).collect();
            }
        }
    }
}

/// The containers of a list in a pod spec by their names.
fn containers_in<'v>(spec: &'v Value, list: &str) -> BTreeMap<&'v str, &'v Value> {
    let items = spec.get(list).and_then(Value::as_array);
    let items = items.into_iter().flatten();
    items
        .filter_map(|item| Some((item.get("name")?.as_str()?, item)))
        .collect()
}

/// What a record says of a place.
#[derive(Clone, Copy)]
enum RecordedContent<'r> {
    /// The digests of which a new item has one.
    Added(&'r str),
    /// The same for an item that another policy had added.
    Shared(&'r str),
    /// The same for the new value of something that was there.
    Replaced(&'r str),
    Joined(&'r JoinedText),
    Removed,
}

/// What the record of a policy says of each place.
fn contents_of(effects: &Effects) -> impl Iterator<Item = (&String, RecordedContent<'_>)> {
    let added = effects.added.iter();
    let shared = effects.shared.iter();
    let replaced = effects.replaced.iter();
    let joined = effects.joined.iter();
    let removed = effects.removed.keys();
    added
        .map(|(path, now)| (path, RecordedContent::Added(now)))
        .chain(shared.map(|(path, now)| (path, RecordedContent::Shared(now))))
        .chain(replaced.map(|(path, was)| (path, RecordedContent::Replaced(&was.now))))
        .chain(joined.map(|(path, joined)| (path, RecordedContent::Joined(joined))))
        .chain(removed.map(|path| (path, RecordedContent::Removed)))
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

    /// Whether nothing tells for or against the other container.
    fn is_unknown(&self) -> bool {
        self.all == 0
    }
}

/// Whether a policy changed a path, something above it or something below it.
pub(super) fn affects(effects: &Effects, path: &str) -> bool {
    let below = |inner: &str, outer: &str| rest_below(inner, outer).is_some();
    let mut keys = effects.changed_paths();
    keys.any(|changed_path| below(path, changed_path) || below(changed_path, path))
}

/// Whether a value has one of the recorded digests, which are separated by spaces.
pub(super) fn is_one_of(value: &Value, digests: &str) -> bool {
    let current_digest = digest(value);
    digests.split(' ').any(|known| known == current_digest)
}
