//! Restores the order of items, and keeps what an API server filled in.

use serde_json::{Map, Value};
use std::collections::HashMap;

use crate::yaml::value::is_equal;

use super::live::{adopt_live, is_live};
use super::path::{identities, is_aligned};

/// Puts list items in the order of `current`. Items that are not in `current` keep their positions among the others.
/// Also keeps what an API server filled in.
pub fn restore_order(target: &mut Value, current: &Value) {
    arrange_under("", target, current);
    if is_live(current) {
        adopt_live(target, current);
    }
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
    if places == in_order {
        for index in places {
            if let Some(current_index) = place_of(index) {
                arrange_under("", &mut target[index], &current[current_index]);
            }
        }
        return;
    }
    // Only the items that are in `current` exchange their positions.
    let mut arranged = target.clone();
    for (&place, &from) in places.iter().zip(&in_order) {
        arranged[place] = target[from].clone();
    }
    for (&place, &from) in places.iter().zip(&in_order) {
        if let Some(index) = place_of(from) {
            arrange_under("", &mut arranged[place], &current[index]);
        }
    }
    *target = arranged;
}
