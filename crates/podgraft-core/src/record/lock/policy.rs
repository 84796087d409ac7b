//! Splits a policy's record into content, which a lock file stores once for all workloads, and places; and joins both
//! again.

use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::contents::{ContentKey, ContentKind};
use super::{Lock, LockedJoin, LockedPolicy, MergeMark, PathLookup};
use crate::record::joined_text::without;
use crate::record::{Effects, JoinedText, PolicyRecord, ReplacedValue, digest};

impl Lock {
    /// Returns the record of a policy in a workload.
    ///
    /// # Errors
    /// If several known texts may have been joined to a variable, or if content is missing.
    pub(super) fn policy_record(
        &self,
        policy: &str,
        locked_policy: &LockedPolicy,
        lookup: PathLookup<'_>,
    ) -> Result<PolicyRecord, LockedRecordError> {
        let locked_policy = &*self.without_other_side(policy, locked_policy, lookup);
        let known = KnownContents { lock: self, policy };
        let digests = |path: &String| Ok((path.clone(), known.digests(path)?));
        let all_digests =
            |paths: &BTreeSet<String>| paths.iter().map(digests).collect::<Result<_, _>>();
        let replaced = locked_policy.replaced.iter().map(|(path, original)| {
            let (was, now) = (original.clone(), known.digests(path)?);
            Ok((path.clone(), ReplacedValue { was, now }))
        });
        let mut joined = BTreeMap::new();
        for (path, join) in &locked_policy.joined {
            let current = lookup(&format!("{path}/value"));
            let variable = known.variable(path, current.as_ref().and_then(Value::as_str));
            joined.insert(path.clone(), variable.joined(join)?);
        }
        let effects = Effects {
            added: all_digests(&locked_policy.added)?,
            shared: all_digests(&locked_policy.shared)?,
            made: locked_policy.made.clone(),
            filled: locked_policy.filled.clone(),
            joined,
            replaced: replaced.collect::<Result<_, _>>()?,
            removed: locked_policy.removed.clone(),
            present: locked_policy.present.clone(),
        };
        Ok(PolicyRecord {
            policy: policy.to_owned(),
            digest: String::new(),
            set: locked_policy.set.clone(),
            generated: locked_policy.generated.clone(),
            effects,
            is_merged: locked_policy.is_merged,
        })
    }

    /// Drops what the lines of a merge say of a value that is not the one in the workload: it is from the other side.
    fn without_other_side<'l>(
        &self,
        policy: &str,
        locked_policy: &'l LockedPolicy,
        lookup: PathLookup<'_>,
    ) -> Cow<'l, LockedPolicy> {
        let mut own_side = Cow::Borrowed(locked_policy);
        if !locked_policy.is_merged.0 {
            return own_side;
        }
        for path in locked_policy.replaced.keys() {
            let Some(value) = lookup(path) else { continue };
            let content = digest(&value);
            let place = ContentKey::of(ContentKind::Item, policy, path);
            let is_shared = locked_policy.shared.contains(path);
            let has_content = |key: &ContentKey| self.contents[key].contains_key(&content);
            let is_of_another = |key: &ContentKey| {
                let is_same_place = (key.kind, &key.path) == (place.kind, &place.path);
                is_same_place && key.policy != place.policy && has_content(key)
            };
            let is_own = self.contents.contains_key(&place) && has_content(&place);
            if !is_own || is_shared && self.contents.keys().any(is_of_another) {
                own_side.to_mut().replaced.remove(path);
            } else if is_shared {
                own_side.to_mut().shared.remove(path);
            }
        }
        own_side
    }

    /// Whether a text that was joined to a variable is found again by the variable's value alone.
    pub(super) fn finds_text(
        &self,
        policy: &str,
        path: &str,
        joined: &JoinedText,
        value: Option<&str>,
    ) -> bool {
        let variable = KnownContents { lock: self, policy }.variable(path, value);
        variable.oldest(&without_text(joined)) == [joined.text.as_str()]
    }
}

/// Why the lock file's record of a workload cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockedRecordError {
    /// The workload matches several records whose original values differ. The titles of these workloads.
    Workloads(Vec<String>),
    /// A variable contains several texts that the policy has joined to it in some workload.
    Texts {
        /// The record path of the variable.
        path: String,
        /// The texts.
        texts: Vec<String>,
    },
    /// The file does not have the content of a recorded place any more. A merge may have lost it.
    MissingContent {
        /// The record path of the place.
        path: String,
    },
}

/// The content that a lock file has for one policy.
struct KnownContents<'l> {
    lock: &'l Lock,
    policy: &'l str,
}

impl<'l> KnownContents<'l> {
    /// Returns the known content of a place with its generation, newest first.
    fn contents(&self, kind: ContentKind, path: &str) -> Vec<(u64, &'l str)> {
        let place = ContentKey::of(kind, self.policy, path);
        let known = self.lock.contents.get(&place).into_iter().flatten();
        let mut known: Vec<(u64, &str)> = known
            .map(|(content, generation)| (*generation, content.as_str()))
            .collect();
        known.sort_by(|left, right| right.cmp(left));
        known
    }

    fn variable<'v>(&self, path: &'v str, value: Option<&'v str>) -> JoinedVariable<'v>
    where
        'l: 'v,
    {
        JoinedVariable {
            path,
            value,
            texts: self.contents(ContentKind::Text, path),
        }
    }

    fn digests(&self, path: &str) -> Result<String, LockedRecordError> {
        let known = self.contents(ContentKind::Item, path);
        if known.is_empty() {
            return Err(missing_content(path));
        }
        let digests: Vec<&str> = known.into_iter().map(|(_, digest)| digest).collect();
        Ok(digests.join(" "))
    }
}

/// A variable, with the texts that the policy has joined to it in some workload.
struct JoinedVariable<'v> {
    /// Its record path.
    path: &'v str,
    value: Option<&'v str>,
    /// The texts with their generations, newest first.
    texts: Vec<(u64, &'v str)>,
}

impl<'v> JoinedVariable<'v> {
    fn contains(&self, joined: &JoinedText) -> bool {
        self.value
            .is_some_and(|value| without(value, joined).is_some())
    }

    /// Returns the join with its text. After a merge, that of the side whose text the variable contains.
    fn joined(&self, join: &LockedJoin) -> Result<JoinedText, LockedRecordError> {
        let sides = std::iter::once(join).chain(&join.merged);
        let sides = sides.map(|side| Ok(with_text(side, self.text_of(side)?)));
        let mut sides: Vec<JoinedText> = sides.collect::<Result<_, _>>()?;
        if sides.iter().any(|side| self.contains(side)) {
            sides.retain(|side| self.contains(side));
        }
        if sides.iter().any(|side| side.text != sides[0].text) {
            return Err(self.ambiguous(sides.into_iter().map(|side| side.text)));
        }
        Ok(sides.swap_remove(0))
    }

    /// Returns the text that was joined: the one that the line names, else the oldest known one that the variable
    /// contains, else the newest. A line names a younger one.
    fn text_of(&self, join: &LockedJoin) -> Result<String, LockedRecordError> {
        if let Some(text) = &join.text {
            return Ok(text.clone());
        }
        match self.oldest(join).as_slice() {
            [] => {
                let newest = self.texts.first();
                let (_, text) = newest.ok_or_else(|| missing_content(self.path))?;
                Ok((*text).to_owned())
            }
            [only] => Ok((*only).to_owned()),
            several => Err(self.ambiguous(several.iter().map(|&text| text.to_owned()))),
        }
    }

    /// The oldest of the texts that the variable contains as this policy joins them: those of one generation.
    fn oldest(&self, join: &LockedJoin) -> Vec<&'v str> {
        let is_in = |(_, text): &&(u64, &str)| self.contains(&with_text(join, (*text).to_owned()));
        let found: Vec<&(u64, &str)> = self.texts.iter().filter(is_in).collect();
        let oldest = found.last().map(|(generation, _)| *generation);
        let is_oldest = |(generation, _): &&(u64, &str)| Some(*generation) == oldest;
        found
            .into_iter()
            .filter(is_oldest)
            .map(|(_, text)| *text)
            .collect()
    }

    fn ambiguous(&self, texts: impl Iterator<Item = String>) -> LockedRecordError {
        LockedRecordError::Texts {
            path: self.path.to_owned(),
            texts: texts.collect(),
        }
    }
}

fn missing_content(path: &str) -> LockedRecordError {
    LockedRecordError::MissingContent {
        path: path.to_owned(),
    }
}

impl LockedJoin {
    /// Adds what a line of the other side of a merge says.
    pub(super) fn merge(&mut self, mut other: LockedJoin) {
        let further = std::mem::take(&mut other.merged);
        for side in std::iter::once(other).chain(further) {
            let mut known = std::iter::once(&*self).chain(&self.merged);
            if !known.any(|known| known.says_the_same(&side)) {
                self.merged.push(side);
            }
        }
    }

    fn says_the_same(&self, other: &LockedJoin) -> bool {
        self.text == other.text && with_text(self, String::new()) == with_text(other, String::new())
    }
}

fn with_text(join: &LockedJoin, text: String) -> JoinedText {
    JoinedText {
        text,
        separator: join.separator.clone(),
        before: join.before,
        new: join.new,
        shared: join.shared,
        renamed: join.renamed.clone(),
    }
}

/// Returns a policy's record without the content. A joined text that is not found again stays in it.
pub(super) fn split(
    record: PolicyRecord,
    is_found: impl Fn(&str, &JoinedText) -> bool,
) -> LockedPolicy {
    let Effects {
        added,
        shared,
        made,
        filled,
        joined,
        replaced,
        removed,
        present,
    } = record.effects;
    let joined = joined.into_iter().map(|(path, joined)| {
        let mut locked_join = without_text(&joined);
        if !is_found(&path, &joined) {
            locked_join.text = Some(joined.text);
        }
        (path, locked_join)
    });
    let replaced = replaced.into_iter();
    let replaced = replaced.map(|(path, replaced)| (path, replaced.was));
    LockedPolicy {
        set: record.set,
        generated: record.generated,
        added: added.into_keys().collect(),
        shared: shared.into_keys().collect(),
        made,
        filled,
        joined: joined.collect(),
        replaced: replaced.collect(),
        removed,
        present,
        is_merged: MergeMark::default(),
    }
}

/// Returns the content that a policy injected at each place.
pub(super) fn contents_of(record: &PolicyRecord) -> impl Iterator<Item = (ContentKey, &str)> {
    let Effects {
        added,
        shared,
        joined,
        replaced,
        ..
    } = &record.effects;
    let replaced = replaced.iter().map(|(path, found)| (path, &found.now));
    let items = added.iter().chain(shared).chain(replaced);
    let items = items.flat_map(|(path, digests)| {
        let digests = digests.split(' ');
        digests.map(move |digest| (ContentKind::Item, path, digest))
    });
    let texts = joined
        .iter()
        .map(|(path, joined)| (ContentKind::Text, path, joined.text.as_str()));
    items
        .chain(texts)
        .filter(|(.., content)| !content.is_empty())
        .map(|(kind, path, content)| (ContentKey::of(kind, &record.policy, path), content))
}

fn without_text(joined: &JoinedText) -> LockedJoin {
    LockedJoin {
        text: None,
        separator: joined.separator.clone(),
        before: joined.before,
        new: joined.new,
        shared: joined.shared,
        renamed: joined.renamed.clone(),
        merged: Vec::new(),
    }
}
