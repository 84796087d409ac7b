//! What podgraft did to workloads, as values: who did what, where, and what was there before. Nothing here reads or writes
//! it; `record` does.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The record of one workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the format.
    pub version: u32,
    /// Keys to the pod template, joined by dots: paths below it begin with `pod`. Empty for a Pod.
    pub pod: String,
    /// In the order in which they were applied.
    pub policies: Vec<PolicyRecord>,
    /// What writing the marker changed, beside the marker.
    #[serde(default, skip_serializing_if = "Effects::is_empty")]
    pub marker: Effects,
    /// What was done to the text to make room for objects beside the workload.
    #[serde(default, skip_serializing_if = "TextAdjustment::is_nothing")]
    pub room: TextAdjustment,
    /// Where taking out alone does not give back the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextDifferences>,
}

/// What one policy did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// Its identity.
    pub policy: String,
    /// Of all that it did.
    pub digest: String,
    /// The set that it was applied with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The objects that it generated beside the workload, with their digests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generated: BTreeMap<String, String>,
    /// What it did.
    #[serde(flatten)]
    pub effects: Effects,
}

/// Changes of one policy, by path. A path is keys and identities of list items (see `record::Paths`), joined by `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Items and fields that were not there, with the digest of what was put there. A lock file may know several, with a
    /// space between, of which one is there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added: BTreeMap<String, String>,
    /// Items that another policy had added with the same content: this one needs them, too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<String, String>,
    /// Mappings and lists made to hold these.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub made: BTreeSet<String>,
    /// What stood where something empty got content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filled: BTreeMap<String, Value>,
    /// Variables that a text was joined to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub joined: BTreeMap<String, JoinedText>,
    /// Values that had others in their place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, ReplacedValue>,
    /// What was taken out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub removed: BTreeMap<String, RemovedValue>,
}

impl Effects {
    /// Adds what was done later.
    pub fn extend(&mut self, later: Effects) {
        self.added.extend(later.added);
        self.shared.extend(later.shared);
        self.made.extend(later.made);
        self.filled.extend(later.filled);
        self.joined.extend(later.joined);
        self.replaced.extend(later.replaced);
        self.removed.extend(later.removed);
    }

    /// Nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Effects::default()
    }
}

/// A text that was joined to a variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedText {
    /// Ours.
    pub text: String,
    /// What stands between it and the rest; one space when it is not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// In front of the rest, not behind it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub before: bool,
    /// There was no such variable.
    #[serde(default, skip_serializing_if = "is_false")]
    pub new: bool,
    /// Another policy had joined the same text: this one needs it, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// The name that the variable of the manifest has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
}

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
    /// What stood there.
    pub was: Value,
    /// The digest of what was put there.
    pub now: String,
}

/// A value that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedValue {
    /// What stood there.
    pub was: Value,
    /// The identity of the item, or the key of the field, that it stood behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Differences in formatting between the original text and the text after removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextDifferences {
    /// The digest of the object's text without the injection, before these.
    pub of: String,
    /// In order.
    pub places: Vec<TextDifference>,
}

/// Line (from the object's first, which is 0), byte in that line, what stands there, and what stood there.
pub type TextDifference = (usize, usize, String, String);

/// How a text was adjusted so that an object could follow a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextAdjustment {
    /// It had no last line end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unended: bool,
    /// It was one JSON object, and got a List around it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list: bool,
}

impl TextAdjustment {
    /// Nothing was done.
    pub fn is_nothing(&self) -> bool {
        *self == TextAdjustment::default()
    }

    /// Of several objects of one text.
    pub fn join(&mut self, other: &TextAdjustment) {
        self.unended |= other.unended;
        self.list |= other.list;
    }
}

/// A workload of a file. The namespace is the stated one, and empty where the manifest states none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey {
    /// The file's path from the folder of the lock file, with `/`.
    pub file: String,
    /// `Deployment`.
    pub kind: String,
    /// As it is stated.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What a run did to a workload, for the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedWorkload {
    /// `Deployment`.
    pub kind: String,
    /// As it is stated, else empty.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where the lock file had what an earlier run did to it.
    pub from: Option<WorkloadKey>,
    /// `None`: nothing of podgraft is left in it.
    pub record: Option<Record>,
}
