//! Tells of recorded changes whether they are in place beside those of other records. After a merge, that decides what a
//! line of a lock file belongs to.

use std::collections::BTreeSet;

use super::joined_text::without;
use super::lock::PathLookup;
use super::path::{is_aligned, rest_below};
use super::renamed::{affects, is_one_of};
use super::{Effects, JoinedText, Record, RecordedValue};

impl Record {
    /// Gives a policy another name. If there is a policy of that name already, both are one: one branch renamed it, and
    /// the other one changed what it injects.
    pub(crate) fn rename_policy(&mut self, old: &str, new: &str, object: &RecordedValue<'_>) {
        let position = |name: &str| {
            self.policies
                .iter()
                .position(|policy| policy.policy == name)
        };
        let (Some(from), to) = (position(old), position(new)) else {
            return;
        };
        let Some(to) = to else {
            self.policies[from].policy = new.to_owned();
            return;
        };
        let paths = self.paths();
        let is_joined = |path: &str, joined: &JoinedText| {
            let value = paths.get(object.whole(), &format!("{path}/value"));
            let value = value.and_then(|value| value.as_str());
            value.is_some_and(|value| without(value, joined).is_some())
        };
        let mut earlier = self.policies[from].clone();
        let policy = &mut self.policies[to];
        // Of two texts for a variable, that counts which is there.
        let is_here = |path: &String, joined: &mut JoinedText| {
            !earlier.effects.joined.contains_key(path) || is_joined(path, joined)
        };
        policy.effects.joined.retain(is_here);
        earlier.effects.extend(std::mem::take(&mut policy.effects));
        policy.effects = earlier.effects;
        earlier
            .generated
            .extend(std::mem::take(&mut policy.generated));
        policy.generated = earlier.generated;
        self.policies.remove(from);
    }
}

impl Effects {
    /// Whether it says only what an item at this path is, and another one is there: the line is from the other side of a
    /// merge.
    fn is_stale(&self, path: &str, lookup: PathLookup<'_>) -> bool {
        let is_shared = self.shared.contains_key(path);
        let replaced = self.replaced.get(path).map(|replaced| &replaced.now);
        let content = self.added.get(path).or(replaced);
        let is_other = |digests| lookup(path).is_some_and(|value| !is_one_of(&value, digests));
        content.map_or(is_shared, |digests| is_other(digests))
    }

    fn has_present(&self, path: &str) -> bool {
        is_present(&self.present, path)
    }

    /// Keeps only the items of lists, the labels and the annotations. Of these, a record also lists what the manifest had
    /// already (`present`). A field that a default or a patch sets may be the user's, and no record says so.
    pub(super) fn retain_items(&mut self) {
        self.added.retain(|path, _| is_item(path));
        self.replaced.retain(|path, _| is_item(path));
    }

    /// Whether something is in place that would not be there with the policies of the record alone.
    pub(super) fn has_own_content(&self, record: &Record, lookup: PathLookup<'_>) -> bool {
        let others = || record.policies.iter().map(|policy| &policy.effects);
        let replaced = self.replaced.iter();
        let replaced = replaced.map(|(path, replaced)| (path, &replaced.now));
        let has_item = self.added.iter().chain(replaced).any(|(path, digests)| {
            let is_own = !others().any(|other| {
                other.has_present(path) || affects(other, path) && !other.is_stale(path, lookup)
            });
            is_own && lookup(path).is_some_and(|value| is_one_of(&value, digests))
        });
        let mut joined = self.joined.iter();
        has_item
            || joined.any(|(path, text)| {
                if others().any(|other| other.has_present(path)) {
                    return false;
                }
                let mut others = others().filter_map(|other| other.joined.get(path));
                let value = lookup(&format!("{path}/value"));
                let value = value.as_ref().and_then(|value| value.as_str());
                !others.any(|other| other.has(text)) && value.is_some_and(|value| text.is_in(value))
            })
    }
}

/// Whether the manifest had what a policy wants at a path, or around it.
pub(super) fn is_present(present: &BTreeSet<String>, path: &str) -> bool {
    let mut present = present.iter();
    present.any(|known| rest_below(path, known).is_some())
}

/// Whether a record path is that of an item of a list, a label or an annotation.
fn is_item(path: &str) -> bool {
    let holder = path.rsplit('/').nth(1).unwrap_or_default();
    is_aligned(holder) || matches!(holder, "labels" | "annotations")
}
