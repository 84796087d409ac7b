//! Renders the ephemeral containers of a run: for each workload the patch body for its running pods, and the equivalent
//! `kubectl debug` commands. <https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/>

use serde_json::{Value, json};

use crate::edit::emit;
use crate::outcome::{FileReport, WorkloadReport};
use crate::policy::functions::default_pull_policy;
use crate::wording::{self, one_line, shell_word};

/// Fields that `kubectl debug` has a flag for, or sets by itself.
const COMMAND_FIELDS: [&str; 8] = [
    "name",
    "image",
    "imagePullPolicy",
    "command",
    "args",
    "stdin",
    "tty",
    "targetContainerName",
];

fn workloads<'r>(reports: &'r [&FileReport]) -> impl Iterator<Item = &'r WorkloadReport> {
    let workloads = reports.iter().flat_map(|report| &report.workloads);
    workloads.filter(|workload| !workload.ephemeral_containers.is_empty())
}

fn patch(workload: &WorkloadReport) -> Value {
    json!({"spec": {"ephemeralContainers": workload.ephemeral_containers}})
}

/// One YAML document for each workload: the patch body, with the commands as a comment.
pub fn yaml(reports: &[&FileReport]) -> String {
    let documents: Vec<String> = workloads(reports).map(document).collect();
    documents.join("---\n")
}

fn document(workload: &WorkloadReport) -> String {
    let mut text = format!(
        "# strategic merge patch for the subresource pods/ephemeralcontainers of a running pod\n\
         # of {}; the same thing by hand:\n",
        one_line(&workload.title())
    );
    for container in &workload.ephemeral_containers {
        text.push_str(&format!("#   {}\n", line(workload, container)));
        let left_out = left_out(container);
        if !left_out.is_empty() {
            text.push_str(&format!(
                "#   (which has no flag for {})\n",
                left_out.join(", ")
            ));
        }
    }
    text + &emit::document(&patch(workload))
}

/// A JSON list with an entry for each workload.
pub fn json(reports: &[&FileReport]) -> String {
    let entries: Vec<Value> = workloads(reports).map(entry).collect();
    wording::pretty_json(&entries)
}

/// The patch and the commands of a workload.
fn entry(workload: &WorkloadReport) -> Value {
    let lines = workload
        .ephemeral_containers
        .iter()
        .map(|container| line(workload, container));
    json!({
        "workload": {
            "apiVersion": workload.api_version,
            "kind": workload.kind,
            "namespace": workload.namespace,
            "name": workload.name,
        },
        "patch": patch(workload),
        "kubectl": lines.collect::<Vec<_>>(),
    })
}

/// The commands alone, those of each workload below a comment with its name.
pub fn kubectl(reports: &[&FileReport]) -> String {
    let mut text = String::new();
    for workload in workloads(reports) {
        text.push_str(&format!("# {}\n", one_line(&workload.title())));
        for container in &workload.ephemeral_containers {
            text.push_str(&line(workload, container));
            text.push('\n');
        }
    }
    text
}

/// The `kubectl debug` command for a container:
/// `kubectl -n shop debug -it POD --image=busybox:1.36 --container=debug --target=app -- sh`
fn line(workload: &WorkloadReport, container: &Value) -> String {
    let text = |key: &str| container[key].as_str().unwrap_or_default();
    let is_true = |key: &str| container[key] == true;
    let mut words = vec!["kubectl".to_owned()];
    if let Some(namespace) = &workload.namespace {
        words.extend(["-n".to_owned(), namespace.clone()]);
    }
    words.push("debug".to_owned());
    words.extend(match (is_true("stdin"), is_true("tty")) {
        (true, true) => Some("-it".to_owned()),
        (true, false) => Some("-i".to_owned()),
        (false, _) => None,
    });
    // The name of a workload is not that of a pod, and `generateName` gives only a prefix: the user has to put in the
    // name.
    let is_one_pod =
        workload.kind == "Pod" && !workload.name.is_empty() && !workload.name.ends_with('*');
    words.push(if is_one_pod {
        workload.name.clone()
    } else {
        "POD".to_owned()
    });
    words.push(format!("--image={}", text("image")));
    let pull_policy = text("imagePullPolicy");
    if !pull_policy.is_empty() && pull_policy != default_pull_policy(text("image")) {
        words.push(format!("--image-pull-policy={pull_policy}"));
    }
    words.push(format!("--container={}", text("name")));
    if !text("targetContainerName").is_empty() {
        words.push(format!("--target={}", text("targetContainerName")));
    }
    words.extend(plain_env(container).map(|(name, value)| format!("--env={name}={value}")));
    let (command, args) = (texts(container, "command"), texts(container, "args"));
    // kubectl takes the words after `--` as the command unless a flag says that they are its arguments.
    if command.is_empty() && !args.is_empty() {
        words.push("--arguments-only".to_owned());
    }
    if !command.is_empty() || !args.is_empty() {
        words.push("--".to_owned());
    }
    words.extend(command.into_iter().chain(args));
    words
        .iter()
        .map(|word| shell_word(word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn list<'c>(container: &'c Value, key: &str) -> impl Iterator<Item = &'c Value> {
    let list = container.get(key).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn texts(container: &Value, key: &str) -> Vec<String> {
    let texts = list(container, key).filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn plain_env(container: &Value) -> impl Iterator<Item = (&str, &str)> {
    list(container, "env")
        .filter_map(|entry| Some((entry.get("name")?.as_str()?, entry.get("value")?.as_str()?)))
}

/// The fields of the container that the command has no flag for.
fn left_out(container: &Value) -> Vec<&str> {
    let fields = container.as_object().into_iter().flatten();
    fields
        .filter(|(key, value)| is_left_out(container, key, value))
        .map(|(key, _)| key.as_str())
        .collect()
}

fn is_left_out(container: &Value, key: &str, value: &Value) -> bool {
    match key {
        "env" => value
            .as_array()
            .is_some_and(|entries| entries.len() > plain_env(container).count()),
        "terminationMessagePolicy" => value != "File",
        key => !COMMAND_FIELDS.contains(&key),
    }
}
