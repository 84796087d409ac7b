//! Splits a policy's record into content, which a lock file stores once for all workloads, and places; and joins both
//! again.

use serde_json::Value;

use super::{ContentKey, ContentKind, Lock, LockedJoin, LockedPolicy, PathLookup};
use crate::record::joined_text::without;
use crate::record::{Effects, JoinedText, PolicyRecord, ReplacedValue};

impl Lock {
    /// Returns the record of a policy in a workload.
    pub(super) fn policy_record(
        &self,
        policy: &str,
        locked_policy: &LockedPolicy,
        lookup: PathLookup<'_>,
    ) -> PolicyRecord {
        let known = Known { lock: self, policy };
        let digests = |path: &String| (path.clone(), known.digests(path));
        let replaced = |(path, original): (&String, &Value)| {
            let (was, now) = (original.clone(), known.digests(path));
            (path.clone(), ReplacedValue { was, now })
        };
        let joined = |(path, join): (&String, &LockedJoin)| {
            let current_text = lookup(&format!("{path}/value"));
            let texts = known.contents(ContentKind::Text, path);
            let joined = joined_with(join, &texts, current_text.as_ref().and_then(Value::as_str));
            (path.clone(), joined)
        };
        let effects = Effects {
            added: locked_policy.added.iter().map(digests).collect(),
            shared: locked_policy.shared.iter().map(digests).collect(),
            made: locked_policy.made.clone(),
            filled: locked_policy.filled.clone(),
            joined: locked_policy.joined.iter().map(joined).collect(),
            replaced: locked_policy.replaced.iter().map(replaced).collect(),
            removed: locked_policy.removed.clone(),
        };
        PolicyRecord {
            policy: policy.to_owned(),
            digest: String::new(),
            set: locked_policy.set.clone(),
            generated: locked_policy.generated.clone(),
            effects,
        }
    }
}

/// The content that a lock file has for one policy.
struct Known<'l> {
    lock: &'l Lock,
    policy: &'l str,
}

impl<'l> Known<'l> {
    /// Returns the known content of a place, newest first.
    fn contents(&self, kind: ContentKind, path: &str) -> Vec<&'l str> {
        let place = ContentKey::of(kind, self.policy, path);
        let known = self.lock.contents.get(&place).into_iter().flatten();
        let mut known: Vec<(&u64, &str)> = known
            .map(|(content, generation)| (generation, content.as_str()))
            .collect();
        known.sort_by(|left, right| right.cmp(left));
        known.into_iter().map(|(_, content)| content).collect()
    }

    fn digests(&self, path: &str) -> String {
        self.contents(ContentKind::Item, path).join(" ")
    }
}

/// Returns the join with its text: the known one that the variable contains, else the newest.
fn joined_with(join: &LockedJoin, texts: &[&str], existing: Option<&str>) -> JoinedText {
    let LockedJoin {
        separator,
        before,
        new,
        shared,
        renamed,
    } = join.clone();
    let joined = JoinedText {
        text: String::new(),
        separator,
        before,
        new,
        shared,
        renamed,
    };
    let with = |text: &str| JoinedText {
        text: text.to_owned(),
        ..joined.clone()
    };
    let is_there =
        |text: &&&str| existing.is_some_and(|existing| without(existing, &with(text)).is_some());
    let text = texts.iter().find(is_there).or_else(|| texts.first());
    with(text.copied().unwrap_or_default())
}

/// Splits a policy's record into the part without content, and the content.
pub(super) fn split(record: PolicyRecord) -> (LockedPolicy, Vec<(ContentKey, String)>) {
    let contents = contents_of(&record);
    let Effects {
        added,
        shared,
        made,
        filled,
        joined,
        replaced,
        removed,
    } = record.effects;
    let locked_policy = LockedPolicy {
        set: record.set,
        generated: record.generated,
        added: added.into_keys().collect(),
        shared: shared.into_keys().collect(),
        made,
        filled,
        joined: joined
            .into_iter()
            .map(|(path, joined)| (path, without_text(joined)))
            .collect(),
        replaced: replaced
            .into_iter()
            .map(|(path, replaced)| (path, replaced.was))
            .collect(),
        removed,
    };
    (locked_policy, contents)
}

/// Returns the content that a policy injected at each place.
fn contents_of(record: &PolicyRecord) -> Vec<(ContentKey, String)> {
    let Effects {
        added,
        shared,
        joined,
        replaced,
        ..
    } = &record.effects;
    let replaced = replaced
        .iter()
        .map(|(path, replacement)| (path, &replacement.now));
    let items = added.iter().chain(shared).chain(replaced);
    let items = items.flat_map(|(path, digests)| {
        let digests = digests.split(' ');
        digests.map(move |digest| (ContentKind::Item, path, digest))
    });
    let texts = joined
        .iter()
        .map(|(path, joined)| (ContentKind::Text, path, joined.text.as_str()));
    let all = items
        .chain(texts)
        .filter(|(.., content)| !content.is_empty());
    let place = |(kind, path, content): (ContentKind, &String, &str)| {
        (
            ContentKey::of(kind, &record.policy, path),
            content.to_owned(),
        )
    };
    all.map(place).collect()
}

fn without_text(joined: JoinedText) -> LockedJoin {
    let JoinedText {
        separator,
        before,
        new,
        shared,
        renamed,
        ..
    } = joined;
    LockedJoin {
        separator,
        before,
        new,
        shared,
        renamed,
    }
}
