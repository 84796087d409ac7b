//! Limits how many items a policy may have. The plan compares each item with each existing item, so a policy of
//! moderate size could keep a run busy for hours.

use serde_json::Value;

use super::rules;
use crate::diagnostic::{Code, Diagnosed, Diagnostic};
use crate::policy::document::Document;
use crate::yaml::value::Path;

/// Items of all `inject` of a policy together: list entries, mapping keys and patch operations.
const MAX_ITEMS: usize = 5_000;
/// Entries of `patches`. The limit is lower, because the plan examines the whole result of each patch.
const MAX_PATCHES: usize = 500;

/// Returns an error at the list or mapping that exceeds a limit.
pub(super) fn check(document: &Document<'_>) -> Diagnosed {
    let mut items = 0;
    let mut patches = 0;
    for inject in rules::injects(document) {
        for (key, value) in inject
            .get(&document.value)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            items += count(key, value);
            if items > MAX_ITEMS {
                let counted = "items under `inject`";
                let problem = too_many(document, &inject.key(key), MAX_ITEMS, counted);
                return Err(vec![problem]);
            }
            if key == "patches" {
                patches += value.as_array().map_or(0, Vec::len);
            }
            if patches > MAX_PATCHES {
                let problem = too_many(document, &inject.key(key), MAX_PATCHES, "patches");
                return Err(vec![problem]);
            }
        }
    }
    Ok(())
}

/// The number of items in one key of `inject`. Patch operations and fields of `podSpec` and `defaults` count too.
fn count(key: &str, value: &Value) -> usize {
    let below: usize = match (key, value) {
        ("patches", Value::Array(patches)) => patches
            .iter()
            .filter_map(|patch| patch.get("patch"))
            .map(size_of)
            .sum(),
        ("podSpec" | "defaults", Value::Object(map)) => map.values().map(size_of).sum(),
        _ => 0,
    };
    size_of(value) + below
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Array(entries) => entries.len(),
        Value::Object(map) => map.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn too_many(document: &Document<'_>, at: &Path, most: usize, noun: &str) -> Diagnostic {
    let message = format!("the policy has more than {most} {noun}");
    let help = "split it into several policies, or move its content to a ConfigMap";
    document.key_error(Code::TooLong, at, message).help(help)
}
