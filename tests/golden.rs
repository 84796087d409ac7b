//! Every folder of `testdata/cases` is a behaviour: `policy.yaml` and `input.yaml` (or `input.json`) go through the
//! program with the flags of `args` (or `input.yaml` alone through the command of `command`); its output must be
//! `expected.yaml`, or, where there is none, it must refuse and print nothing; what it says must be `report.txt`.
//!
//! `BLESS=1 cargo test --test golden` writes what comes out; review the change as if somebody had sent it.
//! Beyond its output, every folder is held to the promises that hold for all of them.

#[allow(dead_code, reason = "other tests use the rest")]
mod promises;

use podgraft::graft::{Options, graft};
use podgraft::policy::Policy;
use podgraft::policy::read::{PolicyFile, read};
use podgraft::report::unified::render;
use podgraft::report::{FileReport, Paint, ReportedFile, splice};
use podgraft::yaml::parse::parse;
use podgraft::yaml::value::to_value;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const ROOT: &str = "testdata/cases";
const APPLY: &str = "apply -p policy.yaml";

/// A case folder and its files.
struct Case {
    folder: PathBuf,
    input: String,
    command: Vec<String>,
    args: Vec<String>,
}

impl Case {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn read(&self, file: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(file)).ok()
    }

    fn input(&self) -> Vec<u8> {
        self.read(&self.input).expect("a case has an input")
    }

    fn expected_file(&self) -> String {
        self.input.replace("input", "expected")
    }

    fn expected(&self) -> Option<Vec<u8>> {
        self.read(&self.expected_file())
    }

    fn policies(&self) -> Vec<Policy> {
        let text = String::from_utf8(self.read("policy.yaml").expect("a case has a policy"))
            .expect("it is UTF-8");
        read(
            vec![PolicyFile {
                name: "policy.yaml".into(),
                text,
            }],
            &[],
        )
        .0
    }

    /// The properties are tested through the library, without flags: they need none of them.
    fn graft(&self, text: &[u8], policies: &[Policy]) -> FileReport {
        graft(
            &Arc::from(self.input.as_str()),
            text,
            policies,
            &Options::default(),
        )
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut areas: Vec<PathBuf> = entries(Path::new(ROOT));
    areas.sort();
    for folder in areas.iter().flat_map(|area| entries(area)) {
        let input = ["input.yaml", "input.json"]
            .into_iter()
            .find(|name| folder.join(name).exists());
        let input = input
            .unwrap_or_else(|| panic!("{} has no input", folder.display()))
            .to_owned();
        let words = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let split = |text: String| text.split_whitespace().map(str::to_owned).collect();
        let command = words("command").unwrap_or_else(|| APPLY.to_owned());
        let args = words("args").map(split).unwrap_or_default();
        cases.push(Case {
            input,
            command: split(command),
            args,
            folder,
        });
    }
    assert!(cases.len() > 20, "only {} cases were found", cases.len());
    cases
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("testdata is readable")
        .map(|entry| entry.expect("the entry is readable").path())
        .filter(|path| path.is_dir())
        .collect();
    paths.sort();
    paths
}

/// Cases whose output is what their input becomes without any flag.
fn plain_cases() -> Vec<Case> {
    let is_plain =
        |case: &Case| case.args.is_empty() && case.command.concat() == APPLY.replace(' ', "");
    cases()
        .into_iter()
        .filter(|case| is_plain(case) && case.expected().is_some())
        .collect()
}

#[test]
fn every_case_gives_its_output_and_its_report() {
    let is_blessing = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let output = Command::new(env!("CARGO_BIN_EXE_podgraft"))
            .current_dir(&case.folder)
            .args(&case.command)
            .args(["--color", "never"])
            .args(&case.args)
            .arg(&case.input)
            .output()
            .expect("the program runs");
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) if is_blessing => {
                fs::write(case.folder.join(case.expected_file()), &output.stdout)
                    .expect("the folder is writable");
            }
            Some(0) if case.expected().as_deref() == Some(&output.stdout) => {}
            Some(0) => wrong.push(format!(
                "{}: another output\n{}",
                case.name(),
                String::from_utf8_lossy(&output.stdout)
            )),
            Some(2) if case.expected().is_none() && output.stdout.is_empty() => {}
            code => wrong.push(format!("{}: exit {code:?}\n{report}", case.name())),
        }
        if is_blessing {
            fs::write(case.folder.join("report.txt"), &report).expect("the folder is writable");
        } else if case.read("report.txt").as_deref() != Some(report.as_bytes()) {
            wrong.push(format!("{}: another report\n{report}", case.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_second_run_changes_nothing() {
    for case in plain_cases() {
        let report = case.graft(
            &case.expected().expect("it has an output"),
            &case.policies(),
        );
        let errors: Vec<_> = report
            .diagnostics
            .iter()
            .filter(|problem| problem.is_error())
            .collect();
        assert!(
            report.edits.is_empty() && errors.is_empty(),
            "{}: {:?} {errors:?}",
            case.name(),
            report.edits
        );
    }
}

#[test]
fn without_a_policy_nothing_is_edited() {
    for case in cases() {
        assert!(
            case.graft(&case.input(), &[]).edits.is_empty(),
            "{}",
            case.name()
        );
    }
}

#[test]
fn windows_line_ends_stay_windows_line_ends() {
    for case in plain_cases() {
        let (input, expected) = (case.input(), case.expected().expect("it has an output"));
        if input.contains(&b'\r') || input.starts_with(b"{") {
            continue;
        }
        let with_returns = |text: &[u8]| String::from_utf8_lossy(text).replace('\n', "\r\n");
        let input = with_returns(&input);
        let report = case.graft(input.as_bytes(), &case.policies());
        let output = splice(input.as_bytes(), &report.edits);
        assert_eq!(
            String::from_utf8_lossy(&output),
            with_returns(&expected),
            "{}",
            case.name()
        );
    }
}

/// The patch of all cases at once, of each as it is and between documents that do not change.
#[test]
fn git_makes_the_output_of_the_diff() {
    const OTHER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata:\n  k: v\n";
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let (mut patch, mut after) = (String::new(), Vec::new());
    for (number, case) in plain_cases().iter().enumerate() {
        let input = case.input();
        let between = [
            OTHER.as_bytes(),
            b"---\n",
            &input,
            b"---\n",
            OTHER.as_bytes(),
        ]
        .concat();
        let stands_alone = input.starts_with(b"\xef\xbb\xbf")
            || input.starts_with(b"%")
            || !input.ends_with(b"\n");
        let texts = [Some(input.clone()), Some(between).filter(|_| !stands_alone)];
        for (form, text) in texts.into_iter().flatten().enumerate() {
            let report = case.graft(&text, &case.policies());
            let path = format!("{number}-{form}.yaml");
            let file = ReportedFile {
                name: &path,
                path: path.as_bytes(),
                text: &text,
                report: &report,
            };
            patch.push_str(&render(&[file], Paint::Plain));
            fs::write(folder.path().join(&path), &text).expect("the folder is writable");
            after.push((
                format!("{path} of {}", case.name()),
                path,
                splice(&text, &report.edits),
            ));
        }
    }
    fs::write(folder.path().join("all.patch"), &patch).expect("the folder is writable");
    let Ok(git) = Command::new("git")
        .current_dir(&folder)
        .args(["apply", "all.patch"])
        .output()
    else {
        eprintln!("SKIPPED: `git` is not installed");
        return;
    };
    assert!(
        git.status.success(),
        "{}",
        String::from_utf8_lossy(&git.stderr)
    );
    for (name, path, expected) in &after {
        let patched = fs::read(folder.path().join(path)).expect("the file is there");
        assert!(
            patched == *expected,
            "{name}: {}",
            String::from_utf8_lossy(&patched)
        );
    }
    assert!(after.len() > 500, "only {} texts", after.len());
}

#[test]
fn lines_that_no_edit_touches_stay_in_order() {
    for case in plain_cases() {
        let input = case.input();
        let report = case.graft(&input, &case.policies());
        let output = splice(&input, &report.edits);
        let mut lines = output.split(|byte| *byte == b'\n');
        let mut start = 0;
        for line in input.split(|byte| *byte == b'\n') {
            let end = start + line.len();
            let is_touched = report
                .edits
                .iter()
                .any(|edit| edit.at.start <= end && edit.at.end >= start && edit.at.start != start);
            let is_replaced = report
                .edits
                .iter()
                .any(|edit| edit.at.start == start && !edit.at.is_empty());
            let begins_later = report
                .edits
                .iter()
                .any(|edit| edit.at.start == start && !edit.text.ends_with('\n'));
            if !is_touched && !is_replaced && !begins_later {
                assert!(
                    lines.any(|other| other == line),
                    "{}: lost {}",
                    case.name(),
                    String::from_utf8_lossy(line)
                );
            }
            start = end + 1;
        }
    }
}

#[test]
fn wrapped_in_a_list_the_values_are_the_same() {
    for case in plain_cases() {
        let Some(items) = objects(&case.input()) else {
            continue;
        };
        let Some(expected) = objects(&case.expected().expect("it has an output")) else {
            continue;
        };
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let text = serde_json::to_vec_pretty(&list).expect("a value is JSON");
        let report = case.graft(&text, &case.policies());
        let errors: Vec<_> = report
            .diagnostics
            .iter()
            .filter(|problem| problem.is_error())
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", case.name());
        let output = splice(&text, &report.edits);
        let output: Value = serde_json::from_slice(&output)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        assert_eq!(output["items"], Value::Array(expected), "{}", case.name());
    }
}

#[test]
fn every_promise_is_kept_in_every_case() {
    for case in plain_cases() {
        let kept = promises::check(&case.input(), &case.policies());
        assert_eq!(kept.output, case.expected(), "{}", case.name());
    }
}

/// The plan has two executors that share no code: our text editor, and the `json-patch` crate.
#[test]
fn the_plan_as_a_patch_comes_to_the_same_values() {
    for case in plain_cases() {
        let Some(mut values) = objects(&case.input()) else {
            continue;
        };
        let Some(expected) = objects(&case.expected().expect("it has an output")) else {
            continue;
        };
        let options = Options {
            patches: true,
            ..Options::default()
        };
        let report = graft(
            &Arc::from(case.input.as_str()),
            &case.input(),
            &case.policies(),
            &options,
        );
        for workload in report
            .workloads
            .iter()
            .filter(|workload| workload.is_changed())
        {
            let is_it = |value: &&mut Value| {
                value["kind"] == json!(workload.kind)
                    && value["metadata"]["name"].as_str().unwrap_or_default() == workload.name
            };
            let value = values
                .iter_mut()
                .find(is_it)
                .expect("the workload is in the input");
            let patch = workload.patch.as_ref().expect("it was asked for");
            json_patch::patch(value, patch)
                .unwrap_or_else(|error| panic!("{}: {error} in {patch:?}", case.name()));
        }
        for placed in report.companions.iter().rev() {
            let workload = &report.workloads[placed.workload];
            let is_it = |value: &Value| {
                value["kind"] == json!(workload.kind)
                    && value["metadata"]["name"] == json!(workload.name)
            };
            let at = values
                .iter()
                .position(is_it)
                .expect("the workload is in the input");
            values.insert(at + 1, (*placed.companion.object).clone());
        }
        assert_eq!(values, expected, "{}", case.name());
    }
}

/// The values of a text's documents, when all of them are objects.
fn objects(text: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(text).expect("cases are UTF-8");
    let tree = parse(text).expect("an accepted case is YAML");
    let values: Option<Vec<Value>> = tree
        .roots()
        .iter()
        .map(|&root| to_value(&tree, root).ok())
        .collect();
    values.filter(|values| {
        values.iter().all(|value| {
            value
                .get("kind")
                .is_some_and(|kind| !kind.as_str().is_some_and(|kind| kind.ends_with("List")))
        })
    })
}
