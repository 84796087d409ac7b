//! What a terminal obeys, what turns the direction of a line, and what ends a line for some readers: in every form for people
//! an escape, in JSON one of JSON's.

use super::common::{POLICY, Place, assert_exit, deployment, formats, stderr};

/// As it stands in a manifest, in double quotes.
const ODD: &str = r"\e]0;t\a\u009b31m\u202e\u2066\u061c\u200e\u200f\u2028\u2029\N\u200b\u2060\u00ad ##[error]x ##vso[a]y section_start:1:z \r\n::error::x";

fn is_unsafe(char: char) -> bool {
    let is_mark = matches!(
        char,
        '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
    );
    is_mark || char.is_control() && char != '\n'
}

/// A workload that is changed, one with errors and a kind that nobody knows, all with names that no API server takes.
fn place() -> Place {
    let place = Place::with_policy(POLICY);
    let odd = |word: &str| format!("\"{word}{ODD}\"");
    let named = |text: String, name: &str| {
        text.replace("name: a}", &format!("name: {name}, namespace: {name}}}"))
    };
    let changed =
        named(deployment("a"), &odd("n")).replace("name: app\n", &format!("name: {}\n", odd("c")));
    place.write("changed.yaml", changed.replace("app:1", &odd("i")));
    let wrong = format!(
        "name: app\n        ports: [{{containerPort: {0}}}]\n        env: [{{name: AGENT, value: {0}}}]\n",
        odd("p")
    );
    place.write(
        "wrong.yaml",
        named(deployment("a"), &odd("n")).replace("name: app\n", &wrong),
    );
    let unknown = "spec: {template: {spec: {containers: [{name: a, image: b}]}}}";
    place.write(
        "unknown.yaml",
        format!(
            "apiVersion: {0}\nkind: {0}\nmetadata: {{name: {0}}}\n{unknown}\n",
            odd("k/")
        ),
    );
    let (label, missed) = (
        odd("l"),
        deployment("a").replace(
            "    spec:\n",
            "    metadata: {labels: {app: LABEL}}\n    spec:\n",
        ),
    );
    place.write(
        "missed.yaml",
        named(missed, &odd("n")).replace("LABEL", &label),
    );
    let policy = place
        .read("policy.yaml")
        .replace("  inject:", "  match: {labels: {app: l}}\n  inject:");
    place.write("choosy.yaml", policy);
    place
}

#[track_caller]
fn assert_safe(shown: &str, command: &[&str]) {
    assert!(!shown.contains(is_unsafe), "{command:?}: {shown:?}");
    assert!(
        !shown
            .lines()
            .any(|line| line.trim_start().starts_with("::error::")),
        "{command:?}: a command: {shown}"
    );
    for mark in ["##[error", "##vso[", "section_start:"] {
        assert!(!shown.contains(mark), "{command:?}: a command: {shown}");
    }
}

#[test]
fn no_form_for_people_has_what_a_terminal_obeys() {
    let place = place();
    let others = [
        "apply",
        "apply --diagnostics short",
        "apply --diagnostics json",
        "check",
        "check -o json",
        "check -o junit",
        "check -o sarif",
        "explain",
        "explain -o json",
        "check --diagnostics short",
        "debug -o json",
    ];
    let mut forms = others.map(str::to_owned).to_vec();
    // A patch has the bytes of the file.
    let formats = formats("diff").into_iter();
    let formats = formats.filter(|format| format != "unified");
    forms.extend(formats.map(|format| format!("diff -o {format}")));
    let mut has_escape = 0;
    for policy in ["policy.yaml", "choosy.yaml"] {
        for file in ["changed.yaml", "wrong.yaml", "unknown.yaml", "missed.yaml"] {
            for form in &forms {
                let args: Vec<&str> = form.split(' ').chain(["-p", policy, file]).collect();
                let output = place.run(&args);
                assert!(matches!(output.status.code(), Some(0..=2)), "{output:?}");
                let stdout = String::from_utf8(output.stdout.clone()).unwrap();
                if args[0] != "apply" {
                    // The page's own script has tabs.
                    assert_safe(&stdout.replace('\t', ""), &args);
                }
                assert_safe(&stderr(&output), &args);
                has_escape += usize::from((stdout + &stderr(&output)).contains("202e"));
            }
        }
    }
    assert!(
        has_escape > 60,
        "the names are shown, as escapes: {has_escape}"
    );
}

#[test]
fn tables_and_workflow_commands_have_none_either() {
    let place = place();
    for form in ["table", "wide", "json", "yaml", "farmpods"] {
        let args = ["inspect", "-A", "-o", form, "changed.yaml", "wrong.yaml"];
        let output = place.run(&args);
        assert_exit(&output, 0);
        let shown = String::from_utf8(output.stdout).unwrap();
        // YAML for programs keeps text that is one to a log: it could not be written in every style.
        match form {
            "yaml" | "farmpods" => assert!(!shown.contains(is_unsafe), "{shown:?}"),
            _ => assert_safe(&shown, &args),
        }
    }
    for file in ["changed.yaml", "wrong.yaml", "unknown.yaml", "missed.yaml"] {
        let args = ["check", "-o", "github", "-p", "policy.yaml", file];
        let shown = String::from_utf8(place.run(&args).stdout).unwrap();
        assert_safe(&shown, &args);
        // Nothing begins a line but podgraft's own commands.
        assert!(shown.lines().all(|line| {
            ["::error ", "::warning ", "::notice "]
                .iter()
                .any(|prefix| line.starts_with(prefix))
        }));
    }
}

#[test]
fn a_patch_has_its_headings_escaped_and_its_lines_as_they_are() {
    let place = place();
    let raw = "\u{202e}\u{200f}";
    place.write(
        "raw.yaml",
        place.read("changed.yaml") + &format!("        workingDir: '/{raw}'\n"),
    );
    let output = place.run(&["diff", "-q", "-p", "policy.yaml", "raw.yaml"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    let (headings, body): (Vec<&str>, Vec<&str>) = shown.lines().partition(|line| {
        ["# ", "@@ ", "--- ", "+++ "]
            .iter()
            .any(|prefix| line.starts_with(prefix))
    });
    assert!(headings.len() >= 4, "{shown}");
    headings
        .iter()
        .for_each(|heading| assert_safe(heading, &["diff"]));
    assert!(body.iter().any(|line| line.contains(raw)), "{shown}");
}

#[test]
fn what_people_write_is_shown_as_it_is() {
    let place = Place::with_policy(POLICY);
    let name = "größe-名前-👩\u{200d}💻";
    place.write(
        "a.yaml",
        deployment("a").replace("name: app\n", &format!("name: {name}\n")),
    );
    let output = place.run(&[
        "diff",
        "-p",
        "policy.yaml",
        "--diagnostics",
        "short",
        "a.yaml",
    ]);
    assert!(stderr(&output).contains(name), "{}", stderr(&output));
    let output = place.run(&[
        "diff",
        "-p",
        "policy.yaml",
        "--diagnostics",
        "json",
        "a.yaml",
    ]);
    assert!(
        stderr(&output).contains("größe-名前"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn very_long_values_are_shown_by_their_beginning() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a"));
    let long = "a".repeat(100_000);
    let params =
        format!("  params: [{{name: x, default: \"{long}\", pattern: \"b+\"}}]\n  inject:");
    place.write(
        "param.yaml",
        place.read("policy.yaml").replace("  inject:", &params),
    );
    // As long as a glob may be.
    let selects = format!(
        "  match: {{annotations: {{x: \"*{}*\"}}}}\n  inject:",
        &long[..4_000]
    );
    place.write(
        "select.yaml",
        place.read("policy.yaml").replace("  inject:", &selects),
    );
    for (policy, words) in [
        ("param.yaml", "does not"),
        ("select.yaml", "requires x: *aaa"),
    ] {
        for form in ["text", "short", "json"] {
            let shown =
                stderr(&place.run(&["apply", "-p", policy, "--diagnostics", form, "a.yaml"]));
            assert!(
                shown.len() < 3_000,
                "{policy} {form}: {} bytes",
                shown.len()
            );
            assert!(
                form == "json" || shown.replace("\n  │ ", " ").contains(words),
                "{shown}"
            );
        }
        for command in [&["explain"][..], &["check"], &["check", "-o", "github"]] {
            let output = place.run(&[command, &["-p", policy, "a.yaml"]].concat());
            assert!(
                output.stdout.len() + output.stderr.len() < 3_000,
                "{policy} {command:?}"
            );
        }
    }
}
