//! Converts a JSON Schema to a structural schema, which a CustomResourceDefinition needs: without references and
//! choices, and with a type for every field.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>

use serde_json::{Map, Value, json};

use super::schema::{reference, without_null};

const ANYTHING: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Formats that the API server knows. Others are left out.
const FORMATS: [&str; 5] = ["int32", "int64", "double", "float", "date-time"];

/// The structural schema of a schema with `definitions`.
pub(super) fn structural(root: &Value) -> Value {
    let mut walk = StructuralWalk {
        root,
        within: Vec::new(),
    };
    let mut schema = walk.schema(root);
    // The API server defines these fields itself and allows nothing but their type.
    for (key, kind) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        schema["properties"][key] = json!({"type": kind});
    }
    schema
}

struct StructuralWalk<'s> {
    root: &'s Value,
    /// The names of the definitions around the current schema, outermost first.
    within: Vec<&'s str>,
}

impl<'s> StructuralWalk<'s> {
    fn schema(&mut self, schema: &'s Value) -> Value {
        let Some(keywords) = schema.as_object().filter(|keywords| !keywords.is_empty()) else {
            return json!({ANYTHING: true});
        };
        if let Some(name) = reference(schema) {
            return self.definition(name);
        }
        let mut rules = keywords.clone();
        without_null(&mut rules);
        let mut made = match keywords
            .get("allOf")
            .or_else(|| keywords.get("anyOf"))
            .and_then(Value::as_array)
        {
            Some(parts) if rules.contains_key("allOf") => self.first_of(parts),
            _ => self.by_type(keywords, &rules),
        };
        // The descriptions of Kubernetes types would exceed the size limit of `kubectl apply`.
        let is_ours = !self.within.iter().any(|name| name.starts_with("io.k8s"));
        if let Some(text) = keywords.get("description").filter(|_| is_ours) {
            made["description"] = text.clone();
        }
        made
    }

    /// The schema of the first part that is not null.
    fn first_of(&mut self, parts: &'s [Value]) -> Value {
        let part = parts.iter().find(|part| part["type"] != "null");
        part.map_or_else(|| json!({ANYTHING: true}), |part| self.schema(part))
    }

    fn definition(&mut self, name: &'s str) -> Value {
        // Filters can be nested, but a structural schema cannot be recursive.
        if self.within.contains(&name) {
            return json!({"type": "object", ANYTHING: true});
        }
        self.within.push(name);
        let made = self.schema(&self.root["definitions"][name]);
        self.within.pop();
        made
    }

    fn by_type(&mut self, keywords: &'s Map<String, Value>, rules: &Map<String, Value>) -> Value {
        if rules.get(INT_OR_STRING) == Some(&Value::Bool(true)) {
            return json!({INT_OR_STRING: true});
        }
        if let Some(words) = words(rules) {
            return json!({"type": "string", "enum": words});
        }
        match rules.get("type").and_then(Value::as_str) {
            Some("object") => self.object(keywords),
            Some("array") => {
                let items = keywords
                    .get("items")
                    .map_or_else(|| json!({ANYTHING: true}), |items| self.field(items));
                json!({"type": "array", "items": items})
            }
            Some(name) => {
                let mut made = json!({"type": name});
                let format = rules
                    .get("format")
                    .filter(|format| FORMATS.iter().any(|known| format == known));
                if let Some(format) = format {
                    made["format"] = format.clone();
                }
                made
            }
            None => json!({ANYTHING: true}),
        }
    }

    fn object(&mut self, keywords: &'s Map<String, Value>) -> Value {
        let mut made = json!({"type": "object"});
        let fields = keywords.get("properties").and_then(Value::as_object);
        match (
            fields,
            keywords
                .get("additionalProperties")
                .filter(|values| values.is_object()),
        ) {
            (Some(fields), _) => {
                let fields = fields
                    .iter()
                    .map(|(key, field)| (key.clone(), self.field(field)));
                made["properties"] = Value::Object(fields.collect());
            }
            (None, Some(values)) => made["additionalProperties"] = self.schema(values),
            (None, None) => made[ANYTHING] = json!(true),
        }
        if let Some(required) = keywords.get("required") {
            made["required"] = required.clone();
        }
        made
    }

    /// The schema of a field or a list item. Where `${...}` may stand for any value, integers also accept strings and
    /// other types are left open, because the API server would refuse the text.
    fn field(&mut self, field: &'s Value) -> Value {
        let mut made = self.schema(field);
        let takes_expressions = |name: &&str| {
            matches!(*name, "Inject" | "Containers") || name.ends_with(".LabelSelector")
        };
        if !self.within.iter().any(takes_expressions) {
            return made;
        }
        let Some(map) = made.as_object_mut() else {
            return made;
        };
        match map.get("type").and_then(Value::as_str) {
            Some("string") if self.within.contains(&"Containers") => {
                map.remove("enum");
            }
            None | Some("string") => {}
            Some("integer") => {
                map.remove("type");
                map.remove("format");
                map.insert(INT_OR_STRING.to_owned(), Value::Bool(true));
            }
            Some(_) => {
                map.remove("type");
                map.insert(ANYTHING.to_owned(), Value::Bool(true));
            }
        }
        made
    }
}

/// The allowed values of an `enum`, a `const`, or a choice of such; `None` for other schemas.
fn words(rules: &Map<String, Value>) -> Option<Vec<Value>> {
    if let Some(word) = rules.get("const") {
        return Some(vec![word.clone()]);
    }
    if let Some(words) = rules.get("enum").and_then(Value::as_array) {
        return Some(words.clone());
    }
    let choices = rules
        .get("oneOf")
        .or_else(|| rules.get("anyOf"))?
        .as_array()?;
    let words: Option<Vec<Vec<Value>>> = choices
        .iter()
        .map(|choice| words(choice.as_object()?))
        .collect();
    Some(words?.concat())
}
