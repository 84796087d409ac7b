//! Reads an Instrumentation as an API server with the operator's CustomResourceDefinition admits it.

use serde_json::{Map, Value, json};

use super::language::Language;
use crate::diagnostic::{Code, Diagnosed, Diagnostic, Severity, unless};
use crate::policy::document::Document;
use crate::policy::pruning::{drop_field, drop_nulls};
use crate::policy::quantity;
use crate::policy::schema::{Schema, SchemaProblemKind, TemplateMode, did_you_mean};
use crate::policy::stored_schemas::INSTRUMENTATION;
use crate::yaml::value::Path;

static SCHEMA: Schema = Schema::Stored(&INSTRUMENTATION, "Instrumentation");

/// The resource as an API server stores it: without null and unknown fields, and changed by the operator's webhook, which
/// runs before the validation. Unknown fields are warnings here, because an API server drops them silently.
///
/// # Errors
/// A version that clusters do not serve, and what the CustomResourceDefinition does not allow.
pub(super) fn admit<'t>(
    document: &Document<'t>,
    problems: &mut Vec<Diagnostic>,
) -> Diagnosed<Document<'t>> {
    let version = document.text(&["apiVersion"]).unwrap_or_default();
    if version != "opentelemetry.io/v1alpha1" {
        let message =
            format!("`{version}` is not a version of Instrumentation that clusters serve");
        let problem = document.error(Code::NotSupported, &Path::of(&["apiVersion"]), message);
        return Err(vec![
            problem.help("write `apiVersion: opentelemetry.io/v1alpha1`"),
        ]);
    }
    let mut admitted = document.clone();
    drop_nulls(&mut admitted.value);
    rewrite(&mut admitted);
    let (ignored, mut wrong): (Vec<_>, Vec<_>) = SCHEMA
        .check(&admitted.value, TemplateMode::Filled)
        .into_iter()
        .partition(|problem| problem.kind == SchemaProblemKind::UnknownField);
    for problem in &ignored {
        drop_field(&mut admitted.value, &problem.path);
        let mut warning = document.problem(problem).with_severity(Severity::Warning);
        warning.code = Code::PartIgnored;
        problems.push(warning);
    }
    if !ignored.is_empty() {
        // A misspelt field that is required is missing now.
        wrong = SCHEMA.check(&admitted.value, TemplateMode::Filled);
    }
    let mut refused: Vec<_> = wrong
        .iter()
        .map(|problem| document.problem(problem))
        .collect();
    let quantities = quantities(&admitted);
    let quantities = quantities.iter();
    refused.extend(quantities.filter_map(|path| check_quantity(&admitted, path)));
    let agents = agents();
    refused.extend(agents.filter_map(|agent| check_files(&admitted, &agent)));
    unless(refused, admitted)
}

/// The paths of the agents.
fn agents() -> impl Iterator<Item = Path> {
    let fields = Language::ALL.into_iter().filter_map(Language::field);
    fields.map(|field| Path::of(&["spec", field]))
}

/// Does what the operator's defaulting webhook does besides setting defaults: it decodes the resource into Go types and
/// encodes it again. This makes text of a quantity with a fraction, and gives a claim template a `spec`.
fn rewrite(document: &mut Document<'_>) {
    for path in quantities(document) {
        let Some(quantity) = path.get_mut(&mut document.value) else {
            continue;
        };
        // Unlike the text of `Number`, that of `f64` has no exponent.
        if let Some(number) = quantity.as_f64().filter(|_| quantity.is_f64()) {
            *quantity = number.to_string().into();
        }
    }
    for agent in agents() {
        let claim = agent.key("volumeClaimTemplate");
        let claim = claim.get_mut(&mut document.value);
        if let Some(claim) = claim.and_then(Value::as_object_mut) {
            claim.entry("spec").or_insert_with(|| json!({}));
        }
    }
}

/// The paths of all quantities: those of agents, of their containers and claims, and the divisors of variables.
fn quantities(document: &Document<'_>) -> Vec<Path> {
    let mut paths = divisors(document, &Path::of(&["spec"]));
    for agent in agents() {
        paths.push(agent.key("volumeLimitSize"));
        let claim = agent.key("volumeClaimTemplate").key("spec");
        for holder in [
            agent.key("resources"),
            agent.key("resourceRequirements"),
            claim.key("resources"),
        ] {
            for amounts in [holder.key("limits"), holder.key("requests")] {
                let found = amounts.get(&document.value).and_then(Value::as_object);
                let names = found.into_iter().flat_map(Map::keys);
                paths.extend(names.map(|name| amounts.key(name)));
            }
        }
        paths.extend(divisors(document, &agent));
    }
    paths
}

/// The paths of the divisors of the variables of a holder, which is the `spec` or an agent.
fn divisors(document: &Document<'_>, holder: &Path) -> Vec<Path> {
    let variables = document.entries(&holder.key("env")).into_iter();
    let resources = variables.map(|variable| variable.key("valueFrom").key("resourceFieldRef"));
    resources.map(|resource| resource.key("divisor")).collect()
}

/// Whether the schema of the resource accepts a text as a quantity: unlike Kubernetes itself, it requires a digit.
fn is_quantity(text: &str) -> bool {
    text.contains(|character: char| character.is_ascii_digit()) && quantity::of_text(text).is_some()
}

/// An error for a text that is no quantity. Values of other types are found by the schema.
fn check_quantity(document: &Document<'_>, path: &Path) -> Option<Diagnostic> {
    let name = path.name();
    match path.get(&document.value)? {
        Value::String(text) if !is_quantity(text) => {
            let message = format!("`{name}` must be a quantity (such as `64Mi`), not `{text}`");
            let problem = document.error(Code::WrongType, path, message);
            Some(match near_quantity(text) {
                Some(near) => problem.help(did_you_mean(&near)),
                None => problem,
            })
        }
        _ => None,
    }
}

/// The quantity that a text most likely means: `64Mi` for `64 MiB`.
fn near_quantity(text: &str) -> Option<String> {
    let dense = text.replace(char::is_whitespace, "");
    let near = dense.trim_end_matches(['b', 'B']);
    is_quantity(near).then(|| near.to_owned())
}

/// The most characters of a path to the configuration of a web server.
const MAX_PATH_LENGTH: usize = 256;

/// An error for a path to the configuration of a web server that the CustomResourceDefinition does not allow: it goes
/// into a shell script.
fn check_files(document: &Document<'_>, agent: &Path) -> Option<Diagnostic> {
    let mut keys = ["configPath", "configFile"].into_iter();
    keys.find_map(|key| {
        let path = agent.key(key);
        let rule = broken_file_rule(path.get(&document.value)?.as_str()?)?;
        Some(document.error(Code::Invalid, &path, format!("`{key}` {rule}")))
    })
}

fn broken_file_rule(path: &str) -> Option<&'static str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-".contains(letter);
    if !path.chars().all(is_plain) {
        Some("must contain only letters, digits, `.`, `_`, `/`, and `-`")
    } else if path.len() > MAX_PATH_LENGTH {
        Some("must have at most 256 characters")
    } else {
        None
    }
}
