//! Documents that are refused, in words.

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic};
use crate::source::{Place, Source};
use crate::yaml::parse::{ParseError, ParseErrorKind};

pub(super) fn duplicate(place: Place, key: &str) -> Diagnostic {
    if key == "<<" {
        let message = "this `<<` brings a key that stands before it in the same mapping";
        return Diagnostic::error(Code::DuplicateKey, message)
            .at(place, "the merged one counts to kubectl, the other one to most readers")
            .help("write the `<<` first in its mapping, or take one of the two keys out");
    }
    let problem = Diagnostic::error(Code::DuplicateKey, format!("the key `{key}` stands twice in one mapping"));
    problem.at(place, "the second one").help("readers disagree about which one counts: take one of them out")
}

pub(super) fn untyped(list_kind: &str, place: Place) -> Diagnostic {
    let problem = Diagnostic::error(
        Code::UntypedItems,
        format!("an item of this {list_kind} does not state its apiVersion and kind"),
    );
    problem
        .at(place, "what is this?")
        .help("state apiVersion and kind in every item, as `kubectl get -o yaml` does in its `kind: List`")
}

pub(super) fn not_rendered(place: Place) -> Diagnostic {
    Diagnostic::error(Code::NotRendered, "this is a template that has not been rendered")
        .at(place, "`{{` stands where a value or a line begins")
        .help("render it first, and give podgraft the result: helm template RELEASE CHART | podgraft apply -p POLICY -")
}

pub(super) fn parse_problem(error: &ParseError, source: &Source<'_>) -> Diagnostic {
    if let Some(at) = find_template_line(source.text) {
        return not_rendered(source.place(at));
    }
    let place = source.place(error.at.clone());
    match &error.kind {
        ParseErrorKind::Syntax(message) => {
            let problem = Diagnostic::error(Code::NotYaml, format!("this is not YAML: {message}"))
                .at(place, "the parser stopped here");
            let is_json_stream = source.text.trim_start().starts_with('{');
            if is_json_stream {
                problem.help("JSON objects one after the other need a `---` line between them")
            } else {
                problem
            }
        }
        ParseErrorKind::TooDeep => {
            Diagnostic::error(Code::TooDeep, "this document nests deeper than 256 levels").at(place, "here")
        }
        ParseErrorKind::UnknownAlias => {
            Diagnostic::error(Code::UnknownAlias, "this alias has no anchor before it in its document")
                .at(place, "here")
        }
        ParseErrorKind::TooLong => {
            Diagnostic::error(Code::TooLong, "this document is larger than 4 GiB").at(place, "here")
        }
    }
}

/// The first `{{` that begins a line or a value.
fn find_template_line(text: &str) -> Option<Range<usize>> {
    let begins = |at: &usize| {
        let line = text[..*at].rfind('\n').map_or(0, |found| found + 1);
        let before = text[line..*at].trim_end();
        before.is_empty() || before.ends_with(':') || before.ends_with('-')
    };
    text.match_indices("{{").map(|(at, _)| at).find(begins).map(|at| at..at + 2)
}
