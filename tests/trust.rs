//! The threats of SECURITY.md, one test or more each: what hostile manifests and hostile policies must not be able to do.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use tempfile::TempDir;

const SECRET: &str = "not-for-any-output-4711";

/// A folder with a secret file in it, in which the program runs with a secret in its environment.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(TempDir::new().expect("there is a folder for temporary files"));
        place.write("secret.txt", SECRET);
        place.write("input.yaml", &deployment("app"));
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder"))
            .expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
        command
            .args(args)
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
            .env("PODGRAFT_TEST_SECRET", SECRET)
            .env("HOME", SECRET);
        command
    }

    /// Runs it; the secret must be nowhere in what it says.
    fn run(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().expect("the program runs");
        for stream in [&output.stdout, &output.stderr] {
            assert!(
                !String::from_utf8_lossy(stream).contains(SECRET),
                "{args:?}: {output:?}"
            );
        }
        output
    }
}

fn deployment(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n      \
         containers:\n      - name: app\n        image: app:1\n"
    )
}

/// A policy that sets one variable, with more in its spec.
fn policy(name: &str, variable: &str, value: &str, more: &serde_json::Value) -> String {
    let mut policy = json!({
        "apiVersion": "podgraft.dev/v1alpha1",
        "kind": "InjectionPolicy",
        "metadata": {"name": name},
        "spec": {"inject": {"env": [{"name": variable, "value": value}]}},
    });
    let spec = policy["spec"].as_object_mut().expect("it is an object");
    spec.extend(more.as_object().cloned().unwrap_or_default());
    policy.to_string() + "\n"
}

#[track_caller]
fn assert_refused(output: &Output) {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        output.stdout.is_empty(),
        "a refused run must give nothing out"
    );
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("it is text")
}

#[test]
fn expressions_reach_no_file_environment_clock_chance_or_network() {
    let place = Place::new();
    for text in [
        "file('secret.txt')",
        "readFile('secret.txt')",
        "open('/etc/passwd')",
        "include('secret.txt')",
        "env('PODGRAFT_TEST_SECRET')",
        "env.PODGRAFT_TEST_SECRET",
        "getenv('HOME')",
        "environ",
        "now()",
        "timestamp('2026-01-01T00:00:00Z')",
        "duration('1h')",
        "random()",
        "uuid()",
        "http.Get('http://192.0.2.1')",
        "exec('id')",
        "system('id')",
        "params.__class__",
        "self",
        "__proto__",
        "google.protobuf.Any{}",
    ] {
        let braces = format!("${{{text}}}");
        place.write("policy.yaml", &policy("agent", "A", &braces, &json!({})));
        assert_refused(&place.run(&["apply", "-p", "policy.yaml", "input.yaml"]));
        let condition =
            json!({"matchConditions": [{"name": "c", "expression": format!("{text} != null")}]});
        place.write("policy.yaml", &policy("agent", "A", "x", &condition));
        assert_refused(&place.run(&["apply", "-p", "policy.yaml", "input.yaml"]));
    }
}

#[test]
fn what_shells_and_templates_expand_stays_text() {
    let place = Place::new();
    for text in [
        "$PODGRAFT_TEST_SECRET",
        "$(PODGRAFT_TEST_SECRETS)",
        "%PODGRAFT_TEST_SECRET%",
        "`cat secret.txt`",
        "$(cat secret.txt)",
        "{{ env \"HOME\" }}",
        "<%= ENV['HOME'] %>",
        "file://secret.txt",
        "@secret.txt",
        "~/secret.txt",
        "!include secret.txt",
    ] {
        place.write("policy.yaml", &policy("agent", "A", text, &json!({})));
        let output = place.run(&["apply", "-q", "-p", "policy.yaml", "input.yaml"]);
        // Kubernetes would resolve a reference; one to nothing is refused before that.
        if output.status.code() != Some(2) {
            assert!(
                stdout(&output).contains(&*text.replace('"', "\\\"")),
                "{text}: {output:?}"
            );
        }
    }
}

#[test]
fn tags_read_no_file_and_make_no_object() {
    let place = Place::new();
    for tagged in [
        "!include secret.txt",
        "!!python/object/apply:os.system [id]",
        "!!python/name:os.environ",
        "!ENV PODGRAFT_TEST_SECRET",
        "!env HOME",
        "!file secret.txt",
        "!!javax.script.ScriptEngineManager []",
        "!vault secret.txt",
    ] {
        let text = policy("agent", "A", "VALUE", &json!({})).replace("\"VALUE\"", tagged);
        place.write("policy.yaml", &text);
        assert_refused(&place.run(&["apply", "-p", "policy.yaml", "input.yaml"]));
        // In a manifest they are somebody else's: as they were, or refused where the edit would have to read them.
        place.write("policy.yaml", &policy("agent", "A", "x", &json!({})));
        place.write(
            "tagged.yaml",
            &(deployment("app") + "        note: " + tagged + "\n"),
        );
        let output = place.run(&["apply", "-q", "-p", "policy.yaml", "tagged.yaml"]);
        let is_kept = String::from_utf8_lossy(&output.stdout).contains(&format!("note: {tagged}"));
        assert!(
            output.status.code() == Some(2) && output.stdout.is_empty() || is_kept,
            "{output:?}"
        );
    }
}

#[test]
fn policies_name_no_other_file() {
    let place = Place::new();
    for more in [
        json!({"include": "secret.txt"}),
        json!({"extends": "secret.txt"}),
        json!({"params": [{"name": "p", "valueFrom": {"file": "secret.txt"}}]}),
        json!({"params": [{"name": "p", "env": "PODGRAFT_TEST_SECRET"}]}),
        json!({"$ref": "secret.txt"}),
    ] {
        place.write("policy.yaml", &policy("agent", "A", "x", &more));
        assert_refused(&place.run(&["apply", "-p", "policy.yaml", "input.yaml"]));
    }
}

#[test]
fn a_manifest_is_a_policy_only_where_that_was_asked_for() {
    let place = Place::new();
    place.write("policy.yaml", &policy("agent", "GIVEN", "x", &json!({})));
    let hostile = policy("agent-2", "HOSTILE", "x", &json!({}));
    place.write("m/app.yaml", &deployment("app"));
    place.write("m/policy.yaml", &hostile);
    place.write("m/mixed.yaml", &(deployment("other") + "---\n" + &hostile));
    place.write(
        "m/podgraft.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [m/policy.yaml]\n",
    );
    let output = stdout(&place.run(&["apply", "-q", "-p", "policy.yaml", "m/app.yaml"]));
    assert!(
        output.contains("GIVEN") && !output.contains("HOSTILE"),
        "{output}"
    );
    let output = stdout(&place.run(&["apply", "-q", "-p", "policy.yaml", "m"]));
    assert_eq!(output.matches("GIVEN").count(), 2, "{output}");
    assert!(!output.contains("HOSTILE"), "{output}");
    let mixed = stdout(&place.run(&["apply", "-q", "-p", "policy.yaml", "m/mixed.yaml"]));
    assert_eq!(
        (
            mixed.matches("GIVEN").count(),
            mixed.matches("HOSTILE").count()
        ),
        (1, 1),
        "{mixed}"
    );
    for name in ["m/mixed.yaml", "m/podgraft.yaml"] {
        fs::remove_file(place.0.path().join(name)).expect("it is there");
    }
    let asked = stdout(&place.run(&["apply", "-q", "-p", "@input", "m"]));
    assert!(asked.contains("HOSTILE"), "{asked}");
}

#[test]
fn neither_environment_nor_place_nor_time_changes_a_byte() {
    let place = Place::new();
    place.write("policy.yaml", &policy("agent", "A", "x", &json!({})));
    for args in [
        &["apply", "-p", "policy.yaml", "input.yaml"][..],
        &["diff", "-p", "policy.yaml", "input.yaml"],
        &["diff", "-o", "summary", "-p", "policy.yaml", "input.yaml"],
    ] {
        let plain = place.command(args).output().expect("the program runs");
        let mut other = place.command(args);
        other.env_clear().envs([
            ("LC_ALL", "tr_TR.UTF-8"),
            ("TZ", "Pacific/Apia"),
            ("USER", "x"),
            ("CI", "true"),
        ]);
        other.envs([
            ("RUST_BACKTRACE", "full"),
            ("RUST_LOG", "trace"),
            ("TERM", "xterm"),
            ("COLUMNS", "20"),
        ]);
        let other = other.output().expect("the program runs");
        assert_eq!(plain.stdout, other.stdout, "{args:?}");
        assert_eq!(plain.status, other.status, "{args:?}");
    }
}

#[test]
fn no_command_is_run_and_no_socket_opened() {
    let mut folders: Vec<_> = ["src", "crates"].map(PathBuf::from).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("the file is readable");
            for word in [
                "std::net",
                "os::unix::net",
                "process::Command",
                "Command::new",
                "libc::",
                "unsafe {",
            ] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

/// `deny.toml` has the longer list; this one needs no other program.
#[test]
fn no_dependency_speaks_to_a_network() {
    let lock = fs::read_to_string("Cargo.lock").expect("the file is readable");
    let names: Vec<&str> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("name = \""))
        .collect();
    assert!(names.len() > 50, "only {} crates were read", names.len());
    for name in names.iter().map(|name| name.trim_end_matches('"')) {
        let is_network = [
            "hyper",
            "reqwest",
            "rustls",
            "tokio",
            "openssl",
            "socket",
            "curl",
            "ureq",
            "native-tls",
            "mio",
        ]
        .iter()
        .any(|word| name == *word || name.starts_with(&format!("{word}-")) || name == "socket2");
        assert!(!is_network, "{name}");
    }
}
