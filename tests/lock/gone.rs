//! What is recorded of workloads and files that are gone, or somewhere else: no other workload gets their values, and what
//! moved keeps its own.

use std::fs::{self, OpenOptions};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use super::{empty_repository, succeeded};
use crate::program::{Place, assert_refused, stderr_of, stdout_of};

/// A policy that wants what some manifests have already.
const POLICY: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  onConflict: Replace
  inject:
    env:
    - {name: LEVEL, value: high}
    - {name: OPTIONS, op: Append, value: -Dagent}
    initContainers: [{name: agent, image: 'registry.example.com/agent:1'}]
    volumes: [{name: logs, emptyDir: {}}]
    podAnnotations: {team: ours}
    defaults: {imagePullPolicy: IfNotPresent}
    patches:
    - patchType: JSONPatch
      scope: PodTemplate
      patch: [{op: add, path: /spec/terminationGracePeriodSeconds, value: 5}]
";

/// A workload with an own `LEVEL`. With `high`, all that the policy wants is the user's but the init container.
fn workload(name: &str, level: &str) -> String {
    let (options, rest) = match level {
        "high" => (
            "-Dagent",
            "        imagePullPolicy: IfNotPresent\n      terminationGracePeriodSeconds: 5\n      volumes:\n      - \
             name: logs\n        emptyDir: {}\n",
        ),
        _ => ("-Xmx1g", ""),
    };
    let annotations = match level {
        "high" => "    metadata:\n      annotations:\n        team: ours\n",
        _ => "",
    };
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  template:\n{annotations}    spec:\n      \
         containers:\n      - name: app\n        image: app:1\n        env:\n        - name: LEVEL\n          value: {level}\n        \
         - name: OPTIONS\n          value: {options}\n{rest}"
    )
}

fn repository(files: &[(&str, String)]) -> Place {
    let place = empty_repository();
    place.write("policy.yaml", POLICY);
    for (name, text) in files {
        place.write(format!("apps/{name}"), text);
    }
    place
}

fn apply(place: &Place, paths: &[&str]) -> String {
    let args = [&["apply", "-i", "-p", "policy.yaml"], paths].concat();
    stderr_of(&succeeded(place, &args))
}

fn undo(place: &Place, paths: &[&str]) {
    succeeded(place, &[&["undo", "-i"], paths].concat());
}

/// Moves the last workload of a file into another one.
fn move_last(place: &Place, from: &str, to: &str) {
    let text = place.read(from);
    let (rest, last) = text.split_once("---\n").expect("there are two");
    place.write(from, rest);
    place.write(to, last);
}

#[test]
fn a_deleted_workload_leaves_its_values_to_no_other_one() {
    let (own, other) = (workload("one", "high"), workload("two", "low"));
    for is_applied_again in [true, false] {
        let place = repository(&[("a.yaml", format!("{own}---\n{other}"))]);
        apply(&place, &["apps"]);
        let applied = place.read("apps/a.yaml");
        let (first, _) = applied.split_once("---\n").unwrap();
        place.write("apps/a.yaml", first);
        if is_applied_again {
            assert!(apply(&place, &["apps"]).contains("1 unchanged"));
        }
        undo(&place, &["apps"]);
        assert_eq!(place.read("apps/a.yaml"), own);
    }
    // Workloads of one name in two folders, of which one is deleted.
    let place = repository(&[
        ("dev/web.yaml", workload("web", "low")),
        ("prod/web.yaml", workload("web", "high")),
    ]);
    apply(&place, &["apps"]);
    fs::remove_file(place.path("apps/dev/web.yaml")).unwrap();
    undo(&place, &["apps"]);
    assert_eq!(place.read("apps/prod/web.yaml"), workload("web", "high"));
}

#[test]
fn a_run_over_a_part_keeps_the_records_of_a_file_that_moved() {
    let (own, other) = (workload("one", "low"), workload("two", "mid"));
    for partial in [
        &["undo", "-i", "apps/x"][..],
        &["apply", "-i", "-p", "policy.yaml", "apps/x"],
    ] {
        let place = repository(&[("x/a.yaml", own.clone()), ("x/b.yaml", other.clone())]);
        apply(&place, &["apps"]);
        fs::create_dir(place.path("apps/y")).unwrap();
        fs::rename(place.path("apps/x/a.yaml"), place.path("apps/y/a.yaml")).unwrap();
        succeeded(&place, partial);
        apply(&place, &["."]);
        assert!(!place.read("podgraft.lock").contains("x/a.yaml"));
        undo(&place, &["."]);
        assert_eq!(place.read("apps/y/a.yaml"), own);
        assert_eq!(place.read("apps/x/b.yaml"), other);
    }
}

#[test]
fn a_run_over_a_part_keeps_the_records_of_a_workload_that_moved() {
    let (own, other) = (workload("one", "low"), workload("two", "mid"));
    // Below the same lock file, and out of the folder of the lock file.
    for (has_lock_below, moved) in [(false, "apps/y/b.yaml"), (true, "b.yaml")] {
        let place = repository(&[("x/a.yaml", format!("{own}---\n{other}"))]);
        if has_lock_below {
            let config = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\n";
            place.write("apps/podgraft.yaml", config);
        }
        apply(&place, &["apps"]);
        move_last(&place, "apps/x/a.yaml", moved);
        apply(&place, &["apps/x"]);
        undo(&place, &["."]);
        assert_eq!(place.read("apps/x/a.yaml"), own);
        assert_eq!(place.read(moved), other);
        assert!(!place.path("podgraft.lock").exists());
        assert!(!place.path("apps/podgraft.lock").exists());
    }
}

#[test]
fn the_lines_of_a_file_that_is_nowhere_go() {
    let place = repository(&[
        ("a.yaml", workload("one", "low")),
        ("b.yaml", workload("two", "mid")),
        ("c/d.yaml", workload("three", "mid")),
    ]);
    apply(&place, &["apps"]);
    fs::remove_file(place.path("apps/a.yaml")).unwrap();
    apply(&place, &["apps/b.yaml"]);
    let lock = place.read("podgraft.lock");
    assert!(
        !lock.contains("a.yaml") && lock.contains("d.yaml"),
        "{lock}"
    );
}

#[test]
fn outside_of_a_repository_a_second_lock_file_does_not_hide_the_first() {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    place.write("sub/a.yaml", workload("one", "low"));
    apply(&place, &["."]);
    let mut below = place.command(&["apply", "-i", "-p", "../policy.yaml", "a.yaml"]);
    let output = below.current_dir(place.path("sub")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr_of(&output).contains("has records of files in"),
        "{}",
        stderr_of(&output)
    );
    assert!(!place.path("sub/podgraft.lock").exists());
    undo(&place, &["."]);
    assert_eq!(place.read("sub/a.yaml"), workload("one", "low"));
}

#[test]
fn a_folder_has_one_lock_file_whatever_names_its_files() {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    for (file, name) in [
        ("sub/b.yaml", "b"),
        ("sub/deep/a.yaml", "a"),
        ("sub/deep/c.yaml", "c"),
    ] {
        place.write(file, workload(name, "low"));
    }
    apply(&place, &["sub/deep/c.yaml", "sub"]);
    assert!(place.path("sub/podgraft.lock").exists());
    assert!(!place.path("sub/deep/podgraft.lock").exists());
    assert!(apply(&place, &["sub/deep/c.yaml", "sub"]).contains("3 unchanged"));
    undo(&place, &["sub"]);
    assert_eq!(place.read("sub/deep/c.yaml"), workload("c", "low"));
    assert!(!place.path("sub/podgraft.lock").exists());
}

#[test]
fn a_file_that_moves_to_where_no_run_looks_keeps_its_record() {
    let place = repository(&[
        ("a.yaml", workload("one", "low")),
        ("b.yaml", workload("two", "mid")),
    ]);
    apply(&place, &["apps"]);
    fs::create_dir(place.path("apps/.hidden")).unwrap();
    fs::rename(place.path("apps/a.yaml"), place.path("apps/.hidden/a.yaml")).unwrap();
    apply(&place, &["apps"]);
    undo(&place, &["apps/.hidden/a.yaml"]);
    assert_eq!(place.read("apps/.hidden/a.yaml"), workload("one", "low"));
}

#[test]
fn a_workload_that_moves_below_another_lock_file_keeps_its_values() {
    let (own, other) = (workload("one", "low"), workload("two", "mid"));
    let place = repository(&[("a.yaml", format!("{own}---\n{other}"))]);
    place.write(
        "apps/podgraft.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\n",
    );
    apply(&place, &["."]);
    move_last(&place, "apps/a.yaml", "two.yaml");
    // No line says that it is no copy, so the run says where the values are from.
    assert!(apply(&place, &["."]).contains("are taken from Deployment two (a.yaml)"));
    undo(&place, &["."]);
    assert_eq!(place.read("two.yaml"), other);
    assert_eq!(place.read("apps/a.yaml"), own);
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_told_apart() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = repository(&[]);
    let names = [b"apps/a\xff.yaml", b"apps/a\xfe.yaml"].map(|name| OsStr::from_bytes(name));
    let texts = [workload("web", "low"), workload("web", "mid")];
    for (name, text) in names.iter().zip(&texts) {
        place.write(name, text);
    }
    place.write("apps/b.yaml", workload("other", "low"));
    apply(&place, &["apps"]);
    apply(&place, &["apps/b.yaml"]);
    undo(&place, &["apps"]);
    for (name, text) in names.iter().zip(&texts) {
        assert_eq!(place.read(name), *text);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_stays_as_it_is_and_changes_during_the_run_is_not_recorded() {
    let place = repository(&[
        ("a.yaml", workload("one", "low")),
        ("b.yaml", workload("two", "mid")),
    ]);
    apply(&place, &["apps/a.yaml"]);
    // The policy is read after the manifests, so the run waits for it.
    let made = place.program("mkfifo", &["pipe"]).status().unwrap();
    assert!(made.success());
    let mut waiting = place.command(&["apply", "-i", "-p", "pipe", "apps/a.yaml", "apps/b.yaml"]);
    let waiting = waiting
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe opens when the run has read the manifests.
    let mut pipe = OpenOptions::new()
        .write(true)
        .open(place.path("pipe"))
        .unwrap();
    sleep(Duration::from_millis(50));
    undo(&place, &["apps/a.yaml"]);
    let changed = place.read("apps/a.yaml");
    std::io::Write::write_all(&mut pipe, POLICY.as_bytes()).unwrap();
    drop(pipe);
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
    assert!(
        stderr_of(&output).contains("was changed during the run"),
        "{}",
        stderr_of(&output)
    );
    assert_eq!(place.read("apps/a.yaml"), changed);
    assert_eq!(place.read("apps/b.yaml"), workload("two", "mid"));
}

#[test]
fn lines_of_two_versions_of_a_generated_object_are_both_right() {
    let generating = |value: &str| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: gen}}\nspec:\n  inject:\n    volumes: \
             [{{name: cfg, configMap: {{name: web-cfg}}}}]\n  generate:\n  - resource: {{apiVersion: v1, kind: ConfigMap, \
             metadata: {{name: web-cfg}}, data: {{k: {value}}}}}\n"
        )
    };
    let place = repository(&[("a.yaml", workload("web", "low"))]);
    place.write("policy.yaml", generating("v1"));
    apply(&place, &["apps"]);
    let (first, old) = (place.read("apps/a.yaml"), place.read("podgraft.lock"));
    place.write("policy.yaml", generating("v2"));
    apply(&place, &["apps"]);
    let (second, new) = (place.read("apps/a.yaml"), place.read("podgraft.lock"));
    for (text, lock) in [
        (&first, [&*old, &*new]),
        (&first, [&*new, &*old]),
        (&second, [&*old, &*new]),
        (&second, [&*new, &*old]),
    ] {
        place.write("apps/a.yaml", text);
        place.write("podgraft.lock", lock.concat());
        assert!(!apply(&place, &["apps"]).contains("conflict"));
        assert_eq!(place.read("apps/a.yaml"), second);
        place.write("apps/a.yaml", text);
        place.write("podgraft.lock", lock.concat());
        undo(&place, &["apps"]);
        assert_eq!(place.read("apps/a.yaml"), workload("web", "low"));
    }
}

#[cfg(unix)]
#[test]
fn stdout_is_none_of_the_files_that_are_read() {
    let place = repository(&[("a.yaml", workload("one", "low"))]);
    let stdout = OpenOptions::new()
        .read(true)
        .write(true)
        .open(place.path("apps/a.yaml"))
        .unwrap();
    let mut command = place.command(&["apply", "-p", "policy.yaml", "apps/a.yaml"]);
    let output = command
        .stdout(stdout)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stdout_of(&output));
    assert!(
        stderr_of(&output).contains("stdout writes to it"),
        "{}",
        stderr_of(&output)
    );
    assert_eq!(place.read("apps/a.yaml"), workload("one", "low"));
}

/// Two environments whose workloads have one name. The first one has what the policy wants in its manifest.
fn environments() -> Place {
    let files = [("dev/web.yaml", "high"), ("prod/web.yaml", "low")];
    let files = files.map(|(file, level)| (file, workload("web", level)));
    let place = repository(&files);
    apply(&place, &["apps"]);
    place
}

#[test]
fn environments_keep_their_records_when_their_folders_are_renamed() {
    for (from, to, folders) in [
        (
            "apps/dev",
            "apps/development",
            ["apps/development", "apps/prod"],
        ),
        ("apps", "k8s", ["k8s/dev", "k8s/prod"]),
    ] {
        for is_applied in [false, true] {
            let place = environments();
            fs::rename(place.path(from), place.path(to)).unwrap();
            if is_applied {
                apply(&place, &["."]);
            }
            undo(&place, &["."]);
            let levels = folders.map(|folder| place.read(format!("{folder}/web.yaml")));
            assert_eq!(levels, ["high", "low"].map(|level| workload("web", level)));
        }
    }
}

#[test]
fn a_copy_of_an_environment_whose_record_differs_from_that_of_another_is_refused() {
    let place = environments();
    // With the level of the policy, it may be a copy of either.
    fs::create_dir(place.path("apps/staging")).unwrap();
    place.write("apps/staging/web.yaml", place.read("apps/dev/web.yaml"));
    let output = place.run(&["apply", "-i", "-p", "policy.yaml", "apps"]);
    assert_refused(&output, "bad-record");
}

/// The workloads `one` and `two` move apart while a run looks at others only.
#[test]
fn what_moved_keeps_its_own_in_a_run_over_other_workloads() {
    let [one, two] = ["one", "two"].map(|name| workload(name, &format!("own-{name}")));
    let runs: [&[&str]; 3] = [
        &["apply -i -p policy.yaml --workload deploy/other apps"],
        &["undo -i --workload deploy/other apps"],
        &[
            "apply -i -p policy.yaml --shard 1/3 apps",
            "apply -i -p policy.yaml --shard 2/3 apps",
            "apply -i -p policy.yaml --shard 3/3 apps",
        ],
    ];
    for run in runs {
        let both = format!("{one}---\n{two}");
        let place = repository(&[("f.yaml", both), ("g.yaml", workload("other", "own"))]);
        let apply = ["apply", "-q", "-i", "-p", "policy.yaml", "apps"];
        succeeded(&place, &apply);
        let text = place.read("apps/f.yaml");
        let (first, second) = text.split_once("---\n").expect("there are two");
        place.write("apps/f.yaml", first);
        place.write("apps/h.yaml", second);
        for args in run {
            succeeded(&place, &args.split(' ').collect::<Vec<_>>());
        }
        succeeded(&place, &["undo", "-q", "-i", "apps"]);
        assert_eq!(place.read("apps/f.yaml"), one, "{run:?}");
        assert_eq!(place.read("apps/h.yaml"), two, "{run:?}");
    }
}

/// A workload gets another name, or is copied, and a run looks at others, or at the copy, only.
#[test]
fn what_is_renamed_or_copied_keeps_its_own_in_a_run_over_other_workloads() {
    let [one, two] = ["one", "two"].map(|name| workload(name, &format!("own-{name}")));
    let renamed = |text: &str| text.replacen("name: one", "name: new", 1);
    let copied = |text: &str| format!("{text}---\n{}", renamed(text));
    let check = |text: &str, edit: &dyn Fn(&str) -> String| {
        for run in [
            "apply -i -p policy.yaml --workload deploy/other apps",
            "undo -i --workload deploy/other apps",
            "apply -i -p policy.yaml --workload deploy/new apps",
        ] {
            let other = workload("other", "own");
            let place = repository(&[("f.yaml", text.to_owned()), ("g.yaml", other)]);
            succeeded(&place, &["apply", "-q", "-i", "-p", "policy.yaml", "apps"]);
            place.write("apps/f.yaml", edit(&place.read("apps/f.yaml")));
            succeeded(&place, &run.split(' ').collect::<Vec<_>>());
            succeeded(&place, &["undo", "-q", "-i", "apps"]);
            assert_eq!(place.read("apps/f.yaml"), edit(text), "{run}");
        }
    };
    check(&format!("{one}---\n{two}"), &renamed);
    check(&one, &copied);
}
