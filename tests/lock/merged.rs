//! Merges of git in which one branch renames something and the other one changes what is injected: `podgraft.lock` has lines
//! of both, under the old name and under the new one.

use std::fs;

use super::{apply, commit_applied, git, succeeded};
use crate::program::{Place, stderr_of, stdout_of};

const FILE: &str = "apps/orders.yaml";
const MANIFEST: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
spec:
  replicas: 1
  template:
    metadata:
      labels:
        app: orders
    spec:
      containers:
      - name: app
        image: registry.example.com/orders:1
        env:
        - name: OPTIONS
          value: -Dours
        - name: DEBUG
          value: \"1\"
      - name: log
        image: registry.example.com/log:1
";

/// What the first version injects, and what a branch adds.
const FIRST: &str = "    ports: [{name: metrics, containerPort: 9000}]\n";
const SECOND: &str = "    volumes: [{name: agent, emptyDir: {}}]
    volumeMounts: [{name: agent, mountPath: /agent}]
    env:
    - {name: DEBUG, op: Remove}
    - {name: OPTIONS, op: Append, value: -Dagent=1}
";

fn write_policy(place: &Place, metadata: &str, inject: &str) {
    let text = format!(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{{metadata}}}\nspec:\n  containers: \
         {{names: [app, web]}}\n  inject:\n{FIRST}{inject}"
    );
    place.write("policies/agent.yaml", text);
}

/// A repository in which one branch does `ours` and another one `theirs`, both run podgraft, and git merges them.
fn merged(ours: impl Fn(&Place), theirs: impl Fn(&Place)) -> Place {
    merged_with(MANIFEST, ours, theirs)
}

fn merged_with(manifest: &str, ours: impl Fn(&Place), theirs: impl Fn(&Place)) -> Place {
    let place = Place::new();
    git(&place, &["init", "-q", "-b", "main"]);
    place.write(".gitattributes", "podgraft.lock merge=union\n");
    place.write(FILE, manifest);
    write_policy(&place, "name: agent", "");
    commit_applied(&place);
    git(&place, &["checkout", "-qb", "other"]);
    theirs(&place);
    commit_applied(&place);
    git(&place, &["checkout", "-q", "main"]);
    ours(&place);
    commit_applied(&place);
    git(&place, &["merge", "-q", "--no-edit", "other"]);
    place
}

fn second_version(place: &Place) {
    write_policy(place, "name: agent", SECOND);
}

/// The next version takes the place of the merged one, and undo gives back what people wrote.
#[track_caller]
fn is_known(place: &Place, metadata: &str, file: &str, original: &str) {
    assert!(apply(place).contains("1 unchanged"));
    write_policy(place, metadata, &SECOND.replace("agent=1", "agent=2"));
    apply(place);
    let text = place.read(file);
    assert!(text.contains("value: -Dours -Dagent=2\n"), "{text}");
    succeeded(place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(file), original);
    assert!(!place.path("podgraft.lock").exists());
}

#[test]
fn a_file_that_was_moved_is_followed() {
    let moved = "apps/shop.yaml";
    let place = merged(second_version, |place| {
        git(place, &["mv", FILE, moved]);
    });
    is_known(&place, "name: agent", moved, MANIFEST);
}

/// One branch renames something in the manifest.
#[track_caller]
fn is_followed(rename: impl Fn(&str) -> String) {
    let place = merged(second_version, |place| {
        place.write(FILE, rename(&place.read(FILE)));
    });
    is_known(&place, "name: agent", FILE, &rename(MANIFEST));
}

#[test]
fn a_workload_that_was_renamed_is_followed() {
    is_followed(|text| text.replace("\n  name: orders\n", "\n  name: sales\n"));
}

#[test]
fn a_container_that_was_renamed_is_followed() {
    is_followed(|text| text.replace("- name: app\n", "- name: web\n"));
}

#[test]
fn a_policy_that_was_renamed_is_followed() {
    let metadata = "name: tracer, annotations: {podgraft.dev/renamed-from: agent}";
    let place = merged(second_version, |place| write_policy(place, metadata, ""));
    let policy = place.read("policies/agent.yaml");
    assert!(policy.contains("tracer") && policy.contains("Remove"));
    is_known(&place, metadata, FILE, MANIFEST);
}

/// The line of the workload alone says where a comment stood. The other branch's line has none.
#[test]
fn a_comment_that_one_branch_noted_is_restored() {
    let further = |place: &Place| {
        let text = "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: class}\nspec: {inject: \
                    {podLabels: {class: high}}}\n";
        place.write("policies/class.yaml", text);
    };
    let moved = "apps/shop.yaml";
    let move_file = |place: &Place| {
        git(place, &["mv", FILE, moved]);
    };
    let commented = MANIFEST.replace("value: \"1\"\n", "value: \"1\" # in the laboratory\n");
    for (file, place) in [
        (FILE, merged_with(&commented, without_debug, further)),
        (moved, merged_with(&commented, without_debug, move_file)),
    ] {
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read(file), commented);
    }
}

fn without_debug(place: &Place) {
    let inject =
        "    volumes: [{name: agent, emptyDir: {}}]\n    env: [{name: DEBUG, op: Remove}]\n";
    write_policy(place, "name: agent", inject);
}

/// A run over a workload whose containers were changed by hand.
fn edited(inject: &str, edit: impl Fn(&str) -> String) -> Place {
    let place = Place::new();
    fs::create_dir(place.path(".git")).expect("a folder can be made");
    place.write(FILE, MANIFEST);
    let policy = format!(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: agent}}\nspec:\n  containers: \
         {{names: [app]}}\n  inject:\n    podLabels: {{agent: \"1\"}}\n    env:\n{inject}"
    );
    place.write("policies/agent.yaml", policy);
    apply(&place);
    place.write(FILE, edit(&place.read(FILE)));
    place
}

#[track_caller]
fn is_refused(place: &Place, candidates: &str) {
    let text = place.read(FILE);
    let lock = place.read("podgraft.lock");
    let output = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    let messages = stderr_of(&output);
    assert_eq!(output.status.code(), Some(2), "{messages}");
    assert!(messages.contains("bad-record"), "{messages}");
    assert!(messages.contains(candidates), "{messages}");
    assert_eq!(place.read(FILE), text);
    assert_eq!(place.read("podgraft.lock"), lock);
}

#[test]
fn what_was_removed_from_a_container_that_has_another_name_is_not_forgotten() {
    let remove = "    - {name: DEBUG, op: Remove}\n";
    let rename = |text: &str| text.replace("- name: app\n", "- name: web\n");
    let place = edited(remove, |text| {
        rename(text).replace("- name: log\n", "- name: logger\n")
    });
    is_refused(&place, "renamed to any of: logger, web");
    // No policy changed `log`, so it is not the one. The policy does not select `web`.
    let place = edited(remove, rename);
    apply(&place);
    assert_eq!(place.read(FILE), rename(MANIFEST));
}

#[test]
fn a_text_in_a_container_that_has_another_name_is_not_forgotten() {
    let inject =
        "    - {name: OPTIONS, op: Append, value: -Dagent=1}\n    - {name: LEVEL, value: info}\n";
    let place = edited(inject, |text| {
        let text = text.replace("- name: app\n", "- name: web\n");
        text.replace("        - name: LEVEL\n          value: info\n", "")
    });
    is_refused(&place, "renamed to any of: web");
}

fn write_second_policy(place: &Place, name: &str, inject: &str) {
    let text = format!(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: {name}}}\nspec:\n  onConflict: Replace\n  \
         inject: {{{inject}}}\n"
    );
    place.write(format!("policies/{name}.yaml"), text);
}

/// A repository whose two policies want the same, in the state of a first run.
fn of_two_policies(inject: &str) -> Place {
    let place = Place::new();
    git(&place, &["init", "-q", "-b", "main"]);
    place.write(".gitattributes", "podgraft.lock merge=union\n");
    place.write(FILE, MANIFEST);
    for name in ["one", "two"] {
        write_second_policy(&place, name, inject);
    }
    commit_applied(&place);
    git(&place, &["checkout", "-qb", "other"]);
    place
}

#[test]
fn a_value_that_one_branch_gave_back_is_not_replaced_by_what_the_other_one_noted() {
    let options = |value: &str| format!("env: [{{name: OPTIONS, value: {value}}}]");
    let place = of_two_policies(&options("w1"));
    succeeded(&place, &["undo", "-i", "--only", "one", "apps"]);
    git(&place, &["commit", "-qam", "undo"]);
    git(&place, &["checkout", "-q", "main"]);
    write_second_policy(&place, "one", &options("w3"));
    commit_applied(&place);
    git(&place, &["merge", "-q", "--no-edit", "other"]);
    for name in ["one", "two"] {
        write_second_policy(&place, name, &options("w2"));
    }
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), MANIFEST);
}

#[test]
fn a_value_that_another_branch_raised_in_a_file_of_another_name_is_its_policys() {
    let team = |value: &str| format!("podLabels: {{team: {value}}}");
    let place = of_two_policies(&team("t1"));
    git(&place, &["mv", FILE, "apps/shop.yaml"]);
    commit_applied(&place);
    git(&place, &["checkout", "-q", "main"]);
    write_second_policy(&place, "two", &team("t3"));
    commit_applied(&place);
    git(&place, &["merge", "-q", "--no-edit", "other"]);
    write_second_policy(&place, "two", &team("t4"));
    let messages = apply(&place);
    assert!(!messages.contains("changed-since"), "{messages}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/shop.yaml"), MANIFEST);
}

#[test]
fn lines_of_two_branches_that_say_together_what_is_there_are_not_out_of_date() {
    let labels = "podLabels: {team: a}";
    let (ours, theirs) = (
        "volumes: [{name: v, emptyDir: {}}]",
        "podAnnotations: {agent: new}",
    );
    let place = of_two_policies(labels);
    let attributes = "podgraft.lock merge=union\npolicies/* merge=union\n";
    place.write(".git/info/attributes", attributes);
    write_second_policy(&place, "one", &format!("{labels}, {theirs}"));
    commit_applied(&place);
    git(&place, &["checkout", "-q", "main"]);
    write_second_policy(&place, "one", &format!("{labels}, {ours}"));
    commit_applied(&place);
    git(&place, &["merge", "-q", "--no-edit", "other"]);
    write_second_policy(&place, "one", &format!("{labels}, {ours}, {theirs}"));
    let lock = place.read("podgraft.lock");
    let of_one = lock
        .lines()
        .filter(|line| line.contains("\"orders\",\"one\""));
    assert_eq!(of_one.count(), 2, "{lock}");
    let findings = stdout_of(&place.run(&["check", "-p", "policies", "apps"]));
    assert!(!findings.contains("out-of-date"), "{findings}");
}

#[test]
fn a_policy_whose_lines_a_merge_lost_is_recorded_again_beside_another() {
    for lost in ["agent", "other"] {
        let place = Place::new();
        git(&place, &["init", "-q", "-b", "main"]);
        place.write(FILE, MANIFEST);
        write_policy(&place, "name: agent", SECOND);
        let inject = "env: [{name: OPTIONS, op: Append, value: -Dother}], podLabels: {other: '1'}";
        write_second_policy(&place, "other", inject);
        apply(&place);
        let lock = place.read("podgraft.lock");
        let name = format!("\"{lost}\"");
        let lines = lock.lines().filter(|line| !line.contains(&name));
        let rest: Vec<&str> = lines.collect();
        assert!(rest.len() + 2 < lock.lines().count(), "{lock}");
        place.write("podgraft.lock", rest.join("\n") + "\n");
        apply(&place);
        let output = succeeded(&place, &["undo", "-i", "apps"]);
        assert!(stderr_of(&output).contains("removed agent"), "{lost}");
        let text = place.read(FILE);
        // What a policy removed is in its line alone.
        let expected = match lost {
            "agent" => MANIFEST.replace("        - name: DEBUG\n          value: \"1\"\n", ""),
            _ => MANIFEST.to_owned(),
        };
        assert_eq!(text, expected, "{lost}");
    }
}
