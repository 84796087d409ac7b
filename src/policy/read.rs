//! Policy files to policies: every document of every file, parameters assigned, sorted by weight.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::fn_addr_eq;
use std::sync::Arc;

use super::builtin;
use super::conversion::{DebugMode, Given, Reading};
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
    for (file, tree) in &trees {
        find_policies(file, tree, &sources, &mut found, &mut problems);
    }
    let mut found = without_duplicates(found, &mut problems);
    for (file, tree) in &more {
        find_policies(file, tree, &sources, &mut found, &mut problems);
    }
    let renamed: BTreeMap<String, String> = found.iter().filter_map(renamed_from).collect();
    let owners = owners(&found);
    let debug_mode = debug_mode(&reading);
    let (assigned, unassigned) = settings_of(&found, &owners, settings, &debug_mode);
    // A broken file hides its parameters: a setting for one of them is not a second mistake.
    if problems.is_empty() {
        problems.extend(unassigned);
    }
    let given = |at: usize| Given {
        settings: &assigned[at],
        reading: &reading,
    };
    let in_turn = by_name(&found, &owners);
    let instances = instances(&found, &owners);
    let mut joint: Vec<(Join, Vec<Document<'_>>)> = Vec::new();
    for (at, one) in found.iter().enumerate() {
        let translated = match (&one.role, owners[at]) {
            (Role::Resource, Some(owner)) => {
                let (now, policy) = (in_turn[at], &found[owner].document);
                let others = instances.get(&owner).map_or(&[][..], Vec::as_slice);
                converted.extend(one.converted_by(others, policy, &given(at)));
                translate_for(&found[now].document, others, policy, &given(now)).map_err(|found| {
                    let new = found.into_iter().filter(|one| !problems.contains(one));
                    new.collect()
                })
            }
            (Role::Resource, None) => continue,
            (Role::Policy(Translator::Joint { join, .. }), _) => {
                converted.extend(one.converted(&given(at)));
                let document = one.document.clone();
                match joint
                    .iter_mut()
                    .find(|(other, _)| fn_addr_eq(*other, *join))
                {
                    Some((_, documents)) => documents.push(document),
                    None => joint.push((*join, vec![document])),
                }
                continue;
            }
            (Role::Policy(Translator::Native), _) if one.source().is_none() => {
                native::translate(one.document.clone(), &given(at), None)
            }
            // It is one for each of its resources.
            (Role::Policy(Translator::Native), _) if owners.contains(&Some(at)) => continue,
            (Role::Policy(Translator::Native), _) => {
                look_at(one.document.clone(), &given(at)).map(|()| (None, Vec::new()))
            }
        };
        match translated {
            Ok((policy, warnings)) => {
                policies.extend(policy);
                problems.extend(warnings);
            }
            Err(reasons) => problems.extend(reasons),
        }
    }
    for (join, documents) in joint {
        let (joined, found) = join(documents, &reading);
        policies.extend(joined);
        problems.extend(found);
    }
    if !problems.iter().any(Diagnostic::is_error) {
        problems.extend(check_strays(&trees, &sources, policies));
    }
    for policy in policies.iter_mut() {
        policy.renamed_from = renamed.get(&policy.identity).cloned();
    }
    problems
}

/// For each resource the policy with a `source` that is for it.
fn owners(found: &[Found<'_>]) -> Vec<Option<usize>> {
    let mut sources = BTreeMap::new();
    for (at, one) in found.iter().enumerate() {
        if let Some(kind) = one.source() {
            sources.entry(kind).or_insert(at);
        }
    }
    let owner = |one: &Found<'_>| match one.role {
        Role::Resource => sources.get(&one.kind()).copied(),
        Role::Policy(_) => None,
    };
    found.iter().map(owner).collect()
}

/// The resources of each policy that reads them all; what is wrong with one is said where it is translated.
fn instances<'f, 't>(
    found: &'f [Found<'t>],
    owners: &[Option<usize>],
) -> BTreeMap<usize, Vec<Instance<'f, 't>>> {
    let mut instances: BTreeMap<usize, Vec<Instance<'f, 't>>> = BTreeMap::new();
    for (one, owner) in found.iter().zip(owners) {
        let Some(owner) = *owner else { continue };
        let policy = &found[owner].document;
        if policy.file.text.contains("sources")
            && let Ok(instance) = Instance::new(&one.document, policy)
        {
            instances.entry(owner).or_default().push(instance);
        }
    }
    instances
}

/// Which resource's turn it is at each: those of one policy are in the order of their names.
fn by_name(found: &[Found<'_>], owners: &[Option<usize>]) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..found.len()).collect();
    let mut resources: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, owner) in owners.iter().enumerate() {
        if let Some(owner) = owner {
            resources.entry(*owner).or_default().push(at);
        }
    }
    for places in resources.into_values() {
        let mut named = places.clone();
        named.sort_by_cached_key(|&at| found[at].document.identity());
        for (place, at) in places.into_iter().zip(named) {
            turns[place] = at;
        }
    }
    turns
}

/// `--debug-mode`, for policies that have a parameter for it; what is the default is not said.
fn debug_mode(reading: &Reading) -> Option<ParamSetting> {
    (reading.debug_mode == DebugMode::Sidecar).then(|| ParamSetting {
        policy: None,
        name: "debugMode".to_owned(),
        value: "Sidecar".to_owned(),
    })
}

/// The settings of each: of a resource those of its policy, then its own, which win.
fn settings_of<'s>(
    found: &[Found<'_>],
    owners: &[Option<usize>],
    settings: &'s [ParamSetting],
    debug_mode: &'s Option<ParamSetting>,
) -> (Vec<Vec<&'s ParamSetting>>, Vec<Diagnostic>) {
    let owner = |at: usize| owners[at].map(|owner| &found[owner]);
    let declared = (0..found.len()).map(|at| found[at].declared(owner(at)));
    let declared: Vec<Declared> = declared.collect();
    let (mut assigned, unassigned) = params::assign(settings, &declared);
    for (settings, declared) in assigned.iter_mut().zip(&declared) {
        let asked = debug_mode.iter();
        settings.splice(
            0..0,
            asked.filter(|mode| declared.names.contains(&mode.name)),
        );
    }
    for (at, owner) in owners.iter().enumerate() {
        let of_all = owner.map(|owner| assigned[owner].clone());
        assigned[at].splice(0..0, of_all.unwrap_or_default());
    }
    (assigned, unassigned)
}

/// What is wrong with a policy for resources of which there is none.
fn look_at(policy: Document<'_>, given: &Given<'_>) -> Result<(), Vec<Diagnostic>> {
    let open = Reading {
        params_stay_open: true,
        ..given.reading.clone()
    };
    let given = Given {
        reading: &open,
        ..*given
    };
    native::translate(policy, &given, None).map(|_| ())
}

/// The policy of a resource.
fn translate_for(
    resource: &Document<'_>,
    others: &[Instance<'_, '_>],
    policy: &Document<'_>,
    given: &Given<'_>,
) -> Result<(Option<Policy>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let instance = Instance::new(resource, policy)?.among(others, policy);
    native::translate(policy.clone(), given, Some(&instance))
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
        let kind = kind_of(tree, tree.follow(source.value));
        (is_policy && source.key.is_some() && !kind.1.is_empty()).then_some(kind)
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

/// What the policies of the files declare, as far as they can be read, and the built-in ones for resources among them.
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
    let sources_of = |trees: &[(&Arc<PolicyText>, Tree<'_>)]| -> Vec<Kind> {
        trees
            .iter()
            .flat_map(|(_, tree)| sources_in(tree))
            .collect()
    };
    let mut sources = sources_of(&trees);
    let built_in = built_in_sources(&trees, &sources);
    let more = parse_all(&built_in, &mut unread);
    sources.extend(sources_of(&more));
    for (file, tree) in trees.iter().chain(&more) {
        find_policies(file, tree, &sources, &mut found, &mut unread);
    }
    let owners = owners(&found);
    let declared =
        |(at, one): (usize, &Found<'_>)| one.declared(owners[at].map(|owner| &found[owner]));
    found.iter().enumerate().map(declared).collect()
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
            Role::Policy(Translator::Joint { .. }) | Role::Resource => None,
        }
    }

    fn kind(&self) -> (&str, &str) {
        let text = |key| self.document.text(&[key]).unwrap_or_default();
        (group_of(text("apiVersion")), text("kind"))
    }

    /// What a resource becomes by its policy; what is wrong with it is said where it is translated.
    fn converted_by(
        &self,
        others: &[Instance<'_, '_>],
        policy: &Document<'_>,
        given: &Given<'_>,
    ) -> Option<Converted> {
        let instance = Instance::new(&self.document, policy).ok()?;
        let instance = instance.among(others, policy);
        let policy = native::convert::convert(policy.clone(), given, &instance).ok()?;
        Some(Converted {
            identity: self.document.identity(),
            file: Arc::clone(&self.document.file.name),
            policy,
            remarks: Vec::new(),
        })
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

    /// Its parameters; those of a resource are its policy's.
    fn declared(&self, policy: Option<&Found<'_>>) -> Declared {
        let names = match (&self.role, policy) {
            (Role::Policy(translator), _) => translator.declared(&self.document),
            (Role::Resource, Some(policy)) => native::declared(&policy.document),
            (Role::Resource, None) => Vec::new(),
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
            is_resource: matches!(self.role, Role::Resource),
            is_for_resources: self.source().is_some(),
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
    let has_strays = !strays(file, tree, sources).is_empty();
    for root in tree.roots().iter().flat_map(|&root| objects(tree, root)) {
        match read_object(file, tree, root, sources) {
            Ok(policy) => found.extend(policy),
            Err(problem) => problems.push(*problem),
        }
    }
    if found.len() + problems.len() == before && !has_strays {
        let message = format!("`{}` has no policy", file.name);
        let help = format!("the kinds of policy are {}", format::understood());
        problems.push(
            Diagnostic::error(Code::BadPolicy, message)
                .at(file.place(0..0), "in this file")
                .help(help),
        );
    }
}

/// Custom resources that no policy is for: of a group that is none of Kubernetes' own.
fn strays(file: &PolicyText, tree: &Tree<'_>, sources: &[Kind]) -> Vec<(Kind, Place)> {
    let mut strays = Vec::new();
    for root in tree.roots().iter().flat_map(|&root| objects(tree, root)) {
        let kind = kind_of(tree, root);
        let is_custom = kind.0.contains('.') && !kind.0.ends_with(".k8s.io");
        let is_known = sources.contains(&kind)
            || kind.0 == OWN_GROUP
            || format::find(word(tree, root, "apiVersion"), &kind.1).is_some();
        if is_custom && !is_known && !kind.1.is_empty() {
            let at = find(tree, root, &Path::of(&["kind"])).value;
            strays.push((kind, file.place(tree.span(at))));
        }
    }
    strays
}

/// The group of our own kinds.
const OWN_GROUP: &str = "podgraft.dev";

/// Resources among the policies that are nothing to any of them, which would be passed over without a word.
fn check_strays(
    trees: &[(&Arc<PolicyText>, Tree<'_>)],
    sources: &[Kind],
    policies: &[Policy],
) -> Vec<Diagnostic> {
    let strays = trees
        .iter()
        .flat_map(|(file, tree)| strays(file, tree, sources));
    let is_looked_up = |kind: &Kind| policies.iter().any(|policy| policy.looks_up.contains(kind));
    let of_given = sources
        .iter()
        .map(|(group, kind)| format!(", `{group}/* {kind}`"));
    let of_given: BTreeSet<String> = of_given.collect();
    let known = format::understood();
    let others = of_given
        .iter()
        .filter(|one| !known.contains(one.trim_start_matches(", ")));
    let known: String = std::iter::once(known.clone())
        .chain(others.cloned())
        .collect();
    let problem = |((group, kind), place): (Kind, Place)| {
        let message = format!("no policy is for the `{kind}` of `{group}`");
        let help = format!("a policy with `source` makes a kind known; these are: {known}");
        Diagnostic::error(Code::BadPolicy, message)
            .at(place, "here")
            .help(help)
    };
    strays
        .filter(|(kind, _)| !is_looked_up(kind))
        .map(problem)
        .collect()
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
