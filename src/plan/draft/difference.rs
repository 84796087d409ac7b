//! The difference of two drafts of one object, as a pair of values.

use serde_json::{Map, Value, json};

use super::{Draft, DraftField, DraftValue, OpenedCollection};

/// Lists whose items are identified by name. Of an unchanged item, only the name is in the difference.
const NAMED: [&str; 2] = ["containers", "initContainers"];

impl<'t> Draft<'t> {
    /// Returns the object in `earlier`, from which this draft was made, and in this draft. An unchanged collection is
    /// null in both; an unchanged container has only its name. `None` if a part that differs has no value that all
    /// readers agree on.
    pub fn difference(&self, earlier: &Draft<'t>) -> Option<(Value, Value)> {
        let later = self;
        DraftComparison { earlier, later }.parts("", &earlier.root, &later.root)
    }
}

struct DraftComparison<'d, 't> {
    earlier: &'d Draft<'t>,
    later: &'d Draft<'t>,
}

/// A value before and after.
type ValueChange = (Value, Value);

impl DraftComparison<'_, '_> {
    fn parts(&self, key: &str, earlier: &DraftValue, later: &DraftValue) -> Option<ValueChange> {
        if self.is_same(earlier, later) {
            return self.unchanged_pair(later);
        }
        let is_named = NAMED.contains(&key);
        match later {
            DraftValue::Open(id) => match self.later.opened(*id) {
                OpenedCollection::Mapping { fields, .. } => {
                    match fields_of(self.earlier, earlier) {
                        Some(earlier) if !self.later.has_merge_key(fields) => {
                            self.mappings(&earlier, fields)
                        }
                        _ => self.changed_pair(earlier, later),
                    }
                }
                OpenedCollection::List { items, .. }
                    if is_named && self.earlier.is_list(earlier) =>
                {
                    self.lists(earlier, items)
                }
                OpenedCollection::List { .. } => self.changed_pair(earlier, later),
            },
            DraftValue::Node(_) | DraftValue::New(_) | DraftValue::Instead { .. } => {
                self.changed_pair(earlier, later)
            }
        }
    }

    fn changed_pair(&self, earlier: &DraftValue, later: &DraftValue) -> Option<ValueChange> {
        Some((self.earlier.value(earlier)?, self.later.value(later)?))
    }

    /// Whether a part is the same in both drafts. An opened part has the same id in both, so its content is compared.
    fn is_same(&self, earlier: &DraftValue, later: &DraftValue) -> bool {
        if earlier != later {
            return false;
        }
        let DraftValue::Open(id) = later else {
            return true;
        };
        match (self.earlier.opened(*id), self.later.opened(*id)) {
            (
                OpenedCollection::Mapping {
                    fields: earlier, ..
                },
                OpenedCollection::Mapping { fields: later, .. },
            ) => {
                let is_same = |(earlier, later): (&DraftField, &DraftField)| {
                    earlier.key == later.key && self.is_same(&earlier.value, &later.value)
                };
                earlier.len() == later.len() && earlier.iter().zip(later).all(is_same)
            }
            (
                OpenedCollection::List { items: earlier, .. },
                OpenedCollection::List { items: later, .. },
            ) => {
                earlier.len() == later.len()
                    && earlier
                        .iter()
                        .zip(later)
                        .all(|(earlier, later)| self.is_same(earlier, later))
            }
            _ => false,
        }
    }

    fn unchanged_pair(&self, part: &DraftValue) -> Option<ValueChange> {
        let is_collection = match part {
            DraftValue::Open(_) => true,
            DraftValue::Node(node) => {
                let tree = self.later.tree;
                tree.kind(tree.follow(*node)).is_collection()
            }
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                value.is_object() || value.is_array()
            }
        };
        if is_collection {
            return Some((Value::Null, Value::Null));
        }
        let value = self.later.value(part)?;
        Some((value.clone(), value))
    }

    fn mappings(&self, earlier: &[DraftField], later: &[DraftField]) -> Option<ValueChange> {
        let mut before = Map::with_capacity(earlier.len());
        let mut after = Map::with_capacity(later.len());
        let mut found: Vec<Option<Value>> = vec![None; earlier.len()];
        let mut next = 0;
        for field in later {
            let key = self.later.key_in_value(&field.key)?;
            let is_match = |candidate: &DraftField| candidate.key == field.key;
            // Fields mostly keep their order, so the field behind the last match is tried first.
            let at = match earlier.get(next).is_some_and(is_match) {
                true => Some(next),
                false => earlier.iter().position(is_match),
            };
            let value = match at {
                Some(at) => {
                    next = at + 1;
                    let (earlier, later) = self.parts(&key, &earlier[at].value, &field.value)?;
                    found[at] = Some(earlier);
                    later
                }
                None => self.later.value(&field.value)?,
            };
            after.insert(key, value);
        }
        for (field, found) in earlier.iter().zip(found) {
            let key = self.earlier.key_in_value(&field.key)?;
            let value = match found {
                Some(value) => value,
                None => self.earlier.value(&field.value)?,
            };
            before.insert(key, value);
        }
        // Two different keys in YAML may be the same string in JSON.
        let is_whole = before.len() == earlier.len() && after.len() == later.len();
        is_whole.then_some((Value::Object(before), Value::Object(after)))
    }

    fn lists(&self, earlier: &DraftValue, later: &[DraftValue]) -> Option<ValueChange> {
        let old: Vec<DraftValue> = self.earlier.items(earlier);
        let mut before: Vec<Option<Value>> = vec![None; old.len()];
        let mut after = Vec::with_capacity(later.len());
        let mut next = 0;
        for item in later {
            let is_match = |candidate: &DraftValue| {
                candidate == item
                    || self
                        .later
                        .origin(item)
                        .is_some_and(|node| *candidate == DraftValue::Node(node))
            };
            let at = match old.get(next).is_some_and(is_match) {
                true => Some(next),
                false => old.iter().position(is_match),
            };
            let Some(at) = at else {
                after.push(self.later.value(item)?);
                continue;
            };
            next = at + 1;
            let (earlier, later) = match self.is_same(&old[at], item) {
                true => self.named(item)?,
                false => self.parts("", &old[at], item)?,
            };
            before[at] = Some(earlier);
            after.push(later);
        }
        let before: Option<Vec<Value>> = before
            .into_iter()
            .zip(&old)
            .map(|(found, item)| found.or_else(|| self.earlier.value(item)))
            .collect();
        Some((Value::Array(before?), Value::Array(after)))
    }

    /// An unchanged container: only its name, if it has one.
    fn named(&self, container: &DraftValue) -> Option<ValueChange> {
        let name = self.later.get(container, "name");
        let value = match name.and_then(|name| self.later.value(&name)) {
            Some(name @ Value::String(_)) => json!({"name": name}),
            _ => self.later.value(container)?,
        };
        Some((value.clone(), value))
    }
}

/// The fields of a mapping. `None` for anything else, and for a mapping with a merge key, which has more fields.
fn fields_of(draft: &Draft<'_>, part: &DraftValue) -> Option<Vec<DraftField>> {
    let fields = match part {
        DraftValue::Open(id) => match draft.opened(*id) {
            OpenedCollection::Mapping { fields, .. } => fields.clone(),
            OpenedCollection::List { .. } => return None,
        },
        DraftValue::Node(node) if draft.tree.kind(*node).is_mapping() => {
            draft.fields_in(*node).collect()
        }
        DraftValue::Node(_) | DraftValue::New(_) | DraftValue::Instead { .. } => return None,
    };
    (!draft.has_merge_key(&fields)).then_some(fields)
}
