//! Removes recorded changes from a draft, and returns what it takes to put them back.

mod leftovers;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::policy::defaults::is_default;
use crate::record::fits::fits;
use crate::record::live::is_live_node;
use crate::record::{
    Effects, JoinedText, MARKER, RECORD, Record, RecordPaths, RemovedValue, ReplacedValue, digest,
    split_last,
};
use crate::yaml::tree::{NodeId, Tree};

use super::dependent_defaults::take_out_dependent_defaults;
use super::draft::{Draft, DraftValue, Refusal};
use super::draft_paths::DraftPaths;
use super::joined::{JoinRest, rest_of};
use super::replay::{Replay, ReplayStep, StepKind};
use super::restored::{by_place, with_changes};
use leftovers::{is_alternative, is_beside, take_out_defaults};

/// How to handle a value that somebody changed since it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftHandling {
    /// Keep it, and report it.
    Leave,
    /// Keep it however changed values are handled: it cannot be told from what is not the policy's.
    Keep,
    /// It cannot stay, since what comes back excludes it: an error unless changed values are removed.
    Refuse,
    /// Remove it like the others.
    Force,
}

/// A value that somebody changed since it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The policy that injected it.
    pub policy: String,
    /// Its record path.
    pub path: String,
    /// Whether it stays.
    pub handling: DriftHandling,
}

/// What the removal of the recorded changes found.
#[derive(Debug, Clone, Default)]
pub struct RemovalResult {
    /// For each policy of the record, in its order, the steps that put its changes back.
    pub redo: Vec<Replay>,
    /// The values that somebody had changed, whether they were kept or removed.
    pub changed: Vec<Drift>,
    /// Whether everything that the record names was there, as it was recorded.
    pub is_complete: bool,
}

/// Removes the changes of all policies from an object, last policy first, so that each is removed from its own
/// output. Policies that are kept are put back by `Replay::apply`. Returns the draft of the object without them.
/// `marker` is from `marks::written_marker`.
///
/// # Errors
/// When a part that must change may not be edited.
pub(crate) fn take_out<'t>(
    record: &Record,
    marker: &Effects,
    tree: &'t Tree<'t>,
    node: NodeId,
    leniency: impl Fn(&str) -> DriftHandling,
) -> Result<(Draft<'t>, RemovalResult), Refusal> {
    let mut removal = PolicyRemoval {
        is_live: is_live_node(tree, node),
        draft: Draft::new(tree, node),
        paths: DraftPaths::of(record.paths()),
        policy: "",
        leniency: DriftHandling::Force,
        changed: Vec::new(),
        redo: Replay::default(),
        has_missing: false,
        has_restored: false,
    };
    removal.take_out_marks(marker, &record.paths())?;
    if removal.is_live {
        take_out_dependent_defaults(record, &removal.paths, &mut removal.draft)?;
    }
    let mut redo = Vec::new();
    for policy in record.policies.iter().rev() {
        removal.policy = &policy.policy;
        removal.leniency = leniency(&policy.policy);
        removal.redo = Replay::new(policy);
        removal.take_out_policy(&policy.effects)?;
        removal.remove_empty_holders([&policy.effects])?;
        removal.remove_rivals(&policy.effects)?;
        redo.push(std::mem::take(&mut removal.redo));
    }
    // A mapping that one policy made may have held items of another, and was not empty when the first was removed.
    let of_policies = record.policies.iter().map(|policy| &policy.effects);
    removal.remove_empty_holders(of_policies.chain([&record.marker]))?;
    let PolicyRemoval {
        mut draft,
        mut changed,
        has_missing,
        has_restored,
        ..
    } = removal;
    let is_complete = !has_missing && changed.is_empty();
    if has_restored {
        draft.restore_unchanged();
    }
    redo.reverse();
    changed.reverse();
    let result = RemovalResult {
        redo,
        changed,
        is_complete,
    };
    Ok((draft, result))
}

/// A step that inserts a removed item again, with the position that the item had.
type PutBack = (Option<Vec<usize>>, ReplayStep);

struct PolicyRemoval<'i, 't> {
    /// Whether the object comes from an API server.
    is_live: bool,
    draft: Draft<'t>,
    paths: DraftPaths,
    policy: &'i str,
    leniency: DriftHandling,
    changed: Vec<Drift>,
    redo: Replay,
    /// Whether something that the record names is gone.
    has_missing: bool,
    /// Whether a value was put back that the manifest had before.
    has_restored: bool,
}

impl PolicyRemoval<'_, '_> {
    /// Removes the record and the marker.
    fn take_out_marks(&mut self, effects: &Effects, paths: &RecordPaths) -> Result<(), Refusal> {
        let annotation = |name: &str| paths.in_object(&["metadata", "annotations", name]);
        self.paths.remove(&mut self.draft, &annotation(RECORD))?;
        let marker = annotation(MARKER);
        if !effects.replaced.contains_key(&marker) {
            self.paths.remove(&mut self.draft, &marker)?;
        }
        self.take_out_policy(effects)?;
        // Changes of the marker are not reported.
        self.changed.clear();
        self.has_missing = false;
        Ok(())
    }

    fn take_out_policy(&mut self, effects: &Effects) -> Result<(), Refusal> {
        let removed = effects.removed.keys();
        let filled_in: BTreeSet<&String> = removed.filter(|path| self.is_filled_in(path)).collect();
        let shared = self.shared_items(effects);
        // A variable that podgraft added is removed like other items, after those behind it.
        let (new, others): (Vec<_>, Vec<_>) = effects
            .joined
            .iter()
            .partition(|(_, joined)| joined.new && !joined.shared);
        for (path, joined) in others {
            // The text of another policy stays, and is not looked at here.
            self.has_missing |= joined.shared;
            if joined.shared || self.take_out_text(path, joined)? {
                let joined = joined.clone();
                let after = None;
                self.redo.push(path, StepKind::Join { joined, after });
            }
        }
        let added = self.added_items(effects)?;
        self.own_variables(&new)?;
        let mut restored: Vec<PutBack> = shared.into_iter().chain(added).collect();
        // Put items back in their old order: it decides the order of the mappings and lists that are created for
        // them.
        restored.sort_by(|(place, _), (other_place, _)| place.cmp(other_place));
        let steps = restored.into_iter().map(|(_, step)| step);
        self.redo.steps.extend(steps);
        for (path, replaced) in &effects.replaced {
            self.replaced(path, replaced)?;
        }
        for (path, removed) in by_place(&effects.removed) {
            self.removed(path, removed, &filled_in)?;
        }
        Ok(())
    }

    fn value(&self, path: &str) -> Option<Value> {
        self.paths.value(&self.draft, path)
    }

    /// Removes the added items, last first, so that numbered identities (`name~#2`) of the remaining ones stay valid.
    fn added_items(&mut self, effects: &Effects) -> Result<Vec<PutBack>, Refusal> {
        let paths = effects.added.keys().map(String::as_str);
        let places = self.paths.places(&self.draft, paths);
        let mut added: Vec<_> = places
            .zip(&effects.added)
            .map(|(place, (path, now))| (place, path, now))
            .collect();
        added.sort();
        let mut back = Vec::new();
        for (place, path, now) in added.into_iter().rev() {
            let Some(place) = place else {
                self.has_missing = true;
                continue;
            };
            let step = self.take_out_item(path, &place, now)?;
            back.extend(step.map(|step| (Some(place), step)));
        }
        Ok(back)
    }

    /// Removes joined texts from variables that podgraft added, and the variables with them if nothing else is left.
    fn own_variables(&mut self, new: &[(&String, &JoinedText)]) -> Result<(), Refusal> {
        let mut joins = Vec::new();
        for (path, joined) in new {
            let place = self.place(path);
            let located = place.and_then(|place| self.paths.at(&self.draft, path, &place));
            let after = located.map(|located| located.after);
            if self.take_out_text(path, joined)? {
                joins.push((path, joined, after));
            }
        }
        for (path, joined, after) in joins.into_iter().rev() {
            let joined = (*joined).clone();
            self.redo.push(path, StepKind::Join { joined, after });
        }
        Ok(())
    }

    /// Restores a replaced value.
    fn replaced(&mut self, path: &str, replaced: &ReplacedValue) -> Result<(), Refusal> {
        let Some(value) = self.value(path) else {
            self.has_missing = true;
            return Ok(());
        };
        let now = self.matching_digest(&value, &replaced.now);
        let is_written = |list: &Value| self.matching_digest(list, &replaced.now).is_some();
        let edited = match now.is_none() && path.ends_with("/env") {
            true => with_changes(&replaced.was, &value, is_written),
            false => None,
        };
        if self.may_change(path, now.is_some() || edited.is_some()) {
            self.has_restored = true;
            let was = edited.as_ref().unwrap_or(&replaced.was);
            self.paths.set(&mut self.draft, path, &value, was)?;
            let (was, digest) = (was.clone(), now.unwrap_or(&replaced.now).to_owned());
            self.redo.push(path, StepKind::Set { was, value, digest });
        }
        Ok(())
    }

    /// Restores a removed value, unless there is another value now that is no default of an API server.
    fn removed(
        &mut self,
        path: &String,
        removed: &RemovedValue,
        filled_in: &BTreeSet<&String>,
    ) -> Result<(), Refusal> {
        match self.value(path) {
            None => {
                self.redo.push(path, StepKind::Remove);
                self.restore(path, removed)
            }
            // An API server filled the removed default in again.
            Some(existing) if existing == removed.was && self.is_live => {
                self.redo.push(path, StepKind::Remove);
                Ok(())
            }
            Some(_) if filled_in.contains(path) => {
                self.redo.push(path, StepKind::Remove);
                self.paths.remove(&mut self.draft, path)?;
                self.restore(path, removed)
            }
            Some(_) => {
                self.note_changed(path, DriftHandling::Keep);
                Ok(())
            }
        }
    }

    fn restore(&mut self, path: &str, removed: &RemovedValue) -> Result<(), Refusal> {
        self.has_restored = true;
        let (original, after) = (removed.was.clone(), removed.after.as_deref());
        self.paths.insert(&mut self.draft, path, original, after)
    }

    /// Whether the current value is a default that an API server set.
    fn is_filled_in(&self, path: &str) -> bool {
        if !self.is_live {
            return false;
        }
        let (holder, key) = path.rsplit_once('/').unwrap_or_default();
        let parent = holder.rsplit('/').next().unwrap_or_default();
        let present = self.value(path).zip(self.value(holder));
        present.is_some_and(|(value, owner)| is_default(parent, key, &value, &owner))
    }

    fn note_changed(&mut self, path: &str, handling: DriftHandling) {
        self.changed.push(Drift {
            policy: self.policy.to_owned(),
            path: path.to_owned(),
            handling,
        });
    }

    /// Returns which of the recorded digests matches the value. `None` if somebody changed it.
    fn matching_digest<'d>(&self, value: &Value, digests: &'d str) -> Option<&'d str> {
        let current_digest = digest(value);
        let is_match =
            |recorded: &&str| current_digest == **recorded || self.is_live && fits(value, recorded);
        digests.split(' ').find(is_match)
    }

    fn may_change(&mut self, path: &str, is_as_it_was: bool) -> bool {
        if !is_as_it_was {
            self.note_changed(path, self.leniency);
        }
        is_as_it_was || self.leniency == DriftHandling::Force
    }

    fn place(&self, path: &str) -> Option<Vec<usize>> {
        self.paths.place(&self.draft, path)
    }

    /// Returns the items that another policy had added with the same content. If that one goes, this one must insert
    /// them.
    fn shared_items(&self, effects: &Effects) -> Vec<PutBack> {
        let items = effects.shared.iter().filter_map(|(path, digests)| {
            let value = self.value(path)?;
            let digest = self.matching_digest(&value, digests).unwrap_or(digests);
            let step = step_of_item(path, value, digest, None);
            Some((self.place(path), step))
        });
        items.collect()
    }

    /// Removes the item at a place, to which `path` leads. `None` if it is kept because somebody changed it.
    fn take_out_item(
        &mut self,
        path: &str,
        place: &[usize],
        digests: &str,
    ) -> Result<Option<ReplayStep>, Refusal> {
        let Some(located) = self.paths.at(&self.draft, path, place) else {
            self.has_missing = true;
            return Ok(None);
        };
        let Some(value) = self.draft.value(&located.part) else {
            return Ok(None);
        };
        let recorded_digest = self.matching_digest(&value, digests);
        if !self.may_change(path, recorded_digest.is_some()) {
            return Ok(None);
        }
        self.paths.remove_at(&mut self.draft, path, place)?;
        let digest = recorded_digest.unwrap_or(digests);
        let after = Some(located.after);
        Ok(Some(step_of_item(path, value, digest, after)))
    }

    /// Removes a joined text. Returns whether it was there.
    fn take_out_text(&mut self, path: &str, joined: &JoinedText) -> Result<bool, Refusal> {
        let (list_path, name) = split_last(path);
        let variables = self.paths.get(&self.draft, list_path);
        let Some(variables) = variables.filter(|list| self.draft.is_list(list)) else {
            self.has_missing = true;
            return Ok(false);
        };
        match rest_of(&self.draft, &variables, &name, joined) {
            None => {
                self.has_missing = true;
                Ok(false)
            }
            Some(JoinRest::Changed) => {
                self.note_changed(path, DriftHandling::Keep);
                Ok(false)
            }
            Some(JoinRest::Text { index, text }) => {
                self.paths.edit_item(&mut self.draft, path, |draft, list| {
                    let item = draft.open_item(list, index)?;
                    draft.set(item, "value", Value::from(text), &[])
                })?;
                Ok(true)
            }
            Some(JoinRest::Nothing { index, original }) => {
                self.paths.edit_item(&mut self.draft, path, |draft, list| {
                    if let Some(original) = original {
                        let item = draft.open_item(list, original)?;
                        draft.set(item, "name", Value::from(&*name), &[])?;
                    }
                    draft.remove(list, index)
                })?;
                Ok(true)
            }
        }
    }

    /// Removes mappings and lists that a policy made, and restores those that it filled, if they are empty now. Inner
    /// ones come first, since a longer path sorts after its prefix. The first policy with an entry saw what the
    /// manifest had. A value that one policy removed and a later one made again has been restored, so it stays, even
    /// if it is empty.
    fn remove_empty_holders<'e>(
        &mut self,
        all_effects: impl IntoIterator<Item = &'e Effects>,
    ) -> Result<(), Refusal> {
        let mut holders: BTreeMap<&String, Option<&Value>> = BTreeMap::new();
        let mut restored: BTreeSet<&String> = BTreeSet::new();
        for effects in all_effects {
            for path in effects.made.iter().filter(|path| restored.contains(path)) {
                holders.entry(path).or_insert(Some(&Value::Null));
            }
            restored.extend(effects.removed.keys());
            for (path, original) in &effects.filled {
                holders.entry(path).or_insert(Some(original));
            }
            for path in &effects.made {
                holders.entry(path).or_insert(None);
            }
        }
        for (path, original) in holders.into_iter().rev() {
            if self.is_live {
                take_out_defaults(path, &self.paths, &mut self.draft)?;
            }
            let part = self.paths.get(&self.draft, path);
            let Some(existing) = part.and_then(|part| empty_collection(&self.draft, &part)) else {
                continue;
            };
            match original {
                Some(Value::Null) if restored.contains(path) => {}
                Some(original) => {
                    self.has_restored = true;
                    self.paths.set(&mut self.draft, path, &existing, original)?;
                }
                None => self.paths.remove(&mut self.draft, path)?,
            }
        }
        Ok(())
    }

    /// Handles what somebody added to a source or handler that the policy put in place of another one, which is back now:
    /// an API server takes only one of them.
    fn remove_rivals(&mut self, effects: &Effects) -> Result<(), Refusal> {
        for path in effects.made.iter().filter(|path| is_alternative(path)) {
            let is_back = |other: &String| is_beside(path, other) && self.value(other).is_some();
            if self.value(path).is_none() || !effects.removed.keys().any(is_back) {
                continue;
            }
            if self.leniency == DriftHandling::Force {
                self.note_changed(path, DriftHandling::Force);
                self.paths.remove(&mut self.draft, path)?;
            } else {
                self.note_changed(path, DriftHandling::Refuse);
            }
        }
        Ok(())
    }
}

fn step_of_item(path: &str, value: Value, digest: &str, after: Option<String>) -> ReplayStep {
    let (path, digest) = (path.to_owned(), digest.to_owned());
    let kind = StepKind::Insert {
        value,
        digest,
        after,
    };
    ReplayStep { path, kind }
}

/// The value of an empty mapping or list. `None` for anything else.
fn empty_collection(draft: &Draft<'_>, part: &DraftValue) -> Option<Value> {
    if !draft.is_empty(part) {
        return None;
    }
    let value = draft.value(part)?;
    (value.is_array() || value.is_object()).then_some(value)
}
