//! Limits how much the patches of a policy may add to one workload: a short patch can copy large values many times.

use serde_json::Value;

use crate::diagnostic::Code;
use crate::yaml::parse::MAX_DEPTH;
use crate::yaml::scalar::MAX_KEY;
use crate::yaml::value::Path;

/// The limit in bytes for all patches of a policy on one workload. An API server accepts objects of up to 3 MiB.
const MAX_BYTES: usize = 16 << 20;
/// The bytes that a value counts in addition to its text.
const VALUE_OVERHEAD: usize = 64;

/// The bytes that patches have added so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PatchGrowth {
    bytes: usize,
}

/// Why patches may add no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GrowthError {
    pub code: Code,
    /// The end of a message, behind "would make the object".
    pub reason: String,
}

impl PatchGrowth {
    /// Counts a value that is put `level` levels deep into the object.
    pub(super) fn add(&mut self, level: usize, value: &Value) -> Result<(), GrowthError> {
        let mut deepest = 0;
        let bytes = size(value, level, &mut deepest);
        if deepest > MAX_DEPTH {
            return Err(GrowthError {
                code: Code::TooDeep,
                reason: format!("nest deeper than {MAX_DEPTH} levels"),
            });
        }
        if Path::of_long_key(value).is_some() {
            return Err(GrowthError {
                code: Code::TooLong,
                reason: format!("have a key of more than {MAX_KEY} characters"),
            });
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            return Err(GrowthError {
                code: Code::TooLong,
                reason: format!("more than {} MiB larger", MAX_BYTES >> 20),
            });
        }
        Ok(())
    }
}

/// The size of a value in bytes. Raises `deepest` to its deepest level. As in the parser, only collections are levels.
fn size(value: &Value, level: usize, deepest: &mut usize) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(entries) => entries
            .iter()
            .map(|entry| size(entry, level + 1, deepest))
            .sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, entry)| key.len() + size(entry, level + 1, deepest))
            .sum(),
    };
    let is_collection = value.is_array() || value.is_object();
    *deepest = (*deepest).max(level + usize::from(is_collection));
    inner + VALUE_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_counted_with_their_texts_until_it_is_too_much() {
        let half = json!("x".repeat(MAX_BYTES / 2));
        let mut growth = PatchGrowth::default();
        assert_eq!(growth.add(1, &half), Ok(()));
        assert_eq!(growth.add(1, &half).unwrap_err().code, Code::TooLong);
        let many = json!(vec![0; MAX_BYTES / VALUE_OVERHEAD]);
        assert_eq!(
            PatchGrowth::default().add(1, &many).unwrap_err().code,
            Code::TooLong
        );
    }

    #[test]
    fn levels_are_those_of_the_whole_object() {
        let nested = (0..100).fold(json!("x"), |inner, _| json!([inner]));
        assert_eq!(PatchGrowth::default().add(MAX_DEPTH - 100, &nested), Ok(()));
        assert_eq!(
            PatchGrowth::default()
                .add(MAX_DEPTH - 99, &nested)
                .unwrap_err()
                .code,
            Code::TooDeep
        );
    }
}
