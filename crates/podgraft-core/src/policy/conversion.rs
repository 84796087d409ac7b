//! Converts resources of other operators to policies. A format writes the `InjectionPolicy` for a resource, which is
//! then read like any other: only one reader makes the internal type.

use serde_json::Value;
use std::sync::Arc;

use super::document::Document;
use super::opentelemetry::release::OperatorSettings;
use super::params::ParamSetting;

/// What a conversion needs besides the resource.
#[derive(Debug, Clone, Copy)]
pub struct ConversionContext<'g> {
    /// The `--param` settings of the policy.
    pub settings: &'g [&'g ParamSetting],
    /// Options for all resources of the run.
    pub reading: &'g ReadOptions,
}

/// Options for reading resources, the same for a whole run.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The value of `--debug-mode`.
    pub debug_mode: DebugMode,
    /// Policies are only shown, not applied: a required parameter may have no value, and expressions with it stay
    /// unevaluated.
    pub params_stay_open: bool,
    /// The settings of the OpenTelemetry Operator.
    pub opentelemetry: OperatorSettings,
}

/// What a `Podbuggertool` resource becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DebugMode {
    /// Ephemeral containers for running pods. The workload is unchanged.
    #[default]
    Ephemeral,
    /// A container in the workload.
    Sidecar,
}

impl<'g> ConversionContext<'g> {
    /// The value of a parameter. The last setting wins.
    pub fn param(&self, name: &str) -> Option<&'g str> {
        self.settings
            .iter()
            .rev()
            .find(|setting| setting.name == name)
            .map(|setting| setting.value.as_str())
    }
}

/// A resource of another operator, converted to a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedResource {
    /// The identity of the resource.
    pub identity: String,
    /// The name of its file.
    pub file: Arc<str>,
    /// The `InjectionPolicy` that it becomes.
    pub policy: Value,
    /// Remarks for readers of the policy, such as parts that it cannot express.
    pub remarks: Vec<String>,
}

impl ConvertedResource {
    /// A conversion without remarks.
    pub fn of(document: &Document<'_>, policy: Value) -> Self {
        ConvertedResource {
            identity: document.identity(),
            file: Arc::clone(&document.file.name),
            policy,
            remarks: Vec::new(),
        }
    }
}

/// The metadata of the policy for a resource: its name and namespace.
pub fn metadata_of(document: &Document<'_>) -> Value {
    let metadata = ["name", "namespace"].into_iter().filter_map(|key| {
        let text = document.text(&["metadata", key])?;
        Some((key.to_owned(), Value::from(text)))
    });
    Value::Object(metadata.collect())
}

/// Escapes a text of a resource for a policy, where `${` begins an expression.
pub fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// Escapes all texts of a value.
pub(crate) fn literals(value: &Value) -> Value {
    let mut escaped = value.clone();
    each_text(&mut escaped, &mut |text| *text = literal(text));
    escaped
}

/// Passes each text of a value to a function.
pub(super) fn each_text(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(entries) => entries
            .iter_mut()
            .for_each(|entry| each_text(entry, change)),
        Value::Object(map) => map.values_mut().for_each(|entry| each_text(entry, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::template::Template;
    use crate::policy::vocabulary::Vocabulary;

    #[test]
    fn what_looks_like_an_expression_stays_a_text() {
        for text in ["${HOME}", "$${x}", "a$", "$$$", "$(X) {y}"] {
            let template = Template::parse(&literal(text), &Vocabulary::default()).unwrap();
            assert!(!template.uses().workload, "{text}");
        }
    }
}
