//! The order of a policy's variables: one that is used as `$(X)` comes before those that use it.

use std::collections::{BTreeMap, BTreeSet};

use crate::policy::EnvChange;

use super::env::value_of;

/// The entries of a policy, so that one that uses `$(X)` of another comes behind that one; otherwise in the policy's order.
pub(super) fn in_order_of_use(changes: &[EnvChange]) -> Vec<&EnvChange> {
    if changes
        .iter()
        .all(|change| used_by(change).next().is_none())
    {
        return changes.iter().collect();
    }
    let mut waiting = Waiting::of(changes);
    let mut ordered = Vec::with_capacity(changes.len());
    // In a circle nobody is free: the first goes, and is refused where it is placed.
    while let Some(at) = waiting.free.first().or(waiting.all.first()).copied() {
        waiting.take(at);
        ordered.push(&changes[at]);
    }
    ordered
}

/// The names that an entry uses, its own aside.
fn used_by(change: &EnvChange) -> impl Iterator<Item = &str> {
    let used = value_of(change).map(references).unwrap_or_default();
    used.into_iter().filter(|name| *name != change.name)
}

/// The entries that have no place yet, by their places in the policy.
struct Waiting<'c> {
    changes: &'c [EnvChange],
    all: BTreeSet<usize>,
    /// Those of them that use none that waits.
    free: BTreeSet<usize>,
    /// How many wait under a name; there may be several.
    named: BTreeMap<&'c str, usize>,
    users: BTreeMap<&'c str, Vec<usize>>,
    /// How many of the names that an entry uses wait.
    wanted: Vec<usize>,
}

impl<'c> Waiting<'c> {
    fn of(changes: &'c [EnvChange]) -> Self {
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        for change in changes {
            *named.entry(change.name.as_str()).or_default() += 1;
        }
        let mut users: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut wanted = Vec::with_capacity(changes.len());
        for (at, change) in changes.iter().enumerate() {
            let names: BTreeSet<&str> = used_by(change)
                .filter(|name| named.contains_key(name))
                .collect();
            wanted.push(names.len());
            names
                .into_iter()
                .for_each(|name| users.entry(name).or_default().push(at));
        }
        let free = (0..changes.len()).filter(|&at| wanted[at] == 0).collect();
        Waiting {
            changes,
            all: (0..changes.len()).collect(),
            free,
            named,
            users,
            wanted,
        }
    }

    fn take(&mut self, at: usize) {
        self.all.remove(&at);
        self.free.remove(&at);
        let name = self.changes[at].name.as_str();
        let left = self.named.entry(name).or_default();
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
        for user in self.users.remove(name).unwrap_or_default() {
            self.wanted[user] -= 1;
            if self.wanted[user] == 0 && self.all.contains(&user) {
                self.free.insert(user);
            }
        }
    }
}

/// The names that a value uses as `$(NAME)`; `$$(NAME)` is text, and so is `$()`.
pub(super) fn references(value: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(escaped) = rest.strip_prefix('$') {
            rest = escaped;
        } else if let Some((name, behind)) = rest
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'))
        {
            names.extend(Some(name).filter(|name| !name.is_empty()));
            rest = behind;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{EnvOp, Item, Position};
    use serde_json::json;
    use std::sync::Arc;

    fn change(name: &str, value: &str) -> EnvChange {
        let item = Item {
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

    #[test]
    fn references_are_names_in_parentheses_that_are_not_escaped() {
        assert_eq!(references("a$(X)b$$(Y)$(Z"), ["X"]);
        assert_eq!(references("$(A),$()$(B)"), ["A", "B"]);
    }
}
