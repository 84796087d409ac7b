//! Workloads that share lines of the lock file: the texts that were joined to their variables, and their names.

use std::fs;

use super::{DEPLOYMENT, apply, empty_repository, succeeded};
use crate::program::{Place, stderr_of, stdout_of};

/// What a policy does to the variable ARGS of all containers.
struct Join {
    operation: &'static str,
    /// Its text in each version of the policy.
    texts: &'static [&'static str],
}

fn policy(operation: &str, text: &str) -> String {
    format!(
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {{name: args}}
spec:
  containers: {{names: ['*']}}
  inject: {{env: [{{name: ARGS, op: {operation}, value: {text:?}}}]}}
"
    )
}

/// A workload whose containers have these values of the variable.
fn workload(name: &str, values: &[Option<&str>]) -> String {
    let (head, _) = DEPLOYMENT
        .split_once("      - name: app")
        .expect("it is there");
    let container = |(at, value): (usize, &Option<&str>)| match value {
        Some(value) => {
            format!("      - {{name: c{at}, image: x, env: [{{name: ARGS, value: {value:?}}}]}}\n")
        }
        None => format!("      - {{name: c{at}, image: x}}\n"),
    };
    let containers: String = values.iter().enumerate().map(container).collect();
    head.replace("orders", name) + &containers
}

/// After each version of the policy, the files are as if it had been applied to what people wrote; a second run changes
/// nothing; and undo gives the bytes back.
#[track_caller]
fn is_kept_apart(join: &Join, workloads: &[&[Option<&str>]]) {
    let (place, fresh) = (empty_repository(), Place::new());
    let files: Vec<(String, String)> = workloads
        .iter()
        .enumerate()
        .map(|(at, values)| {
            (
                format!("apps/w{at}.yaml"),
                workload(&format!("w{at}"), values),
            )
        })
        .collect();
    for (file, text) in &files {
        place.write(file, text);
    }
    for text in join.texts {
        let text = policy(join.operation, text);
        place.write("policies/args.yaml", &text);
        apply(&place);
        fresh.write("policies/args.yaml", &text);
        for (file, original) in &files {
            fresh.write(file, original);
        }
        apply(&fresh);
        let is_new = |(file, _): &(String, String)| place.read(file) == fresh.read(file);
        assert!(
            files.iter().all(is_new),
            "{text}{}",
            place.read("podgraft.lock")
        );
        let lock = place.read("podgraft.lock");
        let messages = apply(&place);
        assert!(
            messages.contains("unchanged") && !messages.contains("updated"),
            "{text}{messages}"
        );
        assert_eq!(place.read("podgraft.lock"), lock);
    }
    succeeded(&place, &["undo", "-i", "apps"]);
    for (file, original) in &files {
        assert_eq!(place.read(file), *original);
    }
}

#[test]
fn each_variable_loses_the_text_that_was_joined_to_it() {
    let merged = |texts| Join {
        operation: "MergeKeys",
        texts,
    };
    is_kept_apart(
        &merged(&["region=eu,env=prod", "env=prod", "region=eu"]),
        &[&[Some("region=eu"), None]],
    );
    is_kept_apart(
        &merged(&["team=x,tier=b", "tier=c", "team=x,tier=b"]),
        &[
            &[None],
            &[Some("team=x")],
            &[Some("tier=b")],
            &[Some("q=1"), Some("tier=b,team=x")],
        ],
    );
    let appended = Join {
        operation: "Append",
        texts: &["-Da", "-Xmx1g", "-Da", "-Da -Db", " -Da"],
    };
    is_kept_apart(
        &appended,
        &[&[Some("-Xmx1g")], &[Some("-q")], &[Some("-Da "), None]],
    );
    let prepended = Join {
        operation: "Prepend",
        texts: &["-a -b", "-b", "-a -b", "-a"],
    };
    is_kept_apart(
        &prepended,
        &[&[Some("-b")], &[Some("-a")], &[None, Some("-a -b")]],
    );
}

/// The line of the first workload that starts like this, with another text.
fn with_text(line: &str, text: &str) -> String {
    let of_variable = "\"pod/spec/containers/c0/env/ARGS\":{";
    line.replacen(of_variable, &format!("{of_variable}\"text\":{text:?}"), 1)
}

#[test]
fn a_version_that_left_a_workload_out_does_not_touch_it() {
    // Another version joins to one file what people wrote in the other, or less than what was joined before.
    for (before, after) in [("-Da", "-Db"), ("-Da -Dc", "-Da"), ("-Da -Dc", "-Dc")] {
        let place = empty_repository();
        let originals = [workload("a", &[Some("-q")]), workload("b", &[Some("-Db")])];
        place.write("apps/a.yaml", &originals[0]);
        place.write("apps/b.yaml", &originals[1]);
        place.write("policies/args.yaml", policy("Append", before));
        apply(&place);
        place.write("policies/args.yaml", policy("Append", after));
        let of_first = ["apply", "-i", "-p", "policies", "apps/a.yaml"];
        succeeded(&place, &of_first);
        let rolled_out = place.read("apps/a.yaml");
        assert!(apply(&place).contains("1 unchanged"));
        assert_eq!(place.read("apps/a.yaml"), rolled_out);
        let text = place.read("apps/b.yaml");
        assert!(!text.contains(before), "{text}");
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read("apps/a.yaml"), originals[0]);
        assert_eq!(place.read("apps/b.yaml"), originals[1]);
    }
}

#[test]
fn of_two_sides_of_a_merge_that_counts_whose_text_is_there() {
    let place = empty_repository();
    let original = workload("w", &[Some("-q -Dy")]);
    place.write("apps/w.yaml", &original);
    place.write("policies/args.yaml", policy("Append", "-Da"));
    apply(&place);
    let injected = place.read("apps/w.yaml");
    let lock = place.read("podgraft.lock");
    let line = lock.lines().last().expect("it has lines");
    let merged = |texts: &[&str]| {
        let other = |text: &&str| with_text(line, text) + "\n";
        texts.iter().map(other).collect::<String>()
    };
    let merges: [&[&str]; 4] = [
        &["-Da", "-Dx"],
        &["-Dx", "-Da"],
        &["-Dx", "-Dz", "-Da"],
        &["-Da", "-Dx", "-Da", "-Dx"],
    ];
    for texts in merges {
        place.write("apps/w.yaml", &injected);
        place.write("podgraft.lock", lock.replace(line, &merged(texts)));
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read("apps/w.yaml"), original);
    }
    // A run that left the workload out has kept what an earlier merge said.
    let further = "\"-Dz\",\"merged\":[{\"text\":\"-Da\"}]";
    let kept = merged(&["-Dx", "-Dz"]).replace("\"-Dz\"", further);
    place.write("apps/w.yaml", &injected);
    place.write("podgraft.lock", lock.replace(line, &kept));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/w.yaml"), original);
    place.write("apps/w.yaml", &injected);
    place.write(
        "podgraft.lock",
        lock.replace(line, &merged(&["-Dy", "-Da"])),
    );
    let refused = place.run(&["undo", "-i", "apps"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = stderr_of(&refused).replace(['│', '|'], "");
    let words: Vec<&str> = message.split_whitespace().collect();
    let words = words.join(" ");
    assert!(
        words.contains("which of several texts was joined to c0: env ARGS: `-Dy`, `-Da`"),
        "{words}"
    );
    assert_eq!(place.read("apps/w.yaml"), injected);
    // Doing what the message says helps.
    place.write("podgraft.lock", lock.replace(line, &with_text(line, "-Da")));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/w.yaml"), original);
}

#[test]
fn whose_text_it_was_is_not_guessed_after_renames() {
    let place = empty_repository();
    let text = |names: [&str; 2]| {
        let first = workload(names[0], &[Some("team=x")]);
        format!("{first}---\n{}", workload(names[1], &[Some("tier=b")]))
    };
    place.write("apps/w.yaml", text(["orders", "carts"]));
    place.write("policies/args.yaml", policy("MergeKeys", "team=x,tier=b"));
    apply(&place);
    let renamed = |text: String| text.replace("orders", "sales").replace("carts", "users");
    place.write("apps/w.yaml", renamed(place.read("apps/w.yaml")));
    let edited = place.read("apps/w.yaml");
    let refused = place.run(&["undo", "-i", "apps"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr_of(&refused));
    assert!(
        stderr_of(&refused).contains("bad-record"),
        "{}",
        stderr_of(&refused)
    );
    assert_eq!(place.read("apps/w.yaml"), edited);
    // Writing the new names into the lines helps.
    place.write("podgraft.lock", renamed(place.read("podgraft.lock")));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/w.yaml"), text(["sales", "users"]));
}

#[test]
fn workloads_of_one_name_in_one_file_are_recorded_only_where_they_are_undone_alike() {
    let place = empty_repository();
    let replace = policy("Replace", "proxy").replace("op: Replace, ", "");
    let replace = replace.replace("  inject:", "  onConflict: Replace\n  inject:");
    place.write("policies/args.yaml", replace);
    let file = |first, second| {
        let job = |value| workload("w", &[value]).replace("  name: w ", "  generateName: w- ");
        format!("{}---\n{}", job(first), job(second))
    };
    let different = file(Some("-a"), Some("-b"));
    place.write("apps/w.yaml", &different);
    let refused = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = stderr_of(&refused);
    assert!(message.contains("appears more than once in"), "{message}");
    assert_eq!(place.read("apps/w.yaml"), different);
    assert!(!place.path("podgraft.lock").exists());
    succeeded(
        &place,
        &["apply", "-i", "--record", "-p", "policies", "apps"],
    );
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/w.yaml"), different);
    let same = file(Some("-a"), Some("-a"));
    place.write("apps/w.yaml", &same);
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/w.yaml"), same);
}

#[test]
fn what_was_noted_of_a_text_without_a_last_line_end_stays_noted() {
    let place = empty_repository();
    let remove = policy("Remove", "").replace(", value: \"\"", "");
    let generate = "  generate: [{resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: g}, data: {k: v}}}]\n";
    place.write("policies/args.yaml", remove + generate);
    let kept = "env: [ {name: A, value: z}, {name: ARGS,   value: 'q'} ]";
    let text = |name| {
        let text = workload(name, &[Some("q")]);
        text.replace("env: [{name: ARGS, value: \"q\"}]", kept)
    };
    let original = format!("{}---\n{}", text("a"), text("b").trim_end());
    place.write("apps/w.yaml", &original);
    apply(&place);
    let lock = place.read("podgraft.lock");
    assert!(apply(&place).contains("2 unchanged"));
    assert_eq!(place.read("podgraft.lock"), lock);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/w.yaml"), original);
}

/// An item under a name, and a text joined to a variable.
fn named(item: &str, variable: &str) -> String {
    let container = format!("initContainers: [{{name: {item}, image: agent}}], env:");
    let text = policy("Append", "-Da").replace("ARGS", variable);
    text.replace("env:", &container)
}

/// The lock file after a merge: the content lines of one branch, the lines of workloads of both.
fn merged(ours: &str, theirs: &str) -> String {
    let is_line_of_b = |line: &&str| line.contains("apps/b.yaml");
    let of_b: Vec<&str> = theirs.lines().filter(is_line_of_b).collect();
    format!("{ours}{}\n", of_b.join("\n"))
}

#[test]
fn a_branch_may_still_have_what_was_renamed_or_moved() {
    let place = empty_repository();
    let (first, second) = (workload("a", &[Some("-q")]), workload("b", &[Some("-r")]));
    place.write("apps/a.yaml", &first);
    place.write("policies/args.yaml", named("agent", "ARGS"));
    apply(&place);
    let (base, injected) = (place.read("podgraft.lock"), place.read("apps/a.yaml"));
    place.write("apps/b.yaml", &second);
    apply(&place);
    let theirs = place.read("podgraft.lock");
    let added = place.read("apps/b.yaml");
    // The main branch does not have it; there the policy gets other names, then other versions.
    place.write("podgraft.lock", base);
    place.write("apps/a.yaml", injected);
    fs::remove_file(place.path("apps/b.yaml")).expect("it is there");
    let renamed = named("agent-two", "OPTIONS");
    for version in 0..8 {
        let text = renamed.replace("image: agent", &format!("image: agent:{version}"));
        place.write("policies/args.yaml", text);
        apply(&place);
    }
    let ours = place.read("podgraft.lock");
    let merge = || {
        place.write("podgraft.lock", merged(&ours, &theirs));
        place.write("apps/b.yaml", &added);
    };
    merge();
    let messages = apply(&place);
    assert!(!messages.contains("changed-since"), "{messages}");
    let text = place.read("apps/b.yaml");
    assert!(
        !text.contains("name: agent\n") && text.contains("-r\""),
        "{text}"
    );
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), first);
    assert_eq!(place.read("apps/b.yaml"), second);
    assert!(!place.path("podgraft.lock").exists());
}

#[test]
fn lost_content_is_said_and_not_taken_for_a_change() {
    let place = empty_repository();
    place.write("apps/a.yaml", workload("a", &[Some("-q")]));
    place.write("policies/args.yaml", named("agent", "ARGS"));
    apply(&place);
    let injected = place.read("apps/a.yaml");
    let lock = place.read("podgraft.lock");
    for word in ["item", "text"] {
        let is_kept = |line: &&str| !line.starts_with(&format!("[\"{word}\""));
        let rest: Vec<&str> = lock.lines().filter(is_kept).collect();
        place.write("podgraft.lock", rest.join("\n"));
        for command in [
            &["undo", "-i", "apps"][..],
            &["apply", "-i", "-p", "policies", "apps"],
        ] {
            let refused = place.run(command);
            assert_eq!(refused.status.code(), Some(2), "{}", stderr_of(&refused));
            assert!(
                stderr_of(&refused).contains("bad-record"),
                "{}",
                stderr_of(&refused)
            );
            assert_eq!(place.read("apps/a.yaml"), injected);
        }
    }
    succeeded(&place, &["adopt", "-i", "-p", "policies", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), injected);
}

#[test]
fn what_stays_because_somebody_changed_it_is_not_said_to_be_taken_out() {
    let place = empty_repository();
    place.write("apps/a.yaml", workload("a", &[Some("-q")]));
    place.write("policies/args.yaml", named("agent", "ARGS"));
    apply(&place);
    let edited = place.read("apps/a.yaml");
    let edited = edited.replace("image: agent", "image: agent:by-hand");
    place.write("apps/a.yaml", edited);
    place.write("policies/args.yaml", named("agent-two", "ARGS"));
    let report = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    let (report, text) = (
        stdout_of(&report) + &stderr_of(&report),
        place.read("apps/a.yaml"),
    );
    assert!(text.contains("agent:by-hand"), "{text}");
    assert!(report.contains("the changed value stays"), "{report}");
    assert!(report.contains("init container agent-two"), "{report}");
    let is_undone = report.contains("undone") || report.contains("removed");
    assert!(!is_undone, "{report}");
}

#[test]
fn content_of_former_names_goes_after_eight_versions() {
    let place = empty_repository();
    place.write("apps/a.yaml", workload("a", &[Some("-q")]));
    let original = place.read("apps/a.yaml");
    let mut former = String::new();
    for version in 0..20 {
        let name = format!("args-{version}");
        let metadata = match former.is_empty() {
            true => format!("{{name: {name}}}"),
            false => {
                format!("{{name: {name}, annotations: {{podgraft.dev/renamed-from: {former}}}}}")
            }
        };
        let text = policy("Append", "-Da").replace("{name: args}", &metadata);
        place.write("policies/args.yaml", text);
        apply(&place);
        former = name;
    }
    let lock = place.read("podgraft.lock");
    let texts = lock.lines().filter(|line| line.starts_with("[\"text\""));
    assert!((9..12).contains(&texts.count()), "{lock}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), original);
}

#[test]
fn what_is_added_to_the_text_of_an_empty_variable_is_not_taken_for_the_policys() {
    let place = empty_repository();
    let original = workload("a", &[Some("")]);
    place.write("apps/a.yaml", &original);
    place.write("policies/args.yaml", policy("Append", "-Da=1"));
    apply(&place);
    let edited = place.read("apps/a.yaml");
    let edited = edited.replace("\"-Da=1\"", "\"-mine -Da=2\"");
    place.write("apps/a.yaml", &edited);
    place.write("policies/args.yaml", policy("Append", "-Da=2"));
    let refused = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    let messages = stderr_of(&refused);
    assert!(messages.contains("changed-since"), "{messages}");
    assert_eq!(place.read("apps/a.yaml"), edited);
    // Doing what one of them wants helps.
    place.write("apps/a.yaml", edited.replace("-mine ", ""));
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), original);
}

#[test]
fn content_of_workloads_that_a_run_does_not_see_stays() {
    let place = empty_repository();
    let workload = |name: &str| DEPLOYMENT.replace("orders", name);
    place.write("apps/a.yaml", workload("a"));
    place.write("apps/b.yaml", workload("b"));
    let version = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: version}
spec:
  inject:
    env:
    - {name: OPTIONS, op: Append, value: '-Dversion=${imageTag(container.image)}'}
    - {name: VERSION, value: '${imageTag(container.image)}'}
";
    place.write("policies/version.yaml", version);
    apply(&place);
    for number in 2..=12 {
        let (old, new) = (format!("/a:{}\n", number - 1), format!("/a:{number}\n"));
        let text = place.read("apps/a.yaml").replace(&old, &new);
        place.write("apps/a.yaml", text);
        let one = ["apply", "-i", "-p", "policies", "apps/a.yaml"];
        succeeded(&place, &one);
    }
    let text = place.read("apps/b.yaml").replace("/b:1\n", "/b:2\n");
    place.write("apps/b.yaml", text);
    apply(&place);
    let text = place.read("apps/b.yaml");
    assert!(
        text.contains("-Dversion=2") && !text.contains("-Dversion=1"),
        "{text}"
    );
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(
        place.read("apps/a.yaml"),
        workload("a").replace("/a:1", "/a:12")
    );
    assert_eq!(
        place.read("apps/b.yaml"),
        workload("b").replace("/b:1", "/b:2")
    );
}
