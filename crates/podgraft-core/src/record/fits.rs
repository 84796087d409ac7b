//! Tells whether an item of a live object is the recorded one, with defaults that an API server filled in.

use serde_json::{Map, Value};

use super::digest;
use super::live::is_token_mount;
use crate::policy::defaults::is_default;
use crate::policy::quantity;

/// How many sets of defaults are tried. Up to 11 defaults have no more sets than that.
const MOST_TRIES: usize = 1 << 11;

/// How many defaults of one item may be part of the recorded item. Further ones are only tried without.
const MOST_DEFAULTS: usize = 62;

/// Whether an item of a live object is the recorded one with defaults that the server filled in. Some defaults may be
/// part of the recorded item, because a policy may state them: mostly all of a kind, else single ones.
pub(crate) fn fits(item: &Value, recorded: &str) -> bool {
    let mut defaults = Vec::new();
    let mut find = |kind: &str| {
        defaults.push(kind.to_owned());
        true
    };
    rest_of("", item, &mut find);
    let mut kinds = defaults.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let kind_of = |kind| kinds.binary_search(kind).unwrap_or(MOST_DEFAULTS);
    let by_kind: Vec<usize> = defaults.iter().map(kind_of).collect();
    let single: Vec<usize> = (0..defaults.len()).collect();
    fits_in_groups(item, recorded, &by_kind, kinds.len())
        || kinds.len() < single.len() && fits_in_groups(item, recorded, &single, single.len())
}

/// Whether the item is the recorded one if some groups of defaults are left out. `group_of` has the group of each default.
fn fits_in_groups(item: &Value, recorded: &str, group_of: &[usize], count: usize) -> bool {
    let mut sets = kept_sets(count.min(MOST_DEFAULTS)).take(MOST_TRIES);
    sets.any(|kept| {
        let mut groups = group_of.iter();
        let mut is_kept = |_: &str| {
            let group = groups.next().filter(|group| **group < MOST_DEFAULTS);
            group.is_some_and(|group| kept & (1 << group) != 0)
        };
        digest(&rest_of("", item, &mut is_kept)) == recorded
    })
}

/// The sets of `count` bits, beginning with the smallest and the largest: a policy states few of the defaults, or nearly
/// all of them.
fn kept_sets(count: usize) -> impl Iterator<Item = u64> {
    let sizes = (0..=count / 2).flat_map(move |size| {
        let larger = (size * 2 != count).then_some(count - size);
        std::iter::once(size).chain(larger)
    });
    sizes.flat_map(move |size| sets_of(size, count))
}

/// The sets with `size` of `count` bits.
fn sets_of(size: usize, count: usize) -> impl Iterator<Item = u64> {
    let first = (1_u64 << size) - 1;
    // The next larger number with as many bits.
    let next = |set: &u64| {
        let lowest = set & set.wrapping_neg();
        let carried = set + lowest;
        let shifted = ((set ^ carried) >> 2).checked_div(lowest)?;
        Some(carried | shifted)
    };
    std::iter::successors(Some(first), next).take_while(move |set| set >> count == 0)
}

/// Returns the value with only those defaults for which `is_kept`. It is asked about each default in order, with its key or,
/// for the mount of a token, that of its list.
fn rest_of(parent: &str, value: &Value, is_kept: &mut dyn FnMut(&str) -> bool) -> Value {
    match value {
        Value::Object(fields) => {
            let rest = fields.iter().filter_map(|(key, inner)| {
                let rest = rest_of_field(parent, key, inner, value, is_kept)?;
                Some((key.clone(), rest))
            });
            rest.collect()
        }
        Value::Array(items) => {
            let rest = items.iter().filter_map(|item| {
                let stays = !is_token_mount(parent, item) || is_kept(parent);
                stays.then(|| rest_of(parent, item, is_kept))
            });
            rest.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Like [`rest_of`], for a field of the mapping `owner`, which is at key `parent`. `None` if nothing of it stays.
fn rest_of_field(
    parent: &str,
    key: &str,
    value: &Value,
    owner: &Value,
    is_kept: &mut dyn FnMut(&str) -> bool,
) -> Option<Value> {
    let rest = match value {
        // A server copies each request from its limit.
        Value::Object(requests) if key == "requests" && parent == "resources" => {
            let is_filled_in = |name: &str, request: &Value| {
                let limit = owner.get("limits").and_then(|limits| limits.get(name));
                limit.is_some_and(|limit| quantity::is_same(request, limit))
            };
            let own = requests
                .iter()
                .filter(|(name, request)| !is_filled_in(name, request) || is_kept(key));
            let own = own.map(|(name, request)| (name.clone(), request.clone()));
            Value::Object(own.collect::<Map<_, _>>())
        }
        _ if is_default(parent, key, value, owner) && !is_kept(key) => return None,
        _ => rest_of(key, value, is_kept),
    };
    let is_emptied = |rest: &Value| super::is_empty(rest) && !super::is_empty(value);
    Some(rest).filter(|rest| !is_emptied(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_sets_come_once_and_small_and_large_ones_first() {
        for count in 0..=11 {
            let sets: Vec<u64> = kept_sets(count).collect();
            let distinct: BTreeSet<u64> = sets.iter().copied().collect();
            assert_eq!((sets.len(), distinct.len()), (1 << count, 1 << count));
        }
        let ones = |set: u64| set.count_ones();
        let sizes: Vec<u32> = kept_sets(MOST_DEFAULTS).take(66).map(ones).collect();
        assert_eq!(sizes[..3], [0, 62, 1]);
        assert_eq!(sizes[63..], [1, 61, 61]);
    }
}
