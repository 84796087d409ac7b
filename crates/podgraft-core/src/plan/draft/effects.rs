//! Computes what a policy did from an object before and after it.

use foldhash::{HashMap, HashSet};
use serde_json::{Map, Value};
use std::borrow::Cow;

use crate::yaml::value::is_equal;

use crate::record::{
    Effects, JoinHint, JoinedText, NamePlaces, RecordPaths, RemovedValue, ReplacedValue, below,
    digest, escape, identity_of_item, identity_of_name, is_aligned, is_empty, name_field,
    numbered_identities,
};

use super::part::{DraftPart, PartFields};

/// Returns the effects that turn `before` into `after`. `None` if a part that differs has no value that all readers
/// agree on.
pub(in crate::plan) fn effects_of(
    before: DraftPart<'_>,
    after: DraftPart<'_>,
    paths: &RecordPaths,
    joins: &[JoinHint],
) -> Option<Effects> {
    let mut by_container: HashMap<&str, Vec<&JoinHint>> = HashMap::default();
    for hint in joins {
        by_container.entry(&hint.container).or_default().push(hint);
    }
    let mut comparison = Comparison {
        paths,
        joins: by_container,
        effects: Effects::default(),
        path: Vec::new(),
    };
    comparison.compare(before, after)?;
    Some(comparison.effects)
}

/// How far ahead a key is searched before the texts of all keys are read.
const NEAR: usize = 8;

type Names = HashSet<String>;

struct Comparison<'c> {
    paths: &'c RecordPaths,
    /// The hints, by the path of the container.
    joins: HashMap<&'c str, Vec<&'c JoinHint>>,
    effects: Effects,
    /// The keys and identities that lead to the current part, escaped.
    path: Vec<String>,
}

impl Comparison<'_> {
    fn path(&self) -> String {
        self.paths.write(&self.path)
    }

    /// The path of an entry of the current part.
    fn path_to(&mut self, segment: String) -> String {
        self.path.push(segment);
        let path = self.path();
        self.path.pop();
        path
    }

    /// The key of the current part.
    fn key(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Whether the value of the current part holds items of its own: a mapping, or a list whose items have identities.
    fn is_holder(&self, value: &Value) -> bool {
        value.is_object() || value.is_array() && is_aligned(self.key())
    }

    /// Does a step for an entry of the current part.
    fn within(
        &mut self,
        segment: String,
        step: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.path.push(segment);
        step(self)?;
        self.path.pop();
        Some(())
    }

    fn compare(&mut self, before: DraftPart<'_>, after: DraftPart<'_>) -> Option<()> {
        match before.is_same(after) {
            true => Some(()),
            false => self.compare_different(before, after),
        }
    }

    fn compare_different(&mut self, before: DraftPart<'_>, after: DraftPart<'_>) -> Option<()> {
        if let Some((old, new)) = before.fields().zip(after.fields()) {
            if old.is_empty() && !new.is_empty() {
                let empty = Value::Object(Map::new());
                self.effects.filled.insert(self.path(), empty);
            }
            return self.compare_mappings(&old, &new);
        }
        let is_list = is_aligned(self.key());
        if let Some((old, new)) = is_list.then(|| before.items().zip(after.items())).flatten() {
            let identities = AlignedLists::of(self.key(), &old, &new)?;
            if identities.are_in_order() {
                if old.is_empty() && !new.is_empty() {
                    let empty = Value::Array(Vec::new());
                    self.effects.filled.insert(self.path(), empty);
                }
                return self.compare_lists(&identities, &old, &new);
            }
            // Identities do not record the order of items, so the list is recorded as a whole.
        }
        self.compare_values(before.value()?, &*after.value()?)
    }

    /// Compares two values of which at least one is neither a mapping nor a list whose items can be compared.
    fn compare_values(&mut self, before: Cow<'_, Value>, after: &Value) -> Option<()> {
        if is_equal(&before, after) {
            return Some(());
        }
        if before.is_object() && after.is_object() {
            return self.compare(DraftPart::Planned(&before), DraftPart::Planned(after));
        }
        // A key without a value, such as `env:`, is null.
        if before.is_null() && self.is_holder(after) && !is_empty(after) {
            self.effects.filled.insert(self.path(), Value::Null);
            return self.note_content(after);
        }
        let replaced = ReplacedValue {
            was: before.into_owned(),
            now: digest(after),
        };
        self.effects.replaced.insert(self.path(), replaced);
        Some(())
    }

    fn compare_mappings(&mut self, old: &PartFields<'_>, new: &PartFields<'_>) -> Option<()> {
        let mut is_new = vec![true; new.len()];
        for (index, place) in places_of_fields(old, new)?.into_iter().enumerate() {
            let (key, old_value) = old[index];
            let Some(at) = place else {
                let previous = index.checked_sub(1).map(|before| old[before].0.text());
                let previous = previous.map_or(Some(Cow::Borrowed("")), |text| text)?;
                let previous = escape(&previous).into_owned();
                self.note_removed(escape(&key.text()?).into_owned(), old_value, previous)?;
                continue;
            };
            is_new[at] = false;
            let new_value = new[at].1;
            if !old_value.is_same(new_value) {
                let segment = escape(&key.text()?).into_owned();
                self.within(segment, |inner| {
                    inner.compare_different(old_value, new_value)
                })?;
            }
        }
        for ((key, new_value), _) in new.iter().zip(is_new).filter(|(_, is_new)| *is_new) {
            let segment = escape(&key.text()?).into_owned();
            self.within(segment, |inner| inner.note_added(&*new_value.value()?))?;
        }
        Some(())
    }

    fn note_removed(
        &mut self,
        segment: String,
        old_value: DraftPart<'_>,
        previous: String,
    ) -> Option<()> {
        let removed = RemovedValue {
            was: old_value.value()?.into_owned(),
            after: Some(previous),
        };
        let path = self.path_to(segment);
        self.effects.removed.insert(path, removed);
        Some(())
    }

    /// Records a new field. If it is a mapping or an aligned list, it is recorded as `made` and its contents as
    /// `added`.
    fn note_added(&mut self, new_value: &Value) -> Option<()> {
        if self.is_holder(new_value) && !is_empty(new_value) {
            self.effects.made.insert(self.path());
            return self.note_content(new_value);
        }
        self.effects.added.insert(self.path(), digest(new_value));
        Some(())
    }

    /// Records what is in a new mapping or list.
    fn note_content(&mut self, new_value: &Value) -> Option<()> {
        let new_value = DraftPart::Planned(new_value);
        if let Some(fields) = new_value.fields() {
            return self.compare_mappings(&Vec::new(), &fields);
        }
        let items = new_value.items()?;
        let identities = AlignedLists::of(self.key(), &[], &items)?;
        self.compare_lists(&identities, &[], &items)
    }

    fn compare_lists(
        &mut self,
        identities: &AlignedLists,
        old: &[DraftPart<'_>],
        new: &[DraftPart<'_>],
    ) -> Option<()> {
        let joined = match self.key() {
            "env" => self.joins_of(old, new),
            _ => Names::default(),
        };
        let is_joined = |name: &String| joined.contains(name);
        let mut previous = "";
        for ((name, value), place) in identities.old.iter().zip(old).zip(&identities.places) {
            match place {
                _ if is_joined(name) => {}
                Some(at) => {
                    self.within(name.clone(), |inner| inner.compare(*value, new[*at]))?;
                }
                None => self.note_removed(name.clone(), *value, previous.to_owned())?,
            }
            previous = name;
        }
        let mut is_new = vec![true; new.len()];
        for &at in identities.places.iter().flatten() {
            is_new[at] = false;
        }
        for ((name, value), is_new) in identities.new.iter().zip(new).zip(is_new) {
            if is_new && !is_joined(name) {
                let digest = digest(&*value.value()?);
                let path = self.path_to(name.clone());
                self.effects.added.insert(path, digest);
            }
        }
        Some(())
    }

    /// Records the texts that were joined to variables. Returns the names of these variables, whose items are not
    /// compared any further.
    fn joins_of(&mut self, old: &[DraftPart<'_>], new: &[DraftPart<'_>]) -> Names {
        let mut joined_names = Names::default();
        if self.joins.is_empty() {
            return joined_names;
        }
        let list = self.path();
        let container = list.strip_suffix("/env").unwrap_or_default();
        for hint in self.joins.get(container).into_iter().flatten() {
            if joined_names.contains(&hint.name) {
                continue;
            }
            if let Some(joined) = join_of(hint, old, new) {
                joined_names.insert(hint.name.clone());
                joined_names.extend(joined.renamed.clone());
                self.effects.joined.insert(below(&list, &hint.name), joined);
            }
        }
        joined_names
    }
}

/// The index of each old field in the new mapping.
fn places_of_fields(old: &PartFields<'_>, new: &PartFields<'_>) -> Option<Vec<Option<usize>>> {
    let mut next = 0;
    let unread = old.iter().map(|(key, _)| {
        let mut near = new[next..].iter().take(NEAR);
        let at = next + near.position(|(other, _)| key.is_same(*other))?;
        next = at + 1;
        Some(Some(at))
    });
    if let Some(places) = unread.collect() {
        return Some(places);
    }
    let texts = new.iter().map(|(key, _)| key.text());
    let texts: Vec<Cow<'_, str>> = texts.collect::<Option<_>>()?;
    let mut names = NamePlaces::of(texts.iter().map(|text| &**text));
    old.iter()
        .map(|(key, _)| Some(names.find(&key.text()?)))
        .collect()
}

/// The identities of the items of a list before and after.
struct AlignedLists {
    old: Vec<String>,
    new: Vec<String>,
    /// The index of each old item in the new list.
    places: Vec<Option<usize>>,
}

impl AlignedLists {
    fn of(key: &str, old: &[DraftPart<'_>], new: &[DraftPart<'_>]) -> Option<Self> {
        let old_names: Vec<String> = old
            .iter()
            .map(|item| identity_of(key, *item))
            .collect::<Option<_>>()?;
        let mut unchanged = old.iter().zip(&old_names).peekable();
        let new_names = new.iter().map(|item| {
            match unchanged.next_if(|(old_item, _)| old_item.is_same(*item)) {
                Some((_, name)) => Some(name.clone()),
                None => identity_of(key, *item),
            }
        });
        let new = numbered_identities(new_names.collect::<Option<_>>()?);
        let old = numbered_identities(old_names);
        let mut names = NamePlaces::of(new.iter().map(String::as_str));
        let places = old.iter().map(|name| names.find(name)).collect();
        Some(AlignedLists { old, new, places })
    }

    /// Whether the items that are in both lists have the same order in both.
    fn are_in_order(&self) -> bool {
        self.places.iter().flatten().is_sorted()
    }
}

/// The identity of an item, without a number. Reads only the name of an item that has one.
fn identity_of(key: &str, item: DraftPart<'_>) -> Option<String> {
    match name_field(key).and_then(|field| item.text(field)) {
        Some(name) => Some(identity_of_name(key, &name)),
        None => Some(identity_of_item(key, &*item.value()?)),
    }
}

fn has_variable(list: &[DraftPart<'_>], name: &str) -> bool {
    list.iter()
        .any(|item| item.text("name").as_deref() == Some(name))
}

/// Returns how the text was joined to the variable. `None` if it was not a simple join.
fn join_of(hint: &JoinHint, old: &[DraftPart<'_>], new: &[DraftPart<'_>]) -> Option<JoinedText> {
    let is_variable =
        |item: &&DraftPart<'_>| item.text("name").is_some_and(|name| *name == hint.name);
    let mut variables = old.iter().filter(is_variable);
    let (old_item, has_twin) = (variables.next(), variables.next().is_some());
    if has_twin {
        return None;
    }
    let new_text = new.iter().rfind(is_variable)?.text("value")?;
    let joined = |text: String, separator: &str| JoinedText {
        text,
        separator: stated(separator),
        before: hint.is_before,
        ..JoinedText::default()
    };
    let Some(old_item) = old_item else {
        return Some(JoinedText {
            new: true,
            ..joined(new_text.into_owned(), &hint.separator)
        });
    };
    let old_item = old_item.value()?;
    if let Some(from) = old_item.get("valueFrom").filter(|from| !from.is_null()) {
        let renamed = new.iter().find_map(|item| {
            let name = item.text("name").filter(|name| !has_variable(old, name))?;
            (item.value()?.get("valueFrom") == Some(from)).then_some(name)
        })?;
        let (text, between) = split_join(&format!("$({renamed})"), &new_text, hint)?;
        return Some(JoinedText {
            renamed: Some(renamed.into_owned()),
            ..joined(text, between)
        });
    }
    let old_text = old_item.get("value")?.as_str()?;
    if old_text.is_empty() || old_text == new_text {
        return None;
    }
    let (text, between) = split_join(old_text, &new_text, hint)?;
    Some(joined(text, between))
}

/// A separator as it is recorded: `None` for the single space that most flags have between them.
pub(in crate::plan) fn stated(between: &str) -> Option<String> {
    (between != " ").then(|| between.to_owned())
}

/// Splits the joined text off. Returns the policy's text and the separator. Trailing line feeds of the old text stay
/// at the end.
fn split_join<'h>(old_text: &str, new_text: &str, hint: &'h JoinHint) -> Option<(String, &'h str)> {
    let body = old_text.trim_end_matches('\n');
    let tail = &old_text[body.len()..];
    let separator = hint.separator.as_str();
    if hint.is_before {
        let added_text = new_text.strip_suffix(old_text)?;
        let text = added_text.strip_suffix(separator)?;
        return Some((text.to_owned(), separator));
    }
    let added_text = new_text.strip_suffix(tail)?.strip_prefix(body)?;
    match added_text.strip_prefix(separator) {
        Some(text) if !text.is_empty() => Some((text.to_owned(), separator)),
        _ => Some((added_text.to_owned(), "")),
    }
}
