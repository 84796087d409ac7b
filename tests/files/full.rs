//! File systems that are full or read-only.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use super::common::{POLICY, Place, assert_exit, assert_refused, deployment, stderr};

#[test]
fn a_full_disk_leaves_all_files_as_they_were() {
    let place = Place::with_policy(POLICY);
    let Some(_mount) = place.mount("small", &["-t", "tmpfs", "-o", "size=256k", "none"]) else {
        return;
    };
    let text = |name: &str| deployment(name) + &"# filler\n".repeat(4000);
    for name in ["a", "b", "c", "d", "e"] {
        place.write(format!("small/{name}.yaml"), text(name));
    }
    let output = place.apply_in_place(&["small"]);
    assert_refused(&output, "cannot be written: No space left on device");
    let messages = stderr(&output);
    assert!(
        messages.contains("help: the same in ") && messages.matches("No space left").count() == 1,
        "a full disk is said once\n{messages}"
    );
    assert!(
        ["a", "b", "c", "d", "e"]
            .iter()
            .all(|name| place.read(format!("small/{name}.yaml")) == text(name))
    );
    assert!(place.leftovers().is_empty());
    // The next run finds room.
    ["b", "c", "d", "e"]
        .iter()
        .for_each(|name| fs::remove_file(place.path(format!("small/{name}.yaml"))).unwrap());
    assert_exit(&place.apply_in_place(&["small"]), 0);
    assert!(place.read("small/a.yaml").contains("AGENT"));
}

#[test]
fn a_report_or_a_folder_of_results_on_a_full_disk_fails_the_run() {
    let place = Place::with_policy(POLICY);
    let Some(_mount) = place.mount("small", &["-t", "tmpfs", "-o", "size=16k", "none"]) else {
        return;
    };
    place.write("a.yaml", deployment("a") + &"# filler\n".repeat(4000));
    let args = [
        "apply",
        "-q",
        "-p",
        "policy.yaml",
        "--output-dir",
        "small/out",
        "a.yaml",
    ];
    assert_refused(&place.run(&args), "No space left on device");
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_full_stdout_is_an_error() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a"));
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    };
    let output = place
        .command(&["apply", "-q", "-p", "policy.yaml", "a.yaml"])
        .stdout(full)
        .output()
        .unwrap();
    assert_refused(&output, "stdout cannot be written: No space left on device");
}

#[test]
fn a_read_only_file_system_is_refused() {
    let place = Place::with_policy(POLICY);
    let Some(mount) = place.mount("fixed", &["-t", "tmpfs", "-o", "size=256k", "none"]) else {
        return;
    };
    place.write("fixed/a.yaml", deployment("a"));
    place.write("b.yaml", deployment("b"));
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(place.path("fixed"))
        .status();
    assert!(remounted.is_ok_and(|status| status.success()));
    assert_refused(
        &place.apply_in_place(&["b.yaml", "fixed/a.yaml"]),
        "Read-only file system",
    );
    assert_eq!(place.read("b.yaml"), deployment("b"));
    assert_exit(
        &place.run(&["apply", "-q", "-p", "policy.yaml", "fixed"]),
        0,
    );
    drop(mount);
}

#[test]
fn a_folder_for_temporary_files_that_is_full_or_missing_is_named() {
    let place = Place::with_policy(POLICY);
    let mut folders = vec![(place.path("missing"), "No such file or directory")];
    let mount = place.mount("small", &["-t", "tmpfs", "-o", "size=256k", "none"]);
    folders.extend(
        mount
            .as_ref()
            .map(|_| (place.path("small"), "No space left on device")),
    );
    let line = format!("# {}\n", "and nothing else, ".repeat(60));
    let filler = format!(
        "---\napiVersion: v1\nkind: ConfigMap\n{}",
        line.repeat(1_000)
    );
    for (folder, why) in folders {
        let mut command = place.command(&["apply", "-q", "-p", "policy.yaml", "-"]);
        command
            .env("TMPDIR", &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut run = command.spawn().unwrap();
        let mut stdin = run.stdin.take().unwrap();
        // More than is kept in memory; the program ends before it has read all.
        for _ in 0..260 {
            if stdin.write_all(filler.as_bytes()).is_err() {
                break;
            }
        }
        drop(stdin);
        let output = run.wait_with_output().unwrap();
        assert_refused(&output, "TMPDIR");
        let shown = stderr(&output)
            .split_whitespace()
            .filter(|word| *word != "│")
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            shown.contains(&format!(
                "a temporary file in `{}` cannot be written: {why}",
                folder.display()
            )),
            "{shown}"
        );
    }
}
