//! What is put back when a policy goes: its order, and what somebody has changed meanwhile in a list of variables that
//! is recorded as a whole, as where a policy put them into another order. The record has the digest of the list that
//! was written, so a change is found by trying.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::record::{RemovedValue, split_last};

/// The number of variables that are tried as added together.
const LONGEST_RUN: usize = 8;
/// The number of variables of a list that is tried.
const LONGEST_LIST: usize = 500;

/// Returns the variables that were there before the policy, `was`, with what somebody has changed since: variables that
/// were added in a row, or one that has another value. `None` if that does not explain the `current` list. `is_written`
/// tells the list that the policy wrote.
pub(super) fn with_changes(
    was: &Value,
    current: &Value,
    is_written: impl Fn(&Value) -> bool,
) -> Option<Value> {
    let (was, current) = (was.as_array()?, current.as_array()?);
    if current.len() > LONGEST_LIST || !was.iter().chain(current).all(|item| name(item).is_some()) {
        return None;
    }
    with_added(was, current, &is_written).or_else(|| with_edited(was, current, &is_written))
}

fn name(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

fn place_of(items: &[Value], wanted: &Value) -> Option<usize> {
    items.iter().position(|item| name(item) == name(wanted))
}

/// Puts variables that were added behind the nearest that stands before them now, else in front of the next.
fn with_added(
    was: &[Value],
    current: &[Value],
    is_written: &impl Fn(&Value) -> bool,
) -> Option<Value> {
    for start in 0..current.len() {
        for end in start + 1..=current.len().min(start + LONGEST_RUN) {
            let added = &current[start..end];
            if added.iter().any(|item| place_of(was, item).is_some()) {
                break;
            }
            if is_written(&Value::from([&current[..start], &current[end..]].concat())) {
                let kept = |index| kept_place(was, current, index);
                let before = (0..start).rev().find_map(kept).map(|place| place + 1);
                let place = before.or_else(|| (end..current.len()).find_map(kept));
                let (front, back) = was.split_at(place.unwrap_or(was.len()));
                return Some(Value::from([front, added, back].concat()));
            }
        }
    }
    None
}

/// Where a variable stood before, unless the policy put it behind one that it stood in front of.
fn kept_place(was: &[Value], current: &[Value], index: usize) -> Option<usize> {
    let place = place_of(was, &current[index])?;
    let mut before = current[..index]
        .iter()
        .filter_map(|item| place_of(was, item));
    before.all(|other| other < place).then_some(place)
}

/// Gives a variable the value that it has now.
fn with_edited(
    was: &[Value],
    current: &[Value],
    is_written: &impl Fn(&Value) -> bool,
) -> Option<Value> {
    for (index, item) in current.iter().enumerate() {
        let Some(place) = place_of(was, item).filter(|place| was[*place] != *item) else {
            continue;
        };
        let mut written = current.to_vec();
        written[index] = was[place].clone();
        if is_written(&Value::from(written)) {
            let mut edited = was.to_vec();
            edited[place] = item.clone();
            return Some(Value::from(edited));
        }
    }
    None
}

/// Orders removed values so that each comes after the one that it followed, which must be restored first.
pub(super) fn by_place(
    removed_by_path: &BTreeMap<String, RemovedValue>,
) -> Vec<(&String, &RemovedValue)> {
    let (mut order, mut seen) = (Vec::with_capacity(removed_by_path.len()), BTreeSet::new());
    for path in removed_by_path.keys() {
        let mut chain = Vec::new();
        let mut next = path.clone();
        while let Some((path, removed)) = removed_by_path
            .get_key_value(&next)
            .filter(|(path, _)| seen.insert(*path))
        {
            chain.push((path, removed));
            let Some(before) = &removed.after else { break };
            next = format!("{}/{before}", split_last(path).0);
        }
        order.extend(chain.into_iter().rev());
    }
    order
}
