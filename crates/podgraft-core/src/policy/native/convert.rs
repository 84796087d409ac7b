//! Converts a policy for a resource to a policy without `source`: the values of the resource are written into it.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use super::chains::{FieldChain, SOURCE, SOURCES, chains, replace};
use super::source::PolicyInstance;
use super::{PreparedPolicy, prepare};
use crate::diagnostic::{Diagnosed, unless};
use crate::policy::conversion::{ConversionContext, literals, metadata_of};
use crate::policy::document::Document;
use crate::policy::expression::{Evaluator, Expression, ExpressionResult, NoFacts};
use crate::policy::template::map_expressions;
use crate::yaml::value::Step;

/// Returns the policy that has the effect of `document` for one resource.
///
/// # Errors
/// All that is wrong with it.
pub fn convert<'t>(
    document: Document<'t>,
    given: &ConversionContext<'_>,
    instance: &PolicyInstance<'_, 't>,
) -> Diagnosed<Value> {
    let mut broken = Vec::new();
    let prepared = prepare(document, given, Some(instance), &mut broken)?;
    unless(broken, ())?;
    let mut value = prepared.document.value.clone();
    for path in &prepared.unfilled.evaluated {
        if let Some(text) = path.get_mut(&mut value) {
            *text = literals(text);
        }
    }
    value["metadata"] = metadata_of(instance.document);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        for word in ["source", "validations"] {
            spec.shift_remove(word);
        }
        if spec.get("suspend") == Some(&Value::Bool(false)) {
            spec.shift_remove("suspend");
        }
        for word in ["match", "rules", "containers"] {
            if let Some(filters) = spec.get_mut(word) {
                without_open_filters(filters);
            }
        }
        keep_used_definitions(spec, &prepared, instance);
    }
    Ok(value)
}

/// Keeps only the variables and parameters that are used. The resource itself becomes a variable if an expression
/// reads it.
fn keep_used_definitions(
    spec: &mut Map<String, Value>,
    prepared: &PreparedPolicy<'_>,
    instance: &PolicyInstance<'_, '_>,
) {
    let variables = spec.shift_remove("variables");
    let params = spec.shift_remove("params");
    let mut rest = Value::Object(std::mem::take(spec));
    let mut read = BTreeSet::new();
    note_names(&mut rest, &mut read);
    let variables = variables_read(variables, prepared, instance, &mut read);
    let params = params_read(params, prepared, &read);
    let mut made = Map::new();
    for (word, list) in [("params", params), ("variables", variables)] {
        if !list.is_empty() {
            made.insert(word.to_owned(), Value::Array(list));
        }
    }
    // Definitions come before the rules that use them.
    if let Value::Object(rest) = rest {
        let description = rest.get("description").cloned();
        spec.extend(description.map(|text| ("description".to_owned(), text)));
        spec.extend(made);
        spec.extend(rest);
    }
}

/// Names used in expressions, as (root, first field), such as `("params", "port")`.
type Read = BTreeSet<(String, String)>;

/// The variables that are used, directly or by other variables that are used.
fn variables_read(
    variables: Option<Value>,
    prepared: &PreparedPolicy<'_>,
    instance: &PolicyInstance<'_, '_>,
    read: &mut Read,
) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    // Backwards, because a variable can only be read by those after it.
    for mut variable in entries(variables).into_iter().rev() {
        let name = name_of(&variable).to_owned();
        if read.contains(&("variables".to_owned(), name.clone())) {
            if let Some(value) = constant(&name, prepared) {
                variable = json!({"name": name, "value": literals(&value)});
            }
            let mut wrapper = json!({"variables": [variable]});
            note_names(&mut wrapper, read);
            variable = wrapper["variables"][0].take();
            kept.insert(0, variable);
        }
    }
    for (name, value) in [(SOURCES, &instance.sources), (SOURCE, &instance.value)] {
        if read.iter().any(|(root, _)| root == name) {
            kept.insert(0, json!({"name": name, "value": literals(value)}));
        }
    }
    kept
}

/// The parameters that are used. Their current values become their defaults.
fn params_read(params: Option<Value>, prepared: &PreparedPolicy<'_>, read: &Read) -> Vec<Value> {
    let params = entries(params).into_iter();
    params
        .filter_map(|param| param_read(param, prepared, read))
        .collect()
}

/// A parameter, if it is used, with its current value as default.
fn param_read(mut param: Value, prepared: &PreparedPolicy<'_>, read: &Read) -> Option<Value> {
    let name = name_of(&param).to_owned();
    if !read.contains(&("params".to_owned(), name.clone())) {
        return None;
    }
    let fields = param.as_object_mut()?;
    fields.shift_remove("required");
    fields.shift_remove("default");
    if let Some(Some(value)) = prepared.vocabulary.params.get(&name) {
        fields.insert("default".to_owned(), Value::from(value.as_str()));
    }
    Some(param)
}

/// The value of a variable that does not depend on the workload; `None` if it does or cannot be evaluated.
fn constant(name: &str, prepared: &PreparedPolicy<'_>) -> Option<Value> {
    let vocabulary = &prepared.vocabulary;
    let expression = Expression::compile(&format!("variables.{name}"), vocabulary).ok()?;
    let evaluator = Evaluator::new(&vocabulary.params, &prepared.variables, &NoFacts);
    let is_known = !expression.uses.workload;
    match is_known.then(|| evaluator.evaluate(&expression))? {
        Ok(ExpressionResult::Value(value)) => Some(value),
        Ok(ExpressionResult::Absent) | Err(_) => None,
    }
}

/// Removes filters that match everything, which is what an empty value of the resource leaves behind.
fn without_open_filters(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_open = |key: &str, value: &Value| {
                ["nameContains", "namespaceContains"].contains(&key) && value == ""
                    || key == "workloadSelector" && *value == json!({"matchLabels": {}})
            };
            map.retain(|key, value| !is_open(key, value));
            map.values_mut().for_each(without_open_filters);
        }
        Value::Array(entries) => entries.iter_mut().for_each(without_open_filters),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn entries(list: Option<Value>) -> Vec<Value> {
    match list {
        Some(Value::Array(entries)) => entries,
        Some(_) | None => Vec::new(),
    }
}

fn name_of(entry: &Value) -> &str {
    entry["name"].as_str().unwrap_or_default()
}

/// Collects the root names and first fields of all expressions, and renames `source` and `sources` to
/// `variables.source` and `variables.sources`.
fn note_names(value: &mut Value, read: &mut BTreeSet<(String, String)>) {
    each_expression(value, "", &mut |expression| {
        read.extend(chains(expression).into_iter().map(name_and_field));
        let expression = replace(expression, SOURCE, "variables.source");
        replace(&expression, SOURCES, "variables.sources")
    });
}

fn name_and_field(chain: FieldChain<'_>) -> (String, String) {
    let field = match chain.path.0.into_iter().next() {
        Some(Step::Key(field)) => field,
        Some(Step::Index(_)) | None => String::new(),
    };
    (chain.root.to_owned(), field)
}

/// Lists whose entries hold plain CEL in `expression` and `when`, without `${}`.
const CONDITIONS: [&str; 4] = ["matchConditions", "variables", "notes", "generate"];

/// Passes each expression to `replace` and writes the result in its place. `within` is the key of the list that holds
/// `value`, or empty.
fn each_expression(value: &mut Value, within: &str, replace: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = map_expressions(text, replace),
        Value::Array(entries) => entries
            .iter_mut()
            .for_each(|entry| each_expression(entry, within, replace)),
        Value::Object(map) => {
            for (key, value) in map {
                let is_plain =
                    CONDITIONS.contains(&within) && ["expression", "when"].contains(&key.as_str());
                match value {
                    Value::String(text) if is_plain => *text = replace(text),
                    Value::Array(_) => each_expression(value, key, replace),
                    value => each_expression(value, "", replace),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
