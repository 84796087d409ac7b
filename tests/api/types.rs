//! Every workload of the golden outputs and of the built-in policies' is decoded with the Kubernetes API's own types, and
//! written again. What is wrong does not decode, what is unknown gets lost on the way; neither may happen to anything that
//! was not so in the input.
//!
//! The types are those of `k8s-openapi`, as serde sees them; the engine's checks walk their JSON schemas instead.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Pod, PodTemplate, PodTemplateSpec, ReplicationController};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::pairs;

/// Where kinds that are none of Kubernetes' own hold pod templates.
const TEMPLATES: &[&str] = &[
    "/spec/template",
    "/spec/jobTemplate/spec/template",
    "/spec/jobTargetRef/template",
    "/spec/template/spec/template",
];

/// What happens to an object on its way through the types: paths that get lost or change, or why it does not decode.
fn judge(object: &Value) -> BTreeSet<String> {
    let kind = (
        object["apiVersion"].as_str().unwrap_or_default(),
        object["kind"].as_str().unwrap_or_default(),
    );
    match kind {
        ("apps/v1", "Deployment") => through::<Deployment>(object),
        ("apps/v1", "StatefulSet") => through::<StatefulSet>(object),
        ("apps/v1", "DaemonSet") => through::<DaemonSet>(object),
        ("apps/v1", "ReplicaSet") => through::<ReplicaSet>(object),
        ("batch/v1", "Job") => through::<Job>(object),
        ("batch/v1", "CronJob") => through::<CronJob>(object),
        ("v1", "Pod") => through::<Pod>(object),
        ("v1", "PodTemplate") => through::<PodTemplate>(object),
        ("v1", "ReplicationController") => through::<ReplicationController>(object),
        _ => {
            let templates = TEMPLATES
                .iter()
                .filter_map(|pointer| object.pointer(pointer));
            let holds_pods = |template: &&Value| template.pointer("/spec/containers").is_some();
            templates
                .filter(holds_pods)
                .flat_map(through::<PodTemplateSpec>)
                .collect()
        }
    }
}

fn through<T: DeserializeOwned + Serialize>(object: &Value) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    match serde_json::from_value::<T>(with_quantities(object)) {
        Err(error) => {
            lost.insert(format!("it does not decode: {error}"));
        }
        Ok(decoded) => {
            let again = serde_json::to_value(decoded).expect("what was decoded can be written");
            compare(&with_quantities(object), &again, "", &mut lost);
        }
    }
    lost
}

/// The API server takes numbers for quantities (`cpu: 1`), the types only texts.
fn with_quantities(value: &Value) -> Value {
    let as_text = |value: &Value| {
        if value.is_number() {
            Value::String(value.to_string())
        } else {
            value.clone()
        }
    };
    match value {
        Value::Array(entries) => entries.iter().map(with_quantities).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let value = match (key.as_str(), value) {
                    ("limits" | "requests" | "overhead", Value::Object(amounts)) => Value::Object(
                        amounts
                            .iter()
                            .map(|(name, amount)| (name.clone(), as_text(amount)))
                            .collect(),
                    ),
                    ("sizeLimit" | "divisor", amount) => as_text(amount),
                    (_, other) => with_quantities(other),
                };
                (key.clone(), value)
            };
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        scalar => scalar.clone(),
    }
}

/// Null and what is empty may go.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

fn compare(before: &Value, after: &Value, path: &str, lost: &mut BTreeSet<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before.iter().filter(|(_, value)| !is_nothing(value)) {
                let path = format!("{path}/{key}");
                match after.get(key) {
                    Some(other) => compare(value, other, &path, lost),
                    None => drop(lost.insert(format!("{path} is unknown"))),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (number, (value, other)) in before.iter().zip(after).enumerate() {
                // An index would differ between input and output.
                let name = value["name"]
                    .as_str()
                    .map_or_else(|| number.to_string(), str::to_owned);
                compare(value, other, &format!("{path}/{name}"), lost);
            }
        }
        _ if before == after => {}
        _ => drop(lost.insert(format!("{path} is {before} and becomes {after}"))),
    }
}

/// The objects of a text, items of lists among them; `None` where the reader, which is not the engine's, refuses it.
fn objects(text: &str) -> Option<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).ok()?;
    let mut objects = Vec::new();
    documents
        .into_iter()
        .for_each(|document| flatten(document, &mut objects));
    Some(objects)
}

fn flatten(value: Value, objects: &mut Vec<Value>) {
    let is_list = value["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    match value {
        Value::Object(mut fields) if is_list => {
            if let Some(Value::Array(items)) = fields.remove("items") {
                items.into_iter().for_each(|item| flatten(item, objects));
            }
        }
        other => objects.push(other),
    }
}

fn identity(object: &Value) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&object["kind"]),
        text(&object["metadata"]["namespace"]),
        text(&object["metadata"]["name"]),
    )
}

#[test]
fn every_workload_of_the_outputs_passes_the_types_of_the_api() {
    let (mut workloads, mut unread) = (0, 0);
    for (input, output) in pairs() {
        let read = |path: &Path| objects(&fs::read_to_string(path).expect("the file is readable"));
        let (Some(before), Some(after)) = (read(&input), read(&output)) else {
            unread += 1;
            continue;
        };
        for object in &after {
            let known: BTreeSet<String> = before
                .iter()
                .filter(|other| identity(other) == identity(object))
                .flat_map(judge)
                .collect();
            let found: Vec<_> = judge(object)
                .into_iter()
                .filter(|fault| !known.contains(fault))
                .collect();
            assert!(
                found.is_empty(),
                "{}: {:?}: {found:#?}",
                output.display(),
                identity(object)
            );
            workloads += 1;
        }
    }
    eprintln!("{workloads} objects decoded, {unread} files not read by the other reader");
    assert!(
        workloads > 200 && unread < 20,
        "{workloads} decoded, {unread} unread"
    );
}

#[test]
fn the_judge_sees_what_the_api_refuses() {
    let deployment = |container: &str| {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nspec:\n  selector: {{}}\n  template:\n    spec:\n      containers:\n      - {container}\n"
        );
        judge(&objects(&text).expect("it is YAML")[0])
    };
    assert!(deployment("{name: a, image: b, resources: {limits: {cpu: 1}}}").is_empty());
    assert!(
        deployment("{name: a, imag: b}")
            .iter()
            .any(|fault| fault.ends_with("/containers/a/imag is unknown"))
    );
    assert!(
        deployment("{name: a, ports: [{containerPort: '80'}]}")
            .iter()
            .any(|fault| fault.contains("decode"))
    );
    assert!(
        deployment("{name: a, env: [{name: A, value: 1}]}")
            .iter()
            .any(|fault| fault.contains("decode"))
    );
    assert!(deployment("{name: a, volumeMounts: [{name: v}]}").len() < 2);
}
