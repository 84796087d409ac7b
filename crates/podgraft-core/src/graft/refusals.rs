//! Diagnostics for documents and workloads that are refused.

use serde_json::{Map, Value};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::object::find_template_line;
use crate::manifest::pod::Workload;
use crate::mask;
use crate::source::{Place, Source};
use crate::yaml::parse::{ParseError, ParseErrorKind};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::scalar_value;

/// Refuses documents whose identity is ambiguous: duplicate identity keys, a `kind` or `apiVersion` with a bad tag,
/// and content on the line of the `---`, which kubectl rejects.
pub(super) fn refuse_root(tree: &Tree<'_>, source: &Source<'_>) -> Option<Diagnostic> {
    tree.roots().iter().find_map(|&root| {
        let root = tree.follow(root);
        refuse_keys(tree, root, source).or_else(|| refuse_first_line(tree, root, source))
    })
}

/// Refuses an object whose identity readers disagree about.
fn refuse_keys(tree: &Tree<'_>, root: NodeId, source: &Source<'_>) -> Option<Diagnostic> {
    let is_mapping = tree.kind(root).is_mapping();
    if let Some(key) = is_mapping.then(|| tree.duplicate_key(root)).flatten() {
        let name = tree.scalar(key).unwrap_or_default();
        if matches!(name, "kind" | "apiVersion" | "items" | "metadata" | "spec") {
            return Some(duplicate_in(tree, key, source));
        }
    }
    let mut values = ["kind", "apiVersion"]
        .into_iter()
        .filter_map(|key| tree.get(root, key));
    let tagged = values.find(|&value| scalar_value(tree, value).is_err())?;
    let place = source.place(tree.span(tagged));
    let message = "this object hides its kind behind a YAML tag";
    let problem = Diagnostic::error(Code::CannotEdit, message);
    let problem = problem.at(place, "YAML readers disagree about this value");
    Some(problem.help("write the value without the tag"))
}

/// Refuses an object that begins on the line of the `---`.
fn refuse_first_line(tree: &Tree<'_>, root: NodeId, source: &Source<'_>) -> Option<Diagnostic> {
    let start = tree.start(root);
    let line = source.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let is_separator = source.text[line..]
        .trim_start_matches('\u{feff}')
        .starts_with("---");
    if !tree.kind(root).is_collection() || !is_separator {
        return None;
    }
    let message = "a document starts on the same line as its `---`, which kubectl rejects";
    let problem = Diagnostic::error(Code::CannotEdit, message);
    let problem = problem.at(source.place(start..start), "starts here");
    Some(problem.help("move it to the next line"))
}

/// Refuses a workload with a duplicate key in a field that selection reads.
pub(super) fn refuse_workload(workload: &Workload<'_>) -> Option<Diagnostic> {
    let key = workload.duplicate_key()?;
    Some(duplicate_in(workload.tree, key, workload.source))
}

/// Refuses a pod that cannot be edited.
pub(super) fn refuse_pod(workload: &Workload<'_>) -> Option<Diagnostic> {
    if let Some(node) = workload.malformed_containers() {
        let message = format!(
            "the containers of {} are not a list of mappings",
            workload.title()
        );
        let problem =
            Diagnostic::error(Code::Invalid, message).at(workload.place(node), "wrong type");
        let help = "write them as a list: `- name: NAME` and the other fields below it";
        return Some(problem.help(help));
    }
    if let Some((field, key, node)) = workload.untyped_text() {
        let subject = match field {
            "labels" => "a label",
            _ => "an annotation",
        };
        let message = format!(
            "{subject} of {} is not a string, so the API server rejects it",
            workload.title()
        );
        let problem = Diagnostic::error(Code::Invalid, message).at(workload.place(node), "here");
        let help = match workload.tree.scalar(workload.tree.follow(node)) {
            Some(text) => mask::quote_it(key, text),
            None => "write it as one string, in quotes or after `|`".to_owned(),
        };
        return Some(problem.help(help));
    }
    refuse_duplicate_in_pod(workload)
}

/// Refuses a pod with a duplicate key in its `spec` or in a container.
pub(super) fn refuse_duplicate_in_pod(workload: &Workload<'_>) -> Option<Diagnostic> {
    let key = workload.duplicate_key_in_pod()?;
    Some(duplicate_in(workload.tree, key, workload.source))
}

/// Refuses the second of two equal keys.
pub(super) fn duplicate_in(tree: &Tree<'_>, key: NodeId, source: &Source<'_>) -> Diagnostic {
    let at = tree.span(key);
    let is_at_line_start = tree.text()[..at.start].ends_with('\n');
    let place = source.place(at);
    let key = tree.scalar(key).unwrap_or_default();
    if key == "<<" {
        let message = "this `<<` merges a key that is already defined in the same mapping";
        return Diagnostic::error(Code::DuplicateKey, message)
            .at(
                place,
                "kubectl uses the merged value, most other readers the earlier one",
            )
            .help("move the `<<` to the start of its mapping, or remove one of the two keys");
    }
    let message = format!("the key `{key}` is defined twice in one mapping");
    let help = match key {
        "apiVersion" | "kind" if is_at_line_start => {
            "if another object begins here, put a line with only `---` above it; otherwise, remove \
             one of the two"
        }
        _ => "remove one of them: YAML readers disagree about which one counts",
    };
    Diagnostic::error(Code::DuplicateKey, message)
        .at(place, "second definition")
        .help(help)
}

pub(super) fn untyped(list_kind: &str, place: Place) -> Diagnostic {
    let message = format!("an item of this {list_kind} has no apiVersion and kind");
    Diagnostic::error(Code::UntypedItems, message)
        .at(place, "unknown kind")
        .help(
            "set apiVersion and kind in every item, as `kubectl get -o yaml` does in its `kind: \
             List`",
        )
}

/// The help for an unrendered template that belongs to no known chart.
pub const RENDER_FIRST: &str = "render it first, and pass the result to podgraft: helm template \
                                RELEASE CHART | podgraft apply -p POLICY -";

pub(super) fn not_rendered(place: Place) -> Diagnostic {
    let message = "this template has not been rendered";
    Diagnostic::error(Code::NotRendered, message)
        .at(place, "`{{` at the start of a value or a line")
        .help(RENDER_FIRST)
}

pub(super) fn parse_problem(error: &ParseError, source: &Source<'_>) -> Diagnostic {
    if let Some(at) = find_template_line(source.text) {
        return not_rendered(source.place(at));
    }
    let place = source.place(error.at.clone());
    match &error.kind {
        ParseErrorKind::Syntax(message) => {
            let message = format!("invalid YAML: {message}");
            let problem = Diagnostic::error(Code::NotYaml, message);
            let problem = problem.at(place, "the parser stopped here");
            let stopped_at = source.text.get(error.at.start..).unwrap_or_default();
            let is_second_object = stopped_at.starts_with('{');
            match is_second_object && source.text.trim_start().starts_with('{') {
                true => problem.help("separate the JSON objects with `---` lines"),
                false => problem,
            }
        }
        ParseErrorKind::TooDeep => {
            Diagnostic::error(Code::TooDeep, "this document nests deeper than 256 levels")
                .at(place, "here")
        }
        ParseErrorKind::UnknownAlias => Diagnostic::error(
            Code::UnknownAlias,
            "this alias has no anchor before it in the document",
        )
        .at(place, "here"),
        ParseErrorKind::TooLong => {
            Diagnostic::error(Code::TooLong, "this document is larger than 4 GiB").at(place, "here")
        }
    }
}

/// Whether a text that YAML parsers refuse is JSON without Kubernetes objects: JSON objects without a `kind`, one after the
/// other, which kubectl reads as a stream, or JSON with comments that names no `kind`, such as a `tsconfig.json`.
pub(super) fn is_other_json(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    let is_other = |object: serde_json::Result<Map<String, Value>>| {
        object.is_ok_and(|object| !object.contains_key("kind"))
    };
    // With a backslash, a key may be written in another way.
    let names_no_kind = !text.contains("kind") && !text.contains('\\');
    let is_commented = ["//", "/*"].iter().any(|comment| text.contains(comment));
    match text.chars().next() {
        Some('{') => is_commented && names_no_kind || objects.all(is_other),
        Some('/' | '[') => is_commented && names_no_kind,
        _ => false,
    }
}

/// Refuses text that looks like UTF-16: kubectl reads that encoding and could find workloads in it.
pub(super) fn refuse_encoding(name: &Arc<str>, text: &[u8]) -> Option<Diagnostic> {
    let has_mark = text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]);
    if !has_mark && !text.iter().take(4).any(|&byte| byte == 0) {
        return None;
    }
    let place = Source::new(Arc::clone(name), "").place(0..0);
    let message = format!("`{name}` is not UTF-8; it looks like UTF-16 or binary data");
    let problem = Diagnostic::error(Code::NotUtf8, message).at(place, "the file's first bytes");
    Some(problem.help("convert it: iconv -f UTF-16 -t UTF-8"))
}
