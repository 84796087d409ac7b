//! Turns the outcome of each policy into the change since the earlier run, by comparing the records of both runs.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use foldhash::HashSet;
use serde_json::{Value, json};

use crate::change::{Change, ChangeTarget, Operation, RecordCause};
use crate::options::Options;
use crate::outcome::{Outcome, PolicyReport};
use crate::ownership::JoinedText;
use crate::policy::Policy;
use crate::record::{Effects, PolicyRecord, Record, has_token, restore_order};

use super::draft::Draft;
use super::draft_paths::{DraftPaths, RecordedPlaces};
use super::recording::{EarlierRun, is_dropped};
use super::removal::DriftHandling;

/// What a run made of a workload that has a record of an earlier run.
#[derive(Clone, Copy)]
pub(super) struct SinceEarlier<'c> {
    /// The workload after the run.
    pub draft: &'c Draft<'c>,
    /// Its new record.
    pub record: Option<&'c Record>,
    pub earlier: &'c EarlierRun<'c>,
    /// An error keeps it from being written.
    pub is_refused: bool,
}

impl<'c> SinceEarlier<'c> {
    /// Returns the outcome of a policy, relative to the workload before the run.
    pub(super) fn outcome(self, identity: &str, outcome: Outcome) -> Outcome {
        let earlier = self.earlier;
        let before = earlier.record.policy(identity);
        let after = self.record.and_then(|record| record.policy(identity));
        let has_failed = matches!(outcome, Outcome::Failed(_));
        match (before, after) {
            (Some(before), None) if has_failed && !self.is_refused => {
                Outcome::Failed(Some(self.removals(before)))
            }
            _ if has_failed => outcome,
            (Some(before), None) => Outcome::TakenOut(self.removals(before)),
            (None, Some(after)) if self.takes_over(after) => {
                let changes = self.changes(&PolicyRecord::default(), after);
                of_changes(changes)
            }
            (None, _) => outcome,
            (Some(before), Some(after)) => match self.changes(before, after) {
                changes
                    if changes.is_empty()
                        && earlier.adopting.is_some()
                        && earlier.evaluates(identity) =>
                {
                    let adopted = distinct(after.effects.changed_paths()).into_iter();
                    let adopt = |target| Change::new(Operation::Adopt, target);
                    Outcome::Injected(adopted.map(adopt).collect())
                }
                changes => of_changes(changes),
            },
        }
    }

    /// Reports the recorded policies that are not given and that this run removed.
    pub(super) fn dropped(self, policies: &[Policy], options: &Options) -> Vec<PolicyReport> {
        let is_given = |policy: &PolicyRecord| {
            let mut given = policies.iter();
            given.any(|given| given.identity == policy.policy)
        };
        let recorded = self.earlier.record.policies.iter();
        let dropped = recorded.filter(|policy| !is_given(policy) && is_dropped(policy, options));
        let report = |policy: &PolicyRecord| PolicyReport {
            policy: Arc::from(policy.policy.as_str()),
            outcome: Outcome::TakenOut(self.removals(policy)),
            rules: Vec::new(),
            is_older: false,
        };
        dropped.map(report).collect()
    }

    /// Whether the earlier record is of another version of the policy. What somebody changed makes another record, too.
    pub(super) fn is_older(self, identity: &str) -> bool {
        let mut changed = self.earlier.taken.changed.iter();
        if changed.any(|drift| drift.policy == identity) {
            return false;
        }
        let after = self.record.and_then(|record| record.policy(identity));
        let both = self.earlier.record.policy(identity).zip(after);
        both.is_some_and(|(before, after)| digest_of(before) != digest_of(after))
    }

    /// The policies of the new record.
    fn policies(self) -> impl Iterator<Item = &'c PolicyRecord> + Clone {
        self.record.into_iter().flat_map(|record| &record.policies)
    }

    fn places(self) -> BothPlaces<'c> {
        let (current, record) = (self.earlier.current, &self.earlier.record);
        BothPlaces {
            before: RecordedPlaces::of(current.tree, current.node, record.paths()),
            after: self.draft,
            record,
            paths: OnceCell::new(),
        }
    }

    /// Whether a policy without a record does something that another policy had done in the earlier run.
    fn takes_over(self, after: &PolicyRecord) -> bool {
        let (places, now) = (self.places(), &after.effects);
        let did = |was: &Effects, path: &String| was.changes(path) && places.was_there(now, path);
        let takes_from = |before: &PolicyRecord| {
            now.changed_paths().any(|path| did(&before.effects, path))
                || after.has_object_of(before)
        };
        self.earlier.adopting.is_none() && self.earlier.record.policies.iter().any(takes_from)
    }

    /// The changes that remove what a policy did, as far as it is still there. What another policy has added now stays.
    fn removals(self, policy: &PolicyRecord) -> Vec<Change> {
        let places = self.places();
        let removed = self.removed(policy, &PolicyRecord::default(), &places);
        let removals: Vec<Change> = removed
            .into_iter()
            .chain(self.removed_objects(policy))
            .chain(self.emptied_collections(&policy.effects, &places.before))
            .collect();
        if !removals.is_empty() {
            return removals;
        }
        let owners = self
            .record
            .map_or_else(Vec::new, |record| record.owners_of(policy));
        let mut paths = policy.effects.changed_paths();
        let cause = match owners.is_empty() {
            false => Some(RecordCause::SharedWith(owners)),
            true => paths
                .any(|path| stays_changed(&policy.policy, path, self.earlier))
                .then_some(RecordCause::Left),
        };
        cause.into_iter().map(Change::of_record).collect()
    }

    /// The removal of what a policy did before and does not any more, as far as it was there and nothing keeps it.
    fn removed(
        self,
        before: &PolicyRecord,
        after: &PolicyRecord,
        places: &BothPlaces<'_>,
    ) -> Vec<Change> {
        let (was, now) = (&before.effects, &after.effects);
        let still = targets_of(now);
        let paths = was
            .changed_paths()
            .filter(|path| !now.changes(path) && !now.shared.contains_key(*path))
            .filter(|path| can_undo(&places.before, was, path))
            .filter(|path| !stays_changed(&before.policy, path, self.earlier))
            .filter(|path| self.record.is_none() || !places.stays(was, path));
        let paths = paths.map(|path| (path, self.undoing(was, path, places)));
        let paths: Vec<(&String, Operation)> = paths.collect();
        let with = |operation: Operation| {
            let paths = paths.iter().filter(|(_, of_path)| *of_path == operation);
            let targets = paths.map(|(path, _)| ChangeTarget::from_path(path));
            targets.collect::<HashSet<ChangeTarget>>()
        };
        let (restored, updated) = (with(Operation::Restore), with(Operation::Update));
        let targets = distinct(paths.iter().map(|(path, _)| *path)).into_iter();
        let undone = targets.filter(|target| !still.contains(target));
        let operation = |target: &ChangeTarget| match () {
            () if restored.contains(target) => Operation::Restore,
            () if updated.contains(target) => Operation::Update,
            () => Operation::TakeOut,
        };
        undone
            .map(|target| Change::new(operation(&target), target))
            .collect()
    }

    /// What becomes of the thing at a path that a policy does not change any more.
    fn undoing(self, was: &Effects, path: &str, places: &BothPlaces<'_>) -> Operation {
        let is_new = |joined: &JoinedText| joined.new;
        let is_made = was.added.contains_key(path) || was.joined.get(path).is_some_and(is_new);
        let mut policies = self.policies();
        match (places.value_after(path), is_made) {
            (None, _) => Operation::TakeOut,
            (Some(_), false) => Operation::Restore,
            // The texts of other policies stay.
            (Some(_), true) if policies.any(|policy| policy.effects.joined.contains_key(path)) => {
                Operation::Update
            }
            (Some(_), true) => Operation::TakeOut,
        }
    }

    /// The removal of objects that a policy generated before, and that no policy generates any more.
    fn removed_objects(self, before: &PolicyRecord) -> impl Iterator<Item = Change> {
        let names = before.generated.keys();
        let removed = names.filter(move |name| {
            let mut policies = self.policies();
            !policies.any(|policy| policy.generated.contains_key(*name))
        });
        removed.map(|name| of_object(Operation::TakeOut, name))
    }

    /// The removal of collections that a policy created, that are empty now, and that no policy of the new record
    /// creates.
    fn emptied_collections(
        self,
        effects: &Effects,
        workload: &RecordedPlaces<'_>,
    ) -> impl Iterator<Item = Change> {
        let made = self.policies().map(|policy| &policy.effects.made);
        let is_made = move |path: &String| made.clone().any(|made| made.contains(path));
        let paths = effects.made.iter();
        let removed =
            paths.filter(move |path| !is_made(path) && workload.has_empty_collection(path));
        removed.map(|path| Change::new(Operation::TakeOut, ChangeTarget::from_path(path)))
    }

    fn changes(self, before: &PolicyRecord, after: &PolicyRecord) -> Vec<Change> {
        let places = self.places();
        let (was, now) = (&before.effects, &after.effects);
        let is_present = |path: &String| {
            let is_there = places.before.has(path) || now.removed.contains_key(path);
            is_there && !stays_changed(&after.policy, path, self.earlier)
        };
        // The common case: nothing is different. It needs no texts of the changes.
        let is_there = || self.earlier.taken.is_complete || now.changed_paths().all(is_present);
        if was == now && before.generated == after.generated && is_there() {
            return self.emptied_collections(was, &places.before).collect();
        }
        let mut changes = self.generated_objects(before, after);
        changes.extend(self.removed_objects(before));
        let is_new = |path: &&String| match was.changes(path) {
            true => {
                let is_there = is_present(path) && text_at(was, path) == text_at(now, path);
                !is_there && !places.is_same(path)
            }
            // Another policy may have put it there.
            false => !places.was_there(now, path),
        };
        let (owned, mut seen) = (targets_of(was), HashSet::default());
        for path in now.changed_paths().filter(is_new) {
            let target = ChangeTarget::from_path(path);
            if seen.insert(target.clone()) {
                let operation = places.operation(&owned, now, path, &target);
                changes.push(Change::new(operation, target));
            }
        }
        changes.extend(self.removed(before, after, &places));
        changes.extend(self.emptied_collections(was, &places.before));
        changes
    }

    /// The objects that a policy generates now and did not before, or with another content.
    fn generated_objects(self, before: &PolicyRecord, after: &PolicyRecord) -> Vec<Change> {
        let others = &self.earlier.record.policies;
        let mut changes = Vec::new();
        for (name, now) in &after.generated {
            let was = before.generated.get(name);
            match was.or_else(|| others.iter().find_map(|other| other.generated.get(name))) {
                None => changes.push(of_object(Operation::Add, name)),
                Some(was) if was != now => changes.push(of_object(Operation::Update, name)),
                Some(_) => {}
            }
        }
        changes
    }
}

fn of_changes(changes: Vec<Change>) -> Outcome {
    match changes.is_empty() {
        true => Outcome::UpToDate,
        false => Outcome::Injected(changes),
    }
}

/// The workload before and after the run, both with what is recorded.
struct BothPlaces<'c> {
    before: RecordedPlaces<'c>,
    after: &'c Draft<'c>,
    record: &'c Record,
    /// Made when something of the workload after the run is asked for.
    paths: OnceCell<DraftPaths>,
}

impl BothPlaces<'_> {
    fn value_after(&self, path: &str) -> Option<Value> {
        let paths = self
            .paths
            .get_or_init(|| DraftPaths::of(self.record.paths()));
        paths.value(self.after, path)
    }

    fn is_same(&self, path: &str) -> bool {
        match self.value_after(path) {
            Some(value) => {
                let before = self.before.value(path);
                before.is_some_and(|before| before == value || is_reordered(path, before, value))
            }
            None => !self.before.has(path),
        }
    }

    /// Whether an effect was there before the run.
    fn was_there(&self, effects: &Effects, path: &str) -> bool {
        self.is_same(path) || has_text(self.before.value(path), effects, path)
    }

    /// Whether an effect is there after the run.
    fn stays(&self, effects: &Effects, path: &str) -> bool {
        self.is_same(path) || has_text(self.value_after(path), effects, path)
    }

    /// The operation of an effect that is new or changed. `owned` is what the policy changed before.
    fn operation(
        &self,
        owned: &HashSet<ChangeTarget>,
        now: &Effects,
        path: &str,
        target: &ChangeTarget,
    ) -> Operation {
        let is_part = is_part(path, target);
        let is_own = owned.contains(target);
        match self.before.has(path) {
            _ if now.removed.contains_key(path) && !is_part => Operation::Remove,
            _ if (is_part || now.replaced.contains_key(path)) && !is_own => Operation::Replace,
            false if !is_part => Operation::Add,
            _ => Operation::Update,
        }
    }
}

/// Whether a path leads to a part of what reports name as a whole, such as the value of a variable.
fn is_part(path: &str, target: &ChangeTarget) -> bool {
    let holder = path.rsplit_once('/');
    holder.is_some_and(|(holder, _)| ChangeTarget::from_path(holder) == *target)
}

/// Whether two lists of variables have the same ones. A run leaves them in the order that they have.
fn is_reordered(path: &str, before: Value, after: Value) -> bool {
    if !path.ends_with("/env") {
        return false;
    }
    let (before, mut after) = (json!({"env": before}), json!({"env": after}));
    restore_order(&mut after, &before);
    after == before
}

/// Whether a variable contains the text that a policy joins to it.
fn has_text(variable: Option<Value>, effects: &Effects, path: &str) -> bool {
    let (Some(variable), Some(joined)) = (variable, effects.joined.get(path)) else {
        return false;
    };
    let value = variable.get("value").and_then(Value::as_str);
    value.is_some_and(|value| has_token(value, &joined.text, joined.separator()))
}

/// The recorded digest. Lock files have none, so it is computed for them.
fn digest_of(policy: &PolicyRecord) -> Cow<'_, str> {
    match policy.digest.as_str() {
        "" => Cow::Owned(policy.effects.digest()),
        digest => Cow::Borrowed(digest),
    }
}

/// An operation on an object beside the workload.
fn of_object(operation: Operation, name: &str) -> Change {
    Change::new(operation, ChangeTarget::Object(name.to_owned()))
}

/// Whether a change of a policy is still there to undo; somebody may have removed it by hand.
fn can_undo(current: &RecordedPlaces<'_>, effects: &Effects, path: &str) -> bool {
    // A removed item can only be restored if its list or mapping still exists.
    let holder = path.rsplit_once('/').map_or("", |(holder, _)| holder);
    current.has(path) || effects.removed.contains_key(path) && current.has(holder)
}

/// Whether somebody changed the value of a policy since, and the run does not take it out.
fn stays_changed(policy: &str, path: &str, earlier: &EarlierRun<'_>) -> bool {
    earlier.taken.changed.iter().any(|drift| {
        drift.handling != DriftHandling::Force && drift.policy == policy && drift.path == path
    })
}

/// The targets that a policy changes.
fn targets_of(effects: &Effects) -> HashSet<ChangeTarget> {
    let paths = effects.changed_paths();
    paths.map(|path| ChangeTarget::from_path(path)).collect()
}

/// The targets of paths, each once.
fn distinct<'p>(paths: impl Iterator<Item = &'p String>) -> Vec<ChangeTarget> {
    let mut seen = HashSet::default();
    let targets = paths.map(|path| ChangeTarget::from_path(path));
    targets
        .filter(|target| seen.insert(target.clone()))
        .collect()
}

/// A text that shows whether the change at a path is still the same.
fn text_at<'e>(effects: &'e Effects, path: &str) -> Cow<'e, str> {
    if let Some(now) = effects.added.get(path) {
        return Cow::Borrowed(now);
    }
    if let Some(joined) = effects.joined.get(path) {
        return Cow::Owned(format!("{joined:?}"));
    }
    let replaced = effects.replaced.get(path);
    Cow::Borrowed(replaced.map_or("", |replaced| &replaced.now))
}
