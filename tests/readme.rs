//! The README tells the truth: its first diff is what the program prints, its commands run, its policy is one.

use podgraft_core::policy::read::{PolicyFile, read};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn readme() -> String {
    fs::read_to_string("README.md").expect("the README is there")
}

/// The fenced blocks of a language, in order.
fn blocks(language: &str) -> Vec<String> {
    let readme = readme();
    let parts = readme.split("```").skip(1).step_by(2);
    parts
        .filter_map(|block| {
            block
                .strip_prefix(&format!("{language}\n"))
                .map(str::to_owned)
        })
        .collect()
}

/// `cargo run -q -- ARGS`, without building again.
fn first_command() -> Output {
    let readme = readme();
    let line = readme
        .lines()
        .find_map(|line| line.strip_prefix("cargo run -q -- "))
        .expect("the README has a first command");
    let args = line.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_podgraft"))
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs")
}

#[test]
fn the_first_command_prints_what_the_readme_shows() {
    let output = first_command();
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).expect("a diff of text is text");
    let shown = blocks("diff").remove(0);
    let mut lines = printed.lines();
    for line in shown.lines().filter(|line| *line != "[...]") {
        assert!(
            lines.any(|other| other == line),
            "the program does not print `{line}` there"
        );
    }
    for wanted in [
        "initContainers:",
        "sizeLimit",
        "JAVA_TOOL_OPTIONS",
        "prometheus.io/scrape",
    ] {
        assert!(shown.contains(wanted), "the README does not show {wanted}");
    }
    assert_eq!(
        blocks("text").remove(0),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// `tools/pictures.sh` makes both pictures; the one of the page needs a browser, so here it is only looked for.
#[test]
fn the_picture_of_the_terminal_is_what_the_program_prints() {
    let args = [
        "diff",
        "-q",
        "--color",
        "always",
        "-p",
        "builtin:jmx-exporter",
        "testdata/examples/shop.yaml",
    ];
    let printed = Command::new(env!("CARGO_BIN_EXE_podgraft"))
        .args(args)
        .output()
        .expect("the program runs")
        .stdout;
    let title = "podgraft diff -p builtin:jmx-exporter testdata/examples/shop.yaml";
    let mut draw = Command::new("python3");
    draw.args(["tools/terminal_svg.py", title, "46"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let Ok(mut drawing) = draw.spawn() else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "python3 is not there"
        );
        return;
    };
    drawing
        .stdin
        .take()
        .expect("it is piped")
        .write_all(&printed)
        .expect("it reads");
    let drawn = drawing.wait_with_output().expect("it ends").stdout;
    let kept = fs::read("docs/pictures/diff.svg").expect("the picture is there");
    assert_eq!(
        String::from_utf8_lossy(&drawn),
        String::from_utf8_lossy(&kept),
        "tools/pictures.sh makes it anew"
    );
    for picture in ["docs/pictures/diff.svg", "docs/pictures/page.png"] {
        assert!(readme().contains(&format!("]({picture})")), "{picture}");
        assert!(
            fs::metadata(picture).expect("the picture is there").len() < 200 << 10,
            "{picture} is too large"
        );
    }
}

#[test]
fn the_policy_of_the_readme_is_one() {
    let text = blocks("yaml").remove(0);
    let (policies, problems) = read(
        vec![PolicyFile {
            name: "README.md".into(),
            text,
        }],
        &[],
    );
    assert!(problems.is_empty() && policies.len() == 1, "{problems:?}");
}

#[test]
fn the_everyday_commands_run() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    copy(
        Path::new("testdata/examples"),
        &folder.path().join("testdata/examples"),
    );
    let program = Path::new(env!("CARGO_BIN_EXE_podgraft"))
        .parent()
        .expect("a program is in a folder");
    let path = format!(
        "{}:{}",
        program.display(),
        std::env::var("PATH").expect("there is a PATH")
    );
    let block = blocks("sh")
        .into_iter()
        .find(|block| block.contains("podgraft policy list"))
        .expect("it has commands");
    for line in block.lines() {
        let output = Command::new("sh")
            .args(["-ec", line])
            .current_dir(folder.path())
            .env("PATH", &path)
            .output();
        let output = output.expect("sh runs");
        let finds_something = line.contains("podgraft diff") || line.contains("podgraft check");
        let wanted = if finds_something { 1 } else { 0 };
        assert_eq!(
            output.status.code(),
            Some(wanted),
            "{line}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder can be made");
    for entry in fs::read_dir(from).expect("the folder is readable") {
        let entry = entry.expect("the entry is readable");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("the file can be copied");
    }
}
