//! The checksum of the data of a ConfigMap or Secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::collections::BTreeMap;

use super::{DataEntries, DataValue};
use crate::policy::functions::sha256;

/// The hashed JSON: compact, keys sorted, empty members left out. It has only data: other parts of an object, such as
/// the version of a chart in a label, would restart pods whose configuration has not changed (argo-helm#4044).
#[derive(Serialize)]
struct ChecksumInput<'e> {
    #[serde(rename = "binaryData", skip_serializing_if = "BTreeMap::is_empty")]
    binary: BTreeMap<&'e str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    data: BTreeMap<&'e str, &'e str>,
}

/// The SHA-256 of entries in lower-case hex, computed over `{"binaryData":{...},"data":{...}}`. Binary values are in
/// base64.
pub fn sum(entries: &DataEntries) -> String {
    let mut summed = ChecksumInput {
        binary: BTreeMap::new(),
        data: BTreeMap::new(),
    };
    for (key, entry) in entries {
        match entry {
            DataValue::Text(text) => drop(summed.data.insert(key, text)),
            DataValue::Binary(bytes) => drop(summed.binary.insert(key, STANDARD.encode(bytes))),
        }
    }
    sha256(&serde_json::to_string(&summed).expect("texts are always JSON"))
}
