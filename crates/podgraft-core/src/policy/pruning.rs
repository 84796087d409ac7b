//! Drops from a custom resource what an API server drops before it validates the resource.

use serde_json::Value;

use crate::yaml::value::{Path, Step};

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

/// Drops the field at a path.
pub(super) fn drop_field(value: &mut Value, path: &Path) {
    let Some((Step::Key(key), parent)) = path.0.split_last() else {
        return;
    };
    let parent = Path(parent.to_vec());
    if let Some(map) = parent.get_mut(value).and_then(Value::as_object_mut) {
        map.shift_remove(key);
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

    #[test]
    fn a_field_is_dropped_and_the_others_keep_their_order() {
        let mut value = json!({"a": [{"x": 1, "y": 2, "z": 3}]});
        drop_field(&mut value, &Path::of(&["a"]).index(0).key("x"));
        assert_eq!(value.to_string(), r#"{"a":[{"y":2,"z":3}]}"#);
    }
}
