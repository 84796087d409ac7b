//! Restores the key order of results, which CEL maps do not keep. A mapping of the result takes the order of an equal
//! mapping in the resource or in a variable's `value`, or else of one with the same keys.

use serde_json::{Map, Value};

/// Orders the keys of all mappings in a value like those in `written`.
pub(super) fn arrange(value: &mut Value, written: &[&Value]) {
    match value {
        Value::Object(map) => {
            let mut equal = written
                .iter()
                .filter_map(|source| find(source, &|candidate| candidate == map));
            let mut alike = written
                .iter()
                .filter_map(|source| find(source, &|candidate| has_keys_of(candidate, map)));
            if map.len() > 1
                && let Some(candidate) = equal.next().or_else(|| alike.next())
            {
                let keys = candidate.keys().filter_map(|key| map.remove_entry(key));
                *map = keys.collect();
            }
            map.values_mut().for_each(|entry| arrange(entry, written));
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| arrange(entry, written)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_keys_of(left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    left.len() == right.len() && right.keys().all(|key| left.contains_key(key))
}

/// The first mapping in a value that fits, from the outside in.
fn find<'v>(
    value: &'v Value,
    fits: &impl Fn(&Map<String, Value>) -> bool,
) -> Option<&'v Map<String, Value>> {
    match value {
        Value::Object(map) if fits(map) => Some(map),
        Value::Object(map) => map.values().find_map(|entry| find(entry, fits)),
        Value::Array(entries) => entries.iter().find_map(|entry| find(entry, fits)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_in_the_order_that_is_written() {
        let written = json!({"list": [{"name": "a", "env": [{"name": "X", "key": 1}]}, {"env": [], "name": "b"}]});
        let mut value = json!([{"env": [], "name": "b"}, {"env": [{"key": 2, "name": "Y"}], "name": "c"}, {"z": 1, "y": 2}]);
        arrange(&mut value, &[&written]);
        let wanted =
            r#"[{"env":[],"name":"b"},{"name":"c","env":[{"name":"Y","key":2}]},{"z":1,"y":2}]"#;
        assert_eq!(value.to_string(), wanted);
    }
}
