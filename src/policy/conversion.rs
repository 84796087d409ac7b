//! Resources of other operators as policies: a format says which `InjectionPolicy` a resource becomes and where each part
//! of it comes from; that is then read like any other, so there is one way from words to the internal type.

use serde_json::{Map, Value, json};

use super::document::Document;
use super::opentelemetry::release::OperatorSettings;
use super::params::ParamSetting;
use crate::diagnostic::Diagnostic;

/// A function that converts a resource to a policy.
pub type ConvertFn =
    fn(&Document<'_>, &ConversionContext<'_>) -> Result<Conversion, Vec<Diagnostic>>;

/// The settings that a conversion takes besides the resource.
#[derive(Debug, Clone, Copy)]
pub struct ConversionContext<'g> {
    /// The settings of its parameters.
    pub settings: &'g [&'g ParamSetting],
    /// What holds for all resources.
    pub reading: &'g ReadOptions,
}

/// Options for reading resources, the same for a whole run.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// `--debug-mode`.
    pub debug_mode: DebugMode,
    /// Nothing is injected: a required parameter may be without a value, and what reads it stays as it is written.
    pub params_stay_open: bool,
    /// How the OpenTelemetry Operator is set up.
    pub opentelemetry: OperatorSettings,
}

/// What a `Podbuggertool` becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DebugMode {
    /// Ephemeral containers for pods that run; the workload stays as it is.
    #[default]
    Ephemeral,
    /// A container of the workload.
    Sidecar,
}

impl<'g> ConversionContext<'g> {
    /// The value of a parameter, if it is set; of several settings the last.
    pub fn param(&self, name: &str) -> Option<&'g str> {
        self.settings
            .iter()
            .rev()
            .find(|setting| setting.name == name)
            .map(|setting| setting.value.as_str())
    }
}

/// What a resource becomes.
#[derive(Debug)]
pub struct Conversion {
    /// The `InjectionPolicy`.
    pub policy: Value,
    /// What people who read the policy should know of the resource.
    pub remarks: Vec<String>,
    /// What is wrong or doubtful about the resource.
    pub problems: Vec<Diagnostic>,
}

impl Conversion {
    /// A policy of the resource's name with a spec to be filled.
    pub fn of(document: &Document<'_>, description: &str) -> Self {
        let metadata = ["name", "namespace"].into_iter().filter_map(|key| {
            let text = document.text(&["metadata", key])?;
            Some((key.to_owned(), Value::from(text)))
        });
        let policy = json!({
            "apiVersion": "podgraft.dev/v1alpha1",
            "kind": "InjectionPolicy",
            "metadata": metadata.collect::<Map<_, _>>(),
            "spec": {"description": description},
        });
        Conversion {
            policy,
            remarks: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Puts a field into the spec.
    pub fn set(&mut self, key: &str, value: Value) {
        self.policy["spec"][key] = value;
    }
}

/// A text of a resource as it has to stand in a policy, where `${` begins an expression.
pub fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// All texts of a value as they have to stand in a policy.
pub fn literals(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(literal(text)),
        Value::Array(entries) => entries.iter().map(literals).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, entry)| (key.clone(), literals(entry)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
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
