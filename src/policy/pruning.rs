//! Drops from a custom resource what an API server drops before it validates the resource.

use serde_json::Value;

/// Drops the null fields of all mappings. A null that is an item of a list stays.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, inner| !inner.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_fields_are_dropped_and_null_items_stay() {
        let mut value = json!({"a": null, "b": {"c": null}, "d": [null, {"e": null, "f": 1}]});
        drop_nulls(&mut value);
        assert_eq!(value, json!({"b": {}, "d": [null, {"f": 1}]}));
    }
}
