//! Removes recorded changes from a value, and returns what it takes to put them back.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::policy::defaults::is_default;

use super::live::{fits, is_live};
use super::path::{RecordPaths, split_last};
use super::redo::Replay;
use super::{Effects, JoinedText, PolicyRecord, Record, RemovedValue, ReplacedValue, digest};

/// How to handle a value that somebody changed since it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftHandling {
    /// Keep it, and report it.
    Leave,
    /// Remove it like the others.
    Force,
}

/// A value that somebody changed since it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The policy that injected it.
    pub policy: String,
    /// Its record path.
    pub path: String,
}

/// The value after removal of the recorded changes.
#[derive(Debug, Clone)]
pub struct RemovalResult {
    /// The value.
    pub value: Value,
    /// For each policy of the record, in its order, the steps that put its changes back.
    pub redo: Vec<Replay>,
    /// The values that somebody had changed, whether they were kept or removed.
    pub changed: Vec<Drift>,
}

/// Removes the changes of all policies from an object, last policy first, so that each is removed from its own
/// output. Policies that are kept are put back by `Replay::apply`.
pub fn take_out(
    record: &Record,
    object: &Value,
    leniency: impl Fn(&str) -> DriftHandling,
) -> RemovalResult {
    let paths = record.paths();
    let mut taken = RemovalResult {
        value: object.clone(),
        redo: Vec::new(),
        changed: Vec::new(),
    };
    paths.remove(
        &mut taken.value,
        &paths.in_object(&["metadata", "annotations", super::RECORD]),
    );
    // The marker belongs to podgraft, even if somebody edited it.
    let marker = paths.in_object(&["metadata", "annotations", super::MARKER]);
    if !record.marker.replaced.contains_key(&marker) {
        paths.remove(&mut taken.value, &marker);
    }
    PolicyRemoval {
        paths: &paths,
        policy: "",
        leniency: DriftHandling::Force,
        taken: &mut taken,
        redo: Replay::default(),
    }
    .take_out_policy(&record.marker);
    // Changes of the marker are not reported.
    taken.changed.clear();
    for policy in record.policies.iter().rev() {
        let redo = take_out_policy(policy, leniency(&policy.policy), &paths, &mut taken);
        taken.redo.push(redo);
    }
    // A mapping that one policy made may have held items of another, and was not empty when the first was removed.
    let all_effects = record
        .policies
        .iter()
        .map(|policy| &policy.effects)
        .chain([&record.marker]);
    remove_empty_holders(all_effects, &paths, &mut taken.value);
    taken.redo.reverse();
    taken.changed.reverse();
    taken
}

/// Removes the changes of one policy. Returns the steps that put them back.
fn take_out_policy(
    policy: &PolicyRecord,
    leniency: DriftHandling,
    paths: &RecordPaths,
    taken: &mut RemovalResult,
) -> Replay {
    let mut inverse = PolicyRemoval {
        paths,
        policy: &policy.policy,
        leniency,
        taken,
        redo: Replay::new(policy),
    };
    inverse.take_out_policy(&policy.effects);
    let redo = inverse.redo;
    remove_empty_holders([&policy.effects], paths, &mut taken.value);
    redo
}

/// A removed item: its value, the item that it followed, and its recorded digest.
type RestoredItem<'d> = (Value, Option<String>, &'d str);

/// The same with its position and its path.
type PutBack<'e> = (Option<Vec<usize>>, &'e String, RestoredItem<'e>);

struct PolicyRemoval<'i> {
    paths: &'i RecordPaths,
    policy: &'i str,
    leniency: DriftHandling,
    taken: &'i mut RemovalResult,
    redo: Replay,
}

impl PolicyRemoval<'_> {
    fn take_out_policy(&mut self, effects: &Effects) {
        let removed = effects.removed.keys();
        let filled_in: BTreeSet<&String> = removed.filter(|path| self.is_filled_in(path)).collect();
        let shared = self.shared_items(effects);
        // A variable that podgraft added is removed like other items, after those behind it.
        let (new, others): (Vec<_>, Vec<_>) = effects
            .joined
            .iter()
            .partition(|(_, joined)| joined.new && !joined.shared);
        for (path, joined) in others {
            if joined.shared || self.take_out_text(path, joined) {
                self.redo.join(path, joined, None);
            }
        }
        let added = self.added_items(effects);
        self.own_variables(&new);
        let mut restored: Vec<_> = shared.into_iter().chain(added).collect();
        // Put items back in their old order: it decides the order of the mappings and lists that are created for
        // them.
        restored.sort_by(|(place, ..), (other_place, ..)| place.cmp(other_place));
        for (_, path, (value, after, recorded_digest)) in restored {
            self.redo.insert(path, value, recorded_digest, after);
        }
        for (path, replaced) in &effects.replaced {
            self.replaced(path, replaced);
        }
        for (path, removed) in by_place(&effects.removed) {
            self.removed(path, removed, &filled_in);
        }
    }

    /// Removes the added items, last first, so that numbered identities (`name~#2`) of the remaining ones stay valid.
    fn added_items<'e>(&mut self, effects: &'e Effects) -> Vec<PutBack<'e>> {
        let mut added: Vec<_> = effects
            .added
            .iter()
            .map(|(path, now)| (self.place(path), path, now))
            .collect();
        added.sort();
        let mut back = Vec::new();
        for (place, path, now) in added.into_iter().rev() {
            back.extend(
                self.take_out_item(path, now)
                    .map(|item| (place, path, item)),
            );
        }
        back
    }

    /// Removes joined texts from variables that podgraft added, and the variables with them if nothing else is left.
    fn own_variables(&mut self, new: &[(&String, &JoinedText)]) {
        let mut joins = Vec::new();
        for (path, joined) in new {
            let after = self.paths.predecessor(&mut self.taken.value, path);
            if self.take_out_text(path, joined) {
                joins.push((path, joined, after));
            }
        }
        for (path, joined, after) in joins.into_iter().rev() {
            self.redo.join(path, joined, after);
        }
    }

    /// Restores a replaced value.
    fn replaced(&mut self, path: &str, replaced: &ReplacedValue) {
        let Some(value) = self.paths.get(&self.taken.value, path).cloned() else {
            return;
        };
        let now = self.matching_digest(&value, &replaced.now);
        if self.may_change(path, now.is_some()) {
            self.redo.set(path, value, now.unwrap_or(&replaced.now));
            if let Some(place) = self.paths.get_mut(&mut self.taken.value, path) {
                *place = replaced.was.clone();
            }
        }
    }

    /// Restores a removed value, unless there is another value now that is no default of an API server.
    fn removed(&mut self, path: &String, removed: &RemovedValue, filled_in: &BTreeSet<&String>) {
        match self.paths.get(&self.taken.value, path) {
            None => {
                self.redo.remove(path);
                self.restore(path, removed);
            }
            // An API server filled the removed default in again.
            Some(existing) if *existing == removed.was && is_live(&self.taken.value) => {
                self.redo.remove(path)
            }
            Some(_) if filled_in.contains(path) => {
                self.redo.remove(path);
                self.paths.remove(&mut self.taken.value, path);
                self.restore(path, removed);
            }
            Some(_) => self.note_changed(path),
        }
    }
    fn restore(&mut self, path: &str, removed: &RemovedValue) {
        let (original, after) = (removed.was.clone(), removed.after.as_deref());
        self.paths
            .insert(&mut self.taken.value, path, original, after);
    }

    /// Whether the current value is a default that an API server set.
    fn is_filled_in(&self, path: &str) -> bool {
        let object = &self.taken.value;
        let (holder, key) = path.rsplit_once('/').unwrap_or_default();
        let parent = holder.rsplit('/').next().unwrap_or_default();
        let stands = self
            .paths
            .get(object, path)
            .zip(self.paths.get(object, holder));
        is_live(object)
            && stands.is_some_and(|(value, owner)| is_default(parent, key, value, owner))
    }

    fn note_changed(&mut self, path: &str) {
        self.taken.changed.push(Drift {
            policy: self.policy.to_owned(),
            path: path.to_owned(),
        });
    }

    /// Returns which of the recorded digests matches the value. `None` if somebody changed it.
    fn matching_digest<'d>(&self, value: &Value, digests: &'d str) -> Option<&'d str> {
        let current_digest = digest(value);
        let is_match = |recorded: &&str| {
            current_digest == **recorded || is_live(&self.taken.value) && fits(value, recorded)
        };
        digests.split(' ').find(is_match)
    }

    fn may_change(&mut self, path: &str, is_as_it_was: bool) -> bool {
        if !is_as_it_was {
            self.note_changed(path);
        }
        is_as_it_was || self.leniency == DriftHandling::Force
    }

    fn place(&self, path: &str) -> Option<Vec<usize>> {
        self.paths.place(&self.taken.value, path)
    }

    /// Returns the items that another policy had added with the same content. If that one goes, this one must insert
    /// them.
    fn shared_items<'e>(&self, effects: &'e Effects) -> Vec<PutBack<'e>> {
        let item = |(path, recorded_digest): (&'e String, &'e String)| {
            let value = self.paths.get(&self.taken.value, path)?.clone();
            let recorded_digest = self
                .matching_digest(&value, recorded_digest)
                .unwrap_or(recorded_digest);
            Some((self.place(path), path, (value, None, recorded_digest)))
        };
        effects.shared.iter().filter_map(item).collect()
    }

    /// Removes an item. `None` if somebody removed it already, or if it is kept because it was changed.
    fn take_out_item<'d>(&mut self, path: &str, digests: &'d str) -> Option<RestoredItem<'d>> {
        let value = self.paths.get(&self.taken.value, path).cloned()?;
        let recorded_digest = self.matching_digest(&value, digests);
        if !self.may_change(path, recorded_digest.is_some()) {
            return None;
        }
        let after = self.paths.predecessor(&mut self.taken.value, path);
        self.paths.remove(&mut self.taken.value, path);
        Some((value, after, recorded_digest.unwrap_or(digests)))
    }

    /// Removes a joined text. Returns whether it was there.
    fn take_out_text(&mut self, path: &str, joined: &JoinedText) -> bool {
        let (list, name) = split_last(path);
        let Some(variables) = self
            .paths
            .get_mut(&mut self.taken.value, list)
            .and_then(Value::as_array_mut)
        else {
            return false;
        };
        let unjoined = unjoin(variables, &name, joined);
        if matches!(unjoined, UnjoinResult::Changed) {
            self.note_changed(path);
        }
        matches!(unjoined, UnjoinResult::Done)
    }
}

/// Orders removed values so that each comes after the one that it followed, which must be restored first.
fn by_place(removed_by_path: &BTreeMap<String, RemovedValue>) -> Vec<(&String, &RemovedValue)> {
    let (mut order, mut seen) = (Vec::with_capacity(removed_by_path.len()), BTreeSet::new());
    for path in removed_by_path.keys() {
        let mut chain = Vec::new();
        let mut next = path.clone();
        while let Some((path, removed)) = removed_by_path
            .get_key_value(&next)
            .filter(|(path, _)| seen.insert(*path))
        {
            chain.push((path, removed));
            let Some(before) = &removed.after else { break };
            next = format!("{}/{before}", split_last(path).0);
        }
        order.extend(chain.into_iter().rev());
    }
    order
}

/// Removes mappings and lists that a policy made, and restores those that it filled, if they are empty now. Inner
/// ones come first, since a longer path sorts after its prefix. The first policy with an entry saw what the manifest
/// had. A value that one policy removed and a later one made again has been restored, so it stays, even if it is
/// empty.
fn remove_empty_holders<'e>(
    all_effects: impl IntoIterator<Item = &'e Effects>,
    paths: &RecordPaths,
    object: &mut Value,
) {
    let mut holders: BTreeMap<&String, Option<&Value>> = BTreeMap::new();
    let mut restored: BTreeSet<&String> = BTreeSet::new();
    for effects in all_effects {
        for path in effects.made.iter().filter(|path| restored.contains(path)) {
            holders.entry(path).or_insert(Some(&Value::Null));
        }
        restored.extend(effects.removed.keys());
        for (path, original) in effects
            .filled
            .iter()
            .map(|(path, original)| (path, Some(original)))
        {
            holders.entry(path).or_insert(original);
        }
        for path in &effects.made {
            holders.entry(path).or_insert(None);
        }
    }
    for (path, original) in holders.into_iter().rev() {
        let Some(place) = paths.get_mut(object, path).filter(|place| is_empty(place)) else {
            continue;
        };
        match original {
            Some(Value::Null) if restored.contains(path) => {}
            Some(original) => *place = original.clone(),
            None => drop(paths.remove(object, path)),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty)
}

enum UnjoinResult {
    Done,
    /// The variable is gone.
    Gone,
    /// The variable no longer contains the text.
    Changed,
}

fn position(variables: &[Value], name: &str) -> Option<usize> {
    variables
        .iter()
        .rposition(|item| item.get("name").and_then(Value::as_str) == Some(name))
}

fn unjoin(variables: &mut Vec<Value>, name: &str, joined: &JoinedText) -> UnjoinResult {
    let Some(index) = position(variables, name) else {
        return UnjoinResult::Gone;
    };
    let value = variables[index].get("value").and_then(Value::as_str);
    let Some(rest) = value.and_then(|value| without(value, joined)) else {
        return UnjoinResult::Changed;
    };
    if let Some(renamed) = &joined.renamed {
        let original = position(variables, renamed);
        let (Some(original), true) = (original, rest == format!("$({renamed})")) else {
            return UnjoinResult::Changed;
        };
        variables[original]["name"] = Value::from(name);
        variables.remove(index);
        return UnjoinResult::Done;
    }
    let is_plain = variables[index]
        .as_object()
        .is_some_and(|item| item.len() == 2);
    if joined.new && rest.is_empty() && is_plain {
        variables.remove(index);
    } else {
        variables[index]["value"] = Value::from(rest);
    }
    UnjoinResult::Done
}

/// Whether the text contains `part` as a token between separators, so that it need not be joined again.
pub fn has_token(text: &str, part: &str, separator: &str) -> bool {
    let is_edge_before = |before: &str| {
        before.is_empty()
            || before.ends_with(separator)
            || (separator == " " && before.ends_with(char::is_whitespace))
    };
    let is_edge_behind = |behind: &str| {
        behind.is_empty()
            || behind.starts_with(separator)
            || (separator == " " && behind.starts_with(char::is_whitespace))
    };
    let is_token =
        |at: usize| is_edge_before(&text[..at]) && is_edge_behind(&text[at + part.len()..]);
    text.contains(part) && places_of(text, part).into_iter().any(is_token)
}

/// Returns the offsets of all occurrences of `part`, including overlapping ones, in linear time (Knuth-Morris-Pratt).
pub(super) fn places_of(text: &str, part: &str) -> Vec<usize> {
    let part = part.as_bytes();
    if part.is_empty() {
        return vec![0, text.len()];
    }
    // For each prefix of the part, the length of its longest proper prefix that is also its suffix.
    let mut shorter = vec![0; part.len()];
    let follow = |shorter: &[usize], mut length: usize, sign: u8| {
        while length > 0 && part.get(length) != Some(&sign) {
            length = shorter[length - 1];
        }
        length + usize::from(part[length] == sign)
    };
    for index in 1..part.len() {
        shorter[index] = follow(&shorter, shorter[index - 1], part[index]);
    }
    let (mut found, mut length) = (Vec::new(), 0);
    for (index, &sign) in text.as_bytes().iter().enumerate() {
        length = follow(&shorter, length, sign);
        if length == part.len() {
            found.push(index + 1 - length);
        }
    }
    found
}

/// Removes the joined text and one separator beside it. `None` if the text is not there as a token.
pub(super) fn without(value: &str, joined: &JoinedText) -> Option<String> {
    let text = joined.text.as_str();
    let separator = joined.separator.as_deref().unwrap_or(" ");
    let is_edge = |rest: &str, by_separator: bool, by_blank: bool| {
        rest.is_empty() || by_separator || by_blank
    };
    let is_token = |at: &usize| {
        let (before, behind) = (&value[..*at], &value[at + text.len()..]);
        is_edge(
            before,
            before.ends_with(separator),
            before.ends_with(char::is_whitespace),
        ) && is_edge(
            behind,
            behind.starts_with(separator),
            behind.starts_with(char::is_whitespace),
        )
    };
    let mut places = places_of(value, text).into_iter().filter(is_token);
    let at = if joined.before || joined.new {
        places.next()
    } else {
        places.next_back()
    }?;
    let (before, behind) = (&value[..at], &value[at + text.len()..]);
    let (before, behind) = match (joined.before || joined.new, separator) {
        (true, _) => (before, behind.strip_prefix(separator).unwrap_or(behind)),
        (false, _) => match before.strip_suffix(separator) {
            Some(before) => (before, behind),
            None => (before, behind.strip_prefix(separator).unwrap_or(behind)),
        },
    };
    Some(format!("{before}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_with_the_separator_beside_it() {
        let joined = |text: &str| JoinedText {
            text: text.into(),
            ..JoinedText::default()
        };
        assert_eq!(
            without("-Xmx1g -a -b", &joined("-a")).as_deref(),
            Some("-Xmx1g -b")
        );
        assert_eq!(
            without("-Xmx1g -a -b\n", &joined("-b")).as_deref(),
            Some("-Xmx1g -a\n")
        );
        assert_eq!(without("-Xmx1g -ab", &joined("-a")), None);
        let first = JoinedText {
            before: true,
            separator: Some(":".into()),
            ..joined("/opt")
        };
        assert_eq!(without("/opt:/bin", &first).as_deref(), Some("/bin"));
        let new = JoinedText {
            new: true,
            ..joined("-a")
        };
        assert_eq!(without("-a -b", &new).as_deref(), Some("-b"));
        assert_eq!(without("-a", &new).as_deref(), Some(""));
    }
}
