//! Variables that a policy puts into another order, so that `podgraft.lock` has their list as a whole.

use super::{empty_repository, succeeded};
use crate::program::{Place, stderr_of, stdout_of};

const INSTRUMENTATION: &str = "apiVersion: opentelemetry.io/v1alpha1
kind: Instrumentation
metadata: {name: agents}
spec:
  exporter: {endpoint: http://collector:4318}
  env: [{name: OTEL_A, value: \"1\"}, {name: OTEL_B, value: \"2\"}]
";

/// The operator puts `OTEL_RESOURCE_ATTRIBUTES` behind all others.
const WORKLOAD: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
  namespace: shop
spec:
  template:
    metadata:
      annotations:
        instrumentation.opentelemetry.io/inject-java: \"true\"
    spec:
      containers:
      - name: app
        image: registry.example.com/orders:1
        env:
        - name: PORT
          value: \"8080\"
        - name: OTEL_RESOURCE_ATTRIBUTES
          value: own=1
        - name: LAST
          value: last
        resources: {}
";

fn apply(place: &Place) -> String {
    let args = ["apply", "-i", "-n", "shop", "-p", "agents.yaml", "a.yaml"];
    stderr_of(&succeeded(place, &args))
}

fn injected() -> Place {
    let place = empty_repository();
    place.write("a.yaml", WORKLOAD);
    place.write("agents.yaml", INSTRUMENTATION);
    apply(&place);
    place
}

/// After this edit runs change nothing of it, the next version is applied, and undo gives back what people wrote, edited.
#[track_caller]
fn is_kept(edit: impl Fn(&str) -> String) {
    let place = injected();
    let edited = edit(&place.read("a.yaml"));
    place.write("a.yaml", &edited);
    for _ in 0..2 {
        apply(&place);
        assert_eq!(place.read("a.yaml"), edited);
    }
    place.write("agents.yaml", INSTRUMENTATION.replace("4318", "4317"));
    apply(&place);
    assert_eq!(place.read("a.yaml"), edited.replace("4318", "4317"));
    succeeded(&place, &["undo", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), edit(WORKLOAD));
}

#[test]
fn what_somebody_adds_to_them_or_changes_is_kept() {
    let new = "        - name: NEW\n          value: new\n";
    is_kept(|text| text.replace("\"8080\"\n", &format!("\"8080\"\n{new}")));
    is_kept(|text| text.replace("value: last\n", &format!("value: last\n{new}")));
    is_kept(|text| text.replace("\"8080\"", "\"8081\""));
}

#[test]
fn what_somebody_adds_behind_them_is_kept() {
    let place = injected();
    let new = "        - name: NEW\n          value: new\n        resources: {}\n";
    let edit = |text: &str| text.replace("        resources: {}\n", new);
    let edited = edit(&place.read("a.yaml"));
    place.write("a.yaml", &edited);
    for _ in 0..2 {
        apply(&place);
        assert_eq!(place.read("a.yaml"), edited);
    }
    succeeded(&place, &["undo", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), edit(WORKLOAD));
}

#[test]
fn a_version_with_another_order_is_up_to_date_after_one_run() {
    let place = injected();
    let swapped = INSTRUMENTATION
        .replace("OTEL_A", "OTEL_C")
        .replace("OTEL_B", "OTEL_A")
        .replace("OTEL_C", "OTEL_B");
    place.write("agents.yaml", swapped);
    apply(&place);
    let messages = apply(&place);
    assert!(messages.contains("1 unchanged"), "{messages}");
    succeeded(&place, &["undo", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), WORKLOAD);
}

/// The order inside an injected container is the policy's: sources of variables that come later take precedence.
#[test]
fn the_lists_of_an_injected_container_get_the_order_of_a_new_version() {
    let policy = |image: u32, env: &str, sources: &str| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {{name: agent}}
spec:
  inject:
    sidecars:
    - name: agent
      type: Container
      image: registry.example.com/agent:{image}
      envFrom: [{sources}]
      env: [{env}]
"
        )
    };
    let (level, host) = ("{name: LEVEL, value: info}", "{name: HOST, value: a}");
    let (base, own) = (
        "{configMapRef: {name: base}}",
        "{configMapRef: {name: own}}",
    );
    let versions = [
        policy(1, &format!("{level}, {host}"), &format!("{base}, {own}")),
        policy(2, &format!("{host}, {level}"), &format!("{base}, {own}")),
        policy(2, &format!("{host}, {level}"), &format!("{own}, {base}")),
    ];
    let place = empty_repository();
    place.write("a.yaml", WORKLOAD);
    for version in versions {
        place.write("agents.yaml", &version);
        apply(&place);
        let fresh = Place::new();
        fresh.write("a.yaml", WORKLOAD);
        fresh.write("agents.yaml", &version);
        let written = succeeded(&fresh, &["apply", "-p", "agents.yaml", "a.yaml"]);
        assert_eq!(place.read("a.yaml"), stdout_of(&written));
        let messages = apply(&place);
        assert!(messages.contains("1 unchanged"), "{messages}");
    }
    succeeded(&place, &["undo", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), WORKLOAD);
}
