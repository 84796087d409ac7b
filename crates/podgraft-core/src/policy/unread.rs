//! Diagnostics for texts of policies and configurations that cannot be read.

use super::PolicyFile;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Place;
use crate::yaml::parse::{ParseError, ParseErrorKind};
use crate::yaml::value::{ValueError, ValueErrorKind};

/// The diagnostic for a Helm template: the line with the error contains `{{`.
fn not_rendered(place: &Place, file_kind: &str) -> Option<Diagnostic> {
    let message = format!("{file_kind} is a template that has not been rendered");
    let diagnostic = Diagnostic::error(Code::NotRendered, message);
    let help = "render it first (`helm template`), then pass the result to podgraft";
    place
        .excerpt
        .contains("{{")
        .then(|| diagnostic.at(place.clone(), "here").help(help))
}

/// The diagnostic for a text that cannot be parsed. `file_kind` is its name in messages.
pub(crate) fn not_yaml(file: &PolicyFile, error: ParseError, file_kind: &str) -> Diagnostic {
    if let Some(diagnostic) = not_rendered(&file.place(error.at.clone()), file_kind) {
        return diagnostic;
    }
    let (code, message) = match error.kind {
        ParseErrorKind::Syntax(words) => (
            Code::NotYaml,
            format!("{file_kind} file is not valid YAML: {words}"),
        ),
        ParseErrorKind::TooDeep => (
            Code::TooDeep,
            format!("{file_kind} file is nested too deeply"),
        ),
        ParseErrorKind::UnknownAlias => (
            Code::UnknownAlias,
            "the alias refers to no preceding anchor".to_owned(),
        ),
        ParseErrorKind::TooLong => (Code::TooLong, format!("{file_kind} file is too long")),
    };
    Diagnostic::error(code, message).at(file.place(error.at), "here")
}

/// The diagnostic for a node that has no JSON value.
pub(super) fn not_a_value(file: &PolicyFile, error: ValueError) -> Diagnostic {
    let place = file.place(error.at);
    if let (ValueErrorKind::BadKey, Some(diagnostic)) =
        (&error.kind, not_rendered(&place, "the policy"))
    {
        return diagnostic;
    }
    let (code, message) = match error.kind {
        ValueErrorKind::DuplicateKey(key, first) => {
            return Diagnostic::error(
                Code::DuplicateKey,
                format!("the key `{key}` is defined twice in one mapping"),
            )
            .at(place, "second definition")
            .at(file.place(first), "first definition")
            .help("remove one of them: YAML readers disagree about which one counts");
        }
        ValueErrorKind::BadKey => (Code::BadPolicy, "a key must be a string".to_owned()),
        ValueErrorKind::BadTag(tag) => (
            Code::BadPolicy,
            format!("the tag `{tag}` is not valid here"),
        ),
        ValueErrorKind::BadMerge => (Code::BadPolicy, "`<<` accepts only mappings".to_owned()),
        ValueErrorKind::Cyclic => (
            Code::BadPolicy,
            "the alias is inside its own anchor".to_owned(),
        ),
        ValueErrorKind::TooLarge => (
            Code::TooLong,
            "the aliases expand to too much data".to_owned(),
        ),
        ValueErrorKind::TooDeep => (Code::TooDeep, "the policy is nested too deeply".to_owned()),
    };
    Diagnostic::error(code, message).at(place, "here")
}
