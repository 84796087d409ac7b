//! Reads `source`: the policy is applied once for each resource of a kind. The resource is validated against the
//! policy's schema, as an API server validates a custom resource, and expressions read it as `source`.

use regex_lite::Regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::chains::{SOURCE, chains};
use super::for_each::ExpandedEntry;
use crate::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use crate::manifest::workload::group_of;
use crate::policy::document::{Document, Places};
use crate::policy::expression::{self, PolicyVariable, VariableBody};
use crate::policy::names;
use crate::policy::places::ResourcePlaces;
use crate::policy::pruning::drop_nulls;
use crate::policy::schema::{Schema, SchemaProblem, SchemaProblemKind, TemplateMode};
use crate::policy::template::map_expressions;
use crate::yaml::value::{Path, Step};

pub(super) static METADATA: Schema =
    Schema::kubernetes("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");

/// A policy instantiated for one resource.
#[derive(Debug, Clone)]
pub struct PolicyInstance<'i, 't> {
    /// The resource as it is written.
    pub document: &'i Document<'t>,
    /// The resource with the defaults of the schema.
    pub(super) value: Arc<Value>,
    /// All resources of the policy that can select the same workloads, sorted by identity.
    pub(super) sources: Arc<Value>,
}

/// The group and kind of the resources that a policy is for; `None` without `source`.
pub(crate) fn kind_of(policy: &Value) -> Option<(&str, &str)> {
    let source = policy.pointer("/spec/source")?;
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    Some((group_of(text("apiVersion")?), text("kind")?))
}

/// Whether a policy applies only to workloads in the namespace of its resource.
pub(super) fn is_namespaced(policy: &Value) -> bool {
    let scope = policy.pointer("/spec/source/scope");
    scope.and_then(Value::as_str) != Some("Cluster")
}

impl<'i, 't> PolicyInstance<'i, 't> {
    /// Fills in the defaults of the schema and validates the resource.
    ///
    /// # Errors
    /// Unknown fields, wrong types and values out of bounds, at their places.
    pub fn new(document: &'i Document<'t>, policy: &Document<'_>) -> Diagnosed<Self> {
        let mut value = document.value.clone();
        let metadata = Path::of(&["metadata"]);
        if let Some(stated) = metadata.get_mut(&mut value) {
            drop_nulls(stated);
        }
        let stated = metadata.get(&value).cloned().unwrap_or_default();
        let wrong = METADATA.check(&stated, TemplateMode::Filled);
        let wrong = wrong.into_iter().map(|problem| SchemaProblem {
            path: metadata.join(&problem.path),
            ..problem
        });
        let mut problems = document.problems(&wrong.collect::<Vec<_>>());
        problems.extend(check_names(document, &value));
        let schema = policy
            .value
            .pointer("/spec/source/schema/openAPIV3Schema")
            .filter(|schema| schema.is_object());
        if let Some(schema) = schema {
            drop_and_default(schema, &mut value);
            let checked = Schema::Written(with_metadata(schema));
            let mut found = checked.check(&value, TemplateMode::Filled);
            check_bounds(schema, &value, &Path::default(), &mut found);
            problems.extend(document.problems(&found));
        }
        unless(problems, ())?;
        Ok(PolicyInstance {
            document,
            // `with_siblings` adds the other resources.
            sources: Arc::new(Value::Array(vec![value.clone()])),
            value: Arc::new(value),
        })
    }

    /// Sets `sources` to the resources of the policy: all of them, or those of this namespace if the policy is
    /// namespaced.
    pub(crate) fn with_siblings(mut self, siblings: &[&Self], policy: &Document<'_>) -> Self {
        let meets = |instance: &&Self| {
            !is_namespaced(&policy.value) || instance.namespace() == self.namespace()
        };
        let mut instances: Vec<&Self> = siblings.iter().copied().filter(meets).collect();
        instances.sort_by_cached_key(|instance| instance.document.identity());
        let values = instances
            .into_iter()
            .map(|instance| Value::clone(&instance.value));
        self.sources = Arc::new(values.collect());
        self
    }

    fn namespace(&self) -> Option<&str> {
        self.document.text(&["metadata", "namespace"])
    }

    /// The variables `source` and `sources` of expressions.
    pub(super) fn variables(&self) -> [PolicyVariable; 2] {
        let values = [
            (expression::SOURCE, &self.value),
            (expression::SOURCES, &self.sources),
        ];
        values.map(|(name, value)| PolicyVariable {
            name: name.to_owned(),
            body: VariableBody::Constant(Arc::clone(value)),
            at: 0..0,
        })
    }

    /// The policy with its problems placed in the resource: at the fields that a part of the policy reads, or at the
    /// list entry that an expanded rule was made for.
    pub(super) fn places_of(&self, policy: Document<'t>, made: &[ExpandedEntry]) -> Document<'t> {
        let mut reads = ResourceReads {
            variables: BTreeMap::new(),
            origins: Vec::new(),
        };
        for (path, of) in made {
            let fields = reads.fields(of);
            reads.origins.push((path.clone(), fields));
        }
        reads.read(&policy.value, &Path::default());
        let resource = &self.document;
        let places = ResourcePlaces {
            origins: reads.origins,
            value: resource.value.clone(),
            resource: resource.places.clone(),
            policy: policy.places,
        };
        Document {
            file: Arc::clone(&self.document.file),
            places: Places::OfResource(Arc::new(places)),
            value: policy.value,
        }
    }

    /// Places a problem at the path that a validation names, such as `spec.rules[0].name`, or at the whole resource. A
    /// secret in the shown line is masked.
    pub(super) fn diagnostic(&self, problem: Diagnostic, path: Option<&str>) -> Diagnostic {
        let path = path.map(read_path).unwrap_or_default();
        let mut place = self.document.place(&path);
        let secret = path.get(&self.document.value).and_then(Value::as_str);
        if let (Code::ClearSecret, Some(secret)) = (problem.code, secret) {
            place.excerpt = place.excerpt.replace(secret, &"*".repeat(secret.len()));
        }
        problem.at(place, "here")
    }
}

/// Collects the fields of the resource that each text of a policy reads.
struct ResourceReads {
    /// The fields that each variable reads, for the variables seen so far.
    variables: BTreeMap<String, Vec<Path>>,
    /// Paths in the policy, each with the fields that it reads.
    origins: Vec<(Path, Vec<Path>)>,
}

impl ResourceReads {
    fn read(&mut self, value: &Value, at: &Path) {
        match value {
            Value::String(text) => {
                let mut fields = Vec::new();
                map_expressions(text, |expression| {
                    fields.extend(self.fields(expression));
                    String::new()
                });
                if matches!(at.0.last(), Some(Step::Key(key)) if key == "expression") {
                    fields.extend(self.fields(text));
                }
                if !fields.is_empty() {
                    self.origins.push((at.clone(), fields));
                }
            }
            Value::Array(entries) => {
                for (index, entry) in entries.iter().enumerate() {
                    let before = self.origins.len();
                    self.read(entry, &at.index(index));
                    let name = entry.get("name").and_then(Value::as_str);
                    if let Some(name) = name.filter(|_| *at == Path::of(&["spec", "variables"])) {
                        let fields = self.origins[before..].iter().flat_map(|(_, fields)| fields);
                        let fields = fields.cloned().collect();
                        self.variables.insert(name.to_owned(), fields);
                    }
                }
            }
            Value::Object(map) => {
                // Variables first, because fields before them in the mapping may use them.
                let is_variables = |key: &str| key == "variables" && at.0.len() == 1;
                let (first, remaining): (Vec<_>, Vec<_>) =
                    map.iter().partition(|(key, _)| is_variables(key));
                for (key, entry) in first.into_iter().chain(remaining) {
                    self.read(entry, &at.key(key));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn fields(&self, expression: &str) -> Vec<Path> {
        let mut fields = Vec::new();
        for chain in chains(expression) {
            match (chain.root, chain.path.0.first()) {
                (SOURCE, _) => fields.push(chain.path),
                ("variables", Some(Step::Key(name))) => {
                    fields.extend(self.variables.get(name).into_iter().flatten().cloned());
                }
                _ => {}
            }
        }
        fields
    }
}

/// Parses a path such as `spec.rules[0].name`, also as a field chain of `source`.
fn read_path(text: &str) -> Path {
    if let Some(chain) = chains(text).into_iter().find(|chain| chain.root == SOURCE) {
        return chain.path;
    }
    let mut path = Path::default();
    for part in text.split('.') {
        let mut pieces = part.split('[');
        let key = pieces.next().unwrap_or_default();
        if !key.is_empty() {
            path = path.key(key);
        }
        let indices = pieces.filter_map(|piece| piece.trim_end_matches(']').parse().ok());
        path = indices.fold(path, |path, index: usize| path.index(index));
    }
    path
}

/// The schema with the fields that every object has.
pub(crate) fn with_metadata(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let properties = schema
        .as_object_mut()
        .map(|rules| rules.entry("properties").or_insert_with(|| json!({})));
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        for key in ["apiVersion", "kind"] {
            properties.insert(key.to_owned(), json!({"type": "string"}));
        }
        properties.insert("metadata".to_owned(), json!({}));
        properties
            .entry("status")
            .or_insert_with(|| json!({"type": "object"}));
    }
    schema
}

/// Does what an API server does before it validates: drops fields whose null the schema does not allow, and fills in
/// defaults. Only absent fields get them, and a default is itself completed.
fn drop_and_default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let fields = schema.get("properties").and_then(Value::as_object);
            let additional = schema.get("additionalProperties");
            let additional = additional.filter(|schema| schema.is_object());
            let schema_of = |key: &str| fields.and_then(|fields| fields.get(key)).or(additional);
            map.retain(|key, inner| {
                let is_nullable = |schema: &Value| schema["nullable"] == true;
                !inner.is_null() || schema_of(key).is_none_or(is_nullable)
            });
            for (key, field) in fields.into_iter().flatten() {
                if let Some(default) = field.get("default").filter(|_| !map.contains_key(key)) {
                    map.insert(key.clone(), default.clone());
                }
            }
            for (key, inner) in map.iter_mut() {
                if let Some(field) = schema_of(key) {
                    drop_and_default(field, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items
                    .iter_mut()
                    .for_each(|item| drop_and_default(schema, item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Checks the bounds of a schema, such as `minimum`, `maxLength` and `pattern`, in a value and all of its fields.
fn check_bounds(schema: &Value, value: &Value, path: &Path, problems: &mut Vec<SchemaProblem>) {
    let Some(rules) = schema.as_object() else {
        return;
    };
    if let Some(rule) = broken_bound(rules, value) {
        problems.push(SchemaProblem {
            path: path.clone(),
            kind: SchemaProblemKind::WrongType,
            message: format!("`{}` {rule}", path.name()),
            help: None,
        });
    }
    match value {
        Value::Object(map) => {
            let fields = rules.get("properties");
            for (key, inner) in map {
                let field = fields.and_then(|fields| fields.get(key));
                if let Some(field) = field.or(rules.get("additionalProperties")) {
                    check_bounds(field, inner, &path.key(key), problems);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if let Some(schema) = rules.get("items") {
                    check_bounds(schema, item, &path.index(at), problems);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The first broken bound as a phrase: "must be at least 1".
fn broken_bound(rules: &Map<String, Value>, value: &Value) -> Option<String> {
    let number = |key: &str| rules.get(key).and_then(Value::as_f64);
    let (amount, [least, most], unit) = match value {
        Value::Number(amount) => (amount.as_f64()?, ["minimum", "maximum"], ""),
        Value::String(text) => (
            count(text.chars().count()),
            ["minLength", "maxLength"],
            " characters",
        ),
        Value::Array(items) => (count(items.len()), ["minItems", "maxItems"], " entries"),
        Value::Object(map) => (
            count(map.len()),
            ["minProperties", "maxProperties"],
            " keys",
        ),
        Value::Null | Value::Bool(_) => return None,
    };
    if let Some(least) = number(least).filter(|least| amount < *least) {
        return Some(format!("must be at least {least}{unit}"));
    }
    if let Some(most) = number(most).filter(|most| amount > *most) {
        return Some(format!("must be at most {most}{unit}"));
    }
    let pattern = rules.get("pattern").and_then(Value::as_str)?;
    let text = value.as_str()?;
    let fits = Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text));
    (!fits).then(|| format!("must match `{pattern}`"))
}

fn count(length: usize) -> f64 {
    f64::from(u32::try_from(length).unwrap_or(u32::MAX))
}

/// Problems of `source` that do not depend on a resource.
pub(super) fn check(document: &Document<'_>) -> Vec<Diagnostic> {
    let at = Path::of(&["spec", "source", "schema", "openAPIV3Schema"]);
    let mut problems = Vec::new();
    if let Some(schema) = at.get(&document.value) {
        check_schema(document, schema, &at, &mut problems);
    }
    problems
}

/// The types of a CustomResourceDefinition's schema.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

fn check_schema(
    document: &Document<'_>,
    schema: &Value,
    at: &Path,
    problems: &mut Vec<Diagnostic>,
) {
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Err(error) = Regex::new(pattern)
    {
        let message = format!("`{pattern}` is not a valid regular expression: {error}");
        problems.push(document.error(Code::BadPolicy, &at.key("pattern"), message));
    }
    if let Some(name) = schema.get("type").and_then(Value::as_str)
        && !TYPES.contains(&name)
    {
        let message = format!("unknown schema type `{name}`");
        let problem = document.error(Code::BadPolicy, &at.key("type"), message);
        problems.push(problem.help(format!("valid types: {}", TYPES.join(", "))));
    }
    let inner = schema.as_object().into_iter().flatten();
    // A default is a value, not a schema.
    for (key, value) in inner.filter(|(key, value)| value.is_object() && *key != "default") {
        check_schema(document, value, &at.key(key), problems);
    }
}

/// The errors in name and namespace of an object.
pub(super) fn check_names(document: &Document<'_>, value: &Value) -> Vec<Diagnostic> {
    let metadata = Path::of(&["metadata"]);
    let mut problems = Vec::new();
    for word in ["name", "namespace"] {
        let path = metadata.key(word);
        let check = match word {
            "name" => names::check_dns_subdomain,
            _ => names::check_dns_label,
        };
        match path.get(value) {
            Some(Value::String(text)) => problems.extend(document.invalid(&path, check(text))),
            None if word == "name" => {
                let message = "missing field `name` in `metadata`";
                let problem = document.error(Code::BadPolicy, &metadata, message);
                let help = "add a name: reports and the marker on the workload use it";
                problems.push(problem.help(help));
            }
            Some(_) | None => {}
        }
    }
    problems
}
