//! `podgraft.lock`: what earlier runs put into the workloads of a tree of files, kept beside them. One JSON list a line,
//! sorted, so that git merges it line by line.
//!
//! What a policy put there is said once for all workloads that got it (`item` and `text` lines); a workload's line says
//! where it stands. So a new version of an image is one new line, however many workloads have it.

mod moved;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use moved::SeveralRecords;
use moved::Unknown;

use super::inverse::without;
use super::path::Paths;
use super::{Effects, Joined, PolicyRecord, Record, Removed, Replaced, Texts, VERSION, bounds};
use crate::ownership::{RecordedWorkload, Room, WorkloadKey, is_false};

/// The file's name.
pub const LOCK_FILE: &str = "podgraft.lock";
/// The version of the format that is read and written here.
const LOCK_VERSION: u64 = 1;
const HEADER: &str = "\
# What podgraft put into the workloads of these files. Commit it with them; `podgraft undo` reads it.
# First what policies put at a place, in whatever workload:
";
/// So many lines that a diff of what stands above shows none of what stands below.
const BETWEEN: &str = "\
#
# Then where they put it, and what stood there:
#
";
/// So many generations of what a policy put at a place are known; older ones only where they are still there.
const GENERATIONS: u64 = 8;

/// What a lock file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// By policy and place: digests of items and texts of variables, each with its generation.
    contents: BTreeMap<Place, BTreeMap<String, u64>>,
    workloads: BTreeMap<WorkloadKey, Locked>,
}

/// What a policy puts at a place, in whatever workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    kind: ContentKind,
    policy: String,
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ContentKind {
    /// A digest.
    Item,
    /// A text that was joined to a variable.
    Text,
}

/// What was done to one workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Locked {
    policies: BTreeMap<String, LockedPolicy>,
    rest: Rest,
}

/// What one policy did, without the content.
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
    removed: BTreeMap<String, Removed>,
}

/// [`Joined`] without its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LockedJoin {
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
}

/// What is seldom needed to give back the bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rest {
    #[serde(skip_serializing_if = "Effects::is_empty")]
    marker: Effects,
    #[serde(skip_serializing_if = "Room::is_nothing")]
    room: Room,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Texts>,
}

impl Lock {
    /// Reads a lock file. Lines of an unfinished merge are both sides' lines.
    ///
    /// # Errors
    /// The number of a line that is none, from 1, and why.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut lock = Lock::default();
        for (at, line) in text.lines().enumerate() {
            let is_mark = ["#", "<<<<<<<", "|||||||", "=======", ">>>>>>>"]
                .iter()
                .any(|mark| line.starts_with(mark));
            if line.trim().is_empty() || is_mark {
                continue;
            }
            lock.read_line(line).map_err(|why| (at + 1, why))?;
        }
        Ok(lock)
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let Value::Array(fields) = bounds::from_json(line)? else {
            return Err("it is no list".to_owned());
        };
        let text = |at: usize| {
            let field = fields.get(at).and_then(Value::as_str);
            field
                .map(str::to_owned)
                .ok_or_else(|| format!("its field {} is no text", at + 1))
        };
        match text(0)?.as_str() {
            "version" => match fields.get(1).and_then(Value::as_u64) {
                Some(LOCK_VERSION) => Ok(()),
                _ => Err("a later podgraft wrote this file".to_owned()),
            },
            word @ ("item" | "text") => {
                let kind = match word {
                    "item" => ContentKind::Item,
                    _ => ContentKind::Text,
                };
                let place = Place {
                    kind,
                    policy: text(1)?,
                    path: text(2)?,
                };
                let generation = fields.get(3).and_then(Value::as_u64);
                let generation = generation.ok_or("its field 4 is no number")?;
                let known = self.contents.entry(place).or_default();
                known
                    .entry(text(4)?)
                    .and_modify(|own| *own = generation.max(*own))
                    .or_insert(generation);
                Ok(())
            }
            "workload" => {
                let key = WorkloadKey {
                    file: text(1)?,
                    kind: text(2)?,
                    namespace: text(3)?,
                    name: text(4)?,
                };
                let policy = text(5)?;
                let what = fields.get(6).cloned().unwrap_or_default();
                let locked = self.workloads.entry(key).or_default();
                let wrong = |error: serde_json::Error| error.to_string();
                if policy.is_empty() {
                    locked.rest = serde_json::from_value(what).map_err(wrong)?;
                } else {
                    let own = serde_json::from_value(what).map_err(wrong)?;
                    // Two branches did something to one workload.
                    locked.policies.entry(policy).or_default().join(own);
                }
                Ok(())
            }
            other => Err(format!("`{other}` is no word of this file")),
        }
    }

    /// The file's text; empty where nothing is recorded.
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
            let rest =
                (locked.rest != Rest::default()).then(|| workload_line(key, "", &locked.rest));
            let policies = locked.policies.iter();
            rest.into_iter()
                .chain(policies.map(move |(policy, what)| workload_line(key, policy, what)))
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

    /// The record of a workload with a value, of the policies that its mark names, in their order.
    fn record(
        &self,
        key: &WorkloadKey,
        paths: &Paths,
        marked: &[&str],
        value: &Value,
    ) -> Option<Record> {
        let locked = self.workloads.get(key)?;
        let policies = marked.iter().filter_map(|name| {
            let own = locked.policies.get(*name)?;
            Some(self.policy_record(name, own, paths, value))
        });
        let policies: Vec<PolicyRecord> = policies.collect();
        if policies.is_empty() {
            return None;
        }
        let Rest { marker, room, text } = locked.rest.clone();
        Some(Record {
            version: VERSION,
            pod: paths.template(),
            policies,
            marker,
            room,
            text,
        })
    }

    fn policy_record(
        &self,
        policy: &str,
        own: &LockedPolicy,
        paths: &Paths,
        value: &Value,
    ) -> PolicyRecord {
        let known = |kind: ContentKind, path: &str| -> Vec<&str> {
            let place = Place::of(kind, policy, path);
            let mut known: Vec<(&u64, &str)> =
                self.contents.get(&place).map_or_else(Vec::new, |known| {
                    known
                        .iter()
                        .map(|(content, generation)| (generation, content.as_str()))
                        .collect()
                });
            known.sort_by(|one, other| other.cmp(one));
            known.into_iter().map(|(_, content)| content).collect()
        };
        let digests = |path: &String| (path.clone(), known(ContentKind::Item, path).join(" "));
        let join = |(path, join): (&String, &LockedJoin)| {
            let LockedJoin {
                separator,
                before,
                new,
                shared,
                renamed,
            } = join.clone();
            let texts = known(ContentKind::Text, path);
            let mut joined = Joined {
                text: String::new(),
                separator,
                before,
                new,
                shared,
                renamed,
            };
            let there = paths
                .get(value, &format!("{path}/value"))
                .and_then(Value::as_str);
            let is_there = |text: &&&str| {
                let joined = Joined {
                    text: (**text).to_owned(),
                    ..joined.clone()
                };
                there.is_some_and(|there| without(there, &joined).is_some())
            };
            let text = texts.iter().find(is_there).or_else(|| texts.first());
            joined.text = text.map_or_else(String::new, |text| (*text).to_owned());
            (path.clone(), joined)
        };
        let effects = Effects {
            added: own.added.iter().map(digests).collect(),
            shared: own.shared.iter().map(digests).collect(),
            made: own.made.clone(),
            filled: own.filled.clone(),
            joined: own.joined.iter().map(join).collect(),
            replaced: own
                .replaced
                .iter()
                .map(|(path, was)| {
                    let (path, now) = digests(path);
                    (
                        path,
                        Replaced {
                            was: was.clone(),
                            now,
                        },
                    )
                })
                .collect(),
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

    /// Writes down what was done to workloads, and that nothing is left in those without a record.
    pub fn put_all(&mut self, records: Vec<(WorkloadKey, Option<Record>)>) {
        let before: BTreeMap<Place, u64> = self
            .contents
            .iter()
            .map(|(place, known)| {
                (
                    place.clone(),
                    known.values().copied().max().unwrap_or_default(),
                )
            })
            .collect();
        let mut seen: BTreeSet<(Place, String)> = BTreeSet::new();
        for (key, record) in records {
            let Some(record) = record else {
                self.workloads.remove(&key);
                continue;
            };
            let mut locked = Locked {
                rest: Rest {
                    marker: record.marker,
                    room: record.room,
                    text: record.text,
                },
                ..Locked::default()
            };
            for policy in record.policies {
                let name = policy.policy.clone();
                let (own, contents) = split(policy);
                for (place, content) in contents {
                    let known = self.contents.entry(place.clone()).or_default();
                    let next = before.get(&place).map_or(1, |generation| generation + 1);
                    known.entry(content.clone()).or_insert(next);
                    seen.insert((place, content));
                }
                locked.policies.insert(name, own);
            }
            self.workloads.insert(key, locked);
        }
        self.forget(&seen);
    }

    /// Forgets what no workload has any more.
    fn forget(&mut self, seen: &BTreeSet<(Place, String)>) {
        let mut places: BTreeSet<Place> = BTreeSet::new();
        for (policy, own) in self.workloads.values().flat_map(|locked| &locked.policies) {
            let items = own
                .added
                .iter()
                .chain(&own.shared)
                .chain(own.replaced.keys());
            places.extend(items.map(|path| Place::of(ContentKind::Item, policy, path)));
            places.extend(
                own.joined
                    .keys()
                    .map(|path| Place::of(ContentKind::Text, policy, path)),
            );
        }
        self.contents.retain(|place, known| {
            let newest = known.values().copied().max().unwrap_or_default();
            known.retain(|content, generation| {
                *generation + GENERATIONS > newest
                    || seen.contains(&(place.clone(), content.clone()))
            });
            places.contains(place)
        });
    }

    /// Leaves out the workloads that are not there any more.
    pub fn retain(&mut self, is_there: impl Fn(&WorkloadKey) -> bool) {
        self.workloads.retain(|key, _| is_there(key));
    }

    /// What the records name as generated, with the digests.
    fn generated(&self) -> impl Iterator<Item = (&String, &String)> {
        let policies = self
            .workloads
            .values()
            .flat_map(|locked| locked.policies.values());
        policies.flat_map(|policy| &policy.generated)
    }
}

fn workload_line(key: &WorkloadKey, policy: &str, what: &impl Serialize) -> String {
    let WorkloadKey {
        file,
        kind,
        namespace,
        name,
    } = key;
    line_of(&("workload", file, kind, namespace, name, policy, what))
}

fn line_of(fields: &impl Serialize) -> String {
    let json = serde_json::to_string(fields).expect("maps with text keys are JSON");
    super::one_line(json) + "\n"
}

impl Place {
    /// Of containers it is the same in all.
    fn of(kind: ContentKind, policy: &str, path: &str) -> Self {
        let mut steps: Vec<&str> = path.split('/').collect();
        if let ["pod", "spec", "containers" | "initContainers", name, _, ..] = &mut steps[..] {
            *name = "*";
        }
        Place {
            kind,
            policy: policy.to_owned(),
            path: steps.join("/"),
        }
    }
}

impl LockedPolicy {
    fn join(&mut self, other: LockedPolicy) {
        self.set = other.set.or(self.set.take());
        self.generated.extend(other.generated);
        self.added.extend(other.added);
        self.shared.extend(other.shared);
        self.made.extend(other.made);
        self.filled.extend(other.filled);
        self.joined.extend(other.joined);
        self.replaced.extend(other.replaced);
        self.removed.extend(other.removed);
    }
}

/// A policy's record without the content, and the content.
fn split(record: PolicyRecord) -> (LockedPolicy, Vec<(Place, String)>) {
    let PolicyRecord {
        policy,
        set,
        generated,
        effects,
        ..
    } = record;
    let Effects {
        added,
        shared,
        made,
        filled,
        joined,
        replaced,
        removed,
    } = effects;
    let mut contents = Vec::new();
    let mut put = |kind: ContentKind, path: &str, content: &str| {
        if !content.is_empty() {
            contents.push((Place::of(kind, &policy, path), content.to_owned()));
        }
    };
    let replaced_by = replaced
        .iter()
        .map(|(path, replaced)| (path, &replaced.now));
    for (path, digests) in added.iter().chain(&shared).chain(replaced_by) {
        digests
            .split(' ')
            .for_each(|digest| put(ContentKind::Item, path, digest));
    }
    for (path, joined) in &joined {
        put(ContentKind::Text, path, &joined.text);
    }
    let joined = joined.into_iter().map(|(path, joined)| {
        let Joined {
            separator,
            before,
            new,
            shared,
            renamed,
            ..
        } = joined;
        (
            path,
            LockedJoin {
                separator,
                before,
                new,
                shared,
                renamed,
            },
        )
    });
    let own = LockedPolicy {
        set,
        generated,
        added: added.into_keys().collect(),
        shared: shared.into_keys().collect(),
        made,
        filled,
        joined: joined.collect(),
        replaced: replaced
            .into_iter()
            .map(|(path, replaced)| (path, replaced.was))
            .collect(),
        removed,
    };
    (own, contents)
}

/// The lock files of a run, and which of them is for which file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locks {
    /// Each for the files below its folder.
    pub locks: Vec<Lock>,
    /// By the file's name in this run: which lock file, and the file's path in it.
    pub files: HashMap<Arc<str>, (usize, String)>,
}

impl Locks {
    /// The record of a workload of a file with a value, of the policies that its mark names, in their order. Where nothing
    /// is recorded under its name, it is that of the workload that it was (`is_here` says whether a recorded workload of
    /// the file is still there).
    ///
    /// # Errors
    /// It may be several.
    pub fn record(
        &self,
        file: &str,
        (kind, namespace, name): (&str, &str, &str),
        paths: &Paths,
        (marked, value): (&[&str], &Value),
        is_here: &dyn Fn(&WorkloadKey) -> bool,
    ) -> Result<Option<(WorkloadKey, Record)>, SeveralRecords> {
        let Some((lock, file)) = self.files.get(file) else {
            return Ok(None);
        };
        let lock = &self.locks[*lock];
        let key = WorkloadKey {
            file: file.clone(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let unknown = Unknown {
            key: &key,
            marked,
            value,
            paths,
            is_here,
        };
        let key = match lock.workloads.contains_key(&key) {
            true => Some(&key),
            false => unknown.earlier_place(lock)?,
        };
        Ok(key.and_then(|key| {
            let record = lock.record(key, paths, marked, value)?;
            Some((key.clone(), record))
        }))
    }

    /// What the records of all lock files name as generated, with the digests.
    pub fn generated(&self) -> impl Iterator<Item = (&String, &String)> {
        self.locks.iter().flat_map(Lock::generated)
    }

    /// Whether a lock file is for a file.
    pub fn is_for(&self, file: &str) -> bool {
        self.files.contains_key(file)
    }

    /// Whether something of a file is recorded.
    pub fn has_file(&self, file: &str) -> bool {
        let Some((lock, file)) = self.files.get(file) else {
            return false;
        };
        self.locks[*lock]
            .workloads
            .keys()
            .any(|key| key.file == *file)
    }

    /// Writes down what a run did to the workloads of its files.
    pub fn put_all<'r>(
        &mut self,
        files: impl IntoIterator<Item = (&'r str, &'r [RecordedWorkload])>,
    ) {
        let mut records: Vec<Vec<(WorkloadKey, Option<Record>)>> =
            vec![Vec::new(); self.locks.len()];
        let of_run: HashSet<(usize, &str)> = self
            .files
            .values()
            .map(|(lock, file)| (*lock, file.as_str()))
            .collect();
        for (name, workloads) in files {
            let Some((lock, file)) = self.files.get(name) else {
                continue;
            };
            // What was moved is not where it was; what was copied from a file of another run may be.
            let moved = workloads
                .iter()
                .filter_map(|workload| workload.from.as_ref());
            let gone = moved.filter(|from| of_run.contains(&(*lock, from.file.as_str())));
            for key in gone {
                self.locks[*lock].workloads.remove(key);
            }
            records[*lock].extend(workloads.iter().map(|workload| {
                let key = WorkloadKey {
                    file: file.clone(),
                    kind: workload.kind.clone(),
                    namespace: workload.namespace.clone(),
                    name: workload.name.clone(),
                };
                (key, workload.record.clone())
            }));
        }
        for (lock, records) in self.locks.iter_mut().zip(records) {
            lock.put_all(records);
        }
    }
}
