//! Drops from an object what an API server drops when it reads the object.

use serde_json::Value;

use crate::yaml::value::{Path, Step};

/// Drops the null fields of all mappings. A null that is an item of a list stays.
pub(crate) fn drop_nulls(value: &mut Value) {
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
