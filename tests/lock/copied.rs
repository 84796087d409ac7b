//! What people change by search and replace, also in what was injected, and what they copy.

use std::fs;

use super::{DEPLOYMENT, apply, empty_repository, succeeded};
use crate::program::{Place, stderr_of};

/// A policy whose values name the workload, as does the object that it generates.
const NAMED: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: named}
spec:
  params: [{name: level, default: info}]
  inject:
    env: [{name: APP, value: '${workload.name}'}]
    volumes: [{name: conf, configMap: {name: '${workload.name}-conf'}}]
  generate:
  - resource:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: '${workload.name}-conf'}
      data: {level: '${params.level}'}
";
const INSTRUMENTATION: &str = "apiVersion: opentelemetry.io/v1alpha1
kind: Instrumentation
metadata: {name: agents, namespace: shop}
spec:
  exporter: {endpoint: 'http://collector:4318'}
";
const FILE: &str = "apps/a.yaml";

fn traced() -> String {
    let annotation = "annotations: {instrumentation.opentelemetry.io/inject-java: 'true'}";
    let labels = "      labels: {app: orders}\n";
    let text = DEPLOYMENT.replace("metadata:\n  name", "metadata:\n  namespace: shop\n  name");
    text.replace(labels, &format!("{labels}      {annotation}\n"))
}

/// A repository with a workload, after a run.
fn injected(policy: &str, workload: &str) -> Place {
    let place = empty_repository();
    place.write(FILE, workload);
    place.write("policies/policy.yaml", policy);
    apply(&place);
    place
}

/// The next run takes an edited file as it is, and undo gives what people wrote, with the edit.
#[track_caller]
fn is_taken_over(policy: &str, workload: &str, (before, after): (&str, &str)) {
    let place = injected(policy, workload);
    let edited = place.read(FILE).replace(before, after);
    place.write(FILE, &edited);
    let messages = apply(&place);
    assert!(!messages.contains("changed-since"), "{messages}");
    let is_undone = messages.contains("undone") || messages.contains("removed");
    assert!(!is_undone, "{messages}");
    assert_eq!(place.read(FILE), edited);
    let again = apply(&place);
    assert!(again.contains("1 unchanged"), "{again}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), workload.replace(before, after));
    assert!(!place.path("podgraft.lock").exists());
}

#[test]
fn a_workload_is_renamed_by_search_and_replace() {
    is_taken_over(NAMED, DEPLOYMENT, ("orders", "sales"));
    is_taken_over(INSTRUMENTATION, &traced(), ("orders", "sales"));
}

#[test]
fn an_image_is_raised_by_search_and_replace() {
    let workload = traced().replace("orders:1", "orders:1.0.7");
    is_taken_over(INSTRUMENTATION, &workload, ("1.0.7", "1.0.8"));
}

#[test]
fn an_attribute_of_the_users_is_changed_beside_those_of_the_policy() {
    let variable = "        env:
        - name: OTEL_RESOURCE_ATTRIBUTES
          value: team=orders-team
";
    is_taken_over(INSTRUMENTATION, &(traced() + variable), ("orders", "sales"));
    is_taken_over(
        INSTRUMENTATION,
        &(traced() + variable),
        ("team=orders-team", "team=blue"),
    );
}

#[test]
fn a_value_that_ends_like_the_policys_is_not_taken_for_it() {
    let policy = LEVEL.replace("value: debug", "value: info.debug");
    let place = injected(&policy, &levelled("orders", "info"));
    let edited = place
        .read(FILE)
        .replace("value: info.debug", "value: warn.debug");
    place.write(FILE, &edited);
    let messages = apply(&place);
    assert!(messages.contains("changed-since"), "{messages}");
    succeeded(&place, &["undo", "-i", "apps"]);
    let values = place.read(FILE).replace('"', "");
    assert_eq!(values, levelled("orders", "warn.debug"));
}

#[test]
fn what_somebody_wrote_there_stays() {
    let place = injected(INSTRUMENTATION, &traced());
    let text = place.read(FILE);
    let edited = text.replace("value: orders\n", "value: shop\n");
    assert_ne!(edited, text);
    place.write(FILE, &edited);
    let messages = apply(&place);
    assert!(messages.contains("changed-since"), "{messages}");
    assert_eq!(place.read(FILE), edited);
}

#[test]
fn a_generated_object_without_a_record_is_known_by_its_label() {
    let place = injected(NAMED, DEPLOYMENT);
    let copy = place.read(FILE).replace("orders", "carts");
    place.write("apps/b.yaml", &copy);
    apply(&place);
    fs::remove_file(place.path("podgraft.lock")).expect("it is there");
    apply(&place);
    assert_eq!(place.read("apps/b.yaml"), copy);
    let debug = ["apply", "-i", "-p", "policies", "--param", "level=debug"];
    let output = succeeded(&place, &[&debug[..], &["apps"]].concat());
    let messages = stderr_of(&output);
    assert!(messages.contains("carts-conf updated"), "{messages}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), DEPLOYMENT);
    let carts = DEPLOYMENT.replace("orders", "carts");
    assert_eq!(place.read("apps/b.yaml"), carts);
}

#[test]
fn an_equal_object_without_the_label_is_the_users() {
    let object = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: orders-conf}
data: {level: info}
";
    let original = DEPLOYMENT.to_owned() + object;
    let place = injected(NAMED, &original);
    assert_eq!(place.read(FILE).matches("kind: ConfigMap").count(), 1);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), original);
}

#[test]
fn a_labelled_object_beside_a_workload_without_a_record_is_the_users() {
    let place = injected(NAMED, DEPLOYMENT);
    let object = place.read(FILE);
    let object = object.split_once("---\n").expect("it is generated").1;
    let original = format!("{DEPLOYMENT}---\n# Mine.\n{object}");
    let injected = place.read(FILE).replace("---\n", "---\n# Mine.\n");
    fs::remove_file(place.path("podgraft.lock")).expect("it is there");
    // A first run in a repository that was never injected, then an adoption of what is there.
    place.write(FILE, &original);
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), original);
    let unmarked: String = injected
        .split_inclusive('\n')
        .filter(|line| !line.contains("podgraft.dev/applied") && !line.contains("  annotations:"))
        .collect();
    place.write(FILE, unmarked);
    let adopt = ["adopt", "-i", "-p", "policies", "apps"];
    let messages = stderr_of(&succeeded(&place, &adopt));
    assert!(messages.contains("orders: adopted by named"), "{messages}");
    assert!(!messages.contains("inexact-undo"), "{messages}");
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), original);
}

#[test]
fn what_somebody_changed_of_a_kept_policy_stays_known_as_changed() {
    let place = injected(NAMED, DEPLOYMENT);
    let other = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: other}
spec: {inject: {podLabels: {team: blue}}}
";
    place.write("other.yaml", other);
    let other = ["apply", "-i", "-p", "policies", "-p", "other.yaml", "apps"];
    succeeded(&place, &other);
    // The next run gives one of the two policies.
    let edited = place.read(FILE).replace("orders", "sales");
    let edited = edited.replace("\"blue\"", "\"red\"");
    assert!(edited.contains("red"), "{edited}");
    place.write(FILE, &edited);
    apply(&place);
    assert_eq!(place.read(FILE), edited);
    let refused = place.run(&["undo", "-i", "apps"]);
    let messages = stderr_of(&refused);
    assert!(messages.contains("pod label team of"), "{messages}");
    assert_eq!(place.read(FILE), edited);
}

/// A policy that replaces what stands in a manifest.
const LEVEL: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: level}
spec:
  onConflict: Replace
  inject:
    env: [{name: LEVEL, value: debug}]
    podLabels: {level: debug}
";

/// A workload with a value that [`LEVEL`] replaces.
fn levelled(name: &str, level: &str) -> String {
    let env = format!("        env: [{{name: LEVEL, value: {level}}}]\n");
    DEPLOYMENT
        .replace("orders", name)
        .replace("name: app\n", &format!("name: {name}\n"))
        + &env
}

#[test]
fn the_copy_of_a_workload_in_another_file_has_its_original_values() {
    let place = injected(LEVEL, &levelled("orders", "info"));
    let copy = place.read(FILE).replace("orders", "carts");
    place.write("apps/b.yaml", &copy);
    let messages = apply(&place);
    assert!(messages.contains("no-record"), "{messages}");
    assert_eq!(place.read("apps/b.yaml"), copy);
    assert!(!apply(&place).contains("no-record"));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), levelled("orders", "info"));
    assert_eq!(place.read("apps/b.yaml"), levelled("carts", "info"));
}

#[test]
fn a_copy_may_have_values_that_name_it() {
    let policy = LEVEL.replace(
        "env: [",
        "env: [{name: APP, value: '${workload.name}'}, {name: AGENT, value: 'on'}, ",
    );
    let place = injected(&policy, &levelled("orders", "info"));
    let copy = place.read(FILE).replace("orders", "carts");
    place.write("apps/b.yaml", &copy);
    place.write(
        "policies/policy.yaml",
        policy.replace("value: debug", "value: trace"),
    );
    apply(&place);
    let updated = copy.replace("value: \"debug\"", "value: \"trace\"");
    assert_eq!(place.read("apps/b.yaml"), updated);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/b.yaml"), levelled("carts", "info"));
}

#[test]
fn a_text_that_was_joined_in_the_copy_is_no_variable_of_the_policy() {
    let policy = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: options}
spec: {inject: {env: [{name: OPTIONS, op: Append, value: -x}]}}
";
    let place = injected(policy, DEPLOYMENT);
    let variable = "        env:\n        - name: OPTIONS\n          value: -y\n";
    let own = DEPLOYMENT.replace("orders", "carts") + variable;
    place.write("apps/b.yaml", &own);
    apply(&place);
    let lock = place.read("podgraft.lock");
    let lines = lock
        .split_inclusive('\n')
        .filter(|line| !line.contains("\"carts\""));
    let lost: String = lines.collect();
    assert_ne!(lost, lock);
    place.write("podgraft.lock", lost);
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/b.yaml"), own);
}

#[test]
fn a_workload_is_found_under_another_name_in_another_file() {
    let place = injected(LEVEL, &levelled("orders", "info"));
    place.write("apps/b.yaml", levelled("carts", "warn"));
    apply(&place);
    let moved = place.read(FILE).replace("orders", "sales");
    fs::remove_file(place.path(FILE)).expect("it is there");
    place.write("apps/c.yaml", &moved);
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/b.yaml"), levelled("carts", "warn"));
    assert_eq!(place.read("apps/c.yaml"), levelled("sales", "info"));
}

#[test]
fn a_copy_of_which_nobody_knows_the_original_values_is_refused() {
    let place = injected(LEVEL, &levelled("orders", "info"));
    place.write("apps/b.yaml", levelled("carts", "warn"));
    apply(&place);
    let copy = place.read(FILE).replace("orders", "sales");
    place.write("apps/c.yaml", &copy);
    let refused = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    let messages = stderr_of(&refused);
    assert_eq!(refused.status.code(), Some(2), "{messages}");
    for name in ["bad-record", "Deployment orders", "Deployment carts"] {
        assert!(messages.contains(name), "{messages}");
    }
    // Both ways out that the message names.
    let lock = place.read("podgraft.lock");
    let of_orders = lock.lines().filter(|line| line.contains("\"orders\""));
    let of_orders: Vec<&str> = of_orders.collect();
    let added = of_orders
        .join("\n")
        .replace("orders", "sales")
        .replace(FILE, "apps/c.yaml");
    place.write("podgraft.lock", format!("{lock}{added}\n"));
    apply(&place);
    place.write("podgraft.lock", lock);
    succeeded(&place, &["adopt", "-i", "-p", "policies", "apps"]);
    apply(&place);
    assert_eq!(place.read("apps/c.yaml"), copy);
}

#[test]
fn a_copy_of_which_only_the_name_was_changed_gets_what_its_name_needs() {
    let place = injected(NAMED, DEPLOYMENT);
    let text = place.read(FILE);
    let (workload, _) = text.split_once("---\n").expect("it is generated");
    place.write(
        "apps/b.yaml",
        workload.replace("name: orders   #", "name: carts   #"),
    );
    let messages = apply(&place);
    let copy = place.read("apps/b.yaml");
    assert!(copy.contains("value: carts"), "{messages}\n{copy}");
    assert!(copy.contains("name: carts-conf"), "{messages}\n{copy}");
    assert_eq!(place.read(FILE), text);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), DEPLOYMENT);
    let carts = DEPLOYMENT.replace("name: orders   #", "name: carts   #");
    assert_eq!(place.read("apps/b.yaml"), carts);
}

#[test]
fn a_workload_that_is_never_recorded_is_no_copy_of_one_that_is() {
    let container = "  - {name: b, image: 'example.com/b:1'}\n";
    let pod = |name: &str, containers: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n{containers}"
        )
    };
    let twins = pod("twins", &container.repeat(2));
    let policy = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: data}
spec:
  inject:
    volumes: [{name: data, emptyDir: {}}]
    volumeMounts: [{name: data, mountPath: /data}]
";
    let single = pod("single", container);
    let place = injected(policy, &format!("{twins}---\n{single}"));
    let after = place.read(FILE);
    let again = apply(&place);
    assert!(again.contains("2 unchanged"), "{again}");
    assert_eq!(place.read(FILE), after);
    // What was recorded is taken out, and the other stays as it is.
    let undone = place.run(&["undo", "-i", "apps"]);
    assert!(stderr_of(&undone).contains("has no record"));
    let (of_twins, _) = after.split_once("---\n").unwrap();
    assert_eq!(place.read(FILE), format!("{of_twins}---\n{single}"));
}

#[test]
fn a_workload_that_nobody_recorded_keeps_no_other_from_being_undone() {
    let odd = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: odd\nspec:\n  containers:\n  - {name: b, image: !x 'b:1'}\n";
    let place = injected(NAMED, &traced());
    place.write("apps/odd.yaml", odd);
    apply(&place);
    let after = place.read("apps/odd.yaml");
    assert_ne!(after, odd);
    let messages = stderr_of(&succeeded(&place, &["undo", "-i", "apps"]));
    assert!(messages.contains("has no record"), "{messages}");
    assert_eq!(place.read(FILE), traced());
    assert_eq!(place.read("apps/odd.yaml"), after);
}

#[test]
fn a_container_without_a_name_makes_a_workload_no_copy_either() {
    let pod = |name: &str, container: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - {{{container}image: 'example.com/b:1'}}\n"
        )
    };
    let policy = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: label}
spec:
  inject:
    podLabels: {team: shop}
";
    let both = format!("{}---\n{}", pod("unnamed", ""), pod("single", "name: b, "));
    let place = injected(policy, &both);
    let again = apply(&place);
    assert!(again.contains("2 unchanged"), "{again}");
}
