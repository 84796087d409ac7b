//! Generated objects that several workloads or policies need.

use std::fs;

use super::{DEPLOYMENT, empty_repository, git, succeeded};
use crate::program::{Place, stderr_of, stdout_of};

/// A policy that generates the ConfigMap `shared`.
fn generating(policy: &str, value: &str) -> String {
    format!(
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {{name: {policy}}}
spec:
  inject: {{podLabels: {{{policy}: set}}}}
  generate:
  - resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: shared}}, data: {{k: {value}}}}}
"
    )
}

/// A run with both policies.
const BOTH: [&str; 7] = [
    "apply",
    "-i",
    "-p",
    "first.yaml",
    "-p",
    "second.yaml",
    "apps",
];

/// Two workloads in a file each.
fn place() -> Place {
    let place = empty_repository();
    place.write("apps/a.yaml", DEPLOYMENT.replace("orders", "a"));
    place.write("apps/b.yaml", DEPLOYMENT.replace("orders", "b"));
    for policy in ["first", "second"] {
        place.write(format!("{policy}.yaml"), generating(policy, "v"));
    }
    place.write("other.yaml", generating("second", "w"));
    place
}

fn assert_untouched(place: &Place) {
    for name in ["a", "b"] {
        let original = DEPLOYMENT.replace("orders", name);
        assert_eq!(place.read(format!("apps/{name}.yaml")), original);
    }
    assert!(!place.path("podgraft.lock").exists());
}

#[test]
fn a_second_object_of_a_name_is_refused_although_an_earlier_run_wrote_the_first() {
    let place = place();
    succeeded(&place, &["apply", "-i", "-p", "first.yaml", "apps"]);
    let injected = place.read("apps/a.yaml");
    for policies in [
        &["-p", "first.yaml", "-p", "other.yaml"][..],
        &["-p", "other.yaml"],
    ] {
        let refused = place.run(&[&["apply", "-i", "apps"], policies].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr_of(&refused));
        let messages = stderr_of(&refused);
        assert!(messages.contains("ConfigMap shared"), "{messages}");
        assert_eq!(place.read("apps/a.yaml"), injected);
    }
    // The same content is one object.
    succeeded(&place, &BOTH);
    // A new version that only one of them has is refused as well.
    place.write("first.yaml", generating("first", "new"));
    let refused = place.run(&BOTH);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr_of(&refused));
    place.write("second.yaml", generating("second", "new"));
    succeeded(&place, &BOTH);
    assert_eq!(
        place.read("apps/a.yaml").matches("kind: ConfigMap").count(),
        1
    );
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_untouched(&place);
}

#[test]
fn an_object_stays_while_another_file_or_policy_needs_it() {
    let place = place();
    succeeded(&place, &BOTH);
    // The object stands in the file of the first workload.
    assert!(place.read("apps/a.yaml").contains("kind: ConfigMap"));
    for args in [
        &["undo", "-i", "--only", "first", "apps"][..],
        &["undo", "-i", "apps/a.yaml"],
    ] {
        let output = succeeded(&place, args);
        let messages = stderr_of(&output);
        assert!(messages.contains("removed"), "{messages}");
        assert!(!messages.contains("ConfigMap"), "{messages}");
        assert!(place.read("apps/a.yaml").contains("kind: ConfigMap"));
    }
    // A new version for one of the files takes the place of the old one.
    place.write("second.yaml", generating("second", "new"));
    succeeded(&place, &["apply", "-i", "-p", "second.yaml", "apps/a.yaml"]);
    let text = place.read("apps/a.yaml");
    assert_eq!(text.matches("kind: ConfigMap").count(), 1, "{text}");
    succeeded(&place, &["apply", "-i", "-p", "second.yaml", "apps"]);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_untouched(&place);
}

#[test]
fn a_file_that_is_gone_keeps_no_object() {
    let place = place();
    succeeded(&place, &["apply", "-i", "-p", "first.yaml", "apps"]);
    std::fs::remove_file(place.path("apps/b.yaml")).expect("it is there");
    succeeded(&place, &["undo", "-i", "apps/a.yaml"]);
    assert_eq!(place.read("apps/a.yaml"), DEPLOYMENT.replace("orders", "a"));
    assert!(!place.path("podgraft.lock").exists());
}

#[test]
fn a_new_version_says_what_is_true_of_an_earlier_one_that_is_not_found() {
    let place = place();
    let apply = ["apply", "-i", "-p", "first.yaml", "apps"];
    succeeded(&place, &apply);
    let (holder, second) = (place.read("apps/a.yaml"), place.read("apps/b.yaml"));
    place.write("first.yaml", generating("first", "new"));
    // Somebody changed the object to the new version already.
    place.write("apps/a.yaml", holder.replace("k: v", "k: new"));
    let messages = stderr_of(&succeeded(&place, &apply));
    assert!(
        !messages.contains("not in any of these files"),
        "{messages}"
    );
    // The file that held the object is gone, and the new version stands in the other one.
    place.write("first.yaml", generating("first", "newest"));
    std::fs::remove_file(place.path("apps/a.yaml")).expect("it is there");
    let messages = stderr_of(&succeeded(&place, &apply));
    let wanted = "an earlier version of the ConfigMap shared, generated by policy `first`";
    assert!(messages.contains(wanted), "{messages}");
    assert!(!messages.contains("no longer needed"), "{messages}");
    // It is not needed any more.
    place.write("apps/b.yaml", second);
    let messages = stderr_of(&succeeded(&place, &["undo", "-i", "apps"]));
    assert!(messages.contains("no longer needed"), "{messages}");
}

/// A policy that generates an object.
fn generating_object(object: &str) -> String {
    let (policy, _) = SUMMED.split_once("---\n").expect("it has two policies");
    let (policy, _) = policy.split_once("  - resource").expect("it generates");
    format!("{policy}  - resource: {object}\n")
}

#[test]
fn a_new_version_that_hardly_differs_takes_the_place_of_the_old_one() {
    let budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: settings}, \
                  spec: {maxUnavailable: 1}}";
    let service = "{apiVersion: v1, kind: Service, metadata: {name: settings}, \
                   spec: {ports: [{port: 80, protocol: TCP}]}}";
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {k: v}}";
    let stating =
        |more: &str| settings.replace("name: settings", &format!("name: settings, {more}"));
    for (one, other) in [
        (budget, &budget.replace("policy/v1", "policy/v1beta1")),
        (budget, &budget.replace("policy/v1", "example.com/v1")),
        (service, &service.replace(", protocol: TCP", "")),
        (settings, &stating("labels: {team: a}")),
        (settings, &stating("annotations: {team: a}")),
        (settings, &stating("namespace: shop")),
        (settings, &stating("namespace: \"${workload.namespace}\"")),
    ] {
        for (before, after) in [(one, other.as_str()), (other, one)] {
            let place = empty_repository();
            place.write("a.yaml", DEPLOYMENT);
            let run = |command, object: &str| {
                place.write("p.yaml", generating_object(object));
                let flags = ["-n", "shop", "-p", "p.yaml", "a.yaml"];
                succeeded(&place, &[command, &flags[..]].concat());
                place.read("a.yaml")
            };
            let apply = &["apply", "-i"][..];
            run(apply, before);
            let updated = run(apply, after);
            assert_eq!(run(&["check"], after), updated);
            succeeded(&place, &["undo", "-i", "a.yaml"]);
            assert_eq!(place.read("a.yaml"), DEPLOYMENT);
            // As if there had been no earlier version.
            assert_eq!(run(apply, after), updated);
        }
    }
}

#[test]
fn a_new_version_for_one_file_takes_the_place_of_one_that_states_no_namespace() {
    let place = place();
    let flags = &["-n", "shop", "-p", "first.yaml"][..];
    let run = |args: &[&str]| succeeded(&place, &[args, flags].concat());
    let apply = |file| run(&["apply", "-i", file]);
    apply("apps");
    let stated = generating("first", "v").replace("name: shared", "name: shared, namespace: shop");
    place.write("first.yaml", stated);
    apply("apps/a.yaml");
    let text = place.read("apps/a.yaml");
    assert_eq!(text.matches("kind: ConfigMap").count(), 1, "{text}");
    assert!(text.contains("namespace: shop"), "{text}");
    apply("apps/b.yaml");
    assert_eq!(place.read("apps/a.yaml"), text);
    run(&["check", "apps"]);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_untouched(&place);
}

#[test]
fn two_policies_whose_objects_of_a_name_hardly_differ_are_refused_whichever_came_first() {
    let labelled =
        generating("second", "v").replace("name: shared", "name: shared, labels: {a: b}");
    for first in ["first.yaml", "second.yaml"] {
        let place = place();
        place.write("second.yaml", &labelled);
        succeeded(&place, &["apply", "-i", "-p", first, "apps"]);
        let injected = place.read("apps/a.yaml");
        let refused = place.run(&BOTH);
        let messages = stderr_of(&refused);
        assert_eq!(refused.status.code(), Some(2), "{messages}");
        assert!(messages.contains("generated twice"), "{messages}");
        assert_eq!(place.read("apps/a.yaml"), injected);
    }
}

#[test]
fn an_object_in_a_file_that_is_not_given_is_not_written_again() {
    let place = place();
    let apply = ["apply", "-i", "-p", "first.yaml"];
    succeeded(&place, &[&apply[..], &["apps"]].concat());
    let (holder, second) = (place.read("apps/a.yaml"), place.read("apps/b.yaml"));
    assert!(holder.contains("kind: ConfigMap"));
    // As a pre-commit hook gives the files that changed, from any folder.
    for (folder, file) in [
        ("", "apps/b.yaml"),
        ("apps", "b.yaml"),
        ("apps/..", "apps/b.yaml"),
    ] {
        let policy = place.path("first.yaml").display().to_string();
        let output = place
            .command(&["check", "-p", &policy, file])
            .current_dir(place.path(folder))
            .output();
        let output = output.expect("it runs");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{folder}: {}",
            stderr_of(&output)
        );
    }
    let output = succeeded(&place, &[&apply[..], &["apps/b.yaml"]].concat());
    let messages = stderr_of(&output);
    assert!(!messages.contains("inexact-undo"), "{messages}");
    assert_eq!(place.read("apps/b.yaml"), second);
    // A new file takes part.
    place.write("apps/c.yaml", DEPLOYMENT.replace("orders", "c"));
    succeeded(&place, &[&apply[..], &["apps/c.yaml"]].concat());
    assert!(!place.read("apps/c.yaml").contains("kind: ConfigMap"));
    // A new version cannot take the place of the old one in a file that is not given.
    place.write("first.yaml", generating("first", "new"));
    let refused = place.run(&[&apply[..], &["apps/b.yaml"]].concat());
    let messages = stderr_of(&refused);
    assert_eq!(refused.status.code(), Some(2), "{messages}");
    assert!(messages.contains("is in `apps/a.yaml`"), "{messages}");
    succeeded(&place, &[&apply[..], &["apps"]].concat());
    let count = |file: &str| place.read(file).matches("kind: ConfigMap").count();
    assert_eq!(
        [
            count("apps/a.yaml"),
            count("apps/b.yaml"),
            count("apps/c.yaml")
        ],
        [1, 0, 0]
    );
    std::fs::remove_file(place.path("apps/c.yaml")).expect("it is there");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_untouched(&place);
}

#[test]
fn a_line_of_the_lock_file_that_leads_out_of_its_folder_is_not_followed() {
    let place = place();
    let apply = ["apply", "-i", "-p", "first.yaml", "apps/b.yaml"];
    place.write(
        "outside.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n",
    );
    succeeded(&place, &["apply", "-i", "-p", "first.yaml", "apps"]);
    let lock = place.read("podgraft.lock");
    let outside = place.path("outside.yaml").display().to_string();
    for file in ["apps/../outside.yaml", outside.as_str()] {
        place.write("podgraft.lock", lock.replace("apps/a.yaml", file));
        let messages = stderr_of(&succeeded(&place, &apply));
        assert!(!messages.contains("outside"), "{messages}");
    }
    place.write("podgraft.lock", lock.replace("apps/a.yaml", "outside.yaml"));
    let refused = place.run(&apply);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr_of(&refused));
}

/// A policy that generates a ConfigMap, and one that sums it and reads it.
const SUMMED: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: settings}
spec:
  inject:
    volumes:
    - {name: settings, configMap: {name: settings}}
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}
---
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: roll}
spec:
  inject:
    podAnnotations:
      example.com/level: \"${lookup('v1', 'ConfigMap', 'settings').?data[?'level']}\"
    checksums:
    - annotation: checksum/settings
      configMaps: [settings]
";

#[test]
fn what_reads_a_generated_object_sees_its_new_version_at_once() {
    let place = empty_repository();
    place.write("a.yaml", DEPLOYMENT);
    place.write("p.yaml", SUMMED);
    succeeded(&place, &["apply", "-i", "-p", "p.yaml", "a.yaml"]);
    place.write("p.yaml", SUMMED.replace("info", "debug"));
    succeeded(&place, &["apply", "-i", "-p", "p.yaml", "a.yaml"]);
    let updated = place.read("a.yaml");
    succeeded(&place, &["check", "-p", "p.yaml", "a.yaml"]);
    succeeded(&place, &["apply", "-i", "-p", "p.yaml", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), updated);
    // As if there had been no earlier version.
    succeeded(&place, &["undo", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), DEPLOYMENT);
    succeeded(&place, &["apply", "-i", "-p", "p.yaml", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), updated);
}

#[test]
fn what_an_earlier_run_injected_does_not_decide_what_is_generated() {
    let place = empty_repository();
    let policy = SUMMED.replacen(
        "spec:\n",
        "spec:\n  match: {selector: {matchExpressions: [{key: level, operator: DoesNotExist}]}}\n",
        1,
    );
    let policy = policy.replacen("inject:\n", "inject:\n    podLabels: {level: info}\n", 1);
    place.write("a.yaml", DEPLOYMENT);
    place.write("p.yaml", &policy);
    succeeded(&place, &["apply", "-i", "-p", "p.yaml", "a.yaml"]);
    place.write("p.yaml", policy.replace("info", "debug"));
    succeeded(&place, &["apply", "-i", "-p", "p.yaml", "a.yaml"]);
    let updated = place.read("a.yaml");
    succeeded(&place, &["apply", "-i", "-p", "p.yaml", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), updated);
}

#[test]
fn a_diff_of_generated_objects_that_go_is_a_patch_between_other_documents() {
    const OTHER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {k: v}\n";
    let first = generating("first", "v");
    let (none, _) = first.split_once("  generate:").expect("it generates");
    let renamed = first.replace("shared", "common");
    let suspended = first.replace("spec:", "spec:\n  suspend: true");
    for policy in [none, &renamed, &suspended] {
        for documents in [
            &[DEPLOYMENT][..],
            &[OTHER, DEPLOYMENT],
            &[DEPLOYMENT, OTHER],
            &[OTHER, DEPLOYMENT, OTHER],
        ] {
            let place = place();
            git(&place, &["init", "-q"]);
            place.write("apps/a.yaml", documents.join("---\n"));
            fs::remove_file(place.path("apps/b.yaml")).expect("it is there");
            // The second one stays.
            place.write(
                "second.yaml",
                generating("second", "v").replace("shared", "mine"),
            );
            succeeded(&place, &BOTH);
            let injected = place.read("apps/a.yaml");
            place.write("first.yaml", policy);
            let diff = place.run(&["diff", "-p", "first.yaml", "-p", "second.yaml", "apps"]);
            assert_eq!(diff.status.code(), Some(1), "{}", stderr_of(&diff));
            place.write("changes.patch", &diff.stdout);
            succeeded(&place, &BOTH);
            let applied = place.read("apps/a.yaml");
            place.write("apps/a.yaml", injected);
            git(&place, &["apply", "changes.patch"]);
            assert_eq!(place.read("apps/a.yaml"), applied);
        }
    }
}

#[test]
fn a_new_version_is_refused_where_the_workloads_of_the_earlier_one_have_lost_their_mark() {
    let place = place();
    succeeded(&place, &["apply", "-i", "-p", "first.yaml", "apps"]);
    let lock = place.read("podgraft.lock");
    let mark = "  annotations:\n    podgraft.dev/applied: first\n";
    let unmarked = ["apps/a.yaml", "apps/b.yaml"].map(|file| {
        let text = place.read(file).replace(mark, "");
        place.write(file, &text);
        (file, text)
    });
    place.write("first.yaml", generating("first", "new"));
    let refused = place.run(&["apply", "-i", "-p", "first.yaml", "apps"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr_of(&refused));
    let messages = stderr_of(&refused);
    assert!(messages.starts_with("conflict\n"), "{messages}");
    for (file, text) in unmarked {
        assert_eq!(place.read(file), text);
    }
    assert_eq!(place.read("podgraft.lock"), lock);
}

/// A workload that reads the ConfigMap `shared`.
fn reader() -> String {
    let source = "        envFrom: [{configMapRef: {name: shared}}]\n";
    DEPLOYMENT.replace("        resources: {}\n", source)
}

/// Policies that read the ConfigMap `shared`, with what they inject.
fn reading() -> [String; 3] {
    let look_up = "env: [{name: K, value: \"${lookup('v1', 'ConfigMap', 'shared').?data[?'k'].orValue('none')}\"}]";
    let checksum =
        "checksums: [{annotation: checksum/shared, configMaps: [shared], onMissing: Skip}]";
    let joined = "env: [{name: k, op: Append, value: more}]";
    [look_up, checksum, joined].map(|inject| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {{name: second}}
spec:
  inject:
    podLabels: {{second: set}}
    {inject}
"
        )
    })
}

#[test]
fn what_a_run_takes_out_is_not_read() {
    for second in reading() {
        let place = empty_repository();
        place.write("apps/a.yaml", reader());
        place.write("first.yaml", generating("first", "v"));
        place.write("second.yaml", &second);
        let without = place.run(&["apply", "-q", "-p", "second.yaml", "apps/a.yaml"]);
        succeeded(&place, &BOTH);
        let suspended = generating("first", "v").replace("spec:\n", "spec:\n  suspend: true\n");
        place.write("first.yaml", suspended);
        succeeded(&place, &BOTH);
        let text = place.read("apps/a.yaml");
        let unquoted = |text: &str| text.replace('"', "");
        assert_eq!(unquoted(&text), unquoted(&stdout_of(&without)), "{second}");
        succeeded(&place, &BOTH);
        assert_eq!(place.read("apps/a.yaml"), text, "{second}");
    }
}

#[test]
fn what_a_later_version_takes_out_is_not_read() {
    for second in reading() {
        let place = empty_repository();
        place.write("apps/a.yaml", reader());
        place.write("policy.yaml", generating("second", "v"));
        let run = ["apply", "-i", "-p", "policy.yaml", "apps"];
        succeeded(&place, &run);
        place.write("policy.yaml", second);
        succeeded(&place, &run);
        let text = place.read("apps/a.yaml");
        assert!(!text.contains("kind: ConfigMap"), "{text}");
        let diff = place.run(&["diff", "-p", "policy.yaml", "apps"]);
        assert_eq!(diff.status.code(), Some(0), "{}", stdout_of(&diff));
    }
}

#[test]
fn what_workloads_that_are_not_chosen_still_need_is_read() {
    let place = empty_repository();
    place.write("apps/a.yaml", reader());
    place.write("apps/b.yaml", reader().replace("orders", "b"));
    place.write("policy.yaml", generating("second", "v"));
    succeeded(&place, &["apply", "-i", "-p", "policy.yaml", "apps"]);
    let [look_up, ..] = reading();
    place.write("policy.yaml", look_up);
    let one = [
        "apply",
        "-i",
        "-p",
        "policy.yaml",
        "--workload",
        "deploy/b",
        "apps",
    ];
    succeeded(&place, &one);
    assert!(place.read("apps/a.yaml").contains("kind: ConfigMap"));
    assert!(place.read("apps/b.yaml").contains("value: v"));
}

/// A policy that generates a ConfigMap for each workload.
fn generating_for_each(value: &str) -> String {
    generating("each", value).replace("name: shared", "name: '${workload.name}-agent'")
}

/// Two workloads in one file, each with a generated object.
fn place_with_an_object_each() -> Place {
    let place = empty_repository();
    let [a, b] = ["a", "b"].map(|name| DEPLOYMENT.replace("orders", name));
    place.write("apps/all.yaml", format!("{a}---\n{b}"));
    place.write("each.yaml", generating_for_each("v"));
    succeeded(&place, &["apply", "-i", "-p", "each.yaml", "apps"]);
    place
}

#[test]
fn an_object_whose_workload_was_deleted_is_named() {
    let place = place_with_an_object_each();
    let text = place.read("apps/all.yaml");
    let documents: Vec<&str> = text.split("---\n").collect();
    assert_eq!(documents.len(), 4, "{text}");
    let kept: Vec<&str> = documents
        .into_iter()
        .filter(|document| !document.contains("kind: Deployment") || document.contains("name: b "))
        .collect();
    place.write("apps/all.yaml", kept.join("---\n"));
    let warning = "the ConfigMap a-agent, generated by policy `each` for Deployment a (apps/all.yaml), remains";
    let before = place.read("apps/all.yaml");
    for command in [&["check"][..], &["apply", "-i"]] {
        let run = succeeded(&place, &[command, &["-p", "each.yaml", "apps"]].concat());
        let messages = format!("{}{}", stdout_of(&run), stderr_of(&run));
        assert!(messages.contains(warning), "{messages}");
        assert!(!messages.contains("ConfigMap b-agent"), "{messages}");
    }
    assert_eq!(place.read("apps/all.yaml"), before);
}

#[test]
fn an_object_that_another_workload_needs_is_not_named() {
    let place = place();
    succeeded(&place, &BOTH);
    let text = place.read("apps/a.yaml");
    let (_, object) = text.split_once("---\n").expect("there are two documents");
    assert!(object.contains("name: shared"), "{object}");
    place.write("apps/a.yaml", object);
    let policies = ["check", "-p", "first.yaml", "-p", "second.yaml"];
    for files in [&["apps"][..], &["apps/a.yaml"]] {
        let run = succeeded(&place, &[&policies, files].concat());
        let messages = stdout_of(&run);
        assert!(!messages.contains("stays"), "{messages}");
    }
}

#[test]
fn an_object_that_the_run_takes_out_does_not_stay() {
    let place = place();
    place.write("apps/a.yaml", {
        let [a, b] = ["a", "b"].map(|name| DEPLOYMENT.replace("orders", name));
        format!("{a}---\n{b}")
    });
    fs::remove_file(place.path("apps/b.yaml")).expect("the file is there");
    succeeded(&place, &["apply", "-i", "-p", "first.yaml", "apps"]);
    let text = place.read("apps/a.yaml");
    let (_, rest) = text.split_once("---\n").expect("there are three documents");
    assert!(
        rest.contains("name: shared") && rest.contains("name: b "),
        "{rest}"
    );
    place.write("apps/a.yaml", rest);
    let without = generating("first", "v");
    let without = without.split("  generate:").next().expect("it generates");
    place.write("first.yaml", without);
    let run = succeeded(&place, &["apply", "-i", "-p", "first.yaml", "apps"]);
    let messages = stderr_of(&run);
    assert!(!messages.contains("stays"), "{messages}");
    assert!(!place.read("apps/a.yaml").contains("kind: ConfigMap"));
}

#[test]
fn an_object_whose_workload_moved_with_it_is_not_named() {
    let place = place_with_an_object_each();
    let text = place.read("apps/all.yaml");
    let (first, second) = text.split_at(text.find("---\n").expect("there are documents") + 4);
    place.write("apps/first.yaml", first);
    place.write("apps/all.yaml", second);
    let run = succeeded(&place, &["apply", "-i", "-p", "each.yaml", "apps"]);
    let messages = stderr_of(&run);
    assert!(!messages.contains("stays"), "{messages}");
}

#[test]
fn a_new_version_of_an_object_is_a_change() {
    let place = place_with_an_object_each();
    place.write("each.yaml", generating_for_each("w"));
    let check = place.run(&["check", "-p", "each.yaml", "apps"]);
    assert_eq!(check.status.code(), Some(1), "{}", stderr_of(&check));
    let messages = stdout_of(&check);
    let problem = "ConfigMap a-agent is not up to date: each would change ConfigMap a-agent";
    assert!(messages.contains(problem), "{messages}");
    assert!(!messages.contains("undo"), "{messages}");
    let diff = place.run(&["diff", "-p", "each.yaml", "apps"]);
    let text = stdout_of(&diff);
    assert!(text.contains("+  k: w"), "{text}");
    assert!(!text.contains("undone"), "{text}");
}

#[test]
fn an_object_that_somebody_changed_is_to_be_deleted() {
    let place = place_with_an_object_each();
    let text = place.read("apps/all.yaml");
    place.write("apps/all.yaml", text.replacen("k: v", "k: by-hand", 1));
    let check = place.run(&["check", "-p", "each.yaml", "apps"]);
    assert_eq!(check.status.code(), Some(1), "{}", stderr_of(&check));
    let messages = stdout_of(&check);
    let help = "delete it, and podgraft writes it again: an earlier run generated it";
    assert!(messages.contains(help), "{messages}");
}

/// Two folders of workloads in the same namespace may be one cluster or two. With a lock file of its own each is one.
#[test]
fn an_object_of_another_folder_is_not_written_again_and_the_run_says_so() {
    let place = empty_repository();
    let workload = DEPLOYMENT.replacen("metadata:\n", "metadata:\n  namespace: shop\n", 1);
    let policy =
        generating("agent", "v").replace("{name: shared}", "{name: shared, namespace: shop}");
    place.write("agent.yaml", policy);
    let files = ["clusters/a/orders.yaml", "clusters/b/orders.yaml"];
    let apply = |folder| {
        let output = succeeded(&place, &["apply", "-i", "-p", "agent.yaml", folder]);
        stderr_of(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    for file in files {
        place.write(file, &workload);
    }
    assert!(!apply("clusters/a").contains("missing-object"));
    let said = apply("clusters/b");
    assert!(said.contains("missing-object"), "{said}");
    assert!(said.contains("clusters/a/orders.yaml"), "{said}");
    assert!(!place.read(files[1]).contains("kind: ConfigMap"));
    assert!(!apply("clusters").contains("missing-object"));

    succeeded(&place, &["undo", "-i", "clusters"]);
    for (file, folder) in files.into_iter().zip(["clusters/a", "clusters/b"]) {
        assert_eq!(place.read(file), workload);
        place.write(format!("{folder}/podgraft.lock"), "");
        assert!(!apply(folder).contains("missing-object"));
        assert!(place.read(file).contains("kind: ConfigMap"));
    }
}
