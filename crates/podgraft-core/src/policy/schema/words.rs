//! The wording of values and types in messages about schemas.

use serde_json::Value;

use crate::yaml::value::{Path, Step};

/// A value as a noun, for messages.
pub(super) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fractional number",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

pub(super) fn article(type_name: &str) -> &'static str {
    match type_name {
        "object" => "a mapping",
        "array" => "a list",
        "string" => "a string",
        "integer" => "an integer",
        "boolean" => "a boolean",
        "number" => "a number",
        _ => "another type",
    }
}

pub(super) fn empty_help(wanted: &str) -> &'static str {
    match wanted {
        "object" => "remove the key, or write `{}` for an empty mapping",
        "array" => "remove the key, or write `[]` for an empty list",
        "string" => "remove the key, or write `\"\"` for an empty string",
        _ => "remove the key, or give it a value",
    }
}

pub(super) fn one_of(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(" or ")
}

/// The last key of a path in backticks, or "the object".
pub(super) fn name_of(path: &[Step]) -> String {
    match Path(path.to_vec()).name().as_str() {
        "" => "the object".to_owned(),
        name => format!("`{name}`"),
    }
}
