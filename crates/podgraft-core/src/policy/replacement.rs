//! Writes the results of expressions into a value. If the expression is an item of a list and its result is a list, the
//! result is spliced in, and the items behind it move.

use serde_json::Value;
use std::collections::BTreeMap;

use super::expression::ExpressionResult;
use crate::yaml::value::{Path, Step};

/// How list items moved because items before them were spliced in or left out.
#[derive(Debug, Clone, Default)]
pub struct ItemMoves {
    /// For each list, by its old path: the index of each spliced item and the number of items that replace it.
    pub lists: BTreeMap<Path, BTreeMap<usize, usize>>,
    /// The items that replace an item are copies of it, with the same values at the same paths. Otherwise the item was
    /// an expression.
    pub are_copies: bool,
}

impl ItemMoves {
    /// Whether no item moved.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// The new paths of an old path. There are several if it was spliced, and none if it was left out.
    pub(crate) fn new_paths(&self, old: &Path) -> Vec<Path> {
        let mut paths = vec![Path::default()];
        for (at, step) in old.0.iter().enumerate() {
            let spliced = self.lists.get(&old.0[..at]);
            let steps = match (step, spliced) {
                (Step::Index(index), Some(spliced)) => {
                    let removed = spliced.range(..index).count();
                    let added: usize = spliced.range(..index).map(|(_, count)| count).sum();
                    let first = index - removed + added;
                    let count = spliced.get(index).copied().unwrap_or(1);
                    (first..first + count).map(Step::Index).collect()
                }
                _ => vec![step.clone()],
            };
            let further = |path: Path| {
                let step = |step: &Step| Path([&path.0[..], std::slice::from_ref(step)].concat());
                steps.iter().map(step).collect::<Vec<_>>()
            };
            paths = paths.into_iter().flat_map(further).collect();
        }
        paths
    }

    /// The new paths of all old paths.
    pub(crate) fn all_new_paths(&self, old: &[Path]) -> Vec<Path> {
        if self.is_empty() {
            return old.to_vec();
        }
        old.iter().flat_map(|path| self.new_paths(path)).collect()
    }

    /// The old path of a new path. For a part of a spliced item, the path of its expression.
    pub(crate) fn old_path(&self, new: &Path) -> Path {
        let mut old = Path::default();
        for step in &new.0 {
            let Step::Index(wanted) = step else {
                old.0.push(step.clone());
                continue;
            };
            let Some(spliced) = self.lists.get(old.0.as_slice()) else {
                old.0.push(step.clone());
                continue;
            };
            // Count items from the front: each takes as many new places as it was spliced to, or one.
            let (mut index, mut left) = (0, *wanted);
            loop {
                let count = spliced.get(&index).copied().unwrap_or(1);
                if left < count {
                    break;
                }
                left -= count;
                index += 1;
            }
            let is_spliced = spliced.contains_key(&index);
            old.0.push(Step::Index(index));
            // Below a spliced item there was only the text of the expression.
            if is_spliced && !self.are_copies {
                break;
            }
        }
        old
    }
}

/// Writes results to the paths of their expressions. An empty optional removes the key or the item. Returns how items
/// moved.
pub(crate) fn put_all(value: &mut Value, mut outcomes: Vec<(Path, ExpressionResult)>) -> ItemMoves {
    // From the end, so that splicing does not change the indexes that are still to come.
    outcomes.sort_by(|(left, _), (right, _)| right.cmp(left));
    let mut moves = ItemMoves::default();
    for (path, outcome) in outcomes {
        let new = match outcome {
            ExpressionResult::Value(new) => Some(new),
            ExpressionResult::Absent => None,
        };
        let Some((last, parent)) = path.0.split_last() else {
            *value = new.unwrap_or_default();
            continue;
        };
        let parent = Path(parent.to_vec());
        let holder = parent.get_mut(value);
        let holder = holder.expect("the path was found by walking the value");
        match (new, last, holder) {
            (Some(Value::Array(items)), Step::Index(index), Value::Array(list)) => {
                let count = items.len();
                list.splice(index..=index, items);
                moves.lists.entry(parent).or_default().insert(*index, count);
            }
            (None, Step::Index(index), Value::Array(list)) => {
                list.remove(*index);
                moves.lists.entry(parent).or_default().insert(*index, 0);
            }
            (None, Step::Key(key), Value::Object(map)) => {
                map.shift_remove(key);
            }
            // Without a splice nothing moves. A list under a key stays a list.
            (Some(new), Step::Index(index), Value::Array(list)) => list[*index] = new,
            (Some(new), Step::Key(key), Value::Object(map)) => {
                map.insert(key.clone(), new);
            }
            (_, Step::Index(_) | Step::Key(_), _) => {}
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(keys: &[&str], index: usize) -> Path {
        Path::of(keys).index(index)
    }

    #[test]
    fn lists_are_spliced_and_the_rest_moves() {
        let mut value = json!({"a": ["x0", "x1", {"b": ["y0", "y1"]}, "x3"]});
        let inner = at(&["a"], 2).key("b");
        let outcomes = vec![
            (at(&["a"], 0), ExpressionResult::Value(json!(["p", "q"]))),
            (at(&["a"], 1), ExpressionResult::Absent),
            (inner.index(0), ExpressionResult::Value(json!([1, 2]))),
            (at(&["a"], 3), ExpressionResult::Value(json!("z"))),
        ];
        let moves = put_all(&mut value, outcomes);
        assert_eq!(value, json!({"a": ["p", "q", {"b": [1, 2, "y1"]}, "z"]}));
        let last = inner.index(1);
        assert_eq!(moves.new_paths(&last), [at(&["a"], 2).key("b").index(2)]);
        assert_eq!(
            moves.new_paths(&at(&["a"], 0)),
            [at(&["a"], 0), at(&["a"], 1)]
        );
        assert!(moves.new_paths(&at(&["a"], 1)).is_empty());
        assert_eq!(moves.old_path(&at(&["a"], 2).key("b").index(2)), last);
        assert_eq!(moves.old_path(&at(&["a"], 1).key("k")), at(&["a"], 0));
        assert_eq!(moves.old_path(&at(&["a"], 3)), at(&["a"], 3));
    }
}
