//! What people see on a terminal: the program on a pseudo-terminal of `script`, where that is installed.

use std::process::{Command, Stdio};

const FOLDER: &str = "testdata/review/diff-as-unified";

/// What a command prints on a terminal of so many columns; `None` where there is no `script`.
fn on_terminal(columns: usize, env: &[(&str, &str)], args: &str) -> Option<String> {
    let line = format!(
        "stty cols {columns} rows 50; {} {args}",
        env!("CARGO_BIN_EXE_podgraft")
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .current_dir(FOLDER)
        .stdin(Stdio::null());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    let Ok(output) = command.envs(env.iter().copied()).output() else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "script (util-linux) is not there"
        );
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        shown + part.split_once('m').map_or(part, |(_, rest)| rest)
    })
}

const DIFF: &str = "diff --record -p policy.yaml input.yaml";

#[test]
fn long_lines_are_folded_between_words_and_records_are_cut() {
    for columns in [80, 200] {
        let Some(shown) = on_terminal(columns, &[], DIFF) else {
            return;
        };
        let plain = without_colours(&shown);
        // What stands in the manifests stays as it is.
        let is_heading =
            |line: &&str| line.starts_with("# ") || line.contains("podgraft.dev/record");
        let widest = plain
            .lines()
            .filter(is_heading)
            .map(|line| line.chars().count())
            .max();
        assert!(widest <= Some(columns), "{columns} columns:\n{plain}");
        assert!(
            plain.contains("/agent)") && plain.contains("prometheus.io/scrape,"),
            "{plain}"
        );
        assert!(
            plain
                .lines()
                .any(|line| line.starts_with("+    podgraft.dev/record: ") && line.ends_with('…'))
        );
        assert!(!plain.contains('%'), "no bar for a short run: {plain}");
    }
}

#[test]
fn colours_are_there_unless_somebody_minds() {
    let green = "\u{1b}[32m+";
    let Some(shown) = on_terminal(80, &[], DIFF) else {
        return;
    };
    assert!(shown.contains(green), "{shown}");
    for env in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        let shown = on_terminal(80, &env, DIFF).expect("it is there");
        assert!(!shown.contains('\u{1b}'), "{env:?}: {shown}");
    }
    assert!(
        on_terminal(80, &[("CI", "true")], DIFF)
            .expect("it is there")
            .contains(green)
    );
    let piped = on_terminal(80, &[], "diff -q --record -p policy.yaml input.yaml | cat")
        .expect("it is there");
    assert!(
        !piped.contains('\u{1b}') && piped.contains("\"marker\":{\"made\""),
        "a patch for programs: {piped}"
    );
}

#[test]
fn a_terminal_gets_no_line_of_a_manifest_that_turns_its_direction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.yaml");
    let text = std::fs::read_to_string(format!("{FOLDER}/input.yaml")).unwrap();
    let odd = text
        .replace(
            "      containers:\n",
            "      containers: # x\u{202e}\u{200f}yé\n",
        )
        .replace('\n', "\r\n");
    assert_ne!(odd, text.replace('\n', "\r\n"), "there is such a line");
    std::fs::write(&path, &odd).unwrap();
    let Some(shown) = on_terminal(
        200,
        &[("NO_COLOR", "1")],
        &format!("diff -q -p policy.yaml {}", path.display()),
    ) else {
        return;
    };
    assert!(!shown.contains(['\u{202e}', '\u{200f}']), "{shown:?}");
    assert!(
        shown.contains("# x\\u{202e}\\u{200f}yé\n"),
        "without an escape for the line end: {shown}"
    );
}
