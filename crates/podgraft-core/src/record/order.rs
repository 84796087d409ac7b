//! Restores the order of items, and keeps what an API server filled in.

use serde_json::{Map, Value};
use std::collections::HashMap;

use crate::manifest::references::count_filled;
use crate::yaml::value::is_equal;

use super::live::{adopt_live, is_live};
use super::path::{RecordPaths, identities, is_aligned};
use super::renamed::affects;
use super::{Record, digest};

/// Puts list items in the order of `current`. Items that are not in `current` keep their positions among the others.
/// Also keeps what an API server filled in.
pub(crate) fn restore_order(target: &mut Value, current: &Value) {
    arrange_under("", target, current);
    if is_live(current) {
        adopt_live(target, current);
    }
}

/// Like [`restore_order`], for a workload with this record, which has the digests of what is planned: items that a policy
/// injects, and values that it replaces, keep the order inside them. Lists of variables are noted as they are written
/// where `notes_order`, see [`note_order`].
pub(crate) fn restore_order_around(
    record: &Record,
    notes_order: bool,
    target: &mut Value,
    current: &Value,
) {
    let paths = record.paths();
    let effects = || record.policies.iter().map(|policy| &policy.effects);
    let replaced = effects().flat_map(|effects| effects.replaced.keys());
    let replaced = replaced.filter(|path| !(notes_order && is_list_of_variables(path)));
    let whole: Vec<(&String, Value)> = effects()
        .flat_map(|effects| effects.added.keys())
        .chain(replaced)
        .filter_map(|path| Some((path, paths.get(target, path)?.clone())))
        .collect();
    arrange_under("", target, current);
    for (path, planned) in whole {
        if let Some(arranged) = paths.get_mut(target, path) {
            *arranged = planned;
        }
    }
    if is_live(current) {
        adopt_live(target, current);
    }
}

/// Notes in the record the lists of variables that it has as a whole, as they are `written`: in the order of what was
/// there, and not as they were `planned`.
pub(crate) fn note_order<'w>(
    record: &mut Record,
    paths: &RecordPaths,
    planned: impl FnOnce() -> Option<Value>,
    written: impl FnOnce() -> &'w Value,
) {
    let replaced = record
        .policies
        .iter()
        .flat_map(|policy| policy.effects.replaced.keys());
    if !replaced.into_iter().any(|path| is_list_of_variables(path)) {
        return;
    }
    let Some(planned) = planned() else { return };
    let written = written();
    for at in (0..record.policies.len()).rev() {
        let (policies, later) = record.policies.split_at_mut(at + 1);
        for (path, replaced) in &mut policies[at].effects.replaced {
            let is_last = !later.iter().any(|later| affects(&later.effects, path));
            let (Some(before), Some(now)) = (paths.get(&planned, path), paths.get(written, path))
            else {
                continue;
            };
            if is_last && is_list_of_variables(path) && replaced.now == digest(before) {
                replaced.now = digest(now);
            }
        }
    }
}

fn is_list_of_variables(path: &str) -> bool {
    path.ends_with("/env")
}

fn arrange_under(key: &str, target: &mut Value, current: &Value) {
    if is_equal(target, current) {
        return;
    }
    match (target, current) {
        (Value::Object(target), Value::Object(current)) => arrange_fields(target, current),
        (Value::Array(target), Value::Array(current)) if is_aligned(key) => {
            arrange_items(key, target, current)
        }
        _ => {}
    }
}

fn arrange_fields(target: &mut Map<String, Value>, current: &Map<String, Value>) {
    for (key, value) in target.iter_mut() {
        if let Some(current) = current.get(key) {
            arrange_under(key, value, current);
        }
    }
}

fn arrange_items(key: &str, target: &mut Vec<Value>, current: &[Value]) {
    let (target_names, current_names) = (identities(key, target), identities(key, current));
    let current_places: HashMap<&str, usize> = current_names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.as_str(), index))
        .collect();
    let place_of = |index: usize| current_places.get(target_names[index].as_str()).copied();
    let mut in_order: Vec<usize> = (0..target_names.len())
        .filter(|&index| place_of(index).is_some())
        .collect();
    let places = in_order.clone();
    in_order.sort_by_key(|&index| place_of(index));
    // Only the items that are in `current` exchange their positions.
    let exchanged = (places != in_order).then(|| {
        let mut arranged = target.clone();
        for (&place, &from) in places.iter().zip(&in_order) {
            arranged[place] = target[from].clone();
        }
        arranged
    });
    // A restored variable stands before its users.
    let keeps_references =
        |arranged: &Vec<Value>| key != "env" || count_filled(arranged) >= count_filled(target);
    let Some(mut arranged) = exchanged.filter(keeps_references) else {
        for index in places {
            if let Some(current_index) = place_of(index) {
                arrange_under("", &mut target[index], &current[current_index]);
            }
        }
        return;
    };
    for (&place, &from) in places.iter().zip(&in_order) {
        if let Some(index) = place_of(from) {
            arrange_under("", &mut arranged[place], &current[index]);
        }
    }
    *target = arranged;
}
