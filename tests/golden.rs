//! Every folder of `testdata/cases` is a behaviour: `policy.yaml` and `input.yaml` (or `input.json`) go through the
//! program with the flags of `args` (or `input.yaml` alone through the command of `command`); its output must be
//! `expected.yaml`, or, where there is none, it must refuse and print nothing; what it says must be `report.txt`.
//! Beyond its output, every folder is held to the promises that hold for all of them.
//!
//! Every folder of `testdata/review` is a review: the line of `command` runs in it, with `stdin.yaml` where there is one;
//! its output must be `expected.txt`, what it says on stderr `report.txt`, and its exit status `exit`.
//!
//! One test a folder: `cargo test --test golden NAME` runs those whose path contains NAME, and
//! `BLESS=1 cargo test --test golden NAME` writes what comes out; review the change as if somebody had sent it.

mod promises;

use libtest_mimic::{Arguments, Failed, Trial};
use podgraft_core::graft::{Options, graft};
use podgraft_core::outcome::{FileReport, ReportedFile};
use podgraft_core::patches;
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::report::unified::{DiffAudience, render};
use podgraft_core::wording::Paint;
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

const CASES: &str = "testdata/cases";
const REVIEWS: &str = "testdata/review";
const APPLY: &str = "apply -p policy.yaml";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = Vec::new();
    for folder in entries(Path::new(CASES))
        .iter()
        .flat_map(|area| entries(area))
    {
        trials.push(Trial::test(title(&folder, CASES), move || {
            Case::open(folder).check()
        }));
    }
    for folder in entries(Path::new(REVIEWS)) {
        trials.push(Trial::test(title(&folder, "testdata"), move || {
            check_review(&folder)
        }));
    }
    assert!(
        trials.len() > 500,
        "only {} folders were found",
        trials.len()
    );
    let is_chosen = arguments.filter.is_some() && !arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if is_chosen && std::env::var_os("BLESS").is_some() && conclusion.num_passed == 0 {
        eprintln!("no folder has this name");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// The path of a folder below another.
fn title(folder: &Path, root: &str) -> String {
    let inside = folder.strip_prefix(root).expect("it was found there");
    inside.display().to_string()
}

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Compares what came with the file that says what must come, or writes it there.
fn compare(file: &Path, came: &[u8]) -> Result<(), Failed> {
    if is_blessing() {
        fs::write(file, came).expect("the folder is writable");
        return Ok(());
    }
    if fs::read(file).ok().as_deref() == Some(came) {
        return Ok(());
    }
    let came = String::from_utf8_lossy(came);
    Err(format!("{} is another:\n{came}", file.display()).into())
}

fn check_review(folder: &Path) -> Result<(), Failed> {
    let line = fs::read_to_string(folder.join("command")).expect("a review has a command");
    let stdin =
        fs::File::open(folder.join("stdin.yaml")).map_or_else(|_| Stdio::null(), Stdio::from);
    let output = Command::new(env!("CARGO_BIN_EXE_podgraft"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .env("LC_ALL", "C")
        // A review is about its folder, wherever the project stands.
        .env(
            "GIT_CEILING_DIRECTORIES",
            std::env::current_dir()
                .expect("there is a folder")
                .join(REVIEWS),
        )
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(stdin)
        .output()
        .expect("the program runs");
    let code = output.status.code().expect("it ended by itself");
    compare(&folder.join("expected.txt"), &output.stdout)?;
    compare(&folder.join("report.txt"), &without_hints(&output.stderr))?;
    compare(&folder.join("exit"), format!("{code}\n").as_bytes())
}

/// Without the last line of each diagnostic, which is the same for all of a code; tests/everyday.rs holds it.
fn without_hints(stderr: &[u8]) -> Vec<u8> {
    let lines = stderr.split_inclusive(|byte| *byte == b'\n');
    let kept = lines.filter(|line| !line.starts_with(b"  more: podgraft explain "));
    kept.flatten().copied().collect()
}

/// A case folder.
struct Case {
    folder: PathBuf,
    input_file: &'static str,
    command: Vec<String>,
    args: Vec<String>,
}

impl Case {
    fn open(folder: PathBuf) -> Case {
        let mut inputs = ["input.yaml", "input.json"].into_iter();
        let input_file = inputs
            .find(|name| folder.join(name).exists())
            .unwrap_or_else(|| panic!("{} has no input", folder.display()));
        let words = |file: &str| {
            let text = fs::read_to_string(folder.join(file)).ok()?;
            Some(text.split_whitespace().map(str::to_owned).collect())
        };
        let apply = || APPLY.split_whitespace().map(str::to_owned).collect();
        Case {
            command: words("command").unwrap_or_else(apply),
            args: words("args").unwrap_or_default(),
            input_file,
            folder,
        }
    }

    fn read(&self, file: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(file)).ok()
    }

    fn input(&self) -> Vec<u8> {
        self.read(self.input_file).expect("a case has an input")
    }

    fn expected_file(&self) -> String {
        self.input_file.replace("input", "expected")
    }

    fn policies(&self) -> Vec<Policy> {
        let text = self.read("policy.yaml").expect("a case has a policy");
        let text = String::from_utf8(text).expect("it is UTF-8");
        let name = "policy.yaml".into();
        read(vec![PolicyFile { name, text }], &[]).0
    }

    /// The properties are tested through the library, without flags: they need none of them.
    fn graft(&self, text: &[u8], policies: &[Policy]) -> FileReport {
        graft(
            &Arc::from(self.input_file),
            text,
            policies,
            &Options::default(),
        )
    }

    /// The report of a text that is not refused.
    fn graft_rightly(&self, text: &[u8]) -> FileReport {
        let report = self.graft(text, &self.policies());
        let errors: Vec<_> = report
            .diagnostics
            .iter()
            .filter(|problem| problem.is_error())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
        report
    }

    fn check(&self) -> Result<(), Failed> {
        self.check_program()?;
        if self.read("policy.yaml").is_some() {
            assert!(
                self.graft(&self.input(), &[]).edits.is_empty(),
                "edits without a policy"
            );
        }
        // What the fuzz target `pair` begins with: flags are left out.
        if let Some(Ok(policies)) = self
            .read("policy.yaml")
            .map(|text| promises::policies(std::str::from_utf8(&text).expect("it is UTF-8")))
            && let input = self.input()
            && std::str::from_utf8(&input).is_ok()
        {
            promises::check(&input, &policies);
        }
        let is_plain = self.args.is_empty() && self.command.join(" ") == APPLY;
        let Some(expected) = self.read(&self.expected_file()).filter(|_| is_plain) else {
            return Ok(());
        };
        let input = self.input();
        self.check_second_run(&expected);
        self.check_in_place(&input, &expected);
        self.check_windows_line_ends(&input, &expected);
        self.check_untouched_lines(&input);
        self.check_git_apply(&input);
        let kept = promises::check(&input, &self.policies());
        assert_eq!(
            kept.output.as_deref(),
            Some(&expected[..]),
            "not what the promises saw"
        );
        if let (Some(before), Some(after)) = (objects(&input), objects(&expected)) {
            self.check_in_a_list(&before, &after);
            self.check_as_a_patch(&input, before, &after);
        }
        Ok(())
    }

    fn check_program(&self) -> Result<(), Failed> {
        let output = Command::new(env!("CARGO_BIN_EXE_podgraft"))
            .current_dir(&self.folder)
            .args(&self.command)
            .args(["--color", "never"])
            .args(&self.args)
            .arg(self.input_file)
            .output()
            .expect("the program runs");
        let expected_file = self.folder.join(self.expected_file());
        match output.status.code() {
            Some(0) if self.is_to_be_refused() => return Err("the input is not refused".into()),
            Some(0) => compare(&expected_file, &output.stdout)?,
            Some(2) if !expected_file.exists() && output.stdout.is_empty() => {}
            code => {
                let report = String::from_utf8_lossy(&output.stderr);
                return Err(format!("exit {code:?}\n{report}").into());
            }
        }
        compare(
            &self.folder.join("report.txt"),
            &without_hints(&output.stderr),
        )
    }

    fn is_to_be_refused(&self) -> bool {
        self.folder
            .parent()
            .is_some_and(|group| group.ends_with("refuse"))
    }

    fn check_second_run(&self, expected: &[u8]) {
        let edits = self.graft_rightly(expected).edits;
        assert!(edits.is_empty(), "a second run makes {edits:?}");
    }

    /// What is recorded in a lock file makes no difference to the text.
    fn check_in_place(&self, input: &[u8], expected: &[u8]) {
        // A record that stands in an annotation would move to the lock file.
        if String::from_utf8_lossy(input).contains("podgraft.dev/record") {
            return;
        }
        let options = Options {
            lock: true,
            ..Options::default()
        };
        let name = Arc::from(self.input_file);
        let report = graft(&name, input, &self.policies(), &options);
        assert_eq!(
            String::from_utf8_lossy(&splice(input, &report.edits)),
            String::from_utf8_lossy(expected),
            "in place"
        );
    }

    fn check_windows_line_ends(&self, input: &[u8], expected: &[u8]) {
        if input.contains(&b'\r') || input.starts_with(b"{") {
            return;
        }
        let with_returns = |text: &[u8]| String::from_utf8_lossy(text).replace('\n', "\r\n");
        let input = with_returns(input);
        let report = self.graft(input.as_bytes(), &self.policies());
        let output = splice(input.as_bytes(), &report.edits);
        assert_eq!(
            String::from_utf8_lossy(&output),
            with_returns(expected),
            "with CRLF"
        );
    }

    /// The diff of the text as it is and between documents that do not change, carried out by `git apply`.
    fn check_git_apply(&self, input: &[u8]) {
        const OTHER: &str =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata:\n  k: v\n";
        let place = tempfile::tempdir().expect("there is a temporary folder");
        let between = [
            OTHER.as_bytes(),
            b"---\n",
            input,
            b"---\n",
            OTHER.as_bytes(),
        ]
        .concat();
        let stands_alone = input.starts_with(b"\xef\xbb\xbf")
            || input.starts_with(b"%")
            || !input.ends_with(b"\n");
        let texts = [
            Some(input.to_vec()),
            Some(between).filter(|_| !stands_alone),
        ];
        let (mut patch, mut after) = (String::new(), Vec::new());
        for (path, text) in ["alone.yaml", "between.yaml"].into_iter().zip(texts) {
            let Some(text) = text else { continue };
            let report = self.graft(&text, &self.policies());
            let file = ReportedFile {
                name: path,
                path: path.as_bytes(),
                text: &text,
                report: &report,
            };
            patch.push_str(&render(DiffAudience::Program, &[file], Paint::Plain));
            fs::write(place.path().join(path), &text).expect("the folder is writable");
            after.push((path, splice(&text, &report.edits)));
        }
        if patch.is_empty() {
            return;
        }
        if !git_apply(place.path(), &patch) {
            return;
        }
        for (path, expected) in &after {
            let patched = fs::read(place.path().join(path)).expect("the file is there");
            assert!(
                patched == *expected,
                "{path}: {}",
                String::from_utf8_lossy(&patched)
            );
        }
    }

    fn check_untouched_lines(&self, input: &[u8]) {
        let report = self.graft(input, &self.policies());
        let output = splice(input, &report.edits);
        let mut lines = output.split(|byte| *byte == b'\n');
        let mut start = 0;
        for line in input.split(|byte| *byte == b'\n') {
            let end = start + line.len();
            let mut edits = report.edits.iter();
            let is_kept = edits.all(|edit| {
                let touches =
                    edit.at.start <= end && edit.at.end >= start && edit.at.start != start;
                let replaces = edit.at.start == start && !edit.at.is_empty();
                let begins_later = edit.at.start == start && !edit.text.ends_with('\n');
                !touches && !replaces && !begins_later
            });
            if is_kept {
                let is_there = lines.any(|other| other == line);
                assert!(is_there, "lost {}", String::from_utf8_lossy(line));
            }
            start = end + 1;
        }
    }

    fn check_in_a_list(&self, before: &[Value], after: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": before});
        let text = serde_json::to_vec_pretty(&list).expect("a value is JSON");
        let output = splice(&text, &self.graft_rightly(&text).edits);
        let output: Value = serde_json::from_slice(&output).expect("it is still JSON");
        assert_eq!(output["items"], json!(after), "wrapped in a List");
    }

    /// The plan has two executors that share no code: our text editor, and the `json-patch` crate.
    fn check_as_a_patch(&self, input: &[u8], mut values: Vec<Value>, expected: &[Value]) {
        let options = Options {
            patches: true,
            ..Options::default()
        };
        let report = graft(
            &Arc::from(self.input_file),
            input,
            &self.policies(),
            &options,
        );
        let file = ReportedFile {
            name: self.input_file,
            path: self.input_file.as_bytes(),
            text: input,
            report: &report,
        };
        let entries: Vec<Value> =
            serde_json::from_str(&patches::json_patch(&[file])).expect("the patches are JSON");
        // New objects stand behind their workload, one after the other.
        let mut behind = 0;
        for entry in &entries {
            let operations = &entry["patch"];
            if operations[0]["path"] == "" && operations[0]["op"] == "add" {
                values.insert(behind, operations[0]["value"].clone());
                behind += 1;
                continue;
            }
            let at = values
                .iter()
                .position(|value| is_target(value, &entry["target"]));
            let at = at.expect("the object is in the input");
            if operations == &json!([{"op": "remove", "path": ""}]) {
                values.remove(at);
                behind = at;
                continue;
            }
            behind = at + 1;
            let patch: json_patch::Patch =
                serde_json::from_value(operations.clone()).expect("it is a patch");
            json_patch::patch(&mut values[at], &patch)
                .unwrap_or_else(|error| panic!("{error} in {patch:?}"));
        }
        assert_eq!(values, expected, "as a patch");
    }
}

/// Whether an entry of `-o json-patch` with the target is for the object.
fn is_target(object: &Value, target: &Value) -> bool {
    let metadata = &object["metadata"];
    let generated = metadata["generateName"].as_str();
    let generated = generated.map(|prefix| format!("{prefix}*"));
    let name = metadata["name"].as_str().or(generated.as_deref());
    object["kind"] == target["kind"]
        && metadata["namespace"] == target["namespace"]
        && target["name"] == name.unwrap_or_default()
}

/// Applies a patch in a folder. Returns `false` where there is no `git`.
fn git_apply(folder: &Path, patch: &str) -> bool {
    fs::write(folder.join("all.patch"), patch).expect("the folder is writable");
    let Ok(git) = Command::new("git")
        .current_dir(folder)
        .args(["apply", "all.patch"])
        .output()
    else {
        eprintln!("SKIPPED: `git` is not installed");
        return false;
    };
    assert!(
        git.status.success(),
        "{}",
        String::from_utf8_lossy(&git.stderr)
    );
    true
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
