//! What podgraft publishes of its own kinds: schemas that are schemas, that take every policy of this repository and
//! refuse what podgraft refuses; a CustomResourceDefinition that an API server takes.

use jsonschema::Validator;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use podgraft_core::publish::crd::{Scope, definition};
use podgraft_core::publish::schema::{KINDS, find};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::value::to_value;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn validator(kind: &str) -> Validator {
    let schema = find(kind).expect("the kind has a schema").schema();
    jsonschema::draft7::new(&schema).unwrap_or_else(|error| panic!("{kind}: {error}"))
}

/// The objects of a file of a kind.
fn objects(path: &Path, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the file is readable");
    let Ok(tree) = parse(&text) else {
        return Vec::new();
    };
    let values = tree
        .roots()
        .iter()
        .filter_map(|&root| to_value(&tree, root).ok());
    values.filter(|value| value["kind"] == kind).collect()
}

fn files(folder: &str, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}")) {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            found.extend(files(&path.to_string_lossy(), name));
        } else if path
            .file_name()
            .is_some_and(|stated| name.is_empty() || stated == name)
        {
            found.push(path);
        }
    }
    found
}

/// Every policy that the program takes, with its file.
fn accepted_policies() -> Vec<(PathBuf, Value)> {
    let mut paths = files("policies", "");
    let cases = files("testdata/cases", "policy.yaml");
    paths.extend(cases.into_iter().filter(|path| {
        let has = |name: &str| path.with_file_name(name).exists();
        has("expected.yaml") || has("expected.json")
    }));
    let all = paths.into_iter().flat_map(|path| {
        let found = objects(&path, "InjectionPolicy").into_iter();
        found
            .map(move |policy| (path.clone(), policy))
            .collect::<Vec<_>>()
    });
    all.collect()
}

#[test]
fn every_schema_is_one_by_its_meta_schema() {
    for published in KINDS {
        let schema = published.schema();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        jsonschema::meta::validate(&schema)
            .unwrap_or_else(|error| panic!("{}: {error}", published.kind));
    }
}

#[test]
fn the_schema_takes_every_policy_that_podgraft_takes() {
    let validator = validator("InjectionPolicy");
    let policies = accepted_policies();
    assert!(policies.len() > 100, "{}", policies.len());
    for (path, policy) in policies {
        let errors: Vec<String> = validator
            .iter_errors(&policy)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

#[test]
fn the_schema_refuses_what_podgraft_refuses() {
    let validator = validator("InjectionPolicy");
    let policy = |spec: Value| json!({"apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": {"name": "a"}, "spec": spec});
    assert!(validator.is_valid(&policy(json!({"inject": {"podLabels": {"a": "b"}}}))));
    let wrong = [
        json!({"wieght": 1}),
        json!({"inject": {"initContainer": []}}),
        json!({"inject": {"env": [{"name": "A", "vale": "x"}]}}),
        json!({"inject": {"env": [{"name": "A", "op": "Add"}]}}),
        json!({"inject": {"ports": [{"containerPort": "80"}]}}),
        json!({"inject": {"sidecars": [{"name": "a", "image": "b"}]}}),
        json!({"inject": {"podSpec": {"containers": []}}}),
        json!({"match": {"any": [{"nmaes": ["a"]}]}}),
        json!({"match": null}),
        json!({"inject": {"patches": [{"patchType": "Merge", "scope": "Workload", "patch": []}]}}),
    ];
    for spec in wrong {
        assert!(!validator.is_valid(&policy(spec.clone())), "{spec}");
    }
    let mut other = policy(json!({}));
    other["apiVersion"] = json!("podgraft.dev/v1");
    assert!(!validator.is_valid(&other));
}

#[test]
fn configurations_are_checked_too() {
    let config = validator("Config");
    let file = |more: Value| {
        let mut file = json!({"apiVersion": "podgraft.dev/v1alpha1", "kind": "Config"});
        file.as_object_mut()
            .expect("it is an object")
            .extend(more.as_object().expect("so is this").clone());
        file
    };
    assert!(config.is_valid(&file(
        json!({"policies": ["agents.yaml"], "params": {"jmx": {"port": 9404}}})
    )));
    assert!(!config.is_valid(&file(json!({"polices": ["agents.yaml"]}))));
    assert!(!config.is_valid(&file(json!({"policies": "agents.yaml"}))));
}

#[test]
fn the_definition_has_only_fields_that_its_type_has() {
    for scope in [Scope::Namespaced, Scope::Cluster] {
        let written = definition(scope);
        let typed: CustomResourceDefinition =
            serde_json::from_value(written.clone()).expect("the types fit");
        // What the type does not have would be lost on the way.
        assert_eq!(serde_json::to_value(&typed).expect("it is JSON"), written);
        assert_eq!(
            written["metadata"]["name"],
            "injectionpolicies.podgraft.dev"
        );
    }
}

/// The rules of `ValidateStructural` in `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go`.
fn check_structural(schema: &Value, at: &str, wrong: &mut Vec<String>) {
    let is = |key: &str| schema[key] == true;
    let (anything, int_or_string) = (
        is("x-kubernetes-preserve-unknown-fields"),
        is("x-kubernetes-int-or-string"),
    );
    let kind = schema["type"].as_str().unwrap_or_default();
    let keys = schema.as_object().expect("a schema is an object").keys();
    const KNOWN: [&str; 11] = [
        "type",
        "format",
        "description",
        "enum",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "pattern",
    ];
    wrong.extend(
        keys.filter(|key| !KNOWN.contains(&key.as_str()))
            .map(|key| format!("{at}: {key}")),
    );
    if kind.is_empty() && !anything && !int_or_string {
        wrong.push(format!("{at}: no type"));
    }
    if anything && int_or_string {
        wrong.push(format!("{at}: int-or-string, and anything"));
    }
    if kind == "array" && schema.get("items").is_none() {
        wrong.push(format!("{at}: no items"));
    }
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_some() {
        wrong.push(format!("{at}: properties and additionalProperties"));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            check_structural(inner, &format!("{at}.{key}"), wrong);
        }
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        check_structural(inner, &format!("{at}.{key}"), wrong);
    }
}

#[test]
fn the_definition_is_structural_and_small_enough_for_a_cluster() {
    let definition = definition(Scope::Namespaced);
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut wrong = Vec::new();
    check_structural(schema, "", &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["metadata"], json!({"type": "object"}));
    // `kubectl apply` without `--server-side` keeps a copy in an annotation of at most 256 KiB.
    assert!(
        definition.to_string().len() < 256 << 10,
        "{}",
        definition.to_string().len()
    );
    let inject = &schema["properties"]["spec"]["properties"]["inject"]["properties"];
    assert_eq!(
        inject["ports"]["items"]["properties"]["containerPort"],
        json!({"x-kubernetes-int-or-string": true})
    );
    assert_eq!(
        inject["env"]["items"]["properties"]["op"]["enum"]
            .as_array()
            .map(Vec::len),
        Some(6)
    );
    assert!(inject["podSpec"]["properties"].get("containers").is_none());
}

/// The definition as a schema: what an API server would take.
#[test]
fn the_definition_takes_every_policy_that_podgraft_takes() {
    let mut schema =
        definition(Scope::Namespaced)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    with_int_or_string(&mut schema);
    let validator = jsonschema::draft7::new(&schema).expect("it is a schema");
    for (path, policy) in accepted_policies() {
        let errors: Vec<String> = validator
            .iter_errors(&policy)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
    let wrong = json!({"apiVersion": "x", "kind": "InjectionPolicy", "spec": {"weight": "first"}});
    assert!(!validator.is_valid(&wrong));
}

/// Says what the API server's own word means in the words of JSON Schema.
fn with_int_or_string(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.remove("x-kubernetes-int-or-string").is_some() {
                map.insert("type".to_owned(), json!(["integer", "string"]));
            }
            map.values_mut().for_each(with_int_or_string);
        }
        Value::Array(items) => items.iter_mut().for_each(with_int_or_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_podgraft"))
        .args(args)
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn the_commands_print_them() {
    let (code, schema, _) = run(&["policy", "schema"]);
    let schema: Value = serde_json::from_str(&schema).expect("a schema is JSON");
    assert_eq!(
        (code, &schema),
        (
            Some(0),
            &find("InjectionPolicy").expect("it has one").schema()
        )
    );
    let (code, config, _) = run(&["policy", "schema", "config"]);
    assert!(code == Some(0) && config.contains("\"Config\""));
    let (code, nothing, messages) = run(&["policy", "schema", "Confg"]);
    assert!(
        (code, &*nothing) == (Some(2), "") && messages.contains("did you mean `Config`?"),
        "{messages}"
    );
    let (code, yaml, _) = run(&["policy", "crd", "--scope", "Cluster"]);
    let tree = parse(&yaml).expect("a definition is YAML");
    let value = to_value(&tree, tree.roots()[0]).expect("it has a value");
    assert_eq!((code, value), (Some(0), definition(Scope::Cluster)));
}
