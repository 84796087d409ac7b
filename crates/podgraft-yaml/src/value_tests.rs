use super::*;
use crate::parse::parse;
use serde_json::json;

fn value(text: &str) -> Result<Value, ValueErrorKind> {
    let tree = parse(text).unwrap();
    to_value(&tree, tree.roots()[0]).map_err(|error| error.kind)
}

#[test]
fn plain_scalars_are_typed_and_quoted_ones_are_strings() {
    let text = "a: 1\nb: '1'\nc: yes\nd:\ne: |\n  x\nf: [~, 1.5]\n8080: http\n";
    let wanted = json!({"a": 1, "b": "1", "c": true, "d": null, "e": "x\n", "f": [null, 1.5], "8080": "http"});
    assert_eq!(value(text).unwrap(), wanted);
}

#[test]
fn aliases_and_merge_keys_are_followed_and_own_keys_win() {
    let text = "base: &b {one: 1, two: 2}\nmore: &m {two: 3, three: 4}\na:\n  <<: [*b, *m]\n  one: 9\nb: *b\n";
    let value = value(text).unwrap();
    assert_eq!(value["a"], json!({"two": 2, "three": 4, "one": 9}));
    assert_eq!(value["b"], json!({"one": 1, "two": 2}));
}

#[test]
fn standard_tags_are_honoured_and_others_refused() {
    assert_eq!(
        value("[!!str 1, !!int '2', !!bool yes, !!float 1, ! 5]").unwrap(),
        json!(["1", 2, true, 1.0, "5"])
    );
    assert_eq!(
        value("a: !!binary aGk="),
        Err(ValueErrorKind::BadTag("binary".into()))
    );
    assert_eq!(
        value("a: !secret x"),
        Err(ValueErrorKind::BadTag("!secret".into()))
    );
    assert_eq!(
        value("a: !!int x"),
        Err(ValueErrorKind::BadTag("int".into()))
    );
    assert_eq!(
        value("!!seq {a: 1}"),
        Err(ValueErrorKind::BadTag("seq".into()))
    );
}

#[test]
fn a_duplicate_key_is_an_error_at_the_second() {
    let tree = parse("a: 1\nb: 2\n\"a\": 3\n").unwrap();
    let error = to_value(&tree, tree.roots()[0]).unwrap_err();
    assert_eq!(
        error,
        ValueError {
            at: 10..13,
            kind: ValueErrorKind::DuplicateKey("a".into(), 0..1)
        }
    );
}

#[test]
fn expansions_without_end_are_refused() {
    // An alias within its own anchor does not get past the parser.
    assert!(parse("a: &a [*a]").is_err());
    assert!(parse("a: &a\n  <<: *a\n").is_err());
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    let mut chain = String::from("a0: &a0 [x]\n");
    for level in 1..300 {
        let before = level - 1;
        chain.push_str(&format!("a{level}: &a{level} [*a{before}]\n"));
        let aliases = vec![format!("*a{before}"); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert_eq!(value(&bomb), Err(ValueErrorKind::TooLarge));
    assert_eq!(value(&chain), Err(ValueErrorKind::TooDeep));
}

#[test]
fn merge_keys_that_multiply_are_searched_once() {
    let mut text = String::from("a0: &a0 {x: 1}\n");
    for level in 1..200 {
        let before = level - 1;
        text.push_str(&format!(
            "a{level}: &a{level} {{<<: [*a{before}, *a{before}]}}\n"
        ));
    }
    let tree = parse(&text).unwrap();
    let found = find(&tree, tree.roots()[0], &Path::of(&["a199", "nothing"]));
    assert_eq!(tree.slice(found.key.unwrap()), "a199");
}

#[test]
fn a_path_is_found_through_aliases_and_merge_keys() {
    let text = "base: &b\n  list: [1, {x: here}]\nuse:\n  <<: *b\n";
    let tree = parse(text).unwrap();
    let path = Path::of(&["use", "list"]).index(1).key("x");
    let found = find(&tree, tree.roots()[0], &path);
    assert_eq!(tree.slice(found.value), "here");
    assert_eq!(found.key.map(|key| tree.slice(key)), Some("x"));
    let missing = find(&tree, tree.roots()[0], &Path::of(&["use", "nothing"]));
    assert_eq!(tree.slice(missing.key.unwrap()), "use");
}
