//! Computes what a policy did from a workload's value before and after it.

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

use crate::yaml::value::{field_in, is_equal};

use super::path::{RecordPaths, below, escape, identities, is_aligned};
use super::{Effects, JoinedText, RemovedValue, ReplacedValue, digest};

/// A hint that a policy joined a text to a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinHint {
    /// The record path of the container.
    pub container: String,
    /// The variable's name.
    pub name: String,
    /// The policy's text is put before the variable's.
    pub is_before: bool,
    /// The text between both.
    pub separator: String,
}

/// Returns the effects that turn `before` into `after`.
pub fn effects_of(
    before: &Value,
    after: &Value,
    paths: &RecordPaths,
    joins: &[JoinHint],
) -> Effects {
    let mut by_list: HashMap<String, Vec<&JoinHint>> = HashMap::new();
    for hint in joins {
        let list = format!("{}/env", hint.container);
        by_list.entry(list).or_default().push(hint);
    }
    let mut comparison = Comparison {
        paths,
        joins: by_list,
        effects: Effects::default(),
    };
    comparison.compare_values(before, after, &mut Vec::new());
    comparison.effects
}

struct Comparison<'c> {
    paths: &'c RecordPaths,
    /// The hints, by the path of the `env` list.
    joins: HashMap<String, Vec<&'c JoinHint>>,
    effects: Effects,
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a value holds items of its own: a mapping, or a list whose items have identities.
fn is_holder(value: &Value, key: &str) -> bool {
    value.is_object() || value.is_array() && is_aligned(key)
}

fn empty_like(value: &Value) -> Value {
    if value.is_array() {
        Value::Array(Vec::new())
    } else {
        Value::Object(Map::new())
    }
}

impl Comparison<'_> {
    fn compare_values(&mut self, before: &Value, after: &Value, path: &mut Vec<String>) {
        if !is_equal(before, after) {
            self.compare_different(before, after, path);
        }
    }

    fn compare_different(&mut self, before: &Value, after: &Value, path: &mut Vec<String>) {
        let key = path.last().cloned().unwrap_or_default();
        match (before, after) {
            (Value::Object(old), Value::Object(new)) => {
                if old.is_empty() {
                    let text = self.paths.write(path);
                    self.effects.filled.insert(text, before.clone());
                }
                self.compare_mappings(old, new, path);
            }
            (Value::Array(old), Value::Array(new)) if is_aligned(&key) => {
                if old.is_empty() {
                    let text = self.paths.write(path);
                    self.effects.filled.insert(text, before.clone());
                }
                self.compare_lists(&key, (old, new), path);
            }
            // A key without a value, such as `env:`, is null.
            (Value::Null, new_value) if is_holder(new_value, &key) && !is_empty(new_value) => {
                let text = self.paths.write(path);
                self.effects.filled.insert(text, Value::Null);
                self.compare_with_empty(&empty_like(new_value), new_value, path);
            }
            _ => {
                self.effects.replaced.insert(
                    self.paths.write(path),
                    ReplacedValue {
                        was: before.clone(),
                        now: digest(after),
                    },
                );
            }
        }
    }

    /// Like [`Comparison::compare_values`], but treats `empty` as a value that was not there.
    fn compare_with_empty(&mut self, empty: &Value, after: &Value, path: &mut Vec<String>) {
        let key = path.last().cloned().unwrap_or_default();
        match (empty, after) {
            (Value::Object(old), Value::Object(new)) => self.compare_mappings(old, new, path),
            (Value::Array(old), Value::Array(new)) => self.compare_lists(&key, (old, new), path),
            _ => {}
        }
    }

    fn compare_mappings(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        path: &mut Vec<String>,
    ) {
        let mut previous = "";
        for (key, old_value) in old {
            match field_in(new, key) {
                Some(new_value) if is_equal(old_value, new_value) => {}
                Some(new_value) => {
                    path.push(escape(key).into_owned());
                    self.compare_different(old_value, new_value, path);
                    path.pop();
                }
                None => {
                    path.push(escape(key).into_owned());
                    self.note_removed(old_value, escape(previous).into_owned(), path);
                    path.pop();
                }
            }
            previous = key;
        }
        for (key, new_value) in new.iter().filter(|(key, _)| field_in(old, key).is_none()) {
            path.push(escape(key).into_owned());
            self.note_added(new_value, path);
            path.pop();
        }
    }

    fn note_removed(&mut self, old_value: &Value, previous: String, path: &[String]) {
        let removed = RemovedValue {
            was: old_value.clone(),
            after: Some(previous),
        };
        self.effects.removed.insert(self.paths.write(path), removed);
    }

    /// Records a new field. If it is a mapping or an aligned list, it is recorded as `made` and its contents as
    /// `added`.
    fn note_added(&mut self, new_value: &Value, path: &mut Vec<String>) {
        let text = self.paths.write(path);
        let key = path.last().cloned().unwrap_or_default();
        if is_holder(new_value, &key) && !is_empty(new_value) {
            self.effects.made.insert(text);
            self.compare_with_empty(&empty_like(new_value), new_value, path);
        } else {
            self.effects.added.insert(text, digest(new_value));
        }
    }

    fn compare_lists(
        &mut self,
        key: &str,
        (old, new): (&[Value], &[Value]),
        path: &mut Vec<String>,
    ) {
        let (old_names, new_names) = (identities(key, old), identities(key, new));
        let places = |names: &[String]| -> HashMap<String, usize> {
            names.iter().cloned().zip(0..).collect()
        };
        let (old_places, new_places) = (places(&old_names), places(&new_names));
        let common_before = old_names
            .iter()
            .filter(|name| new_places.contains_key(*name));
        let common_after = new_names
            .iter()
            .filter(|name| old_places.contains_key(*name));
        if !common_before.eq(common_after) {
            // Identities do not record the order of items, so the list is recorded as a whole.
            let replaced = ReplacedValue {
                was: Value::Array(old.to_vec()),
                now: digest(&Value::Array(new.to_vec())),
            };
            self.effects
                .replaced
                .insert(self.paths.write(path), replaced);
            return;
        }
        let joined = if key == "env" {
            self.joins_of(path, (old, new))
        } else {
            Vec::new()
        };
        let joined: HashSet<String> = joined.into_iter().collect();
        let mut previous = String::new();
        for (name, value) in old_names.iter().zip(old) {
            path.push(name.clone());
            match new_places.get(name) {
                _ if joined.contains(name) => {}
                Some(&at) => self.compare_values(value, &new[at], path),
                None => self.note_removed(value, previous, path),
            }
            previous = path.pop().unwrap_or_default();
        }
        let is_new = |name: &String| !old_places.contains_key(name) && !joined.contains(name);
        for (name, value) in new_names.iter().zip(new).filter(|(name, _)| is_new(name)) {
            path.push(name.clone());
            self.effects
                .added
                .insert(self.paths.write(path), digest(value));
            path.pop();
        }
    }

    /// Records the texts that were joined to variables. Returns the names of these variables, whose items are not
    /// compared any further.
    fn joins_of(&mut self, path: &[String], lists: (&[Value], &[Value])) -> Vec<String> {
        let list = self.paths.write(path);
        let mut joined_names = Vec::new();
        for hint in self.joins.get(&list).into_iter().flatten() {
            if joined_names.contains(&hint.name) {
                continue;
            }
            if let Some(joined) = join_of(hint, lists) {
                joined_names.push(hint.name.clone());
                joined_names.extend(joined.renamed.clone());
                self.effects.joined.insert(below(&list, &hint.name), joined);
            }
        }
        joined_names
    }
}

fn has_variable(list: &[Value], name: &str) -> bool {
    list.iter()
        .any(|item| item.get("name").and_then(Value::as_str) == Some(name))
}

fn text_of(item: Option<&Value>) -> Option<&str> {
    item?.get("value").and_then(Value::as_str)
}

/// Returns how the text was joined to the variable. `None` if it was not a simple join.
fn join_of(hint: &JoinHint, (old, new): (&[Value], &[Value])) -> Option<JoinedText> {
    let is_variable =
        |item: &&Value| item.get("name").and_then(Value::as_str) == Some(hint.name.as_str());
    if old.iter().filter(is_variable).count() > 1 {
        return None;
    }
    let new_text = text_of(new.iter().rfind(is_variable))?;
    let old_item = old.iter().find(is_variable);
    let joined = JoinedText {
        before: hint.is_before,
        ..JoinedText::default()
    };
    let Some(old_item) = old_item else {
        return Some(JoinedText {
            text: new_text.to_owned(),
            separator: stated(&hint.separator),
            new: true,
            ..joined
        });
    };
    if old_item
        .get("valueFrom")
        .is_some_and(|from| !from.is_null())
    {
        let from = old_item.get("valueFrom");
        let renamed = new.iter().find(|item| {
            let name = item.get("name").and_then(Value::as_str);
            item.get("valueFrom") == from && name.is_some_and(|name| !has_variable(old, name))
        })?;
        let renamed = renamed.get("name")?.as_str()?;
        let (text, between) = split_join(&format!("$({renamed})"), new_text, hint)?;
        return Some(JoinedText {
            text,
            separator: stated(&between),
            renamed: Some(renamed.to_owned()),
            ..joined
        });
    }
    let old_text = old_item.get("value").map_or(Some(""), Value::as_str)?;
    if old_item.get("value").is_none_or(Value::is_null)
        || old_text.is_empty()
        || old_text == new_text
    {
        return None;
    }
    let (text, between) = split_join(old_text, new_text, hint)?;
    Some(JoinedText {
        text,
        separator: stated(&between),
        ..joined
    })
}

/// A separator as it is recorded: `None` for the single space that most flags have between them.
fn stated(between: &str) -> Option<String> {
    (between != " ").then(|| between.to_owned())
}

/// Splits the joined text off. Returns the policy's text and the separator. Trailing line feeds of the old text stay
/// at the end.
fn split_join(old_text: &str, new_text: &str, hint: &JoinHint) -> Option<(String, String)> {
    let body = old_text.trim_end_matches('\n');
    let tail = &old_text[body.len()..];
    let separator = hint.separator.as_str();
    if hint.is_before {
        let added_text = new_text.strip_suffix(old_text)?;
        let text = added_text.strip_suffix(separator)?;
        return Some((text.to_owned(), separator.to_owned()));
    }
    let added_text = new_text.strip_suffix(tail)?.strip_prefix(body)?;
    match added_text.strip_prefix(separator) {
        Some(text) if !text.is_empty() => Some((text.to_owned(), separator.to_owned())),
        _ => Some((added_text.to_owned(), String::new())),
    }
}
