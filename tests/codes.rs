//! Every diagnostic code has a page that helps, and a golden case (or a test of the program) that shows it.

use podgraft_core::diagnostic::Code;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{Place, stderr_of};

/// Codes that no folder of `testdata/cases` can show, and the file that tests them; `None`: nothing can show it.
const SHOWN_ELSEWHERE: &[(Code, Option<&str>)] = &[
    (Code::UnknownCode, Some("tests/codes.rs")),
    (Code::NoMatch, Some("tests/everyday.rs")),
    (Code::NotCovered, Some("tests/everyday.rs")),
    (Code::DigestMismatch, Some("tests/everyday.rs")),
    (Code::Unused, Some("tests/lint.rs")),
    (Code::NeverMatches, Some("tests/lint.rs")),
    (Code::Privilege, Some("tests/lint.rs")),
    (Code::NoDigest, Some("tests/lint.rs")),
    (Code::PatchWithoutTest, Some("tests/lint.rs")),
    (Code::BadResourceList, Some("tests/hosts/function.rs")),
    // Nobody knows a manifest for which undo is not exact; whoever finds one adds a case.
    (Code::InexactUndo, None),
    (Code::UnclearTarget, Some("tests/hosts/component.rs")),
    (Code::OutOfDate, Some("tests/hosts/kustomize.rs")),
    (
        Code::InvalidBefore,
        Some("testdata/review/check-warns-of-what-was-wrong-before/expected.txt"),
    ),
    (
        Code::NearMiss,
        Some("testdata/review/check-finds-what-is-out-of-date/expected.txt"),
    ),
    (
        Code::OptedIn,
        Some("testdata/review/check-finds-who-opts-in-and-is-not-selected/expected.txt"),
    ),
    (
        Code::LeftAlone,
        Some("testdata/review/check-finds-conflicts-lints-and-wrong-names/expected.txt"),
    ),
    (
        Code::WrongName,
        Some("testdata/review/check-finds-conflicts-lints-and-wrong-names/expected.txt"),
    ),
    (Code::Internal, None),
];

/// The headings of all reports in `testdata/cases`: a diagnostic begins with its code, alone on a line.
fn headings(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("testdata is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            found.extend(headings(&path));
        } else if path.file_name().is_some_and(|name| name == "report.txt") {
            found.extend(
                fs::read_to_string(&path)
                    .expect("a report is text")
                    .lines()
                    .map(str::to_owned),
            );
        }
    }
    found
}

fn explain(code: &str) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    command
        .args(["explain", "--code", code])
        .output()
        .expect("the program runs")
}

#[test]
fn every_code_has_a_page_of_one_form() {
    for code in Code::ALL {
        let page = code.page();
        let name = code.name();
        assert!(
            page.starts_with(&format!("# {name}\n\n")),
            "docs/errors/{name}.md begins with another heading"
        );
        let parts: Vec<&str> = page.split("\n## ").collect();
        let headings: Vec<&str> = parts[1..]
            .iter()
            .filter_map(|part| part.lines().next())
            .collect();
        assert_eq!(headings, ["Example", "What to do"], "docs/errors/{name}.md");
        assert!(
            parts.iter().all(|part| part.trim().lines().count() > 2),
            "docs/errors/{name}.md has an empty part"
        );
        let longest = page.lines().map(|line| line.chars().count()).max();
        assert!(
            longest <= Some(120),
            "docs/errors/{name}.md has a line of {longest:?} characters"
        );
    }
}

#[test]
fn every_page_is_of_a_code() {
    for entry in fs::read_dir("docs/errors").expect("the pages are there") {
        let path = entry.expect("the entry is readable").path();
        let name = path
            .file_stem()
            .expect("a page has a name")
            .to_string_lossy()
            .into_owned();
        assert!(
            Code::find(&name).is_some(),
            "{} is the page of no code",
            path.display()
        );
    }
}

#[test]
fn every_code_is_shown_by_a_case() {
    let shown = headings(Path::new("testdata/cases"));
    for code in Code::ALL {
        match SHOWN_ELSEWHERE.iter().find(|(other, _)| other == code) {
            Some((_, Some(file))) => {
                assert!(
                    !shown.iter().any(|line| line == code.name()),
                    "{}: a case shows it",
                    code.name()
                );
                let test = fs::read_to_string(file).expect("the test is there");
                // A test names the code that it looks for; a report begins a line, or a word, with it.
                let name = if file.ends_with(".rs") {
                    format!("\"{}\"", code.name())
                } else {
                    code.name().to_owned()
                };
                assert!(test.contains(&name), "{file} does not show {}", code.name());
            }
            Some((_, None)) => {}
            None => assert!(
                shown.iter().any(|line| line == code.name()),
                "no report.txt in testdata/cases shows `{}`: add a folder that does",
                code.name()
            ),
        }
    }
}

#[test]
fn explain_prints_the_page() {
    for code in Code::ALL {
        let output = explain(code.name());
        assert_eq!(
            (output.status.code(), &*output.stdout),
            (Some(0), code.page().as_bytes()),
            "{}",
            code.name()
        );
    }
}

#[test]
fn explain_offers_the_code_that_was_meant() {
    let output = explain("conflicts");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
    assert!(
        messages.contains("unknown-code") && messages.contains("did you mean `conflict`?"),
        "{messages}"
    );
    assert!(String::from_utf8_lossy(&explain("xyz").stderr).contains("cannot-compose"));
}

#[test]
fn a_test_of_a_policy_is_told_which_code_was_meant() {
    let place = Place::new();
    for (code, words) in [
        ("conflct", "did you mean `conflict`?"),
        ("xyz", "valid codes:"),
    ] {
        let expect = format!("expect: {{refused: [{code}]}}");
        place.write(
            "test.yaml",
            format!(
                "apiVersion: podgraft.dev/v1alpha1\nkind: PolicyTest\nmetadata: {{name: a}}\nspec:\n  policies: []\n  inputs: []\n  {expect}\n"
            ),
        );
        let messages = stderr_of(&place.run(&["policy", "test", "test.yaml"]));
        let flat = messages.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{messages}");
    }
}

/// The commands of podgraft in a page: in backticks, and in blocks of a shell.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let of_part = |(at, part): (usize, &'_ str)| -> Vec<String> {
        let lines = part
            .lines()
            .flat_map(|line| line.split('|'))
            .map(str::to_owned);
        let spans = part.split('`').skip(1).step_by(2).map(str::to_owned);
        match at % 2 {
            0 => spans.collect(),
            _ => lines.collect(),
        }
    };
    for text in page.split("```").enumerate().flat_map(of_part) {
        let text = text.split('#').next().unwrap_or_default().trim();
        let Some(rest) = text.strip_prefix("podgraft ") else {
            continue;
        };
        let words = rest.split_whitespace();
        let command =
            words.take_while(|word| !word.starts_with(['>', '<', '&', ';']) && *word != "...");
        found.push(
            command
                .map(|word| word.trim_matches('\'').to_owned())
                .collect(),
        );
    }
    found
}

#[test]
fn the_commands_of_the_pages_can_be_typed_in() {
    let mut number = 0;
    for code in Code::ALL {
        for args in commands(code.page()) {
            number += 1;
            // A page may leave out the value of the last flag.
            let help = |more: &[&str]| {
                let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
                command
                    .args(&args)
                    .args(more)
                    .output()
                    .expect("the program runs")
            };
            let output = help(&["--help"]);
            let messages = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.success() || help(&["X", "--help"]).status.success(),
                "{}: podgraft {}\n{messages}",
                code.name(),
                args.join(" ")
            );
        }
    }
    assert!(number > 20, "{number} commands");
}
