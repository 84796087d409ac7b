//! `podgraft policy test`: tests that pass, fail with a diff, or cannot be run.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const POLICY: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  params: [{name: team, default: shop}]
  match: {names: [orders]}
  inject: {podLabels: {team: '${params.team}'}}
";

const INPUT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
spec:
  template:
    metadata:
      labels: {app: orders}
    spec:
      containers: [{name: app, image: a}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: app, image: a}]}}}
";

fn expected() -> String {
    let marked = INPUT.replacen(
        "  name: orders\n",
        "  name: orders\n  annotations:\n    podgraft.dev/applied: agent\n",
        1,
    );
    marked.replacen("{app: orders}", "{app: orders, team: \"shop\"}", 1)
}

/// A folder with a policy, manifests, and tests with this `spec` beside `policies` and `inputs`.
fn folder(spec: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("the folder is writable")
    };
    write("policy.yaml", POLICY);
    write("input.yaml", INPUT);
    write("expected.yaml", &expected());
    let head = "apiVersion: podgraft.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: t}\nspec:\n";
    write(
        "test.yaml",
        &format!("{head}  policies: [policy.yaml]\n  inputs: [input.yaml]\n{spec}"),
    );
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    let command = command
        .current_dir(folder)
        .args(["policy", "test", "--color", "never"])
        .args(args);
    command.output().expect("the program runs")
}

fn said(spec: &str, args: &[&str]) -> (Option<i32>, String) {
    let folder = folder(spec);
    let output = run(folder.path(), &[args, &["."]].concat());
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn the_built_in_policies_pass_their_tests() {
    let output = run(Path::new("."), &["policies/tests"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("jmx-exporter-port-taken"));
    for policy in fs::read_dir("policies").expect("they are there") {
        let path = policy.expect("the entry is readable").path();
        let name = path.file_name().expect("it has a name").to_owned();
        assert!(
            path.is_dir() || Path::new("policies/tests").join(&name).exists(),
            "{name:?} has no test"
        );
    }
}

#[test]
fn everything_as_expected_passes() {
    let spec = "  expect:
    output: expected.yaml
    warnings: []
    results:
    - {kind: Deployment, name: orders, policy: agent, result: Injected, reason: '*label team*'}
    - {kind: Deploy*, name: w*, result: Skipped}
";
    let (code, said) = said(spec, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with("1 test: 1 passed, 0 failed\n"), "{said}");
}

#[test]
fn another_output_is_shown_as_a_diff() {
    let (code, said) = said(
        "  params: ['agent:team=web']\n  expect: {output: expected.yaml}\n",
        &[],
    );
    assert_eq!(code, Some(1), "{said}");
    for line in [
        "--- expected.yaml",
        "-      labels: {app: orders, team: \"shop\"}",
        "+      labels: {app: orders, team: \"web\"}",
    ] {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
}

#[test]
fn what_happens_to_a_workload_otherwise_is_said() {
    for (expect, wanted) in [
        (
            "results: [{kind: Deployment, name: web, result: Injected}]",
            "Skipped by agent (",
        ),
        (
            "results: [{kind: Deployment, name: cart, result: Injected}]",
            "no such workload",
        ),
        (
            "results: [{kind: Deployment, name: orders, result: Injected, reason: volume*}]",
            "Injected by agent (",
        ),
        ("refused: [conflict]", "there are: none"),
        ("warnings: [hidden-env]", "there are: none"),
    ] {
        let (code, said) = said(&format!("  expect: {{{expect}}}\n"), &[]);
        assert!(
            code == Some(1) && said.contains(wanted),
            "{wanted} is not in\n{said}"
        );
    }
}

#[test]
fn junit_names_what_fails() {
    let (code, said) = said(
        "  params: ['team=<&\">']\n  expect: {output: expected.yaml, warnings: []}\n",
        &["-o", "junit"],
    );
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "),
        "{said}"
    );
    assert!(
        said.contains("<failure message=") || said.contains("not refused"),
        "{said}"
    );
    assert!(
        said.ends_with("</testsuites>\n") && !said.contains("team=<"),
        "{said}"
    );
    assert_eq!(
        said.matches("<testcase").count(),
        said.matches("</testcase>").count() + said.matches("\"/>").count()
    );
}

#[test]
fn what_cannot_be_run_exits_2() {
    for (spec, wanted) in [
        ("  expect: {}\n", "the test expects nothing"),
        (
            "  expect: {refused: [conflct]}\n",
            "there is no diagnostic code `conflct`",
        ),
        ("  exepct: {}\n", "did you mean `expect`?"),
        ("  expect: {output: absent.yaml}\n", "absent.yaml"),
        (
            "  expect: {output: expected.yaml, refused: [conflict]}\n",
            "an output of a run that is refused",
        ),
        (
            "  params: [team]\n  expect: {warnings: []}\n",
            "is no setting",
        ),
    ] {
        let (code, said) = said(spec, &[]);
        assert!(
            code == Some(2) && said.contains(wanted),
            "{code:?}: {wanted} is not in\n{said}"
        );
    }
    for (from, message) in [
        ("policies: [policy.yaml]", "the test has no policy"),
        ("inputs: [input.yaml]", "the test has no manifests"),
    ] {
        let folder = folder("  expect: {warnings: []}\n");
        let path = folder.path().join("test.yaml");
        let test = fs::read_to_string(&path).expect("it is there");
        let key = from.split(':').next().unwrap_or_default();
        fs::write(&path, test.replace(from, &format!("{key}: []"))).expect("it is writable");
        let output = run(folder.path(), &["test.yaml"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(message) && said.contains("[test.yaml:"),
            "{said}"
        );
    }
    let nothing = TempDir::new().expect("a folder");
    fs::write(nothing.path().join("a.yaml"), INPUT).expect("the folder is writable");
    let output = run(nothing.path(), &["."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no test in"));
}

#[test]
fn manifests_say_which_built_in_policies_they_ask_for() {
    let suggest = |path: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_podgraft"))
            .args(["policy", "suggest", path])
            .output()
            .expect("the program runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, said) = suggest("policies/tests/catalogue/dapr/input.yaml");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("builtin:dapr  "), "{said}");
    assert!(
        said.contains("  Deployment shop/plain has dapr.io/enabled (policies/tests/catalogue/dapr/input.yaml:3)\n"),
        "{said}"
    );
    assert!(said.contains("--param dapr:trustAnchors=..."), "{said}");
    assert!(!said.contains("not-asked-for"), "{said}");
    let (code, said) = suggest("testdata/builtins/input.yaml");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("nothing asks for"), "{said}");
    let (_, said) = suggest("testdata/cases/opentelemetry/java");
    assert!(
        said.contains("  podgraft diff -p testdata/cases/opentelemetry/java/policy.yaml ...\n"),
        "{said}"
    );
    assert!(said.contains("builtin:opentelemetry-java  "), "{said}");
    let (_, said) = suggest("testdata/cases/opentelemetry/java/input.yaml");
    assert!(
        said.contains("  podgraft diff -p instrumentation.yaml ...\n"),
        "{said}"
    );
    let resources = "policies/tests/catalogue/cloud-sql-proxy/resources.yaml";
    let (_, said) = suggest(resources);
    assert!(said.starts_with("builtin:cloud-sql-proxy  "), "{said}");
    let how = format!("  podgraft diff -p {resources} ...\n");
    assert!(said.contains(&how), "{said}");
    assert_eq!(suggest("no-such-file.yaml").0, Some(2));
}
