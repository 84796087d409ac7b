//! Records of what podgraft did to a workload, so that it can be undone. Nothing here writes text or knows policies;
//! `plan::removal` takes recorded changes out.
//!
//! A record names for each policy what it added (identity and digest), joined, replaced and removed. Only values
//! taken from the manifest are stored; what was injected is in the manifest itself.

mod bounds;
pub(crate) mod fits;
pub(crate) mod joined_text;
pub(crate) mod live;
pub mod lock;
mod order;
mod own_content;
mod path;
mod recorded_value;
mod renamed;
pub(crate) mod words;

pub use joined_text::JoinHint;
pub(crate) use joined_text::{ORIGINAL, has_token, without};
pub(crate) use order::{note_order, restore_order, restore_order_around};
pub(crate) use path::{
    NamePlaces, aligned_lists, as_stated, below, escape, identity_of_item, identity_of_name,
    is_aligned, is_escaped, name_field, numbered, numbered_identities, rest_below, split_last,
    split_number,
};
pub use path::{RecordPaths, identities};
pub use recorded_value::RecordedValue;
pub(crate) use recorded_value::{has_twin_containers, is_empty};

use crate::ownership::marked_policies;
pub use crate::ownership::{
    Effects, JoinedText, MARKER, PolicyRecord, RECORD, Record, RemovedValue, ReplacedValue,
    TextDifference, TextDifferences,
};
use foldhash::HashMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::cell::RefCell;

use lock::LockedRecordError;
/// The version of the record format that is read and written here.
pub const VERSION: u32 = 1;

/// Why a record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordError {
    /// It is not a valid record, with the reason.
    Damaged(String),
    /// The annotated object has a value that readers disagree about.
    Ambiguous,
    /// A later podgraft wrote it, in this version of the format.
    Version(u32),
    /// A container that it names is gone, and several others may be the one: its name, and theirs.
    Containers(String, Vec<String>),
    /// The lock file's record cannot be used.
    Locked(LockedRecordError),
}

impl Effects {
    /// The digest of what a policy injects. Leaves out `made` and `filled`, which depend on what the manifest had.
    pub fn digest(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|field, _| field != "made" && field != "filled");
        }
        digest(&value)
    }
}

impl Record {
    /// Parses the text of the annotation.
    ///
    /// # Errors
    /// If it is no record, has another version, or names places that no document can have.
    pub fn read(text: &str) -> Result<Self, RecordError> {
        let value = bounds::from_json(text).map_err(RecordError::Damaged)?;
        let version = value.get("version").and_then(Value::as_u64);
        match version.and_then(|version| u32::try_from(version).ok()) {
            Some(VERSION) => {}
            Some(version) => return Err(RecordError::Version(version)),
            None => return Err(RecordError::Damaged("it has no version".to_owned())),
        }
        let record: Record = serde_json::from_value(value)
            .map_err(|error| RecordError::Damaged(error.to_string()))?;
        match record.defect() {
            Some(defect) => Err(RecordError::Damaged(defect)),
            None => Ok(record),
        }
    }

    /// Returns why no run can have written it.
    fn defect(&self) -> Option<String> {
        // The marker lists the names of the policies, separated by commas, perhaps with blanks.
        let mut names = self.policies.iter().map(|policy| &*policy.policy);
        let name = names.find(|name| !marked_policies(name).eq([*name]));
        let name = name.map(|name| format!("`{name}` is no name of a policy"));
        name.or_else(|| self.beyond_documents())
    }

    /// Returns the text of the annotation: JSON that every YAML reader takes for one line. Characters that some of
    /// them take for a line break, or refuse, are escaped.
    pub fn render(&self) -> String {
        one_line(serde_json::to_string(self).expect("maps with text keys are JSON"))
    }

    /// The formatter and resolver of its paths.
    pub fn paths(&self) -> RecordPaths {
        let keys = self.pod.split('.').filter(|key| !key.is_empty());
        RecordPaths::of(&keys.map(str::to_owned).collect::<Vec<_>>())
    }

    /// The other policies that inject something that a policy injects, too.
    pub(crate) fn owners_of(&self, policy: &PolicyRecord) -> Vec<String> {
        let others = self.policies.iter();
        let others = others.filter(|other| other.policy != policy.policy && policy.shares(other));
        others.map(|other| other.policy.clone()).collect()
    }

    /// The record of the policy with this identity.
    pub fn policy(&self, identity: &str) -> Option<&PolicyRecord> {
        self.policies
            .iter()
            .find(|policy| policy.policy == identity)
    }
}

impl PolicyRecord {
    /// Whether another policy injects something that this one injects, too.
    fn shares(&self, other: &PolicyRecord) -> bool {
        let (own, others) = (&self.effects, &other.effects);
        let mut items = own.added.keys().chain(own.shared.keys());
        let mut texts = own.joined.iter();
        items.any(|path| others.added.contains_key(path))
            || texts.any(|(path, text)| {
                let other = others.joined.get(path);
                other.is_some_and(|other| other.has(text) || text.has(other))
            })
            || self.has_object_of(other)
    }

    /// Whether this record of a policy has all that a later one injects, with whatever content.
    pub(crate) fn covers(&self, later: &PolicyRecord) -> bool {
        let (own, effects) = (&self.effects, &later.effects);
        let has = |path: &String| own.added.contains_key(path) || own.shared.contains_key(path);
        let mut texts = effects.joined.iter();
        let mut names = later.generated.keys();
        effects.added.keys().all(has)
            && texts.all(|(path, text)| own.joined.get(path).is_some_and(|own| own.has(text)))
            && names.all(|name| self.generated.contains_key(name))
    }

    /// Whether both policies generate the same object.
    pub(crate) fn has_object_of(&self, other: &PolicyRecord) -> bool {
        let mut names = self.generated.keys();
        names.any(|name| other.generated.contains_key(name))
    }
}

/// Escapes the characters in JSON that some readers take for a line break, or refuse.
fn one_line(json: String) -> String {
    if !json.contains(is_doubtful) {
        return json;
    }
    let escaped = json.chars().map(|c| match is_doubtful(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => String::from(c),
    });
    escaped.collect()
}

fn is_doubtful(c: char) -> bool {
    matches!(
        c,
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// The length up to which the digest of a text is kept.
const MAX_KEPT_LENGTH: usize = 1 << 10;

/// The most digests that are kept.
const MAX_KEPT: usize = 256;

thread_local! {
    /// The digests of the latest texts. What a policy injects is the same in most workloads.
    static KEPT: RefCell<HashMap<Vec<u8>, String>> = RefCell::default();
}

/// Returns the first 10 hexadecimal digits of a value's SHA-256, which is enough to detect that somebody changed it.
pub fn digest(value: &Value) -> String {
    let text = serde_json::to_vec(&SortedValue(value)).unwrap_or_default();
    if text.len() > MAX_KEPT_LENGTH {
        return digest_of_bytes(&text);
    }
    KEPT.with_borrow_mut(|kept| {
        if let Some(digest) = kept.get(&text) {
            return digest.clone();
        }
        if kept.len() == MAX_KEPT {
            kept.clear();
        }
        let digest = digest_of_bytes(&text);
        kept.insert(text, digest.clone());
        digest
    })
}

/// Like [`digest`], for bytes.
pub(crate) fn digest_of_bytes(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let first = hash
        .iter()
        .take(5)
        .fold(0, |first, byte| first << 8 | u64::from(*byte));
    format!("{first:010x}")
}

/// Serializes a value with sorted keys, so that equal values have equal digests whatever their order.
struct SortedValue<'v>(&'v Value);

impl Serialize for SortedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => {
                let mut fields: Vec<(&String, &Value)> = map.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                let fields = fields.into_iter();
                serializer.collect_map(fields.map(|(key, value)| (key, SortedValue(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(SortedValue)),
            scalar => scalar.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests;
