//! Objects from an API server, which fills in defaults between two runs: what a policy injected is still its own, in a second
//! run and in undo.

use std::sync::Arc;

use podgraft_core::diagnostic::Code;
use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::{Value, json};

use crate::promises;

/// A policy with these fields in its spec.
fn policy(name: &str, spec: &Value) -> Policy {
    let policy = json!({
        "apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": {"name": name}, "spec": spec,
    });
    let mut read = promises::policies(&policy.to_string()).unwrap_or_else(|why| panic!("{why:?}"));
    read.remove(0)
}

fn pod(metadata: &Value, spec: &Value) -> String {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    podgraft_core::edit::yaml_document(&pod)
}

/// A Pod from a server, with one container.
fn live_pod() -> String {
    let containers = json!([{"name": "app", "image": "app:1"}]);
    let metadata = json!({"name": "orders", "uid": "0a1b"});
    pod(&metadata, &json!({"containers": containers}))
}

fn run(text: &str, policies: &[Policy], options: Options) -> FileReport {
    graft(&Arc::from("pod.yaml"), text.as_bytes(), policies, &options)
}

/// The text after the run, which has no problems.
fn done(text: &str, policies: &[Policy], options: Options) -> String {
    let report = run(text, policies, options);
    assert!(
        report.diagnostics.is_empty(),
        "{:?}\n{text}",
        report.diagnostics
    );
    String::from_utf8(splice(text.as_bytes(), &report.edits)).expect("text in text is text")
}

fn applied(text: &str, policies: &[Policy]) -> String {
    let options = Options {
        record: true,
        ..Options::default()
    };
    done(text, policies, options)
}

fn undoing(take_out: RemovalSelection, force: bool) -> Options {
    Options {
        take_out,
        force,
        ..Options::default()
    }
}

fn undone(text: &str) -> String {
    done(text, &[], undoing(RemovalSelection::All, false))
}

/// The object after somebody has changed its spec.
fn changed(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let tree = parse(text).expect("it is YAML");
    let mut object = to_value(&tree, tree.roots()[0]).expect("it has a value");
    change(&mut object["spec"]);
    podgraft_core::edit::yaml_document(&object)
}

fn spec_of(text: &str) -> Value {
    let mut spec = Value::Null;
    changed(text, |found| spec = found.clone());
    spec
}

#[test]
fn a_source_in_place_of_another_goes_with_its_defaults() {
    for on_conflict in ["Error", "Keep"] {
        let volumes = json!([{"name": "agent", "emptyDir": {}}]);
        let first = json!({"onConflict": on_conflict, "inject": {"volumes": volumes}});
        let mut labelled = first.clone();
        labelled["inject"]["podLabels"] = json!({"k": "v"});
        let volumes = json!([{"name": "agent", "configMap": {"name": "a"}}]);
        let second = json!({"onConflict": "Replace", "inject": {"volumes": volumes}});
        let both = [policy("a", &first), policy("b", &second)];
        let text = applied(&live_pod(), &both);
        let live = changed(&text, |spec| {
            spec["volumes"][0]["configMap"]["defaultMode"] = json!(420);
        });
        assert_eq!(applied(&live, &both), live);
        let updated = applied(&live, &[policy("a", &labelled), policy("b", &second)]);
        assert_eq!(spec_of(&updated), spec_of(&live));
        for text in [&live, &updated] {
            assert_eq!(undone(text), live_pod());
        }
    }
}

#[test]
fn a_container_in_place_of_another_goes_with_its_defaults() {
    let first = json!([{
        "type": "Container", "name": "side", "image": "side:1", "livenessProbe": {"httpGet": {"port": 80}},
        "env": [{"name": "A", "value": "b"}], "resources": {"limits": {"cpu": "100m"}},
    }]);
    let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let second = json!([{
        "type": "Container", "name": "side", "image": "side:latest", "livenessProbe": {"exec": {"command": ["a"]}},
        "env": [{"name": "A", "valueFrom": from}], "resources": {"limits": {"cpu": "200m"}},
    }]);
    let both = [
        policy("a", &json!({"inject": {"sidecars": first}})),
        policy(
            "b",
            &json!({"onConflict": "Replace", "inject": {"sidecars": second}}),
        ),
    ];
    let live = changed(&applied(&live_pod(), &both), |spec| {
        let side = &mut spec["containers"][1];
        side["imagePullPolicy"] = json!("Always");
        side["terminationMessagePolicy"] = json!("File");
        side["livenessProbe"]["timeoutSeconds"] = json!(1);
        side["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = json!("v1");
        side["resources"]["requests"] = json!({"cpu": "200m"});
    });
    assert_eq!(applied(&live, &both), live);
    assert_eq!(undone(&live), live_pod());
    let only = RemovalSelection::Only(vec!["b".to_owned()]);
    let without = done(&live, &[], undoing(only, false));
    let side = &spec_of(&without)["containers"][1];
    assert_eq!(side["resources"], json!({"limits": {"cpu": "100m"}}));
    assert_eq!(
        side["livenessProbe"],
        json!({"httpGet": {"port": 80}, "timeoutSeconds": 1})
    );
    assert_eq!(side.get("imagePullPolicy"), None);
    assert_eq!(undone(&without), live_pod());
}

#[test]
fn what_somebody_added_to_a_source_does_not_stay_beside_another() {
    let volumes = json!([{"name": "data", "emptyDir": {}}]);
    let containers = json!([{"name": "app", "image": "app:1"}]);
    let spec = json!({"containers": containers, "volumes": volumes});
    let text = pod(&json!({"name": "orders"}), &spec);
    let volumes = json!([{"name": "data", "configMap": {"name": "a"}}]);
    let spec = json!({"onConflict": "Replace", "inject": {"volumes": volumes}});
    let policies = [policy("a", &spec)];
    let edited = changed(&applied(&text, &policies), |spec| {
        spec["volumes"][0]["configMap"]["optional"] = json!(true);
    });
    let updating = Options {
        record: true,
        ..Options::default()
    };
    let reports = [
        run(&edited, &[], undoing(RemovalSelection::All, false)),
        run(&edited, &policies, updating),
    ];
    for report in reports {
        let errors = promises::errors(&report);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].code, Code::ChangedSince);
    }
    let report = run(&edited, &[], undoing(RemovalSelection::All, true));
    let forced = splice(edited.as_bytes(), &report.edits);
    assert_eq!(String::from_utf8_lossy(&forced), text);
}

/// What a server fills in in a container with a port, a variable, and two probes: twelve kinds of defaults.
fn filled_in(container: &mut Value) {
    container["imagePullPolicy"] = json!("IfNotPresent");
    container["terminationMessagePath"] = json!("/dev/termination-log");
    container["terminationMessagePolicy"] = json!("File");
    container["securityContext"] = json!({});
    container["ports"][0]["protocol"] = json!("TCP");
    container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = json!("v1");
    for probe in ["livenessProbe", "readinessProbe"] {
        let probe = &mut container[probe];
        probe["httpGet"]["scheme"] = json!("HTTP");
        for (field, default) in [
            ("timeoutSeconds", 1),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
        ] {
            probe[field] = json!(default);
        }
    }
}

#[test]
fn a_sidecar_may_state_some_of_many_defaults() {
    let sidecar = |image: &str| {
        let probe = json!({"httpGet": {"port": 9090, "path": "/live"}});
        let mut stating = probe.clone();
        stating["timeoutSeconds"] = json!(1);
        let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
        let sidecar = json!({
            "type": "Container", "name": "side", "image": image, "ports": [{"containerPort": 9090}],
            "env": [{"name": "NODE", "valueFrom": from}], "livenessProbe": stating, "readinessProbe": probe,
            "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}, "requests": {"cpu": "100m"}},
        });
        policy("a", &json!({"inject": {"sidecars": [sidecar]}}))
    };
    let text = applied(&live_pod(), &[sidecar("side:1")]);
    let live = changed(&text, |spec| {
        let side = &mut spec["containers"][1];
        filled_in(side);
        side["resources"]["requests"]["memory"] = json!("64Mi");
    });
    assert_eq!(applied(&live, &[sidecar("side:1")]), live);
    let updated = applied(&live, &[sidecar("side:2")]);
    let mut expected = spec_of(&live);
    expected["containers"][1]["image"] = json!("side:2");
    assert_eq!(spec_of(&updated), expected);
    for text in [&live, &updated] {
        assert_eq!(undone(text), live_pod());
    }
    let edited = changed(&live, |spec| {
        spec["containers"][1]["readinessProbe"]["timeoutSeconds"] = json!(2);
    });
    let report = run(&edited, &[], undoing(RemovalSelection::All, false));
    assert_eq!(promises::errors(&report)[0].code, Code::ChangedSince);
}

#[test]
fn a_request_is_copied_beside_others() {
    let resources =
        json!({"limits": {"cpu": "100m", "memory": "64Mi"}, "requests": {"cpu": "10m"}});
    let sidecar =
        json!({"type": "Native", "name": "side", "image": "side:1", "resources": resources});
    let policies = [policy("a", &json!({"inject": {"sidecars": [sidecar]}}))];
    let live = changed(&applied(&live_pod(), &policies), |spec| {
        spec["initContainers"][0]["resources"]["requests"]["memory"] = json!("64Mi");
    });
    assert_eq!(applied(&live, &policies), live);
    assert_eq!(undone(&live), live_pod());
    // The same without a record.
    let spec = spec_of(&live);
    let unrecorded = pod(&json!({"name": "orders", "uid": "0a1b"}), &spec);
    let report = run(&unrecorded, &policies, Options::default());
    assert!(promises::errors(&report).is_empty() && report.edits.is_empty());
}
