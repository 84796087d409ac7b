//! Policies whose work is kept while others are given, changed or taken out: what they put back is validated like the rest,
//! the order is the same the next time, and containers that somebody renamed keep what was put into them.

use std::sync::Arc;

use podgraft_core::diagnostic::Code;
use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::yaml::splice::splice;
use serde_json::{Value, json};

use crate::promises;

fn policy(name: &str, inject: &Value) -> Policy {
    let policy = json!({
        "apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": {"name": name},
        "spec": {"onConflict": "Replace", "inject": inject},
    });
    let mut read = promises::policies(&policy.to_string()).unwrap_or_else(|why| panic!("{why:?}"));
    read.remove(0)
}

/// A Pod of containers and what else its spec has.
fn pod(containers: &Value, more: &Value) -> String {
    let mut spec = json!({ "containers": containers });
    for (key, value) in more.as_object().expect("a mapping") {
        spec[key] = value.clone();
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    podgraft_core::edit::yaml_document(&pod)
}

fn run(text: &str, policies: &[Policy], take_out: RemovalSelection) -> FileReport {
    let options = Options {
        record: !take_out.is_undo(),
        take_out,
        ..Options::default()
    };
    graft(&Arc::from("pod.yaml"), text.as_bytes(), policies, &options)
}

fn done(text: &str, policies: &[Policy], take_out: RemovalSelection) -> String {
    let report = run(text, policies, take_out);
    let errors = promises::errors(&report);
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    String::from_utf8(splice(text.as_bytes(), &report.edits)).expect("text in text is text")
}

/// The message of the one error, which says that the result is invalid.
fn invalid(report: &FileReport) -> &str {
    let errors = promises::errors(report);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].code, Code::Invalid);
    &errors[0].message
}

fn only(name: &str) -> RemovalSelection {
    RemovalSelection::Only(vec![name.to_owned()])
}

#[test]
fn a_default_does_not_stay_beside_rights_that_come_back() {
    let text = pod(
        &json!([{"name": "app", "image": "a:1", "securityContext": {"privileged": true}}]),
        &json!({}),
    );
    let replaces = json!({"sidecars": [{"type": "Container", "name": "app", "image": "c:3"}]});
    let default = json!({"defaults": {"securityContext": {"allowPrivilegeEscalation": false}}});
    let both = [policy("a", &replaces), policy("b", &default)];
    let applied = done(&text, &both, RemovalSelection::Nothing);
    let report = run(&applied, &[], only("a"));
    let message = invalid(&report);
    assert!(
        message.contains("`b`") && message.contains("`allowPrivilegeEscalation: false`"),
        "{message}"
    );
    // The same where a new version of the one no longer takes the rights away.
    let labels = policy("a", &json!({"podLabels": {"k": "v"}}));
    invalid(&run(&applied, &[labels], RemovalSelection::Nothing));
    assert_eq!(done(&applied, &[], RemovalSelection::All), text);
    let without_b = done(&applied, &[], only("b"));
    assert_eq!(done(&without_b, &[], only("a")), text);
}

#[test]
fn a_port_of_the_node_is_not_put_back_beside_its_own() {
    let text = pod(
        &json!([{"name": "app", "image": "a:1", "ports": [{"containerPort": 80}]}]),
        &json!({"hostNetwork": true}),
    );
    let without = json!({"sidecars": [{"type": "Container", "name": "app", "image": "c:3"}]});
    let ports = json!([{"containerPort": 80}]);
    let web =
        json!({"sidecars": [{"type": "Container", "name": "web", "image": "w:1", "ports": ports}]});
    let both = [policy("a", &without), policy("b", &web)];
    let applied = done(&text, &both, RemovalSelection::Nothing);
    let report = run(&applied, &[], only("a"));
    assert!(invalid(&report).contains("host port 80/TCP"));
    assert_eq!(done(&applied, &[], RemovalSelection::All), text);
}

#[test]
fn what_was_wrong_before_the_run_does_not_stop_it() {
    let text = pod(
        &json!([{"name": "app", "image": "a:1", "volumeMounts": [{"name": "none", "mountPath": "/x"}]}]),
        &json!({}),
    );
    let [a, b] = ["a", "b"].map(|name| policy(name, &json!({"podLabels": {name: "1"}})));
    let applied = done(&text, &[a, b], RemovalSelection::Nothing);
    // Somebody breaks it once more.
    let broken = applied.replace(
        "image: a:1",
        "image: a:1\n    resources:\n      limits:\n        cpu: many",
    );
    assert_ne!(broken, applied);
    let undone = done(&broken, &[], only("a"));
    assert!(
        undone.contains("cpu: many") && !undone.contains("a: \"1\""),
        "{undone}"
    );
}

#[test]
fn one_that_comes_to_nothing_before_a_kept_one_is_planned_as_the_next_run_plans_it() {
    let text = pod(
        &json!([{"name": "app", "image": "a:1", "env": [{"name": "A", "value": "x"}]}]),
        &json!({}),
    );
    let first = [
        policy("q", &json!({"env": [{"name": "Q", "value": "1"}]})),
        policy("b", &json!({"env": [{"name": "A", "op": "Remove"}]})),
    ];
    let applied = done(&text, &first, RemovalSelection::Nothing);
    // In front of the one that is kept it has nothing to do, and behind it it has.
    let absent = json!({"env": [{"name": "A", "op": "SetIfAbsent", "value": "y"}]});
    let second = [policy("q", &absent)];
    let once = done(&applied, &second, RemovalSelection::Nothing);
    assert!(once.contains("value: \"y\""), "{once}");
    assert_eq!(done(&once, &second, RemovalSelection::Nothing), once);
    assert_eq!(done(&once, &[], RemovalSelection::All), text);
}

#[test]
fn a_container_that_two_policies_changed_is_found_again_under_another_name() {
    let text = pod(
        &json!([{"name": "app", "image": "a:1"}]),
        &json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
    );
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    // Takes the mount away again.
    let replaces = json!({"sidecars": [{"type": "Container", "name": "app", "image": "c:3"}]});
    let both = [policy("a", &mount), policy("b", &replaces)];
    let applied = done(&text, &both, RemovalSelection::Nothing);
    let rename = |text: &str| text.replace("- name: app\n", "- name: main\n");
    let renamed = rename(&applied);
    assert_ne!(renamed, applied);
    assert_eq!(done(&renamed, &[], RemovalSelection::All), rename(&text));
}

#[test]
fn a_text_that_is_put_back_is_told_from_others_as_when_its_policy_is_given() {
    let text = pod(&json!([{"name": "app", "image": "a:1"}]), &json!({}));
    let merge = |text: &str| json!({"env": [{"name": "A", "op": "MergeKeys", "value": text, "separator": ","}]});
    let prepend = json!({"env": [{"name": "A", "op": "Prepend", "value": "z"}]});
    let all = [
        policy("a", &merge("k=v")),
        // Behind it the text begins with the key `z k`.
        policy("b", &prepend),
        policy("c", &merge("k=v")),
        // Its key is there with another value.
        policy("d", &merge("k=w")),
    ];
    let applied = done(&text, &all, RemovalSelection::Nothing);
    assert!(applied.contains("z k=v,k=v"), "{applied}");
    assert_eq!(
        done(&applied, &all[1..2], RemovalSelection::Nothing),
        applied
    );
    assert_eq!(done(&applied, &[], RemovalSelection::All), text);
}

#[test]
fn a_mount_that_comes_back_without_its_volume_is_named() {
    let text = pod(
        &json!([{"name": "app", "image": "a:1", "volumeMounts": [{"name": "data", "mountPath": "/agent"}]}]),
        &json!({"volumes": [{"name": "data", "emptyDir": {}}]}),
    );
    let inject = json!({
        "volumes": [{"name": "agent", "emptyDir": {}}],
        "volumeMounts": [{"name": "agent", "mountPath": "/agent"}],
    });
    let applied = done(
        &text,
        &[policy("agent", &inject)],
        RemovalSelection::Nothing,
    );
    let remove = |text: &str| text.replace("  - name: data\n    emptyDir: {}\n", "");
    let without = remove(&applied);
    assert_ne!(without, applied);
    let report = run(&without, &[], RemovalSelection::All);
    let warnings: Vec<_> = report.diagnostics.iter().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].code, Code::Invalid);
    assert!(!warnings[0].is_error());
    let message = "undo restores app: mount /agent of Pod p, but the volume `data` that it mounts does not exist";
    assert_eq!(warnings[0].message, message);
}

#[test]
fn every_byte_comes_back_where_a_kept_policy_has_nothing_left_to_change() {
    let text = concat!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: app\n    image: a:1\n",
        "    env:\n    - name: OLD\n      value: \"a\\n\"\n",
    );
    let env = |env: Value| json!({ "env": env });
    let removes = policy("a", &env(json!([{"name": "OLD", "op": "Remove"}])));
    let adds = policy(
        "a",
        &env(json!([{"name": "NEW", "value": "x"}, {"name": "GONE", "value": "x"}])),
    );
    let changes = policy(
        "b",
        &env(json!([{"name": "NEW", "value": "y"}, {"name": "GONE", "op": "Remove"}])),
    );
    let removed = done(text, &[removes], RemovalSelection::Nothing);
    let both = done(&removed, &[adds, changes], RemovalSelection::Nothing);
    assert!(both.contains("value: \"a\\n\"\n"), "{both}");
    assert_eq!(done(&both, &[], only("a")), text);
}

/// As Helm writes it: empty fields on lines of their own, in two containers.
const EMPTY_FIELDS: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  securityContext:
    {}
  containers:
  - name: first
    env:
    image: first:1
    ports:
    - containerPort: 80
    resources:
      {}
    workingDir: /first
  - name: second
    image: second:1
    env:
    args: [second]
    resources:
      {}
    tty: true
";

#[test]
fn every_byte_comes_back_where_somebody_inserted_a_line_elsewhere() {
    let inject = json!({
        "defaults": {
            "resources": {"requests": {"cpu": "1m"}},
            "podSecurityContext": {"runAsNonRoot": true},
        },
        "env": [{"name": "ADDED", "value": "x"}],
    });
    let policies = [policy("a", &inject)];
    let injected = done(EMPTY_FIELDS, &policies, RemovalSelection::Nothing);
    let is_unique = |line: &&str| EMPTY_FIELDS.matches(*line).count() == 1;
    let lines: Vec<&str> = EMPTY_FIELDS.lines().filter(is_unique).collect();
    assert_eq!(lines.len(), 16, "all but the lines of the empty fields");
    for line in lines {
        let inserted = |text: &str| {
            assert_eq!(text.matches(line).count(), 1, "{line}\n{text}");
            text.replacen(line, &format!("# by hand\n{line}"), 1)
        };
        let (changed, wanted) = (inserted(&injected), inserted(EMPTY_FIELDS));
        let undone = done(&changed, &[], RemovalSelection::All);
        assert_eq!(undone, wanted);
    }
}

#[test]
fn the_line_break_before_an_empty_mapping_does_not_come_back_alone() {
    let defaults = policy(
        "a",
        &json!({"defaults": {"securityContext": {"allowPrivilegeEscalation": false}}}),
    );
    let patched = |labels: Value, operations: Value| {
        let patch = json!({"patchType": "JSONPatch", "scope": "Container", "patch": operations});
        policy("b", &json!({"podLabels": labels, "patches": [patch]}))
    };
    let path = "/securityContext/allowPrivilegeEscalation";
    let removing = json!([
        {"op": "test", "path": path, "value": false},
        {"op": "remove", "path": path},
    ]);
    let removing = patched(json!({"injected": "yes"}), removing);
    let adding = json!([{"op": "add", "path": "/terminationMessagePath", "value": "/x"}]);
    let adding = patched(json!({}), adding);
    let text = EMPTY_FIELDS.replace("resources:", "securityContext:");
    let first = done(
        &text,
        &[defaults.clone(), removing],
        RemovalSelection::Nothing,
    );
    let policies = [defaults, adding];
    let updated = done(&first, &policies, RemovalSelection::Nothing);
    let has_line_of_spaces = |text: &str| {
        text.lines()
            .any(|line| !line.is_empty() && line.trim().is_empty())
    };
    assert!(!has_line_of_spaces(&updated), "{updated}");
    assert_eq!(done(&updated, &[], RemovalSelection::All), text);
}
