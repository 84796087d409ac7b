//! Reads an Instrumentation as an API server with the operator's CustomResourceDefinition admits it.

use serde_json::{Map, Value};

use super::language::Language;
use crate::diagnostic::{Code, Diagnosed, Diagnostic, Severity, unless};
use crate::policy::document::Document;
use crate::policy::pruning::{drop_field, drop_nulls};
use crate::policy::quantity;
use crate::policy::schema::{Schema, SchemaProblemKind, TemplateMode, did_you_mean};
use crate::policy::stored_schemas::INSTRUMENTATION;
use crate::yaml::value::Path;

static SCHEMA: Schema = Schema::Stored(&INSTRUMENTATION, "Instrumentation");

/// The resource as an API server stores it: without null and unknown fields. Unknown ones are warnings here, because an
/// API server drops them silently.
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
    refused.extend(check_divisors(&admitted, &Path::of(&["spec"])));
    for language in Language::ALL {
        if let Some(field) = language.field() {
            let agent = Path::of(&["spec", field]);
            refused.extend(check_quantities(&admitted, &agent));
            refused.extend(check_divisors(&admitted, &agent));
            refused.extend(check_files(&admitted, &agent));
        }
    }
    unless(refused, admitted)
}

/// Errors for the quantities of an agent: `volumeLimitSize`, and those of containers and claims.
fn check_quantities(document: &Document<'_>, agent: &Path) -> Vec<Diagnostic> {
    let mut paths = vec![agent.key("volumeLimitSize")];
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
    let checked = paths.iter();
    checked
        .filter_map(|path| check_quantity(document, path))
        .collect()
}

/// Errors for the divisors of the variables of a holder, which is the `spec` or an agent.
fn check_divisors(document: &Document<'_>, holder: &Path) -> Vec<Diagnostic> {
    let variables = document.entries(&holder.key("env")).into_iter();
    let resources = variables.map(|variable| variable.key("valueFrom").key("resourceFieldRef"));
    resources
        .filter_map(|resource| check_quantity(document, &resource.key("divisor")))
        .collect()
}

/// Whether the schema of the resource accepts a text as a quantity: unlike Kubernetes itself, it requires a digit.
fn is_quantity(text: &str) -> bool {
    text.contains(|character: char| character.is_ascii_digit()) && quantity::of_text(text).is_some()
}

/// An error for a text that is no quantity, or a number with a fraction: unquoted, a quantity is an integer. Values of
/// other types are found by the schema.
fn check_quantity(document: &Document<'_>, path: &Path) -> Option<Diagnostic> {
    let name = path.name();
    match path.get(&document.value)? {
        Value::Number(number) if number.is_f64() => {
            let written = document.written(path).unwrap_or_default();
            let message = format!("`{name}` must be an integer or a string, not `{written}`");
            let problem = document.error(Code::WrongType, path, message);
            Some(problem.help(format!("quote it: \"{written}\"")))
        }
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
