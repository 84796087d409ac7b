//! Validates values against the JSON schemas of Kubernetes types and of podgraft's own. Reports all unknown fields,
//! wrong types and missing fields, each with its path.
//!
//! The schemas are derived from the Rust types and kept in [`stored_schemas`](super::stored_schemas), so that reading,
//! validation and publishing (JSON Schema, CRD) share one definition. A mapping with `properties` has no other fields,
//! as in the API server's strict field validation.

mod near;
mod words;

use serde_json::{Map, Value};

use super::stored_schemas::{Definitions, KUBERNETES};
use super::template;
use crate::yaml::value::{Path, Step};
pub use near::{did_you_mean, meant, meant_code, nearest};
use words::{article, describe, empty_help, name_of, one_of};

/// The schema of a pod template, to validate results.
pub static POD_TEMPLATE: Schema = Schema::kubernetes("io.k8s.api.core.v1.PodTemplateSpec");

/// A problem of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaProblem {
    /// The path from the validated value. For a missing field, the mapping that lacks it.
    pub path: Path,
    /// The kind of problem.
    pub kind: SchemaProblemKind,
    /// The message, in the user's terms.
    pub message: String,
    /// What the user can do.
    pub help: Option<String>,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaProblemKind {
    /// The mapping has a field that its schema does not have.
    UnknownField,
    /// The value has another type than the schema wants.
    WrongType,
    /// The text is not one of the allowed values.
    NoSuchWord,
    /// The scalar would be the wanted string if it were quoted.
    Unquoted,
    /// A required field is missing.
    Missing,
}

/// Whether `${...}` may stand for a value of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateMode {
    /// Before templates are filled in: a text that is one `${...}` is valid everywhere.
    Allowed,
    /// After templates are filled in: `${...}` is a text like any other.
    Filled,
}

/// A JSON schema.
#[derive(Debug)]
pub enum Schema {
    /// A definition in a stored file.
    Stored(&'static Definitions, &'static str),
    /// A whole schema without references.
    Written(Value),
}

impl Schema {
    /// The schema of a Kubernetes type, by its definition name.
    pub const fn kubernetes(name: &'static str) -> Self {
        Schema::Stored(&KUBERNETES, name)
    }

    /// All problems of a value.
    pub fn check(&self, value: &Value, templates: TemplateMode) -> Vec<SchemaProblem> {
        let (definitions, root) = match self {
            Schema::Stored(definitions, name) => (Some(*definitions), definitions.get(name)),
            Schema::Written(root) => (None, root),
        };
        let mut walk = SchemaWalk {
            definitions,
            templates,
            path: Vec::new(),
            problems: Vec::new(),
        };
        walk.check(root, value);
        walk.problems
    }
}

#[derive(Clone)]
struct SchemaWalk {
    definitions: Option<&'static Definitions>,
    templates: TemplateMode,
    path: Vec<Step>,
    problems: Vec<SchemaProblem>,
}

impl SchemaWalk {
    fn report(&mut self, kind: SchemaProblemKind, message: String, help: Option<String>) {
        self.problems.push(SchemaProblem {
            path: Path(self.path.clone()),
            kind,
            message,
            help,
        });
    }

    fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Follows `$ref` to the definition.
    fn resolve<'s>(&self, mut schema: &'s Value) -> &'s Value {
        let name = |schema: &'s Value| schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/");
        while let (Some(definitions), Some(name)) = (self.definitions, name(schema)) {
            schema = definitions.get(name);
        }
        schema
    }

    fn check(&mut self, schema: &Value, value: &Value) {
        let schema = self.resolve(schema);
        // The empty schema accepts everything.
        let Some(rules) = schema.as_object().filter(|rules| !rules.is_empty()) else {
            return;
        };
        if self.templates == TemplateMode::Allowed
            && value.as_str().is_some_and(template::is_whole_expression)
        {
            return;
        }
        if value.is_null() && is_nullable(rules) {
            return;
        }
        for part in list(rules, "allOf") {
            self.check(part, value);
        }
        if rules.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            return self.check_int_or_string(value);
        }
        let choices: Vec<&Value> = list(rules, "anyOf")
            .iter()
            .chain(list(rules, "oneOf"))
            .collect();
        if !choices.is_empty() {
            return self.check_choice(&choices, value);
        }
        if let Some(words) = words(schema) {
            return self.check_word(&words, value);
        }
        self.check_type(rules, value);
    }

    fn check_int_or_string(&mut self, value: &Value) {
        if !value.is_number() && !value.is_string() {
            self.wrong_type("a number or a string", value, None);
        }
    }

    fn wrong_type(&mut self, wanted: &str, value: &Value, help: Option<String>) {
        let message = format!("{} must be {wanted}, not {}", self.name(), describe(value));
        self.report(SchemaProblemKind::WrongType, message, help);
    }

    fn check_word(&mut self, words: &[&str], value: &Value) {
        let name = self.name();
        let Some(text) = value.as_str() else {
            return self.wrong_type(&one_of(words), value, None);
        };
        if !words.contains(&text) {
            let help = nearest(text, words.iter().copied()).map(did_you_mean);
            self.report(
                SchemaProblemKind::NoSuchWord,
                format!("{name} must be {}, not `{text}`", one_of(words)),
                help,
            );
        }
    }

    /// `anyOf` and `oneOf`: one choice must fit. If only one has the type of the value, its problems are reported
    /// instead of those of all.
    fn check_choice(&mut self, choices: &[&Value], value: &Value) {
        let choices: Vec<&Value> = choices
            .iter()
            .map(|choice| self.resolve(choice))
            .filter(|choice| !is_null_type(choice))
            .collect();
        if let [only] = choices[..] {
            return self.check(only, value);
        }
        let all_words: Option<Vec<Vec<&str>>> =
            choices.iter().map(|choice| words(choice)).collect();
        if let Some(all_words) = all_words {
            return self.check_word(&all_words.concat(), value);
        }
        let outcomes: Vec<Vec<SchemaProblem>> = choices
            .iter()
            .map(|choice| self.try_choice(choice, value))
            .collect();
        if outcomes.iter().any(Vec::is_empty) {
            return;
        }
        let fitting: Vec<usize> = (0..choices.len())
            .filter(|&at| has_type_of(choices[at], value))
            .collect();
        if let [only] = fitting[..]
            && (value.is_object() || value.is_array())
        {
            self.problems.extend(outcomes[only].iter().cloned());
            return;
        }
        let wanted: Vec<String> = choices
            .iter()
            .map(|choice| describe_choice(choice))
            .collect();
        self.wrong_type(&wanted.join(" or "), value, None);
    }

    fn try_choice(&self, choice: &Value, value: &Value) -> Vec<SchemaProblem> {
        let mut walk = SchemaWalk {
            problems: Vec::new(),
            ..self.clone()
        };
        walk.check(choice, value);
        walk.problems
    }

    fn check_type(&mut self, rules: &Map<String, Value>, value: &Value) {
        let Some(wanted) = type_of(rules) else { return };
        match (wanted, value) {
            ("object", Value::Object(map)) => self.check_object(rules, map),
            ("array", Value::Array(entries)) => self.check_entries(rules, entries),
            ("string", Value::String(_))
            | ("boolean", Value::Bool(_))
            | ("number", Value::Number(_)) => {}
            ("integer", Value::Number(_)) => self.check_integer(rules, value),
            ("string", Value::Number(_) | Value::Bool(_)) => {
                let message = format!("{} must be a string, not {}", self.name(), describe(value));
                self.report(
                    SchemaProblemKind::Unquoted,
                    message,
                    Some(format!("quote it: \"{value}\"")),
                );
            }
            (_, Value::Null) => {
                self.wrong_type(article(wanted), value, Some(empty_help(wanted).to_owned()))
            }
            _ => self.wrong_type(article(wanted), value, None),
        }
    }

    fn check_integer(&mut self, rules: &Map<String, Value>, value: &Value) {
        let Some(number) = value.as_i64() else {
            return self.wrong_type("an integer", value, None);
        };
        let is_int32 = rules.get("format").and_then(Value::as_str) == Some("int32");
        if is_int32 && i32::try_from(number).is_err() {
            let message = format!(
                "{} must be a 32-bit integer, but {number} is too large",
                self.name()
            );
            self.report(SchemaProblemKind::WrongType, message, None);
        }
    }

    fn check_entries(&mut self, rules: &Map<String, Value>, entries: &[Value]) {
        let Some(schema) = rules.get("items") else {
            return;
        };
        for (at, entry) in entries.iter().enumerate() {
            self.path.push(Step::Index(at));
            self.check(schema, entry);
            self.path.pop();
        }
    }

    fn check_object(&mut self, rules: &Map<String, Value>, map: &Map<String, Value>) {
        let fields = rules.get("properties").and_then(Value::as_object);
        let additional = rules
            .get("additionalProperties")
            .filter(|additional| !additional.is_boolean());
        let field_of = |key: &str| fields.and_then(|fields| fields.get(key)).or(additional);
        let names = fields.into_iter().flat_map(Map::keys).map(String::as_str);
        // A misspelt field is more likely one that is missing.
        let absent = names.clone().filter(|field| !map.contains_key(*field));
        let near = |key: &str| nearest(key, absent.clone()).or_else(|| nearest(key, names.clone()));
        let is_unknown = |key: &&String| field_of(key).is_none() && !is_open(rules);
        let unknown: Vec<&str> = map.keys().filter(is_unknown).map(String::as_str).collect();
        let required = list(rules, "required").iter().filter_map(Value::as_str);
        // A misspelt field is not also reported as missing.
        let missing: Vec<&str> = required
            .filter(|required| !map.contains_key(*required))
            .filter(|required| unknown.iter().all(|key| near(key) != Some(required)))
            .collect();
        let takes_objects =
            |required: &&str| field_of(required).is_some_and(|field| self.takes_objects(field));
        // If a required mapping is missing and all unknown fields resemble no other, they probably belong into it: that
        // is one problem, not one for each field.
        let is_beside = !unknown.is_empty() && unknown.iter().all(|key| near(key).is_none());
        let wrapper = missing.iter().copied().find(takes_objects);
        let wrapper = wrapper.filter(|_| is_beside);
        for (key, value) in map {
            self.path.push(Step::Key(key.clone()));
            match field_of(key) {
                Some(field) => self.check(field, value),
                None if is_open(rules) || wrapper.is_some() => {}
                None => self.unknown_field(key, near(key), fields),
            }
            self.path.pop();
        }
        for required in missing {
            let text = field_of(required).and_then(|field| self.first_sentence(field));
            let takes_keys = field_of(required).is_some_and(|field| self.is_open_mapping(field));
            let help = match wrapper == Some(required) {
                true => Some(match unknown.as_slice() {
                    [key] if takes_keys && map[*key].is_object() => {
                        format!("rename `{key}` to `{required}`")
                    }
                    keys => format!("move `{}` under `{required}`", keys.join("`, `")),
                }),
                false => text.map(|text| format!("add `{required}`: {text}")),
            };
            let message = format!("missing field `{required}` in {}", self.name());
            self.report(SchemaProblemKind::Missing, message, help);
        }
    }

    /// Whether a field may be a mapping.
    fn takes_objects(&self, field: &Value) -> bool {
        let field = self.resolve(field);
        let narrows = |key| field.get(key).is_some();
        match field.get("type") {
            Some(kind) => kind == "object",
            None => !["anyOf", "oneOf", "enum", "const"].into_iter().any(narrows),
        }
    }

    /// Whether a field is a mapping whose keys are the user's, such as labels.
    fn is_open_mapping(&self, field: &Value) -> bool {
        let field = self.resolve(field);
        field["additionalProperties"].is_object() && field.get("properties").is_none()
    }

    /// Whether a field may be a mapping that has this key.
    fn holds(&self, field: &Value, key: &str) -> bool {
        let has_key = |field: &Value| field["properties"].get(key).is_some();
        let field = self.resolve(field);
        let mut choices = field["anyOf"].as_array().into_iter().flatten();
        has_key(field) || choices.any(|choice| has_key(self.resolve(choice)))
    }

    fn first_sentence(&self, field: &Value) -> Option<String> {
        let text = field
            .get("description")
            .or_else(|| self.resolve(field).get("description"))?
            .as_str()?;
        let sentence = text.split_once(". ").map_or(text, |(first, _)| first);
        Some(sentence.trim_end_matches('.').replace('\n', " "))
    }

    fn unknown_field(
        &mut self,
        key: &str,
        near: Option<&str>,
        fields: Option<&Map<String, Value>>,
    ) {
        let owner = name_of(&self.path[..self.path.len() - 1]);
        let names = fields.into_iter().flat_map(Map::keys);
        let holds = |name: &&String| fields.is_some_and(|fields| self.holds(&fields[*name], key));
        let help = match (names.clone().find(holds), near) {
            (Some(holder), _) => did_you_mean(&format!("{holder}.{key}")),
            (None, Some(near)) => did_you_mean(near),
            (None, None) => format!(
                "valid fields: {}",
                names.map(String::as_str).collect::<Vec<_>>().join(", ")
            ),
        };
        self.report(
            SchemaProblemKind::UnknownField,
            format!("unknown field `{key}` in {owner}"),
            Some(help),
        );
    }
}

/// Whether null stands for a missing value. Kubernetes' own tools write `creationTimestamp: null`, and the API server
/// reads it as missing.
fn is_nullable(rules: &Map<String, Value>) -> bool {
    rules.get("nullable") == Some(&Value::Bool(true))
        || rules.get("format").and_then(Value::as_str) == Some("date-time")
}

fn list<'s>(rules: &'s Map<String, Value>, key: &str) -> &'s [Value] {
    rules
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Whether a mapping accepts fields that are not in `properties`: it has none, or the schema says so.
fn is_open(rules: &Map<String, Value>) -> bool {
    if rules.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return true;
    }
    match rules.get("additionalProperties") {
        Some(Value::Bool(open)) => *open,
        _ => !rules.contains_key("properties"),
    }
}

/// The type in a schema. An optional field has a second one, `null`, which is ignored.
fn type_of(rules: &Map<String, Value>) -> Option<&str> {
    match rules.get("type")? {
        Value::Array(types) => types
            .iter()
            .filter_map(Value::as_str)
            .find(|&name| name != "null"),
        other => other.as_str(),
    }
}

fn is_null_type(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// The allowed texts of a `const` or `enum`; `None` if the schema has neither.
fn words(schema: &Value) -> Option<Vec<&str>> {
    let rules = schema.as_object()?;
    if let Some(word) = rules.get("const") {
        return Some(vec![word.as_str()?]);
    }
    let words = list(rules, "enum");
    if words.is_empty() {
        return None;
    }
    words
        .iter()
        .filter(|word| !word.is_null())
        .map(Value::as_str)
        .collect()
}

fn has_type_of(schema: &Value, value: &Value) -> bool {
    let wanted = schema.as_object().and_then(type_of);
    match value {
        Value::Null => false,
        Value::Bool(_) => wanted == Some("boolean"),
        Value::Number(_) => matches!(wanted, Some("integer" | "number")),
        Value::String(_) => wanted == Some("string"),
        Value::Array(_) => wanted == Some("array"),
        Value::Object(_) => wanted == Some("object"),
    }
}

fn describe_choice(schema: &Value) -> String {
    if let Some(words) = words(schema) {
        return one_of(&words);
    }
    let fields = schema.get("properties").and_then(Value::as_object);
    if let Some(key) = fields.and_then(|fields| fields.keys().next()) {
        return format!("`{{{key}: ...}}`");
    }
    schema
        .as_object()
        .and_then(type_of)
        .map_or("another type", article)
        .to_owned()
}
