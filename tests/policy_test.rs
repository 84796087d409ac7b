//! `podgraft policy test`: tests that pass, fail with a diff, or cannot be run.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::program::{Place, stdout_of};

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

fn run_tests(spec: &str, args: &[&str]) -> (Option<i32>, String) {
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
        let is_policy = path.extension().is_some_and(|ending| ending == "yaml");
        assert!(
            !is_policy || Path::new("policies/tests").join(&name).exists(),
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
    let (code, run_tests) = run_tests(spec, &[]);
    assert_eq!(code, Some(0), "{run_tests}");
    assert!(
        run_tests.ends_with("1 test: 1 passed, 0 failed\n"),
        "{run_tests}"
    );
}

#[test]
fn the_output_has_the_generated_objects_as_apply_prints_them() {
    let folder = folder("  expect: {output: expected.yaml}\n");
    let resource = "{apiVersion: v1, kind: ConfigMap, metadata: {name: agent}, data: {level: low}}";
    let policy = format!("{POLICY}  generate: [{{resource: {resource}}}]\n");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("the folder is writable")
    };
    write("policy.yaml", &policy);
    write("input.yaml", INPUT);
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    let command = command.current_dir(folder.path());
    let command = command.args(["apply", "-q", "-p", "policy.yaml", "input.yaml"]);
    let applied = stdout_of(&command.output().expect("the program runs"));
    assert_eq!(applied.matches("kind: ConfigMap").count(), 1, "{applied}");
    write("expected.yaml", &applied);
    let output = run(folder.path(), &["."]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout_of(&output));
}

/// Of a folder, what is no manifest is left out, and the lock file says what an earlier run injected.
#[test]
fn the_output_for_a_folder_is_what_apply_prints() {
    let folder = folder("");
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        fs::write(path(name), text).expect("the folder is writable");
    };
    fs::create_dir(path("app")).expect("the folder is writable");
    write("app/a.yaml", "# notes\n");
    write("app/b.json", "{\"name\": \"x\"}\n");
    write("app/c.yaml", INPUT);
    write(
        "app/d.yaml",
        &INPUT.replace("web", "gone").replace(
            "metadata: {name: gone}",
            "metadata: {name: gone, annotations: {podgraft.dev/applied: other}}",
        ),
    );
    let apply = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
        let command = command.current_dir(folder.path());
        let command = command.args(["apply", "-q", "-p", "policy.yaml", "app"]);
        stdout_of(&command.args(args).output().expect("the program runs"))
    };
    write(
        "test.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: t}\n\
        spec:\n  policies: [policy.yaml]\n  inputs: [app]\n  \
        expect: {output: expected.yaml, warnings: [orphaned]}\n",
    );
    let passes = || {
        write("expected.yaml", &apply(&[]));
        let output = run(folder.path(), &["test.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{}", stdout_of(&output));
    };
    passes();
    apply(&["--in-place"]);
    write(
        "policy.yaml",
        &POLICY.replace("default: shop", "default: store"),
    );
    assert!(apply(&[]).contains("team: \"store\""));
    passes();
}

#[test]
fn policies_may_stand_among_the_manifests() {
    let folder = folder("  expect: {output: expected.yaml}\n");
    let path = |name: &str| folder.path().join(name);
    let test = fs::read_to_string(path("test.yaml")).expect("it is there");
    let test = test.replace("policy.yaml", "\"@input\"");
    fs::create_dir(folder.path().join("tests")).expect("the folder is writable");
    let inputs = "[../input.yaml, ../policy.yaml]";
    let with_policy = test.replace("[input.yaml]", inputs);
    let with_policy = with_policy.replace("expected.yaml", "../both.yaml");
    fs::write(path("tests/test.yaml"), with_policy).expect("it is writable");
    fs::write(path("both.yaml"), expected() + "---\n" + POLICY).expect("it is writable");
    let output = run(folder.path(), &["tests"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    fs::write(path("test.yaml"), test).expect("it is writable");
    let output = run(folder.path(), &["test.yaml"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(
        shown.contains("there is no policy among the manifests"),
        "{shown}"
    );
}

#[test]
fn another_output_is_shown_as_a_diff() {
    let (code, run_tests) = run_tests(
        "  params: ['agent:team=web']\n  expect: {output: expected.yaml}\n",
        &[],
    );
    assert_eq!(code, Some(1), "{run_tests}");
    for line in [
        "--- expected.yaml",
        "-      labels: {app: orders, team: \"shop\"}",
        "+      labels: {app: orders, team: \"web\"}",
    ] {
        assert!(run_tests.contains(line), "{line} is not in\n{run_tests}");
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
        let (code, run_tests) = run_tests(&format!("  expect: {{{expect}}}\n"), &[]);
        assert!(
            code == Some(1) && run_tests.contains(wanted),
            "{wanted} is not in\n{run_tests}"
        );
    }
}

#[test]
fn junit_names_what_fails() {
    let (code, run_tests) = run_tests(
        "  params: ['team=<&\">']\n  expect: {output: expected.yaml, warnings: []}\n",
        &["-o", "junit"],
    );
    assert_eq!(code, Some(1), "{run_tests}");
    assert!(
        run_tests.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "),
        "{run_tests}"
    );
    assert!(
        run_tests.contains("<failure message=") || run_tests.contains("not refused"),
        "{run_tests}"
    );
    assert!(
        run_tests.ends_with("</testsuites>\n") && !run_tests.contains("team=<"),
        "{run_tests}"
    );
    assert_eq!(
        run_tests.matches("<testcase").count(),
        run_tests.matches("</testcase>").count() + run_tests.matches("\"/>").count()
    );
    // What XML cannot hold is shown as its code.
    let spec = "  params: [\"b\\x1b=1\"]\n  expect: {warnings: []}\n";
    let (_, run_tests) = self::run_tests(spec, &["-o", "junit"]);
    assert!(run_tests.contains("a parameter `b\\u{1b}`"), "{run_tests}");
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
        (
            "  expect: {output: absent.yaml}\n",
            "`podgraft policy test --update ./test.yaml` writes what comes out",
        ),
        (
            "  expect: {output: expected.yaml, refused: [conflict]}\n",
            "an output of a run that is refused",
        ),
        (
            "  params: [team]\n  expect: {warnings: []}\n",
            "is no setting",
        ),
    ] {
        let (code, run_tests) = run_tests(spec, &[]);
        assert!(
            code == Some(2) && run_tests.contains(wanted),
            "{code:?}: {wanted} is not in\n{run_tests}"
        );
    }
    let nothing = TempDir::new().expect("a folder");
    fs::write(nothing.path().join("a.yaml"), INPUT).expect("the folder is writable");
    let output = run(nothing.path(), &["."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no test in"));
}

#[test]
fn what_a_test_lacks_is_said_with_its_place() {
    for (from, to, message) in [
        (
            "policies: [policy.yaml]",
            "policies: []",
            "the test has no policy",
        ),
        (
            "inputs: [input.yaml]",
            "inputs: []",
            "the test has no manifests",
        ),
        (
            "policies: [policy.yaml]",
            "policies: [gone.yaml]",
            "`gone.yaml` cannot",
        ),
        (
            "inputs: [input.yaml]",
            "inputs: [gone.yaml]",
            "`gone.yaml` cannot",
        ),
        ("spec:", "sepc:", "unknown field `sepc` in the test"),
    ] {
        let folder = folder("  expect: {warnings: []}\n");
        let path = folder.path().join("test.yaml");
        let test = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, test.replace(from, to)).expect("it is writable");
        let output = run(folder.path(), &["test.yaml"]);
        let run_tests = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{run_tests}");
        assert!(
            run_tests.contains(message) && run_tests.contains("[test.yaml:"),
            "{run_tests}"
        );
    }
}

#[test]
fn an_update_overwrites_no_file_that_is_read() {
    for name in ["input.yaml", "policy.yaml", "test.yaml", "./input.yaml"] {
        let folder = folder(&format!("  expect: {{output: {name}}}\n"));
        let before = fs::read(folder.path().join(name)).expect("it is there");
        let output = run(folder.path(), &["--update", "test.yaml"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("is read by this run"), "{text}");
        assert!(fs::read(folder.path().join(name)).expect("it is there") == before);
    }
    // The output of the first test is the input of the second one, which expects no change.
    let folder = folder("  expect: {output: out.yaml}\n");
    let path = folder.path().join("test.yaml");
    let first = fs::read_to_string(&path).expect("it is there");
    let second = first.replace("[input.yaml]", "[out.yaml]");
    fs::write(&path, format!("{first}---\n{second}")).expect("it is writable");
    let output = run(folder.path(), &["--update", "test.yaml"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn two_tests_do_not_overwrite_each_others_output() {
    let folder = folder("  expect: {output: out.yaml}\n");
    let path = folder.path().join("test.yaml");
    let first = fs::read_to_string(&path).expect("it is there");
    let second = format!("{first}  params: ['team=web']\n").replace("name: t}", "name: u}");
    fs::write(&path, format!("{first}---\n{second}")).expect("it is writable");
    let output = run(folder.path(), &["--update", "test.yaml"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("the expected output of the test `t`"),
        "{text}"
    );
    assert!(!folder.path().join("out.yaml").exists());
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
    let (code, run_tests) = suggest("policies/tests/catalogue/dapr/input.yaml");
    assert_eq!(code, Some(0), "{run_tests}");
    assert!(run_tests.starts_with("builtin:dapr  "), "{run_tests}");
    assert!(
        run_tests.contains("  Deployment shop/plain has dapr.io/enabled (policies/tests/catalogue/dapr/input.yaml:3)\n"),
        "{run_tests}"
    );
    let param = "--param dapr:trustAnchors=...";
    assert!(run_tests.contains(param), "{run_tests}");
    assert!(!run_tests.contains("not-asked-for"), "{run_tests}");
    let (code, run_tests) = suggest("testdata/builtins/input.yaml");
    assert_eq!(code, Some(0), "{run_tests}");
    assert!(
        run_tests.starts_with("nothing in the manifests asks for"),
        "{run_tests}"
    );
    let java = "testdata/cases/opentelemetry/java";
    let (_, run_tests) = suggest(java);
    let how = format!("  podgraft diff -p {java}/policy.yaml {java}\n");
    assert!(run_tests.contains(&how), "{run_tests}");
    let title = "builtin:opentelemetry-java  ";
    assert!(run_tests.contains(title), "{run_tests}");
    let (_, run_tests) = suggest(&format!("{java}/input.yaml"));
    let how = format!("  podgraft diff -p instrumentation.yaml {java}/input.yaml\n");
    assert!(run_tests.contains(&how), "{run_tests}");
    let resources = "policies/tests/catalogue/cloud-sql-proxy/resources.yaml";
    let (_, run_tests) = suggest(resources);
    assert!(
        run_tests.starts_with("builtin:cloud-sql-proxy  "),
        "{run_tests}"
    );
    let how = format!("  podgraft diff -p {resources} {resources}\n");
    assert!(run_tests.contains(&how), "{run_tests}");
    assert_eq!(suggest("no-such-file.yaml"), (Some(2), String::new()));
}

#[test]
fn the_commands_that_suggest_names_can_be_typed() {
    let place = Place::new();
    let resource = |name: &str| {
        format!(
            "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\n\
             metadata: {{name: {name}, namespace: shop}}\nspec: {{}}\n"
        )
    };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: shop\n  annotations:\n    \
               instrumentation.opentelemetry.io/inject-java: d\nspec:\n  containers:\n  - {name: app, image: a}\n";
    for name in ["a", "b", "c", "d"] {
        place.write(format!("m/{name}.yaml"), resource(name));
    }
    place.write("m/pod.yaml", pod);
    let all = format!("{}---\n{pod}", resource("d"));
    for paths in ["-", "m"] {
        let asked = place.run_with_stdin(&["policy", "suggest", paths], &all);
        let command = format!("diff -p @input {paths}");
        let said = stdout_of(&asked);
        assert!(said.contains(&format!("  podgraft {command}\n")), "{said}");
        let words: Vec<&str> = command.split(' ').collect();
        let shown = stdout_of(&place.run_with_stdin(&words, &all));
        assert!(shown.contains("autoinstrumentation-java"), "{shown}");
    }
}

#[test]
fn mistakes_in_params_and_versions_are_shown_at_their_places() {
    for (field, place) in [
        ("params: ['team=web', 'team']", "test.yaml:7:24"),
        ("kubeVersion: '2.1'", "test.yaml:7:16"),
    ] {
        let spec = format!("  {field}\n  expect: {{output: expected.yaml}}\n");
        let (code, said) = run_tests(&spec, &[]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(&format!("{place}]")), "{place} in {said}");
    }
}

#[test]
fn an_update_that_is_refused_writes_nothing() {
    let folder = folder("  expect: {output: out.yaml}\n");
    let path = folder.path().join("test.yaml");
    let first = fs::read_to_string(&path).expect("it is there");
    let second = first.replace("out.yaml", "expected.yaml");
    let wrong = second.replace("[input.yaml]", "[nowhere.yaml]");
    fs::write(&path, format!("{first}---\n{second}---\n{wrong}")).expect("it is writable");
    fs::write(folder.path().join("expected.yaml"), "before\n").expect("it is writable");
    let output = run(folder.path(), &["--update", "test.yaml"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(!text.contains("wrote"), "{text}");
    assert!(!folder.path().join("out.yaml").exists());
    let kept = fs::read_to_string(folder.path().join("expected.yaml"));
    assert_eq!(kept.expect("it is there"), "before\n");
    fs::write(&path, format!("{first}---\n{second}")).expect("it is writable");
    let output = run(folder.path(), &["--update", "test.yaml"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("wrote out.yaml\nwrote expected.yaml\n"),
        "{text}"
    );
}

#[test]
fn a_test_that_is_not_utf8_is_an_error() {
    let folder = folder("  expect: {output: expected.yaml}\n");
    let text = fs::read_to_string(folder.path().join("test.yaml")).expect("it is there");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).expect("the folder is writable")
    };
    write("other.bin.yaml", b"\xff\x00 is no test");
    let output = run(folder.path(), &["."]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let latin1 = [b"# B\xfcro\n", text.as_bytes()].concat();
    let utf16 = text.encode_utf16().flat_map(u16::to_le_bytes);
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(utf16).collect();
    for bytes in [latin1, utf16] {
        write("second.yaml", &bytes);
        let output = run(folder.path(), &["."]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("second.yaml` is not UTF-8"), "{said}");
    }
}
