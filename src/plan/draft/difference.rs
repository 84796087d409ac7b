//! Two drafts of one object as values, as far as they differ.

use serde_json::{Map, Value, json};

use super::{Draft, Field, Opened, Part};

/// Lists whose items are told apart by their name, so that of those that are as they were nothing else is read.
const NAMED: [&str; 2] = ["containers", "initContainers"];

impl<'t> Draft<'t> {
    /// The object in an earlier draft, which this one was made from, and in this one. What holds the same in both is null
    /// in both, and of a container that is as it was there is its name. `None` where something that differs has no value
    /// that every reader agrees on.
    pub fn difference(&self, earlier: &Draft<'t>) -> Option<(Value, Value)> {
        let later = self;
        Drafts { earlier, later }.parts("", &earlier.root, &later.root)
    }
}

struct Drafts<'d, 't> {
    earlier: &'d Draft<'t>,
    later: &'d Draft<'t>,
}

/// A value before, and now.
type Pair = (Value, Value);

impl Drafts<'_, '_> {
    fn parts(&self, key: &str, was: &Part, now: &Part) -> Option<Pair> {
        if self.is_same(was, now) {
            return self.same(now);
        }
        let is_named = NAMED.contains(&key);
        match now {
            Part::Open(id) => match self.later.opened(*id) {
                Opened::Mapping { fields, .. } => match fields_of(self.earlier, was) {
                    Some(was) if !self.later.has_merge_key(fields) => self.mappings(&was, fields),
                    _ => self.whole(was, now),
                },
                Opened::List { items, .. } if is_named && self.earlier.is_list(was) => {
                    self.lists(was, items)
                }
                Opened::List { .. } => self.whole(was, now),
            },
            Part::Node(_) | Part::New(_) | Part::Instead { .. } => self.whole(was, now),
        }
    }

    fn whole(&self, was: &Part, now: &Part) -> Option<Pair> {
        Some((self.earlier.value(was)?, self.later.value(now)?))
    }

    /// Whether nothing was changed in it.
    fn is_same(&self, was: &Part, now: &Part) -> bool {
        if was != now {
            return false;
        }
        let Part::Open(id) = now else { return true };
        match (self.earlier.opened(*id), self.later.opened(*id)) {
            (Opened::Mapping { fields: was, .. }, Opened::Mapping { fields: now, .. }) => {
                let is_same = |(was, now): (&Field, &Field)| {
                    was.key == now.key && self.is_same(&was.value, &now.value)
                };
                was.len() == now.len() && was.iter().zip(now).all(is_same)
            }
            (Opened::List { items: was, .. }, Opened::List { items: now, .. }) => {
                was.len() == now.len()
                    && was.iter().zip(now).all(|(was, now)| self.is_same(was, now))
            }
            _ => false,
        }
    }

    fn same(&self, part: &Part) -> Option<Pair> {
        let is_collection = match part {
            Part::Open(_) => true,
            Part::Node(node) => {
                let tree = self.later.tree;
                tree.kind(tree.follow(*node)).is_collection()
            }
            Part::New(value) | Part::Instead { value, .. } => value.is_object() || value.is_array(),
        };
        if is_collection {
            return Some((Value::Null, Value::Null));
        }
        let value = self.later.value(part)?;
        Some((value.clone(), value))
    }

    fn mappings(&self, was: &[Field], now: &[Field]) -> Option<Pair> {
        let mut before = Map::with_capacity(was.len());
        let mut after = Map::with_capacity(now.len());
        let mut found: Vec<Option<Value>> = vec![None; was.len()];
        let mut next = 0;
        for field in now {
            let key = self.later.key_in_value(&field.key)?;
            let is_it = |other: &Field| other.key == field.key;
            let at = match was.get(next).is_some_and(is_it) {
                true => Some(next),
                false => was.iter().position(is_it),
            };
            let value = match at {
                Some(at) => {
                    next = at + 1;
                    let (was, now) = self.parts(&key, &was[at].value, &field.value)?;
                    found[at] = Some(was);
                    now
                }
                None => self.later.value(&field.value)?,
            };
            after.insert(key, value);
        }
        for (field, found) in was.iter().zip(found) {
            let key = self.earlier.key_in_value(&field.key)?;
            let value = match found {
                Some(value) => value,
                None => self.earlier.value(&field.value)?,
            };
            before.insert(key, value);
        }
        // Two keys may be one to JSON.
        let is_whole = before.len() == was.len() && after.len() == now.len();
        is_whole.then_some((Value::Object(before), Value::Object(after)))
    }

    fn lists(&self, was: &Part, now: &[Part]) -> Option<Pair> {
        let old: Vec<Part> = self.earlier.items(was);
        let mut before: Vec<Option<Value>> = vec![None; old.len()];
        let mut after = Vec::with_capacity(now.len());
        let mut next = 0;
        for item in now {
            let is_it = |other: &Part| {
                other == item
                    || self
                        .later
                        .origin(item)
                        .is_some_and(|node| *other == Part::Node(node))
            };
            let at = match old.get(next).is_some_and(is_it) {
                true => Some(next),
                false => old.iter().position(is_it),
            };
            let Some(at) = at else {
                after.push(self.later.value(item)?);
                continue;
            };
            next = at + 1;
            let (was, now) = match self.is_same(&old[at], item) {
                true => self.named(item)?,
                false => self.parts("", &old[at], item)?,
            };
            before[at] = Some(was);
            after.push(now);
        }
        let before: Option<Vec<Value>> = before
            .into_iter()
            .zip(&old)
            .map(|(found, item)| found.or_else(|| self.earlier.value(item)))
            .collect();
        Some((Value::Array(before?), Value::Array(after)))
    }

    /// A container that is as it was.
    fn named(&self, container: &Part) -> Option<Pair> {
        let name = self.later.get(container, "name");
        let value = match name.and_then(|name| self.later.value(&name)) {
            Some(name @ Value::String(_)) => json!({"name": name}),
            _ => self.later.value(container)?,
        };
        Some((value.clone(), value))
    }
}

/// The fields of a mapping; `None` for anything else, and where a merge key brings more.
fn fields_of(draft: &Draft<'_>, part: &Part) -> Option<Vec<Field>> {
    let fields = match part {
        Part::Open(id) => match draft.opened(*id) {
            Opened::Mapping { fields, .. } => fields.clone(),
            Opened::List { .. } => return None,
        },
        Part::Node(node) if draft.tree.kind(*node).is_mapping() => draft.fields_in(*node).collect(),
        Part::Node(_) | Part::New(_) | Part::Instead { .. } => return None,
    };
    (!draft.has_merge_key(&fields)).then_some(fields)
}
