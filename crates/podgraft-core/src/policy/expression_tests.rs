use super::*;
use serde_json::json;

#[path = "expression_cost_tests.rs"]
mod cost_tests;

struct TestPod;

impl Facts for TestPod {
    fn fact(&self, root: &str, field: &str) -> Result<Option<Value>, TemplateError> {
        Ok(match (root, field) {
            ("workload", "name") => Some(json!("orders")),
            ("workload", "labels") => Some(json!({"z": "1", "a": "2", "m": "3"})),
            ("workload", "namespace") => {
                return Err(TemplateError::new(
                    Code::UnknownNamespace,
                    "not known",
                    "say it",
                ));
            }
            ("pod", "annotations") => Some(json!({"team": "shop"})),
            ("container", "image") => Some(json!("a/b:1.2")),
            ("container", "ports") => Some(json!([{"containerPort": 8080}])),
            ("containers", "first") => Some(json!({"name": "app"})),
            ("object", "") => Some(json!({"kind": "Deployment", "spec": {"replicas": 2}})),
            _ => None,
        })
    }
}

fn vocabulary() -> Vocabulary {
    let params = [("port", Some("9404")), ("none", None)];
    let params = params
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.map(str::to_owned)))
        .collect();
    Vocabulary {
        params,
        ..Vocabulary::default()
    }
}

fn outcome(text: &str) -> Result<ExpressionResult, TemplateError> {
    let vocabulary = vocabulary();
    let expression = Expression::compile(text, &vocabulary)
        .unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    Evaluator::new(&vocabulary.params, &[], &TestPod).evaluate(&expression)
}

fn value(text: &str) -> Value {
    match outcome(text) {
        Ok(ExpressionResult::Value(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

fn refused(text: &str) -> (String, String) {
    let fault = Expression::compile(text, &vocabulary())
        .expect_err(text)
        .remove(0);
    (fault.message, fault.help.unwrap_or_default())
}

#[test]
fn what_a_workload_offers_has_its_types() {
    assert_eq!(
        value("workload.name + '-' + params.port"),
        json!("orders-9404")
    );
    assert_eq!(value("int(params.port) + 1"), json!(9405));
    assert_eq!(value("object.spec.replicas + 1"), json!(3));
    assert_eq!(value("pod.annotations"), json!({"team": "shop"}));
    assert_eq!(value("containers.first.name"), json!("app"));
    assert_eq!(value("type(workload.name) == string"), json!(true));
}

#[test]
fn an_optional_may_be_absent() {
    assert_eq!(
        outcome("container.?securityContext"),
        Ok(ExpressionResult::Absent)
    );
    assert_eq!(value("container.?image"), json!("a/b:1.2"));
    assert_eq!(
        value("pod.annotations[?'x'].orValue(workload.name)"),
        json!("orders")
    );
    assert_eq!(
        value("pod.annotations[?'team'].orValue(workload.name)"),
        json!("shop")
    );
    assert_eq!(value("has(container.resources)"), json!(false));
    assert_eq!(value("has(params.none)"), json!(false));
    assert!(
        outcome("container.resources")
            .unwrap_err()
            .message
            .contains("there is no `resources`")
    );
}

#[test]
fn a_map_is_walked_in_the_order_of_its_keys() {
    assert_eq!(
        value("workload.labels.map(k, k + workload.labels[k]).join(',')"),
        json!("a2,m3,z1")
    );
    assert_eq!(
        value("workload.labels.filter(k, k != 'm')"),
        json!(["a", "z"])
    );
}

#[test]
fn functions_that_the_examples_of_the_reference_leave_out() {
    for (text, wanted) in [
        ("'a-b-c'.replace('-', '.', 1)", json!("a.b-c")),
        ("'v12 v3'.find('[x]')", json!("")),
        ("'v12 v3'.findAll('[0-9]+', 1)", json!(["12"])),
        ("firstPort(container, 80)", json!(8080)),
        ("firstPort(containers.first, 80)", json!(80)),
    ] {
        assert_eq!(value(text), wanted, "{text}");
    }
}

#[test]
fn unknown_names_are_refused_with_the_near_one() {
    for (text, message, help) in [
        (
            "containers.first.imag",
            "`container` has no `imag`",
            "did you mean `image`?",
        ),
        (
            "params['prot']",
            "the policy has no parameter `prot`",
            "did you mean `port`?",
        ),
        (
            "container.?imag",
            "`container` has no `imag`",
            "did you mean `image`?",
        ),
        (
            "'a'.uperAscii()",
            "expressions know no function `uperAscii`",
            "did you mean `upperAscii`?",
        ),
        ("[1].map(x, y)", "expressions know no `y`", ""),
    ] {
        let (found, near) = refused(text);
        assert_eq!(found, message, "{text}");
        assert!(near.contains(help), "{text}: {near}");
    }
}

#[test]
fn what_depends_on_the_clock_or_is_missing_is_refused_by_name() {
    for text in [
        "timestamp('2024-01-01T00:00:00Z')",
        "'%d'.format([1])",
        "named('uuid')",
    ] {
        assert!(refused(text).0.contains("know no function"), "{text}");
    }
    assert!(refused("params.none").0.contains("has no value"));
}

#[test]
fn what_only_functions_look_into_is_no_value() {
    for (text, kind) in [
        ("url('/a')", "kubernetes.URL"),
        ("ip('::1')", "net.IP"),
        ("quantity('1')", "kubernetes.Quantity"),
    ] {
        let fault = outcome(text).expect_err(text);
        let why = format!("{kind} is no value by itself: ask for a part of it");
        assert!(fault.message.ends_with(&why), "{}", fault.message);
    }
}

fn list(length: usize) -> String {
    format!("[{}]", vec!["1"; length].join(","))
}

#[test]
fn cost_is_bounded_by_form() {
    let walks = "pod.spec.containers.all(a, pod.spec.containers.all(b, pod.spec.containers.all(c, a == b)))";
    assert!(refused(walks).0.contains("walks lists"));
    // What the policy writes out is no walk.
    assert_eq!(
        value("[1].all(a, [1].all(b, 'x,y'.split(',').all(c, a == b)))"),
        json!(true)
    );
    assert_eq!(
        value("[1].all(a, [1].all(b, a == b)) && [1].all(c, c == 1)"),
        json!(true)
    );
    assert!(refused(&"1+".repeat(9000)).0.contains("longer than"));
    // The bound is in characters, of which this text has fewer than bytes.
    assert_eq!(value(&format!("size('{}')", "ä".repeat(9000))), json!(9000));
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("1+", ""),
        ("true?1:", ""),
        ("size(", ")"),
        ("true||(!", ")"),
    ] {
        let text = format!("{}1{}", open.repeat(400), close.repeat(400));
        let (message, _) = refused(&text);
        assert!(
            message.contains("nests more than") || message.contains("no expression"),
            "{open}: {message}"
        );
    }
    assert!(
        refused(&format!("object{}", ".a".repeat(400)))
            .0
            .contains("nests more than")
    );
}

#[test]
fn faults_show_types_and_no_values() {
    let secret = "'hunter2'";
    for (text, why) in [
        (format!("{secret} + 1"), "`+` does not take (string, int)"),
        (
            format!("[{secret}].map(text, text.field)"),
            "a value of type string has no fields",
        ),
        (
            format!("[{secret}] + {secret}"),
            "`+` does not take (list, string)",
        ),
        (format!("[1][{secret}]"), "does not take"),
        (format!("{secret} < 1"), "`<` does not take (string, int)"),
        (
            format!("{secret} in {secret}"),
            "`in` does not take (string, string)",
        ),
        (
            format!("size({{{secret}: 1}}.map(a, a)[0] + 1)"),
            "`+` does not take (string, int)",
        ),
        (
            "9223372036854775807 + 1".to_owned(),
            "`+` comes to a number that is none of 64 bits",
        ),
        (
            "-9223372036854775808 / -1".to_owned(),
            "`/` comes to a number",
        ),
        (
            "-9223372036854775808 % -1".to_owned(),
            "`%` comes to a number",
        ),
        ("int(1e300)".to_owned(), "overflow"),
        ("1 / 0".to_owned(), "division by zero"),
    ] {
        let fault = outcome(&text).unwrap_err();
        let (_, message) = fault
            .message
            .split_once("` has no value: ")
            .unwrap_or_else(|| panic!("{}", fault.message));
        assert!(
            message.contains(why) && !message.contains("hunter2"),
            "{text}: {message}"
        );
    }
}

#[test]
fn a_long_expression_is_shown_by_its_beginning() {
    let message = outcome(&format!("1 + {}", list(1000))).unwrap_err().message;
    assert!(message.len() < 300 && message.contains("...`"), "{message}");
}

/// Patterns that other engines go back and forth on for ever.
#[test]
fn hostile_patterns_end() {
    let text = format!("'{}'", "a".repeat(2000));
    for pattern in [
        "(a*)*b",
        "(a|a)*b",
        "(a?){100}a{100}b",
        "(.*)(.*)(.*)(.*)x",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        match outcome(&format!("{text}.matches('{pattern}')")) {
            Ok(outcome) => assert_eq!(outcome, ExpressionResult::Value(json!(false)), "{pattern}"),
            Err(fault) => assert!(
                fault.message.contains("too long"),
                "{pattern}: {}",
                fault.message
            ),
        }
    }
    assert!(
        outcome("'a'.matches('((((a{30}){30}){30}){30}){30}')")
            .unwrap_err()
            .message
            .contains("no regular expression")
    );
}

#[test]
fn walks_of_a_usual_length_are_far_from_the_limit() {
    let many = list(200);
    assert_eq!(
        value(&format!(
            "{many}.all(a, {many}.all(b, a == b && 'x'.matches('^x$')))"
        )),
        json!(true)
    );
}

#[test]
fn what_cannot_be_known_is_an_error_only_where_it_is_used() {
    assert_eq!(
        outcome("workload.namespace").unwrap_err().code,
        Code::UnknownNamespace
    );
    assert_eq!(
        outcome("workload['namespace']").unwrap_err().code,
        Code::UnknownNamespace
    );
    assert_eq!(value("workload.name"), json!("orders"));
}

#[test]
fn syntax_errors_say_what_was_read() {
    let (message, _) = refused("workload.name +");
    assert!(
        message.starts_with("`workload.name +` is no expression"),
        "{message}"
    );
    assert!(refused("Foo{a: 1}").0.contains("`Foo`"));
}

/// A pod by its annotations.
struct AnnotatedPod(Option<Value>);

impl Facts for AnnotatedPod {
    fn fact(&self, _: &str, field: &str) -> Result<Option<Value>, TemplateError> {
        Ok(self.0.clone().filter(|_| field == "annotations"))
    }
}

#[test]
fn what_is_kept_is_what_would_be_evaluated() {
    let pods = [
        json!({"team": "shop"}),
        json!({"team": "shop", "other": "x"}),
        json!({"other": "x"}),
        json!({"team": 1}),
        json!({"team": 1.0}),
        json!({"team": [1, {"a": true}]}),
        json!({"team": [1, {"a": null}]}),
        json!({}),
        Value::Null,
    ];
    let texts = [
        "pod.annotations[?'team'].orValue('none')",
        "'team' in pod.annotations",
        "has(pod.annotations) && has(pod.annotations.team)",
        "pod.annotations.team",
        "string(pod.annotations['team'])",
        "size(pod.annotations) + ('team' in pod.annotations ? 10 : 0)",
        "pod['annotations'].map(k, k).size() + ('team' in pod.annotations ? 10 : 0)",
        "[1].map(pod, pod)",
        "pod.?annotations.orValue({'team': 'else'})",
        "pod.annotations.exists(k, k == 'other')",
    ];
    let vocabulary = vocabulary();
    for text in texts {
        let compile = || Expression::compile(text, &vocabulary).expect(text);
        let kept = compile();
        for pod in pods.iter().chain(&pods) {
            let facts = AnnotatedPod(Some(pod.clone()).filter(|pod| !pod.is_null()));
            let evaluator = || Evaluator::new(&vocabulary.params, &[], &facts);
            let (first, second) = (evaluator(), evaluator());
            assert_eq!(
                first.evaluate(&kept),
                second.evaluate(&compile()),
                "{text} {pod}"
            );
            assert_eq!(first.steps_left, second.steps_left, "{text} {pod}");
        }
    }
}

#[test]
fn entries_that_are_not_read_make_no_other_value() {
    let vocabulary = vocabulary();
    let expression = Expression::compile("pod.annotations[?'team'].orValue('')", &vocabulary);
    let expression = expression.expect("it is one");
    let found = |pod: Value| {
        let facts = AnnotatedPod(Some(pod));
        let evaluator = Evaluator::new(&vocabulary.params, &[], &facts);
        evaluator.found(&expression).expect("a value").remembered
    };
    let first = found(json!({"team": "shop", "name": "a"})).expect("it is kept");
    let same = found(json!({"team": "shop", "name": "b"})).expect("it is kept");
    let other = found(json!({"team": "store"})).expect("it is kept");
    assert!(Arc::ptr_eq(&first, &same) && !Arc::ptr_eq(&first, &other));
}
