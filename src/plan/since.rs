//! Turns the outcome of each policy into the change since the earlier run, by comparing the records of both runs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashSet;

use crate::change::{Change, ChangeTarget, Operation, RecordCause};
use crate::options::Options;
use crate::outcome::{Outcome, PolicyReport};
use crate::policy::Policy;
use crate::record::{Effects, PolicyRecord, Record};

use super::WorkloadPlan;
use super::draft_paths::RecordedPlaces;
use super::recording::{EarlierRun, is_dropped};
use super::removal::DriftHandling;

/// Returns the outcome of a policy, relative to the workload before the run.
pub(super) fn outcome_since(
    identity: &str,
    outcome: Outcome,
    record: Option<&Record>,
    earlier: &EarlierRun<'_>,
) -> Outcome {
    let before = earlier.record.policy(identity);
    let after = record.and_then(|record| record.policy(identity));
    match (before, after) {
        _ if outcome == Outcome::Failed => outcome,
        (Some(before), None) => Outcome::TakenOut(removals(before, record, earlier)),
        (None, _) => outcome,
        (Some(before), Some(after)) => match changes(before, after, record, earlier) {
            changes if !changes.is_empty() => Outcome::Injected(changes),
            _ if earlier.adopting.is_some() && earlier.evaluates(identity) => {
                let adopted = paths_of(&after.effects).into_iter();
                let changes = adopted.map(|(_, target)| Change::new(Operation::Adopt, target));
                Outcome::Injected(changes.collect())
            }
            _ => Outcome::UpToDate,
        },
    }
}

/// Whether the earlier record is of another version of the policy.
pub(super) fn is_older(identity: &str, record: Option<&Record>, earlier: &EarlierRun<'_>) -> bool {
    let after = record.and_then(|record| record.policy(identity));
    earlier
        .record
        .policy(identity)
        .zip(after)
        .is_some_and(|(before, after)| digest_of(before) != digest_of(after))
}

/// The recorded digest. Lock files have none, so it is computed for them.
fn digest_of(policy: &PolicyRecord) -> Cow<'_, str> {
    match policy.digest.as_str() {
        "" => Cow::Owned(policy.effects.digest()),
        digest => Cow::Borrowed(digest),
    }
}

/// The changes that remove what a policy did, as far as it is still there. What another policy has added now stays.
fn removals(
    policy: &PolicyRecord,
    current: Option<&Record>,
    earlier: &EarlierRun<'_>,
) -> Vec<Change> {
    let workload = current_places(earlier);
    let is_kept = |path: &str| {
        let mut other_policies = current.into_iter().flat_map(|record| &record.policies);
        other_policies.any(|other| other.effects.added.contains_key(path))
    };
    let items = paths_of(&policy.effects)
        .into_iter()
        .filter(|(path, _)| can_undo(&workload, &policy.effects, path) && !is_kept(path))
        .filter(|(path, _)| !stays_changed(&policy.policy, path, earlier))
        .map(|(_, target)| Change::new(Operation::TakeOut, target));
    let objects = policy.generated.keys();
    let removals: Vec<Change> = items
        .chain(objects.map(|name| of_object(Operation::TakeOut, name)))
        .chain(emptied_collections(&policy.effects, current, &workload))
        .collect();
    if !removals.is_empty() {
        return removals;
    }
    let owners = current.map_or_else(Vec::new, |record| record.owners_of(policy));
    let mut paths = all_paths(&policy.effects);
    let cause = match owners.is_empty() {
        false => Some(RecordCause::SharedWith(owners)),
        true => paths
            .any(|path| stays_changed(&policy.policy, path, earlier))
            .then_some(RecordCause::Left),
    };
    cause.into_iter().map(Change::of_record).collect()
}

/// The removal of collections that a policy created, that are empty now, and that no policy of the new record creates.
fn emptied_collections(
    effects: &Effects,
    current: Option<&Record>,
    workload: &RecordedPlaces<'_>,
) -> Vec<Change> {
    let policies = current.into_iter().flat_map(|record| &record.policies);
    let made = policies.map(|policy| &policy.effects.made);
    let is_made = |path| made.clone().any(|made| made.contains(path));
    let paths = effects.made.iter();
    let removed = paths.filter(|&path| !is_made(path) && workload.has_empty_collection(path));
    removed.map(|path| at(Operation::TakeOut, path)).collect()
}

/// An operation on the item at a path of the record.
fn at(operation: Operation, path: &str) -> Change {
    Change::new(operation, ChangeTarget::from_path(path))
}

/// An operation on an object beside the workload.
fn of_object(operation: Operation, name: &str) -> Change {
    Change::new(operation, ChangeTarget::Object(name.to_owned()))
}

/// The workload before the run, with the changes of the earlier run.
fn current_places<'e>(earlier: &EarlierRun<'e>) -> RecordedPlaces<'e> {
    let current = earlier.current;
    RecordedPlaces::of(current.tree, current.node, earlier.record.paths())
}

/// Whether a change of a policy is still there to undo; somebody may have removed it by hand.
fn can_undo(current: &RecordedPlaces<'_>, effects: &Effects, path: &str) -> bool {
    // A removed item can only be restored if its list or mapping still exists.
    let holder = path.rsplit_once('/').map_or("", |(holder, _)| holder);
    current.has(path) || effects.removed.contains_key(path) && current.has(holder)
}

/// Whether a change of a policy stays because somebody changed the value since.
fn stays_changed(policy: &str, path: &str, earlier: &EarlierRun<'_>) -> bool {
    earlier.taken.changed.iter().any(|drift| {
        drift.handling == DriftHandling::Leave && drift.policy == policy && drift.path == path
    })
}

/// The paths of all changes of a policy.
fn all_paths(effects: &Effects) -> impl Iterator<Item = &String> {
    let added = effects.added.keys().chain(effects.joined.keys());
    let changed = effects.replaced.keys().chain(effects.removed.keys());
    added.chain(changed)
}

/// The paths of all changes of a policy, each target once.
fn paths_of(effects: &Effects) -> Vec<(&String, ChangeTarget)> {
    let paths: Vec<_> = all_paths(effects)
        .map(|path| (path, ChangeTarget::from_path(path)))
        .collect();
    let mut seen: HashSet<&ChangeTarget> = HashSet::default();
    let is_first: Vec<bool> = paths
        .iter()
        .map(|(_, target)| seen.insert(target))
        .collect();
    let first = paths.into_iter().zip(is_first);
    first
        .filter_map(|(path, is_first)| is_first.then_some(path))
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

fn changes(
    before: &PolicyRecord,
    after: &PolicyRecord,
    current: Option<&Record>,
    earlier: &EarlierRun<'_>,
) -> Vec<Change> {
    let (generated, was_generated) = (&after.generated, &before.generated);
    let workload = current_places(earlier);
    let policy = &before.policy;
    let (before, after) = (&before.effects, &after.effects);
    let is_present = |path: &String| workload.has(path) || after.removed.contains_key(path);
    // The common case: nothing is different. It needs no texts of the changes.
    let is_there = || earlier.taken.is_complete || all_paths(after).all(is_present);
    if before == after && generated == was_generated && is_there() {
        return emptied_collections(before, current, &workload);
    }
    let (old, new) = (paths_of(before), paths_of(after));
    let was: BTreeSet<&String> = old.iter().map(|(path, _)| *path).collect();
    let is_new: BTreeSet<&String> = new.iter().map(|(path, _)| *path).collect();
    let mut changes = Vec::new();
    for (name, now) in generated {
        match was_generated.get(name) {
            None => changes.push(of_object(Operation::Add, name)),
            Some(was) if was != now => changes.push(of_object(Operation::Update, name)),
            Some(_) => {}
        }
    }
    let removed = was_generated
        .keys()
        .filter(|name| !generated.contains_key(*name));
    changes.extend(removed.map(|name| of_object(Operation::TakeOut, name)));
    for (path, target) in new {
        let is_there = was.contains(path) && is_present(path);
        if is_there && text_at(before, path) == text_at(after, path) {
            continue;
        }
        // Another policy had put it there, and comes later now.
        if is_present(path)
            && before.shared.contains_key(path)
            && before.shared.get(path) == after.added.get(path)
        {
            continue;
        }
        let operation = match is_there {
            true => Operation::Update,
            false => Operation::Add,
        };
        changes.push(Change::new(operation, target));
    }
    let removed = old
        .into_iter()
        .filter(|(path, _)| !is_new.contains(path) && !after.shared.contains_key(*path))
        .filter(|(path, _)| can_undo(&workload, before, path))
        .filter(|(path, _)| !stays_changed(policy, path, earlier));
    changes.extend(removed.map(|(_, target)| Change::new(Operation::TakeOut, target)));
    changes.extend(emptied_collections(before, current, &workload));
    changes
}

/// Reports the recorded policies that are not given and that this run removed.
pub(super) fn report_dropped(
    planned: &mut WorkloadPlan<'_>,
    policies: &[Policy],
    earlier: &EarlierRun<'_>,
    options: &Options,
) {
    for policy in &earlier.record.policies {
        let is_given = policies.iter().any(|given| given.identity == policy.policy);
        if !is_given && is_dropped(policy, options) {
            let outcome = Outcome::TakenOut(removals(policy, planned.record.as_ref(), earlier));
            planned.policies.push(PolicyReport {
                policy: Arc::from(policy.policy.as_str()),
                outcome,
                rules: Vec::new(),
                is_older: false,
            });
        }
    }
}
