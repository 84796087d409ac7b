//! Resources of other operators as policies: a format says which `InjectionPolicy` a resource becomes and where each part
//! of it comes from; that is then read like any other, so there is one way from words to the internal type.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::sync::Arc;

use super::document::Document;
use super::opentelemetry::release::Settings;
use super::params::ParamSetting;
use super::places::{Origins, Places};
use super::schema::{Schema, Templates};
use super::{ConfigKey, Policy, native};
use crate::diagnostic::{Code, Diagnostic};
use crate::yaml::value::{Path, Step};

/// From a resource to what it becomes.
pub type Convert = fn(&Document<'_>, &Given<'_>) -> Result<Conversion, Vec<Diagnostic>>;

/// What the user says beside the resource.
#[derive(Debug, Clone, Copy)]
pub struct Given<'g> {
    /// The settings of its parameters.
    pub settings: &'g [&'g ParamSetting],
    /// What holds for all resources.
    pub reading: &'g Reading,
}

/// How resources are read, for a whole run.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// `--debug-mode`.
    pub debug_mode: DebugMode,
    /// Nothing is injected: a required parameter may be without a value, and what reads it stays as it is written.
    pub params_stay_open: bool,
    /// How the OpenTelemetry Operator is set up.
    pub opentelemetry: Settings,
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

impl<'g> Given<'g> {
    /// The value of a parameter, if it is set; of several settings the last.
    pub fn param(&self, name: &str) -> Option<&'g str> {
        self.settings
            .iter()
            .rev()
            .find(|setting| setting.name == name)
            .map(|setting| setting.value.as_str())
    }
}

/// A policy that was read, and what is doubtful about it.
#[derive(Debug)]
pub struct Translated {
    /// The policy.
    pub policy: Policy,
    /// Warnings and notes.
    pub warnings: Vec<Diagnostic>,
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
    /// What an `InjectionPolicy` has no word for.
    pub beyond: Beyond,
    origins: Vec<(Path, Path)>,
}

/// What the internal policy says and an `InjectionPolicy` does not.
#[derive(Debug, Default)]
pub struct Beyond {
    /// Keys of ConfigMaps that pods need.
    pub config_keys: Vec<ConfigKey>,
    /// What to tell the user once a workload is changed.
    pub effects: Vec<Diagnostic>,
    /// Whether only one resource of the kind may apply to a workload.
    pub is_alone: bool,
    /// For each rule, the text that the names of its workloads contain, and its place.
    pub name_parts: Vec<Option<(String, Range<usize>)>>,
}

impl Beyond {
    fn add_to(self, policy: &mut Policy, kind: &str) {
        policy.config_keys = self.config_keys;
        policy.effects = self.effects;
        policy.alone_among = self.is_alone.then(|| kind.into());
        for (rule, part) in policy.rules.iter_mut().zip(self.name_parts) {
            rule.name_part = part;
        }
    }
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
            beyond: Beyond::default(),
            origins: vec![
                (Path::default(), pointer("/metadata/name")),
                (pointer("/metadata"), pointer("/metadata")),
            ],
        }
    }

    /// Puts a field into the spec.
    pub fn set(&mut self, key: &str, value: Value) {
        self.policy["spec"][key] = value;
    }

    /// Says from which part of the resource a part of the policy comes: both as JSON pointers.
    pub fn comes_from(&mut self, part: &str, origin: &str) {
        self.comes_from_path(part, &pointer(origin));
    }

    /// [`Self::comes_from`] with the way to the origin.
    pub fn comes_from_path(&mut self, part: &str, origin: &Path) {
        self.origins.push((pointer(part), origin.clone()));
    }

    /// Makes it a policy that does nothing.
    pub fn suspend(&mut self) {
        self.set("suspend", Value::from(true));
    }

    /// The policy as a document that is read like one that was written.
    fn document<'t>(self, document: Document<'t>) -> Document<'t> {
        let origins = Arc::new(Origins::new(self.origins));
        let places = Places::Converted(origins, Box::new(document.places));
        Document {
            file: document.file,
            places,
            value: self.policy,
        }
    }
}

/// A JSON pointer (RFC 6901) without escapes as a path.
pub fn pointer(text: &str) -> Path {
    let steps = text.split('/').skip(1).map(|step| match step.parse() {
        Ok(index) => Step::Index(index),
        Err(_) => Step::Key(step.to_owned()),
    });
    Path(steps.collect())
}

/// Converts a resource and reads what it becomes.
///
/// # Errors
/// All that is wrong with the resource, at its places.
pub fn translate(
    document: Document<'_>,
    given: &Given<'_>,
    convert: Convert,
) -> Result<Translated, Vec<Diagnostic>> {
    let kind = document.text(&["kind"]).unwrap_or_default().to_owned();
    let identity = document.identity();
    let mut conversion = convert(&document, given)?;
    let problems = std::mem::take(&mut conversion.problems);
    let beyond = std::mem::take(&mut conversion.beyond);
    let mut policy = match native::translate(
        conversion.document(document),
        &Given {
            settings: &[],
            ..*given
        },
        None,
    )
    .and_then(|(policy, _)| policy.ok_or_else(Vec::new))
    {
        Ok(policy) if !problems.iter().any(Diagnostic::is_error) => policy,
        Ok(_) => return Err(problems),
        Err(more) => return Err(once(problems.into_iter().chain(more))),
    };
    policy.identity = identity;
    beyond.add_to(&mut policy, &kind);
    Ok(Translated {
        policy,
        warnings: problems,
    })
}

/// Several parts of a policy may come from one place.
fn once(problems: impl Iterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let mut said: Vec<Diagnostic> = Vec::new();
    for problem in problems {
        if !said.contains(&problem) {
            said.push(problem);
        }
    }
    said
}

/// A resource as its type, checked against its schema first.
///
/// # Errors
/// Every unknown field and wrong type, at its place.
pub fn read<T: DeserializeOwned>(
    document: &Document<'_>,
    schema: &Schema,
) -> Result<T, Vec<Diagnostic>> {
    let problems = schema.check(&document.value, Templates::Filled);
    if !problems.is_empty() {
        return Err(problems
            .iter()
            .map(|problem| document.problem(problem))
            .collect());
    }
    serde_json::from_value(document.value.clone()).map_err(|error| {
        let message = format!("the resource cannot be read: {error}");
        vec![document.error(Code::WrongType, &Path::default(), message)]
    })
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
    fn a_pointer_is_a_path() {
        assert_eq!(
            pointer("/spec/rules/0/match").to_string(),
            "spec.rules[0].match"
        );
        assert_eq!(pointer(""), Path::default());
    }

    #[test]
    fn what_looks_like_an_expression_stays_a_text() {
        for text in ["${HOME}", "$${x}", "a$", "$$$", "$(X) {y}"] {
            let template = Template::parse(&literal(text), &Vocabulary::default()).unwrap();
            assert!(!template.uses().workload, "{text}");
        }
    }
}
