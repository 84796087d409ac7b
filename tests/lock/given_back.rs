//! What comes back when one policy of several goes: with the quotes, comments and layout that people gave it.

use super::{empty_repository, succeeded};
use crate::program::{Place, stdout_of};

const WORKLOAD: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
  annotations: {team: shop}
spec:
  template:
    metadata:
      labels: {app: orders}
    spec:
      containers:
      - name: app
        image: \"registry.example.com/orders:1\"
        workingDir: '/orders' # see the Dockerfile
        env:
        - name: \"DEBUG\" # ticket 7
          value: 'true' # do not touch
        - {name: LEVEL, value: info}
        - name: \"HOST\" # of the database
          value: 'a'
";

const CLEANUP: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: cleanup}
spec:
  inject:
    env: [{name: DEBUG, op: Remove}]
    patches:
    - {patchType: JSONPatch, scope: Container, patch: [{op: test, path: /workingDir, value: /orders}, {op: remove, path: /workingDir}]}
";

const VALUES: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: values}
spec:
  onConflict: Replace
  inject:
    env: [{name: LEVEL, value: debug}, {name: HOST, value: b}]
";

fn repository() -> Place {
    let place = empty_repository();
    place.write("a.yaml", WORKLOAD);
    place.write("cleanup.yaml", CLEANUP);
    place.write("values.yaml", VALUES);
    place
}

/// What a first run with this policy alone writes.
fn with_only(policy: &str) -> String {
    let place = repository();
    let file = format!("{policy}.yaml");
    succeeded(&place, &["apply", "-q", "-i", "-p", &file, "a.yaml"]);
    place.read("a.yaml")
}

#[test]
fn undo_of_one_policy_leaves_what_the_other_one_alone_would_write() {
    for (first, second) in [("cleanup", "values"), ("values", "cleanup")] {
        let place = repository();
        let both = ["-p", "cleanup.yaml", "-p", "values.yaml", "a.yaml"];
        succeeded(&place, &[&["apply", "-q", "-i"], &both[..]].concat());
        succeeded(&place, &["undo", "-q", "-i", "--only", first, "a.yaml"]);
        assert_eq!(place.read("a.yaml"), with_only(second));
        succeeded(&place, &["undo", "-q", "-i", "--only", second, "a.yaml"]);
        assert_eq!(place.read("a.yaml"), WORKLOAD);
    }
}

#[test]
fn a_suspended_policy_leaves_what_the_other_one_alone_would_write() {
    let place = repository();
    let args = [
        "apply",
        "-q",
        "-i",
        "-p",
        "cleanup.yaml",
        "-p",
        "values.yaml",
        "a.yaml",
    ];
    succeeded(&place, &args);
    place.write(
        "cleanup.yaml",
        CLEANUP.replace("spec:", "spec:\n  suspend: true"),
    );
    succeeded(&place, &args);
    assert_eq!(place.read("a.yaml"), with_only("values"));
    succeeded(&place, &["undo", "-q", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), WORKLOAD);
}

#[test]
fn a_record_in_an_annotation_gives_it_back_as_well() {
    let place = repository();
    let policies = ["-p", "cleanup.yaml", "-p", "values.yaml"];
    let args = [&["apply", "-q", "--record", "a.yaml"], &policies[..]].concat();
    place.write("b.yaml", stdout_of(&succeeded(&place, &args)));
    let undone = succeeded(&place, &["undo", "-q", "--only", "cleanup", "b.yaml"]);
    let undone = stdout_of(&undone);
    for text in [
        "'/orders' # see the Dockerfile",
        "\"DEBUG\" # ticket 7",
        "'true' # do not touch",
    ] {
        assert!(undone.contains(text), "{undone}");
    }
    place.write("b.yaml", undone);
    let undone = succeeded(&place, &["undo", "-q", "b.yaml"]);
    assert_eq!(stdout_of(&undone), WORKLOAD);
}

#[test]
fn a_key_without_a_value_comes_back_as_it_was_written() {
    let workload = "apiVersion: v1
kind: Pod
metadata:
  name: orders
  labels:
spec:
  volumes: [ ] # none yet
  containers:
  - name: app
    image: registry.example.com/orders:1
    env: ~
";
    let policy = |inject: &str| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: agent}}\n\
             spec:\n  inject: {inject}\n"
        )
    };
    let later = policy("{annotations: {team: shop}}");
    let earlier = policy(
        "{labels: {agent: \"1\"}, env: [{name: A, value: b}], volumes: [{name: agent, emptyDir: {}}]}",
    );
    let apply = ["apply", "-q", "-i", "-p", "agent.yaml", "a.yaml"];
    let place = empty_repository();
    place.write("a.yaml", workload);
    place.write("agent.yaml", &later);
    succeeded(&place, &apply);
    let wanted = place.read("a.yaml");
    succeeded(&place, &["undo", "-q", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), workload);
    for text in [&earlier, &later] {
        place.write("agent.yaml", text);
        succeeded(&place, &apply);
    }
    assert_eq!(place.read("a.yaml"), wanted);
}

#[test]
fn a_blank_line_behind_a_filled_key_stays_when_the_list_goes() {
    let workload = "apiVersion: v1
kind: Pod
metadata:
  name: orders
spec:
  volumes:
  containers:
  - name: app
    image: registry.example.com/orders:1
";
    let policy = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    volumes: [{name: agent, emptyDir: {}}]
";
    let with_blank_line = |text: &str| text.replace("  volumes:\n", "  volumes:\n\n");
    let place = empty_repository();
    place.write("a.yaml", workload);
    place.write("agent.yaml", policy);
    succeeded(&place, &["apply", "-q", "-i", "-p", "agent.yaml", "a.yaml"]);
    place.write("a.yaml", with_blank_line(&place.read("a.yaml")));
    succeeded(&place, &["undo", "-q", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), with_blank_line(workload));
}
