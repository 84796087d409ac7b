//! `podgraft.lock`: what earlier runs did, as repositories change around it.

use std::fs;
use std::process::Output;

use crate::program::{Place, stderr_of, stdout_of};

mod alike;
mod copied;
mod entangled;
mod files;
mod generated;
mod given_back;
mod gone;
mod merged;
mod renamed;
mod reordered;
mod reported;
mod shared;
mod unmarked;

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders   # the orders of the shop
spec:
  template:
    metadata:
      labels: {app: orders}
    spec:
      containers:
      - name: app
        image: registry.example.com/orders:1
        resources: {}
";

/// A policy with an image, and a text that it joins to a variable.
fn policy(name: &str, version: u32) -> String {
    format!(
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: {name}
spec:
  inject:
    initContainers:
    - name: {name}
      image: registry.example.com/{name}:{version}
      volumeMounts: [{{name: {name}, mountPath: /{name}}}]
    volumes: [{{name: {name}, emptyDir: {{}}}}]
    volumeMounts: [{{name: {name}, mountPath: /{name}}}]
    env: [{{name: JAVA_TOOL_OPTIONS, value: \"-javaagent:/{name}-{version}.jar\", op: Append}}]
"
    )
}

/// A repository without any files.
fn empty_repository() -> Place {
    let place = Place::new();
    fs::create_dir(place.path(".git")).expect("a folder can be made");
    place
}

/// A repository with two workloads and a policy, which is applied.
fn applied() -> Place {
    let place = empty_repository();
    place.write("apps/orders.yaml", DEPLOYMENT);
    place.write("apps/carts.yaml", DEPLOYMENT.replace("orders", "carts"));
    place.write("policies/agent.yaml", policy("agent", 1));
    apply(&place);
    place
}

/// A run that succeeds.
#[track_caller]
fn succeeded(place: &Place, args: &[&str]) -> Output {
    let output = place.run(args);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{args:?}\n{}",
        stderr_of(&output)
    );
    output
}

/// What a run in place says.
#[track_caller]
fn apply(place: &Place) -> String {
    stderr_of(&succeeded(
        place,
        &["apply", "-i", "-p", "policies", "apps"],
    ))
}

/// Undo gives the bytes back, and leaves no lock file.
#[track_caller]
fn undone(place: &Place) {
    succeeded(place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/orders.yaml"), DEPLOYMENT);
    let carts = DEPLOYMENT.replace("orders", "carts");
    assert_eq!(place.read("apps/carts.yaml"), carts);
    assert!(!place.path("podgraft.lock").exists());
}

#[test]
fn a_manifest_has_the_mark_alone_and_the_lock_file_the_rest() {
    let place = applied();
    let text = place.read("apps/orders.yaml");
    assert!(text.contains("podgraft.dev/applied: agent\n"), "{text}");
    assert!(!text.contains("podgraft.dev/record"), "{text}");
    let lock = place.read("podgraft.lock");
    let lines: Vec<&str> = lock.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.is_sorted(), "{lock}");
    assert!(apply(&place).contains("2 unchanged"));
    assert_eq!(place.read("podgraft.lock"), lock);
    undone(&place);
}

#[test]
fn a_new_version_is_a_line_a_content_however_many_workloads_there_are() {
    let place = applied();
    let before = place.read("podgraft.lock");
    place.write("policies/agent.yaml", policy("agent", 2));
    assert!(apply(&place).contains("init container agent updated"));
    let after = place.read("podgraft.lock");
    let new: Vec<&str> = after
        .lines()
        .filter(|line| !before.contains(line))
        .collect();
    assert_eq!(new.len(), 2, "{new:#?}");
    assert!(before.lines().all(|line| after.contains(line)), "{after}");
    undone(&place);
}

#[test]
fn what_somebody_raised_in_both_stays_the_policys() {
    let place = applied();
    place.write("policies/agent.yaml", policy("agent", 2));
    for file in ["apps/orders.yaml", "apps/carts.yaml"] {
        let text = place.read(file);
        place.write(
            file,
            text.replace("agent:1", "agent:2")
                .replace("agent-1", "agent-2"),
        );
    }
    assert_eq!(
        place.run(&["diff", "-p", "policies", "apps"]).status.code(),
        Some(0)
    );
    assert!(apply(&place).contains("2 unchanged"));
    place.write("policies/agent.yaml", policy("agent", 3));
    assert!(apply(&place).contains("init container agent updated"));
    undone(&place);
}

#[test]
fn a_lost_lock_file_is_written_again() {
    let place = applied();
    fs::remove_file(place.path("podgraft.lock")).expect("it is there");
    let output = place.run(&["undo", "-i", "apps"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
    assert!(
        stderr_of(&output).contains("no-record"),
        "{}",
        stderr_of(&output)
    );
    let messages = apply(&place);
    let wanted = "2 unchanged; 0 other objects\nwrote podgraft.lock; no manifest changed\n";
    assert!(messages.ends_with(wanted), "{messages}");
    assert!(apply(&place).ends_with("2 unchanged; 0 other objects\n"));
    place.write("policies/agent.yaml", policy("agent", 2));
    assert!(apply(&place).ends_with("2 injected; 0 other objects\n"));
    undone(&place);
}

#[test]
fn a_renamed_policy_keeps_what_it_injected() {
    let place = applied();
    let renamed = policy("agent", 2).replacen(
        "name: agent\n",
        "name: tracer\n  annotations: {podgraft.dev/renamed-from: agent}\n",
        1,
    );
    place.write("policies/agent.yaml", renamed);
    let messages = apply(&place);
    assert!(
        messages.contains("tracer (init container agent updated"),
        "{messages}"
    );
    assert!(!messages.contains("orphaned"), "{messages}");
    let text = place.read("apps/orders.yaml");
    assert!(text.contains("podgraft.dev/applied: tracer\n"), "{text}");
    assert!(!place.read("podgraft.lock").contains("\"agent\",{"));
    undone(&place);
}

#[test]
fn a_workload_is_found_in_another_file_and_under_another_name() {
    let place = applied();
    fs::create_dir(place.path("apps/shop")).expect("a folder can be made");
    fs::rename(
        place.path("apps/carts.yaml"),
        place.path("apps/shop/c.yaml"),
    )
    .expect("it is there");
    let text = place.read("apps/orders.yaml").replace("orders", "ordering");
    place.write("apps/orders.yaml", text);
    place.write("policies/agent.yaml", policy("agent", 2));
    assert!(apply(&place).contains("2 injected"));
    let lock = place.read("podgraft.lock");
    assert!(
        !lock.contains("apps/carts.yaml") && !lock.contains("\"orders\""),
        "{lock}"
    );
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(
        place.read("apps/shop/c.yaml"),
        DEPLOYMENT.replace("orders", "carts")
    );
    assert_eq!(
        place.read("apps/orders.yaml"),
        DEPLOYMENT.replace("orders", "ordering")
    );
}

#[test]
fn a_container_is_followed_to_its_new_name() {
    let place = applied();
    let text = place.read("apps/orders.yaml");
    place.write(
        "apps/orders.yaml",
        text.replace("- name: app\n", "- name: main\n"),
    );
    place.write("policies/agent.yaml", policy("agent", 2));
    assert!(apply(&place).contains("2 injected"));
    succeeded(&place, &["undo", "-i", "apps"]);
    let wanted = DEPLOYMENT.replace("- name: app\n", "- name: main\n");
    assert_eq!(place.read("apps/orders.yaml"), wanted);
}

#[test]
fn both_sides_of_a_merge_are_read() {
    let place = applied();
    let base = place.read("podgraft.lock");
    place.write("policies/agent.yaml", policy("agent", 2));
    succeeded(
        &place,
        &["apply", "-i", "-p", "policies", "apps/orders.yaml"],
    );
    let ours = place.read("podgraft.lock");
    let theirs = base.clone();
    place.write(
        "podgraft.lock",
        format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> branch\n"),
    );
    assert!(apply(&place).contains("1 injected, 1 unchanged"));
    assert!(!place.read("podgraft.lock").contains("<<<<"));
    undone(&place);
}

#[test]
fn a_record_of_an_annotation_moves_into_the_lock_file() {
    let place = applied();
    undone(&place);
    succeeded(
        &place,
        &["apply", "-i", "--record", "-p", "policies", "apps"],
    );
    assert!(
        place
            .read("apps/orders.yaml")
            .contains("podgraft.dev/record")
    );
    assert!(!place.path("podgraft.lock").exists());
    apply(&place);
    assert!(
        !place
            .read("apps/orders.yaml")
            .contains("podgraft.dev/record")
    );
    undone(&place);
}

#[test]
fn one_of_two_policies_goes_and_the_other_stays() {
    let place = applied();
    place.write("policies/scrape.yaml", policy("scrape", 1));
    apply(&place);
    succeeded(&place, &["undo", "-i", "--only", "agent", "apps"]);
    let text = place.read("apps/orders.yaml");
    assert!(
        text.contains("scrape:1") && !text.contains("agent:1"),
        "{text}"
    );
    assert!(!place.read("podgraft.lock").contains("\"agent\",{"));
    undone(&place);
}

#[test]
fn a_workload_that_cannot_be_undone_keeps_no_other_from_it() {
    let place = applied();
    let marked = DEPLOYMENT.replace(
        "spec:\n  template",
        "  annotations: {podgraft.dev/applied: agent}\nspec:\n  template",
    );
    place.write("apps/other.yaml", marked.replace("orders", "other"));
    let output = succeeded(&place, &["undo", "-i", "apps"]);
    assert!(
        stderr_of(&output).contains("no-record"),
        "{}",
        stderr_of(&output)
    );
    assert_eq!(place.read("apps/orders.yaml"), DEPLOYMENT);
}

#[test]
fn a_line_that_is_none_changes_nothing() {
    let place = applied();
    let lock = place.read("podgraft.lock");
    place.write("podgraft.lock", format!("{lock}[\"item\""));
    let before = place.read("apps/orders.yaml");
    place.write("policies/agent.yaml", policy("agent", 2));
    let output = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
    assert!(
        stderr_of(&output).contains("bad-record"),
        "{}",
        stderr_of(&output)
    );
    assert_eq!(place.read("apps/orders.yaml"), before);
}

/// Two workloads that somebody injected by hand: all that the policy wants, no mark and no lock file.
fn by_hand() -> Place {
    let place = applied();
    fs::remove_file(place.path("podgraft.lock")).expect("it is there");
    for file in ["apps/orders.yaml", "apps/carts.yaml"] {
        let text = place.read(file);
        let mark = "  annotations:\n    podgraft.dev/applied: agent\n";
        assert!(text.contains(mark), "{text}");
        place.write(file, text.replace(mark, ""));
    }
    place
}

#[test]
fn what_somebody_injected_by_hand_is_adopted() {
    let place = by_hand();
    place.write("policies/scrape.yaml", policy("scrape", 1));
    let before = place.read("apps/orders.yaml");
    let shown = stderr_of(&succeeded(&place, &["adopt", "-p", "policies", "apps"]));
    assert!(
        shown.contains("deployment orders (apps/orders.yaml:1): adopted by agent ("),
        "{shown}"
    );
    assert!(
        shown.contains("not injected by scrape: not adopted"),
        "{shown}"
    );
    assert_eq!(place.read("apps/orders.yaml"), before);
    assert!(!place.path("podgraft.lock").exists());
    for adopted in ["2 adopted", "2 unchanged"] {
        let shown = stderr_of(&succeeded(
            &place,
            &["adopt", "-i", "-p", "policies", "apps"],
        ));
        assert!(shown.contains(adopted), "{shown}");
    }
    assert!(!place.read("apps/orders.yaml").contains("scrape"));
    fs::remove_file(place.path("policies/scrape.yaml")).expect("it is there");
    let check = succeeded(&place, &["check", "-p", "policies", "apps"]);
    assert!(
        stdout_of(&check).contains("2 selected and up to date"),
        "{}",
        stdout_of(&check)
    );
    place.write("policies/agent.yaml", policy("agent", 2));
    assert!(apply(&place).contains("init container agent updated"));
    undone(&place);
}

#[test]
fn what_is_not_all_there_is_not_adopted() {
    let place = by_hand();
    for file in ["apps/orders.yaml", "apps/carts.yaml"] {
        let text = place.read(file);
        place.write(file, text.replace("agent:1", "agent:0"));
    }
    let output = place.run(&["adopt", "-i", "-p", "policies", "apps"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
    assert!(
        stderr_of(&output).contains("nothing to adopt"),
        "{}",
        stderr_of(&output)
    );
    assert!(!place.path("podgraft.lock").exists());
}

#[test]
fn a_patch_of_what_it_wrote_itself_is_not_adopted() {
    let place = applied();
    undone(&place);
    place.write(
        "policies/agent.yaml",
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    podAnnotations: {agent: wanted}
    patches:
    - patchType: JSONPatch
      scope: PodTemplate
      patch:
      - {op: test, path: /metadata/labels/app, value: orders}
      - {op: replace, path: /metadata/labels/app, value: ordering}
",
    );
    let wanted = "  template:\n    metadata:\n      annotations: {agent: wanted}\n";
    let text = DEPLOYMENT.replace("  template:\n    metadata:\n", wanted);
    place.write(
        "apps/orders.yaml",
        text.replace("app: orders", "app: ordering"),
    );
    let output = place.run(&["adopt", "-i", "-p", "policies", "apps/orders.yaml"]);
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(2), "{}", stderr_of(&output));
    let before = place.read("apps/orders.yaml");
    assert!(before.contains("app: ordering"), "{before}");
}

#[test]
fn what_somebody_changed_is_a_conflict_that_names_both_ways_out() {
    let place = applied();
    let text = place.read("apps/orders.yaml").replace("agent:1", "agent:7");
    place.write("apps/orders.yaml", text.clone());
    let output = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
    let message = stderr_of(&output)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for part in [
        "was changed after policy `agent` injected it",
        "changed here",
        "policy `agent` wants this",
        "revert the change, or make it in the policy as well",
        "undo --only agent --force",
    ] {
        assert!(message.contains(part), "{part}\n{message}");
    }
    assert!(!message.contains("changed-since"), "{message}");
    assert_eq!(place.read("apps/orders.yaml"), text);
    // The first way out.
    place.write("apps/orders.yaml", text.replace("agent:7", "agent:1"));
    apply(&place);
    // The second.
    place.write("apps/orders.yaml", text);
    succeeded(
        &place,
        &[
            "undo",
            "-i",
            "--only",
            "agent",
            "--force",
            "apps/orders.yaml",
        ],
    );
    apply(&place);
    undone(&place);
}

#[test]
fn a_volume_stays_as_long_as_another_policy_mounts_it() {
    let place = Place::new();
    place.write("apps/orders.yaml", DEPLOYMENT);
    let policy = |name: &str, inject: &str| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: {name}}}\nspec: {{inject: {inject}}}\n"
        )
    };
    let volume = "{volumes: [{name: v, emptyDir: {}}]}";
    place.write("policies/a.yaml", policy("a", volume));
    // The slash at the end is not a part of the name of the mount.
    let mount = "{volumeMounts: [{name: v, mountPath: /v/}]}";
    place.write("policies/b.yaml", policy("b", mount));
    apply(&place);
    let before = place.read("apps/orders.yaml");
    for args in [
        &["undo", "-i", "--only", "a", "apps"][..],
        &[
            "apply",
            "-i",
            "-p",
            "policies/b.yaml",
            "--prune",
            "--policy-set",
            "s",
            "apps",
        ],
    ] {
        if args[0] == "apply" {
            let set = ["apply", "-i", "-p", "policies", "--policy-set", "s", "apps"];
            succeeded(&place, &set);
        }
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
        assert!(
            stderr_of(&output).contains("invalid"),
            "{}",
            stderr_of(&output)
        );
        assert_eq!(place.read("apps/orders.yaml"), before);
    }
    let named = stderr_of(&place.run(&["undo", "-i", "--only", "a", "apps"]));
    let named = named.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        named.contains("app: mount /v of policy `b` needs the volume `v` of Deployment orders"),
        "{named}"
    );
    let both = ["undo", "-i", "--only", "a", "--only", "b", "apps"];
    succeeded(&place, &both);
    assert_eq!(place.read("apps/orders.yaml"), DEPLOYMENT);
}

#[test]
fn a_generated_object_is_taken_out_of_where_somebody_moved_it() {
    let place = Place::new();
    place.write(
        "policies/agent.yaml",
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: agent-config}, data: {a: b}}
  inject:
    volumes: [{name: v, configMap: {name: agent-config}}]
",
    );
    for to in ["the top", "a file", "the top of a file", "nowhere"] {
        place.write("apps/orders.yaml", DEPLOYMENT);
        apply(&place);
        let text = place.read("apps/orders.yaml");
        let (workload, object) = text.split_once("---\n").expect("there are two documents");
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n";
        place.write("apps/orders.yaml", workload);
        place.write("apps/other.yaml", service);
        match to {
            "the top" => place.write("apps/orders.yaml", format!("{object}---\n{workload}")),
            "a file" => place.write("apps/other.yaml", object),
            "the top of a file" => {
                place.write("apps/other.yaml", format!("{object}---\n{service}"))
            }
            _ => {}
        }
        let shown = stderr_of(&succeeded(&place, &["undo", "-i", "apps"]));
        assert_eq!(
            shown.contains("missing-object"),
            to == "nowhere",
            "{to}: {shown}"
        );
        assert_eq!(place.read("apps/orders.yaml"), DEPLOYMENT, "{to}");
        let other = if to == "a file" { "" } else { service };
        assert_eq!(place.read("apps/other.yaml"), other, "{to}");
    }
}

/// Runs git in the place, and gives what it printed.
#[track_caller]
fn git(place: &Place, args: &[&str]) -> String {
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let output = place
        .program("git", &[&author, args].concat())
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "git {args:?}\n{}{}",
        stdout_of(&output),
        stderr_of(&output)
    );
    stdout_of(&output)
}

/// A repository of as many workloads and three policies, which are applied and committed.
fn repository(workloads: usize) -> Place {
    let place = Place::new();
    git(&place, &["init", "-q", "-b", "main"]);
    place.write(".gitattributes", "podgraft.lock merge=union\n");
    for number in 0..workloads {
        let name = format!("app-{number}");
        place.write(
            format!("apps/{name}.yaml"),
            DEPLOYMENT.replace("orders", &name),
        );
    }
    for policy in POLICIES {
        place.write(format!("policies/{policy}.yaml"), self::policy(policy, 1));
    }
    git(&place, &["add", "."]);
    git(&place, &["commit", "-qm", "manifests"]);
    commit_applied(&place);
    place
}

const POLICIES: [&str; 3] = ["agent", "proxy", "scrape"];

/// Applies and commits. What is in the repository is then up to date.
#[track_caller]
fn commit_applied(place: &Place) {
    apply(place);
    git(place, &["add", "."]);
    git(place, &["commit", "-qm", "apply", "--allow-empty"]);
    let checked = place.run(&["check", "-p", "policies", "apps"]);
    assert_eq!(checked.status.code(), Some(0));
    let findings = stdout_of(&checked);
    assert!(!findings.contains("out-of-date"), "{findings}");
}

/// A small generator of numbers, the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// One thing that people do on a branch.
fn change(place: &Place, numbers: &mut Numbers, version: u32) {
    let policy = POLICIES[usize::try_from(numbers.below(3)).expect("it is small")];
    let app = format!("apps/app-{}.yaml", numbers.below(3));
    let change = numbers.below(8);
    match change {
        0 | 1 => {
            let text = self::policy(policy, version);
            // Another name of what is injected, or only another image.
            let renamed = match change {
                0 => text.replace(
                    &format!("- name: {policy}"),
                    &format!("- name: {policy}-{version}"),
                ),
                _ => text,
            };
            place.write(format!("policies/{policy}.yaml"), renamed);
        }
        2 => {
            let name = format!("new-{version}-{}", numbers.below(1000));
            place.write(
                format!("apps/{name}.yaml"),
                DEPLOYMENT.replace("orders", &name),
            );
        }
        3 | 4 => {
            let text = place.read(&app);
            place.write(&app, text.replace("orders:1", &format!("orders:{version}")));
        }
        5 => {
            let text = self::policy(policy, 1);
            let renamed = format!(
                "name: {policy}-{version}\n  annotations: {{podgraft.dev/renamed-from: {policy}}}\n"
            );
            let text = text.replacen(&format!("name: {policy}\n"), &renamed, 1);
            place.write(format!("policies/{policy}.yaml"), text);
        }
        6 => {
            succeeded(place, &["undo", "-i", "--only", policy, "apps"]);
            let file = place.path(format!("policies/{policy}.yaml"));
            fs::remove_file(file).expect("it is there");
        }
        _ => {
            let text = place.read(&app);
            place.write(
                &app,
                text.replace("spec:\n  template", "spec:\n  replicas: 2\n  template"),
            );
        }
    }
}

/// Whether a Deployment is as it was, but for what people change in it.
fn assert_undone(text: &str, run: u64) {
    let kept = ["podgraft.dev/applied", "registry.example.com/agent"];
    assert!(
        kept.iter().all(|word| !text.contains(word)),
        "run {run}\n{text}"
    );
    let name = text
        .split("name: ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or_default();
    let wanted = DEPLOYMENT
        .replace("orders   #", &format!("{name}   #"))
        .replace("app: orders", &format!("app: {name}"));
    let without = |text: &str| -> String {
        let stays = |line: &&str| !line.contains("replicas:") && !line.contains("image:");
        text.replace("orders", "").lines().filter(stays).collect()
    };
    assert_eq!(
        without(&text.replace(name, "")),
        without(&wanted.replace(name, "")),
        "run {run}"
    );
}

#[test]
fn branches_are_merged_and_the_next_run_ends_as_if_there_had_been_one() {
    let runs = std::env::var("MERGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(6);
    let mut numbers = Numbers(7);
    let mut conflicts = 0;
    for run in 0..runs {
        let place = repository(3);
        git(&place, &["checkout", "-qb", "other"]);
        change(&place, &mut numbers, 2);
        commit_applied(&place);
        git(&place, &["checkout", "-q", "main"]);
        change(&place, &mut numbers, 3);
        commit_applied(&place);
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let merged = place
            .program(
                "git",
                &[&author[..], &["merge", "-q", "--no-edit", "other"]].concat(),
            )
            .output()
            .expect("git runs");
        if !merged.status.success() {
            // Both changed the same line of the same item.
            let conflicting = git(&place, &["diff", "--name-only", "--diff-filter=U"]);
            assert!(
                !conflicting.contains("podgraft.lock"),
                "run {run}\n{conflicting}"
            );
            conflicts += 1;
            continue;
        }
        commit_applied(&place);
        succeeded(&place, &["undo", "-i", "apps"]);
        for file in fs::read_dir(place.path("apps")).expect("it is there") {
            let text = fs::read_to_string(file.expect("it is there").path()).expect("it is text");
            assert_undone(&text, run);
        }
        assert!(!place.path("podgraft.lock").exists());
    }
    assert!(conflicts < runs, "every merge had a conflict");
}

#[test]
fn ownership_is_a_small_part_of_what_people_review() {
    // With context lines, the lock file has 6.6 % of the diff at 40 workloads and half of that at 80.
    let place = repository(80);
    let first = git(&place, &["rev-parse", "HEAD"]);
    let (mut all, mut of_lock) = (0, 0);
    for version in 2..12 {
        for policy in POLICIES {
            place.write(
                format!("policies/{policy}.yaml"),
                self::policy(policy, version),
            );
        }
        commit_applied(&place);
        let size = |paths: &[&str]| git(&place, &[&["diff", "HEAD~1", "--"], paths].concat()).len();
        all += size(&["apps", "podgraft.lock"]);
        of_lock += size(&["podgraft.lock"]);
    }
    assert!(
        of_lock * 20 < all,
        "{of_lock} of {all} bytes are podgraft.lock since {first}"
    );
}

#[test]
fn what_cannot_be_recorded_is_not_adopted() {
    let place = Place::new();
    let container = DEPLOYMENT
        .lines()
        .skip_while(|line| !line.contains("- name: app"));
    let twins: String = container.map(|line| format!("{line}\n")).collect();
    place.write("apps/orders.yaml", format!("{DEPLOYMENT}{twins}"));
    place.write("policies/agent.yaml", policy("agent", 1));
    assert!(apply(&place).contains("no-record"));
    let text = place.read("apps/orders.yaml");
    assert!(apply(&place).contains("1 unchanged"));
    assert_eq!(place.read("apps/orders.yaml"), text);
}
