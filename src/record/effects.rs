//! A workload's value before and after a policy in, what the policy did out.

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

use crate::yaml::value::{field_in, is_equal};

use super::path::{Paths, below, escape, identities, is_aligned};
use super::{Effects, Joined, Removed, Replaced, digest};

/// A policy joined a text with a variable here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinHint {
    /// The path of the container.
    pub container: String,
    /// The variable's name.
    pub name: String,
    /// Ours goes in front.
    pub is_before: bool,
    /// What stands between ours and the rest.
    pub separator: String,
}

/// What turned one value into another.
pub fn effects_of(before: &Value, after: &Value, paths: &Paths, joins: &[JoinHint]) -> Effects {
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
    comparison.values(before, after, &mut Vec::new());
    comparison.effects
}

struct Comparison<'c> {
    paths: &'c Paths,
    /// By the path of the list of variables.
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

/// A mapping, or a list whose items are told apart: something that holds items of its own.
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
    fn values(&mut self, before: &Value, after: &Value, path: &mut Vec<String>) {
        if !is_equal(before, after) {
            self.different(before, after, path);
        }
    }

    fn different(&mut self, before: &Value, after: &Value, path: &mut Vec<String>) {
        let key = path.last().cloned().unwrap_or_default();
        match (before, after) {
            (Value::Object(old), Value::Object(new)) => {
                if old.is_empty() {
                    let text = self.paths.write(path);
                    self.effects.filled.insert(text, before.clone());
                }
                self.mappings(old, new, path);
            }
            (Value::Array(old), Value::Array(new)) if is_aligned(&key) => {
                if old.is_empty() {
                    let text = self.paths.write(path);
                    self.effects.filled.insert(text, before.clone());
                }
                self.lists(&key, (old, new), path);
            }
            (Value::Null, now) if is_holder(now, &key) && !is_empty(now) => {
                let text = self.paths.write(path);
                self.effects.filled.insert(text, Value::Null);
                self.values_in(&empty_like(now), now, path);
            }
            _ => {
                self.effects.replaced.insert(
                    self.paths.write(path),
                    Replaced {
                        was: before.clone(),
                        now: digest(after),
                    },
                );
            }
        }
    }

    /// As [`Comparison::values`], for something empty that stands for nothing.
    fn values_in(&mut self, empty: &Value, after: &Value, path: &mut Vec<String>) {
        let key = path.last().cloned().unwrap_or_default();
        match (empty, after) {
            (Value::Object(old), Value::Object(new)) => self.mappings(old, new, path),
            (Value::Array(old), Value::Array(new)) => self.lists(&key, (old, new), path),
            _ => {}
        }
    }

    fn mappings(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        path: &mut Vec<String>,
    ) {
        let mut previous = "";
        for (key, was) in old {
            match field_in(new, key) {
                Some(now) if is_equal(was, now) => {}
                Some(now) => {
                    path.push(escape(key).into_owned());
                    self.different(was, now, path);
                    path.pop();
                }
                None => {
                    path.push(escape(key).into_owned());
                    self.removed(was, escape(previous).into_owned(), path);
                    path.pop();
                }
            }
            previous = key;
        }
        for (key, now) in new.iter().filter(|(key, _)| field_in(old, key).is_none()) {
            path.push(escape(key).into_owned());
            self.added(now, path);
            path.pop();
        }
    }

    fn removed(&mut self, was: &Value, previous: String, path: &[String]) {
        let removed = Removed {
            was: was.clone(),
            after: Some(previous),
        };
        self.effects.removed.insert(self.paths.write(path), removed);
    }

    /// A field that was not there: what it holds is added, and the field itself made.
    fn added(&mut self, now: &Value, path: &mut Vec<String>) {
        let text = self.paths.write(path);
        let key = path.last().cloned().unwrap_or_default();
        if is_holder(now, &key) && !is_empty(now) {
            self.effects.made.insert(text);
            self.values_in(&empty_like(now), now, path);
        } else {
            self.effects.added.insert(text, digest(now));
        }
    }

    fn lists(&mut self, key: &str, (old, new): (&[Value], &[Value]), path: &mut Vec<String>) {
        let (was, now) = (identities(key, old), identities(key, new));
        let places = |names: &[String]| -> HashMap<String, usize> {
            names.iter().cloned().zip(0..).collect()
        };
        let (was_at, now_at) = (places(&was), places(&now));
        let of_both_before = was.iter().filter(|name| now_at.contains_key(*name));
        let of_both_after = now.iter().filter(|name| was_at.contains_key(*name));
        if !of_both_before.eq(of_both_after) {
            // Items stand in another order, which identities do not say.
            let replaced = Replaced {
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
        for (name, value) in was.iter().zip(old) {
            path.push(name.clone());
            match now_at.get(name) {
                _ if joined.contains(name) => {}
                Some(&at) => self.values(value, &new[at], path),
                None => self.removed(value, previous, path),
            }
            previous = path.pop().unwrap_or_default();
        }
        let is_new = |name: &String| !was_at.contains_key(name) && !joined.contains(name);
        for (name, value) in now.iter().zip(new).filter(|(name, _)| is_new(name)) {
            path.push(name.clone());
            self.effects
                .added
                .insert(self.paths.write(path), digest(value));
            path.pop();
        }
    }

    /// The variables that texts were joined to; none of their items is compared any further.
    fn joins_of(&mut self, path: &[String], lists: (&[Value], &[Value])) -> Vec<String> {
        let list = self.paths.write(path);
        let mut done = Vec::new();
        for hint in self.joins.get(&list).into_iter().flatten() {
            if done.contains(&hint.name) {
                continue;
            }
            if let Some(joined) = join_of(hint, lists) {
                done.push(hint.name.clone());
                done.extend(joined.renamed.clone());
                self.effects.joined.insert(below(&list, &hint.name), joined);
            }
        }
        done
    }
}

fn has_variable(list: &[Value], name: &str) -> bool {
    list.iter()
        .any(|item| item.get("name").and_then(Value::as_str) == Some(name))
}

fn text_of(item: Option<&Value>) -> Option<&str> {
    item?.get("value").and_then(Value::as_str)
}

/// How the text came to the variable; `None` when it is not as simple as that.
fn join_of(hint: &JoinHint, (old, new): (&[Value], &[Value])) -> Option<Joined> {
    let is_it =
        |item: &&Value| item.get("name").and_then(Value::as_str) == Some(hint.name.as_str());
    if old.iter().filter(is_it).count() > 1 {
        return None;
    }
    let now = text_of(new.iter().rfind(is_it))?;
    let had = old.iter().find(is_it);
    let joined = Joined {
        before: hint.is_before,
        ..Joined::default()
    };
    let Some(had) = had else {
        return Some(Joined {
            text: now.to_owned(),
            separator: stated(&hint.separator),
            new: true,
            ..joined
        });
    };
    if had.get("valueFrom").is_some_and(|from| !from.is_null()) {
        let from = had.get("valueFrom");
        let renamed = new.iter().find(|item| {
            let name = item.get("name").and_then(Value::as_str);
            item.get("valueFrom") == from && name.is_some_and(|name| !has_variable(old, name))
        })?;
        let renamed = renamed.get("name")?.as_str()?;
        let (text, between) = split_join(&format!("$({renamed})"), now, hint)?;
        return Some(Joined {
            text,
            separator: stated(&between),
            renamed: Some(renamed.to_owned()),
            ..joined
        });
    }
    let was = had.get("value").map_or(Some(""), Value::as_str)?;
    if had.get("value").is_none_or(Value::is_null) || was.is_empty() || was == now {
        return None;
    }
    let (text, between) = split_join(was, now, hint)?;
    Some(Joined {
        text,
        separator: stated(&between),
        ..joined
    })
}

/// Stated where it is not the one space that most flags have between them.
fn stated(between: &str) -> Option<String> {
    (between != " ").then(|| between.to_owned())
}

/// Ours and what stands between it and the rest.
fn split_join(was: &str, now: &str, hint: &JoinHint) -> Option<(String, String)> {
    let body = was.trim_end_matches('\n');
    let tail = &was[body.len()..];
    let separator = hint.separator.as_str();
    if hint.is_before {
        let ours = now.strip_suffix(was)?;
        let text = ours.strip_suffix(separator)?;
        return Some((text.to_owned(), separator.to_owned()));
    }
    let ours = now.strip_suffix(tail)?.strip_prefix(body)?;
    match ours.strip_prefix(separator) {
        Some(text) if !text.is_empty() => Some((text.to_owned(), separator.to_owned())),
        _ => Some((ours.to_owned(), String::new())),
    }
}
