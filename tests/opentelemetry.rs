//! Instrumentation as policy: exactly what the OpenTelemetry Operator does, for the cases of `../shared/cases/otel` where
//! they are there; a second run changes nothing, and undo gives back the bytes.

use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::policy::conversion::ReadOptions;
use podgraft_core::policy::opentelemetry::language::Language;
use podgraft_core::policy::opentelemetry::release::OperatorFeature;
use podgraft_core::policy::read::{PolicyFile, read_as};
use podgraft_core::yaml::splice::splice;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

const OWN: &str = "testdata/cases/opentelemetry";
const SHARED: &str = "../shared/cases/otel";

/// Shared cases in which the operator itself injects twice, and podgraft without its marker does, too.
const TWICE: [&str; 3] = [
    "sdk-initcontainer",
    "sdk-pod-node-name-set",
    "sdk-existing-node-name",
];

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).expect("the folder is readable");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it is readable").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// With Go and nginx switched on.
fn policies(path: &Path) -> Vec<Policy> {
    let mut reading = ReadOptions::default();
    for language in [Language::Go, Language::Nginx] {
        reading
            .opentelemetry
            .enable(OperatorFeature::Language(language));
    }
    let text = fs::read_to_string(path).expect("the policy is there");
    let name = "policy.yaml".into();
    read_as(vec![PolicyFile { name, text }], &[], reading).0
}

fn run(text: &str, policies: &[Policy], options: &Options) -> (FileReport, String) {
    let report = graft(&"input.yaml".into(), text.as_bytes(), policies, options);
    let errors: Vec<_> = report
        .diagnostics
        .iter()
        .filter(|problem| problem.is_error())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let output = splice(text.as_bytes(), &report.edits);
    (report, String::from_utf8(output).expect("text"))
}

fn options(marker: bool, record: bool) -> Options {
    Options {
        no_marker: !marker,
        record,
        ..Options::default()
    }
}

#[test]
fn own_cases_settle_in_one_run_and_undo_gives_back_the_bytes() {
    let cases = folders(Path::new(OWN));
    assert!(cases.len() > 30, "only {} cases were found", cases.len());
    for case in cases {
        settles_and_undoes(&case, &case.join("policy.yaml"), &input(&case));
    }
}

fn input(case: &Path) -> String {
    let text = fs::read_to_string(case.join("input.yaml")).expect("a case has an input");
    match fs::read_to_string(case.join("namespace.yaml")) {
        Ok(namespace) => format!("{namespace}---\n{text}"),
        Err(_) => text,
    }
}

fn settles_and_undoes(case: &Path, policy: &Path, text: &str) {
    let policies = policies(policy);
    for is_recording in [false, true] {
        // What an earlier run without a record has marked cannot be undone.
        if is_recording && text.contains("podgraft.dev/applied") {
            continue;
        }
        let options = options(true, is_recording);
        let (_, once) = run(text, &policies, &options);
        let (_, twice) = run(&once, &policies, &options);
        assert_eq!(once, twice, "{}", case.display());
        if is_recording {
            let undo = Options {
                take_out: RemovalSelection::All,
                ..Options::default()
            };
            let (_, undone) = run(&once, &[], &undo);
            assert_eq!(undone, text, "{}", case.display());
        }
    }
}

#[test]
fn shared_cases_get_exactly_what_the_operator_makes() {
    if !Path::new(SHARED).exists() {
        return;
    }
    let mut wrong = Vec::new();
    for case in ["e2e", "edge"]
        .iter()
        .flat_map(|area| folders(&Path::new(SHARED).join(area)))
    {
        let text = input(&case);
        let policy = case.join("instrumentation.yaml");
        let policies = policies(&policy);
        let (_, output) = run(&text, &policies, &options(false, false));
        let exact = fs::read_to_string(case.join("exact.yaml")).expect("a case has a result");
        if specs(&output) != specs(&exact) {
            wrong.push(case.display().to_string());
        }
        settles_and_undoes(&case, &policy, &text);
        let (_, twice) = run(&output, &policies, &options(false, false));
        let is_known = TWICE.iter().any(|name| case.ends_with(name));
        assert!(twice == output || is_known, "{}", case.display());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The pod specs of a stream, as far as they are compared.
fn specs(text: &str) -> Vec<Value> {
    let documents = text
        .split("\n---\n")
        .map(|document| serde_yaml::from_str::<Value>(document).expect("a document is YAML"));
    documents
        .filter_map(|document| {
            let path = match document["kind"].as_str()? {
                "Pod" => "/spec",
                "CronJob" => "/spec/jobTemplate/spec/template/spec",
                _ => "/spec/template/spec",
            };
            document.pointer(path).map(|spec| plain(spec, ""))
        })
        .collect()
}

/// Without what says nothing, and without the texts of scripts, which are each program's own.
fn plain(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map
                .iter()
                .map(|(key, inner)| (key.clone(), plain(inner, key)));
            let mut fields: Map<String, Value> = fields
                .filter(|(key, inner)| key == "emptyDir" || !is_nothing(inner))
                .collect();
            if fields
                .get("name")
                .is_some_and(|name| name == "OTEL_APACHE_AGENT_CONF")
            {
                let text = fields["value"].as_str().unwrap_or_default();
                let lines = text.lines().map(str::trim_end);
                let kept = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
                fields["value"] = kept.collect::<Vec<_>>().join("\n").into();
            }
            let is_script = fields.get("command") == Some(&serde_json::json!(["/bin/sh", "-c"]));
            let is_agent = fields.get("name").and_then(Value::as_str);
            if is_script && is_agent.is_some_and(|name| name.starts_with("otel-agent-")) {
                fields["args"][0] = Value::Null;
            }
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(|item| plain(item, key)).collect(),
        Value::Number(number) if key == "cpu" => number.to_string().into(),
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
