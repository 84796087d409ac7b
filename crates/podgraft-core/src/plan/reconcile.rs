//! Changes a draft until it has a given value. Equal parts are not touched, so they stay as they are written.

use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

use super::draft::{Draft, DraftValue, OpenId, Refusal};
use crate::record::{digest, identities, is_aligned};
use crate::yaml::value::{field_in, is_equal};

/// Changes a draft so that the mapping at a path of keys has the value `target`. Fields keep their order; list items get
/// that of `target`.
///
/// # Errors
/// When a part that must change may not be edited.
pub(crate) fn reconcile(
    draft: &mut Draft<'_>,
    path: &[String],
    current: &Value,
    target: &Value,
) -> Result<(), Refusal> {
    if is_equal(current, target) {
        return Ok(());
    }
    let (Value::Object(current), Value::Object(target)) = (current, target) else {
        return Ok(());
    };
    let opened = draft.open_path(path)?;
    mapping(draft, opened, current, target)
}

fn mapping(
    draft: &mut Draft<'_>,
    id: OpenId,
    current: &Map<String, Value>,
    target: &Map<String, Value>,
) -> Result<(), Refusal> {
    for key in current.keys() {
        if field_in(target, key).is_none() {
            draft.remove_field(id, key)?;
        }
    }
    let mut previous: Option<&str> = None;
    for (key, wanted) in target {
        match field_in(current, key) {
            None => draft.insert_field(id, previous, key, wanted.clone()),
            Some(existing) if is_equal(existing, wanted) => {}
            Some(existing) => field(draft, id, key, existing, wanted)?,
        }
        previous = Some(key);
    }
    Ok(())
}

/// Gives a field of an opened mapping another value.
pub(super) fn field(
    draft: &mut Draft<'_>,
    id: OpenId,
    key: &str,
    existing: &Value,
    wanted: &Value,
) -> Result<(), Refusal> {
    match (existing, wanted) {
        (Value::Object(existing), Value::Object(wanted))
            if keeps_some(existing.keys(), |key| field_in(wanted, key).is_some()) =>
        {
            let inner = draft.open_mapping(id, key, &[])?;
            mapping(draft, inner, existing, wanted)
        }
        (Value::Array(existing), Value::Array(wanted))
            if !existing.is_empty() && !wanted.is_empty() =>
        {
            let inner = draft.open_list(id, key, &[])?;
            list(draft, inner, key, existing, wanted)
        }
        (_, wanted) => draft.set(id, key, wanted.clone(), &[]),
    }
}

/// Sets a field. What the old value has in common with the new one stays as it is written; if that is not possible, as
/// with an alias, the value is written anew. A new field goes to its place in `order`.
///
/// # Errors
/// When what is there may not be edited.
pub(super) fn set_field(
    draft: &mut Draft<'_>,
    id: OpenId,
    key: &str,
    wanted: Value,
    order: &[&str],
) -> Result<(), Refusal> {
    let existing = draft.get(&DraftValue::Open(id), key);
    if let Some(existing) = existing.and_then(|existing| draft.value(&existing))
        && field(draft, id, key, &existing, &wanted).is_ok()
    {
        return Ok(());
    }
    draft.set(id, key, wanted, order)
}

/// Replaces an item of a list, like [`set_field`].
///
/// # Errors
/// When what is there may not be edited.
pub(super) fn replace_item(
    draft: &mut Draft<'_>,
    id: OpenId,
    at: usize,
    wanted: &Value,
) -> Result<(), Refusal> {
    let existing = draft.value(&draft.raw_items(id)[at]).unwrap_or_default();
    item(draft, id, at, &existing, wanted).or_else(|_| draft.replace(id, at, wanted.clone()))
}

fn keeps_some<'k>(
    mut keys: impl Iterator<Item = &'k String>,
    is_kept: impl Fn(&str) -> bool,
) -> bool {
    keys.any(|key| is_kept(key))
}

fn list(
    draft: &mut Draft<'_>,
    id: OpenId,
    key: &str,
    existing: &[Value],
    wanted: &[Value],
) -> Result<(), Refusal> {
    // A copy of the draft's list as identities and values. Each change is made in both.
    let names = identities(key, existing);
    let wanted_names = identities(key, wanted);
    let mut items: Vec<(String, &Value)> = names.into_iter().zip(existing).collect();
    rename_back(&mut items, &wanted_names, wanted);
    if !is_aligned(key) {
        pair_by_index(&mut items, &wanted_names, wanted);
    }
    let is_wanted: HashSet<&str> = wanted_names.iter().map(String::as_str).collect();
    for at in (0..items.len()).rev() {
        if !is_wanted.contains(items[at].0.as_str()) {
            draft.remove(id, at)?;
            items.remove(at);
        }
    }
    // A moved item is removed and written anew, so keep the longest sequence that is in order already.
    let kept = in_order(&items, &wanted_names);
    for at in (0..items.len()).rev().filter(|at| !kept.contains(at)) {
        draft.remove(id, at)?;
    }
    let mut places = 0..;
    items.retain(|_| places.next().is_some_and(|at| kept.contains(&at)));
    for (at, (name, value)) in wanted_names.iter().zip(wanted).enumerate() {
        if items.get(at).is_some_and(|(existing, _)| existing == name) {
            item(draft, id, at, items[at].1, value)?;
        } else {
            draft.insert(id, at, value.clone());
            items.insert(at, (name.clone(), value));
        }
    }
    Ok(())
}

/// The indexes of a longest sequence of items that is already in the wanted order.
pub(super) fn in_order(items: &[(String, &Value)], wanted: &[String]) -> HashSet<usize> {
    let place_of: HashMap<&str, usize> = wanted.iter().map(String::as_str).zip(0..).collect();
    let places: Vec<usize> = items
        .iter()
        .filter_map(|(name, _)| place_of.get(name.as_str()).copied())
        .collect();
    // Longest increasing subsequence: `ends` has, for each length, the last item of the best sequence, and `before` the
    // predecessor of each item in its sequence.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let length = ends.partition_point(|&end| places[end] < *place);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut next = ends.last().copied();
    let mut kept = HashSet::new();
    while let Some(at) = next {
        kept.insert(at);
        next = before[at];
    }
    kept
}

/// Pairs items that have a field in common and stand at one index of a list without identities, such as `dnsConfig.options`.
/// What they have in common then stays as it is written.
fn pair_by_index(items: &mut [(String, &Value)], wanted_names: &[String], wanted: &[Value]) {
    if items.len() != wanted.len() {
        return;
    }
    let existing: HashSet<String> = items.iter().map(|(name, _)| name.clone()).collect();
    let is_wanted: HashSet<&str> = wanted_names.iter().map(String::as_str).collect();
    for ((item, name), value) in items.iter_mut().zip(wanted_names).zip(wanted) {
        let is_paired = is_wanted.contains(item.0.as_str()) || existing.contains(name);
        if !is_paired && has_common_field(item.1, value) {
            item.0.clone_from(name);
        }
    }
}

fn has_common_field(item: &Value, other: &Value) -> bool {
    let fields = item.as_object().zip(other.as_object());
    fields.is_some_and(|(fields, others)| {
        let mut fields = fields.iter();
        fields.any(|(key, value)| others.get(key).is_some_and(|other| is_equal(value, other)))
    })
}

/// Finds variables that were renamed so that another could take their name (see `compose`), and gives them the name
/// back here. The renamed item then stays and is edited, instead of being written anew.
fn rename_back(items: &mut [(String, &Value)], wanted_names: &[String], wanted: &[Value]) {
    let is_wanted: HashSet<&str> = wanted_names.iter().map(String::as_str).collect();
    // Items to remove, by the digest of their content without the name.
    let mut unwanted: HashMap<String, BTreeSet<usize>> = HashMap::new();
    for (at, (_, item)) in items
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| !is_wanted.contains(name.as_str()))
    {
        if let Some(without_name) = digest_without_name(item) {
            unwanted.entry(without_name).or_default().insert(at);
        }
    }
    if unwanted.is_empty() {
        return;
    }
    let mut place_of: HashMap<String, usize> = items
        .iter()
        .zip(0..)
        .map(|((name, _), at)| (name.clone(), at))
        .collect();
    for (name, value) in wanted_names.iter().zip(wanted) {
        let Some(&index) = place_of.get(name).filter(|&&index| items[index].1 != value) else {
            continue;
        };
        let Some(without_name) = digest_without_name(value) else {
            continue;
        };
        let is_match = |at: &&usize| is_renamed(items[**at].1, name, value);
        let Some(renamed) = unwanted
            .get(&without_name)
            .and_then(|places| places.iter().find(is_match).copied())
        else {
            continue;
        };
        unwanted.entry(without_name).or_default().remove(&renamed);
        if let Some(without_name) = digest_without_name(items[index].1) {
            unwanted.entry(without_name).or_default().insert(index);
        }
        items[index].0 = std::mem::replace(&mut items[renamed].0, name.clone());
        place_of.insert(name.clone(), renamed);
    }
}

fn is_renamed(other: &Value, name: &str, value: &Value) -> bool {
    let mut renamed = other.clone();
    if let Some(place) = renamed.get_mut("name") {
        *place = Value::from(name);
    }
    renamed == *value
}

/// The digest of a variable without its name. `None` if it has no `valueFrom`: others are never renamed.
fn digest_without_name(item: &Value) -> Option<String> {
    let _from = item.get("valueFrom")?;
    let mut without_name = item.clone();
    *without_name.get_mut("name")? = Value::Null;
    Some(digest(&without_name))
}

/// Gives an item of an opened list another value.
pub(super) fn item(
    draft: &mut Draft<'_>,
    id: OpenId,
    at: usize,
    existing: &Value,
    wanted: &Value,
) -> Result<(), Refusal> {
    match (existing, wanted) {
        (existing, wanted) if is_equal(existing, wanted) => Ok(()),
        (Value::Object(existing), Value::Object(wanted))
            if keeps_some(existing.keys(), |key| field_in(wanted, key).is_some()) =>
        {
            let inner = draft.open_item(id, at)?;
            mapping(draft, inner, existing, wanted)
        }
        (_, wanted) => draft.replace(id, at, wanted.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse::parse;
    use serde_json::json;

    #[test]
    fn one_item_that_moves_leaves_the_others_where_they_stand() {
        let text = "env:\n- name: LAST\n- name: A # a\n- name: B # b\n";
        let tree = parse(text).unwrap();
        let mut draft = Draft::new(&tree, tree.roots()[0]);
        let current = draft.value(&DraftValue::Node(tree.roots()[0])).unwrap();
        let target =
            json!({"env": [{"name": "N"}, {"name": "A"}, {"name": "B"}, {"name": "LAST"}]});
        reconcile(&mut draft, &[], &current, &target).unwrap();
        assert_eq!(draft.value(&draft.root()).unwrap(), target);
        let env = draft.get(&draft.root(), "env").unwrap();
        let origins = draft
            .items(&env)
            .into_iter()
            .map(|item| draft.origin(&item));
        assert_eq!(
            origins.map(|origin| origin.is_some()).collect::<Vec<_>>(),
            [false, true, true, false]
        );
    }

    #[test]
    fn a_list_without_identities_gets_the_value() {
        let items = [
            json!({"a": 1}),
            json!({"a": 1, "b": 2}),
            json!({"b": 2, "c": [1]}),
            json!({"b": 3}),
            json!("a"),
            json!({}),
        ];
        let list = |mut number: usize| -> Value {
            let mut list = Vec::new();
            while number > 0 {
                list.push(items[number % items.len()].clone());
                number /= items.len();
            }
            json!({"options": list})
        };
        for (before, after) in (0..6_usize.pow(3)).map(|number| (list(number), list(215 - number)))
        {
            let text = before.to_string();
            let tree = parse(&text).unwrap();
            let mut draft = Draft::new(&tree, tree.roots()[0]);
            reconcile(&mut draft, &[], &before, &after).unwrap();
            assert_eq!(draft.value(&draft.root()).unwrap(), after, "{before}");
        }
    }

    #[test]
    fn a_draft_gets_the_value() {
        let text = "a: 1\nenv:\n- name: X\n  value: x y\n- name: PODGRAFT_ORIG_Y\n  valueFrom: {secretKeyRef: {name: s}}\n- {name: Y, value: $(PODGRAFT_ORIG_Y) -a}\ngone: {b: 1}\n";
        let tree = parse(text).unwrap();
        let mut draft = Draft::new(&tree, tree.roots()[0]);
        let current = draft.value(&DraftValue::Node(tree.roots()[0])).unwrap();
        let target = json!({"a": 1, "new": true, "env": [
            {"name": "N"}, {"name": "X", "value": "x"}, {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "s"}}},
        ]});
        reconcile(&mut draft, &[], &current, &target).unwrap();
        assert_eq!(draft.value(&draft.root()).unwrap(), target);
    }
}
