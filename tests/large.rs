//! Texts of many blocks through the program: from a file, from stdin, and as a stream. What comes out is the same.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use tempfile::TempDir;

use crate::program::{self, assert_exit, stderr_of, stdout_of};

const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  match: {kinds: [Deployment], selector: {matchLabels: {lang: java}}}
  inject:
    volumes: [{name: agent, emptyDir: {}}]
    podAnnotations: {a: b}
";

fn deployment(number: usize, lang: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{number}\nspec:\n  template:\n    \
         metadata:\n      labels:\n        lang: {lang}\n    spec:\n      containers:\n        - name: app\n          \
         image: app:1\n"
    )
}

/// What the policy makes of it.
fn injected(number: usize) -> String {
    let original = deployment(number, "java");
    let annotated = original.replace(
        "lang: java\n",
        "lang: java\n      annotations:\n        a: b\n",
    );
    annotated + "      volumes:\n        - name: agent\n          emptyDir: {}\n"
}

fn config_map(number: usize) -> String {
    let lines = "    a line of text that looks like nothing: at all\n".repeat(number % 50);
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-{number}\ndata:\n  text: |\n{lines}    x\n"
    )
}

/// A text of several blocks, and its result.
fn texts() -> (String, String) {
    let (mut before, mut after) = (String::new(), String::new());
    for number in 0..3000 {
        before += &config_map(number);
        after += &config_map(number);
        let is_java = number % 3 == 0;
        let deployment = deployment(number, if is_java { "java" } else { "go" });
        after += &if is_java {
            injected(number)
        } else {
            deployment.clone()
        };
        before += &deployment;
    }
    assert!(before.len() > 3 << 20, "{}", before.len());
    (before, after)
}

struct Place(TempDir);

impl Place {
    fn with(text: &str) -> Self {
        let place = Place(TempDir::new().unwrap());
        fs::write(place.path().join("policy.yaml"), POLICY).unwrap();
        fs::write(place.path().join("all.yaml"), text).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
        command.args(
            "apply --no-marker -p policy.yaml"
                .split(' ')
                .chain(args.split(' ')),
        );
        command.current_dir(self.path()).env("LC_ALL", "C");
        command
    }

    fn run(&self, args: &str) -> Output {
        self.command(args).output().unwrap()
    }

    fn run_with_stdin(&self, args: &str) -> Output {
        self.command(args)
            .stdin(File::open(self.path().join("all.yaml")).unwrap())
            .output()
            .unwrap()
    }
}

fn assert_result(output: &Output, wanted: &str, command: &str) {
    assert_eq!(
        output.status.code(),
        Some(0),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout == wanted.as_bytes(), "{command}");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(
        report.ends_with("3000 workloads: 1000 injected, 2000 not selected; 3000 other objects\n"),
        "{report}"
    );
    assert!(
        report.contains("... and 500 more workloads injected; --report FILE lists all"),
        "{report}"
    );
}

#[test]
fn a_large_text_has_the_same_result_however_it_is_read_and_written() {
    let (text, wanted) = texts();
    let place = Place::with(&text);
    for threads in [1, 3] {
        for args in ["all.yaml", "--stream all.yaml"] {
            let args = format!("--threads {threads} {args}");
            assert_result(&place.run(&args), &wanted, &args);
        }
        for args in ["-", "--stream -"] {
            let args = format!("--threads {threads} {args}");
            assert_result(&place.run_with_stdin(&args), &wanted, &args);
        }
    }
    let in_place = place.run("--in-place all.yaml");
    assert_eq!(in_place.status.code(), Some(0));
    assert!(fs::read_to_string(place.path().join("all.yaml")).unwrap() == wanted);
}

#[test]
fn an_error_far_behind_keeps_everything_back_but_a_stream() {
    let (text, wanted) = texts();
    let place = Place::with(&format!("{text}---\nkind: [\n"));
    for output in [place.run("all.yaml"), place.run_with_stdin("-")] {
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{messages}"
        );
        assert!(messages.contains("nothing was written"), "{messages}");
        assert!(
            messages.contains(&format!("{}", text.matches('\n').count() + 2)),
            "the line of the whole text: {messages}"
        );
    }
    let stream = place.run("--stream all.yaml");
    let messages = String::from_utf8_lossy(&stream.stderr);
    assert_eq!(stream.status.code(), Some(2), "{messages}");
    assert!(
        messages.contains("the output before the error is on stdout"),
        "{messages}"
    );
    assert!(
        !stream.stdout.is_empty() && wanted.as_bytes().starts_with(&stream.stdout),
        "{}",
        stream.stdout.len()
    );
    assert!(!place.run("--stream --in-place all.yaml").status.success());
    assert_eq!(
        place.run("--stream all.yaml policy.yaml").status.code(),
        Some(2)
    );
}

#[test]
fn a_pipe_that_nobody_reads_to_its_end_is_no_error() {
    let (text, _) = texts();
    let place = Place::with(&text);
    for args in ["-q all.yaml", "-q --stream all.yaml"] {
        let mut run = place
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(run.stdout.take());
        let output = run.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.len()),
            (Some(0), 0),
            "{args}"
        );
    }
}

#[test]
fn what_is_no_file_is_read_once() {
    let place = Place::with("");
    let mut run = place
        .command("/dev/stdin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdin
        .take()
        .unwrap()
        .write_all(deployment(1, "java").as_bytes())
        .unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), injected(1));
}

#[test]
fn shards_divide_the_files_and_miss_none() {
    let place = Place::with("");
    let folder = place.path().join("m");
    fs::create_dir(&folder).unwrap();
    for number in 0..7 {
        fs::write(
            folder.join(format!("{number}.yaml")),
            deployment(number, "java"),
        )
        .unwrap();
    }
    let all = String::from_utf8(place.run("-q m").stdout).unwrap();
    let shards: Vec<String> = (1..=3)
        .map(|index| {
            let output = place.run(&format!("-q --shard {index}/3 m"));
            assert_eq!(
                output.status.code(),
                Some(0),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert_eq!(shards[1], injected(1) + &injected(4));
    let count = |text: &str| text.matches("emptyDir").count();
    assert_eq!(
        (count(&all), shards.iter().map(|shard| count(shard)).sum()),
        (7, 7)
    );
    let beyond = place.run("-q --shard 9/9 m");
    assert_eq!(
        (beyond.status.code(), beyond.stdout.len()),
        (Some(0), 0),
        "more shards than files"
    );
    assert_eq!(place.run("--shard 4/3 m").status.code(), Some(2));
    assert_eq!(
        place.run("--shard 1/2 all.yaml").status.code(),
        Some(2),
        "one text is not divided"
    );
    assert!(place.run("-q --in-place --shard 3/3 m").status.success());
    let changed = (0..7).filter(|number| {
        let text = fs::read_to_string(folder.join(format!("{number}.yaml"))).unwrap();
        text.contains("emptyDir")
    });
    assert_eq!(changed.collect::<Vec<_>>(), [2, 5]);
}

#[test]
fn a_variable_that_stands_many_times_is_removed_at_once() {
    let place = program::Place::with_policy(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: a}\nspec:\n  inject:\n    env: [{name: X, op: Remove}]\n",
    );
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: app\n    image: x:1\n";
    let variables = "    - {name: X, value: a}\n".repeat(20_000);
    place.write(
        "pod.yaml",
        format!("{pod}    env:\n{variables}    - {{name: Y, value: b}}\n"),
    );
    let output = place.run(&["apply", "--no-marker", "-p", "policy.yaml", "pod.yaml"]);
    assert_exit(&output, 0);
    let expected = format!("{pod}    env:\n    - {{name: Y, value: b}}\n");
    assert_eq!(stdout_of(&output), expected);
    assert_eq!(stderr_of(&output).matches("env X").count(), 1);
}

/// A List as kubectl prints it, in two columns, with what stands between items.
fn list(column: usize, metadata: &str, last: &str) -> String {
    let mut text = String::from("apiVersion: v1\nitems: # all of them\n");
    let mut add = |document: &str| {
        for (at, line) in document.lines().skip(1).enumerate() {
            let dash = if at == 0 { "- " } else { "  " };
            text += &format!("{}{dash}{line}\n", " ".repeat(column));
        }
    };
    for number in 0..400 {
        add(&deployment(number, ["java", "go"][number % 2]));
        add(&match number % 3 {
            0 => format!("{}\n\n# of the next one\n", config_map(number)),
            _ => config_map(number),
        });
    }
    add(last);
    text + "kind: List\nmetadata:" + metadata + "\n  resourceVersion: \"\"\n"
}

/// The same in JSON.
fn json_list(list: &str, indent: &str) -> String {
    let list: Value = serde_yaml::from_str(list).unwrap();
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    list.serialize(&mut Serializer::with_formatter(&mut text, formatter))
        .unwrap();
    String::from_utf8(text).unwrap() + "\n"
}

/// Lists with pairs of text that differ between the two: the first is worked on in parts, and the second as a whole.
fn lists_in_parts() -> Vec<(String, [&'static str; 2])> {
    let invalid = deployment(0, "java").replace("name: app-0", "name: App_0");
    let [fine, invalid] =
        [(0, deployment(0, "java")), (2, invalid)].map(|(column, last)| list(column, "   ", &last));
    let json = ["\"items\": [", "\"items\":  ["];
    let json_lists = [(&fine, "    "), (&invalid, "  "), (&fine, "\t")];
    let json_lists = json_lists.map(|(list, indent)| (json_list(list, indent), json));
    let crlf = json_lists[0].0.replace('\n', "\r\n");
    // An anchor is left to the complete parser, so the List is read as a whole.
    let yaml = ["metadata:   ", "metadata: &a"];
    let lists = [(fine, yaml), (invalid, yaml), (crlf, json)];
    lists.into_iter().chain(json_lists).collect()
}

#[test]
fn a_long_list_is_worked_on_in_parts_with_the_same_result() {
    for (list, [in_parts, whole]) in lists_in_parts() {
        let texts = [list.clone(), list.replacen(in_parts, whole, 1)];
        assert_ne!(texts[0], texts[1]);
        let [of_parts, of_whole] = texts.map(|text| Place::with(&text));
        for command in [
            "apply",
            "apply -q",
            "diff",
            "check -o sarif",
            "explain -o json",
        ] {
            let args = format!("{command} --no-config -p policy.yaml all.yaml");
            let [found, wanted] = [&of_parts, &of_whole].map(|place| {
                let mut program = Command::new(env!("CARGO_BIN_EXE_podgraft"));
                let program = program.args(args.split(' ')).current_dir(place.path());
                let output = program.output().unwrap();
                let shown = stdout_of(&output).replace(whole, in_parts);
                (output.status.code(), shown, stderr_of(&output))
            });
            assert!(found == wanted, "{command}");
            assert!(!found.1.is_empty() || !found.2.is_empty(), "{command}");
        }
    }
}
