//! What needs more than one document or file: facts from other files, objects that are generated once over all of them,
//! and that the order of documents and files makes no difference.

use podgraft_core::graft::{Options, graft};
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

const POLICY: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  match: {namespaceSelector: {matchLabels: {agent: wanted}}}
  inject:
    checksums:
    - {annotation: checksum/agent, configMaps: [agent]}
    - {annotation: checksum/settings, configMaps: [settings]}
  generate:
  - resource:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: agent, namespace: shop}
      data: {level: info}
";

const NAMESPACE: &str =
    "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels:\n    agent: wanted\n";
const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: shop\ndata:\n  a: b\n";

fn workload(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  template:\n    \
         spec:\n      containers:\n      - name: app\n        image: app:1\n"
    )
}

/// A folder with a policy and the files of `manifests/`.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    fs::create_dir(folder.path().join("manifests")).expect("the folder is writable");
    fs::write(folder.path().join("policy.yaml"), POLICY).expect("the folder is writable");
    for (name, text) in files {
        fs::write(folder.path().join("manifests").join(name), text)
            .expect("the folder is writable");
    }
    folder
}

fn podgraft(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    command
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the program runs")
}

fn files_of(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder)
        .expect("the folder is readable")
        .map(|entry| entry.expect("it is readable"));
    let read = |entry: fs::DirEntry| {
        (
            entry.file_name().to_string_lossy().into_owned(),
            fs::read_to_string(entry.path()).expect("it is text"),
        )
    };
    entries.map(read).collect()
}

fn values(text: &str) -> Vec<Value> {
    let tree = parse(text).expect("the output is YAML");
    tree.roots()
        .iter()
        .map(|&root| to_value(&tree, root).expect("it has a value"))
        .collect()
}

fn sorted(mut values: Vec<Value>) -> Vec<String> {
    values.sort_by_key(Value::to_string);
    values.iter().map(Value::to_string).collect()
}

#[test]
fn facts_and_companions_go_over_all_files() {
    let (orders, cart) = (workload("orders"), workload("cart"));
    let folder = folder(&[
        ("a.yaml", &orders),
        ("b.yaml", &cart),
        ("c.yaml", NAMESPACE),
        ("d.yaml", SETTINGS),
    ]);
    let output = podgraft(
        folder.path(),
        &["apply", "-q", "-p", "policy.yaml", "manifests"],
    );
    let stream = String::from_utf8(output.stdout).expect("it is text");
    let kinds: Vec<String> = values(&stream)
        .iter()
        .map(|value| value["metadata"]["name"].to_string())
        .collect();
    assert_eq!(
        kinds,
        [
            "\"orders\"",
            "\"agent\"",
            "\"cart\"",
            "\"shop\"",
            "\"settings\""
        ]
    );
    assert_eq!(stream.matches("checksum/agent: ").count(), 2);
    assert_eq!(stream.matches("checksum/settings: ").count(), 2);
}

#[test]
fn in_place_the_object_stands_in_the_file_of_its_workload_and_a_second_run_changes_nothing() {
    let (orders, cart) = (workload("orders"), workload("cart"));
    let folder = folder(&[
        ("a.yaml", NAMESPACE),
        ("b.yaml", &cart),
        ("c.yaml", &orders),
        ("d.yaml", SETTINGS),
    ]);
    let manifests = folder.path().join("manifests");
    let diff = podgraft(
        folder.path(),
        &["diff", "-q", "--record", "-p", "policy.yaml", "manifests"],
    );
    assert_eq!(diff.status.code(), Some(1));
    let apply = |more: &[&str]| {
        let output = podgraft(
            folder.path(),
            &[
                &["apply", "-q", "--record", "-p", "policy.yaml", "manifests"],
                more,
            ]
            .concat(),
        );
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    apply(&["--output-dir", "out"]);
    let before = files_of(&manifests);
    apply(&["--in-place"]);
    let after = files_of(&manifests);
    assert_eq!(files_of(&folder.path().join("out")), after);
    assert!(
        after["b.yaml"].contains("kind: ConfigMap") && !after["c.yaml"].contains("kind: ConfigMap")
    );
    assert_eq!(
        (&before["a.yaml"], &before["d.yaml"]),
        (&after["a.yaml"], &after["d.yaml"])
    );
    apply(&["--in-place"]);
    assert_eq!(files_of(&manifests), after);
    check_patch(&diff.stdout, &before, &after);
}

/// What `diff` has shown is what `--in-place` has done.
fn check_patch(diff: &[u8], before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let manifests = folder.path().join("manifests");
    fs::create_dir(&manifests).expect("the folder is writable");
    before.iter().for_each(|(name, text)| {
        fs::write(manifests.join(name), text).expect("the folder is writable")
    });
    fs::write(folder.path().join("change.patch"), diff).expect("the folder is writable");
    let mut git = Command::new("git");
    git.current_dir(folder.path())
        .args(["apply", "change.patch"]);
    // Where there is no git, the diff's own tests say as much.
    let Ok(output) = git.output() else { return };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(files_of(&manifests), *after);
}

const UNPLACED: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    checksums:
    - {annotation: checksum/agent, configMaps: [agent]}
  generate:
  - resource:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: agent}
      data: {level: info}
";

#[test]
fn a_folder_that_is_written_in_several_ways_is_one() {
    let temp = folder(&[]);
    fs::write(temp.path().join("policy.yaml"), UNPLACED).unwrap();
    fs::create_dir_all(temp.path().join("shop/deep")).unwrap();
    let files = ["shop/a.yaml", "shop/b.yaml", "shop/deep/c.yaml", "d.yaml"];
    for file in files {
        let text = workload("orders").replace("  namespace: shop\n", "");
        fs::write(temp.path().join(file), text).unwrap();
    }
    let real = fs::canonicalize(temp.path()).unwrap();
    let real = real.to_str().unwrap();
    let apply = |paths: [&str; 4]| {
        let paths = paths.map(|path| path.replace("REAL", real));
        let mut args = vec!["apply", "-p", "policy.yaml"];
        args.extend(paths.iter().map(String::as_str));
        let out = podgraft(temp.path(), &args);
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    let [a, b, c, d] = files;
    let plain = apply([a, b, c, d]);
    assert!(plain.contains("kind: ConfigMap"), "{plain}");
    assert_eq!(
        apply([a, "REAL/shop/b.yaml", "REAL/shop/deep", "REAL/d.yaml"]),
        plain
    );
    assert_eq!(
        apply(["REAL/shop/a.yaml", "shop/../shop/b.yaml", c, "./d.yaml"]),
        plain
    );
    assert_eq!(apply(["shop//a.yaml", "shop/./b.yaml", c, d]), plain);
    let upward = apply([d, c, b, a]);
    assert_eq!(
        apply([
            d,
            "REAL/shop/deep/c.yaml",
            "shop/deep/../b.yaml",
            "REAL/shop/a.yaml"
        ]),
        upward
    );
    assert_eq!(
        apply(["REAL/d.yaml", c, "REAL/shop/deep/../b.yaml", a]),
        upward
    );
}

#[test]
fn a_document_at_the_end_of_a_part_of_a_file_is_not_lost() {
    let text = format!(
        "{}---\n{POLICY}---\n{NAMESPACE}---\n{SETTINGS}",
        workload("orders")
    );
    let folder = folder(&[("all.yaml", &text)]);
    let output = podgraft(folder.path(), &["apply", "-q", "-p", "@input", "manifests"]);
    let stream = String::from_utf8(output.stdout).expect("it is text");
    let names: Vec<String> = values(&stream)
        .iter()
        .map(|value| value["metadata"]["name"].to_string())
        .collect();
    assert_eq!(
        names,
        ["\"orders\"", "\"agent\"", "\"shop\"", "\"settings\""]
    );
}

#[test]
fn several_threads_come_to_the_same() {
    let padding = "# padding\n".repeat(4000);
    let many: Vec<String> = (0..150)
        .map(|number| workload(&format!("app-{number}")) + &padding)
        .collect();
    let text = format!("{}---\n{NAMESPACE}---\n{SETTINGS}", many.join("---\n"));
    let folder = folder(&[("all.yaml", &text)]);
    let run = |threads| {
        podgraft(
            folder.path(),
            &[
                "apply",
                "-p",
                "policy.yaml",
                "--threads",
                threads,
                "manifests",
            ],
        )
    };
    let (single, several) = (run("1"), run("4"));
    assert!(
        single.status.success(),
        "{}",
        String::from_utf8_lossy(&single.stderr)
    );
    assert!(single.stdout == several.stdout && single.stderr == several.stderr);
    assert_eq!(
        String::from_utf8_lossy(&single.stdout)
            .matches("name: agent\n")
            .count(),
        1
    );
}

/// Every golden case of several documents, and what comes of them in the opposite order.
#[test]
fn the_order_of_documents_makes_no_difference() {
    let mut compared = 0;
    for area in ["checksums", "env", "generate", "select"] {
        for entry in
            fs::read_dir(Path::new("testdata/cases").join(area)).expect("testdata is readable")
        {
            let case = entry.expect("the entry is readable").path();
            let Ok(input) = fs::read_to_string(case.join("input.yaml")) else {
                continue;
            };
            let documents: Vec<&str> = input
                .split("---\n")
                .filter(|document| !document.trim().is_empty())
                .collect();
            // A directive belongs to what follows it.
            if documents.len() < 2 || input.contains("%YAML") || !input.ends_with('\n') {
                continue;
            }
            let policies = policies(&case);
            let backward: Vec<&str> = documents.iter().rev().copied().collect();
            let (first, second) = (
                result(&input, &policies),
                result(&backward.join("---\n"), &policies),
            );
            assert_eq!(first, second, "{}", case.display());
            compared += 1;
        }
    }
    assert!(
        compared > 30,
        "only {compared} cases have several documents"
    );
}

fn policies(case: &Path) -> Vec<Policy> {
    let text = fs::read_to_string(case.join("policy.yaml")).expect("a case has a policy");
    read(
        vec![PolicyFile {
            name: "policy.yaml".into(),
            text,
        }],
        &[],
    )
    .0
}

/// The documents that come out, or the messages of what is wrong, both sorted.
fn result(text: &str, policies: &[Policy]) -> Result<Vec<String>, Vec<String>> {
    let report = graft(
        &Arc::from("input.yaml"),
        text.as_bytes(),
        policies,
        &Options::default(),
    );
    let errors = report
        .diagnostics
        .iter()
        .filter(|problem| problem.is_error());
    let mut messages: Vec<String> = errors.map(|problem| problem.message.clone()).collect();
    messages.sort();
    if !messages.is_empty() {
        return Err(messages);
    }
    let output = String::from_utf8(splice(text.as_bytes(), &report.edits)).expect("it is text");
    Ok(sorted(values(&output)))
}

/// Without what is generated, so that an upgrade takes the ConfigMap out.
const WITHOUT: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject: {podAnnotations: {agent: without}}
";

#[test]
fn what_is_generated_no_longer_goes_whichever_way_the_text_comes() {
    let folder = folder(&[(
        "a.yaml",
        &[NAMESPACE, "---\n", SETTINGS, "---\n", &workload("orders")].concat(),
    )]);
    let run = |args: &[&str]| {
        podgraft(
            folder.path(),
            &[&["apply", "-q", "--record", "--diagnostics", "short"], args].concat(),
        )
    };
    assert!(
        run(&["-p", "policy.yaml", "--in-place", "manifests/a.yaml"])
            .status
            .success()
    );
    fs::write(folder.path().join("policy.yaml"), WITHOUT).expect("the folder is writable");
    let injected = files_of(&folder.path().join("manifests"))["a.yaml"].clone();
    assert!(injected.contains("name: agent\n"), "{injected}");
    let named = run(&["-p", "policy.yaml", "manifests/a.yaml"]);
    let stream = run(&["-p", "policy.yaml", "--stream", "manifests/a.yaml"]);
    let mut held = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    let stdin = fs::File::open(folder.path().join("manifests/a.yaml")).expect("it is there");
    held.args(["apply", "-q", "--record", "-p", "policy.yaml"])
        .current_dir(folder.path())
        .stdin(stdin);
    let held = held.output().expect("the program runs");
    assert!(
        run(&["-p", "policy.yaml", "--in-place", "manifests/a.yaml"])
            .status
            .success()
    );
    let wanted = files_of(&folder.path().join("manifests"))["a.yaml"].clone();
    assert!(
        wanted.contains("agent: without")
            && !wanted.contains("kind: ConfigMap\nmetadata:\n  name: agent")
    );
    assert_eq!(String::from_utf8_lossy(&named.stdout), wanted);
    assert_eq!(String::from_utf8_lossy(&held.stdout), wanted);
    let messages = String::from_utf8_lossy(&stream.stderr);
    assert!(
        stream.status.code() == Some(2) && messages.contains("too-late"),
        "{messages}"
    );
}

#[test]
fn a_stream_knows_what_came_before_and_refuses_what_comes_too_late() {
    let facts = [NAMESPACE, "---\n", SETTINGS, "---\n"].concat();
    let folder = folder(&[("a.yaml", &[&facts, &*workload("orders")].concat())]);
    let run = |args: &[&str]| {
        podgraft(
            folder.path(),
            &[
                &["apply", "--diagnostics", "short", "-p", "policy.yaml"],
                args,
            ]
            .concat(),
        )
    };
    let stream = run(&["--stream", "manifests/a.yaml"]);
    assert!(
        stream.status.success(),
        "{}",
        String::from_utf8_lossy(&stream.stderr)
    );
    assert_eq!(stream.stdout, run(&["manifests/a.yaml"]).stdout);
    for late in [NAMESPACE, SETTINGS] {
        let before = if late == NAMESPACE {
            SETTINGS
        } else {
            NAMESPACE
        };
        let text = [before, "---\n", &workload("orders"), "---\n", late].concat();
        fs::write(folder.path().join("manifests/b.yaml"), text).expect("the folder is writable");
        assert!(run(&["manifests/b.yaml"]).status.success());
        let stream = run(&["--stream", "manifests/b.yaml"]);
        let messages = String::from_utf8_lossy(&stream.stderr);
        assert!(
            stream.status.code() == Some(2) && stream.stdout.is_empty(),
            "{messages}"
        );
        assert!(
            messages.contains("too-late") || messages.contains("missing-object"),
            "{messages}"
        );
    }
}

/// Generates a ConfigMap.
const GENERATING: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject: {env: [{name: AGENT, value: 'on'}]}
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: agent, namespace: shop}, data: {level: info}}
";

/// Comes later, and generates nothing.
const NEWER: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: newer}
spec:
  inject: {podSpec: {tolerations: [{key: x, operator: Exists}]}}
";

#[test]
fn what_an_object_of_another_kind_needs_stays() {
    let cart = workload("cart");
    // Behind a key without a value a new line begins for whatever is put there.
    let text = format!("{}---\n{cart}        resources:", workload("orders"));
    let folder = folder(&[("all.yaml", &text)]);
    fs::write(folder.path().join("agent.yaml"), GENERATING).expect("the folder is writable");
    fs::write(folder.path().join("newer.yaml"), NEWER).expect("the folder is writable");
    let run = |args: &[&str]| {
        let output = podgraft(
            folder.path(),
            &[args, &["-q", "manifests/all.yaml"]].concat(),
        );
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("it is text")
    };
    run(&["apply", "--in-place", "--record", "-p", "agent.yaml"]);
    let file = folder.path().join("manifests/all.yaml");
    let injected = fs::read_to_string(&file).expect("it was written");
    // podgraft does not know the first one any more, which still needs the object behind it.
    let unknown = injected.replacen("kind: Deployment", "kind: Rollout", 1);
    // Somebody took the last line end away only after the injection.
    let without_room = unknown.replace(",\"room\":{\"unended\":true}", "");
    assert!(without_room.len() < unknown.len());
    for text in [unknown, without_room] {
        fs::write(&file, text).expect("the folder is writable");
        let undone = run(&["undo"]);
        assert!(
            undone.contains("level: info") && undone.trim_end().ends_with("resources:"),
            "{undone}"
        );
        run(&["apply", "--in-place", "-p", "newer.yaml"]);
        assert!(
            fs::read_to_string(&file)
                .expect("it was written")
                .contains("operator: Exists")
        );
        assert_eq!(run(&["undo"]), undone);
    }
}
