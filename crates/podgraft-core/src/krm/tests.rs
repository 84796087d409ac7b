use super::*;
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

fn with_results(text: &str, results: &[FunctionResult<'_>]) -> (String, Value) {
    let output = list(text).with_results(Vec::new(), results).unwrap();
    let output = String::from_utf8(output).unwrap();
    let tree = parse(&output).unwrap();
    let value = to_value(&tree, tree.roots()[0]).unwrap();
    (output.clone(), value)
}

fn conflict<'l>(list: &'l ResourceList<'_>) -> FunctionResult<'l> {
    let at = LIST.find("app #").unwrap();
    let place = list.source.place(at..at + 3);
    let policy = Source::new("p.yaml", "name: app").place(6..9);
    let problem = Diagnostic::error(Code::Conflict, "two\u{2028}containers")
        .at(policy, "ours")
        .at(place, "theirs");
    of_diagnostic(list, &problem.help("rename one"))
}

#[test]
fn a_result_names_the_item_its_file_and_the_field() {
    let list = list(LIST);
    assert_eq!(
        serde_json::to_value(conflict(&list)).unwrap(),
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
fn results_go_into_json_and_behind_those_of_others() {
    let source = list(LIST);
    let results = [conflict(&source)];
    let json = r#"{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": []}"#;
    let (output, value) = with_results(json, &results);
    assert!(serde_json::from_str::<Value>(&output).is_ok(), "{output}");
    assert_eq!(value["results"][0]["severity"], "error");
    let head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n";
    for earlier in [
        "results:\n- message: first\n  severity: info\n",
        "results: [{message: first}]\n",
    ] {
        let (output, value) = with_results(&format!("{head}{earlier}items: []\n"), &results);
        assert_eq!(value["results"][0]["message"], "first", "{output}");
        assert_eq!(
            value["results"].as_array().map(Vec::len),
            Some(2),
            "{output}"
        );
        assert_eq!(value["items"], json!([]), "{output}");
    }
    let marked = format!("\u{feff}items: []\n{head}");
    assert_eq!(
        with_results(&marked, &results).1["results"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    for odd in [
        "results: {a: b}\nitems: []\n",
        "results: [!a b]\nitems: []\n",
        "? items\n: []\n",
    ] {
        let text = format!("{head}{odd}");
        let refused = list(&text).with_results(Vec::new(), &results);
        assert_eq!(refused.unwrap_err().code, Code::BadResourceList, "{odd}");
    }
    let (_, value) = with_results(&format!("{head}results:\nitems: []\n"), &results);
    assert_eq!(value["results"].as_array().map(Vec::len), Some(1));
}
