//! Sorts a policy's variables so that X comes before the variables that use `$(X)`.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::references::references;
use crate::policy::EnvChange;

use super::env::value_of;

/// Returns the entries so that one that uses `$(X)` comes behind the entries named X; otherwise in the policy's order.
pub(super) fn in_order_of_use(changes: &[EnvChange]) -> Vec<&EnvChange> {
    if changes
        .iter()
        .all(|change| used_by(change).next().is_none())
    {
        return changes.iter().collect();
    }
    let mut waiting = UnplacedEntries::of(changes);
    let mut ordered = Vec::with_capacity(changes.len());
    // In a cycle no entry is ready. The first is taken, and its references are refused when it is planned.
    while let Some(at) = waiting.ready.first().or(waiting.pending.first()).copied() {
        waiting.take(at);
        ordered.push(&changes[at]);
    }
    ordered
}

/// The names that an entry refers to, except its own.
fn used_by(change: &EnvChange) -> impl Iterator<Item = &str> {
    let used = value_of(change).map(references).unwrap_or_default();
    used.into_iter().filter(|name| *name != change.name)
}

/// The state of a topological sort. Entries are given by their index in the policy.
struct UnplacedEntries<'c> {
    changes: &'c [EnvChange],
    pending: BTreeSet<usize>,
    /// The pending entries that refer to no unplaced name.
    ready: BTreeSet<usize>,
    /// The number of pending entries of a name; a name may have several.
    unplaced: BTreeMap<&'c str, usize>,
    dependents: BTreeMap<&'c str, Vec<usize>>,
    /// For each entry, how many unplaced names it refers to.
    missing: Vec<usize>,
}

impl<'c> UnplacedEntries<'c> {
    fn of(changes: &'c [EnvChange]) -> Self {
        let mut unplaced: BTreeMap<&str, usize> = BTreeMap::new();
        for change in changes {
            *unplaced.entry(change.name.as_str()).or_default() += 1;
        }
        let mut dependents: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut missing = Vec::with_capacity(changes.len());
        for (at, change) in changes.iter().enumerate() {
            let names: BTreeSet<&str> = used_by(change)
                .filter(|name| unplaced.contains_key(name))
                .collect();
            missing.push(names.len());
            names
                .into_iter()
                .for_each(|name| dependents.entry(name).or_default().push(at));
        }
        let ready = (0..changes.len()).filter(|&at| missing[at] == 0).collect();
        UnplacedEntries {
            changes,
            pending: (0..changes.len()).collect(),
            ready,
            unplaced,
            dependents,
            missing,
        }
    }

    fn take(&mut self, at: usize) {
        self.pending.remove(&at);
        self.ready.remove(&at);
        let name = self.changes[at].name.as_str();
        let remaining = self.unplaced.entry(name).or_default();
        *remaining = remaining.saturating_sub(1);
        if *remaining > 0 {
            return;
        }
        for dependent in self.dependents.remove(name).unwrap_or_default() {
            self.missing[dependent] -= 1;
            if self.missing[dependent] == 0 && self.pending.contains(&dependent) {
                self.ready.insert(dependent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{EnvOp, PolicyValue, Position};
    use serde_json::json;
    use std::sync::Arc;

    fn change(name: &str, value: &str) -> EnvChange {
        let item = PolicyValue {
            value: Arc::new(json!({"name": name, "value": value})),
            at: 0..0,
        };
        let (op, position) = (EnvOp::Set, Position::Last);
        EnvChange {
            item,
            name: name.into(),
            op,
            separator: " ".into(),
            position,
        }
    }

    fn order(entries: &[(&str, &str)]) -> String {
        let changes: Vec<EnvChange> = entries
            .iter()
            .map(|(name, value)| change(name, value))
            .collect();
        let ordered: Vec<&str> = in_order_of_use(&changes)
            .into_iter()
            .filter_map(value_of)
            .collect();
        ordered.join(" ")
    }

    #[test]
    fn what_is_used_comes_first_and_the_rest_stays() {
        assert_eq!(order(&[("A", "1"), ("B", "2"), ("C", "3")]), "1 2 3");
        assert_eq!(
            order(&[("A", "$(C)"), ("B", "2"), ("C", "3"), ("D", "4")]),
            "2 3 $(C) 4"
        );
        assert_eq!(
            order(&[("A", "$(B)$(C)"), ("B", "$(C)"), ("C", "3")]),
            "3 $(C) $(B)$(C)"
        );
        // All of a name come before what uses it; what is itself, escaped or from elsewhere is not waited for.
        assert_eq!(order(&[("A", "$(B)"), ("B", "1"), ("B", "2")]), "1 2 $(B)");
        assert_eq!(
            order(&[("A", "$(A)-$$(B)-$(X)"), ("B", "$(A)")]),
            "$(A)-$$(B)-$(X) $(A)"
        );
    }

    #[test]
    fn of_a_circle_the_first_goes_first() {
        assert_eq!(
            order(&[("A", "$(B)"), ("B", "$(A)"), ("C", "3")]),
            "3 $(B) $(A)"
        );
        assert_eq!(
            order(&[("A", "$(B)"), ("B", "$(C)"), ("C", "$(B)")]),
            "$(B) $(C) $(B)"
        );
    }
}
