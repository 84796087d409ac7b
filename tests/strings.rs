//! All short strings of small alphabets, each put in the place of each other: in variables, annotations, images and by
//! patches, in every style in which the old one can be written. The result has the new value, a second run finds nothing
//! to do, and undo gives the bytes back.
//!
//! `STRINGS=4 cargo test --release --test integration strings::` looks at strings of up to four characters.

use std::env;
use std::sync::Arc;

use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::yaml::parse::parse_with_granit;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::{Value, json};

use crate::promises;

/// Digits that overlap with themselves, blanks and lines, quotes, escapes, what begins or ends other things, spellings of
/// numbers, what separates keys and values, brackets, references, and signs that no plain text begins with.
const ALPHABETS: [&str; 13] = [
    "08", "1a.", "a ", "a\n", "'\"a", "\\n", ":# ", "é-a", "0x_", "=,a", "{}]", "&*!", "$()",
];

fn strings(alphabet: &str, longest: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let until = all.len();
        for at in from..until {
            for sign in alphabet.chars() {
                all.push(format!("{}{sign}", all[at]));
            }
        }
        from = until;
    }
    all.split_off(1)
}

fn double(text: &str) -> String {
    Value::from(text).to_string()
}

fn single(text: &str) -> String {
    match text.contains('\n') {
        true => double(text),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

/// Plain where that is the same text.
fn plain(text: &str) -> String {
    let alone = format!("k: {text}\n");
    let is_same = parse_with_granit(&alone).is_ok_and(|tree| {
        let read = tree.roots().first().map(|&root| to_value(&tree, root));
        matches!(read, Some(Ok(value)) if value == json!({ "k": text }))
    });
    if is_same {
        text.to_owned()
    } else {
        single(text)
    }
}

/// A block, where the text can be one.
fn block(text: &str, sign: char, column: usize) -> String {
    let body = text.trim_end_matches('\n');
    let is_clear = !body.starts_with([' ', '\n']) && !body.is_empty();
    if !is_clear || sign == '>' && body.contains('\n') {
        return double(text);
    }
    let chomping = match text.len() - body.len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let room = " ".repeat(column);
    let lines = |body: &str| {
        body.split('\n')
            .map(|line| format!("{room}{line}"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let body = if sign == '>' && is_foldable(body) {
        lines(&body.replace(' ', "\n"))
    } else {
        lines(body)
    };
    format!(
        "{sign}{chomping}\n{body}{}",
        "\n".repeat((text.len() - text.trim_end_matches('\n').len()).saturating_sub(1))
    )
}

fn is_foldable(text: &str) -> bool {
    !text.contains("  ") && !text.ends_with(' ') && !text.starts_with(' ')
}

/// In double quotes over several lines, with an escape for the first character.
fn folded_in_quotes(text: &str) -> String {
    let Some(first) = text.chars().next().filter(char::is_ascii_alphanumeric) else {
        return double(text);
    };
    let rest = double(&text[1..]);
    let rest = if is_foldable(text) {
        rest.replace(' ', "\n        ")
    } else {
        rest
    };
    format!("\"\\x{:02x}{}", u32::from(first), &rest[1..])
}

/// The string as a tag, where it can be one.
fn image_of(text: &str) -> String {
    let is_tag = text
        .chars()
        .all(|sign| sign.is_ascii_alphanumeric() || sign == '.');
    let tag = if is_tag { text } else { "none" };
    format!("registry.example.com/app:1{tag}")
}

fn pod(name: usize, old: &str) -> String {
    let (double, single, plain) = (double(old), single(old), plain(old));
    let image = image_of(old);
    let (literal, folded) = (block(old, '|', 6), block(old, '>', 6));
    let quoted = folded_in_quotes(old);
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: p{name}
  annotations:
    example.com/plain: {plain}
    example.com/single: {single}
spec:
  containers:
  - name: app
    image: {image}
    command:
    - {literal}
    - {folded}
    - {quoted}
    - {plain}
    env:
    - name: DOUBLE
      value: {double}
    - name: FLOW
      value: {plain}
    - {{name: BRACKETS, value: {single}}}
    - name: APPENDED
      value: {literal_of_env}
    - name: PREPENDED
      value: {double}
",
        literal_of_env = block(old, '|', 8),
    )
}

fn policy(new: &str) -> Vec<Policy> {
    let set = |name: &str| json!({"name": name, "value": new});
    let joined = |name: &str, op: &str| json!({"name": name, "op": op, "value": new});
    let replace =
        |at: usize| json!({"op": "replace", "path": format!("/command/{at}"), "value": new});
    let image = image_of(new);
    let mut operations: Vec<Value> = (0..4).map(replace).collect();
    operations.push(json!({"op": "replace", "path": "/image", "value": image}));
    let policy = json!({
        "apiVersion": "podgraft.dev/v1alpha1",
        "kind": "InjectionPolicy",
        "metadata": {"name": "new"},
        "spec": {
            "onConflict": "Replace",
            "inject": {
                "podAnnotations": {"example.com/plain": new, "example.com/single": new},
                "env": [
                    set("DOUBLE"), set("FLOW"), set("BRACKETS"),
                    joined("APPENDED", "Append"), joined("PREPENDED", "Prepend"),
                ],
                "patches": [{"patchType": "JSONPatch", "scope": "Container", "patch": operations}],
            },
        },
    });
    promises::policies(&policy.to_string()).unwrap_or_else(|why| panic!("{why:?}\n{policy}"))
}

fn run(text: &str, policies: &[Policy], options: Options) -> FileReport {
    let options = Options {
        pod_templates: Vec::new(),
        ..options
    };
    graft(
        &Arc::from("input.yaml"),
        text.as_bytes(),
        policies,
        &options,
    )
}

fn applied(
    text: &str,
    policies: &[Policy],
    options: Options,
    step: &str,
) -> Result<String, String> {
    let report = run(text, policies, options);
    if let Some(problem) = promises::errors(&report).first() {
        return Err(format!("{step}: {problem:?}\n{text}"));
    }
    Ok(String::from_utf8(splice(text.as_bytes(), &report.edits)).expect("text in text is text"))
}

/// What must come out, value by value.
fn look_at(text: &str, new: &str) -> Result<(), String> {
    let tree = parse_with_granit(text).map_err(|why| format!("{why:?}\n{text}"))?;
    for &root in tree.roots() {
        let pod = to_value(&tree, root).map_err(|why| format!("{why:?}\n{text}"))?;
        let container = &pod["spec"]["containers"][0];
        let at = |pointer: &str| pod.pointer(pointer).cloned().unwrap_or_default();
        let mut found = vec![
            at("/metadata/annotations/example.com~1plain"),
            at("/metadata/annotations/example.com~1single"),
        ];
        found.extend((0..4).map(|at| container["command"][at].clone()));
        found.extend((0..3).map(|at| container["env"][at]["value"].clone()));
        if found.iter().any(|found| found != new) || container["image"] != image_of(new) {
            return Err(format!("not {new:?} everywhere in\n{text}"));
        }
    }
    Ok(())
}

fn examine(text: &str, new: &str, policies: &[Policy]) -> Result<(), String> {
    let output = applied(text, policies, Options::default(), "applied")?;
    look_at(&output, new)?;
    let again = applied(&output, policies, Options::default(), "applied again")?;
    if again != output {
        return Err(format!("not the same again\n{output}\n{again}"));
    }
    let recording = Options {
        record: true,
        ..Options::default()
    };
    let recorded = applied(text, policies, recording, "applied with a record")?;
    let undoing = Options {
        take_out: RemovalSelection::All,
        ..Options::default()
    };
    let undone = applied(&recorded, &[], undoing, "undone")?;
    match undone == text {
        true => Ok(()),
        false => Err(format!("undone to\n{undone}\nfrom\n{recorded}\nof\n{text}")),
    }
}

/// Whether a text has a `$(X)`: it is refused where no variable has that name.
fn refers(text: &str) -> bool {
    let Some((_, after)) = text.split_once('$') else {
        return false;
    };
    match after.strip_prefix('(') {
        Some(inner) if inner.find(')').is_some_and(|at| at > 0) => true,
        _ => refers(after.strip_prefix('$').unwrap_or(after)),
    }
}

#[test]
fn a_reference_has_a_name_and_is_not_escaped() {
    let referring = ["$($)", "$(()", "a$(b)", "$$$(b)"];
    assert!(referring.iter().all(|text| refers(text)));
    let plain = ["$()", "$(", "$$(b)", "(b)", "$"];
    assert!(!plain.iter().any(|text| refers(text)));
}

#[test]
fn each_short_string_takes_the_place_of_each_other() {
    let longest = env::var("STRINGS").map_or(2, |text| text.parse().expect("a number"));
    let (mut pairs, mut wrong) = (0, Vec::new());
    for alphabet in ALPHABETS {
        // What overlaps with itself needs room.
        let longest = if ["08", "a "].contains(&alphabet) {
            longest.max(4)
        } else {
            longest
        };
        let all = strings(alphabet, longest);
        let pods: Vec<String> = all.iter().zip(0..).map(|(old, at)| pod(at, old)).collect();
        let whole = pods.join("---\n");
        for new in all.iter().filter(|new| !refers(new)) {
            pairs += all.len();
            let policies = policy(new);
            if examine(&whole, new, &policies).is_err() {
                let each = all.iter().zip(&pods).filter_map(|(old, pod)| {
                    let why = examine(pod, new, &policies).err()?;
                    Some(format!("{old:?} to {new:?}: {why}"))
                });
                wrong.extend(each);
            }
        }
    }
    eprintln!("{pairs} pairs in ten places each, {} wrong", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    assert!(pairs > 1000, "hardly anything was looked at");
}
