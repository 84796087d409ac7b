//! Splits a policy's record into content, which a lock file stores once for all workloads, and places; and joins both
//! again.

use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::contents::{ContentKey, ContentKind};
use super::{Lock, LockedJoin, LockedPolicy, MergeMark, PathLookup};
use crate::ownership::TextCandidates;
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
        let digests = |path: &String| Ok((path.clone(), known.digests(path, lookup)?));
        let all_digests =
            |paths: &BTreeSet<String>| paths.iter().map(digests).collect::<Result<_, _>>();
        let replaced = locked_policy.replaced.iter().map(|(path, original)| {
            let (was, now) = (original.clone(), known.digests(path, lookup)?);
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

/// A place with more known contents than this may have one for each workload.
const MANY: usize = 16;

/// The content that a lock file has for one policy.
struct KnownContents<'l> {
    lock: &'l Lock,
    policy: &'l str,
}

impl<'l> KnownContents<'l> {
    /// The known content of a place, with its generations.
    fn known(&self, kind: ContentKind, path: &str) -> Option<&'l BTreeMap<String, u64>> {
        let place = ContentKey::of(kind, self.policy, path);
        self.lock.contents.get(&place)
    }

    fn variable<'v>(&self, path: &'v str, value: Option<&'v str>) -> JoinedVariable<'v>
    where
        'l: 'v,
    {
        JoinedVariable {
            path,
            value,
            texts: self.known(ContentKind::Text, path),
        }
    }

    /// The digests of the known items of a place, newest first. If each workload may have an item of its own, the one that
    /// is in place.
    fn digests(&self, path: &str, lookup: PathLookup<'_>) -> Result<String, LockedRecordError> {
        let known = self.known(ContentKind::Item, path);
        let known = known.filter(|known| !known.is_empty());
        let known = known.ok_or_else(|| missing_content(path))?;
        if known.len() > MANY
            && let Some(in_place) = lookup(path).map(|value| digest(&value))
            && known.contains_key(&in_place)
        {
            return Ok(in_place);
        }
        let mut digests: Vec<(&String, &u64)> = known.iter().collect();
        digests.sort_by_key(|&(digest, generation)| Reverse((generation, digest)));
        let digests: Vec<&str> = digests.iter().map(|(digest, _)| digest.as_str()).collect();
        Ok(digests.join(" "))
    }
}

/// A variable, with the texts that the policy has joined to it in some workload.
struct JoinedVariable<'v> {
    /// Its record path.
    path: &'v str,
    value: Option<&'v str>,
    /// The texts with their generations.
    texts: Option<&'v BTreeMap<String, u64>>,
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
        let mut joined = sides.swap_remove(0);
        if self.value.is_none() && join.text.is_none() {
            joined.candidates = TextCandidates(self.texts.cloned().unwrap_or_default());
        }
        Ok(joined)
    }

    /// Returns the text that was joined: the one that the line names, else the oldest known one that the variable
    /// contains, else the newest. A line names a younger one.
    fn text_of(&self, join: &LockedJoin) -> Result<String, LockedRecordError> {
        if let Some(text) = &join.text {
            return Ok(text.clone());
        }
        match self.oldest(join).as_slice() {
            [] => {
                let newest = self
                    .known()
                    .max_by_key(|&(text, generation)| (generation, text));
                let (text, _) = newest.ok_or_else(|| missing_content(self.path))?;
                Ok(text.clone())
            }
            [only] => Ok((*only).to_owned()),
            several => Err(self.ambiguous(several.iter().map(|&text| text.to_owned()))),
        }
    }

    /// The oldest of the texts that the variable contains as this policy joins them: those of one generation, the last of
    /// the alphabet first.
    fn oldest(&self, join: &LockedJoin) -> Vec<&'v str> {
        let Some(value) = self.value else {
            return Vec::new();
        };
        let joined = with_text(join, String::new());
        let known = self.candidates(value, joined.separator());
        joined.oldest_in(value, known.into_iter().rev())
    }

    /// The known texts that a value may contain, in alphabetical order. Where each workload has a text of its own, these
    /// are few of thousands.
    fn candidates(&self, value: &str, separator: &str) -> Vec<(&'v String, &'v u64)> {
        let many = self.texts.filter(|texts| texts.len() > MANY);
        let known = many.and_then(|texts| {
            let tokens = tokens_of(value, separator).filter(|tokens| tokens.len() < texts.len())?;
            let known = tokens
                .iter()
                .filter_map(|&token| texts.get_key_value(token));
            Some(BTreeMap::from_iter(known).into_iter().collect())
        });
        known.unwrap_or_else(|| self.known().collect())
    }

    fn known(&self) -> impl Iterator<Item = (&'v String, &'v u64)> + use<'v> {
        self.texts.into_iter().flatten()
    }

    fn ambiguous(&self, texts: impl Iterator<Item = String>) -> LockedRecordError {
        LockedRecordError::Texts {
            path: self.path.to_owned(),
            texts: texts.collect(),
        }
    }
}

/// The parts of a value between separators or blanks, of any number of tokens. `None` if there are very many.
fn tokens_of<'v>(value: &'v str, separator: &str) -> Option<Vec<&'v str>> {
    const MOST_TOKENS: usize = 100;
    let is_blank = |char: Option<char>| char.is_some_and(char::is_whitespace);
    let borders = value.char_indices().map(|(at, _)| at).chain([value.len()]);
    let is_start = |&at: &usize| {
        let before = &value[..at];
        before.is_empty() || before.ends_with(separator) || is_blank(before.chars().next_back())
    };
    let is_end = |&at: &usize| {
        let behind = &value[at..];
        behind.is_empty() || behind.starts_with(separator) || is_blank(behind.chars().next())
    };
    let starts: Vec<usize> = borders.clone().filter(is_start).collect();
    let ends: Vec<usize> = borders.filter(is_end).collect();
    if starts.len().max(ends.len()) > MOST_TOKENS {
        return None;
    }
    let tokens = starts.iter().flat_map(|&start| {
        let ends = ends.iter().filter(move |&&end| start <= end);
        ends.map(move |&end| &value[start..end])
    });
    Some(tokens.collect())
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
        candidates: TextCandidates::default(),
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
