//! Compares the stored schemas with the types, or with `BLESS=1` writes them:
//! `BLESS=1 cargo test -p podgraft-core --lib schema`.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Pod, PodTemplate, PodTemplateSpec, ReplicationController, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;

use super::schema::draft_07;
use crate::config::types::{ConfigFile, FunctionFile};
use crate::policy::native::types::InjectionPolicy;
use crate::policy::stored_schemas::{
    CONFIG, Definitions, FUNCTION, INJECTION_POLICY, INSTRUMENTATION, POLICY_TEST,
};
use crate::policytest::types::PolicyTestFile;

/// The definitions in the stored files.
#[derive(Default)]
struct StoredFiles {
    /// The definitions of each file but that of Kubernetes, in their order.
    podgraft: BTreeMap<&'static str, Vec<(String, Value)>>,
    kubernetes: BTreeMap<String, Value>,
}

impl StoredFiles {
    fn add<T: JsonSchema>(&mut self, file: &'static str) {
        let (root, definitions) = schema::<T>();
        let mut schemas = vec![(file.to_owned(), root)];
        for (name, definition) in definitions {
            let stored = if name.starts_with("io.k8s.") {
                self.add_kubernetes(&name, definition);
                Value::Null
            } else {
                definition
            };
            schemas.push((name, stored));
        }
        self.podgraft.insert(file, schemas);
    }

    fn add_root<T: JsonSchema>(&mut self) {
        let (mut root, definitions) = schema::<T>();
        root.as_object_mut()
            .expect("a type is an object")
            .shift_remove("title");
        self.add_kubernetes(&T::schema_name(), root);
        for (name, definition) in definitions {
            self.add_kubernetes(&name, definition);
        }
    }

    fn add_kubernetes(&mut self, name: &str, definition: Value) {
        let before = self.kubernetes.insert(name.to_owned(), definition);
        if let Some(before) = before {
            assert_eq!(
                before, self.kubernetes[name],
                "{name} is not the same everywhere"
            );
        }
    }

    fn texts(&self) -> Vec<(&str, String)> {
        let podgraft = self
            .podgraft
            .iter()
            .map(|(file, lines)| (*file, text(lines.iter().map(|(name, value)| (name, value)))));
        podgraft
            .chain([("Kubernetes", text(self.kubernetes.iter()))])
            .collect()
    }
}

/// A type's schema without its definitions, and these.
fn schema<T: JsonSchema>() -> (Value, Map<String, Value>) {
    let mut root = SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    let rules = root.as_object_mut().expect("a type is an object");
    rules.shift_remove("$schema");
    let definitions = rules.shift_remove("$defs").unwrap_or_default();
    let Value::Object(definitions) = definitions else {
        return (root, Map::new());
    };
    (root, definitions)
}

/// JSON with a definition on each line.
fn text<'v>(lines: impl Iterator<Item = (&'v String, &'v Value)>) -> String {
    let lines: Vec<String> = lines
        .map(|(name, value)| format!("\"{name}\": {value}"))
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[test]
fn each_stored_schema_is_that_of_its_type() {
    let mut files = StoredFiles::default();
    files.add::<ConfigFile>("Config");
    files.add::<FunctionFile>("PodgraftFunction");
    files.add::<InjectionPolicy>("InjectionPolicy");
    files.add::<PolicyTestFile>("PolicyTest");
    files.add_root::<ConfigMap>();
    files.add_root::<CronJob>();
    files.add_root::<DaemonSet>();
    files.add_root::<Deployment>();
    files.add_root::<Job>();
    files.add_root::<ObjectMeta>();
    files.add_root::<Pod>();
    files.add_root::<PodTemplate>();
    files.add_root::<PodTemplateSpec>();
    files.add_root::<ReplicaSet>();
    files.add_root::<ReplicationController>();
    files.add_root::<Role>();
    files.add_root::<RoleBinding>();
    files.add_root::<Secret>();
    files.add_root::<Service>();
    files.add_root::<ServiceAccount>();
    files.add_root::<StatefulSet>();
    for (name, text) in files.texts() {
        let path = format!("src/policy/stored/{name}.json");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &text).expect("the file can be written");
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == text,
            "{path} is not what the types give; BLESS=1 writes it"
        );
    }
}

#[test]
fn each_schema_is_published_as_schemars_would() {
    fn same<T: JsonSchema>(definitions: &'static Definitions) {
        let settings = SchemaSettings::draft07().into_generator();
        let derived = settings.into_root_schema_for::<T>().to_value().to_string();
        let published = draft_07(definitions).to_string();
        let advice = match std::env::var_os("BLESS") {
            Some(_) => "it is written; the program still holds the old one: run this without BLESS",
            None => "`BLESS=1 cargo test -p podgraft-core --lib schema` writes it",
        };
        let name = T::schema_name();
        assert!(published == derived, "the schema {name} is old: {advice}");
    }
    same::<ConfigFile>(&CONFIG);
    same::<FunctionFile>(&FUNCTION);
    same::<InjectionPolicy>(&INJECTION_POLICY);
    same::<PolicyTestFile>(&POLICY_TEST);
}

/// The schema of the operator's resource is that of its CustomResourceDefinition: it is written by hand.
#[test]
fn each_reference_of_the_operators_schema_is_there() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    let published = draft_07(&INSTRUMENTATION);
    references(&published, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let path = reference.strip_prefix('#').expect("it is of the same file");
        assert!(published.pointer(path).is_some(), "{reference}");
    }
}
