use super::*;
use crate::plan::draft::effects::effects_of;
use crate::plan::draft::part::DraftPart;
use crate::record::{JoinHint, VERSION};
use crate::yaml::parse::parse;
use serde_json::json;

struct TakenOut {
    value: Value,
    changed: Vec<Drift>,
    /// The object with the first policy put back, and its new record.
    put_back: (Value, crate::record::PolicyRecord),
}

fn without_changes(record: &Record, after: &Value, handling: DriftHandling) -> TakenOut {
    let text = after.to_string();
    let tree = parse(&text).unwrap();
    let (mut draft, RemovalResult { redo, changed, .. }) =
        take_out(record, &tree, tree.roots()[0], |_| handling).unwrap();
    let value = draft.value(&draft.root()).unwrap();
    let record = redo[0].apply(&mut draft, &paths()).unwrap().unwrap();
    TakenOut {
        value,
        changed,
        put_back: (draft.value(&draft.root()).unwrap(), record),
    }
}

fn paths() -> RecordPaths {
    RecordPaths::of(&["spec".to_owned(), "template".to_owned()])
}

fn workload(spec: Value) -> Value {
    json!({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}})
}

fn record(before: &Value, after: &Value, joins: &[JoinHint]) -> Record {
    let (before, after) = (DraftPart::Planned(before), DraftPart::Planned(after));
    let effects = effects_of(before, after, &paths(), joins).unwrap();
    let policy = crate::record::PolicyRecord {
        policy: "p".into(),
        digest: "d".into(),
        effects,
        ..crate::record::PolicyRecord::default()
    };
    Record {
        version: VERSION,
        pod: paths().template(),
        policies: vec![policy],
        ..Record::default()
    }
}

fn appended(name: &str) -> JoinHint {
    let container = "pod/spec/containers/app".to_owned();
    JoinHint {
        container,
        name: name.into(),
        is_before: false,
        separator: " ".into(),
    }
}

#[test]
fn items_of_one_name_go_and_come_back() {
    let container =
        |env: Vec<Value>| workload(json!({"containers": [{"name": "app", "env": env}]}));
    let item = |at: usize| json!({"name": "X", "value": at.to_string()});
    let before = container(vec![item(0), json!({"name": "Y"})]);
    let all = (0..12).map(item);
    let after = container(all.chain([json!({"name": "Y"})]).collect());
    let record = record(&before, &after, &[]);
    assert_eq!(record.policies[0].effects.added.len(), 11);
    let taken = without_changes(&record, &after, DriftHandling::Leave);
    assert_eq!((&taken.value, taken.changed.len()), (&before, 0));
    let (again, done) = taken.put_back;
    assert_eq!(again, after);
    assert_eq!(done.effects, record.policies[0].effects);
}

#[test]
fn what_was_added_goes_with_what_was_made_for_it() {
    let before = workload(json!({"containers": [{"name": "app", "env": []}], "volumes": null}));
    let after = workload(json!({
        "initContainers": [{"name": "init"}],
        "containers": [{"name": "app", "env": [{"name": "X", "value": "1"}], "volumeMounts": [{"name": "v", "mountPath": "/a/b"}]}],
        "volumes": [{"name": "v"}],
    }));
    let record = record(&before, &after, &[]);
    let effects = &record.policies[0].effects;
    assert!(
        effects
            .added
            .contains_key("pod/spec/containers/app/volumeMounts/~1a~1b"),
        "{effects:?}"
    );
    assert_eq!(effects.filled["pod/spec/volumes"], Value::Null);
    assert_eq!(
        without_changes(&record, &after, DriftHandling::Leave).value,
        before
    );
    let text = record.render();
    assert_eq!(Record::read(&text), Ok(record));
}

#[test]
fn what_somebody_changed_stays_and_is_named() {
    let before = workload(json!({"containers": [{"name": "app"}]}));
    let mut after = workload(
        json!({"containers": [{"name": "app"}], "volumes": [{"name": "v"}, {"name": "w"}]}),
    );
    let record = record(&before, &after, &[]);
    after["spec"]["template"]["spec"]["volumes"][0]["emptyDir"] = json!({});
    let taken = without_changes(&record, &after, DriftHandling::Leave);
    assert_eq!(
        taken.changed,
        [Drift {
            policy: "p".into(),
            path: "pod/spec/volumes/v".into(),
            handling: DriftHandling::Leave,
        }]
    );
    assert_eq!(
        taken.value["spec"]["template"]["spec"]["volumes"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(
        without_changes(&record, &after, DriftHandling::Force).value,
        before
    );
}

#[test]
fn a_renamed_variable_gets_its_name_back() {
    let from = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let before = workload(
        json!({"containers": [{"name": "app", "env": [{"name": "X", "valueFrom": from}]}]}),
    );
    let after = workload(json!({"containers": [{"name": "app", "env": [
        {"name": "PODGRAFT_ORIG_X", "valueFrom": from}, {"name": "X", "value": "$(PODGRAFT_ORIG_X) -a"},
    ]}]}));
    let record = record(&before, &after, &[appended("X")]);
    let joined = &record.policies[0].effects.joined["pod/spec/containers/app/env/X"];
    assert_eq!(
        (joined.text.as_str(), joined.renamed.as_deref()),
        ("-a", Some("PODGRAFT_ORIG_X"))
    );
    let taken = without_changes(&record, &after, DriftHandling::Leave);
    assert_eq!(taken.value, before);
    assert_eq!(taken.put_back, (after, record.policies[0].clone()));
}

#[test]
fn what_was_removed_and_replaced_comes_back_in_its_place() {
    let before = workload(
        json!({"containers": [{"name": "app", "args": ["a"], "env": [
            {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"},
        ]}]}),
    );
    let after = workload(
        json!({"containers": [{"name": "app", "args": ["b"], "env": [
            {"name": "A", "value": "1"}, {"name": "C", "value": "4"},
        ]}]}),
    );
    let record = record(&before, &after, &[]);
    assert_eq!(
        without_changes(&record, &after, DriftHandling::Leave).value,
        before
    );
}
