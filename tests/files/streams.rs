//! What goes to stdout and stderr when things go wrong.

use std::fs;
use std::process::{Output, Stdio};

use super::common::{POLICY, Place, assert_exit, deployment, formats, stderr};

/// Nobody reads more than this, and terminals and logs choke on more.
const MOST_STDERR: usize = 256 << 10;

fn broken(number: usize) -> String {
    format!("kind: Pod\nbroken{number}: [\n")
}

#[test]
fn a_flood_of_errors_is_bounded() {
    let place = Place::with_policy(POLICY);
    for number in 0..3000 {
        place.write(format!("m/{number}.yaml"), broken(number));
    }
    let output = place.run(&["apply", "-p", "policy.yaml", "m"]);
    assert_exit(&output, 2);
    assert!(output.stdout.is_empty());
    assert!(
        output.stderr.len() < MOST_STDERR,
        "{} bytes",
        output.stderr.len()
    );
    assert!(
        stderr(&output).contains("3000 errors; nothing was written"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_report_on_very_many_workloads_is_bounded() {
    let place = Place::with_policy(POLICY);
    let many: Vec<String> = (0..20_000)
        .map(|number| deployment(&format!("w{number}")))
        .collect();
    place.write("a.yaml", many.join("---\n"));
    let output = place.run(&["apply", "-p", "policy.yaml", "a.yaml"]);
    assert_exit(&output, 0);
    assert!(
        output.stderr.len() < MOST_STDERR,
        "{} bytes",
        output.stderr.len()
    );
    assert!(
        stderr(&output).contains("20000 injected"),
        "{}",
        stderr(&output)
    );
}

/// A log, say: to kubectl they are objects without a kind.
#[test]
fn json_objects_of_nothing_pass_and_those_with_a_kind_are_refused() {
    let place = Place::with_policy(POLICY);
    let log = "{\"level\":\"info\",\"spec\":{\"containers\":[]}}\n{\"level\":\"warn\"}\n";
    let text = format!("{log}---\n{}", deployment("a"));
    place.write("a.yaml", &text);
    let output = place.run(&["apply", "-p", "policy.yaml", "a.yaml"]);
    assert_exit(&output, 0);
    assert!(output.stdout.starts_with(log.as_bytes()));
    assert!(output.stdout.len() > text.len(), "the workload is changed");
    let lines = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n".repeat(2);
    place.write("a.yaml", lines);
    let output = place.run(&["apply", "-p", "policy.yaml", "a.yaml"]);
    assert_exit(&output, 2);
    assert!(stderr(&output).contains("separate the JSON objects with `---` lines"));
}

/// The configuration of a compiler or an editor, in a tree with manifests.
#[test]
fn json_with_comments_passes_if_it_names_no_kind() {
    let place = Place::with_policy(POLICY);
    let settings =
        "// for the editor\n{\n  \"strict\": true, // FIXME: x\n  \"target\": \"es6\"\n}\n";
    let kind = settings.replace("strict", "kind");
    let escaped = settings.replace("strict", r"\u006bind");
    let object = settings.strip_prefix("// for the editor\n").unwrap();
    let marked = format!("\u{feff}{settings}");
    let array = format!("[\n// for the editor\n{object}]\n");
    for text in [settings, object, &marked, &array] {
        place.write("m/tsconfig.json", text);
        place.write("m/a.yaml", deployment("a"));
        let output = place.run(&["apply", "-i", "-p", "policy.yaml", "m"]);
        assert_exit(&output, 0);
        assert_eq!(place.read("m/tsconfig.json"), text);
    }
    for text in [&kind, &escaped] {
        place.write("m/tsconfig.json", text);
        let output = place.run(&["apply", "-i", "-p", "policy.yaml", "m"]);
        assert_exit(&output, 2);
        assert!(stderr(&output).contains("not-yaml"));
    }
}

#[test]
fn an_error_of_one_file_keeps_all_of_the_others_from_stdout() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("m/z.yaml", broken(1));
    for args in [
        ["apply", "-p", "policy.yaml", "m"],
        ["diff", "-p", "policy.yaml", "m"],
    ] {
        let output = place.run(&args);
        assert_exit(&output, 2);
        assert!(output.stdout.is_empty());
    }
}

const COMMANDS: &[&str] = &[
    "apply",
    "apply --stream",
    "apply -o json-patch",
    "explain",
    "explain -o json",
    "debug",
    "inspect",
    "inspect -o json",
    "inspect -o yaml",
    "undo",
    "fn",
    "post-render",
];

/// [`COMMANDS`], and the reviews in each of their formats.
fn commands() -> Vec<String> {
    let mut commands: Vec<String> = COMMANDS.iter().map(ToString::to_string).collect();
    for review in ["diff", "check"] {
        let formats = formats(review).into_iter();
        commands.extend(formats.map(|format| format!("{review} -o {format}")));
    }
    commands
}

fn is_host(command: &str) -> bool {
    matches!(command, "fn" | "post-render")
}

fn takes_policy(command: &str) -> bool {
    !is_host(command) && command != "undo" && !command.starts_with("inspect")
}

/// Runs a command over a file; hosts read it from stdin.
fn run_over(place: &Place, command: &str, policy: &str, input: &str) -> Output {
    let mut words: Vec<&str> = command.split(' ').collect();
    if is_host(command) {
        let stdin = fs::File::open(place.path(input)).unwrap();
        return place
            .command(&words)
            .env("PODGRAFT_POLICY", policy)
            .stdin(stdin)
            .output()
            .unwrap();
    }
    if takes_policy(command) {
        words.extend(["-p", policy]);
    }
    words.push(input);
    place.run(&words)
}

/// A pipeline reads stdout: nothing that is no result may come that way, whatever goes wrong.
fn assert_only_stderr(command: &str, input: &str, output: &Output) {
    assert_eq!(
        output.status.code(),
        Some(2),
        "{command}, {input}: {}",
        stderr(output)
    );
    // Pages that show the reports of a job show why it is refused: what is on stderr.
    let reports = [
        ("check -o github", "::error "),
        ("check -o junit", "<failure message="),
        ("check -o sarif", "\"level\": \"error\""),
    ];
    let says_why = reports.iter().any(|(report, error)| {
        command.starts_with(report) && String::from_utf8_lossy(&output.stdout).contains(error)
    });
    assert!(
        output.stdout.is_empty() || says_why,
        "{command}, {input}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(!output.stderr.is_empty(), "{command}, {input} says nothing");
}

#[test]
fn stdout_is_empty_under_every_error_of_every_command() {
    let place = Place::with_policy(POLICY);
    place.write(
        "bad-policy.yaml",
        place.read("policy.yaml").replace("inject:", "injekt:"),
    );
    let good = deployment("a");
    place.write("good.yaml", &good);
    let texts: [(&str, Vec<u8>); 6] = [
        ("no YAML", broken(1).into()),
        ("no UTF-8", [good.as_bytes(), b"# \xff\n"].concat()),
        ("NUL", [good.as_bytes(), b"\0\n"].concat()),
        ("UTF-16", b"\xff\xfek\0".to_vec()),
        (
            "not rendered",
            good.replace("name: app", "name: {{ .Values.name }}").into(),
        ),
        ("too deep", format!("{good}x: {}\n", "[".repeat(300)).into()),
    ];
    for command in &commands() {
        let refused = |input: &str, output: Output| assert_only_stderr(command, input, &output);
        for (input, text) in &texts {
            place.write("a.yaml", text);
            refused(input, run_over(&place, command, "policy.yaml", "a.yaml"));
        }
        if takes_policy(command) {
            refused(
                "no file",
                run_over(&place, command, "policy.yaml", "not-there.yaml"),
            );
        }
        if takes_policy(command) || command == "post-render" {
            refused(
                "a bad policy",
                run_over(&place, command, "bad-policy.yaml", "good.yaml"),
            );
            refused(
                "no policy",
                run_over(&place, command, "not-there.yaml", "good.yaml"),
            );
        }
        let usage: Vec<&str> = command.split(' ').chain(["--no-such-flag"]).collect();
        refused("wrong usage", place.run(&usage));
    }
}

#[test]
fn a_closed_pipe_is_silent_for_every_command() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a") + &"# long\n".repeat(100_000));
    let filler = fs::read(place.path("a.yaml")).unwrap();
    place.write("b.yaml", filler);
    let commands: [(&[&str], i32); 6] = [
        (&["apply", "-q", "-p", "policy.yaml", "a.yaml"], 0),
        (&["apply", "-q", "-p", "policy.yaml", "a.yaml", "b.yaml"], 0),
        (&["diff", "-q", "-p", "policy.yaml", "a.yaml"], 1),
        (&["man"], 0),
        (&["completions", "bash"], 0),
        (&["policy", "list"], 0),
    ];
    for (args, exit) in commands {
        let mut child = place
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_exit(&output, exit);
        assert_eq!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn a_closed_stderr_does_not_fail_the_run() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a"));
    let mut child = place
        .command(&["apply", "-p", "policy.yaml", "a.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let output = child.wait_with_output().unwrap();
    assert_exit(&output, 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("AGENT"));
}

#[test]
fn a_run_takes_away_what_is_left_of_an_earlier_report() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a"));
    place.write("r.json", "old");
    place.write(".r.json.podgraft-tmp", "half of one that was killed");
    let args = [
        "apply",
        "-q",
        "--report",
        "r.json",
        "-p",
        "policy.yaml",
        "a.yaml",
    ];
    assert_exit(&place.run(&args), 0);
    assert!(
        place.read("r.json").starts_with('{'),
        "{}",
        place.read("r.json")
    );
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_link_to_a_report_stays_a_link() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a"));
    std::os::unix::fs::symlink("r.json", place.path("link.json")).unwrap();
    place.write("r.json", "old");
    assert_exit(
        &place.run(&[
            "apply",
            "-q",
            "--report",
            "link.json",
            "-p",
            "policy.yaml",
            "a.yaml",
        ]),
        0,
    );
    assert!(place.path("link.json").is_symlink() && place.read("r.json").starts_with('{'));
}

#[test]
fn a_report_is_written_to_what_is_no_file() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a"));
    let output = place.run(&[
        "diff",
        "-q",
        "--report",
        "/dev/stderr",
        "-p",
        "policy.yaml",
        "a.yaml",
    ]);
    assert_exit(&output, 1);
    assert!(
        stderr(&output).contains("\"verdict\""),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_run_that_cannot_write_the_whole_report_leaves_the_old_one() {
    let place = Place::with_policy(POLICY);
    let Some(_mount) = place.mount("small", &["-t", "tmpfs", "-o", "size=16k", "tmpfs"]) else {
        return;
    };
    place.write("small/r.json", "old");
    place.write(
        "many.yaml",
        (0..200)
            .map(|number| deployment(&number.to_string()))
            .collect::<Vec<_>>()
            .join("---\n"),
    );
    assert_exit(
        &place.run(&[
            "apply",
            "-q",
            "--report",
            "small/r.json",
            "-p",
            "policy.yaml",
            "many.yaml",
        ]),
        2,
    );
    assert_eq!(place.read("small/r.json"), "old");
    assert!(place.leftovers().is_empty());
}
