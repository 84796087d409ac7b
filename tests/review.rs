//! What `diff` shows to people: secrets, sizes, and the schema of its JSON. The folders of `testdata/review` are run by
//! `tests/golden.rs`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{AGENT, Place, formats, stdout_of};

fn diff(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    let output = command
        .current_dir(folder)
        .args(["diff", "-q"])
        .args(args)
        .output()
        .expect("the program runs");
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

const POLICIES: &str = "policies.yaml";

/// Many workloads with a policy that has a secret.
fn many(number: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::copy("tests/page/policies.yaml", folder.path().join(POLICIES))
        .expect("the policies can be copied");
    let deployment =
        fs::read_to_string("testdata/review/diff-as-json/input.yaml").expect("it is readable");
    let deployment = deployment.split("---\n").next().unwrap_or_default();
    let all: Vec<String> = (0..number)
        .map(|at| deployment.replace("app-0", &format!("app-{at}")))
        .collect();
    fs::write(folder.path().join("many.yaml"), all.join("---\n")).expect("the folder is writable");
    folder
}

fn formats_but_the_patch() -> Vec<String> {
    let mut formats = formats("diff");
    formats.retain(|format| format != "unified");
    formats
}

#[test]
fn each_format_has_a_folder_that_shows_it() {
    let folders = fs::read_dir("testdata/review").expect("it is readable");
    let command = |folder: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(folder.ok()?.path().join("command")).ok()
    };
    let commands: Vec<String> = folders.filter_map(command).collect();
    for format in formats("diff") {
        let start = format!("-o {format} ");
        let is_shown = |line: &String| line.starts_with("diff ") && line.contains(&start);
        assert!(
            commands.iter().any(is_shown),
            "no folder of testdata/review has the command `diff -o {format} ...`"
        );
    }
}

#[test]
fn only_a_patch_shows_secrets() {
    let folder = many(3);
    for format in formats_but_the_patch() {
        let shown = diff(folder.path(), &["-p", POLICIES, "-o", &format, "many.yaml"]);
        assert!(!shown.contains("not-for-everybody"), "{format}");
    }
    assert!(diff(folder.path(), &["-p", POLICIES, "many.yaml"]).contains("not-for-everybody"));
}

const SECRET_METADATA: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    podAnnotations: {auth/token: not-for-everybody, secret.example.com/port: plain-port}
    podLabels: {api-key: not-for-everybody}
    patches:
    - patchType: JSONPatch
      scope: PodTemplate
      patch: [{op: add, path: /metadata/annotations/password, value: not-for-everybody}]
";

const IN_FLOW: &str = "\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: flow}, spec: {template: {metadata: \
{annotations: {client-secret: not-for-everybody, b: c}}, spec: {containers: [{name: app, image: app}]}}}}
";

#[test]
fn only_a_patch_shows_secrets_of_annotations_and_labels() {
    let folder = many(1);
    fs::write(folder.path().join(POLICIES), SECRET_METADATA).expect("the folder is writable");
    fs::write(folder.path().join("flow.yaml"), IN_FLOW).expect("the folder is writable");
    for format in formats_but_the_patch() {
        let shown = diff(folder.path(), &["-p", POLICIES, "-o", &format, "."]);
        assert!(!shown.contains("not-for-everybody"), "{format}: {shown}");
        let has_lines = ["json", "markdown", "html"].contains(&format.as_str());
        assert_eq!(shown.contains("plain-port"), has_lines, "{format}");
    }
    assert!(diff(folder.path(), &["-p", POLICIES, "."]).contains("not-for-everybody"));
}

#[test]
fn a_comment_has_no_more_than_github_takes() {
    let folder = many(700);
    let comment = diff(
        folder.path(),
        &["-p", POLICIES, "-o", "markdown", "many.yaml"],
    );
    assert!(
        comment.len() <= 65_536 && comment.len() > 60_000,
        "{}",
        comment.len()
    );
    assert!(
        comment.contains("omitted: a comment") && comment.contains("| Deployment `team-0/app-0` |")
    );
    assert_eq!(
        comment.matches("<details>").count(),
        comment.matches("</details>").count()
    );
}

#[test]
fn no_form_for_people_shows_the_secrets_of_other_items_on_the_same_lines() {
    let place = Place::new();
    place.write(
        "policy.yaml",
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject: {podLabels: {zz: b}, annotations: {a/b: c}, env: [{name: NEW, value: x}]}
",
    );
    place.write("list.json", r#"{
  "apiVersion" : "v1",
  "kind" : "List",
  "items" : [ {
    "apiVersion" : "v1", "kind" : "Secret", "metadata" : { "name" : "s" },
    "stringData" : { "a" : "abc123def" } }, {
    "apiVersion" : "apps/v1", "kind" : "Deployment", "metadata" : { "name" : "d",
      "annotations" : { "example.com/token" : "abc123def" }
    },
    "spec" : { "template" : { "metadata" : { "labels" : { "app" : "d" } },
        "spec" : { "containers" : [ { "name" : "app", "image" : "x:1", "env" : [ { "value" : "abc123def", "name" : "B_TOKEN" } ] } ] } } }
  }, { "apiVersion" : "v1", "kind" : "Secret", "metadata" : { "name" : "t" }, "data" : { "a" : "abc123def" } } ]
}
"#);
    for form in ["json", "markdown", "html", "summary"] {
        let output = place.run(&["diff", "-q", "-o", form, "-p", "policy.yaml", "list.json"]);
        assert_eq!(output.status.code(), Some(1));
        let shown = String::from_utf8(output.stdout).expect("it is text");
        assert!(shown.contains("zz"), "{shown}");
        assert!(!shown.contains("abc123def"), "{shown}");
    }
}

#[test]
fn reports_that_are_shown_beside_the_code_name_files_from_the_root_of_the_repository() {
    let place = Place::new();
    std::fs::create_dir(place.path(".git")).expect("it can be made");
    place.write("policy.yaml", AGENT);
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {runtime: java}}\nspec: {containers: [{name: a, image: a:1}]}\n";
    place.write("apps/one/a.yaml", pod);
    let whole = place.path("apps/one").display().to_string();
    for folder in [".", "apps", "apps/one"] {
        for (command, form, wanted) in [
            ("check", "github", "file=apps/one/a.yaml,"),
            ("check", "sarif", "\"uri\": \"apps/one/a.yaml\""),
            ("diff", "sarif", "\"uri\": \"apps/one/a.yaml\""),
        ] {
            let policy = place.path("policy.yaml").display().to_string();
            for path in [".", &whole] {
                let args = [command, "-q", "-o", form, "-p", &policy, path];
                let mut run = place.command(&args);
                let output = run.current_dir(place.path(folder)).output();
                let shown = stdout_of(&output.expect("it runs"));
                assert!(shown.contains(wanted), "{folder} {path}: {shown}");
            }
        }
    }
    place.write("policy.yaml", AGENT.replace("inject", "injekt"));
    let args = ["check", "-o", "github", "-p", "../policy.yaml", "."];
    let mut run = place.command(&args);
    let output = run.current_dir(place.path("apps")).output();
    let shown = stdout_of(&output.expect("it runs"));
    assert!(shown.contains("file=policy.yaml,"), "{shown}");
}

#[test]
fn commands_in_help_name_the_paths_of_the_run() {
    let place = Place::new();
    place.write("policy.yaml", AGENT);
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {runtime: java}}\nspec: {containers: [{name: a, image: a:1}]}\n";
    place.write("it's.yaml", pod);
    let shown = stdout_of(&place.run(&["check", "-p", "policy.yaml", "it's.yaml"]));
    let quoted = r"'it'\''s.yaml'";
    for command in ["diff", "apply --in-place"] {
        let wanted = format!("`podgraft {command} -p policy.yaml {quoted}`");
        assert!(shown.contains(&wanted), "{wanted}\n{shown}");
    }
}

#[test]
fn commands_in_help_have_the_flags_that_count_and_no_secrets() {
    let place = Place::new();
    let params = "spec:\n  params: [{name: token, required: true}, {name: team, default: x}]";
    place.write("policy.yaml", AGENT.replacen("spec:", params, 1));
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {runtime: java}}\nspec: {containers: [{name: a, image: a:1}]}\n";
    place.write("a.yaml", pod);
    let given = "-p policy.yaml --param 'team=a b' --forbid privileged --no-config -n shop a.yaml";
    let typed = given
        .split(' ')
        .map(|word| word.replace("'team=a", "team=a b"));
    let mut typed: Vec<String> = typed.filter(|word| word != "b'").collect();
    typed.extend(["--strict", "-q", "-o", "github", "--param", "token=abc"].map(str::to_owned));
    let shown = stdout_of(&place.run(&[&["check".to_owned()], &typed[..]].concat()));
    let flags = given.replace("--forbid", "--param 'token=••••••' --forbid");
    let wanted = format!("`podgraft apply --in-place {flags}`");
    assert!(shown.contains(&wanted), "{wanted}\n{shown}");
    // What stdin held has no name.
    let shown = place.run_with_stdin(&["check", "-p", "policy.yaml", "--param", "token=abc"], pod);
    let wanted = "`podgraft diff -p policy.yaml --param 'token=••••••' PATH`";
    assert!(stdout_of(&shown).contains(wanted), "{}", stdout_of(&shown));
}
