//! `podgraft.lock`: what earlier runs injected into the workloads of a tree of files, stored beside them. One JSON
//! list per line, sorted, so that git merges it line by line.
//!
//! The content that a policy injects is stored once for all workloads (`item` and `text` lines); the line of a
//! workload only names the places. So a new image version is one new line, however many workloads have it.

mod contents;
mod copied;
mod index;
mod locks;
mod moved;
mod policy;
mod seen;
mod unmarked;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use contents::{ContentKey, ContentKind};
use copied::AlikeWorkloads;
use index::{FilesByName, LazyIndex};
pub use locks::LockSet;
pub(crate) use moved::{MarkedWorkload, RecordSearch};
pub use policy::LockedRecordError;
use policy::split;
pub use seen::{SeenWorkloads, may_be_named_in};

use super::{
    Effects, JoinedText, PolicyRecord, Record, RemovedValue, TextDifferences, VERSION, bounds,
};
use crate::outcome::GeneratedRecord;
use crate::ownership::{MergeMark, RecordedWorkload, TextAdjustment, WorkloadKey, is_false};

/// The file's name.
pub const LOCK_FILE: &str = "podgraft.lock";
/// The version of the lock file format that is read and written here.
const LOCK_VERSION: u64 = 1;
/// Why the lock file of a later version is not read.
pub const LATER_VERSION: &str = "a later version of podgraft wrote this file";
const HEADER: &str = "\
# What podgraft put into the workloads of these files. Commit it with them; `podgraft undo` reads it.
# First what policies put at a place, in whatever workload:
";
/// Enough lines that the context of a diff above them does not reach below them.
const BETWEEN: &str = "\
#
# Then where they put it, and what stood there:
#
";
/// Returns the value at a record path of a workload.
pub(crate) type PathLookup<'l> = &'l dyn Fn(&str) -> Option<Value>;

/// The contents of a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// By policy and place: digests of items or texts of variables, each with its generation (higher is newer).
    contents: BTreeMap<ContentKey, BTreeMap<String, u64>>,
    workloads: BTreeMap<WorkloadKey, LockedWorkload>,
    alike: LazyIndex<AlikeWorkloads>,
    files_by_name: LazyIndex<FilesByName>,
}

/// The locked changes of one workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LockedWorkload {
    policies: BTreeMap<String, LockedPolicy>,
    rest: RestoreDetails,
}

/// What one policy did to a workload, without the content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LockedPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    generated: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    added: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    shared: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    made: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    filled: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    joined: BTreeMap<String, LockedJoin>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    replaced: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    removed: BTreeMap<String, RemovedValue>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    present: BTreeSet<String>,
    /// Lines of both sides of a merge are joined in it, so it may say what is true of one side only.
    #[serde(skip)]
    is_merged: MergeMark,
}

/// [`JoinedText`](crate::ownership::JoinedText), usually without its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LockedJoin {
    /// The text. `None` if it is the oldest of the known ones that the variable contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    separator: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    before: bool,
    #[serde(skip_serializing_if = "is_false")]
    new: bool,
    #[serde(skip_serializing_if = "is_false")]
    shared: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed: Option<String>,
    /// What lines of the other side of a merge say of the same variable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    merged: Vec<LockedJoin>,
}

/// Rarely needed details for restoring the original bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RestoreDetails {
    #[serde(skip_serializing_if = "Effects::is_empty")]
    marker: Effects,
    #[serde(skip_serializing_if = "TextAdjustment::is_nothing")]
    room: TextAdjustment,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextDifferences>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    untouched: BTreeSet<String>,
}

/// What a run did to a workload, with its key in the lock file.
struct NewRecord<'r> {
    key: WorkloadKey,
    workload: &'r RecordedWorkload,
}

impl LockedWorkload {
    /// What `undo` reads: the names of the policy sets are for `--prune`, what was there before is for merges, and the
    /// containers that were not changed are for renames.
    fn for_undo(&self) -> Self {
        let mut plain = self.clone();
        for policy in plain.policies.values_mut() {
            policy.set = None;
            policy.present.clear();
        }
        plain.rest.untouched.clear();
        plain
    }
}

impl Lock {
    /// Parses a lock file. The conflict markers of an unfinished merge are skipped, so the lines of both sides count.
    ///
    /// # Errors
    /// The number of an invalid line, from 1, and the reason.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut lock = Lock::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            let is_mark = ["#", "<<<<<<<", "|||||||", "=======", ">>>>>>>"]
                .iter()
                .any(|mark| line.starts_with(mark));
            if line.trim().is_empty() || is_mark {
                continue;
            }
            lock.read_line(line).map_err(|reason| (index + 1, reason))?;
        }
        Ok(lock)
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let Value::Array(fields) = bounds::from_json(line)? else {
            return Err("it is not a list".to_owned());
        };
        match text_in(&fields, 0)? {
            "version" => match fields.get(1).and_then(Value::as_u64) {
                Some(LOCK_VERSION) => Ok(()),
                _ => Err(LATER_VERSION.to_owned()),
            },
            "item" => self.read_content(&fields, ContentKind::Item),
            "text" => self.read_content(&fields, ContentKind::Text),
            "workload" => self.read_workload(&fields),
            word => Err(format!("unknown entry type `{word}`")),
        }
    }

    fn read_content(&mut self, fields: &[Value], kind: ContentKind) -> Result<(), String> {
        let place = ContentKey {
            kind,
            policy: text_in(fields, 1)?.to_owned(),
            path: text_in(fields, 2)?.to_owned(),
        };
        let generation = fields.get(3).and_then(Value::as_u64);
        let generation = generation.ok_or("its field 4 is not a number")?;
        let known = self.contents.entry(place).or_default();
        known
            .entry(text_in(fields, 4)?.to_owned())
            .and_modify(|newest| *newest = generation.max(*newest))
            .or_insert(generation);
        Ok(())
    }

    fn read_workload(&mut self, fields: &[Value]) -> Result<(), String> {
        let key = WorkloadKey {
            file: text_in(fields, 1)?.to_owned(),
            kind: text_in(fields, 2)?.to_owned(),
            namespace: text_in(fields, 3)?.to_owned(),
            name: text_in(fields, 4)?.to_owned(),
        };
        let policy = text_in(fields, 5)?;
        let details = fields.get(6).unwrap_or(&Value::Null);
        let locked = self.workloads.entry(key).or_default();
        let wrong = |error: serde_json::Error| error.to_string();
        if policy.is_empty() {
            let details = RestoreDetails::deserialize(details).map_err(wrong)?;
            locked.rest.join(details);
        } else {
            let locked_policy = LockedPolicy::deserialize(details).map_err(wrong)?;
            // After a merge, two branches may each have a line for the same workload and policy.
            let policies = &mut locked.policies;
            policies
                .entry(policy.to_owned())
                .or_default()
                .join(locked_policy);
        }
        Ok(())
    }

    /// Returns the text of the file. Empty if nothing is recorded.
    pub fn render(&self) -> String {
        if self.workloads.is_empty() {
            return String::new();
        }
        let items = self.contents.iter().flat_map(|(place, known)| {
            let word = match place.kind {
                ContentKind::Item => "item",
                ContentKind::Text => "text",
            };
            known.iter().map(move |(content, generation)| {
                line_of(&(word, &place.policy, &place.path, generation, content))
            })
        });
        let workloads = self.workloads.iter().flat_map(|(key, locked)| {
            let rest = (locked.rest != RestoreDetails::default())
                .then(|| workload_line(key, "", &locked.rest));
            let policies = locked.policies.iter();
            rest.into_iter()
                .chain(policies.map(move |(policy, effects)| workload_line(key, policy, effects)))
        });
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines.concat()
        };
        let version = line_of(&("version", LOCK_VERSION));
        let items = sorted(items.chain([version]).collect());
        let workloads = sorted(workloads.collect());
        [HEADER, &items, BETWEEN, &workloads].concat()
    }

    /// Returns the record under a key for a workload, with the policies that its marker names, in their order. Its
    /// values decide which of several known texts was joined.
    ///
    /// # Errors
    /// If several of them may have been.
    fn record(
        &self,
        key: &WorkloadKey,
        workload: &MarkedWorkload<'_>,
    ) -> Result<Option<Record>, LockedRecordError> {
        match self.workloads.get(key) {
            Some(locked) => self.record_of(locked, workload),
            None => Ok(None),
        }
    }

    /// [`Lock::record`] for what is recorded under the key.
    fn record_of(
        &self,
        locked: &LockedWorkload,
        workload: &MarkedWorkload<'_>,
    ) -> Result<Option<Record>, LockedRecordError> {
        let policies = workload.marked.iter().filter_map(|name| {
            let locked_policy = locked.policies.get(*name)?;
            Some(self.policy_record(name, locked_policy, workload.lookup))
        });
        let policies: Vec<PolicyRecord> = policies.collect::<Result<_, _>>()?;
        if policies.is_empty() {
            return Ok(None);
        }
        let RestoreDetails {
            marker,
            room,
            text,
            untouched,
        } = locked.rest.clone();
        let mut record = Record {
            version: VERSION,
            pod: workload.paths.template(),
            policies,
            marker,
            room,
            text,
            untouched,
        };
        self.add_unmarked(locked, workload, &mut record);
        Ok(Some(record))
    }

    /// Records what was done to workloads. A workload without a record is removed from the lock file, and so are the
    /// earlier places of `moved` ones.
    fn put_all(&mut self, records: Vec<NewRecord<'_>>, moved: Vec<&WorkloadKey>) {
        let (recorded, gone): (Vec<_>, Vec<_>) = records
            .into_iter()
            .partition(|new| new.workload.record.is_some());
        let seen = self.add_contents(&recorded);
        let is_unseen = |key: &&ContentKey| !seen.contains_key(key);
        let unseen: BTreeSet<ContentKey> =
            self.contents.keys().filter(is_unseen).cloned().collect();
        let used_before = self.used_among(&unseen, |_| true);
        let written = recorded.iter().map(|new| new.key.clone()).collect();
        for key in gone.iter().map(|new| &new.key).chain(moved) {
            self.workloads.remove(key);
        }
        for NewRecord { key, workload } in recorded {
            let Some(record) = workload.record.clone() else {
                continue;
            };
            let policies = record.policies.into_iter().map(|policy| {
                let name = policy.policy.clone();
                let is_found = |path: &str, joined: &JoinedText| {
                    let value = workload.joined_values.get(path);
                    self.finds_text(&name, path, joined, value.map(String::as_str))
                };
                let locked_policy = split(policy, is_found);
                (name, locked_policy)
            });
            let locked = LockedWorkload {
                policies: policies.collect(),
                rest: RestoreDetails {
                    marker: record.marker,
                    room: record.room,
                    text: record.text,
                    untouched: record.untouched,
                },
            };
            self.workloads.insert(key, locked);
        }
        self.remove_old_contents(&unseen, &used_before, &seen, &written);
    }

    /// Whether nothing of the other version of this file is missing: no line of a workload, and none of its content.
    pub fn covers(&self, other: &Lock) -> bool {
        let mut workloads = other.workloads.iter();
        let mut contents = other.contents.iter();
        let has = |(key, locked): (&WorkloadKey, &LockedWorkload)| {
            let own = self.workloads.get(key);
            own.is_some_and(|own| own.for_undo() == locked.for_undo())
        };
        workloads.all(has)
            && contents.all(|(key, contents)| {
                let known = self.contents.get(key);
                known
                    .is_some_and(|known| contents.keys().all(|content| known.contains_key(content)))
            })
    }

    /// Whether a workload below the same top folder as a file has a record of the policy. Elsewhere, results may stand
    /// that were never written in place.
    pub fn knows(&self, policy: &str, file: &str) -> bool {
        let top = |file: &str| file.split_once('/').map(|(top, _)| top.to_owned());
        let mut workloads = self.workloads.iter();
        workloads.any(|(key, locked)| {
            locked.policies.contains_key(policy) && top(&key.file) == top(file)
        })
    }

    /// The recorded workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &WorkloadKey> {
        self.workloads.keys()
    }

    /// Removes the workloads that are not there any more.
    pub fn retain(&mut self, is_present: impl Fn(&WorkloadKey) -> bool) {
        self.workloads.retain(|key, _| is_present(key));
    }

    /// Returns the generated objects that records of workloads name, with these workloads.
    pub(crate) fn generated(&self) -> impl Iterator<Item = (&WorkloadKey, GeneratedRecord)> {
        let policies = self.workloads.iter().flat_map(|(key, locked)| {
            let policies = locked.policies.iter();
            policies.map(move |(policy, effects)| (key, policy, effects))
        });
        policies.flat_map(|(key, policy, effects)| {
            let objects = generated(policy, effects.set.as_ref(), &effects.generated);
            objects.map(move |object| (key, object))
        })
    }
}

/// The generated objects of a policy. In the lines of a merge, one may have the digests of several versions.
pub(crate) fn generated<'r>(
    policy: &'r str,
    set: Option<&'r String>,
    objects: &'r BTreeMap<String, String>,
) -> impl Iterator<Item = GeneratedRecord> + 'r {
    objects.iter().flat_map(move |(name, digests)| {
        digests.split(' ').map(move |digest| GeneratedRecord {
            name: name.clone(),
            digest: digest.to_owned(),
            policy: policy.to_owned(),
            set: set.cloned(),
        })
    })
}

fn text_in(fields: &[Value], at: usize) -> Result<&str, String> {
    let text = fields.get(at).and_then(Value::as_str);
    text.ok_or_else(|| format!("its field {} is not a string", at + 1))
}

fn workload_line(key: &WorkloadKey, policy: &str, effects: &impl Serialize) -> String {
    let WorkloadKey {
        file,
        kind,
        namespace,
        name,
    } = key;
    line_of(&("workload", file, kind, namespace, name, policy, effects))
}

fn line_of(fields: &impl Serialize) -> String {
    let json = serde_json::to_string(fields).expect("maps with text keys are JSON");
    super::one_line(json) + "\n"
}

impl RestoreDetails {
    /// Adds what the line of the other side of a merge says.
    fn join(&mut self, other: RestoreDetails) {
        self.marker.extend(other.marker);
        self.untouched.extend(other.untouched);
        self.room.join(&other.room);
        match (&mut self.text, other.text) {
            (Some(text), Some(other)) => {
                text.places.extend(other.places);
                text.places.sort();
                text.places.dedup_by(|next, before| next.is_same(before));
            }
            (text, other) => *text = text.take().or(other),
        }
    }
}

impl LockedPolicy {
    /// Adds what the line of the other side of a merge says.
    fn join(&mut self, other: LockedPolicy) {
        let is_joined = *self != LockedPolicy::default() && *self != other;
        self.is_merged.0 |= other.is_merged.0 || is_joined;
        self.set = other.set.or(self.set.take());
        for (name, digest) in other.generated {
            let known = self.generated.entry(name).or_default();
            if !known.split(' ').any(|known| known == digest) {
                *known = [known.as_str(), &digest].join(" ").trim_start().to_owned();
            }
        }
        self.added.extend(other.added);
        self.shared.extend(other.shared);
        self.made.extend(other.made);
        self.filled.extend(other.filled);
        for (path, join) in other.joined {
            match self.joined.entry(path) {
                Entry::Vacant(place) => {
                    place.insert(join);
                }
                Entry::Occupied(mut known) => known.get_mut().merge(join),
            }
        }
        self.replaced.extend(other.replaced);
        self.removed.extend(other.removed);
        self.present.extend(other.present);
    }
}
