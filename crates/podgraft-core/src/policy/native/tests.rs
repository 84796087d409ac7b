use crate::diagnostic::{Code, Diagnostic};
use crate::policy::native::checks::NOT_IN_POD_SPEC;
use crate::policy::read::{PolicyFile, read};
use crate::policy::stored_schemas::INJECTION_POLICY;

/// The problems of a policy with this spec.
fn problems(spec: &str) -> Vec<Diagnostic> {
    let head =
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: a}\nspec:\n";
    read(
        vec![PolicyFile {
            name: "p.yaml".into(),
            text: format!("{head}{spec}"),
        }],
        &[],
    )
    .1
}

/// Code, and the text that the first label points at.
fn shown(spec: &str) -> Vec<(Code, String)> {
    let place = |problem: &Diagnostic| {
        let place = &problem.labels[0].place;
        place.excerpt[place.start..place.end].to_owned()
    };
    problems(spec)
        .iter()
        .map(|problem| (problem.code, place(problem)))
        .collect()
}

fn inject(text: &str) -> Vec<(Code, String)> {
    shown(&format!("  inject:\n    {text}\n"))
}

fn single(code: Code, text: &str) -> Vec<(Code, String)> {
    vec![(code, text.to_owned())]
}

#[test]
fn every_problem_of_the_types_has_its_place() {
    let spec = "  wieght: 1\n  onConflict: Replce\n  inject:\n    env:\n    - {name: A, value: 5}\n    \
                sidecars:\n    - {name: a, image: 'b:1'}\n    ports: [{containerPort: x}]\n";
    let mut found = shown(spec);
    found.sort();
    assert_eq!(
        found,
        [
            (Code::BadPolicy, "{name: a, image: 'b:1'}".to_owned()),
            (Code::UnknownField, "wieght".to_owned()),
            (Code::WrongType, "5".to_owned()),
            (Code::WrongType, "Replce".to_owned()),
            (Code::WrongType, "x".to_owned()),
        ]
    );
    let helps: Vec<String> = problems(spec)
        .into_iter()
        .filter_map(|problem| problem.help)
        .collect();
    for help in [
        "did you mean `weight`?",
        "did you mean `Replace`?",
        "quote it: \"5\"",
    ] {
        assert!(helps.iter().any(|found| found == help), "{help}: {helps:?}");
    }
    assert!(
        helps
            .iter()
            .any(|help| help.starts_with("`type`: `Native`")),
        "{helps:?}"
    );
}

#[test]
fn quoting_help_shows_the_text_as_written() {
    let found = problems("  inject:\n    env: [{name: A, value: yes}]\n");
    assert_eq!(found[0].help.as_deref(), Some("quote it: \"yes\""));
}

#[test]
fn a_policy_injects_something() {
    assert_eq!(
        problems("  weight: 1\n")[0].message,
        "the policy injects nothing"
    );
    assert_eq!(
        problems("  inject: {}\n")[0].message,
        "the policy injects nothing"
    );
}

#[test]
fn selection_is_checked() {
    let spec = "  match:\n    names: ['[a']\n    sample: {percent: 101}\n    selector:\n      matchLabels: {-a: b}\n      \
                matchExpressions: [{key: a, operator: Is}, {key: a, operator: In}]\n  inject: {podLabels: {a: b}}\n";
    let codes: Vec<Code> = shown(spec).into_iter().map(|(code, _)| code).collect();
    assert_eq!(
        codes,
        [
            Code::BadPolicy,
            Code::Invalid,
            Code::BadPolicy,
            Code::Invalid,
            Code::BadPolicy
        ]
    );
}

#[test]
fn an_expression_in_match_is_refused() {
    let spec = "  match: {names: ['${params.x}']}\n  inject: {podLabels: {a: b}}\n";
    assert_eq!(shown(spec), single(Code::BadExpression, "'${params.x}'"));
}

#[test]
fn names_and_numbers_are_what_kubernetes_takes() {
    assert_eq!(
        inject("volumes: [{name: A_b, emptyDir: {}}]"),
        single(Code::Invalid, "A_b")
    );
    assert_eq!(
        inject("initContainers: [{name: 'a.b', image: 'x:1'}]"),
        single(Code::Invalid, "'a.b'")
    );
    assert_eq!(
        inject("ports: [{name: jmx-prometheus-exporter, containerPort: 1}]")[0].0,
        Code::Invalid
    );
    assert_eq!(
        inject("ports: [{containerPort: 70000}]"),
        single(Code::Invalid, "70000")
    );
    assert_eq!(
        inject("ports: [{containerPort: 80, protocol: tcp}]"),
        single(Code::Invalid, "tcp")
    );
    assert_eq!(
        inject("podLabels: {a: 'b c'}"),
        single(Code::Invalid, "'b c'")
    );
    assert_eq!(
        inject("volumeMounts: [{name: a, mountPath: 'C:/x'}]"),
        single(Code::Invalid, "'C:/x'")
    );
    assert_eq!(
        inject("initContainers: [{name: a}]"),
        single(Code::Invalid, "{name: a}")
    );
    let nested = "initContainers: [{name: a, image: 'x:1', ports: [{containerPort: 0}], env: [{name: 'A=B'}]}]";
    assert_eq!(
        inject(nested),
        [
            (Code::Invalid, "0".to_owned()),
            (Code::Invalid, "'A=B'".to_owned())
        ]
    );
}

#[test]
fn a_problem_of_an_item_of_labels_or_annotations_has_its_place() {
    for field in ["podLabels", "podAnnotations", "labels", "annotations"] {
        for (item, code, text) in [
            ("{key: a, op: Apend, value: x}", Code::WrongType, "Apend"),
            ("{key: a, value: x, valu: x}", Code::UnknownField, "valu"),
            ("{key: a, value: 5}", Code::WrongType, "5"),
        ] {
            let list = format!("{field}: [{{key: ok, value: ok}}, {item}]");
            assert_eq!(inject(&list), single(code, text), "{list}");
        }
    }
}

#[test]
fn a_wrong_variable_is_reported_once() {
    let spec = "  variables: [{name: v, expression: wrong('1h')}, {name: w, expression: variables.v}]\n  \
                inject: {podAnnotations: {r: '${variables.v}', s: '${variables.w}'}}\n";
    assert_eq!(shown(spec), single(Code::BadExpression, "wrong('1h')"));
}

#[test]
fn an_identity_stands_once() {
    assert_eq!(
        inject("volumes: [{name: a, emptyDir: {}}, {name: 'a', emptyDir: {}}]"),
        single(Code::Invalid, "'a'")
    );
    let both = "{initContainers: [{name: a, image: 'x:1'}], sidecars: [{name: 'a', type: Native, image: 'x:1'}]}";
    assert_eq!(
        shown(&format!("  inject: {both}\n")),
        single(Code::Invalid, "'a'")
    );
}

#[test]
fn an_env_op_has_the_value_that_it_needs() {
    let source = "valueFrom: {fieldRef: {fieldPath: metadata.name}}";
    assert_eq!(
        inject(&format!("env: [{{name: A, value: x, {source}}}]"))[0].0,
        Code::Invalid
    );
    for op in ["Append", "Prepend", "MergeKeys"] {
        assert_eq!(
            inject(&format!("env: [{{name: A, op: {op}, {source}}}]"))[0].0,
            Code::BadPolicy,
            "{op}"
        );
    }
    assert_eq!(
        inject("env: [{name: A, op: Remove, value: x}]")[0].0,
        Code::BadPolicy
    );
    assert_eq!(
        inject("env: [{name: A, separator: ',', value: x}]"),
        single(Code::BadPolicy, "','")
    );
    assert_eq!(
        inject("env: [{name: A, op: Remove}, {name: B, value: ''}]"),
        []
    );
}

#[test]
fn a_pod_spec_part_names_the_key_to_use_instead() {
    let found = problems("  inject:\n    podSpec: {volumes: [], hostNetwork: true}\n");
    assert_eq!(found[0].help.as_deref(), Some("use `volumes` of `inject`"));
    assert_eq!(inject("podSpec: {hostNetwork: true}"), []);
}

#[test]
fn a_field_of_the_pod_spec_that_is_a_word_of_inject_is_refused_in_pod_spec() {
    let fields = |name| INJECTION_POLICY.get(name)["properties"].as_object();
    let of_pod = fields("PartOfPodSpec").expect("it has fields");
    let words = fields("Inject").expect("it has fields").keys();
    for word in words.filter(|word| of_pod.contains_key(*word)) {
        let mut refused = NOT_IN_POD_SPEC.iter().map(|(field, _)| field);
        assert!(refused.any(|field| field == word), "{word}");
    }
}

#[test]
fn restart_policies_follow_the_type_of_sidecar() {
    let sidecar = |rest: &str| inject(&format!("sidecars: [{{name: a, image: 'x:1', {rest}}}]"));
    assert_eq!(sidecar("type: Native, restartPolicy: Always"), []);
    assert_eq!(
        sidecar("type: Native, restartPolicy: Never"),
        single(Code::BadPolicy, "Never")
    );
    assert_eq!(
        sidecar("type: Container, restartPolicy: Always"),
        single(Code::BadPolicy, "Always")
    );
    assert_eq!(sidecar("type: Container, restartPolicy: OnFailure"), []);
    let init = inject("initContainers: [{name: a, image: 'x:1', restartPolicy: Always}]");
    assert_eq!(init, single(Code::BadPolicy, "Always"));
}

#[test]
fn positions_are_words_or_a_neighbour() {
    let init = |position: &str| {
        inject(&format!(
            "initContainers: [{{name: a, image: 'x:1', position: {position}}}]"
        ))
    };
    assert_eq!(init("{before: b}"), []);
    assert_eq!(init("Middle"), single(Code::WrongType, "Middle"));
    assert_eq!(init("{beside: b}")[0].0, Code::WrongType);
}

#[test]
fn a_policy_needs_a_name() {
    let text = "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {}\nspec: {inject: {podLabels: {a: b}}}\n";
    let found = read(
        vec![PolicyFile {
            name: "p".into(),
            text: text.to_owned(),
        }],
        &[],
    )
    .1;
    assert_eq!(found[0].message, "`metadata` must have `name`");
}
