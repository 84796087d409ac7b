use super::*;
use crate::policy::expression::NoFacts;
use serde_json::json;

fn vocabulary() -> Vocabulary {
    let given = [
        ("port", Some("9404")),
        ("image", Some("a/b:1")),
        ("dollar", Some("x$")),
        ("empty", None),
    ];
    let params = given
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.map(str::to_owned)))
        .collect();
    Vocabulary {
        params,
        ..Vocabulary::default()
    }
}

fn filled(text: &str) -> Value {
    let vocabulary = vocabulary();
    let template =
        Template::parse(text, &vocabulary).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    match template.evaluate(&Evaluator::new(&vocabulary.params, &[], &NoFacts)) {
        Ok(ExpressionResult::Value(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

fn evaluation_fault(text: &str) -> String {
    let vocabulary = vocabulary();
    let template = Template::parse(text, &vocabulary).expect(text);
    template
        .evaluate(&Evaluator::new(&vocabulary.params, &[], &NoFacts))
        .unwrap_err()
        .message
}

#[test]
fn expressions_are_put_in() {
    assert_eq!(filled("${params.image}"), json!("a/b:1"));
    assert_eq!(
        filled("-x=${params.port}:${ params.port }/c"),
        json!("-x=9404:9404/c")
    );
    assert_eq!(filled("${'}' + \"{\"}"), json!("}{"));
    assert_eq!(filled("n${1 + 1}${true}"), json!("n2true"));
}

#[test]
fn a_whole_expression_keeps_its_type() {
    assert_eq!(filled("${int(params.port)}"), json!(9404));
    assert_eq!(
        filled("${{'b': 1, 'a': [true]}}"),
        json!({"a": [true], "b": 1})
    );
}

#[test]
fn a_doubled_dollar_writes_the_literal_text() {
    assert_eq!(filled("$${HOME}/${params.port}"), json!("${HOME}/9404"));
    assert_eq!(filled("$(VAR) {{ x }} $${a"), json!("$(VAR) {{ x }} ${a"));
}

#[test]
fn a_value_that_ends_in_a_dollar_escapes_nothing() {
    assert_eq!(filled("${params.dollar}${params.dollar}"), json!("x$x$"));
}

#[test]
fn nothing_is_never_written_as_text() {
    assert!(evaluation_fault("${null}").contains("is null"));
    assert!(evaluation_fault("a${{'a': 1}.?b}").contains("nothing in it"));
    assert!(evaluation_fault("a${[1]}").contains("a list or a mapping"));
}

#[test]
fn a_parameter_without_a_value_is_an_error_where_it_is_used() {
    let faults = Template::parse("${params.empty}", &vocabulary()).unwrap_err();
    assert_eq!(faults[0].code, Code::BadParam);
}

#[test]
fn a_whole_expression_is_one_pair_of_braces() {
    assert!(is_whole_expression("${params.x}"));
    assert!(is_whole_expression("${{'a': 1}}"));
    for text in ["${a}${b}", "x${a}", "${a} ", "$${a}", "${a", ""] {
        assert!(!is_whole_expression(text), "{text}");
    }
}

#[test]
fn every_text_of_a_value_has_its_path() {
    let value = json!({"a": ["${params.port}", 1], "${params.port}": {"b": "${nope}"}});
    let found = texts(&value, &Path::of(&["inject"]));
    let found: Vec<(String, &str)> = found
        .iter()
        .map(|(path, text)| (path.to_string(), text.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("inject.a[0]".into(), "${params.port}"),
            ("inject.${params.port}.b".into(), "${nope}")
        ]
    );
}
