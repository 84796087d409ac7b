//! Restores the order of items, and keeps what an API server filled in.

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

use crate::manifest::references::count_filled;
use crate::yaml::value::is_equal;

use super::live::{FilledIn, is_live};
use super::path::{RecordPaths, escape, identities, is_aligned};
use super::renamed::affects;
use super::{Record, digest};

/// Puts list items in the order of `current`. Items that are not in `current` keep their positions among the others.
/// Also keeps what an API server filled in.
pub(crate) fn restore_order(target: &mut Value, current: &Value) {
    restore(Arrangement::default(), None, target, current);
}

/// Like [`restore_order`], for a workload that had the record `earlier`. A default that is in there was not filled in by
/// the server. `record` has the digests of what is planned: items that a policy injects, and values that it replaces,
/// keep the order inside them. Lists of variables are noted as they are written where `notes_order`, see [`note_order`].
pub(crate) fn restore_order_around(
    earlier: &Record,
    record: Option<&Record>,
    notes_order: bool,
    target: &mut Value,
    current: &Value,
) {
    let Some(record) = record else {
        return restore(Arrangement::default(), Some(earlier), target, current);
    };
    let effects = || record.policies.iter().map(|policy| &policy.effects);
    let replaced = effects().flat_map(|effects| effects.replaced.keys());
    let replaced = replaced.filter(|path| !(notes_order && is_list_of_variables(path)));
    let added = effects().flat_map(|effects| effects.added.keys());
    let arrangement = Arrangement {
        fixed: added.chain(replaced).map(String::as_str).collect(),
        paths: Some(record.paths()),
        segments: Vec::new(),
    };
    restore(arrangement, Some(earlier), target, current);
}

fn restore(
    mut arrangement: Arrangement<'_>,
    earlier: Option<&Record>,
    target: &mut Value,
    current: &Value,
) {
    if !is_equal(target, current) {
        arrangement.value("", target, current);
    }
    if is_live(current) {
        let filled_in = earlier.map(FilledIn::beside).unwrap_or_default();
        filled_in.adopt(target, current);
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

/// Arranges the items of a value like those of another one.
#[derive(Default)]
struct Arrangement<'r> {
    /// The paths of values that stay as they are.
    fixed: HashSet<&'r str>,
    paths: Option<RecordPaths>,
    /// The escaped keys and the identities that lead to the current value, if any value is fixed.
    segments: Vec<String>,
}

impl Arrangement<'_> {
    fn value(&mut self, key: &str, target: &mut Value, current: &Value) {
        match (target, current) {
            (Value::Object(target), Value::Object(current)) => self.fields(target, current),
            (Value::Array(target), Value::Array(current)) if is_aligned(key) => {
                self.items(key, target, current);
            }
            _ => {}
        }
    }

    /// Arranges a value in the current one.
    fn inner(&mut self, segment: &str, key: &str, target: &mut Value, current: &Value) {
        if is_equal(target, current) {
            return;
        }
        let Some(paths) = &self.paths else {
            return self.value(key, target, current);
        };
        self.segments.push(segment.to_owned());
        if !self.fixed.contains(&*paths.write(&self.segments)) {
            self.value(key, target, current);
        }
        self.segments.pop();
    }

    fn fields(&mut self, target: &mut Map<String, Value>, current: &Map<String, Value>) {
        for (key, value) in target.iter_mut() {
            if let Some(current) = current.get(key) {
                self.inner(&escape(key), key, value, current);
            }
        }
    }

    fn items(&mut self, key: &str, target: &mut Vec<Value>, current: &[Value]) {
        let (target_names, current_names) = (identities(key, target), identities(key, current));
        let current_places: HashMap<&str, usize> = current_names
            .iter()
            .enumerate()
            .map(|(index, name)| (name.as_str(), index))
            .collect();
        let place_of = |index: usize| current_places.get(target_names[index].as_str()).copied();
        let places: Vec<usize> = (0..target_names.len())
            .filter(|&index| place_of(index).is_some())
            .collect();
        let mut sources = places.clone();
        sources.sort_by_key(|&index| place_of(index));
        // Only the items that are in `current` exchange their positions.
        if places != sources {
            let mut exchanged = target.clone();
            for (&place, &source) in places.iter().zip(&sources) {
                exchanged[place] = target[source].clone();
            }
            // A restored variable stands before its users.
            match key != "env" || count_filled(&exchanged) >= count_filled(target) {
                true => *target = exchanged,
                false => sources.clone_from(&places),
            }
        }
        for (&place, &source) in places.iter().zip(&sources) {
            if let Some(index) = place_of(source) {
                self.inner(
                    &target_names[source],
                    "",
                    &mut target[place],
                    &current[index],
                );
            }
        }
    }
}
