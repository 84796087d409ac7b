//! Names and contents of the objects in the inventory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::manifest::pod::Workload;
use crate::manifest::workload::group_of;
use crate::options::Options;
use crate::outcome::ObjectName;
use crate::policy::names::check_config_key;
use crate::source::folder_of;

/// The labels and annotations of a Namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceMeta {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// The kinds of objects from which pods read keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKind {
    /// <https://kubernetes.io/docs/concepts/configuration/configmap/>
    ConfigMap,
    /// <https://kubernetes.io/docs/concepts/configuration/secret/>
    Secret,
}

impl DataKind {
    /// The kind of this name.
    pub fn of(kind: &[u8]) -> Option<Self> {
        match kind {
            b"ConfigMap" => Some(DataKind::ConfigMap),
            b"Secret" => Some(DataKind::Secret),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            DataKind::ConfigMap => "ConfigMap",
            DataKind::Secret => "Secret",
        }
    }

    /// The identity of an object of this kind in the namespace of a workload.
    pub fn beside(self, workload: &Workload<'_>, name: &str) -> ObjectName {
        ObjectName {
            group: String::new(),
            kind: self.name().to_owned(),
            namespace: workload.namespace.clone(),
            name: name.to_owned(),
            folder: workload.folder(),
        }
    }
}

/// A value of a ConfigMap or Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataValue {
    /// A text: from `data` of a ConfigMap, or a value of a Secret that is UTF-8.
    Text(String),
    /// Bytes: from `binaryData` of a ConfigMap, or a value of a Secret that is not UTF-8.
    Binary(Vec<u8>),
}

/// The keys and values of a ConfigMap or Secret.
pub type DataEntries = BTreeMap<String, DataValue>;

impl NamespaceMeta {
    /// Reads a Namespace object.
    pub(super) fn of(object: &Value) -> Self {
        NamespaceMeta {
            labels: strings_of(&object["metadata"]["labels"]),
            annotations: strings_of(&object["metadata"]["annotations"]),
        }
    }
}

/// The keys and values of an object. Those of a Secret are decoded and include `stringData`.
///
/// # Errors
/// A sentence about what an API server would refuse.
fn entries_of(kind: DataKind, object: &Value) -> Result<DataEntries, String> {
    let mut entries = DataEntries::new();
    let (plain, encoded) = match kind {
        DataKind::ConfigMap => ("data", "binaryData"),
        // `stringData` overrides `data`.
        DataKind::Secret => ("stringData", "data"),
    };
    for (key, text) in texts(object, encoded)? {
        let packed: String = text
            .chars()
            .filter(|char| !matches!(char, '\r' | '\n'))
            .collect();
        // The message does not show the invalid base64: it may be a secret.
        let bytes = STANDARD
            .decode(packed)
            .map_err(|_| format!("`{encoded}.{key}` is not valid base64"))?;
        let entry = match kind {
            DataKind::ConfigMap => DataValue::Binary(bytes),
            DataKind::Secret => String::from_utf8(bytes)
                .map_or_else(|no| DataValue::Binary(no.into_bytes()), DataValue::Text),
        };
        entries.insert(key, entry);
    }
    for (key, text) in texts(object, plain)? {
        if entries.insert(key.clone(), DataValue::Text(text)).is_some()
            && kind == DataKind::ConfigMap
        {
            return Err(format!("`{key}` is in both `data` and `binaryData`"));
        }
    }
    Ok(entries)
}

/// The identity of an object in a file. `None` if it lacks `apiVersion`, `kind` or `metadata.name`.
pub(crate) fn name_in(object: &Value, file: &str, options: &Options) -> Option<ObjectName> {
    let mut name = name_of(object, options.namespace_in(file))?;
    name.folder = name.namespace.is_none().then(|| folder_of(file));
    Some(name)
}

/// The identity of an object, without a folder. `namespace` is used if the object states none and can be in one. `None`
/// if it lacks `apiVersion`, `kind` or `metadata.name`.
pub(super) fn name_of(object: &Value, namespace: Option<&str>) -> Option<ObjectName> {
    let metadata = &object["metadata"];
    let group = group_of(filled(&object["apiVersion"])?);
    let kind = filled(&object["kind"])?;
    let is_namespace = group.is_empty() && kind == "Namespace";
    let namespace = filled(&metadata["namespace"]).or(namespace);
    Some(ObjectName {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.filter(|_| !is_namespace).map(str::to_owned),
        name: filled(&metadata["name"])?.to_owned(),
        folder: None,
    })
}

fn strings_of(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    let texts = entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    texts.collect()
}

/// The text of a value, unless there is none in it.
fn filled(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The name of an object in records. It has only what the object states, so it does not depend on the run's namespace.
pub(crate) fn written_name(object: &Value) -> String {
    name_of(object, None)
        .map(|name| name.to_string())
        .unwrap_or_default()
}

/// The data of an object; `None` if it is neither a ConfigMap nor a Secret.
pub(super) fn data_of(name: &ObjectName, object: &Value) -> Option<Result<DataEntries, String>> {
    let kind = DataKind::of(name.kind.as_bytes()).filter(|_| name.group.is_empty())?;
    Some(entries_of(kind, object))
}

/// Returns what an API server would refuse in the data of a ConfigMap or Secret. `None` for right data and other kinds.
pub(crate) fn data_fault(name: &ObjectName, object: &Value) -> Option<String> {
    let fault = |key: &String| {
        let rule = check_config_key(key).err()?;
        Some(format!("the key `{key}` of its data {rule}"))
    };
    match data_of(name, object)? {
        Ok(entries) => entries.keys().find_map(fault),
        Err(reason) => Some(reason),
    }
}

/// The keys and texts of a field. A null is an empty text, as for an API server.
fn texts(object: &Value, field: &str) -> Result<Vec<(String, String)>, String> {
    let empty = Map::new();
    let map = match object.get(field) {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(map)) => map,
        Some(_) => return Err(format!("`{field}` must be a mapping")),
    };
    map.iter()
        .map(|(key, value)| Ok((key.clone(), text(value, field, key)?)))
        .collect()
}

fn text(value: &Value, field: &str, key: &str) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => {
            Err(format!("`{field}.{key}` must be a string: quote it"))
        }
        Value::Array(_) | Value::Object(_) => Err(format!("`{field}.{key}` must be a string")),
    }
}
