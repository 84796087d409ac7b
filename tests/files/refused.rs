//! Files and folders that may not be written, links, pipes, and what stands in the way of the hidden names.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};

use super::common::{POLICY, Place, assert_exit, assert_refused, deployment};

/// Runs it as a user whom permissions bind; `None`, said aloud, where that is not possible.
fn apply_as_nobody(place: &Place, path: &str) -> Option<Output> {
    let is_root = place
        .path("policy.yaml")
        .metadata()
        .is_ok_and(|file| std::os::unix::fs::MetadataExt::uid(&file) == 0);
    if !is_root {
        return Some(place.apply_in_place(&[path]));
    }
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    // Nobody may not look into the folder of the build, but reads a copy.
    fs::copy(env!("CARGO_BIN_EXE_podgraft"), place.path("program")).unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "./program",
        "apply",
        "-q",
        "-i",
    ]);
    let output = command
        .args(["-p", "policy.yaml", path])
        .current_dir(place.path(""))
        .output();
    let output = output
        .ok()
        .filter(|output| matches!(output.status.code(), Some(0 | 2)));
    if output.is_none() {
        eprintln!("SKIPPED: root is bound by no permission, and `setpriv` cannot drop it");
    }
    output
}

fn set_mode(place: &Place, name: &str, mode: u32) {
    fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_without_permission_to_read_or_write_is_refused() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("m/b.yaml", deployment("b"));
    set_mode(&place, "m/b.yaml", 0o600);
    if std::os::unix::fs::MetadataExt::uid(&place.path("m").metadata().unwrap()) != 0 {
        set_mode(&place, "m/b.yaml", 0);
    }
    let Some(output) = apply_as_nobody(&place, "m") else {
        return;
    };
    assert_refused(&output, "`m/b.yaml` cannot be read: Permission denied");
    assert_eq!(place.read("m/a.yaml"), deployment("a"));
}

#[test]
fn a_folder_without_permission_to_write_is_refused() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    set_mode(&place, "m/a.yaml", 0o666);
    set_mode(&place, "m", 0o555);
    let Some(output) = apply_as_nobody(&place, "m") else {
        return;
    };
    set_mode(&place, "m", 0o755);
    assert_refused(&output, "cannot be written: Permission denied");
    assert_eq!(place.read("m/a.yaml"), deployment("a"));
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_read_only_file_is_refused_even_to_root() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("m/b.yaml", deployment("b"));
    set_mode(&place, "m/b.yaml", 0o444);
    assert_refused(&place.apply_in_place(&["m"]), "`m/b.yaml` is read-only");
    assert_eq!(place.read("m/a.yaml"), deployment("a"));
    assert!(place.leftovers().is_empty());
}

#[test]
fn links_are_written_through_inside_the_folder_and_left_alone_outside() {
    let place = Place::with_policy(POLICY);
    place.write("m/real/a.yaml", deployment("a"));
    place.write("outside.yaml", deployment("outside"));
    symlink("real/a.yaml", place.path("m/a.yaml")).unwrap();
    symlink("../outside.yaml", place.path("m/out.yaml")).unwrap();
    symlink(".", place.path("m/loop")).unwrap();
    assert_exit(&place.apply_in_place(&["m"]), 0);
    assert!(place.read("m/real/a.yaml").contains("AGENT"));
    assert!(
        fs::symlink_metadata(place.path("m/a.yaml"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(place.read("outside.yaml"), deployment("outside"));
    assert!(
        fs::symlink_metadata(place.path("m/out.yaml"))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn a_link_to_nothing_is_refused() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    symlink("nowhere.yaml", place.path("m/b.yaml")).unwrap();
    assert_refused(
        &place.apply_in_place(&["m/b.yaml"]),
        "`m/b.yaml` cannot be read",
    );
    assert_refused(&place.apply_in_place(&["m"]), "`m/b.yaml` cannot be read");
    assert_eq!(place.read("m/a.yaml"), deployment("a"));
}

#[test]
fn a_pipe_is_read_and_never_replaced() {
    let place = Place::with_policy(POLICY);
    for args in [
        &["apply", "-q", "-p", "policy.yaml", "p.yaml"][..],
        &["apply", "-q", "-i", "-p", "policy.yaml", "p.yaml"],
    ] {
        let made = Command::new("mkfifo").arg(place.path("p.yaml")).status();
        assert!(made.is_ok_and(|status| status.success()));
        let run = place
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        place.write("p.yaml", deployment("piped"));
        let output = run.wait_with_output().unwrap();
        if args.contains(&"-i") {
            assert_refused(
                &output,
                "`p.yaml` is not a regular file and cannot be replaced",
            );
        } else {
            assert_exit(&output, 0);
            assert!(String::from_utf8_lossy(&output.stdout).contains("AGENT"));
        }
        fs::remove_file(place.path("p.yaml")).unwrap();
    }
}

#[test]
fn a_pipe_in_a_folder_does_not_hold_the_run_up() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    // One where a manifest could be, one where a killed run's hidden file would be.
    for name in ["m/p.yaml", "m/.a.yaml.podgraft-tmp"] {
        assert!(
            Command::new("mkfifo")
                .arg(place.path(name))
                .status()
                .is_ok_and(|status| status.success())
        );
    }
    assert_exit(&place.apply_in_place(&["m"]), 0);
    assert!(place.read("m/a.yaml").contains("AGENT"));
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_folder_in_the_way_of_a_hidden_name_is_an_error() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("m/.a.yaml.podgraft-tmp/precious", "keep me");
    assert_refused(
        &place.apply_in_place(&["m"]),
        "`m/a.yaml` cannot be written",
    );
    assert_eq!(place.read("m/a.yaml"), deployment("a"));
    assert_eq!(place.read("m/.a.yaml.podgraft-tmp/precious"), "keep me");
}

#[test]
fn a_hidden_name_that_is_a_hard_link_is_not_written_through() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("precious", "keep me");
    fs::hard_link(place.path("precious"), place.path("m/.a.yaml.podgraft-tmp")).unwrap();
    assert_exit(&place.apply_in_place(&["m"]), 0);
    assert_eq!(place.read("precious"), "keep me");
    assert!(place.read("m/a.yaml").contains("AGENT"));
}

#[test]
fn a_report_takes_the_place_of_nothing_that_the_run_reads() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write(
        "context/c.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
    );
    let policy = place.read("policy.yaml");
    let config = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [policy.yaml]\n";
    place.write("podgraft.yaml", config);
    symlink("m/a.yaml", place.path("link.yaml")).unwrap();
    fs::hard_link(place.path("m/a.yaml"), place.path("hard.yaml")).unwrap();
    let reports = [
        "m/a.yaml",
        "link.yaml",
        "hard.yaml",
        "./m/../policy.yaml",
        "context/c.yaml",
        "podgraft.yaml",
    ];
    for report in reports {
        for command in [
            "apply -i",
            "apply",
            "diff",
            "check",
            "explain",
            "apply -o json-patch",
        ] {
            let line = format!("{command} -p policy.yaml --context context --report {report} m");
            assert_refused(
                &place.run(&line.split(' ').collect::<Vec<_>>()),
                &format!("`{report}` is read by this run and would be overwritten"),
            );
        }
        assert_eq!(place.read("m/a.yaml"), deployment("a"));
        assert_eq!(place.read("policy.yaml"), policy);
        assert_eq!(place.read("podgraft.yaml"), config);
        assert!(place.read("context/c.yaml").contains("ConfigMap"));
    }
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_run_that_fails_before_it_reads_writes_no_report() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("podgraft.yaml", "kind: [\n");
    assert_exit(
        &place.run(&[
            "apply",
            "-p",
            "policy.yaml",
            "--report",
            "podgraft.yaml",
            "m",
        ]),
        2,
    );
    assert_eq!(place.read("podgraft.yaml"), "kind: [\n");
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_report_does_not_take_the_place_of_the_old_policy() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    let policy = place.read("policy.yaml");
    place.write("old.yaml", &policy);
    let args = [
        "diff",
        "--no-config",
        "-p",
        "policy.yaml",
        "--against-policy",
        "old.yaml",
        "--report",
        "old.yaml",
        "m",
    ];
    assert_refused(&place.run(&args), "`old.yaml` is read by this run");
    assert_eq!(place.read("old.yaml"), policy);
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_report_takes_the_place_of_an_earlier_one_and_of_no_result() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    for _ in 0..2 {
        assert_exit(
            &place.run(&[
                "apply",
                "-q",
                "-p",
                "policy.yaml",
                "--report",
                "m/report.json",
                "m",
            ]),
            0,
        );
        assert!(place.read("m/report.json").contains("\"kind\": \"Report\""));
    }
    let args = [
        "apply",
        "-q",
        "-p",
        "policy.yaml",
        "--output-dir",
        "out",
        "--report",
        "out/a.yaml",
        "m",
    ];
    for _ in 0..2 {
        assert_refused(
            &place.run(&args),
            "the report and `m/a.yaml` would both be written to",
        );
        fs::create_dir_all(place.path("out")).unwrap();
        assert!(!place.path("out/a.yaml").exists());
    }
}

#[test]
fn a_report_takes_the_place_of_no_result_by_a_link_or_as_a_folder() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    let into = |folder, more: &[&str]| {
        let run = ["apply", "-q", "-p", "policy.yaml", "--output-dir", folder];
        place.run(&[&run, more, &["m"]].concat())
    };
    assert_exit(&into("out", &[]), 0);
    let result = place.read("out/a.yaml");
    symlink("out/a.yaml", place.path("link")).unwrap();
    for (folder, report) in [("out", "link"), ("out", "out"), ("new/below", "new")] {
        let refused = into(folder, &["--report", report]);
        assert_refused(&refused, "would both be written to");
        assert_eq!(place.read("out/a.yaml"), result);
        assert!(!place.path("new").exists());
    }
}

#[test]
fn a_report_of_a_component_that_is_not_written_says_so() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("k/kustomization.yaml", "resources: []\n");
    let args = "apply -p policy.yaml -o kustomize --output-dir k --report r.json m";
    let refused = place.run(&args.split(' ').collect::<Vec<_>>());
    assert_refused(&refused, "`k/kustomization.yaml` was not created by");
    assert!(place.read("r.json").contains("\"verdict\": \"refused\""));
}

#[test]
fn a_report_takes_the_place_of_no_record() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    assert_exit(&place.apply_in_place(&["m"]), 0);
    let lock = place.read("m/podgraft.lock");
    symlink("m/podgraft.lock", place.path("link")).unwrap();
    for report in ["m/podgraft.lock", "link"] {
        let args = ["check", "-p", "policy.yaml", "--report", report, "m"];
        assert_refused(
            &place.run(&args),
            &format!("`{report}` is read by this run and would be overwritten"),
        );
        assert_eq!(place.read("m/podgraft.lock"), lock);
    }
}

#[test]
fn a_shard_takes_the_place_of_no_result_of_another() {
    let place = Place::with_policy(POLICY);
    place.write("apps/m/a.yaml", deployment("a"));
    place.write("apps/n/a.yaml", deployment("b"));
    for shard in ["1/2", "2/2"] {
        let args =
            format!("apply -q -p policy.yaml --output-dir out --shard {shard} apps/m apps/n");
        assert_refused(
            &place.run(&args.split(' ').collect::<Vec<_>>()),
            "would both be written to `out/a.yaml`",
        );
        assert!(!place.path("out").exists());
        let args = format!("apply -q -p policy.yaml --output-dir above --shard {shard} apps");
        assert_exit(&place.run(&args.split(' ').collect::<Vec<_>>()), 0);
    }
}

#[test]
fn a_folder_of_results_takes_the_place_of_nothing_that_the_run_reads() {
    let place = Place::with_policy(POLICY);
    place.write("m/policy.yaml", deployment("a"));
    place.write("m/z.yaml", deployment("z"));
    let policy = place.read("policy.yaml");
    let args = ["apply", "-q", "-p", "policy.yaml", "--output-dir", ".", "m"];
    assert_refused(
        &place.run(&args),
        "`./policy.yaml` is read by this run and would be overwritten",
    );
    assert_eq!(place.read("policy.yaml"), policy);
    assert!(!place.path("z.yaml").exists());
}

#[test]
fn a_folder_of_results_is_written_whole_or_not_at_all() {
    let place = Place::with_policy(POLICY);
    for name in ["m/a.yaml", "m/b.yaml", "m/sub/c.yaml"] {
        place.write(name, deployment("a"));
    }
    let args = [
        "apply",
        "-q",
        "-p",
        "policy.yaml",
        "--output-dir",
        "out",
        "m",
    ];
    let refused = |words: &str| {
        assert_refused(&place.run(&args), words);
        assert!(!place.path("out/a.yaml").exists());
        assert!(place.leftovers().is_empty());
        fs::remove_dir_all(place.path("out")).unwrap();
    };
    place.write("out/b.yaml/keep", "me");
    refused("`out/b.yaml` is a folder, but a file would be written there");
    place.write("out/sub", "a file");
    refused("`out/sub` is not a folder");
    place.write("victim/keep", "me");
    fs::create_dir(place.path("out")).unwrap();
    symlink("../victim", place.path("out/sub")).unwrap();
    refused("`out/sub` is a symbolic link that points outside the output folder");
    assert!(!place.path("victim/c.yaml").exists());
    // A link that stays inside is followed, as is one to the folder itself.
    fs::create_dir_all(place.path("real/other")).unwrap();
    symlink("other", place.path("real/sub")).unwrap();
    symlink("real", place.path("out")).unwrap();
    assert_exit(&place.run(&args), 0);
    assert!(place.read("real/other/c.yaml").contains("AGENT"));
    place.write("n/x/a.yaml", deployment("x"));
    place.write("o/x", deployment("x"));
    let args = [
        "apply",
        "-q",
        "-p",
        "policy.yaml",
        "--output-dir",
        "both",
        "n",
        "o/x",
    ];
    assert_refused(
        &place.run(&args),
        "`both/x` would be both a file and a folder in the output",
    );
}

#[test]
fn a_lock_file_that_is_a_link_is_refused() {
    let place = Place::with_policy(POLICY);
    place.write("m/a.yaml", deployment("a"));
    place.write("settings", "# settings\n");
    for target in ["../settings", "../nowhere"] {
        symlink(target, place.path("m/podgraft.lock")).unwrap();
        assert_refused(&place.apply_in_place(&["m"]), "is a symbolic link");
        assert_eq!(place.read("m/a.yaml"), deployment("a"));
        assert_eq!(place.read("settings"), "# settings\n");
        assert!(!place.path("nowhere").exists());
        fs::remove_file(place.path("m/podgraft.lock")).unwrap();
    }
}
