//! Policy files to policies: every document of every file, parameters assigned, sorted by weight.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::conversion::{Given, Reading};
use super::document::{Document, Places};
use super::format::{self, Translator};
pub use super::params::ParamSetting;
use super::params::{self, Declared};
use super::schema::{did_you_mean, nearest};
use super::{Policy, PolicyText};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Place;
use crate::yaml::parse::{ParseError, ParseErrorKind, parse};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, ValueError, ValueErrorKind, find, to_value};

/// A file that `-p` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// What the user calls it.
    pub name: Arc<str>,
    /// All of it.
    pub text: String,
}

/// The policies in the order in which they are applied (weight, file, document), and all that is wrong. Policies that
/// are not in order are left out.
pub fn read(files: Vec<PolicyFile>, settings: &[ParamSetting]) -> (Vec<Policy>, Vec<Diagnostic>) {
    read_as(files, settings, Reading::default())
}

/// [`read`], with what holds for resources of other formats.
pub fn read_as(
    files: Vec<PolicyFile>,
    settings: &[ParamSetting],
    reading: Reading,
) -> (Vec<Policy>, Vec<Diagnostic>) {
    let (mut policies, mut converted) = (Vec::new(), Vec::new());
    let problems = read_each(files, settings, reading, &mut policies, &mut converted);
    policies.sort_by_key(|policy: &Policy| policy.weight);
    (policies, problems)
}

/// A resource of another operator and what it becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The resource's.
    pub identity: String,
    /// The file that it stands in.
    pub file: Arc<str>,
    /// The `InjectionPolicy`.
    pub policy: Value,
    /// What people who read it should know.
    pub remarks: Vec<String>,
}

/// What the resources of other operators become, in the order of the files, and all that is wrong.
pub fn convert_all(
    files: Vec<PolicyFile>,
    settings: &[ParamSetting],
    reading: Reading,
) -> (Vec<Converted>, Vec<Diagnostic>) {
    let (mut policies, mut converted) = (Vec::new(), Vec::new());
    let problems = read_each(files, settings, reading, &mut policies, &mut converted);
    (converted, problems)
}

fn read_each(
    files: Vec<PolicyFile>,
    settings: &[ParamSetting],
    reading: Reading,
    policies: &mut Vec<Policy>,
    converted: &mut Vec<Converted>,
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let texts: Vec<Arc<PolicyText>> = files
        .into_iter()
        .map(|file| {
            Arc::new(PolicyText {
                name: file.name,
                text: file.text,
            })
        })
        .collect();
    let trees = parse_all(&texts, &mut problems);
    let mut found: Vec<Found<'_>> = Vec::new();
    for (file, tree) in &trees {
        find_policies(file, tree, &mut found, &mut problems);
    }
    let found = without_duplicates(found, &mut problems);
    let declared: Vec<Declared> = found.iter().map(Found::declared).collect();
    let (assigned, unassigned) = params::assign(settings, &declared);
    // A broken file hides its parameters: a setting for one of them is not a second mistake.
    if problems.is_empty() {
        problems.extend(unassigned);
    }
    for (found, settings) in found.into_iter().zip(&assigned) {
        let given = Given { settings, reading };
        converted.extend(found.converted(&given));
        match found.translator.translate(found.document, &given) {
            Ok(translated) => {
                policies.push(translated.policy);
                problems.extend(translated.warnings);
            }
            Err(reasons) => problems.extend(reasons),
        }
    }
    problems
}

/// What the policies of the files declare, as far as they can be read.
pub fn declared(files: &[PolicyFile]) -> Vec<Declared> {
    let text = |file: &PolicyFile| {
        Arc::new(PolicyText {
            name: Arc::clone(&file.name),
            text: file.text.clone(),
        })
    };
    let texts: Vec<Arc<PolicyText>> = files.iter().map(text).collect();
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let trees = parse_all(&texts, &mut unread);
    for (file, tree) in &trees {
        find_policies(file, tree, &mut found, &mut unread);
    }
    found.iter().map(Found::declared).collect()
}

struct Found<'t> {
    document: Document<'t>,
    translator: Translator,
}

impl Found<'_> {
    /// What a resource of another operator becomes; what is wrong with it is said where it is translated.
    fn converted(&self, given: &Given<'_>) -> Option<Converted> {
        let conversion = self.translator.convert(&self.document, given)?.ok()?;
        Some(Converted {
            identity: self.document.identity(),
            file: Arc::clone(&self.document.file.name),
            policy: conversion.policy,
            remarks: conversion.remarks,
        })
    }

    fn declared(&self) -> Declared {
        let names = self.translator.declared(&self.document);
        let params = self
            .document
            .value
            .pointer("/spec/params")
            .and_then(Value::as_array);
        let overridable = params
            .into_iter()
            .flatten()
            .filter(|param| param["overridable"] == Value::Bool(true));
        let overridable = overridable
            .filter_map(|param| param["name"].as_str().map(str::to_owned))
            .collect();
        Declared {
            identity: self.document.identity(),
            names,
            overridable,
        }
    }
}

fn parse_all<'t>(
    texts: &'t [Arc<PolicyText>],
    problems: &mut Vec<Diagnostic>,
) -> Vec<(&'t Arc<PolicyText>, Tree<'t>)> {
    let mut trees = Vec::new();
    for file in texts {
        match parse(&file.text) {
            Ok(tree) => trees.push((file, tree)),
            Err(error) => problems.push(not_yaml(file, error, "the policy")),
        }
    }
    trees
}

/// A line with `{{` that does not read as YAML was meant for Helm.
fn not_rendered(place: &Place) -> Option<Diagnostic> {
    let diagnostic = Diagnostic::error(
        Code::NotRendered,
        "the policy is a template that has not been rendered",
    );
    let help = "render it first (`helm template`), then give podgraft the result";
    place
        .excerpt
        .contains("{{")
        .then(|| diagnostic.at(place.clone(), "here").help(help))
}

/// Why the text of what is called so has no tree.
pub fn not_yaml(file: &PolicyText, error: ParseError, what: &str) -> Diagnostic {
    if let Some(diagnostic) = not_rendered(&file.place(error.at.clone())) {
        return diagnostic;
    }
    let (code, message) = match error.kind {
        ParseErrorKind::Syntax(words) => (
            Code::NotYaml,
            format!("{what} file is not valid YAML: {words}"),
        ),
        ParseErrorKind::TooDeep => (Code::TooDeep, format!("{what} file nests too deep")),
        ParseErrorKind::UnknownAlias => (
            Code::UnknownAlias,
            "the alias has no anchor before it".to_owned(),
        ),
        ParseErrorKind::TooLong => (Code::TooLong, format!("{what} file is too long")),
    };
    Diagnostic::error(code, message).at(file.place(error.at), "here")
}

fn find_policies<'t>(
    file: &Arc<PolicyText>,
    tree: &'t Tree<'t>,
    found: &mut Vec<Found<'t>>,
    problems: &mut Vec<Diagnostic>,
) {
    let before = found.len() + problems.len();
    for root in tree.roots().iter().flat_map(|&root| objects(tree, root)) {
        match read_object(file, tree, root) {
            Ok(policy) => found.extend(policy),
            Err(problem) => problems.push(*problem),
        }
    }
    if found.len() + problems.len() == before {
        let message = format!("`{}` has no policy", file.name);
        let help = format!("the kinds of policy are {}", format::understood());
        problems.push(
            Diagnostic::error(Code::BadPolicy, message)
                .at(file.place(0..0), "in this file")
                .help(help),
        );
    }
}

/// A document's objects: the items of a `List` (or `RookoutList`), or itself.
fn objects(tree: &Tree<'_>, root: NodeId) -> Vec<NodeId> {
    let items = find(tree, root, &Path::of(&["items"]));
    if word(tree, root, "kind").ends_with("List") && items.key.is_some() {
        return tree.children(tree.follow(items.value)).collect();
    }
    vec![root]
}

/// The text of a key of an object; empty when it is not there.
fn word<'t>(tree: &'t Tree<'_>, root: NodeId, key: &str) -> &'t str {
    let found = find(tree, root, &Path::of(&[key]));
    if found.key.is_some() {
        tree.scalar(found.value).unwrap_or_default()
    } else {
        ""
    }
}

fn read_object<'t>(
    file: &Arc<PolicyText>,
    tree: &'t Tree<'t>,
    root: NodeId,
) -> Result<Option<Found<'t>>, Box<Diagnostic>> {
    let (api_version, kind) = (word(tree, root, "apiVersion"), word(tree, root, "kind"));
    let at = |key: &str| file.place(tree.span(find(tree, root, &Path::of(&[key])).value));
    let Some(format) = format::find(api_version, kind) else {
        return match misspelt(api_version, kind) {
            Some((key, message, help)) => Err(Box::new(
                Diagnostic::error(Code::BadPolicy, message)
                    .at(at(key), "here")
                    .help(help),
            )),
            None => Ok(None),
        };
    };
    let Some(translator) = format.translator else {
        let message = format!("policies of kind `{kind}` come with a later version of podgraft");
        let help = format!("this version reads {}", format::understood());
        return Err(Box::new(
            Diagnostic::error(Code::NotSupported, message)
                .at(at("kind"), "here")
                .help(help),
        ));
    };
    let value = to_value(tree, root).map_err(|error| Box::new(not_a_value(file, error)))?;
    Ok(Some(Found {
        document: Document {
            file: Arc::clone(file),
            places: Places::Tree(tree, root),
            value,
        },
        translator,
    }))
}

/// Kinds of `podgraft.dev` that are no policies.
const NO_POLICIES: [&str; 2] = ["Config", "PolicyTest"];

/// What is nearly one of ours: the key that is wrong, a message and a help.
fn misspelt(api_version: &str, kind: &str) -> Option<(&'static str, String, String)> {
    let native = &format::FORMATS[0];
    if kind == native.kind {
        let message = format!("`{kind}` has no version `{api_version}`");
        return Some((
            "apiVersion",
            message,
            format!("write `apiVersion: {}`", native.api_version),
        ));
    }
    let is_ours = api_version.starts_with("podgraft.dev/") && !NO_POLICIES.contains(&kind);
    let help = match nearest(kind, [native.kind].into_iter()) {
        Some(near) => did_you_mean(near),
        None => format!("the kinds of policy are {}", format::understood()),
    };
    is_ours.then(|| ("kind", format!("podgraft.dev has no kind `{kind}`"), help))
}

/// Why a node of a policy or a configuration has no value.
pub fn not_a_value(file: &PolicyText, error: ValueError) -> Diagnostic {
    let place = file.place(error.at);
    if let (ValueErrorKind::BadKey, Some(diagnostic)) = (&error.kind, not_rendered(&place)) {
        return diagnostic;
    }
    let (code, message) = match error.kind {
        ValueErrorKind::DuplicateKey(key, first) => {
            return Diagnostic::error(Code::DuplicateKey, format!("the key `{key}` stands twice"))
                .at(place, "again here")
                .at(file.place(first), "first here")
                .help("readers of YAML disagree about which one counts: keep one");
        }
        ValueErrorKind::BadKey => (Code::BadPolicy, "a key must be a text".to_owned()),
        ValueErrorKind::BadTag(tag) => (
            Code::BadPolicy,
            format!("the tag `{tag}` does not fit here"),
        ),
        ValueErrorKind::BadMerge => (Code::BadPolicy, "`<<` takes mappings only".to_owned()),
        ValueErrorKind::Cyclic => (
            Code::BadPolicy,
            "the alias stands within its own anchor".to_owned(),
        ),
        ValueErrorKind::TooLarge => (Code::TooLong, "the aliases expand to too much".to_owned()),
        ValueErrorKind::TooDeep => (Code::TooDeep, "the policy nests too deep".to_owned()),
    };
    Diagnostic::error(code, message).at(place, "here")
}

/// The first of each identity; every other is reported.
fn without_duplicates<'t>(found: Vec<Found<'t>>, problems: &mut Vec<Diagnostic>) -> Vec<Found<'t>> {
    let name = Path::of(&["metadata", "name"]);
    let mut first = BTreeMap::new();
    let mut kept = Vec::new();
    for policy in found {
        let identity = policy.document.identity();
        let place = policy.document.place(&name);
        match first.get(&identity) {
            Some(earlier) => {
                let message = format!("two policies are called `{identity}`");
                let problem = Diagnostic::error(Code::DuplicatePolicy, message);
                let problem = problem
                    .at(place, "again here")
                    .at(Clone::clone(earlier), "first here");
                problems.push(problem.help("rename one of them"));
            }
            None => {
                first.insert(identity, place);
                kept.push(policy);
            }
        }
    }
    kept
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
