//! What reports say where only the record of a workload changes, and of objects beside it.

use super::{DEPLOYMENT, empty_repository, git, policy, repository, succeeded};
use crate::program::{Place, stderr_of, stdout_of};

/// A policy that adds the pod label `label`. `more` is added to its metadata.
fn labelling(policy: &str, label: &str, more: &str) -> String {
    format!(
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {{name: {policy}{more}}}
spec:
  inject: {{podLabels: {{{label}: set}}}}
"
    )
}

/// The Deployment of this name in the namespace `shop`.
fn deployment(name: &str) -> String {
    let named = DEPLOYMENT.replace("orders", name);
    named.replacen("metadata:\n", "metadata:\n  namespace: shop\n", 1)
}

/// `apply -i` with these policies, in this order.
fn apply<'a>(policies: &[&'a str]) -> Vec<&'a str> {
    let given = policies.iter().flat_map(|policy| ["-p", policy]);
    ["apply", "-i", "apps"].into_iter().chain(given).collect()
}

/// A workload into which `one.yaml` and `three.yaml` were injected.
fn labelled() -> Place {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("orders"));
    place.write("one.yaml", labelling("one", "l", ""));
    place.write("same.yaml", labelling("same", "l", ""));
    place.write("three.yaml", labelling("three", "m", ""));
    let renamed = ", annotations: {podgraft.dev/renamed-from: one}";
    place.write("renamed.yaml", labelling("uno", "l", renamed));
    succeeded(&place, &apply(&["one.yaml", "three.yaml"]));
    place
}

#[test]
fn a_change_of_the_record_alone_has_its_cause() {
    let cases: [(&[&str], &str, &str); 3] = [
        (
            &["renamed.yaml", "three.yaml"],
            "uno (only the record: renamed from one)",
            "uno would change only the record: renamed from one",
        ),
        (
            &["one.yaml", "same.yaml", "three.yaml"],
            "same (only the record: one injects the same)",
            "same would change only the record: one injects the same",
        ),
        (
            &["three.yaml", "one.yaml"],
            "three (the order: now applies before one)",
            "up to date: three now applies before one",
        ),
    ];
    for (policies, cause, wanted) in cases {
        let place = labelled();
        let policies = apply(policies);
        let checked = [&["check"], &policies[2..]].concat();
        let found = stdout_of(&place.run(&checked));
        assert!(found.contains(wanted), "{wanted} in {found}");
        let diff = stdout_of(&place.run(&[&["diff"], &policies[2..]].concat()));
        assert!(diff.contains(&format!(": {cause}\n")), "{diff}");
        let summary = [&["diff", "-o", "summary"], &policies[2..]].concat();
        let summary = stdout_of(&place.run(&summary));
        let (_, words) = cause.split_once(" (").expect("it has both");
        let wanted = format!("    ~ {}\n", words.trim_end_matches(')'));
        assert!(summary.contains(&wanted), "{summary}");
        let messages = stderr_of(&succeeded(&place, &policies));
        let wanted = format!("deployment shop/orders: injected by {cause}\n");
        assert!(messages.contains(&wanted), "{messages}");
        // Nothing is left to be said.
        let messages = stderr_of(&succeeded(&place, &policies));
        assert!(!messages.contains("injected by"), "{messages}");
    }
}

#[test]
fn a_record_that_goes_into_the_lock_file_is_said() {
    let place = labelled();
    succeeded(&place, &["undo", "-i", "apps"]);
    let policies = apply(&["one.yaml", "three.yaml"]);
    succeeded(&place, &[&policies[..], &["--record"]].concat());
    let messages = stderr_of(&succeeded(&place, &policies));
    let wanted = "injected by one (only the record: moved to podgraft.lock)\n";
    assert!(messages.contains(wanted), "{messages}");
}

#[test]
fn what_two_policies_inject_stays_when_one_of_them_goes_or_comes_later() {
    let place = labelled();
    succeeded(&place, &apply(&["one.yaml", "same.yaml"]));
    let swapped = succeeded(&place, &apply(&["same.yaml", "one.yaml"]));
    let messages = stderr_of(&swapped);
    let wanted = "same (the order: now applies before one)\n";
    assert!(messages.contains(wanted), "{messages}");
    let undone = succeeded(&place, &["undo", "-i", "--only", "one", "apps"]);
    let messages = stderr_of(&undone);
    let wanted = "removed one (only the record: same injects the same)\n";
    assert!(messages.contains(wanted), "{messages}");
}

/// A policy that adds these pod labels and joins these flags to a variable.
fn flagging(policy: &str, labels: &str, flags: &str) -> String {
    let variable = format!("env: [{{name: FLAGS, value: '{flags}', op: Append}}], podLabels");
    let labelled = labelling(policy, "l", "").replace("{l: set}", labels);
    labelled.replace("podLabels", &variable)
}

#[test]
fn what_another_policy_takes_over_is_neither_taken_out_nor_added() {
    let place = empty_repository();
    place.write("all.yaml", flagging("one", "{l: set, m: set}", "-a -b"));
    place.write("one.yaml", flagging("one", "{l: set}", "-a"));
    place.write("two.yaml", flagging("two", "{m: set}", "-b"));
    place.write("more.yaml", flagging("two", "{m: set, k: set}", "-b"));
    let runs: [(&[&str], &[&str], &str); 4] = [
        (
            &["all.yaml"],
            &["one.yaml", "two.yaml"],
            ": two (only the record: taken over from one)",
        ),
        (
            &["one.yaml", "two.yaml"],
            &["all.yaml"],
            ": one (only the record: taken over from two); two removed (only the record: one injects the same)",
        ),
        (
            &["all.yaml"],
            &["two.yaml"],
            ": two (only the record: taken over from one); one removed (pod label l, app: env FLAGS updated)",
        ),
        (
            &["all.yaml"],
            &["one.yaml", "more.yaml"],
            ": two (pod label k)",
        ),
    ];
    for (before, after, wanted) in runs {
        place.write("apps/a.yaml", deployment("orders"));
        let apply = |policies| [&apply(policies)[..], &["--policy-set", "s", "--prune"]].concat();
        succeeded(&place, &apply(before));
        let run = apply(after);
        let diff = stdout_of(&place.run(&[&["diff"], &run[2..]].concat()));
        assert!(diff.contains(&format!("{wanted}\n")), "{wanted} in {diff}");
        let json = [&["diff", "-o", "json"], &run[2..]].concat();
        let json = stdout_of(&place.run(&json));
        assert!(!json.contains("pod label m"), "{json}");
        succeeded(&place, &run);
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read("apps/a.yaml"), deployment("orders"));
    }
}

/// Three workloads in a file each, which need a generated object. It stands in the first.
fn generated() -> Place {
    let place = empty_repository();
    for name in ["a", "b", "c"] {
        place.write(format!("apps/{name}.yaml"), deployment(name));
    }
    let object = "  generate:\n  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: shared, namespace: shop}, data: {k: v}}\n";
    place.write("label.yaml", labelling("one", "l", ""));
    place.write("one.yaml", labelling("one", "l", "") + object);
    succeeded(&place, &apply(&["one.yaml"]));
    place
}

#[test]
fn an_object_that_is_written_again_is_named() {
    let place = generated();
    std::fs::remove_file(place.path("apps/a.yaml")).expect("it is there");
    let found = stdout_of(&place.run(&["check", "-p", "one.yaml", "apps"]));
    let wanted = "shop/b is not up to date: one would add ConfigMap shop/shared\n";
    assert!(found.contains(wanted), "{found}");
    let summary = stdout_of(&place.run(&["diff", "-o", "summary", "-p", "one.yaml", "apps"]));
    assert!(
        summary.contains("    + ConfigMap shop/shared\n"),
        "{summary}"
    );
    let messages = stderr_of(&succeeded(&place, &apply(&["one.yaml"])));
    let wanted = "deployment shop/b (apps/b.yaml:1): injected by one (ConfigMap shop/shared)\n";
    assert!(messages.contains(wanted), "{messages}");
    assert!(
        messages.contains("2 workloads: 1 injected, 1 unchanged;"),
        "{messages}"
    );
}

#[test]
fn an_object_that_goes_is_named_and_its_workloads_are_not_called_unchanged() {
    let place = generated();
    let diff = place.run(&["diff", "-o", "summary", "-p", "label.yaml", "apps"]);
    assert_eq!(diff.status.code(), Some(1), "{}", stderr_of(&diff));
    let summary = stdout_of(&diff);
    let removal = "Deployment shop/b (apps/b.yaml:1)\n  one\n    - ConfigMap shop/shared\n";
    assert!(summary.contains(removal), "{summary}");
    let counts = "Plan: 3 workloads to change, 0 unchanged.\n";
    assert!(summary.ends_with(counts), "{summary}");
    let checked = place.run(&["check", "-p", "label.yaml", "apps"]);
    assert_eq!(checked.status.code(), Some(1));
    let found = stdout_of(&checked) + &stderr_of(&checked);
    assert!(
        found.contains("3 workloads, 0 selected and up to date"),
        "{found}"
    );
    // Where others need the object, nothing is said to go.
    let one = ["apply", "-i", "-p", "label.yaml", "apps/b.yaml"];
    let messages = stderr_of(&succeeded(&place, &one));
    assert!(
        messages.starts_with("1 workload: 1 unchanged;"),
        "{messages}"
    );
    let messages = stderr_of(&succeeded(&place, &apply(&["label.yaml"])));
    assert!(
        messages.contains("3 workloads: 2 injected, 1 unchanged;"),
        "{messages}"
    );
}

#[test]
fn a_changed_text_that_undo_leaves_is_not_said_to_be_gone() {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("orders"));
    let variable = "env: [{name: J, value: -agent, op: Append}]";
    let policy = labelling("one", "l", "").replace("podLabels: {l: set}", variable);
    place.write("one.yaml", policy);
    succeeded(&place, &apply(&["one.yaml"]));
    let edited = place.read("apps/a.yaml").replace("-agent", "-agent-2");
    place.write("apps/a.yaml", edited);
    let messages = stderr_of(&succeeded(&place, &["undo", "-i", "--force", "apps"]));
    for wanted in [
        "the changed value stays and is no longer recorded",
        "removed one (only the record: changed values stay)\n",
    ] {
        assert!(messages.contains(wanted), "{messages}");
    }
    assert!(!messages.contains("every value"), "{messages}");
    assert!(place.read("apps/a.yaml").contains("-agent-2"));
}

#[test]
fn adopting_what_a_record_names_is_no_mistake() {
    let place = labelled();
    let adopt = ["adopt", "-i", "-p", "one.yaml", "apps"];
    succeeded(&place, &adopt);
    succeeded(&place, &["undo", "-i", "apps"]);
    succeeded(&place, &[&apply(&["one.yaml"])[..], &["--record"]].concat());
    let messages = stderr_of(&succeeded(&place, &adopt));
    let wanted = "injected by one (only the record: moved to podgraft.lock)";
    assert!(messages.contains(wanted), "{messages}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), deployment("orders"));
}

#[test]
fn a_generated_object_with_another_name_is_named_once() {
    let place = empty_repository();
    let workload = deployment("a").replace("  namespace: shop\n", "");
    place.write("apps/a.yaml", workload);
    let object = |name: &str| {
        let resource = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{k: v}}}}"
        );
        labelling("one", "l", "") + &format!("  generate:\n  - resource: {resource}\n")
    };
    place.write("one.yaml", object("before"));
    let policies = [&apply(&["one.yaml"])[..], &["-n", "shop"]].concat();
    succeeded(&place, &policies);
    place.write("one.yaml", object("after"));
    let messages = stderr_of(&succeeded(&place, &policies));
    let wanted = "injected by one (ConfigMap after, ConfigMap before undone)\n";
    assert!(messages.contains(wanted), "{messages}");
}

#[test]
fn a_sidecar_that_somebody_changed_is_not_called_invalid_without_its_volume() {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("a"));
    let inject = "inject: {volumes: [{name: conf, emptyDir: {}}], sidecars: [{name: obs, type: Native, image: 'obs:1', volumeMounts: [{name: conf, mountPath: /c}]}], ";
    place.write(
        "one.yaml",
        labelling("one", "l", "").replace("inject: {", inject),
    );
    place.write("two.yaml", labelling("two", "m", ""));
    succeeded(&place, &apply(&["one.yaml", "two.yaml"]));
    place.write(
        "apps/a.yaml",
        place.read("apps/a.yaml").replace("obs:1", "obs:2"),
    );
    place.write("two.yaml", labelling("two", "k", ""));
    let output = place.run(&["check", "-p", "one.yaml", "-p", "two.yaml", "apps"]);
    let findings = stdout_of(&output);
    assert!(
        findings.contains("was changed after policy `one`"),
        "{findings}"
    );
    assert!(!findings.contains("invalid-before"), "{findings}");
}

#[test]
fn check_says_where_the_lock_file_is_behind_the_manifests() {
    let place = repository(1);
    place.write("policies/agent.yaml", policy("agent", 2));
    let check = ["check", "-p", "policies", "apps"];
    let findings = |args: &[&str]| stdout_of(&place.run(args));
    assert!(findings(&check).contains("error[out-of-date]"));
    let diff = place.run(&["diff", "-q", "-p", "policies", "apps"]);
    place.write("changes.patch", stdout_of(&diff));
    git(&place, &["apply", "changes.patch"]);
    let behind = findings(&check);
    assert!(
        behind.contains("podgraft.lock:1:1: warning[out-of-date]"),
        "{behind}"
    );
    // A part of the policies tells nothing.
    let part = [&check[..], &["--only", "agent"]].concat();
    assert!(!findings(&part).contains("podgraft.lock:1:1"));
    let manifest = place.read("apps/app-0.yaml");
    super::apply(&place);
    assert_eq!(place.read("apps/app-0.yaml"), manifest);
    assert!(!findings(&check).contains("out-of-date"));
}

#[test]
fn check_says_where_the_lock_file_lost_a_workload_and_not_where_a_set_has_another_name() {
    let place = repository(2);
    let check = ["check", "-p", "policies", "apps"];
    let findings = |more: &[&str]| stdout_of(&place.run(&[&check[..], more].concat()));
    let warning = "podgraft.lock:1:1: warning[out-of-date]";
    assert!(!findings(&["--policy-set", "other"]).contains(warning));
    let whole = place.read("podgraft.lock");
    let lines = whole.lines().filter(|line| !line.contains("app-1"));
    place.write("podgraft.lock", lines.collect::<Vec<_>>().join("\n") + "\n");
    let found = findings(&[]);
    assert!(found.contains(warning), "{found}");
    // The help line of the warning.
    super::apply(&place);
    assert!(!findings(&[]).contains(warning));
    // Where no file is recorded, nothing was meant to be.
    std::fs::remove_file(place.path("podgraft.lock")).expect("it is there");
    assert!(!findings(&[]).contains(warning));
}

#[test]
fn an_item_that_a_patch_renamed_is_not_left_without_a_word() {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("orders"));
    place.write("agent.yaml", policy("agent", 1));
    let run = apply(&["agent.yaml"]);
    succeeded(&place, &run);
    let volume = "volumes: [{name: agent,";
    let renamed = policy("agent", 1).replace(volume, "volumes: [{name: cache,");
    place.write(
        "agent.yaml",
        renamed.replace("[{name: agent, mount", "[{name: cache, mount"),
    );
    let diff = stdout_of(&place.run(&["diff", "-q", "-p", "agent.yaml", "apps"]));
    place.write("changes.patch", diff);
    git(&place, &["apply", "changes.patch"]);
    let wanted = "volume cache of Deployment shop/orders matches policy `agent`, but the recorded volume agent";
    let found = stdout_of(&place.run(&["check", "-p", "agent.yaml", "apps"]));
    assert!(found.contains(wanted), "{found}");
    let refused = place.run(&[&run[..], &["--strict"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", stderr_of(&refused));
    // What the help line says.
    git(&place, &["apply", "-R", "changes.patch"]);
    assert!(!stderr_of(&succeeded(&place, &run)).contains("no-record"));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), deployment("orders"));
}

#[test]
fn a_mark_whose_record_is_lost_is_not_dropped_in_silence() {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("a"));
    let policies = apply(&["one.yaml", "two.yaml"]);
    place.write("one.yaml", labelling("one", "l", ""));
    place.write("two.yaml", labelling("two", "m", ""));
    succeeded(&place, &policies);
    std::fs::remove_file(place.path("podgraft.lock")).expect("it is there");
    // The first is found as it wants it, and recorded again; the second does not select the workload any more.
    let elsewhere = "spec:\n  match: {names: [other]}\n";
    let other = labelling("two", "m", "").replace("spec:\n", elsewhere);
    place.write("two.yaml", other);
    let messages = stderr_of(&succeeded(&place, &policies));
    let warning = "is marked as injected by `two`, which no longer applies to it";
    assert!(messages.contains(warning), "{messages}");
    // Nothing but the mark knows of what stays, so each run says it, also where the policy is not given.
    let messages = stderr_of(&succeeded(&place, &policies));
    assert!(messages.contains(warning), "{messages}");
    assert!(messages.contains("1 unchanged"), "{messages}");
    let alone = apply(&["one.yaml"]);
    let messages = stderr_of(&succeeded(&place, &alone));
    assert!(
        messages.contains("contains injections of policy `two`"),
        "{messages}"
    );
    let applied = place.read("apps/a.yaml");
    succeeded(&place, &["undo", "-i", "apps"]);
    let undone = place.read("apps/a.yaml");
    assert!(
        undone.contains("podgraft.dev/applied: \"two\"\n"),
        "{undone}"
    );
    assert!(!undone.contains("l: \"set\""), "{undone}");
    // What the help lines say.
    place.write("apps/a.yaml", applied);
    succeeded(&place, &alone);
    let by_hand = place.read("apps/a.yaml").replace(", m: \"set\"", "");
    let by_hand = by_hand.replace("\"two,one\"", "one");
    place.write("apps/a.yaml", &by_hand);
    for run in [&policies, &alone] {
        let messages = stderr_of(&succeeded(&place, run));
        assert!(!messages.contains("two` "), "{messages}");
        assert_eq!(place.read("apps/a.yaml"), by_hand);
    }
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), deployment("a"));
}

#[test]
fn a_diff_marks_policies_that_inject_the_same_as_a_run_in_place_does() {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("orders"));
    place.write("one.yaml", flagging("one", "{l: set}", "-a"));
    place.write("label.yaml", labelling("label", "l", ""));
    place.write("flag.yaml", flagging("flag", "{}", "-a"));
    let run = apply(&["one.yaml", "label.yaml", "flag.yaml"]);
    let diff = stdout_of(&place.run(&[&["diff", "-q"], &run[2..]].concat()));
    let printed = stdout_of(&place.run(&[&["apply", "-q"], &run[2..]].concat()));
    succeeded(&place, &run);
    let written = place.read("apps/a.yaml");
    let mark = "podgraft.dev/applied: \"one,label,flag\"\n";
    assert!(written.contains(mark), "{written}");
    assert_eq!(printed, written);
    succeeded(&place, &["undo", "-i", "apps"]);
    place.write("changes.patch", diff);
    git(&place, &["apply", "changes.patch"]);
    assert_eq!(place.read("apps/a.yaml"), written);
    succeeded(&place, &run);
    assert_eq!(place.read("apps/a.yaml"), written);
}

#[test]
fn a_value_that_is_put_back_after_a_change_by_hand_is_said() {
    let replacing = |policy: &str| policy.replace("spec:\n", "spec:\n  onConflict: Replace\n");
    let before = deployment("orders").replace("{app: orders}", "{app: orders, l: before}");
    for by_hand in ["other", "before"] {
        let place = empty_repository();
        place.write("apps/a.yaml", &before);
        place.write("one.yaml", replacing(&labelling("one", "l", "")));
        succeeded(&place, &apply(&["one.yaml"]));
        let applied = place.read("apps/a.yaml");
        assert!(applied.contains("l: \"set\""), "{applied}");
        place.write("apps/a.yaml", applied.replace("\"set\"", by_hand));
        let found = stdout_of(&place.run(&["check", "-p", "one.yaml", "apps"]));
        let wanted = "not up to date: one would change pod label l\n";
        assert!(found.contains(wanted), "{found}");
        assert!(
            found.contains("the policy sets its own value again"),
            "{found}"
        );
        let diff = stdout_of(&place.run(&["diff", "-p", "one.yaml", "apps"]));
        assert!(diff.contains(": one (pod label l updated)\n"), "{diff}");
        let messages = stderr_of(&succeeded(&place, &apply(&["one.yaml"])));
        let wanted = "orders: injected by one (pod label l updated)\n";
        assert!(messages.contains(wanted), "{messages}");
        assert_eq!(place.read("apps/a.yaml"), applied);
        succeeded(&place, &["check", "-p", "one.yaml", "apps"]);
    }
}

#[test]
fn an_item_that_only_a_digest_identifies_has_no_name() {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("orders"));
    let tolerating = |key: &str| {
        let inject = format!("podSpec: {{tolerations: [{{key: {key}, operator: Exists}}]}}");
        labelling("tolerant", "l", "").replace("podLabels: {l: set}", &inject)
    };
    place.write("tolerant.yaml", tolerating("spot"));
    succeeded(&place, &apply(&["tolerant.yaml"]));
    place.write("tolerant.yaml", tolerating("gpu"));
    let run = succeeded(&place, &apply(&["tolerant.yaml"]));
    let messages = stderr_of(&run);
    let changes = "tolerant (an item of pod tolerations, an item of pod tolerations undone)";
    assert!(messages.contains(changes), "{messages}");
}

#[test]
fn an_update_of_a_generated_object_counts_the_same_lines_in_each_format() {
    let place = empty_repository();
    place.write("apps/a.yaml", deployment("orders"));
    let generating = |value: &str| {
        let object =
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: generated, namespace: shop}";
        let generate = format!("  generate: [{{resource: {object}, data: {{k: {value}}}}}}}]\n");
        labelling("one", "l", "") + &generate
    };
    place.write("one.yaml", generating("old"));
    place.write("three.yaml", labelling("three", "m", ""));
    succeeded(&place, &apply(&["one.yaml", "three.yaml"]));
    place.write("one.yaml", generating("new"));
    place.write("three.yaml", labelling("three", "k", ""));
    let diff = |format: &str| {
        let policies = ["-p", "one.yaml", "-p", "three.yaml", "apps"];
        stdout_of(&place.run(&[&["diff", "-q", "-o", format], &policies[..]].concat()))
    };
    for (format, wanted) in [
        ("stat", &["2 insertions(+), 2 deletions(-)"][..]),
        ("markdown", &["+2 −2 lines."]),
        ("json", &["\"insertions\": 2,\n    \"deletions\": 2\n"]),
        (
            "sarif",
            &[
                "changes Deployment shop/orders here (+1 -1 lines)",
                "one changes ConfigMap shop/generated here (+1 -1 lines)",
            ],
        ),
        ("unified", &[" ConfigMap shop/generated: one\n"]),
    ] {
        let text = diff(format);
        for wanted in wanted {
            assert!(text.contains(wanted), "{format}: {text}");
        }
    }
}

#[test]
fn a_variable_that_goes_was_not_restored_and_one_that_stays_was_not_removed() {
    let place = empty_repository();
    let joining = |policy: &str, text: &str| {
        let inject = format!("env: [{{name: FLAGS, op: Append, value: {text}}}]");
        labelling(policy, "l", "").replace("podLabels: {l: set}", &inject)
    };
    let adding = joining("one", "x").replace(" op: Append,", "");
    for first in [joining("one", "x"), adding] {
        place.write("apps/a.yaml", deployment("orders"));
        place.write("one.yaml", &first);
        place.write("three.yaml", joining("three", "z"));
        succeeded(&place, &apply(&["one.yaml", "three.yaml"]));
        let undo = succeeded(&place, &["undo", "-i", "--only", "one", "apps"]);
        let messages = stderr_of(&undo);
        let wanted = "removed one (app: env FLAGS updated)\n";
        assert!(messages.contains(wanted), "{messages}");
        assert!(place.read("apps/a.yaml").contains("FLAGS"));
        let messages = stderr_of(&succeeded(&place, &["undo", "-i", "apps"]));
        let wanted = "removed three (app: env FLAGS)\n";
        assert!(messages.contains(wanted), "{messages}");
        assert_eq!(place.read("apps/a.yaml"), deployment("orders"));
    }
}
