//! A policy's record cut into what it put there, which a lock file says once for all workloads, and where; and put together
//! again.

use serde_json::Value;

use super::{ContentKind, Lock, LockedJoin, LockedPolicy, Place};
use crate::record::inverse::without;
use crate::record::path::Paths;
use crate::record::{Effects, Joined, PolicyRecord, Replaced};

impl Lock {
    /// The record of a policy in a workload with a value.
    pub(super) fn policy_record(
        &self,
        policy: &str,
        own: &LockedPolicy,
        paths: &Paths,
        value: &Value,
    ) -> PolicyRecord {
        let known = Known { lock: self, policy };
        let digests = |path: &String| (path.clone(), known.digests(path));
        let replaced = |(path, was): (&String, &Value)| {
            let (was, now) = (was.clone(), known.digests(path));
            (path.clone(), Replaced { was, now })
        };
        let joined = |(path, join): (&String, &LockedJoin)| {
            let there = paths.get(value, &format!("{path}/value"));
            let texts = known.contents(ContentKind::Text, path);
            let joined = joined_with(join, &texts, there.and_then(Value::as_str));
            (path.clone(), joined)
        };
        let effects = Effects {
            added: own.added.iter().map(digests).collect(),
            shared: own.shared.iter().map(digests).collect(),
            made: own.made.clone(),
            filled: own.filled.clone(),
            joined: own.joined.iter().map(joined).collect(),
            replaced: own.replaced.iter().map(replaced).collect(),
            removed: own.removed.clone(),
        };
        PolicyRecord {
            policy: policy.to_owned(),
            digest: String::new(),
            set: own.set.clone(),
            generated: own.generated.clone(),
            effects,
        }
    }
}

/// What a lock file knows of a policy.
struct Known<'l> {
    lock: &'l Lock,
    policy: &'l str,
}

impl<'l> Known<'l> {
    /// What the policy put at a place, the newest first.
    fn contents(&self, kind: ContentKind, path: &str) -> Vec<&'l str> {
        let place = Place::of(kind, self.policy, path);
        let known = self.lock.contents.get(&place).into_iter().flatten();
        let mut known: Vec<(&u64, &str)> = known
            .map(|(content, generation)| (generation, content.as_str()))
            .collect();
        known.sort_by(|one, other| other.cmp(one));
        known.into_iter().map(|(_, content)| content).collect()
    }

    fn digests(&self, path: &str) -> String {
        self.contents(ContentKind::Item, path).join(" ")
    }
}

/// What was joined to a variable: of the known texts the one that is there, else the newest.
fn joined_with(join: &LockedJoin, texts: &[&str], there: Option<&str>) -> Joined {
    let LockedJoin {
        separator,
        before,
        new,
        shared,
        renamed,
    } = join.clone();
    let joined = Joined {
        text: String::new(),
        separator,
        before,
        new,
        shared,
        renamed,
    };
    let with = |text: &str| Joined {
        text: text.to_owned(),
        ..joined.clone()
    };
    let is_there = |text: &&&str| there.is_some_and(|there| without(there, &with(text)).is_some());
    let text = texts.iter().find(is_there).or_else(|| texts.first());
    with(text.copied().unwrap_or_default())
}

/// A policy's record without the content, and the content.
pub(super) fn split(record: PolicyRecord) -> (LockedPolicy, Vec<(Place, String)>) {
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
    let own = LockedPolicy {
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
    (own, contents)
}

/// What a policy put at each place.
fn contents_of(record: &PolicyRecord) -> Vec<(Place, String)> {
    let Effects {
        added,
        shared,
        joined,
        replaced,
        ..
    } = &record.effects;
    let replaced = replaced.iter().map(|(path, own)| (path, &own.now));
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
        (Place::of(kind, &record.policy, path), content.to_owned())
    };
    all.map(place).collect()
}

fn without_text(joined: Joined) -> LockedJoin {
    let Joined {
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
