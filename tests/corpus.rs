//! Real manifests by the hundred: a policy that injects into every workload gives the right values, keeps every line,
//! and changes nothing the second time. Runs where the corpus is, and says so where it is not.
//!
//! The expected values are made here, by an executor of a few lines over values that another crate has read; it shares
//! no code with the engine.

use crate::promises;
use podgraft_core::diagnostic::Code;
use podgraft_core::graft::{Options, graft};
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::yaml::splice::splice;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CORPUS: &str = "../shared/corpus";

/// The manifests in a folder and those below it, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let is_manifest = path
            .extension()
            .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
        if path.is_dir() {
            found.extend(files(&path));
        } else if is_manifest {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn policies() -> Vec<Policy> {
    let text = fs::read_to_string("testdata/corpus/policy.yaml").expect("the policy is there");
    let (policies, problems) = read(
        vec![PolicyFile {
            name: "policy.yaml".into(),
            text,
        }],
        &[],
    );
    assert!(problems.is_empty(), "{problems:?}");
    policies
}

/// What a refused file may be refused for; anything else is a fault of ours.
const REFUSALS: &[Code] = &[
    Code::NotYaml,
    Code::NotRendered,
    Code::DuplicateKey,
    Code::SharedNode,
    Code::UnknownAlias,
];

#[test]
fn real_manifests_get_the_right_values_and_lose_no_line() {
    let folder = Path::new(CORPUS);
    if !folder.exists() {
        eprintln!("skipped: {CORPUS} is not there");
        return;
    }
    let policies = policies();
    let (mut changed, mut refused, mut compared) = (0, 0, 0);
    for path in files(folder) {
        let input = fs::read(&path).expect("the file is readable");
        let name: Arc<str> = path.display().to_string().into();
        let report = graft(&name, &input, &policies, &Options::default());
        let errors: Vec<_> = report
            .diagnostics
            .iter()
            .filter(|problem| problem.is_error())
            .collect();
        if !errors.is_empty() {
            let is_known = errors
                .iter()
                .all(|problem| REFUSALS.contains(&problem.code) && !problem.labels.is_empty());
            assert!(is_known, "{name}: {errors:?}");
            refused += 1;
            continue;
        }
        let output = splice(&input, &report.edits);
        changed += usize::from(!report.edits.is_empty());
        assert_lines_are_kept(&name, &input, &output);
        compared += usize::from(compare_values(&name, &input, &output));
        let again = graft(&name, &output, &policies, &Options::default());
        assert!(
            again.edits.is_empty(),
            "{name}: a second run changes {:?}",
            again.edits
        );
    }
    eprintln!("{changed} changed, {refused} refused, {compared} compared by values");
    assert!(
        changed > 350 && refused < 20 && compared > 350,
        "{changed} {refused} {compared}"
    );
}

/// Policies that make every kind of edit, over the same files: the values are those of the plan's patches as the
/// `json-patch` crate carries them out, all other bytes stay, a second run has nothing to do, undo gives the bytes back.
#[test]
fn real_manifests_keep_every_promise() {
    let folder = Path::new(CORPUS);
    if !folder.exists() {
        eprintln!("skipped: {CORPUS} is not there");
        return;
    }
    let policies = [
        "testdata/mutation/policy.yaml",
        "testdata/mutation/companions.yaml",
    ]
    .map(|path| {
        let text = fs::read_to_string(path).expect("the policy is there");
        promises::policies(&text).expect("the policy is right")
    });
    let (mut edited, mut refused, mut compared) = (0, 0, 0);
    for path in files(folder) {
        let text = fs::read(&path).expect("the file is readable");
        for policies in &policies {
            let kept = promises::check(&text, policies);
            edited += usize::from(kept.edits > 0);
            refused += usize::from(kept.output.is_none());
            compared += kept.compared;
        }
    }
    eprintln!(
        "{edited} texts edited, {refused} refused, {compared} documents compared with the patched values"
    );
    assert!(
        edited > 500 && compared > 500,
        "{edited} {refused} {compared}"
    );
}

/// Every line of the input stands in the output, in order; a line that an insertion must rewrite (an empty list or
/// mapping that gets content, a bracketed list, a JSON entry that gets a comma) begins as it did.
fn assert_lines_are_kept(name: &str, input: &[u8], output: &[u8]) {
    let (input, output) = (
        String::from_utf8_lossy(input),
        String::from_utf8_lossy(output),
    );
    let mut lines = output.lines();
    for line in input.lines() {
        let stem = line
            .trim_end()
            .trim_end_matches(['}', ']', '{', '['])
            .trim_end();
        let stem = stem.strip_suffix("null").unwrap_or(stem).trim_end();
        let is_kept = |other: &str| other == line || other.strip_suffix(',') == Some(line);
        let is_rewritten = |other: &str| !stem.is_empty() && other.starts_with(stem);
        assert!(
            lines.any(|other| is_kept(other) || is_rewritten(other)),
            "{name}: lost `{line}`"
        );
    }
}

/// Compares values as an independent crate reads them; false where that crate reads the input differently from Kubernetes
/// (it refuses some of what kubectl takes).
fn compare_values(name: &str, input: &[u8], output: &[u8]) -> bool {
    let Some(mut expected) = values(input) else {
        return false;
    };
    let found = values(output).unwrap_or_else(|| panic!("{name}: the output cannot be read"));
    expected.iter_mut().for_each(inject);
    assert_eq!(
        expected.len(),
        found.len(),
        "{name}: another number of documents"
    );
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected, found, "{name}");
    }
    true
}

fn values(text: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(text).ok()?;
    serde_saphyr::from_multiple::<Value>(text).ok()
}

/// Where objects of a kind have their pod template.
fn pod_template(kind: &str) -> Option<&'static str> {
    match kind {
        "Pod" => Some(""),
        "CronJob" => Some("/spec/jobTemplate/spec/template"),
        "PodTemplate" => Some("/template"),
        "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "ReplicaSet"
        | "ReplicationController"
        | "Job"
        | "Rollout"
        | "DeploymentConfig" => Some("/spec/template"),
        _ => None,
    }
}

fn inject(object: &mut Value) {
    if object["kind"].as_str().is_some_and(|kind| kind == "List") {
        object["items"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(inject);
        return;
    }
    let Some(pointer) = object["kind"].as_str().and_then(pod_template) else {
        return;
    };
    let has_pod_spec = object
        .pointer(&format!("{pointer}/spec"))
        .is_some_and(Value::is_object);
    if !has_pod_spec || object.get("apiVersion").is_none() {
        return;
    }
    let containers = object
        .pointer(&format!("{pointer}/spec/containers"))
        .and_then(Value::as_array);
    if containers.is_none_or(|containers| containers.iter().all(is_of_another_injector)) {
        return;
    }
    let template = object.pointer_mut(pointer).expect("it has a spec");
    template["metadata"]["annotations"]["podgraft.example.com/corpus"] = json!("true");
    let mount = json!({"name": "podgraft-corpus", "mountPath": "/podgraft-corpus"});
    let spec = &mut template["spec"];
    push(
        &mut spec["volumes"],
        json!({"name": "podgraft-corpus", "emptyDir": {}}),
    );
    push(
        &mut spec["initContainers"],
        json!({
            "name": "podgraft-corpus",
            "image": "registry.example.com/agent:1.0.0",
            "command": ["cp", "/agent.jar", "/podgraft-corpus/agent.jar"],
            "volumeMounts": [mount],
        }),
    );
    let containers = spec["containers"].as_array_mut().into_iter().flatten();
    for container in containers.filter(|container| !is_of_another_injector(container)) {
        push(&mut container["volumeMounts"], mount.clone());
        push(
            &mut container["env"],
            json!({"name": "PODGRAFT_CORPUS", "value": "yes: it is\n"}),
        );
    }
    object["metadata"]["annotations"]["podgraft.dev/applied"] = json!("corpus");
}

/// Their sidecars are not chosen unless a policy names them.
fn is_of_another_injector(container: &Value) -> bool {
    ["istio-proxy", "linkerd-proxy"].contains(&container["name"].as_str().unwrap_or_default())
}

fn push(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("a list").push(item);
}
