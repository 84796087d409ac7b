//! What podgraft did to a workload, written into the workload so that it can be taken out again: values in, values out.
//! Nothing here knows text or policies.
//!
//! A record names for each policy what it added (identity and digest), joined, replaced and removed. Only what was taken
//! from the manifest is kept as a value; what was put there stands in the manifest itself.

mod bounds;
mod effects;
pub mod fold;
mod inverse;
pub mod live;
mod path;
pub mod words;

pub use effects::{JoinHint, effects_of};
pub use fold::arrange;
pub use inverse::{Changed, Leniency, Taken, take_out};
pub use path::{Paths, identities, is_aligned};

use crate::report::Room;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The annotation that names the policies applied, for people.
pub const MARKER: &str = "podgraft.dev/applied";
/// The annotation that says what they did, for podgraft.
pub const RECORD: &str = "podgraft.dev/record";
/// The version of the record that is read and written here.
pub const VERSION: u32 = 1;

/// The record of one workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub version: u32,
    /// Keys to the pod template, joined by dots: paths below it begin with `pod`. Empty for a Pod.
    pub pod: String,
    /// In the order in which they were applied.
    pub policies: Vec<PolicyRecord>,
    /// What writing the marker changed, beside the marker.
    #[serde(default, skip_serializing_if = "Effects::is_empty")]
    pub marker: Effects,
    /// What was done to the text to make room for objects beside the workload.
    #[serde(default, skip_serializing_if = "Room::is_nothing")]
    pub room: Room,
    /// Where taking out alone does not give back the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Texts>,
}

/// What one policy did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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

/// Changes of one policy, by path. A path is keys and identities of list items (see [`Paths`]), joined by `/`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// Items and fields that were not there, with the digest of what was put there.
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
    pub joined: BTreeMap<String, Joined>,
    /// Values that had others in their place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, Replaced>,
    /// What was taken out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub removed: BTreeMap<String, Removed>,
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

/// A text joined to a variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Joined {
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
fn is_false(value: &bool) -> bool {
    !value
}

/// A value that had another one in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replaced {
    /// What stood there.
    pub was: Value,
    /// The digest of what was put there.
    pub now: String,
}

/// A value that was taken out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Removed {
    /// What stood there.
    pub was: Value,
    /// The identity of the item, or the key of the field, that it stood behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Places at which the text without the injection differs from the original's, though both say the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    /// The digest of the object's text without the injection, before these.
    pub of: String,
    /// In order.
    pub places: Vec<TextPlace>,
}

/// Line (from the object's first, which is 0), byte in that line, what stands there, and what stood there.
pub type TextPlace = (usize, usize, String, String);

/// Why a record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no record.
    Damaged(String),
    /// The object around it has a value that readers disagree about.
    Ambiguous,
    /// A later podgraft wrote it.
    Version(u32),
}

impl Record {
    /// Reads the annotation.
    ///
    /// # Errors
    /// When it is none, or of another version, or says what no document can hold.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let value = bounds::from_json(text).map_err(Unreadable::Damaged)?;
        match value
            .get("version")
            .and_then(Value::as_u64)
            .and_then(|version| u32::try_from(version).ok())
        {
            Some(VERSION) => {}
            Some(version) => return Err(Unreadable::Version(version)),
            None => return Err(Unreadable::Damaged("it states no version".to_owned())),
        }
        let record: Record = serde_json::from_value(value)
            .map_err(|error| Unreadable::Damaged(error.to_string()))?;
        match record.beyond_documents() {
            Some(why) => Err(Unreadable::Damaged(why)),
            None => Ok(record),
        }
    }

    /// The annotation's text: one line of JSON to all readers of YAML. What some of them take for a line break, or for no
    /// text at all, is an escape.
    pub fn render(&self) -> String {
        let json = serde_json::to_string(self).expect("maps with text keys are JSON");
        let is_doubtful = |c: char| {
            matches!(
                c,
                '\u{7f}'
                    ..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
        };
        if !json.contains(is_doubtful) {
            return json;
        }
        let escape = |c| {
            if is_doubtful(c) {
                format!("\\u{:04x}", u32::from(c))
            } else {
                String::from(c)
            }
        };
        json.chars().map(escape).collect()
    }

    /// How its paths are to be read.
    pub fn paths(&self) -> Paths {
        Paths::of(
            &self
                .pod
                .split('.')
                .filter(|key| !key.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }

    /// The policy of an identity.
    pub fn policy(&self, identity: &str) -> Option<&PolicyRecord> {
        self.policies
            .iter()
            .find(|policy| policy.policy == identity)
    }
}

/// The first 10 hexadecimal digits of a value's SHA-256: enough to see whether somebody changed it.
pub fn digest(value: &Value) -> String {
    digest_of_bytes(canonical(value).to_string().as_bytes())
}

/// [`digest`] of a text.
pub fn digest_of_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(5)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The same value with sorted keys.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, Value> = map
                .iter()
                .map(|(key, value)| (key, canonical(value)))
                .collect();
            Value::Object(
                sorted
                    .into_iter()
                    .map(|(key, value)| (key.clone(), value))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests;
