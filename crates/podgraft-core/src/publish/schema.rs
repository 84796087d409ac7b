//! JSON Schemas of podgraft's kinds, in draft-07, which all editors support.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use crate::policy::builtin::{for_resources, kinds_of_resources};
use crate::policy::native::checks::NOT_IN_POD_SPEC;
use crate::policy::native::source::with_metadata;
use crate::policy::stored_schemas::{
    CONFIG, Definitions, FUNCTION, INJECTION_POLICY, INSTRUMENTATION, POLICY_TEST,
};
use crate::yaml::parse::parse;
use crate::yaml::value::to_value;

/// The prefix of references to definitions.
const DEFINITIONS: &str = "#/definitions/";

/// The definition for `${...}`, which may stand for values under `inject` that are not strings.
const EXPRESSION: &str = "Expression";

/// A kind with a published schema.
#[derive(Debug, Clone, Copy)]
pub struct PublishedKind {
    /// The apiVersion, such as `podgraft.dev/v1alpha1`.
    pub api_version: &'static str,
    /// The kind, such as `InjectionPolicy`.
    pub kind: &'static str,
    definitions: &'static Definitions,
}

impl PublishedKind {
    const fn of(kind: &'static str, definitions: &'static Definitions) -> Self {
        PublishedKind {
            api_version: "podgraft.dev/v1alpha1",
            kind,
            definitions,
        }
    }
}

/// All kinds with a published schema.
pub const KINDS: &[PublishedKind] = &[
    PublishedKind::of(POLICY_KIND, &INJECTION_POLICY),
    PublishedKind::of("Config", &CONFIG),
    PublishedKind::of("PodgraftFunction", &FUNCTION),
    PublishedKind::of("PolicyTest", &POLICY_TEST),
    PublishedKind {
        api_version: "opentelemetry.io/v1alpha1",
        ..PublishedKind::of("Instrumentation", &INSTRUMENTATION)
    },
];

const POLICY_KIND: &str = "InjectionPolicy";

impl PublishedKind {
    /// The schema. Unknown fields are errors.
    pub fn schema(&self) -> Value {
        let mut schema = match self.kind {
            POLICY_KIND => injection_policy(),
            _ => draft_07(self.definitions),
        };
        close(&mut schema);
        schema["properties"]["apiVersion"] = json!({"const": self.api_version});
        schema["properties"]["kind"] = json!({"const": self.kind});
        schema["title"] = json!(self.kind);
        schema
    }
}

/// The kind of a name, ignoring case.
pub fn find(kind: &str) -> Option<&'static PublishedKind> {
    KINDS
        .iter()
        .find(|published| published.kind.eq_ignore_ascii_case(kind))
}

/// The schema of the resources of a built-in policy, by their kind, ignoring case.
pub fn of_resources(kind: &str) -> Option<Value> {
    let mut kinds = kinds_of_resources();
    let (group, kind) = kinds.find(|(_, name)| name.eq_ignore_ascii_case(kind))?;
    let tree = parse(for_resources(group, kind)?.text).ok()?;
    let policy = to_value(&tree, *tree.roots().first()?).ok()?;
    let mut schema = with_metadata(policy.pointer("/spec/source/schema/openAPIV3Schema")?);
    close(&mut schema);
    schema["properties"]["apiVersion"] = json!({"type": "string", "pattern": format!("^{group}/")});
    schema["properties"]["kind"] = json!({"const": kind});
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(kind);
    Some(schema)
}

/// The first definition of a file as a draft-07 schema with all others in `definitions`.
pub(super) fn draft_07(definitions: &'static Definitions) -> Value {
    let mut named = definitions
        .names()
        .map(|name| (name.to_owned(), definitions.get(name).clone()));
    let mut schema = named.next().map(|(_, root)| root).unwrap_or_default();
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["definitions"] = Value::Object(named.collect());
    refer_as_draft_07(&mut schema);
    schema
}

/// Moves each `$ref` with siblings into `allOf`: in draft-07 the siblings of a `$ref` are ignored.
fn refer_as_draft_07(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(refer_as_draft_07);
            if let Some(Value::String(name)) = map.get_mut("$ref") {
                *name = name.replacen("#/$defs/", DEFINITIONS, 1);
                if map.len() > 1 {
                    let reference = map.swap_remove("$ref");
                    map.insert("allOf".to_owned(), json!([{"$ref": reference}]));
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer_as_draft_07),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schema of a policy before unknown fields are forbidden, and without fields that have their own key in `inject`
/// instead of `podSpec`.
pub(super) fn policy_types() -> Value {
    let mut schema = draft_07(&INJECTION_POLICY);
    if let Some(fields) = schema
        .pointer_mut("/definitions/PartOfPodSpec/properties")
        .and_then(Value::as_object_mut)
    {
        fields.retain(|key, _| {
            !NOT_IN_POD_SPEC
                .iter()
                .any(|(forbidden, _)| forbidden == key)
        });
    }
    schema
}

fn injection_policy() -> Value {
    let mut schema = policy_types();
    let mut within = BTreeSet::new();
    // Filters of containers also take `${...}`: they are evaluated for each resource of a `source`.
    for evaluated in ["Inject", "Containers"] {
        reach(evaluated, &schema, &mut within);
    }
    if let Some(definitions) = schema["definitions"].as_object_mut() {
        for (_, definition) in definitions
            .iter_mut()
            .filter(|(name, _)| within.contains(*name))
        {
            take_expressions(definition);
        }
        let text = "A CEL expression; its value takes this place.";
        let expression =
            json!({"type": "string", "pattern": r"^\$\{[\s\S]*\}$", "description": text});
        definitions.insert(EXPRESSION.to_owned(), expression);
    }
    schema
}

/// The name of the definition in a `$ref`.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)
}

/// Collects the names of all definitions that are reachable from one.
fn reach(name: &str, schema: &Value, found: &mut BTreeSet<String>) {
    if !found.insert(name.to_owned()) {
        return;
    }
    let mut names = Vec::new();
    references(&schema["definitions"][name], &mut names);
    names
        .into_iter()
        .for_each(|name| reach(name, schema, found));
}

fn references<'s>(schema: &'s Value, names: &mut Vec<&'s str>) {
    names.extend(reference(schema));
    match schema {
        Value::Object(map) => map.values().for_each(|inner| references(inner, names)),
        Value::Array(items) => items.iter().for_each(|inner| references(inner, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Allows an expression for each field that is not a string, and for each item of such a list.
fn take_expressions(schema: &mut Value) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for field in fields.values_mut().filter(|field| !is_text(field)) {
        if let Some(items) = field.get_mut("items").filter(|items| !is_text(items)) {
            or_expression(items);
        }
        or_expression(field);
    }
}

/// Turns a schema into a choice between itself and an expression. The description stays on the outside.
fn or_expression(schema: &mut Value) {
    let description = schema
        .as_object_mut()
        .and_then(|schema| schema.remove("description"));
    let mut either =
        json!({"anyOf": [schema.take(), {"$ref": format!("{DEFINITIONS}{EXPRESSION}")}]});
    if let Some(description) = description {
        either["description"] = description;
    }
    *schema = either;
}

fn is_text(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(word) => word == "string",
        Value::Array(words) => words.iter().any(|word| word == "string"),
        _ => false,
    }
}

/// Forbids unknown fields, and removes null: it stands for an absent option in the types, and is not valid in a file.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            without_null(map);
            // Kubernetes' own tools write `creationTimestamp: null`.
            if map.get("format").and_then(Value::as_str) == Some("date-time") {
                map.insert("type".to_owned(), json!(["string", "null"]));
            }
            let is_object = map
                .get("properties")
                .is_some_and(|fields| fields.is_object() && map.contains_key("type"));
            if is_object {
                map.entry("additionalProperties")
                    .or_insert(Value::Bool(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes null from `type: [string, null]` and from `anyOf: [..., {type: null}]`.
pub(super) fn without_null(map: &mut Map<String, Value>) {
    if let Some(types) = map.get("type").and_then(Value::as_array) {
        let rest: Vec<Value> = types
            .iter()
            .filter(|name| *name != "null")
            .cloned()
            .collect();
        if let [only] = rest.as_slice() {
            map.insert("type".to_owned(), only.clone());
        }
    }
    let is_null = |choice: &Value| choice["type"] == "null";
    let choices = map
        .get("anyOf")
        .and_then(Value::as_array)
        .filter(|choices| choices.iter().any(is_null));
    if let Some(choices) = choices {
        let rest: Vec<Value> = choices
            .iter()
            .filter(|choice| !is_null(choice))
            .cloned()
            .collect();
        map.remove("anyOf");
        // A single choice may be a `$ref`, whose siblings draft-07 ignores. In `allOf` they count.
        let key = if rest.len() == 1 { "allOf" } else { "anyOf" };
        map.insert(key.to_owned(), Value::Array(rest));
    }
    if map.get("default") == Some(&Value::Null) {
        map.remove("default");
    }
}
