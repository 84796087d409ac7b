//! What podgraft did to workloads, as values: which policy did what, where, and what was there before. `record` reads
//! and writes them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// The annotation that names the applied policies, for people.
pub const MARKER: &str = "podgraft.dev/applied";

/// The annotation that holds the record, for podgraft.
pub const RECORD: &str = "podgraft.dev/record";

/// The policies that the text of a marker names.
pub(crate) fn marked_policies(marker: &str) -> impl Iterator<Item = &str> + Clone {
    let names = marker.split(',').map(str::trim);
    names.filter(|name| !name.is_empty())
}

/// The record of one workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the format.
    pub version: u32,
    /// The keys that lead to the pod template, joined by dots; empty for a Pod. Paths below it begin with `pod`.
    pub pod: String,
    /// The policies in the order in which they were applied.
    pub policies: Vec<PolicyRecord>,
    /// What writing the marker changed besides, such as creating `metadata.annotations`.
    #[serde(default, skip_serializing_if = "Effects::is_empty")]
    pub marker: Effects,
    /// How the text was adjusted to make room for objects generated beside the workload.
    #[serde(default, skip_serializing_if = "TextAdjustment::is_nothing")]
    pub room: TextAdjustment,
    /// The text differences that undo must restore beside the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextDifferences>,
    /// The containers that the policies did not change, as `containers/NAME`: none of them is one that was renamed since.
    /// Only in a lock file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub untouched: BTreeSet<String>,
}

/// What one policy did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// The policy's identity.
    pub policy: String,
    /// The digest of all its effects.
    pub digest: String,
    /// The policy set that it was applied with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The objects that it generated beside the workload, with the digests of their content. A record from a lock file may
    /// have several digests of an object, separated by spaces, of which one is in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generated: BTreeMap<String, String>,
    /// Its changes to the workload.
    #[serde(flatten)]
    pub effects: Effects,
    /// Whether the lock file has lines of both sides of a merge for it.
    #[serde(skip)]
    pub(crate) is_merged: MergeMark,
}

/// Marks what is joined of several lines of a merge, so it may say what is true of one side only. It is no part of what
/// they say, so it does not make two records different.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MergeMark(pub bool);

impl PartialEq for MergeMark {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MergeMark {}

/// The changes of one policy, by path. A path is keys and identities of list items, joined by `/` (see
/// `record::RecordPaths`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// New items and fields, with the digest of their content. A record from a lock file may have several digests,
    /// separated by spaces, of which one is in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added: BTreeMap<String, String>,
    /// Items that another policy had already added with the same content, with their digests. This policy needs them,
    /// too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<String, String>,
    /// Mappings and lists that were created to hold new items.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub made: BTreeSet<String>,
    /// Empty mappings, lists and nulls that got content, with their original value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filled: BTreeMap<String, Value>,
    /// Environment variables that a text was joined to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub joined: BTreeMap<String, JoinedText>,
    /// Values that were replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, ReplacedValue>,
    /// Values that were removed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub removed: BTreeMap<String, RemovedValue>,
    /// Where the manifest had what the policy wants: these values are the user's. Only in a lock file, whose other lines
    /// could claim them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub present: BTreeSet<String>,
}

impl Effects {
    /// Adds later changes. They win over earlier ones at the same path.
    pub fn extend(&mut self, later: Effects) {
        self.added.extend(later.added);
        self.shared.extend(later.shared);
        self.made.extend(later.made);
        self.filled.extend(later.filled);
        self.joined.extend(later.joined);
        self.replaced.extend(later.replaced);
        self.removed.extend(later.removed);
        self.present.extend(later.present);
    }

    /// Keeps only the changes at paths that are meant.
    pub(crate) fn retain(&mut self, is_meant: impl Fn(&str) -> bool) {
        self.added.retain(|path, _| is_meant(path));
        self.shared.retain(|path, _| is_meant(path));
        self.made.retain(|path| is_meant(path));
        self.filled.retain(|path, _| is_meant(path));
        self.joined.retain(|path, _| is_meant(path));
        self.replaced.retain(|path, _| is_meant(path));
        self.removed.retain(|path, _| is_meant(path));
        self.present.retain(|path| is_meant(path));
    }

    /// The paths of what a policy added, joined, replaced and removed.
    pub(crate) fn changed_paths(&self) -> impl Iterator<Item = &String> {
        let added = self.added.keys().chain(self.joined.keys());
        let changed = self.replaced.keys().chain(self.removed.keys());
        added.chain(changed)
    }

    /// Whether a policy added, joined, replaced or removed what is at a path.
    pub(crate) fn changes(&self, path: &str) -> bool {
        self.added.contains_key(path)
            || self.joined.contains_key(path)
            || self.replaced.contains_key(path)
            || self.removed.contains_key(path)
    }

    /// Whether values were replaced or removed that only the record has.
    pub(crate) fn has_originals(&self) -> bool {
        !self.replaced.is_empty() || !self.removed.is_empty()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == Effects::default()
    }
}

/// A text that was joined to the value of an environment variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedText {
    /// The policy's text.
    pub text: String,
    /// The separator between it and the rest of the value. `None` is a single space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// The text is before the rest, not after it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub before: bool,
    /// The variable did not exist before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub new: bool,
    /// Another policy had already joined the same text. This policy needs it, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// The new name of the manifest's variable, if it was renamed because it has `valueFrom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// The texts that it may be, if the variable is not where the record says: its container may have been renamed.
    #[serde(skip)]
    pub(crate) candidates: TextCandidates,
}

/// Texts that a policy has joined to a variable in some workload, each with its generation in the lock file. They are no
/// part of what a record says, so they do not make two records different.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextCandidates(pub BTreeMap<String, u64>);

impl PartialEq for TextCandidates {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TextCandidates {}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// A value that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedValue {
    /// The original value.
    pub was: Value,
    /// The digest of the new value.
    pub now: String,
}

/// A value that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedValue {
    /// The original value.
    pub was: Value,
    /// The identity of the item, or the key of the field, that it followed. Empty if it was the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The differences between the original text of an object and its text after the injected values are removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextDifferences {
    /// The digest of the object's text after removal, before these differences are restored.
    pub of: String,
    /// The differences in order.
    pub places: Vec<TextDifference>,
}

/// A difference between an object's text after removal and its original text. It is stored as an array of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct TextDifference {
    /// The line in the text after removal; 0 is the object's first.
    pub line: usize,
    /// The byte in that line.
    pub column: usize,
    /// The text after removal.
    pub removed: String,
    /// The original text.
    pub original: String,
    /// The digest of the line, which finds it where lines above it were inserted or deleted since. It includes which of
    /// several equal lines it is. Empty if there is no such line, or if an earlier version wrote the record.
    #[serde(default)]
    pub line_digest: String,
}

impl TextDifference {
    /// Whether both have the same texts at the same place.
    pub fn is_same(&self, other: &Self) -> bool {
        let TextDifference { line, column, .. } = self;
        (line, column) == (&other.line, &other.column)
            && (&self.removed, &self.original) == (&other.removed, &other.original)
    }
}

impl Serialize for TextDifference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let TextDifference {
            line,
            column,
            removed,
            original,
            line_digest,
        } = self;
        match line_digest.is_empty() {
            true => (line, column, removed, original).serialize(serializer),
            false => (line, column, removed, original, line_digest).serialize(serializer),
        }
    }
}

/// How a text was adjusted so that a generated object could follow a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextAdjustment {
    /// The text had no last line end, and got one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unended: bool,
    /// The text was one JSON object, and was wrapped in a List.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list: bool,
}

impl TextAdjustment {
    /// Whether the text was not adjusted.
    pub fn is_nothing(&self) -> bool {
        *self == TextAdjustment::default()
    }

    /// Adds the adjustments of another object in the same text.
    pub fn join(&mut self, other: &TextAdjustment) {
        self.unended |= other.unended;
        self.list |= other.list;
    }
}

/// The key of a workload in a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey {
    /// The file's path relative to the folder of the lock file, with `/`.
    pub file: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// `metadata.namespace`, empty if the manifest states none.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl WorkloadKey {
    /// The workload for messages: `Deployment shop/orders (apps/orders.yaml)`.
    pub(crate) fn title(&self) -> String {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        let WorkloadKey {
            file,
            kind,
            namespace,
            name,
        } = self;
        format!("{kind} {namespace}{slash}{name} ({file})")
    }
}

/// What a run did to a workload, for the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedWorkload {
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// `metadata.namespace`, empty if the manifest states none.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// The key under which the lock file had the record of an earlier run.
    pub from: Option<WorkloadKey>,
    /// The new record. `None` if nothing of podgraft is left in the workload.
    pub record: Option<Record>,
    /// The values of the variables that texts were joined to, by record path. They decide whether a lock file must name
    /// the text.
    pub joined_values: BTreeMap<String, String>,
}
