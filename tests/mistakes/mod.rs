//! A walk through the mistakes that people make, one a file: `policies` in `policy.yaml`, `flags` on the command line. Each
//! is one error, at its place, and what the message advises works.
//!
//! Of a policy, lines behind `-` are those of `policy.yaml` in whose place the lines behind `+` stand; lines behind `=` are
//! what the advice makes of them, the former ones where there are none. Of the flags, the line behind `+` is the command,
//! and that behind `=` what the advice makes of it. Then follows what is said. `BLESS=1` writes that, for you to review.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::program::{Place, stderr_of};

const FOLDER: &str = "tests/mistakes";

fn files(kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(FOLDER).join(kind)).expect("the folder is readable");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it is readable").path())
        .collect();
    files.sort();
    files
}

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(FOLDER).join(name)).expect("the file is readable")
}

/// The lines behind a sign, joined.
fn behind(sign: char, head: &str) -> Option<String> {
    let lines: Vec<&str> = head
        .lines()
        .filter_map(|line| line.strip_prefix(sign))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn place() -> Place {
    let place = Place::new();
    for name in ["policy.yaml", "orders.yaml"] {
        place.write(name, read(name));
    }
    place.write("copy.yaml", read("orders.yaml"));
    place.write("folder/a.yaml", read("orders.yaml"));
    place.write(
        "folder/b.yaml",
        read("orders.yaml").replace("name: orders", "name: other"),
    );
    place.write("empty/README", "");
    place.write(
        "empty-map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    );
    place
}

/// What is wrong with a mistake: what is said is not what the file says, more than one error, or advice that does not work.
fn check(file: &Path, mistake: &Output, mended: &Output) -> Vec<String> {
    let name = file.display();
    let text = fs::read_to_string(file).expect("the file is readable");
    let (head, wanted) = text.split_once("\n\n").expect("a blank line ends the head");
    let found = stderr_of(mistake);
    let mut wrong = Vec::new();
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, format!("{head}\n\n{found}")).expect("the file is writable");
    } else if found != wanted {
        wrong.push(format!("{name} says\n{found}"));
    }
    if mistake.status.code() != Some(2) {
        wrong.push(format!("{name} is not refused\n{found}"));
    }
    // Wrong usage is a line of its own; each diagnostic ends with the command that explains it.
    let starting = |start: &str| found.lines().filter(|line| line.starts_with(start)).count();
    let errors = match starting("error") {
        0 => starting("  more: podgraft explain "),
        number => number,
    };
    if errors != 1 {
        wrong.push(format!("{name}: {errors} errors\n{found}"));
    }
    if !matches!(mended.status.code(), Some(0 | 1)) {
        wrong.push(format!(
            "{name}: the advice does not work\n{}",
            stderr_of(mended)
        ));
    }
    wrong
}

#[test]
fn each_mistake_in_a_policy_is_one_error_whose_advice_works() {
    let (policy, files) = (read("policy.yaml"), files("policies"));
    assert!(files.len() >= 50, "{} mistakes", files.len());
    let args = [
        "diff",
        "-q",
        "--diagnostics",
        "short",
        "-p",
        "policy.yaml",
        "orders.yaml",
    ];
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("the file is readable");
        let (head, _) = text.split_once("\n\n").expect("a blank line ends the head");
        let correct = behind('-', head).expect("it has lines of the policy");
        assert!(policy.contains(&correct), "{}", file.display());
        let with = |lines: &str| {
            let place = place();
            place.write("policy.yaml", policy.replacen(&correct, lines, 1));
            place.run(&args)
        };
        let mistake = with(&behind('+', head).unwrap_or_default());
        let mended = with(&behind('=', head).unwrap_or(correct.clone()));
        wrong.extend(check(&file, &mistake, &mended));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_mistake_on_the_command_line_is_one_error_whose_advice_works() {
    let files = files("flags");
    assert!(files.len() >= 30, "{} mistakes", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("the file is readable");
        let (head, _) = text.split_once("\n\n").expect("a blank line ends the head");
        let run = |sign| {
            let line = behind(sign, head).expect("it has a command");
            let args: Vec<&str> = line.split(' ').collect();
            place().command(&args).output().expect("it runs")
        };
        wrong.extend(check(&file, &run('+'), &run('=')));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
