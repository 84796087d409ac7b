//! Puts removed changes back, and restores the order of items.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

use crate::yaml::value::is_equal;

use super::joined_text::has_token;
use super::live::{adopt_live, is_live};
use super::path::{RecordPaths, identities, is_aligned, split_last};
use super::{Effects, JoinHint, JoinedText, PolicyRecord, effects_of};

/// The prefix for the new name of a manifest's variable whose name is now used by a variable that refers to it.
pub(crate) const ORIGINAL: &str = "PODGRAFT_ORIG_";

/// The steps that put a policy's changes back.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// The policy.
    pub policy: String,
    digest: String,
    set: Option<String>,
    generated: BTreeMap<String, String>,
    steps: Vec<ReplayStep>,
}

#[derive(Debug, Clone)]
enum ReplayStep {
    Insert {
        path: String,
        value: Value,
        digest: String,
        after: Option<String>,
    },
    Set {
        path: String,
        value: Value,
        digest: String,
    },
    Remove {
        path: String,
    },
    Join {
        path: String,
        joined: JoinedText,
        after: Option<String>,
    },
}

/// A conflict: another value is at the path already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayConflict {
    /// The policy that wants its own value there.
    pub policy: String,
    /// The record path.
    pub path: String,
}

impl Replay {
    pub(crate) fn new(policy: &PolicyRecord) -> Self {
        let PolicyRecord {
            policy,
            digest,
            set,
            generated,
            ..
        } = policy.clone();
        Replay {
            policy,
            digest,
            set,
            generated,
            steps: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, path: &str, value: Value, digest: &str, after: Option<String>) {
        self.steps.push(ReplayStep::Insert {
            path: path.to_owned(),
            value,
            digest: digest.to_owned(),
            after,
        });
    }

    pub(crate) fn set(&mut self, path: &str, value: Value, digest: &str) {
        self.steps.push(ReplayStep::Set {
            path: path.to_owned(),
            value,
            digest: digest.to_owned(),
        });
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.steps.push(ReplayStep::Remove {
            path: path.to_owned(),
        });
    }

    pub(crate) fn join(&mut self, path: &str, joined: &JoinedText, after: Option<String>) {
        self.steps.push(ReplayStep::Join {
            path: path.to_owned(),
            joined: joined.clone(),
            after,
        });
    }

    /// Replaces lists of known digests in a policy's record with the one that was in place.
    pub fn resolve(&self, record: &mut PolicyRecord) {
        for step in &self.steps {
            let (ReplayStep::Insert { path, digest, .. } | ReplayStep::Set { path, digest, .. }) =
                step
            else {
                continue;
            };
            let effects = &mut record.effects;
            let replaced = effects.replaced.get_mut(path);
            let places = [
                effects.added.get_mut(path),
                effects.shared.get_mut(path),
                replaced.map(|replaced| &mut replaced.now),
            ];
            for place in places.into_iter().flatten() {
                digest.clone_into(place);
            }
        }
    }

    /// Puts the changes back into a value. Returns the policy's new record.
    ///
    /// # Errors
    /// If another value is at the path of a change.
    pub fn apply(
        &self,
        value: &mut Value,
        paths: &RecordPaths,
    ) -> Result<PolicyRecord, ReplayConflict> {
        let before = value.clone();
        let mut done = Done::default();
        for step in &self.steps {
            done.put_back(step, value, paths)
                .map_err(|path| ReplayConflict {
                    policy: self.policy.clone(),
                    path: path.to_owned(),
                })?;
        }
        let mut effects = effects_of(&before, &*value, paths, &done.joins)
            .expect("a JSON value is the same to all readers");
        keep_digests(&mut effects, done.digests);
        effects.shared = done.shared;
        effects.joined.extend(done.twins);
        let (policy, digest, set) = (self.policy.clone(), self.digest.clone(), self.set.clone());
        Ok(PolicyRecord {
            policy,
            digest,
            set,
            generated: self.generated.clone(),
            effects,
        })
    }
}

/// What has been put back so far.
#[derive(Default)]
struct Done {
    joins: Vec<JoinHint>,
    /// Texts that were there already.
    twins: BTreeMap<String, JoinedText>,
    digests: BTreeMap<String, String>,
    /// Digests of items that were there already.
    shared: BTreeMap<String, String>,
}

impl Done {
    /// Carries out a step. Fails with the path at which there is another value.
    fn put_back<'s>(
        &mut self,
        step: &'s ReplayStep,
        value: &mut Value,
        paths: &RecordPaths,
    ) -> Result<(), &'s str> {
        match step {
            ReplayStep::Insert {
                path,
                value: new_value,
                digest,
                after,
            } => {
                let known = match paths.get(value, path) {
                    Some(existing) if existing == new_value => &mut self.shared,
                    Some(_) => return Err(path),
                    None => {
                        paths.insert(value, path, new_value.clone(), after.as_deref());
                        &mut self.digests
                    }
                };
                known.insert(path.clone(), digest.clone());
            }
            ReplayStep::Set {
                path,
                value: new_value,
                digest,
            } => match paths.get_mut(value, path) {
                Some(place) => {
                    *place = new_value.clone();
                    self.digests.insert(path.clone(), digest.clone());
                }
                None => drop(paths.insert(value, path, new_value.clone(), None)),
            },
            ReplayStep::Remove { path } => drop(paths.remove(value, path)),
            ReplayStep::Join { path, joined, .. } if is_joined(value, path, joined, paths) => {
                self.twins.insert(path.clone(), as_shared(joined));
            }
            ReplayStep::Join {
                path,
                joined,
                after,
            } => {
                let joined = join(value, path, joined, after.as_deref(), paths);
                self.joins.extend(joined);
            }
        }
        Ok(())
    }
}

fn as_shared(joined: &JoinedText) -> JoinedText {
    JoinedText {
        shared: true,
        ..joined.clone()
    }
}

/// Keeps the recorded digests, so that a value that somebody changed still counts as changed.
fn keep_digests(effects: &mut Effects, digests: BTreeMap<String, String>) {
    for (path, digest) in digests {
        if let Some(added) = effects.added.get_mut(&path) {
            *added = digest;
        } else if let Some(replaced) = effects.replaced.get_mut(&path) {
            replaced.now = digest;
        }
    }
}

/// Whether the variable contains the text already. Uses the same test as planning a policy that is given.
fn is_joined(value: &Value, path: &str, joined: &JoinedText, paths: &RecordPaths) -> bool {
    let text = paths
        .get(value, &format!("{path}/value"))
        .and_then(Value::as_str);
    let separator = joined.separator.as_deref().unwrap_or(" ");
    text.is_some_and(|text| has_token(text.trim_end_matches('\n'), &joined.text, separator))
}

fn join(
    value: &mut Value,
    path: &str,
    joined: &JoinedText,
    after: Option<&str>,
    paths: &RecordPaths,
) -> Option<JoinHint> {
    let (list, name) = split_last(path);
    let container = list.strip_suffix("/env")?.to_owned();
    let separator = joined.separator.clone().unwrap_or_else(|| " ".to_owned());
    let hint = JoinHint {
        container,
        name: name.clone(),
        is_before: joined.before,
        separator: separator.clone(),
    };
    let found = paths.get_mut(value, list).and_then(Value::as_array_mut);
    let index = found.as_ref().and_then(|variables| {
        variables
            .iter()
            // If several variables have the same name, the last one counts in Kubernetes.
            .rposition(|item| item.get("name").and_then(Value::as_str) == Some(name.as_str()))
    });
    let (Some(variables), Some(index)) = (found, index) else {
        paths.insert(
            value,
            path,
            json!({"name": name, "value": joined.text}),
            after,
        );
        return Some(hint);
    };
    if variables[index]
        .get("valueFrom")
        .is_some_and(|from| !from.is_null())
    {
        // `$(VAR)` is only expanded if VAR is earlier in the list, so the renamed variable stays in front.
        let original = format!("{ORIGINAL}{name}");
        let composed = join_texts(&format!("$({original})"), joined, &separator);
        variables[index]["name"] = Value::from(original);
        variables.insert(index + 1, json!({"name": name, "value": composed}));
        return Some(hint);
    }
    let old = variables[index]
        .get("value")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    variables[index]["value"] = Value::from(join_texts(&old, joined, &separator));
    Some(hint)
}

fn join_texts(old: &str, joined: &JoinedText, separator: &str) -> String {
    // A value from a `|` block ends with a line feed, which stays at the end.
    let body = old.trim_end_matches('\n');
    let tail = &old[body.len()..];
    match (body.is_empty(), joined.before) {
        (true, _) => joined.text.clone(),
        (false, true) => format!("{}{separator}{old}", joined.text),
        (false, false) => format!("{body}{separator}{}{tail}", joined.text),
    }
}

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
