//! Policy files to policies: every document of every file, parameters assigned, sorted by weight.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ptr::fn_addr_eq;
use std::sync::Arc;

use super::builtin;
use super::conversion::{Given, Reading, Translated};
use super::document::{Document, Places};
use super::format::{self, Join, Translator};
use super::native;
use super::native::source::{self, Instance};
pub use super::params::ParamSetting;
use super::params::{self, Declared};
use super::schema::{did_you_mean, nearest};
use super::{Policy, PolicyText};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::workload::group_of;
use crate::source::Place;
use crate::yaml::parse::{ParseError, ParseErrorKind, parse};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, ValueError, ValueErrorKind, boolean_key, find, to_value};

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
    let given_sources: Vec<Kind> = trees
        .iter()
        .flat_map(|(_, tree)| sources_in(tree))
        .collect();
    let built_in = built_in_sources(&trees, &given_sources);
    let more = parse_all(&built_in, &mut problems);
    let built_in_sources = more.iter().flat_map(|(_, tree)| sources_in(tree));
    let sources: Vec<Kind> = given_sources
        .iter()
        .cloned()
        .chain(built_in_sources)
        .collect();
    let mut found: Vec<Found<'_>> = Vec::new();
    for (file, tree) in trees.iter().chain(&more) {
        find_policies(file, tree, &sources, &mut found, &mut problems);
    }
    let found = without_duplicates(found, &mut problems);
    let renamed: BTreeMap<String, String> = found.iter().filter_map(renamed_from).collect();
    let declared: Vec<Declared> = found.iter().map(Found::declared).collect();
    let (assigned, unassigned) = params::assign(settings, &declared);
    // A broken file hides its parameters: a setting for one of them is not a second mistake.
    if problems.is_empty() {
        problems.extend(unassigned);
    }
    let given = |at: usize| Given {
        settings: &assigned[at],
        reading: &reading,
    };
    let (of_sources, others): (Vec<_>, Vec<_>) = found
        .into_iter()
        .enumerate()
        .partition(|(_, found)| found.source().is_some());
    let (resources, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|(_, found)| matches!(found.role, Role::Resource));
    let mut joint: Vec<(Join, Vec<Document<'_>>)> = Vec::new();
    for (at, found) in others {
        converted.extend(found.converted(&given(at)));
        if let Role::Policy(Translator::Joint { join, .. }) = found.role {
            match joint.iter_mut().find(|(other, _)| fn_addr_eq(*other, join)) {
                Some((_, documents)) => documents.push(found.document),
                None => joint.push((join, vec![found.document])),
            }
            continue;
        }
        match found.translate(&given(at)) {
            Ok(Some(translated)) => {
                policies.push(translated.policy);
                problems.extend(translated.warnings);
            }
            Ok(None) => {}
            Err(reasons) => problems.extend(reasons),
        }
    }
    for (at, source) in of_sources {
        match source.of_resources(&resources, &given(at)) {
            Ok(translated) => {
                for one in translated {
                    policies.push(one.policy);
                    problems.extend(one.warnings);
                }
            }
            Err(reasons) => problems.extend(reasons),
        }
    }
    for (join, documents) in joint {
        let (joined, found) = join(documents, &reading);
        policies.extend(joined);
        problems.extend(found);
    }
    for policy in policies.iter_mut() {
        policy.renamed_from = renamed.get(&policy.identity).cloned();
    }
    problems
}

/// The annotation of a policy that had another name before.
pub const RENAMED_FROM: &str = "podgraft.dev/renamed-from";

/// The identity of a policy, and the one that it had before.
fn renamed_from(found: &Found<'_>) -> Option<(String, String)> {
    let document = &found.document;
    let old = document.text(&["metadata", "annotations", RENAMED_FROM])?;
    let identity = document.identity();
    let before = identity.rsplit_once('/').map_or("", |(before, _)| before);
    let parts = [before, old];
    let old = parts.iter().filter(|part| !part.is_empty());
    let old = old.copied().collect::<Vec<_>>().join("/");
    Some((identity, old))
}

/// A group and a kind.
type Kind = (String, String);

fn kind_of(tree: &Tree<'_>, root: NodeId) -> Kind {
    let group = group_of(word(tree, root, "apiVersion")).to_owned();
    (group, word(tree, root, "kind").to_owned())
}

/// The kinds of the resources that the policies of a file are for.
fn sources_in(tree: &Tree<'_>) -> Vec<Kind> {
    let roots = tree.roots().iter().flat_map(|&root| objects(tree, root));
    let source = |root: NodeId| {
        let source = find(tree, root, &Path::of(&["spec", "source"]));
        let is_policy = word(tree, root, "kind") == format::FORMATS[0].kind;
        (is_policy && source.key.is_some()).then(|| kind_of(tree, tree.follow(source.value)))
    };
    roots.filter_map(source).collect()
}

/// The built-in policies for resources that are among the files, where no given policy is for them.
fn built_in_sources(
    trees: &[(&Arc<PolicyText>, Tree<'_>)],
    given: &[Kind],
) -> Vec<Arc<PolicyText>> {
    let mut texts = Vec::new();
    for (_, tree) in trees {
        for root in tree.roots().iter().flat_map(|&root| objects(tree, root)) {
            let kind = kind_of(tree, root);
            let Some(builtin) = builtin::for_resources(&kind.0, &kind.1) else {
                continue;
            };
            let file = builtin.file();
            let is_new = texts
                .iter()
                .all(|text: &Arc<PolicyText>| text.name != file.name);
            if is_new && !given.contains(&kind) {
                let (name, text) = (file.name, file.text);
                texts.push(Arc::new(PolicyText { name, text }));
            }
        }
    }
    texts
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
    let sources: Vec<Kind> = trees
        .iter()
        .flat_map(|(_, tree)| sources_in(tree))
        .collect();
    for (file, tree) in &trees {
        find_policies(file, tree, &sources, &mut found, &mut unread);
    }
    found.iter().map(Found::declared).collect()
}

struct Found<'t> {
    document: Document<'t>,
    role: Role,
}

/// What an object is.
enum Role {
    /// A policy, or what becomes one.
    Policy(Translator),
    /// What a policy with a `source` is for.
    Resource,
}

impl<'t> Found<'t> {
    /// The group and kind of the resources that it is for, where it is such a policy.
    fn source(&self) -> Option<(&str, &str)> {
        match self.role {
            Role::Policy(Translator::Native) => source::kind_of(&self.document.value),
            Role::Policy(Translator::Converting { .. } | Translator::Joint { .. })
            | Role::Resource => None,
        }
    }

    fn translate(self, given: &Given<'_>) -> Result<Option<Translated>, Vec<Diagnostic>> {
        match self.role {
            Role::Policy(translator) => translator.translate(self.document, given),
            Role::Resource => Ok(None),
        }
    }

    /// The policy for each resource of its kind, by name.
    fn of_resources(
        &self,
        resources: &[(usize, Found<'t>)],
        given: &Given<'_>,
    ) -> Result<Vec<Translated>, Vec<Diagnostic>> {
        let kind = |document: &Document<'_>| {
            let group = group_of(document.text(&["apiVersion"]).unwrap_or_default()).to_owned();
            (
                group,
                document.text(&["kind"]).unwrap_or_default().to_owned(),
            )
        };
        let (group, name) = self.source().unwrap_or_default();
        let wanted = (group.to_owned(), name.to_owned());
        let documents = resources.iter().map(|(_, found)| &found.document);
        let mut own: Vec<&Document<'t>> = documents
            .filter(|document| kind(document) == wanted)
            .collect();
        own.sort_by_key(|document| document.identity());
        if own.is_empty() {
            let open = Reading {
                params_stay_open: true,
                ..given.reading.clone()
            };
            let given = Given {
                reading: &open,
                ..*given
            };
            return native::translate(self.document.clone(), &given, None).map(|_| Vec::new());
        }
        let (mut translated, mut problems) = (Vec::new(), Vec::new());
        for document in own {
            let read = Instance::new(document, &self.document).and_then(|instance| {
                native::translate(self.document.clone(), given, Some(&instance))
            });
            match read {
                Ok((Some(policy), warnings)) => translated.push(Translated { policy, warnings }),
                Ok((None, warnings)) => problems.extend(warnings),
                Err(found) => problems.extend(
                    found
                        .into_iter()
                        .filter(|one| !problems.contains(one))
                        .collect::<Vec<_>>(),
                ),
            }
        }
        if problems.is_empty() {
            Ok(translated)
        } else {
            Err(problems)
        }
    }

    /// What a resource of another operator becomes; what is wrong with it is said where it is translated.
    fn converted(&self, given: &Given<'_>) -> Option<Converted> {
        let Role::Policy(translator) = &self.role else {
            return None;
        };
        let conversion = translator.convert(&self.document, given)?.ok()?;
        Some(Converted {
            identity: self.document.identity(),
            file: Arc::clone(&self.document.file.name),
            policy: conversion.policy,
            remarks: conversion.remarks,
        })
    }

    fn declared(&self) -> Declared {
        let names = match &self.role {
            Role::Policy(translator) => translator.declared(&self.document),
            Role::Resource => Vec::new(),
        };
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
    sources: &[Kind],
    found: &mut Vec<Found<'t>>,
    problems: &mut Vec<Diagnostic>,
) {
    let before = found.len() + problems.len();
    for root in tree.roots().iter().flat_map(|&root| objects(tree, root)) {
        match read_object(file, tree, root, sources) {
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
    sources: &[Kind],
) -> Result<Option<Found<'t>>, Box<Diagnostic>> {
    let (api_version, kind) = (word(tree, root, "apiVersion"), word(tree, root, "kind"));
    let at = |key: &str| file.place(tree.span(find(tree, root, &Path::of(&[key])).value));
    let found = |role| {
        let value = to_value(tree, root).map_err(|error| Box::new(not_a_value(file, error)))?;
        let document = Document {
            file: Arc::clone(file),
            places: Places::Tree(tree, root),
            value,
        };
        Ok(Some(Found { document, role }))
    };
    if sources.contains(&kind_of(tree, root)) {
        return found(Role::Resource);
    }
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
    if format.kind == format::FORMATS[0].kind
        && let Some(key) = boolean_key(tree, root)
    {
        let text = tree.scalar(key).unwrap_or_default();
        let message = format!("the key `{text}` must be a string, this is a boolean");
        let problem =
            Diagnostic::error(Code::WrongType, message).at(file.place(tree.span(key)), "here");
        return Err(Box::new(problem.help(format!("quote it: \"{text}\""))));
    }
    found(Role::Policy(format.translator))
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
