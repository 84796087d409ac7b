//! Every folder of `testdata/review` is a review: the line of `command` runs in it, its output must be `expected.txt` (or
//! `expected.json`, ... as `command` names the form), what it says on stderr `report.txt`, and its exit status `exit`.
//!
//! `BLESS=1 cargo test --test review` writes what comes out; review the change as if somebody had sent it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ROOT: &str = "testdata/review";

fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(ROOT)
        .expect("testdata is readable")
        .map(|entry| entry.expect("it is readable").path());
    let mut folders: Vec<PathBuf> = entries
        .filter(|path| path.join("command").exists())
        .collect();
    folders.sort();
    assert!(
        folders.len() >= 10,
        "only {} reviews were found",
        folders.len()
    );
    folders
}

fn run(folder: &Path) -> Output {
    let line = fs::read_to_string(folder.join("command")).expect("a review has a command");
    let stdin = folder.join("stdin.yaml");
    let stdin = if stdin.exists() {
        Stdio::from(fs::File::open(stdin).expect("it is readable"))
    } else {
        Stdio::null()
    };
    Command::new(env!("CARGO_BIN_EXE_podgraft"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .env("LC_ALL", "C")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(stdin)
        .output()
        .expect("the program runs")
}

/// The files of a folder that say what must come out, and what came.
fn results(output: &Output) -> [(&'static str, String); 3] {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8");
    [
        ("expected.txt", text(&output.stdout)),
        ("report.txt", text(&output.stderr)),
        (
            "exit",
            format!("{}\n", output.status.code().expect("it ended by itself")),
        ),
    ]
}

#[test]
fn every_review_comes_out_as_expected() {
    let is_blessing = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for folder in folders() {
        for (name, came) in results(&run(&folder)) {
            let file = folder.join(name);
            if is_blessing {
                fs::write(&file, &came).expect("the folder is writable");
            } else if fs::read_to_string(&file).ok().as_deref() != Some(&came) {
                wrong.push(format!("{} is another:\n{came}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

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
    let one =
        fs::read_to_string("testdata/review/diff-as-json/input.yaml").expect("it is readable");
    let one = one.split("---\n").next().unwrap_or_default();
    let all: Vec<String> = (0..number)
        .map(|at| one.replace("app-0", &format!("app-{at}")))
        .collect();
    fs::write(folder.path().join("many.yaml"), all.join("---\n")).expect("the folder is writable");
    folder
}

#[test]
fn only_a_patch_shows_secrets() {
    let folder = many(3);
    for format in ["summary", "stat", "json", "markdown", "html", "sarif"] {
        let shown = diff(folder.path(), &["-p", POLICIES, "-o", format, "many.yaml"]);
        assert!(!shown.contains("not-for-everybody"), "{format}");
    }
    assert!(diff(folder.path(), &["-p", POLICIES, "many.yaml"]).contains("not-for-everybody"));
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
    assert!(comment.contains("left out here") && comment.contains("| Deployment `team-0/app-0` |"));
    assert_eq!(
        comment.matches("<details>").count(),
        comment.matches("</details>").count()
    );
}

#[test]
fn the_schema_is_that_of_the_diff() {
    let file = Path::new("schemas/diff.schema.json");
    let schema = podgraft::report::diff_json::schema();
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all("schemas").expect("the folder can be made");
        fs::write(file, &schema).expect("the folder is writable");
    }
    assert_eq!(
        fs::read_to_string(file).ok().as_deref(),
        Some(schema.as_str()),
        "BLESS=1 writes it"
    );
}
