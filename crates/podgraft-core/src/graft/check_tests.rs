//! The last check sees every wrong edit: whatever else comes of the text than the values that were planned is refused.

use serde_json::{Value, json};

use super::*;
use crate::edit::{TextCache, lower};
use crate::plan::reconcile::reconcile;
use crate::yaml::parse::{parse, parse_with_granit};
use crate::yaml::value::to_value;

const TEXTS: [&str; 5] = [
    "kind: Pod\nmetadata:\n  name: a # one\nspec:\n  containers:\n  - name: app\n    env:\n    - {name: A, value: '1'}\n    args: [x, \"y\"]\n",
    "# all of it\n\nkind: Pod\nmetadata: {name: a}\nspec:\n    containers:\n        - name: app\n          env: []\n          script: |\n            a\n\n            b\n          last: >-\n            c\n            d\n",
    "{\n  \"kind\": \"Pod\",\n  \"metadata\": {\"name\": \"a\"},\n  \"spec\": {\"containers\": [{\"name\": \"app\", \"n\": 1.5}]}\n}\n",
    "kind: Pod\r\nmetadata:\r\n  name: &n a\r\n  other: *n\r\nspec:\r\n  containers:\r\n  - name: !!str app\r\n    no:\r\n",
    "kind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  -\n    name: app\n    deep:\n    - - 1\n      - 2\n    - \n      k: v",
];

fn values(text: &str) -> Option<Vec<Value>> {
    let tree = parse_with_granit(text).ok()?;
    tree.roots()
        .iter()
        .map(|&root| to_value(&tree, root).ok())
        .collect()
}

/// What a policy might want: new fields, a new item in front, a longer list, another text.
fn planned(object: &Value) -> Value {
    let mut planned = object.clone();
    planned["metadata"]["labels"] = json!({"own": "yes", "n": "1"});
    planned["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    planned["kind"] = json!("Pods");
    planned["spec"]["containers"][0]["env"] =
        json!([{"name": "B", "value": "two\nlines\n"}, {"name": "A", "value": "1"}]);
    planned
}

/// Every way to get one edit wrong: a place before or behind, a byte more or less taken out, left out, made twice; every
/// byte of its text left out, doubled, or another.
fn wrong(edits: &[Edit], text: &str) -> Vec<Vec<Edit>> {
    let mut all = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let mut add = |wrong: Option<Edit>| {
            let wrong = wrong.into_iter().filter(|wrong| {
                wrong.at.start <= wrong.at.end
                    && text.is_char_boundary(wrong.at.start)
                    && text.is_char_boundary(wrong.at.end)
            });
            all.push(
                edits[..at]
                    .iter()
                    .cloned()
                    .chain(wrong)
                    .chain(edits[at + 1..].iter().cloned())
                    .collect(),
            );
        };
        let with = |range: std::ops::Range<usize>, text: String| {
            Some(Edit {
                at: range,
                text: text.into(),
            })
        };
        let (start, end, written) = (edit.at.start, edit.at.end, &*edit.text);
        add(None);
        add(with(start..end, written.repeat(2)));
        for by in 1..12 {
            add(with(
                start.saturating_sub(by)..end.saturating_sub(by),
                written.into(),
            ));
            add(with(start + by..end + by, written.into()));
            add(with(start.saturating_sub(by)..end, written.into()));
            add(with(start..end + by, written.into()));
        }
        for byte in 0..written.len() {
            let (head, tail) = (&written[..byte], &written[byte + 1..]);
            add(with(start..end, format!("{head}{tail}")));
            for instead in ["x", " ", "\n", "#", "-"] {
                add(with(start..end, format!("{head}{instead}{tail}")));
                add(with(
                    start..end,
                    format!("{head}{instead}{}", &written[byte..]),
                ));
            }
        }
    }
    all
}

/// Every place of the text that no edit speaks of: a byte taken out or put in there beside the right edits.
fn strays(edits: &[Edit], text: &str) -> Vec<Vec<Edit>> {
    let mut all = Vec::new();
    for at in 0..text.len() {
        for (end, put) in [
            (at + 1, ""),
            (at, "x"),
            (at, " "),
            (at, "\n"),
            (at + 1, "y"),
            (at, "#"),
            (at, "- "),
            (at, ",z"),
            (at, ", q: z"),
        ] {
            let stray = Edit {
                at: at..end,
                text: put.into(),
            };
            all.push(edits.iter().cloned().chain([stray]).collect());
        }
    }
    all
}

fn is_splice(edits: &mut [Edit], text: &str) -> bool {
    edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    edits.iter().all(|edit| edit.at.end <= text.len())
        && edits.windows(2).all(|two| two[0].at.end <= two[1].at.start)
}

#[test]
fn every_wrong_edit_is_seen() {
    let (mut right, mut refused) = (0, 0);
    for text in TEXTS {
        let tree = parse(text).expect("it is YAML");
        let source = Source::new("input.yaml", text);
        let root = tree.roots()[0];
        let before = to_value(&tree, root).expect("it has values");
        let planned = planned(&before);
        let mut draft = Draft::new(&tree, root);
        reconcile(&mut draft, &[], &before, &planned).expect("it may be edited");
        let edits = lower(&draft, root, &mut TextCache::default()).expect("it can be written");
        let drafts = [(root, draft)];
        let found = |edits: &[Edit]| check(&tree, &source, &drafts, edits, &[]);
        assert_eq!(found(&edits), None, "{text}");
        for mut others in wrong(&edits, text).into_iter().chain(strays(&edits, text)) {
            if !is_splice(&mut others, text) {
                continue;
            }
            let edited = splice_text(text, &others);
            if values(&edited).is_some_and(|values| values == [planned.clone()]) {
                right += 1;
                continue;
            }
            let problem =
                found(&others).unwrap_or_else(|| panic!("not seen: {others:?}\n{edited}"));
            assert_eq!(problem.code, Code::Internal);
            refused += 1;
        }
    }
    assert!(
        right > 100 && refused > 10_000,
        "{right} came to the same values, {refused} were refused"
    );
}
