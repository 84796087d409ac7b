//! Characters that some YAML readers take for line breaks or refuse, put into scalars of every style: they are written as
//! escapes in double quotes, and undo gives the old scalar back.

use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::policy::Policy;
use podgraft_core::yaml::ambiguity::{TextPosition, find_ambiguity};
use podgraft_core::yaml::parse::{parse, parse_with_granit};
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::{Value, json};

use crate::promises;

/// Line breaks of YAML 1.1, a byte order mark, control characters, what is no character, and what nobody sees.
const CHARACTERS: [char; 13] = [
    '\0', '\u{1}', '\u{8}', '\u{b}', '\u{1b}', '\u{7f}', '\u{85}', '\u{200b}', '\u{202e}',
    '\u{2028}', '\u{2029}', '\u{feff}', '\u{ffff}',
];

/// A variable with the value `q` in each style, in block style or in brackets.
const STYLES: [&str; 11] = [
    "- name: T\n      value: q\n",
    "- name: T\n      value: 'q'\n",
    "- name: T\n      value: \"q\"\n",
    "- name: T\n      value: |-\n        q\n",
    "- name: T\n      value: |\n        q\n",
    "- name: T\n      value: |+\n        q\n\n",
    "- name: T\n      value: >\n        q\n",
    "- name: T\n      value: >-\n        q\n        r\n",
    "- {name: T, value: q}\n",
    "- {name: T, value: 'q'}\n",
    "- {name: T, value: \"q\"}\n",
];

fn inputs() -> Vec<String> {
    let head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: a\n    image: x\n    env:\n    ";
    let blocks: Vec<String> = STYLES
        .iter()
        .map(|style| format!("{head}{style}"))
        .collect();
    let windows = blocks.iter().map(|text| text.replace('\n', "\r\n"));
    let tree = parse(&blocks[0]).expect("it is YAML");
    let value = to_value(&tree, tree.roots()[0]).expect("it has a value");
    let json = [format!("{value}\n"), format!("{value:#}\n")];
    windows.chain(json).chain(blocks.iter().cloned()).collect()
}

fn policy(op: &str, value: &str) -> Vec<Policy> {
    let policy = json!({
        "apiVersion": "podgraft.dev/v1alpha1",
        "kind": "InjectionPolicy",
        "metadata": {"name": "new"},
        "spec": {
            "onConflict": "Replace",
            "inject": {"env": [{"name": "T", "op": op, "value": value}]},
        },
    });
    let escape = |char: char| match char {
        ' '..='~' => char.to_string(),
        _ => format!("\\u{:04x}", u32::from(char)),
    };
    let text: String = policy.to_string().chars().map(escape).collect();
    promises::policies(&text).unwrap_or_else(|why| panic!("{why:?}\n{text}"))
}

fn applied(text: &str, policies: &[Policy], options: Options) -> String {
    let report = graft(&"input.yaml".into(), text.as_bytes(), policies, &options);
    assert!(
        promises::errors(&report).is_empty(),
        "{:?}\n{text}",
        report.diagnostics
    );
    String::from_utf8(splice(text.as_bytes(), &report.edits)).expect("text in text is text")
}

fn variable(text: &str) -> Value {
    let trees = [parse(text), parse_with_granit(text)];
    let [value, other] = trees.map(|tree| {
        let tree = tree.unwrap_or_else(|why| panic!("{why:?}\n{text}"));
        let pod = to_value(&tree, tree.roots()[0]).expect("it has a value");
        pod["spec"]["containers"][0]["env"][0]["value"].clone()
    });
    assert_eq!(value, other, "{text}");
    value
}

fn examine(input: &str, policies: &[Policy], added: &str) {
    let recording = Options {
        record: true,
        ..Options::default()
    };
    let output = applied(input, policies, recording);
    let value = variable(&output);
    let value = value.as_str().expect("it is a string");
    assert!(value.contains(added), "{value:?} in\n{output}");
    assert_eq!(
        find_ambiguity(&output, TextPosition::Start),
        None,
        "{output:?}"
    );
    assert!(!output.contains(CHARACTERS), "{output:?}");
    let undoing = Options {
        take_out: RemovalSelection::All,
        ..Options::default()
    };
    assert_eq!(applied(&output, &[], undoing), input);
}

#[test]
fn each_style_takes_each_character_as_an_escape() {
    let inputs = inputs();
    for char in CHARACTERS {
        for (op, added) in [
            ("Append", format!("a{char}b")),
            ("Prepend", format!("a{char}b")),
            ("MergeKeys", format!("a={char}b")),
            ("Set", format!("a{char}b")),
            ("Set", format!("{char}q")),
        ] {
            let policies = policy(op, &added);
            for input in &inputs {
                examine(input, &policies, &added);
            }
        }
    }
}
