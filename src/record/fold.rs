//! Putting back what was taken out, and keeping the order in which things stand.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

use crate::yaml::value::is_equal;

use super::inverse::has_token;
use super::live::{adopt_live, is_live};
use super::path::{Paths, identities, is_aligned, split_last};
use super::{Effects, JoinHint, Joined, PolicyRecord, effects_of};

/// The name that a variable of the manifest gets where one of its own name is composed of it.
pub(crate) const ORIGINAL: &str = "PODGRAFT_ORIG_";

/// What puts a policy's work back.
#[derive(Debug, Clone, Default)]
pub struct Redo {
    /// The policy.
    pub policy: String,
    digest: String,
    set: Option<String>,
    generated: BTreeMap<String, String>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
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
        joined: Joined,
        after: Option<String>,
    },
}

/// A value that is there already, and is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTheWay {
    /// The policy that wants its own value there.
    pub policy: String,
    /// Where.
    pub path: String,
}

impl Redo {
    pub(super) fn new(policy: &PolicyRecord) -> Self {
        let PolicyRecord {
            policy,
            digest,
            set,
            generated,
            ..
        } = policy.clone();
        Redo {
            policy,
            digest,
            set,
            generated,
            steps: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, path: &str, value: Value, digest: &str, after: Option<String>) {
        self.steps.push(Step::Insert {
            path: path.to_owned(),
            value,
            digest: digest.to_owned(),
            after,
        });
    }

    pub(super) fn set(&mut self, path: &str, value: Value, digest: &str) {
        self.steps.push(Step::Set {
            path: path.to_owned(),
            value,
            digest: digest.to_owned(),
        });
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.steps.push(Step::Remove {
            path: path.to_owned(),
        });
    }

    pub(super) fn join(&mut self, path: &str, joined: &Joined, after: Option<String>) {
        self.steps.push(Step::Join {
            path: path.to_owned(),
            joined: joined.clone(),
            after,
        });
    }

    /// Of several contents that a policy's record knows, the ones that were there.
    pub fn resolve(&self, record: &mut PolicyRecord) {
        for step in &self.steps {
            let (Step::Insert { path, digest, .. } | Step::Set { path, digest, .. }) = step else {
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

    /// Puts it back into a value. Gives the policy's new record.
    ///
    /// # Errors
    /// Where something else stands in its place.
    pub fn apply(&self, value: &mut Value, paths: &Paths) -> Result<PolicyRecord, InTheWay> {
        let before = value.clone();
        let mut done = Done::default();
        for step in &self.steps {
            done.put_back(step, value, paths).map_err(|path| InTheWay {
                policy: self.policy.clone(),
                path: path.to_owned(),
            })?;
        }
        let mut effects = effects_of(&before, value, paths, &done.joins);
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

/// What of a policy's work was put back so far.
#[derive(Default)]
struct Done {
    joins: Vec<JoinHint>,
    /// Texts that stood there already.
    twins: BTreeMap<String, Joined>,
    digests: BTreeMap<String, String>,
    /// Digests of items that stood there already.
    shared: BTreeMap<String, String>,
}

impl Done {
    /// Does a step, or gives the place where something else stands in its way.
    fn put_back<'s>(
        &mut self,
        step: &'s Step,
        value: &mut Value,
        paths: &Paths,
    ) -> Result<(), &'s str> {
        match step {
            Step::Insert {
                path,
                value: own,
                digest,
                after,
            } => {
                let known = match paths.get(value, path) {
                    Some(there) if there == own => &mut self.shared,
                    Some(_) => return Err(path),
                    None => {
                        paths.insert(value, path, own.clone(), after.as_deref());
                        &mut self.digests
                    }
                };
                known.insert(path.clone(), digest.clone());
            }
            Step::Set {
                path,
                value: own,
                digest,
            } => match paths.get_mut(value, path) {
                Some(place) => {
                    *place = own.clone();
                    self.digests.insert(path.clone(), digest.clone());
                }
                None => drop(paths.insert(value, path, own.clone(), None)),
            },
            Step::Remove { path } => drop(paths.remove(value, path)),
            Step::Join { path, joined, .. } if is_joined(value, path, joined, paths) => {
                self.twins.insert(path.clone(), as_shared(joined));
            }
            Step::Join {
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

fn as_shared(joined: &Joined) -> Joined {
    Joined {
        shared: true,
        ..joined.clone()
    }
}

/// What somebody changed stays changed: the digests are those of what was put there.
fn keep_digests(effects: &mut Effects, digests: BTreeMap<String, String>) {
    for (path, digest) in digests {
        if let Some(own) = effects.added.get_mut(&path) {
            *own = digest;
        } else if let Some(own) = effects.replaced.get_mut(&path) {
            own.now = digest;
        }
    }
}

/// Whether the same text is there already, as it is asked when the policy is given.
fn is_joined(value: &Value, path: &str, joined: &Joined, paths: &Paths) -> bool {
    let text = paths
        .get(value, &format!("{path}/value"))
        .and_then(Value::as_str);
    let separator = joined.separator.as_deref().unwrap_or(" ");
    text.is_some_and(|text| has_token(text.trim_end_matches('\n'), &joined.text, separator))
}

fn join(
    value: &mut Value,
    path: &str,
    joined: &Joined,
    after: Option<&str>,
    paths: &Paths,
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
    let at = found.as_ref().and_then(|variables| {
        variables
            .iter()
            .rposition(|item| item.get("name").and_then(Value::as_str) == Some(name.as_str()))
    });
    let (Some(variables), Some(at)) = (found, at) else {
        paths.insert(
            value,
            path,
            json!({"name": name, "value": joined.text}),
            after,
        );
        return Some(hint);
    };
    if variables[at]
        .get("valueFrom")
        .is_some_and(|from| !from.is_null())
    {
        let original = format!("{ORIGINAL}{name}");
        let composed = put_together(&format!("$({original})"), joined, &separator);
        variables[at]["name"] = Value::from(original);
        variables.insert(at + 1, json!({"name": name, "value": composed}));
        return Some(hint);
    }
    let old = variables[at]
        .get("value")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    variables[at]["value"] = Value::from(put_together(&old, joined, &separator));
    Some(hint)
}

fn put_together(old: &str, joined: &Joined, separator: &str) -> String {
    let body = old.trim_end_matches('\n');
    let tail = &old[body.len()..];
    match (body.is_empty(), joined.before) {
        (true, _) => joined.text.clone(),
        (false, true) => format!("{}{separator}{old}", joined.text),
        (false, false) => format!("{body}{separator}{}{tail}", joined.text),
    }
}

/// Puts the items of lists in the order in which they stand in `current`; those that are not there stay where they
/// are among the others. What an API server filled in stays.
pub fn arrange(target: &mut Value, current: &Value) {
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
    let (own, there) = (identities(key, target), identities(key, current));
    let there: HashMap<&str, usize> = there
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), at))
        .collect();
    let place_of = |at: usize| there.get(own[at].as_str()).copied();
    let mut in_order: Vec<usize> = (0..own.len())
        .filter(|&at| place_of(at).is_some())
        .collect();
    let places = in_order.clone();
    in_order.sort_by_key(|&at| place_of(at));
    if places == in_order {
        for at in places {
            if let Some(there) = place_of(at) {
                arrange_under("", &mut target[at], &current[there]);
            }
        }
        return;
    }
    let mut arranged = target.clone();
    for (&place, &from) in places.iter().zip(&in_order) {
        arranged[place] = target[from].clone();
    }
    for (&place, &from) in places.iter().zip(&in_order) {
        if let Some(at) = place_of(from) {
            arrange_under("", &mut arranged[place], &current[at]);
        }
    }
    *target = arranged;
}
