use super::*;
use crate::yaml::splice::splice;
use crate::yaml::value::Path;
use serde_json::json;

const LIST: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: a
    namespace: shop
    annotations: {internal.config.kubernetes.io/path: 'a.yaml', internal.config.kubernetes.io/index: '1'}
  spec:
    template:
      spec:
        containers:
        - name: app # the application
- apiVersion: podgraft.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: p}
functionConfig:
  apiVersion: podgraft.dev/v1alpha1
  kind: InjectionPolicy
  metadata:
    name: agent
  spec:
    description: |
      two

      lines
";

fn list(text: &str) -> ResourceList<'_> {
    ResourceList::read("list".into(), text).unwrap()
}

fn with_results(text: &str, results: &[KrmResult]) -> (String, Value) {
    let edits: Vec<_> = list(text).results_edit(results).into_iter().collect();
    let output = String::from_utf8(splice(text.as_bytes(), &edits)).unwrap();
    let tree = parse(&output).unwrap();
    let value = to_value(&tree, tree.roots()[0]).unwrap();
    (output.clone(), value)
}

fn conflict() -> KrmResult {
    let list = list(LIST);
    let at = LIST.find("app #").unwrap();
    let place = list.source.place(at..at + 3);
    let policy = Source::new("p.yaml", "name: app").place(6..9);
    let problem = Diagnostic::error(Code::Conflict, "two\u{2028}containers")
        .at(policy, "ours")
        .at(place, "theirs");
    of_diagnostic(&list, &problem.help("rename one"))
}

#[test]
fn a_policy_is_cut_out_with_its_lines() {
    let FunctionConfig::Policy(file) = list(LIST).function_config().unwrap() else {
        panic!("it is a policy")
    };
    assert_eq!(&*file.name, "functionConfig");
    assert!(file.text.starts_with(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata:\n  name: agent\n"
    ));
    assert!(
        file.text.ends_with("    two\n\n    lines\n"),
        "{}",
        file.text
    );
    let items = list(LIST).policies();
    assert_eq!(items.len(), 1);
    assert!(items[0].text.starts_with(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: p}"
    ));
}

#[test]
fn kpts_config_map_is_keys_and_values() {
    let text = "apiVersion: config.kubernetes.io/v1beta1\nkind: ResourceList\nitems: []\nfunctionConfig:\n  apiVersion: v1\n  \
                kind: ConfigMap\n  data: {policy: 'a.yaml', port: 9404}\n";
    let FunctionConfig::Values(values) = list(text).function_config().unwrap() else {
        panic!("it is a ConfigMap")
    };
    let values = values.iter();
    let values: Vec<_> = values
        .map(|(key, value, at)| (&**key, &**value, at.line, at.column))
        .collect();
    assert_eq!(
        values,
        [("policy", "a.yaml", 7, 10), ("port", "9404", 7, 28)]
    );
}

#[test]
fn what_is_no_list_or_no_known_config_is_refused() {
    for text in [
        "a: 1\n",
        "[]\n",
        "a: [\n",
        "apiVersion: config.kubernetes.io/v2\nkind: ResourceList\n",
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: {}\n",
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n---\na: 1\n",
    ] {
        assert!(ResourceList::read("list".into(), text).is_err(), "{text}");
    }
    let head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n";
    for config in [
        "functionConfig: {apiVersion: example.com/v1, kind: X}\n",
        "functionConfig: [a]\n",
    ] {
        assert!(
            list(&format!("{head}{config}")).function_config().is_err(),
            "{config}"
        );
    }
    assert_eq!(
        list(&format!("{head}functionConfig:\n"))
            .function_config()
            .unwrap(),
        FunctionConfig::Absent
    );
}

#[test]
fn a_result_names_the_item_its_file_and_the_field() {
    let result = serde_json::to_value(conflict()).unwrap();
    assert_eq!(
        result,
        json!({
            "message": "two\u{2028}containers (p.yaml:1:7); rename one",
            "severity": "error",
            "resourceRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "namespace": "shop"},
            "field": {"path": "spec.template.spec.containers[0].name"},
            "file": {"path": "a.yaml", "index": 1},
            "tags": {"code": "conflict"},
        })
    );
}

#[test]
fn results_stand_before_the_items_and_change_nothing_else() {
    let (output, value) = with_results(LIST, &[conflict(), conflict()]);
    let added: Vec<&str> = output
        .lines()
        .filter(|line| !LIST.lines().any(|known| known == *line))
        .collect();
    assert_eq!((added.len(), added[0]), (3, "results:"));
    assert_eq!(value["results"][1]["tags"]["code"], "conflict");
    assert_eq!(
        Path::of(&["functionConfig", "kind"]).get(&value),
        Some(&json!("InjectionPolicy"))
    );
    assert_eq!(with_results(LIST, &[]).0, LIST);
}

#[test]
fn results_go_into_json_and_behind_those_of_others() {
    let json = r#"{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": []}"#;
    let (output, value) = with_results(json, &[conflict()]);
    assert!(serde_json::from_str::<Value>(&output).is_ok(), "{output}");
    assert_eq!(value["results"][0]["severity"], "error");
    let head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n";
    for earlier in [
        "results:\n- message: first\n  severity: info\n",
        "results: [{message: first}]\n",
    ] {
        let (output, value) = with_results(&format!("{head}{earlier}items: []\n"), &[conflict()]);
        assert_eq!(value["results"][0]["message"], "first", "{output}");
        assert_eq!(
            value["results"].as_array().map(Vec::len),
            Some(2),
            "{output}"
        );
        assert_eq!(value["items"], json!([]), "{output}");
    }
    let (_, value) = with_results(&format!("{head}results:\nitems: []\n"), &[conflict()]);
    assert_eq!(value["results"].as_array().map(Vec::len), Some(1));
}
