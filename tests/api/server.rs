//! Every object of the golden outputs, and of real manifests with the built-in policies in each of their workloads, is
//! judged by the API server's own code (`tests/server`): strict decoding, defaults, and the validation of new objects. It
//! sees what no schema says: names that are there twice, mounts without a volume, labels that no selector finds.
//!
//! `PODGRAFT_API_SERVER` names the built judge; without it the tests say so and pass.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use podgraft_core::graft::{Options, graft};
use podgraft_core::policy::Policy;
use podgraft_core::policy::builtin::BUILTINS;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::yaml::splice::splice;
use serde::Deserialize;
use serde_json::{Value, json};

use super::pairs;

const CORPUS: &str = "../shared/corpus";

#[derive(Debug, Deserialize)]
pub struct Verdict {
    /// Kind, namespace and name; empty for a document that could not be read.
    object: String,
    /// A kind that the API server does not bring along.
    #[serde(default)]
    pub unknown: bool,
    /// What is wrong with it.
    #[serde(default)]
    pub faults: Vec<String>,
}

/// The judge's verdicts on the objects of each text; `None` without a judge.
pub fn judge(texts: &[String]) -> Option<Vec<Vec<Verdict>>> {
    let Ok(judge) = env::var("PODGRAFT_API_SERVER") else {
        eprintln!(
            "SKIPPED: PODGRAFT_API_SERVER is not set; `.ci/run` builds the judge of tests/server"
        );
        return None;
    };
    let mut child = Command::new(judge)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the judge runs");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let lines: Vec<String> = texts
        .iter()
        .map(|text| serde_json::to_string(text).expect("a text is JSON"))
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(stdin, "{line}").expect("the judge reads");
        }
    });
    let answers = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
    let verdicts: Vec<Vec<Verdict>> = answers
        .map(|line| {
            serde_json::from_str(&line.expect("the judge answers"))
                .expect("an answer is a list of verdicts")
        })
        .collect();
    writer.join().expect("all was read");
    assert!(child.wait().expect("the judge ends").success());
    assert_eq!(verdicts.len(), texts.len());
    Some(verdicts)
}

#[derive(Debug, Default)]
struct Counts {
    objects: usize,
    unknown: usize,
    /// Objects that the API server would not take as they came in either.
    wrong_before: usize,
}

/// Fails where an output has a fault that the object of that name did not have in the input, and where one that is said
/// to be refused has none.
fn compare(
    names: &[String],
    inputs: &[String],
    outputs: &[String],
    is_said_to_be_refused: impl Fn(&str) -> bool,
) -> Option<Counts> {
    let (before, after) = (judge(inputs)?, judge(outputs)?);
    let mut counts = Counts::default();
    let mut wrong = Vec::new();
    for ((name, before), after) in names.iter().zip(&before).zip(&after) {
        let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for verdict in before {
            known
                .entry(&verdict.object)
                .or_default()
                .extend(verdict.faults.iter().map(String::as_str));
        }
        let mut new_faults = Vec::new();
        for verdict in after {
            let known = known.get(verdict.object.as_str());
            let is_new =
                |fault: &&String| !known.is_some_and(|known| known.contains(fault.as_str()));
            let found = verdict.faults.iter().filter(is_new);
            new_faults.extend(found.map(|fault| format!("{}: {fault}", verdict.object)));
            counts.objects += 1;
            counts.unknown += usize::from(verdict.unknown);
            counts.wrong_before += usize::from(!verdict.faults.is_empty());
        }
        if new_faults.is_empty() == is_said_to_be_refused(name) {
            wrong.push(format!("{name}: {new_faults:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Some(counts)
}

/// Fails where a text has a fault that the one before it did not have.
pub fn assert_no_new_fault(before: &[String], after: &[String]) {
    let names: Vec<String> = after.to_vec();
    if let Some(counts) = compare(&names, before, after, |_| false) {
        eprintln!("judged by the API server's code: {counts:?}");
    }
}

#[test]
fn golden_outputs_have_no_fault_that_the_input_had_not() {
    let text = |path: &Path| fs::read_to_string(path).expect("the file is readable");
    let pairs = pairs();
    let names: Vec<_> = pairs
        .iter()
        .map(|(_, output)| output.display().to_string())
        .collect();
    let inputs: Vec<_> = pairs.iter().map(|(input, _)| text(input)).collect();
    let outputs: Vec<_> = pairs.iter().map(|(_, output)| text(output)).collect();
    // What an operator makes is made, with a warning, though no API server takes it.
    let is_said_to_be_refused = |name: &str| {
        let report = Path::new(name).with_file_name("report.txt");
        fs::read_to_string(report).is_ok_and(|report| report.contains("⚠ the API server rejects"))
    };
    let Some(counts) = compare(&names, &inputs, &outputs, is_said_to_be_refused) else {
        return;
    };
    eprintln!("golden outputs: {counts:?}");
    assert!(
        counts.objects > 600
            && counts.unknown < counts.objects / 8
            && counts.wrong_before < counts.objects / 20,
        "{counts:?}"
    );
}

/// A policy for every workload, with a value for each parameter that wants one.
fn for_all_workloads(name: &str, text: &str) -> Vec<Policy> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("the policy is YAML");
    let widened = documents.into_iter().map(|mut policy| {
        let spec = policy["spec"].as_object_mut().expect("a policy has a spec");
        spec.remove("match");
        for param in spec
            .get_mut("params")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if param["required"] == json!(true) {
                param["default"] = json!("registry.example.com/agent:1.0.0");
                param["required"] = json!(false);
            }
        }
        policy.to_string()
    });
    let text = widened.collect::<Vec<_>>().join("\n---\n");
    let (policies, problems) = read(
        vec![PolicyFile {
            name: name.into(),
            text,
        }],
        &[],
    );
    assert!(
        problems.iter().all(|problem| !problem.is_error()),
        "{name}: {problems:?}"
    );
    policies
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is readable");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the entry is readable").path())
        .collect();
    paths.sort();
    let in_folders = |path: PathBuf| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    };
    paths.into_iter().flat_map(in_folders).collect()
}

#[test]
fn real_manifests_have_no_fault_that_they_had_not() {
    if env::var("PODGRAFT_API_SERVER").is_err() || !Path::new(CORPUS).exists() {
        eprintln!("SKIPPED: PODGRAFT_API_SERVER is not set, or {CORPUS} is not there");
        return;
    }
    let mut sets: Vec<_> = BUILTINS
        .iter()
        .map(|builtin| for_all_workloads(builtin.name, &builtin.file().text))
        .collect();
    for path in [
        "testdata/corpus/policy.yaml",
        "testdata/mutation/companions.yaml",
    ] {
        sets.push(for_all_workloads(
            path,
            &fs::read_to_string(path).expect("the policy is there"),
        ));
    }
    let (mut names, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for path in files(Path::new(CORPUS)) {
        let Ok(input) = fs::read_to_string(&path) else {
            continue;
        };
        for policies in &sets {
            let name = path.display().to_string();
            let report = graft(
                &name.as_str().into(),
                input.as_bytes(),
                policies,
                &Options::default(),
            );
            if report.edits.is_empty()
                || report.diagnostics.iter().any(|problem| problem.is_error())
            {
                continue;
            }
            let output = splice(input.as_bytes(), &report.edits);
            outputs.push(String::from_utf8(output).expect("what was text stays text"));
            names.push(format!("{name} with {}", policies[0].text.name));
            inputs.push(input.clone());
        }
    }
    let counts = compare(&names, &inputs, &outputs, |_| false).expect("the judge is there");
    eprintln!("{} texts of real manifests: {counts:?}", outputs.len());
    assert!(counts.objects - counts.unknown > 2000, "{counts:?}");
}

#[test]
fn the_judge_sees_what_the_api_server_refuses() {
    let pod = |spec: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, image: b}}], {spec}}}\n"
        )
    };
    let right = ["", "volumes: [{name: v, emptyDir: {}}]"];
    let wrong = [
        "volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]",
        "initContainers: [{name: a, image: b}]",
        "initContainers: [{name: i, image: b, volumeMounts: [{name: v, mountPath: /v}]}]",
        "hostname: Not_A_Name",
        "unheardOf: true",
    ];
    let texts: Vec<_> = right.iter().chain(&wrong).map(|spec| pod(spec)).collect();
    let Some(verdicts) = judge(&texts) else {
        return;
    };
    for ((verdicts, text), number) in verdicts.iter().zip(&texts).zip(0..) {
        assert!(
            verdicts.len() == 1 && verdicts[0].object == "Pod/<nil>/a" && !verdicts[0].unknown,
            "{text}"
        );
        assert_eq!(
            verdicts[0].faults.is_empty(),
            number < right.len(),
            "{text}: {:?}",
            verdicts[0].faults
        );
    }
}
