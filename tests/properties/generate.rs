//! Workloads and policies as values, from small pools of names, so that they meet.

use podgraft_core::policy::Policy;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::style::Style;
use crate::promises;

/// Objects, how they are written, and a policy for them.
#[derive(Debug, Clone)]
pub struct Case {
    pub objects: Vec<Value>,
    pub policy: Value,
    pub style: Vec<u8>,
}

impl Case {
    pub fn text(&self) -> String {
        Style::new(&self.style).stream(&self.objects)
    }

    pub fn policies(&self) -> Vec<Policy> {
        promises::policies(&self.policy.to_string())
            .unwrap_or_else(|why| panic!("{why:?}\n{}", self.policy))
    }
}

pub fn case() -> impl Strategy<Value = Case> {
    (vec(workload(), 1..4), policy(), vec(any::<u8>(), 1..64)).prop_map(
        |(mut objects, policy, style)| {
            // Names tell them apart where they are compared.
            for (number, object) in objects.iter_mut().enumerate() {
                object["metadata"]["name"] = json!(format!("w{number}"));
            }
            Case {
                objects,
                policy,
                style,
            }
        },
    )
}

/// Several files, and one more case of which the policy is theirs.
pub fn cases() -> impl Strategy<Value = (Vec<Case>, Case)> {
    (vec(case(), 2..6), case())
}

/// An object of the fields that are there.
fn fields(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let present = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

fn one_of(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(choices).prop_map(str::to_owned)
}

/// Texts that YAML readers like to take for something else among them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        one_of(&[
            "x", "true", "no", "0777", "1e3", "~", "", "a: b", "# c", "- d", "{e}", "it's",
            "\"q\"", "$(A)", "ü😀"
        ]),
        one_of(&[
            "line\nline\n",
            "line\n\n",
            "line\n\n\nline",
            "\n",
            "a\tb",
            " lead",
            "trail ",
            "*a",
            "&b",
            "!c",
            "%d",
            "@e",
            "| f",
            "<<",
            "=",
            "1:30"
        ]),
        "[ -~]{0,12}",
    ]
}

fn labels() -> impl Strategy<Value = Value> {
    vec(
        (
            one_of(&["app", "runtime", "team", "a.b/c"]),
            one_of(&["java", "go", "true", "1"]),
        ),
        0..3,
    )
    .prop_map(|pairs| {
        Value::Object(
            pairs
                .into_iter()
                .map(|(key, value)| (key, json!(value)))
                .collect(),
        )
    })
}

/// Each name once, as Kubernetes wants it.
fn named(
    items: impl Strategy<Value = Value>,
    most: usize,
    key: &'static str,
) -> impl Strategy<Value = Value> {
    vec(items, 0..=most).prop_map(move |items| {
        let mut seen = Vec::new();
        let is_new = |item: &Value| {
            let is_new = !seen.contains(&item[key]);
            seen.push(item[key].clone());
            is_new
        };
        Value::Array(items.into_iter().filter(is_new).collect())
    })
}

fn variable() -> impl Strategy<Value = Value> {
    let name = || one_of(&["A", "B", "JAVA_TOOL_OPTIONS", "PATH"]);
    prop_oneof![
        4 => (name(), text()).prop_map(|(name, value)| json!({"name": name, "value": value})),
        1 => name().prop_map(|name| json!({"name": name})),
        1 => name().prop_map(|name| {
            json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
        }),
    ]
}

fn container() -> impl Strategy<Value = Value> {
    let mount = (one_of(&["/data", "/agent", "/tmp"]), any::<bool>()).prop_map(
        |(path, is_fixed)| json!({"name": "data", "mountPath": path, "readOnly": is_fixed}),
    );
    (
        one_of(&["app", "web", "istio-proxy"]),
        one_of(&["a:1", "b/c@sha256:0000", "d"]),
        of(named(variable(), 3, "name")),
        of(named(mount, 2, "mountPath")),
        of(vec(text(), 0..3)),
        of(Just(json!({"requests": {"cpu": "10m"}}))),
    )
        .prop_map(|(name, image, env, mounts, args, resources)| {
            fields([
                ("name", Some(json!(name))),
                ("image", Some(json!(image))),
                ("args", args.map(|args| json!(args))),
                ("env", env),
                ("resources", resources),
                ("volumeMounts", mounts),
            ])
        })
}

fn workload() -> impl Strategy<Value = Value> {
    let volume = one_of(&["agent", "tmp"]).prop_map(|name| json!({"name": name, "emptyDir": {}}));
    (
        proptest::sample::select(&["Deployment", "StatefulSet", "DaemonSet", "Pod", "CronJob", "ConfigMap"][..]),
        named(container(), 3, "name"),
        of(named(volume, 2, "name")),
        (of(labels()), of(labels()), of(labels())),
        text(),
    )
        .prop_map(|(kind, containers, volumes, (labels, pod_labels, annotations), note)| {
            let metadata = fields([("name", Some(json!("w"))), ("labels", labels), ("annotations", annotations)]);
            // A mount needs its volume.
            let mut volumes = volumes.unwrap_or_else(|| json!([]));
            volumes.as_array_mut().expect("it is a list").push(json!({"name": "data", "emptyDir": {}}));
            let spec =
                fields([("nodeName", Some(json!(note))), ("containers", Some(containers)), ("volumes", Some(volumes))]);
            let template = fields([
                ("metadata", pod_labels.map(|labels| json!({"labels": labels}))),
                ("spec", Some(spec.clone())),
            ]);
            let (version, spec) = match kind {
                "Pod" => ("v1", spec),
                "ConfigMap" => {
                    return json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"note": note}});
                }
                "CronJob" => {
                    ("batch/v1", json!({"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}))
                }
                _ => ("apps/v1", json!({"replicas": 2, "template": template})),
            };
            json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
        })
}

fn match_field() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        4 => Just(None),
        1 => Just(Some(json!({"kinds": ["Deployment", "Pod"]}))),
        1 => Just(Some(json!({"selector": {"matchLabels": {"runtime": "java"}}}))),
        1 => Just(Some(json!({"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}))),
        1 => Just(Some(json!({"names": ["w0", "w2"]}))),
    ]
}

fn injected_variable() -> impl Strategy<Value = Value> {
    let position = prop_oneof![3 => Just(None), 1 => Just(Some(json!("First")))];
    (
        one_of(&["A", "B", "JAVA_TOOL_OPTIONS", "NEW"]),
        one_of(&["Set", "SetIfAbsent", "Append", "Prepend", "Remove"]),
        text().prop_map(|text| text.replace('$', "")),
        position,
    )
        .prop_map(|(name, op, value, position)| {
            let is_removal = op == "Remove";
            // Nothing can be appended.
            let value = if value.trim().is_empty() {
                "x".to_owned()
            } else {
                value
            };
            fields([
                ("name", Some(json!(name))),
                ("op", Some(json!(op))),
                ("value", (!is_removal).then(|| json!(value))),
                ("position", position.filter(|_| !is_removal)),
            ])
        })
}

fn annotations() -> impl Strategy<Value = Value> {
    let entry = (
        one_of(&["a.b/c", "note", "x"]),
        text().prop_map(|text| json!(text.replace('$', ""))),
    );
    vec(entry, 1..3).prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
}

fn policy() -> impl Strategy<Value = Value> {
    let agent = json!({"name": "agent", "image": "r/a:1", "command": ["cp", "/a", "/b"],
        "volumeMounts": [{"name": "agent", "mountPath": "/agent"}]});
    let position = one_of(&["First", "Last"]).prop_map(move |position| {
        let mut container = agent.clone();
        container["position"] = json!(position);
        json!([container])
    });
    let pod_spec = proptest::sample::select(vec![
        json!({"shareProcessNamespace": true}),
        json!({"tolerations": [{"key": "x", "operator": "Exists"}], "nodeSelector": {"disk": "ssd"}}),
        json!({"terminationGracePeriodSeconds": 5}),
    ]);
    (
        match_field(),
        prop_oneof![1 => Just("Error"), 1 => Just("Replace")],
        any::<bool>(),
        of(named(injected_variable(), 3, "name")),
        (of(annotations()), of(annotations())),
        of(position),
        of(pod_spec),
    )
        .prop_map(|(selected, on_conflict, has_mount, env, (pod_annotations, annotations), init, pod_spec)| {
            let needs_volume = has_mount || init.is_some();
            let mount = json!([{"name": "agent", "mountPath": "/agent"}]);
            let defaults = json!({"imagePullPolicy": "Always", "resources": {"requests": {"cpu": "20m", "memory": "1Mi"}}});
            let inject = fields([
                ("volumes", needs_volume.then(|| json!([{"name": "agent", "emptyDir": {}}]))),
                ("volumeMounts", has_mount.then_some(mount)),
                ("initContainers", init),
                ("env", env.filter(|env| *env != json!([]))),
                ("podAnnotations", pod_annotations),
                ("annotations", annotations),
                ("podSpec", pod_spec),
                ("defaults", (!has_mount).then_some(defaults)),
            ]);
            let spec = fields([("match", selected), ("onConflict", Some(json!(on_conflict))), ("inject", Some(inject))]);
            json!({"apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": {"name": "p"}, "spec": spec})
        })
}
