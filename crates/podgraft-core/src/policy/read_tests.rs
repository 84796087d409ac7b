use super::*;
use crate::diagnostic::Code;
use crate::policy::{EnvOp, OnConflict, Position, SelectorOperator, SidecarType};
use serde_json::json;

fn file(name: &str, text: &str) -> PolicyFile {
    PolicyFile {
        name: name.into(),
        text: text.to_owned(),
    }
}

fn read_one(text: &str) -> (Vec<Policy>, Vec<Diagnostic>) {
    read(vec![file("p.yaml", text)], &[])
}

fn policy(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: {name}}}\nspec:\n{rest}"
    )
}

const LABEL: &str = "  inject: {podLabels: {a: b}}\n";

fn setting(name: &str, value: &str) -> ParamSetting {
    ParamSetting {
        policy: None,
        name: name.to_owned(),
        value: value.to_owned(),
        at: None,
    }
}

#[test]
fn policies_are_sorted_by_weight_then_file_then_document() {
    let first = format!(
        "{}---\n{}",
        policy("a", LABEL),
        policy("b", &format!("  weight: -1\n{LABEL}"))
    );
    let second = format!(
        "{}---\n{}",
        policy("c", LABEL),
        policy("d", &format!("  weight: -1\n{LABEL}"))
    );
    let (policies, problems) = read(vec![file("1", &first), file("2", &second)], &[]);
    assert_eq!(problems, []);
    let names: Vec<&str> = policies
        .iter()
        .map(|policy| policy.identity.as_str())
        .collect();
    assert_eq!(names, ["b", "d", "a", "c"]);
}

#[test]
fn lists_and_json_are_read_and_other_objects_are_context() {
    let text = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        {"apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": {"name": "a", "namespace": "n"},
         "spec": {"suspend": true, "inject": {"podLabels": {"a": "b"}}}}]}"#;
    let (policies, problems) = read_one(text);
    assert_eq!(problems, []);
    assert_eq!(
        (policies[0].identity.as_str(), policies[0].suspend),
        ("n/a", true)
    );
}

#[test]
fn a_file_without_a_policy_is_an_error_that_names_the_kinds() {
    let (_, problems) = read_one("kind: Namespace\napiVersion: v1\nmetadata: {name: x}\n");
    assert_eq!(problems[0].code, Code::BadPolicy);
    assert!(
        problems[0]
            .help
            .as_ref()
            .unwrap()
            .contains("InjectionPolicy")
    );
    assert_eq!(read_one("# nothing\n").1[0].code, Code::BadPolicy);
}

#[test]
fn a_near_miss_of_a_kind_or_version_is_an_error() {
    let (_, problems) = read_one("apiVersion: podgraft.dev/v1\nkind: InjectionPolicy\n");
    assert_eq!(
        problems[0].help.as_deref(),
        Some("write `apiVersion: podgraft.dev/v1alpha1`")
    );
    let (_, problems) = read_one("apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicies\n");
    assert_eq!(
        problems[0].help.as_deref(),
        Some("did you mean `InjectionPolicy`?")
    );
}

#[test]
fn a_version_that_no_cluster_serves_is_not_supported() {
    let (_, problems) = read_one(
        "apiVersion: opentelemetry.io/v1beta1\nkind: Instrumentation\nmetadata: {name: x}\n",
    );
    assert_eq!((problems.len(), problems[0].code), (1, Code::NotSupported));
}

#[test]
fn two_policies_of_one_identity_are_an_error_with_both_places() {
    let text = format!("{}---\n{}", policy("a", LABEL), policy("a", LABEL));
    let (_, problems) = read_one(&text);
    let lines: Vec<usize> = problems[0]
        .labels
        .iter()
        .map(|label| label.place.line)
        .collect();
    assert_eq!(
        (problems[0].code, lines),
        (Code::DuplicatePolicy, vec![9, 3])
    );
}

#[test]
fn a_template_is_to_be_rendered_first() {
    for spec in [
        "  {{ .Values.x }}\n",
        "{{- if .Values.x }}\n  weight: 1\n",
        "  weight: {{ .Values.x }}\n",
    ] {
        let (_, problems) = read_one(&policy("a", spec));
        assert_eq!(problems[0].code, Code::NotRendered, "{spec}");
    }
}

#[test]
fn what_is_no_yaml_and_what_stands_twice_has_its_place() {
    let (_, problems) = read_one("a: [\n");
    assert_eq!(problems[0].code, Code::NotYaml);
    let (_, problems) = read_one(&policy("a", "  weight: 1\n  weight: 2\n"));
    let lines: Vec<usize> = problems[0]
        .labels
        .iter()
        .map(|label| label.place.line)
        .collect();
    assert_eq!((problems[0].code, lines), (Code::DuplicateKey, vec![6, 5]));
}

const WITH_PARAMS: &str = r#"  params:
  - {name: port, default: 9404, pattern: '\d+'}
  - {name: level, default: low, enum: [low, high]}
  - {name: image, required: true, description: the agent}
  inject:
    podAnnotations: {port: "${params.port}", version: "${params.level}"}
    sidecars: [{name: a, type: Native, image: "${params.image}"}]
"#;

#[test]
fn parameters_are_filled_in_and_settings_win_over_defaults() {
    let files = vec![file("p", &policy("a", WITH_PARAMS))];
    let (policies, problems) = read(files, &[setting("image", "x:1"), setting("level", "high")]);
    assert_eq!(problems, []);
    let inject = &policies[0].rules[0].inject;
    assert_eq!(*inject.pod_annotations[0].1.value, json!("9404"));
    assert_eq!(*inject.pod_annotations[1].1.value, json!("high"));
    assert_eq!(
        *inject.sidecars[0].0.value,
        json!({"name": "a", "image": "x:1", "restartPolicy": "Always"})
    );
}

#[test]
fn values_of_parameters_are_checked() {
    let codes = |settings: &[ParamSetting]| {
        let (_, problems) = read(vec![file("p", &policy("a", WITH_PARAMS))], settings);
        problems
            .into_iter()
            .map(|problem| problem.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        codes(&[setting("image", "x"), setting("port", "80; rm")]),
        [Code::BadParam]
    );
    assert_eq!(
        codes(&[setting("image", "x"), setting("level", "hihg")]),
        [Code::BadParam]
    );
    assert_eq!(
        codes(&[setting("image", "x"), setting("levle", "high")]),
        [Code::UnknownParam]
    );
    assert_eq!(codes(&[])[0], Code::BadParam);
}

#[test]
fn a_parameter_where_a_number_is_wanted_is_a_wrong_type_at_its_place() {
    let text = policy(
        "a",
        "  params: [{name: port, default: \"80\"}]\n  inject:\n    ports:\n    - containerPort: ${params.port}\n",
    );
    let (_, problems) = read_one(&text);
    assert_eq!(
        (problems[0].code, problems[0].labels[0].place.line),
        (Code::WrongType, 8)
    );
    assert!(
        problems[0]
            .help
            .as_ref()
            .unwrap()
            .contains("int(params.NAME)")
    );
}

const SELECTING: &str = r#"  match:
    kinds: [apps/v1/Deployment, "*"]
    selector:
      matchLabels: {zone: b, app: a}
      matchExpressions: [{key: tier, operator: NotIn, values: [dev]}]
    any: [{names: ["x-*"]}, {annotations: {team: "a*"}}]
    sample: {percent: 25}
  exclude: [{hooks: Only}]
  onConflict: Replace
  containers: {names: ["app*"], mode: First}
  inject:
    env:
    - {name: PATH, op: Prepend, value: /opt}
    - {name: OPTS, op: Append, value: -x, position: {after: PATH}}
    - {name: PAIRS, op: MergeKeys, value: "a=b"}
    sidecars: [{name: s, type: Container, image: "a:1", position: First, args: [x]}]
    podSpec: {shareProcessNamespace: true}
    defaults: {imagePullPolicy: Never, podSecurityContext: {runAsUser: 1}}
"#;

/// The policy of a text in which nothing is wrong.
fn selecting() -> Policy {
    let (policies, problems) = read_one(&policy("a", SELECTING));
    assert_eq!(problems, []);
    policies.into_iter().next().expect("a policy")
}

#[test]
fn words_that_choose_reach_the_internal_policy() {
    let policy = selecting();
    assert!(
        policy.selects.kinds[0]
            .api_version
            .as_ref()
            .is_some_and(|glob| glob.is_match("apps/v1"))
    );
    let selector = policy.selects.selector.as_ref().unwrap();
    let keys: Vec<(&str, SelectorOperator)> = selector
        .requirements
        .iter()
        .map(|requirement| (requirement.key.as_str(), requirement.operator))
        .collect();
    assert_eq!(
        keys,
        [
            ("zone", SelectorOperator::In),
            ("app", SelectorOperator::In),
            ("tier", SelectorOperator::NotIn)
        ]
    );
    assert_eq!((policy.selects.any.len(), policy.excludes.len()), (2, 1));
}

#[test]
fn variables_reach_the_internal_policy() {
    let policy = selecting();
    let rule = &policy.rules[0];
    assert_eq!(rule.on_conflict, OnConflict::Replace);
    let env: Vec<(&str, EnvOp, &str)> = rule
        .inject
        .env
        .iter()
        .map(|env| (env.name.as_str(), env.op, env.separator.as_str()))
        .collect();
    let wanted = [
        ("PATH", EnvOp::Prepend, ":"),
        ("OPTS", EnvOp::Append, " "),
        ("PAIRS", EnvOp::MergeKeys, ","),
    ];
    assert_eq!(env, wanted);
    assert_eq!(
        rule.inject.env[1].position,
        Position::After("PATH".to_owned())
    );
    assert_eq!(
        *rule.inject.env[1].item.value,
        json!({"name": "OPTS", "value": "-x"})
    );
}

#[test]
fn sidecars_and_defaults_reach_the_internal_policy() {
    let policy = selecting();
    let rule = &policy.rules[0];
    let (sidecar, sidecar_type, position) = &rule.inject.sidecars[0];
    assert_eq!(
        (*sidecar_type, position),
        (SidecarType::Container, &Position::First)
    );
    assert_eq!(
        *sidecar.value,
        json!({"name": "s", "image": "a:1", "args": ["x"]})
    );
    assert_eq!(&policy.text.text[sidecar.at.clone()][..8], "{name: s");
    assert_eq!(
        *rule.inject.container_defaults.as_ref().unwrap().value,
        json!({"imagePullPolicy": "Never"})
    );
    assert_eq!(
        *rule.inject.pod_security_context.as_ref().unwrap().value,
        json!({"runAsUser": 1})
    );
}
