use super::*;
use serde_json::json;

#[path = "expression_cost_tests.rs"]
mod cost_tests;

/// A pod of which expressions read `object`.
struct TestPod;

impl Facts for TestPod {
    fn fact(&self, root: &str, _: &str) -> Evaluated<Option<Value>> {
        Ok((root == "object").then(|| json!({"kind": "Deployment", "spec": {"replicas": 2}})))
    }
}

fn outcome(text: &str) -> Evaluated<ExpressionResult> {
    let vocabulary = Vocabulary::default();
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

fn list(length: usize) -> String {
    format!("[{}]", vec!["1"; length].join(","))
}

#[test]
fn the_length_is_bounded_in_characters() {
    let names = Vocabulary::default();
    let faults = Expression::compile(&"1+".repeat(9000), &names).expect_err("it is long");
    assert!(faults[0].problem.message.contains("longer than"));
    // Of bytes, this text has more.
    assert_eq!(value(&format!("size('{}')", "ä".repeat(9000))), json!(9000));
}

#[test]
fn a_long_expression_is_shown_by_its_beginning() {
    let message = outcome(&format!("1 + {}", list(1000)))
        .unwrap_err()
        .problem
        .message;
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
                fault.problem.message.contains("too long"),
                "{pattern}: {}",
                fault.problem.message
            ),
        }
    }
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

/// A pod by its annotations.
struct AnnotatedPod(Option<Value>);

impl Facts for AnnotatedPod {
    fn fact(&self, _: &str, field: &str) -> Evaluated<Option<Value>> {
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
    let vocabulary = Vocabulary::default();
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
    let vocabulary = Vocabulary::default();
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
