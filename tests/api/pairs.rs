//! Fragments of policies and pods that they may not go with, each with each: what podgraft writes without a word of an
//! error has no fault for the API server's own code that was not in the input, but for the rules that `docs/validation.md`
//! leaves to the server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use podgraft_core::graft::{Options, graft};
use podgraft_core::yaml::splice::splice;
use serde_json::{Map, Value, json};

use super::server::judge;
use crate::promises;

const PAGE: &str = "docs/validation.md";

fn read(name: &str) -> Map<String, Value> {
    let path = format!("testdata/validation/{name}.yaml");
    let text = fs::read_to_string(&path).expect("the file is readable");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// An object of the kind, around the pod.
fn object(pod: &Value) -> Value {
    let kind = pod["kind"].as_str().expect("a kind");
    let mut annotations = pod.get("annotations").cloned().unwrap_or(json!({}));
    if let Some(length) = pod["long"].as_u64() {
        annotations["long"] = "x".repeat(usize::try_from(length).expect("short")).into();
    }
    let metadata = json!({"labels": {"app": "a"}, "annotations": annotations});
    let template = json!({"metadata": metadata, "spec": pod["spec"]});
    let selector = json!({"matchLabels": {"app": "a"}});
    let (version, body) = match kind {
        "Pod" => ("v1", json!({"spec": pod["spec"], "metadata": metadata})),
        "PodTemplate" => ("v1", json!({"template": template})),
        "Job" => ("batch/v1", json!({"spec": {"template": template}})),
        "CronJob" => (
            "batch/v1",
            json!({"spec": {"schedule": "1 * * * *", "jobTemplate": {"spec": {"template": template}}}}),
        ),
        _ => (
            "apps/v1",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
    };
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {}});
    for (key, value) in body.as_object().expect("a mapping") {
        object[key] = value.clone();
    }
    for claim in pod["claims"].as_array().into_iter().flatten() {
        let size = json!({"requests": {"storage": "1Gi"}});
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": size});
        object["spec"]["volumeClaimTemplates"] =
            json!([{"metadata": {"name": claim}, "spec": spec}]);
        object["spec"]["serviceName"] = json!("a");
    }
    object["metadata"]["name"] = json!("a");
    object
}

/// What the page leaves to the server: the words of its faults, in the last column of the page's second table.
fn left_to_the_server() -> Vec<String> {
    let page = fs::read_to_string(PAGE).expect("the page is readable");
    let (_, table) = page
        .split_once("## Left to the API server")
        .expect("the page has the table");
    let rows = table.lines().filter(|line| line.starts_with("| "));
    rows.skip(1)
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let words = cells.last().expect("a row has cells").trim();
            words.trim_matches('`').to_owned()
        })
        .collect()
}

/// A fault of a pod, whatever the kind that it stands in.
fn of_pod(fault: &str) -> &str {
    let path = fault.split(": ").next().unwrap_or_default();
    let template = [
        "spec.jobTemplate.spec.template.",
        "spec.template.",
        "template.",
    ];
    let begin = template.into_iter().find(|begin| path.starts_with(begin));
    fault
        .strip_prefix(begin.unwrap_or_default())
        .unwrap_or(fault)
}

/// The pairs that podgraft accepts, with the objects before and after.
#[derive(Default)]
struct AcceptedPairs<'p> {
    names: Vec<(&'p str, &'p str)>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    refused: usize,
}

impl<'p> AcceptedPairs<'p> {
    /// Puts a policy into every pod.
    fn add(&mut self, policy_name: &'p str, inject: &Value, pods: &'p Map<String, Value>) {
        let policy = json!({
            "apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": {"name": "p"},
            "spec": {"inject": inject, "onConflict": "Replace"},
        });
        // One that is wrong in every pod is best refused before it meets any.
        let Ok(policy) = promises::policies(&policy.to_string()) else {
            self.refused += pods.len();
            return;
        };
        for (pod_name, pod) in pods {
            let input = object(pod).to_string();
            let report = graft(
                &"input.json".into(),
                input.as_bytes(),
                &policy,
                &Options::default(),
            );
            if !promises::errors(&report).is_empty() {
                self.refused += 1;
                continue;
            }
            let output = splice(input.as_bytes(), &report.edits);
            self.names.push((policy_name, pod_name));
            self.outputs
                .push(String::from_utf8(output).expect("what was text stays text"));
            self.inputs.push(input);
        }
    }
}

fn faults_in_words(faults: &BTreeMap<String, Vec<String>>) -> String {
    let lines = faults.iter().map(|(fault, pairs)| {
        format!(
            "{fault}\n    {} pairs: {}",
            pairs.len(),
            pairs[..pairs.len().min(4)].join(", ")
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_accepted_of_any_pair_is_accepted_by_the_api_server() {
    let (pods, policies) = (read("pods"), read("policies"));
    let mut accepted = AcceptedPairs::default();
    for (policy_name, inject) in &policies {
        accepted.add(policy_name, inject, &pods);
    }
    let (number, refused) = (accepted.outputs.len(), accepted.refused);
    assert!(
        number > 3000 && refused > 300,
        "{number} written, {refused} refused"
    );
    let (Some(before), Some(after)) = (judge(&accepted.inputs), judge(&accepted.outputs)) else {
        return;
    };
    let left = left_to_the_server();
    let (mut wrong, mut used) = (BTreeMap::<String, Vec<String>>::new(), BTreeSet::new());
    for ((before, after), (policy, pod)) in before.iter().zip(&after).zip(&accepted.names) {
        assert!(
            !before[0].unknown && before[0].faults.is_empty(),
            "{pod}: {before:?}"
        );
        for fault in &after[0].faults {
            let fault = of_pod(fault);
            match left.iter().position(|words| fault.contains(words.as_str())) {
                Some(row) => {
                    used.insert(row);
                }
                None => wrong
                    .entry(fault.to_owned())
                    .or_default()
                    .push(format!("{policy} in {pod}")),
            }
        }
    }
    eprintln!("{number} pairs accepted by both, {refused} refused");
    assert!(
        wrong.is_empty(),
        "{PAGE} has no row for:\n{}",
        faults_in_words(&wrong)
    );
    let unused: Vec<_> = (0..left.len())
        .filter(|row| !used.contains(row))
        .map(|row| &left[row])
        .collect();
    assert!(unused.is_empty(), "nothing shows these rows: {unused:#?}");
}
