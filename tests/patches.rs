//! Patches of a policy have two executors that share no code: ours, which edits the text, and the `json-patch` crate,
//! which changes values. Random patches over texts of every style must come to the same.

use json_patch::Patch;
use podgraft_core::diagnostic::Code;
use podgraft_core::graft::{Options, PodTemplatePath, graft};
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::{Value, json};

/// A field of a resource of our own, in which nothing has a meaning.
const FREE: &str = "/spec/free";

const TEXTS: [&str; 4] = [
    "apiVersion: example.com/v1
kind: Fleet
metadata: {name: f}
spec:
  # what may change
  free:
    a: 1 # one
    # about b
    b:
      - x: 1
        yy: |
          some
          text
      - z: [1, 2, 3]

      - plain text
    c:
    - - 1
      - 2
    - {k: v, w: \"q\"}
    d: >-
      folded
      text
    e:
    f: {}
  template:
    spec:
      containers:
      - {name: app, image: a}
",
    "{\"apiVersion\": \"example.com/v1\", \"kind\": \"Fleet\", \"metadata\": {\"name\": \"f\"},
  \"spec\": {
    \"free\": {
      \"a\": 1,
      \"b\": [
        {\"x\": 1, \"yy\": \"t\"},
        {\"z\": [1, 2, 3]},
        \"plain\"
      ],
      \"c\": [[1, 2], {\"k\": \"v\"}],
      \"d\": {},
      \"e\": null
    },
    \"template\": {\"spec\": {\"containers\": [{\"name\": \"app\", \"image\": \"a\"}]}}
  }
}
",
    "apiVersion: example.com/v1
kind: Fleet
metadata: {name: f}
spec:
    template: {spec: {containers: [{name: app, image: a}]}}
    free: {a: 1, b: [{x: 1, yy: 'q'}, {z: [1, 2, 3]}, plain],
      c: [[1, 2], {k: v}], d: {}, e: ~}
",
    "apiVersion: example.com/v1\r
kind: Fleet\r
metadata: {name: f}\r
spec:\r
   template: {spec: {containers: [{name: app, image: a}]}}\r
   free:\r
      a: 1\r
      b:\r
         -  x: 1\r
            yy: \"t\"\r
         -  z:\r
               - 1\r
               - 2\r
               - 3\r
         -  plain\r
      c:\r
         -  - 1\r
            - 2\r
         -  k: v\r
      d: \"x\"",
];

/// xorshift64: the same patches in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("it is below a usize")
    }

    fn value(&mut self) -> Value {
        let values = [
            json!(7),
            json!("text"),
            json!("yes"),
            json!("a: b # c"),
            json!("two\nlines\n"),
            json!(true),
            json!([]),
            json!({}),
            json!([1, {"m": "n"}]),
            json!({"k": "v", "l": [1, [2]], "~/": {"deep": "1.0"}}),
        ];
        values[self.below(values.len())].clone()
    }

    /// The path of something below a value, or a place where something could be put.
    fn place(&mut self, value: &Value, path: &str) -> String {
        let go_on = self.below(3) > 0;
        let (key, inner) = match value {
            Value::Object(map) if go_on && !map.is_empty() => {
                let (key, inner) = map
                    .iter()
                    .nth(self.below(map.len()))
                    .expect("it is within the length");
                (key.replace('~', "~0").replace('/', "~1"), inner)
            }
            Value::Array(items) if go_on && !items.is_empty() => {
                let at = self.below(items.len());
                (at.to_string(), &items[at])
            }
            Value::Object(_) => return format!("{path}/new"),
            Value::Array(items) if self.below(2) == 0 => {
                return format!("{path}/{}", self.below(items.len() + 1));
            }
            Value::Array(_) => return format!("{path}/-"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return path.to_owned();
            }
        };
        let deeper = self.below(3) > 0;
        let path = format!("{path}/{key}");
        if deeper {
            self.place(inner, &path)
        } else {
            path
        }
    }

    fn operation(&mut self, value: &Value) -> Value {
        let free = value.pointer(FREE).unwrap_or(&Value::Null);
        let (path, from) = (self.place(free, FREE), self.place(free, FREE));
        match self.below(6) {
            0 | 1 => json!({"op": "add", "path": path, "value": self.value()}),
            2 => json!({"op": "replace", "path": path, "value": self.value()}),
            3 => json!({"op": "remove", "path": path}),
            4 => json!({"op": "move", "path": path, "from": from}),
            _ => json!({"op": "copy", "path": path, "from": from}),
        }
    }
}

fn object(text: &str) -> Value {
    let tree = parse(text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    to_value(&tree, tree.roots()[0]).unwrap_or_else(|error| panic!("{error:?} in\n{text}"))
}

/// Operations that fit one after the other, and what they come to.
fn random_patch(dice: &mut Dice, before: &Value) -> (Vec<Value>, Value) {
    let mut operations = vec![json!({"op": "test", "path": FREE, "value": before.pointer(FREE)})];
    let mut value = before.clone();
    for _ in 0..=dice.below(4) {
        let operation = dice.operation(&value);
        let patch: Patch = serde_json::from_value(json!([operation])).expect("it is an operation");
        let mut after = value.clone();
        let is_free =
            after.pointer(FREE).is_some() && operation["path"] != FREE && operation["from"] != FREE;
        if is_free && json_patch::patch(&mut after, &patch).is_ok() {
            operations.push(operation);
            value = after;
        }
    }
    (operations, value)
}

fn policy(operations: &[Value]) -> Vec<Policy> {
    let text = json!({
        "apiVersion": "podgraft.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": {"name": "p"},
        "spec": {"inject": {"patches": [{"patchType": "JSONPatch", "scope": "Workload", "patch": operations}]}},
    });
    let (policies, problems) = read(
        vec![PolicyFile {
            name: "p.json".into(),
            text: text.to_string(),
        }],
        &[],
    );
    assert!(problems.is_empty(), "{problems:?} in {text}");
    policies
}

fn options() -> Options {
    let path = vec!["spec".to_owned(), "template".to_owned()];
    let fleet = PodTemplatePath {
        api_version: "example.com/v1".to_owned(),
        kind: "Fleet".to_owned(),
        path,
    };
    Options {
        no_marker: true,
        patches: true,
        pod_templates: vec![fleet],
        ..Options::default()
    }
}

#[test]
fn text_and_values_are_patched_alike() {
    let rounds = std::env::var("PATCHES")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(1500);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut edited, mut refused) = (0, 0);
    for round in 0..rounds {
        let text = TEXTS[round % TEXTS.len()];
        let before = object(text);
        let (operations, wanted) = random_patch(&mut dice, &before);
        if wanted == before {
            continue;
        }
        let report = graft(
            &"in.yaml".into(),
            text.as_bytes(),
            &policy(&operations),
            &options(),
        );
        let context = || format!("{operations:?} on\n{text}\n{:?}", report.diagnostics);
        if report.diagnostics.iter().any(|problem| problem.is_error()) {
            // What cannot be written safely may be refused, and nothing else.
            assert!(
                report
                    .diagnostics
                    .iter()
                    .all(|problem| problem.code == Code::CannotEdit),
                "{}",
                context()
            );
            refused += 1;
            continue;
        }
        let output =
            String::from_utf8(splice(text.as_bytes(), &report.edits)).expect("edits are text");
        assert_eq!(object(&output), wanted, "{}\n{output}", context());
        let mut by_plan = before.clone();
        let plan = report.workloads[0]
            .patch
            .as_ref()
            .expect("it was asked for");
        json_patch::patch(&mut by_plan, plan)
            .unwrap_or_else(|error| panic!("{error}: {plan:?} for {}", context()));
        assert_eq!(by_plan, wanted, "{plan:?} for {}", context());
        edited += 1;
    }
    assert!(
        edited > rounds / 2 && refused < rounds / 20,
        "{edited} edited, {refused} refused of {rounds}"
    );
}

/// Grafts a Deployment with a container `a` by two policies, `p0` and `p1`, with these `inject` and `variables` words.
fn refusals(first: &str, second: &str) -> Vec<Code> {
    let policy = |name: &str, words: &str| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: {name}}}\nspec: {{{words}}}\n"
        )
    };
    let text = [policy("p0", first), policy("p1", second)].join("---\n");
    let file = PolicyFile {
        name: "p.yaml".into(),
        text,
    };
    let (policies, problems) = read(vec![file], &[]);
    assert!(problems.is_empty(), "{problems:?}");
    let manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a, image: i}]}}}\n";
    let report = graft(
        &"in.yaml".into(),
        manifest.as_bytes(),
        &policies,
        &Options::default(),
    );
    let problems = report.diagnostics.into_iter();
    problems.map(|problem| problem.code).collect()
}

/// A variable that one policy removes and another one sets has another position after a second run. That is so with and
/// without a patch, and no fault of the patch.
#[test]
fn a_patch_is_not_blamed_for_what_two_policies_do_to_each_other() {
    let patch = "patches: [{patchType: JSONPatch, scope: PodTemplate, patch: [{op: add, path: /spec/priorityClassName, value: high}]}]";
    let removal = "env: [{name: A, op: Remove}]";
    let setting = "env: [{name: A, value: x}, {name: B, value: z}]";
    for (first, second) in [("", ""), ("", patch), (patch, ""), (patch, patch)] {
        let first = format!("inject: {{{removal}, {first}}}");
        let second = format!("inject: {{{setting}, {second}}}");
        assert_eq!(refusals(&first, &second), [], "{second}");
    }
    // A value that grows with each run is refused all the same.
    let grows = "onConflict: Replace, inject: {env: [{name: A, value: x}, {name: B, value: z}], podSpec: {terminationGracePeriodSeconds: \
                 '${pod.spec.?terminationGracePeriodSeconds.orValue(30) + 1}'}}";
    let first = format!("inject: {{{removal}}}");
    assert_eq!(refusals(&first, grows), [Code::NotIdempotent]);
}
