//! The program as a user runs it: exit status, streams, files.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{
    POLICY_FOR_RESOURCES, Place, RESOURCE, assert_exit, assert_refused, stderr_of as stderr,
    stdout_of as stdout,
};

const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: agent
spec:
  match:
    selector:
      matchLabels: {runtime: java}
  inject:
    volumes:
      - {name: agent, emptyDir: {}}
    env:
      - {name: AGENT, value: 'on'}
";

fn deployment(name: &str, runtime: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  template:\n    metadata:\n      \
         labels: {{runtime: {runtime}}}\n    spec:\n      containers:\n        - name: app\n          image: app:1\n"
    )
}

const SECRET: &str =
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  password: hunter2\n";

/// All that stands in the folder, sorted.
fn files(place: &Place) -> Vec<String> {
    let all = walkdir::WalkDir::new(place.root())
        .sort_by_file_name()
        .into_iter()
        .map(|entry| entry.unwrap());
    let files = all.filter(|entry| !entry.file_type().is_dir());
    let names = files.map(|entry| {
        let name = entry.path().strip_prefix(place.root()).unwrap();
        name.to_string_lossy().into_owned()
    });
    names.collect()
}

#[test]
fn stdin_is_patched_to_stdout_and_the_report_goes_to_stderr() {
    let place = Place::with_policy(POLICY);
    let output = place.run_with_stdin(&["apply", "-p", "policy.yaml"], &deployment("a", "java"));
    assert_exit(&output, 0);
    assert!(
        stdout(&output).contains("- name: AGENT"),
        "{}",
        stdout(&output)
    );
    assert!(
        stderr(&output).contains("deployment a: injected by agent ("),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("1 workload: 1 injected; 0 other objects"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_file_that_no_policy_touches_comes_out_byte_for_byte() {
    let place = Place::with_policy(POLICY);
    let odd = "\u{feff}# c\r\n---   # x\r\na:   1   \r\n\r\n...\r\n---\r\n".to_owned()
        + &deployment("a", "go");
    let output = place.run_with_stdin(&["apply", "-q", "-p", "policy.yaml", "-"], &odd);
    assert_exit(&output, 0);
    assert_eq!(stdout(&output), odd);
    assert_eq!(stderr(&output), "");
}

#[test]
fn wrong_usage_is_exit_2_and_says_what_to_do() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a", "java"));
    assert_refused(&place.run(&["apply", "a.yaml"]), "builtin");
    assert_refused(&place.run(&["apply", "a.yaml"]), "rookout-java");
    assert_refused(
        &place.run(&["apply", "-p", "builtin:rookout-jva", "a.yaml"]),
        "did you mean `builtin:rookout-java`",
    );
    assert_refused(
        &place.run(&["apply", "-p", "rookout-java", "a.yaml"]),
        "-p builtin:rookout-java",
    );
    assert_refused(
        &place.run(&["apply", "-i", "-p", "policy.yaml"]),
        "stdin cannot be replaced",
    );
    assert_refused(
        &place.run(&[
            "apply",
            "-i",
            "--output-dir",
            "o",
            "-p",
            "policy.yaml",
            "a.yaml",
        ]),
        "cannot be used with",
    );
    assert_refused(
        &place.run(&["apply", "-p", "-", "-"]),
        "stdin can be read only once",
    );
    assert_refused(
        &place.run(&["apply", "-p", "policy.yaml", "--only", "agnt", "a.yaml"]),
        "did you mean `agent`",
    );
    assert_refused(
        &place.run(&["apply", "-p", "policy.yaml", "--workload", "x", "a.yaml"]),
        "kind/namespace/name",
    );
    assert_refused(
        &place.run(&["apply", "-p", "policy.yaml", "missing.yaml"]),
        "missing.yaml",
    );
    assert_refused(&place.run(&["frobnicate"]), "frobnicate");
}

#[test]
fn only_and_skip_choose_among_the_given_policies() {
    let place = Place::with_policy(POLICY);
    place.write(
        "other.yaml",
        POLICY.replace("agent", "other").replace("AGENT", "OTHER"),
    );
    place.write("a.yaml", deployment("a", "java"));
    for args in [["--only", "agent"], ["--skip", "other"]] {
        let output = place.run(
            &[
                &["apply", "-p", "policy.yaml", "-p", "other.yaml", "a.yaml"],
                &args[..],
            ]
            .concat(),
        );
        assert_exit(&output, 0);
        assert!(
            stdout(&output).contains("AGENT") && !stdout(&output).contains("OTHER"),
            "{}",
            stdout(&output)
        );
    }
}

#[test]
fn an_input_with_nothing_in_it_fails() {
    let place = Place::with_policy(POLICY);
    place.write("empty/notes.txt", "x");
    place.write("values/values.yaml", "replicas: 1\n");
    place.write("other/settings.yaml", "replicas: 1\n");
    assert_refused(
        &place.run_with_stdin(&["apply", "-p", "policy.yaml"], ""),
        "no-manifests",
    );
    assert_refused(
        &place.run_with_stdin(&["apply", "-p", "policy.yaml"], "# nothing\n---\n"),
        "no-manifests",
    );
    for folder in ["empty", "values", "other"] {
        assert_refused(
            &place.run(&["apply", "-p", "policy.yaml", folder]),
            "no-manifests",
        );
    }
}

#[test]
fn all_problems_of_a_run_are_listed_and_nothing_is_written() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a", "java"));
    place.write("m/b.yaml", deployment("b", "java") + "      x: [\n");
    place.write("m/c.yaml", deployment("c", "java") + "      y: {\n");
    let output = place.run(&["apply", "-i", "-p", "policy.yaml", "m"]);
    assert_refused(&output, "m/b.yaml:");
    assert_refused(&output, "m/c.yaml:");
    assert!(
        stderr(&output).contains("podgraft: 2 errors; nothing was written"),
        "{}",
        stderr(&output)
    );
    assert_eq!(place.read("m/a.yaml"), deployment("a", "java"));
}

#[test]
fn a_folder_is_read_in_the_order_of_its_paths_without_what_is_no_manifest() {
    let place = Place::with_policy(POLICY);
    place.write("m/b.yaml", deployment("b", "go"));
    place.write("m/a/x.yml", deployment("x", "go"));
    place.write("m/a-z.yaml", deployment("z", "go").trim_end());
    place.write("m/.hidden/h.yaml", deployment("hidden", "go"));
    place.write(
        "m/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
    );
    place.write("m/Chart.yaml", "apiVersion: v2\nname: c\n");
    place.write("m/policy.yaml", POLICY);
    place.write("m/mixed.yaml", format!("note: 1\n---\n{SECRET}"));
    place.write(
        "m/z.json",
        "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"j\"}}",
    );
    let output = place.run(&["apply", "-p", "policy.yaml", "m"]);
    assert_exit(&output, 0);
    let expected = [
        deployment("z", "go"),
        deployment("x", "go"),
        deployment("b", "go"),
        SECRET.to_owned(),
        "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"j\"}}"
            .to_owned(),
    ];
    assert_eq!(stdout(&output), expected.join("---\n"));
    let excluded = place.run(&[
        "apply",
        "-p",
        "policy.yaml",
        "--exclude",
        "a",
        "--include",
        "*.yml",
        "--include",
        "b*",
        "m",
    ]);
    assert_eq!(stdout(&excluded), deployment("b", "go"));
}

#[test]
fn the_policies_may_stand_among_the_manifests() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a", "java"));
    place.write(
        "m/p.yaml",
        format!("{}---\n{POLICY}", deployment("b", "go")),
    );
    let output = place.run(&["apply", "-p", "@input", "m"]);
    assert_exit(&output, 0);
    assert!(
        stdout(&output).contains("AGENT") && !stdout(&output).contains("InjectionPolicy"),
        "{}",
        stdout(&output)
    );
    place.write("n/a.yaml", deployment("a", "java"));
    assert_refused(
        &place.run(&["apply", "-p", "@input", "n"]),
        "no policy among the manifests",
    );
}

#[test]
fn resources_of_a_policy_may_be_among_the_manifests() {
    let place = Place::with_policy(POLICY_FOR_RESOURCES);
    place.write("m/level.yaml", RESOURCE);
    place.write("m/a.yaml", deployment("a", "java"));
    let with_policy = &["-p", "policy.yaml", "-p", "@input"][..];
    let output = place.run(&[&["apply"], with_policy, &["m"]].concat());
    assert_exit(&output, 0);
    assert!(stdout(&output).contains("value: high"), "{output:?}");
    place.write("m/policy.yaml", POLICY_FOR_RESOURCES);
    assert_eq!(
        stdout(&place.run(&["apply", "-p", "@input", "m"])),
        stdout(&output)
    );
}

#[test]
fn in_place_replaces_only_files_that_change() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a", "java"));
    place.write("m/b.yaml", deployment("b", "go"));
    place.write("m/.a.yaml.podgraft-tmp", "left by a killed run");
    place.write("m/.b.yaml.podgraft-tmp", "left by a killed run");
    let before = fs::metadata(place.path("m/b.yaml"))
        .unwrap()
        .modified()
        .unwrap();
    let output = place.run(&["apply", "-i", "-p", "policy.yaml", "m"]);
    assert_exit(&output, 0);
    assert_eq!(stdout(&output), "");
    assert!(place.read("m/a.yaml").contains("AGENT"));
    assert_eq!(place.read("m/b.yaml"), deployment("b", "go"));
    assert_eq!(
        fs::metadata(place.path("m/b.yaml"))
            .unwrap()
            .modified()
            .unwrap(),
        before
    );
    assert_eq!(
        files(&place),
        ["m/a.yaml", "m/b.yaml", "m/podgraft.lock", "policy.yaml"]
    );
    let first = place.read("m/a.yaml");
    assert_exit(&place.run(&["apply", "-i", "-p", "policy.yaml", "m"]), 0);
    assert_eq!(place.read("m/a.yaml"), first);
}

#[cfg(unix)]
#[test]
fn in_place_keeps_modes_and_writes_through_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = Place::with_policy(POLICY);
    place.write("real/a.yaml", deployment("a", "java"));
    fs::set_permissions(place.path("real/a.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real/a.yaml", place.path("link.yaml")).unwrap();
    assert_exit(
        &place.run(&[
            "apply",
            "-i",
            "-p",
            "policy.yaml",
            "link.yaml",
            "real/a.yaml",
        ]),
        0,
    );
    assert!(
        fs::symlink_metadata(place.path("link.yaml"))
            .unwrap()
            .is_symlink()
    );
    assert!(place.read("real/a.yaml").contains("AGENT"));
    assert_eq!(
        fs::metadata(place.path("real/a.yaml"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o640
    );
}

#[cfg(unix)]
#[test]
fn a_hidden_name_that_is_a_link_is_not_followed() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a", "java"));
    place.write("precious", "keep me");
    std::os::unix::fs::symlink("precious", place.path(".a.yaml.podgraft-tmp")).unwrap();
    assert_exit(
        &place.run(&["apply", "-i", "-p", "policy.yaml", "a.yaml"]),
        0,
    );
    assert_eq!(place.read("precious"), "keep me");
    assert!(place.read("a.yaml").contains("AGENT"));
}

#[test]
fn a_read_only_file_is_refused_before_any_is_written() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a", "java"));
    place.write("b.yaml", deployment("b", "java"));
    let path = place.path("b.yaml");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    assert_refused(
        &place.run(&["apply", "-i", "-p", "policy.yaml", "a.yaml", "b.yaml"]),
        "`b.yaml` is read-only",
    );
    assert_eq!(place.read("a.yaml"), deployment("a", "java"));
    assert_eq!(files(&place), ["a.yaml", "b.yaml", "policy.yaml"]);
}

#[test]
fn output_dir_mirrors_the_tree_and_leaves_the_input_alone() {
    let place = Place::with_policy(POLICY);
    place.write("m/x/a.yaml", deployment("a", "java"));
    place.write("m/b.yaml", deployment("b", "go"));
    place.write("m/values.yaml", "replicas: 1\n");
    place.write("n/a.yaml", deployment("n", "go"));
    assert_exit(
        &place.run(&["apply", "--output-dir", "out", "-p", "policy.yaml", "m"]),
        0,
    );
    let files = files(&place);
    let out: Vec<&str> = files
        .iter()
        .filter(|file| file.starts_with("out"))
        .map(String::as_str)
        .collect();
    assert_eq!(out, ["out/b.yaml", "out/x/a.yaml"]);
    assert!(place.read("out/x/a.yaml").contains("AGENT"));
    assert_eq!(place.read("out/b.yaml"), deployment("b", "go"));
    assert_eq!(place.read("m/x/a.yaml"), deployment("a", "java"));
    let clash = place.run(&[
        "apply",
        "--output-dir",
        "o2",
        "-p",
        "policy.yaml",
        "m/x/a.yaml",
        "n/a.yaml",
    ]);
    assert_refused(&clash, "would both be written");
    assert_refused(
        &place.run(&["apply", "--output-dir", "m", "-p", "policy.yaml", "m"]),
        "would be overwritten",
    );
}

#[test]
fn diff_is_1_with_differences_and_0_without() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a", "java"));
    place.write("b.yaml", deployment("b", "go"));
    for form in ["unified", "summary", "stat"] {
        assert_exit(
            &place.run(&["diff", "-o", form, "-p", "policy.yaml", "a.yaml"]),
            1,
        );
        assert_exit(
            &place.run(&["diff", "-o", form, "-p", "policy.yaml", "b.yaml"]),
            0,
        );
    }
    assert_eq!(
        stdout(&place.run(&["diff", "-p", "policy.yaml", "b.yaml"])),
        ""
    );
    let plain = stdout(&place.run(&["diff", "-p", "policy.yaml", "a.yaml"]));
    let coloured =
        stdout(&place.run(&["diff", "--color", "always", "-p", "policy.yaml", "a.yaml"]));
    assert!(!plain.contains('\u{1b}') && coloured.contains("\u{1b}[32m+"));
    assert_refused(
        &place.run(&["diff", "-p", "policy.yaml", "missing.yaml"]),
        "missing.yaml",
    );
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let place = Place::with_policy(POLICY);
    for number in 0..40 {
        place.write(
            format!("m/{number}.yaml"),
            deployment(
                &format!("w{number}"),
                if number % 3 == 0 { "go" } else { "java" },
            ),
        );
    }
    let run = |threads: &str| place.run(&["apply", "--threads", threads, "-p", "policy.yaml", "m"]);
    let (first, second) = (run("1"), run("4"));
    assert_exit(&first, 0);
    assert_eq!((first.stdout, first.stderr), (second.stdout, second.stderr));
}

#[test]
fn strict_fails_on_warnings() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a", "java"));
    place.write(
        "p.yaml",
        POLICY.replace("value: 'on'}", "value: 'on', op: Append}"),
    );
    let lenient = place.run(&["apply", "-p", "p.yaml", "a.yaml"]);
    assert_exit(&lenient, 0);
    assert!(
        stderr(&lenient).contains("hidden-env"),
        "{}",
        stderr(&lenient)
    );
    assert_refused(
        &place.run(&["apply", "--strict", "-p", "p.yaml", "a.yaml"]),
        "nothing was written (--strict)",
    );
}

#[test]
fn the_report_and_the_diagnostics_are_json_where_it_is_wanted() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a", "java"));
    assert_exit(
        &place.run(&["apply", "--report", "r.json", "-p", "policy.yaml", "a.yaml"]),
        0,
    );
    let report: serde_json::Value = serde_json::from_str(&place.read("r.json")).unwrap();
    assert_eq!(
        (&report["kind"], &report["totals"]["injected"]),
        (&"Report".into(), &1.into())
    );
    assert_eq!(
        (
            &report["needs"][0]["policy"],
            &report["needs"][0]["workloads"]
        ),
        (&"agent".into(), &1.into())
    );
    let failed = place.run(&[
        "apply",
        "--report",
        "r.json",
        "--diagnostics",
        "json",
        "-p",
        "policy.yaml",
        "missing.yaml",
    ]);
    assert_exit(&failed, 2);
    for line in stderr(&failed).lines() {
        let diagnostic: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(diagnostic["code"], "file");
    }
    let report: serde_json::Value = serde_json::from_str(&place.read("r.json")).unwrap();
    assert_eq!(report["verdict"], "refused");
}

#[test]
fn a_closed_pipe_is_silent() {
    let place = Place::with_policy(POLICY);
    place.write(
        "a.yaml",
        deployment("a", "go") + &"# long\n".repeat(100_000),
    );
    let args = ["apply", "-q", "-p", "policy.yaml", "a.yaml"];
    let mut child = place
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_exit(&output, 0);
    assert_eq!(stderr(&output), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::with_policy(POLICY);
    let name = OsStr::from_bytes(b"m\xff.yaml");
    place.write(name, deployment("a", "java"));
    let args: Vec<&OsStr> = ["apply", "-i", "-p", "policy.yaml"]
        .iter()
        .map(OsStr::new)
        .chain([name])
        .collect();
    assert_exit(&place.run(&args), 0);
    assert!(place.read(name).contains("AGENT"));
}

#[cfg(unix)]
#[test]
fn links_are_followed_only_inside_the_named_folder() {
    use std::os::unix::fs::symlink;
    let place = Place::with_policy(POLICY);
    place.write("outside.yaml", deployment("outside", "go"));
    place.write("m/..data/a.yaml", deployment("a", "go"));
    symlink("..data/a.yaml", place.path("m/a.yaml")).unwrap();
    symlink("../outside.yaml", place.path("m/o.yaml")).unwrap();
    symlink("..", place.path("m/up")).unwrap();
    symlink(".", place.path("m/loop")).unwrap();
    let output = place.run(&["apply", "-p", "policy.yaml", "m"]);
    assert_exit(&output, 0);
    assert_eq!(stdout(&output), deployment("a", "go"));
    assert!(
        stderr(&output).contains("`m/o.yaml` is a symbolic link that points outside"),
        "{}",
        stderr(&output)
    );
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_is_said_to_be_one() {
    use std::os::unix::fs::symlink;
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a", "go"));
    symlink("gone.yaml", place.path("m/b.yaml")).unwrap();
    for args in [
        &["apply", "-p", "policy.yaml", "m"][..],
        &["apply", "-p", "policy.yaml", "m/b.yaml"],
        &["apply", "-p", "m/b.yaml", "m/a.yaml"],
        &["apply", "--config", "m/b.yaml", "m/a.yaml"],
    ] {
        let output = place.run(args);
        assert_refused(
            &output,
            "`m/b.yaml` cannot be read: it is a symbolic link whose target does not exist",
        );
        assert!(!stderr(&output).contains("did you mean"));
    }
}

#[test]
fn the_program_explains_itself() {
    let place = Place::with_policy(POLICY);
    let list = place.run(&["policy", "list"]);
    assert!(
        stdout(&list).contains("builtin:rookout-java"),
        "{}",
        stdout(&list)
    );
    for name in ["rookout-java", "builtin:rookout-java"] {
        assert!(stdout(&place.run(&["policy", "show", name])).contains("kind: InjectionPolicy"));
    }
    assert_refused(
        &place.run(&["policy", "show", "rookot-java"]),
        "did you mean",
    );
    assert!(stdout(&place.run(&["man"])).contains("PODGRAFT APPLY"));
    assert!(stdout(&place.run(&["completions", "bash"])).contains("podgraft"));
    assert_exit(&place.run(&["apply", "--help"]), 0);
}

/// Applies a diff in a folder; every hunk must fit exactly.
fn patch_with(program: &str, args: &[&str], folder: &Path, diff: &[u8]) {
    let file = folder.with_extension("patch");
    fs::write(&file, diff).unwrap();
    let patched = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(fs::File::open(file).unwrap())
        .output()
        .unwrap();
    let text = stdout(&patched);
    assert!(
        patched.status.success(),
        "{program}: {text}{}\n{}",
        stderr(&patched),
        String::from_utf8_lossy(diff)
    );
    assert!(!text.contains("fuzz") && !text.contains("offset"), "{text}");
}

/// Applies the diff of some files with a program, and compares with `apply --in-place`.
fn check_patch(program: &str, args: &[&str], files: &[(&str, String)]) {
    if Command::new(program).arg("--version").output().is_err() {
        eprintln!("SKIPPED: `{program}` is not installed");
        return;
    }
    let place = Place::with_policy(POLICY);
    for (name, text) in files {
        place.write(format!("patched/{name}"), text);
        place.write(format!("applied/{name}"), text);
    }
    let run_in = |folder: &str, args: &[&str]| {
        let names = files.iter().map(|(name, _)| *name);
        let args: Vec<&str> = args
            .iter()
            .copied()
            .chain(["-q", "-p", "../policy.yaml", "--"])
            .chain(names)
            .collect();
        place
            .command(&args)
            .current_dir(place.path(folder))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let diff = run_in("patched", &["diff"]);
    assert_exit(&diff, 1);
    patch_with(program, args, &place.path("patched"), &diff.stdout);
    assert_exit(&run_in("applied", &["apply", "-i"]), 0);
    for (name, _) in files {
        assert_eq!(
            place.read(format!("patched/{name}")),
            place.read(format!("applied/{name}")),
            "{program}: {name}"
        );
    }
}

#[test]
fn the_unified_diff_is_a_patch_with_the_result_of_in_place() {
    let list_item = |name: &str| {
        format!(
            "  - {}",
            deployment(name, "java").trim_end().replace('\n', "\n    ")
        ) + "\n"
    };
    let two = format!(
        "{}---\n{}",
        deployment("a", "java"),
        deployment("b", "java")
    );
    let files = [
        ("plain.yaml", deployment("a", "java")),
        ("two.yaml", two.clone()),
        (
            "between.yaml",
            format!("{SECRET}---\n{}---\n{SECRET}", deployment("a", "java")),
        ),
        (
            "comment.yaml",
            format!(
                "{SECRET}--- # Source: x\n{}--- # Source: y\n{SECRET}",
                deployment("a", "java")
            ),
        ),
        (
            "list.yaml",
            format!(
                "apiVersion: v1\nkind: List\nitems:\n{}{}",
                list_item("a"),
                list_item("b")
            ),
        ),
        ("no-end.yaml", deployment("a", "java").trim_end().to_owned()),
        ("dos.yaml", two.replace('\n', "\r\n")),
        ("my file.yaml", deployment("a", "java")),
        ("\u{fc}.yaml", deployment("a", "java")),
        ("new\nline\"q.yaml", deployment("a", "java")),
    ];
    // `patch` refuses names with a line break.
    let with_patch: Vec<_> = files
        .iter()
        .filter(|(name, _)| !name.contains('\n'))
        .cloned()
        .collect();
    check_patch("patch", &["-p1"], &with_patch);
    check_patch("git", &["apply", "-p1", "-"], &files);
}

#[test]
fn a_diff_never_shows_a_line_of_another_document() {
    let place = Place::with_policy(POLICY);
    place.write(
        "a.yaml",
        format!("{SECRET}---\n{}---\n{SECRET}", deployment("a", "java")),
    );
    let output = place.run(&["diff", "-q", "-p", "policy.yaml", "a.yaml"]);
    assert_exit(&output, 1);
    assert!(
        !stdout(&output).contains("hunter2") && !stdout(&output).contains("Secret"),
        "{}",
        stdout(&output)
    );
}
