//! Classifies the objects of policy files as policies, resources of policies, or neither.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::document::Document;
use super::format::{INJECTION_POLICY, INSTRUMENTATION, understood};
use super::native::source;
use super::params::DeclaredParams;
use super::schema::{did_you_mean, nearest};
use super::unread::not_yaml;
use super::{Policy, PolicyFile, builtin, native};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::workload::group_of;
use crate::source::Place;
use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, boolean_key, find};

/// API group and kind of a resource.
pub type GroupKind = (String, String);

fn kind_of(tree: &Tree<'_>, root: NodeId) -> GroupKind {
    let group = group_of(word(tree, root, "apiVersion")).to_owned();
    (group, word(tree, root, "kind").to_owned())
}

/// The objects of all documents.
fn all_objects(tree: &Tree<'_>) -> impl Iterator<Item = NodeId> {
    tree.roots().iter().flat_map(|&root| objects(tree, root))
}

/// The resource kinds in `source` of the policies of a file.
fn sources_in(tree: &Tree<'_>) -> Vec<GroupKind> {
    let sources = all_objects(tree).filter_map(|root| {
        let source = find(tree, root, &Path::of(&["spec", "source"]));
        let is_policy = word(tree, root, "kind") == INJECTION_POLICY.kind;
        let kind = kind_of(tree, tree.follow(source.value));
        (is_policy && source.key.is_some() && !kind.1.is_empty()).then_some(kind)
    });
    sources.collect()
}

/// The resource kinds in `source` of the policies of all files.
pub(super) fn sources_of(trees: &[(&Arc<PolicyFile>, Tree<'_>)]) -> Vec<GroupKind> {
    trees
        .iter()
        .flat_map(|(_, tree)| sources_in(tree))
        .collect()
}

/// The built-in policies for resources in the files. A given policy for the same kind takes precedence.
pub(super) fn built_in_sources(
    trees: &[(&Arc<PolicyFile>, Tree<'_>)],
    given: &[GroupKind],
) -> Vec<Arc<PolicyFile>> {
    let mut texts = Vec::new();
    for (_, tree) in trees {
        for root in all_objects(tree) {
            let kind = kind_of(tree, root);
            let Some(builtin) = builtin::for_resources(&kind.0, &kind.1) else {
                continue;
            };
            let file = Arc::new(builtin.file());
            if !texts.contains(&file) && !given.contains(&kind) {
                texts.push(file);
            }
        }
    }
    texts
}

pub(super) struct FoundDocument<'t> {
    pub document: Document<'t>,
    pub role: ObjectRole,
}

/// The role of an object in a policy file.
#[derive(Clone, Copy)]
pub(super) enum ObjectRole {
    /// A policy.
    InjectionPolicy,
    /// A resource of the OpenTelemetry Operator.
    Instrumentation,
    /// A resource of a policy with `source`.
    Resource,
}

impl<'t> FoundDocument<'t> {
    /// The group and kind of the policy's `source`, if it has one.
    pub(super) fn source(&self) -> Option<(&str, &str)> {
        match self.role {
            ObjectRole::InjectionPolicy => source::kind_of(&self.document.value),
            ObjectRole::Instrumentation | ObjectRole::Resource => None,
        }
    }

    pub(super) fn kind(&self) -> (&str, &str) {
        let text = |key| self.document.text(&[key]).unwrap_or_default();
        (group_of(text("apiVersion")), text("kind"))
    }

    /// The declared parameters. A resource has those of its policy.
    pub(super) fn declared(&self, policy: Option<&FoundDocument<'_>>) -> DeclaredParams {
        let all = |document| native::declared(document, |_| true);
        DeclaredParams {
            identity: self.document.identity(),
            names: match (&self.role, policy) {
                (ObjectRole::InjectionPolicy, _) => all(&self.document),
                (ObjectRole::Resource, Some(policy)) => all(&policy.document),
                (ObjectRole::Instrumentation, _) | (ObjectRole::Resource, None) => Vec::new(),
            },
            overridable: native::declared(&self.document, |param| param["overridable"] == true),
            is_resource: matches!(self.role, ObjectRole::Resource),
            is_for_resources: self.source().is_some(),
        }
    }
}

pub(super) fn parse_all<'t>(
    texts: &'t [Arc<PolicyFile>],
    problems: &mut Vec<Diagnostic>,
) -> Vec<(&'t Arc<PolicyFile>, Tree<'t>)> {
    let mut trees = Vec::new();
    for file in texts {
        match parse(&file.text) {
            Ok(tree) => trees.push((file, tree)),
            Err(error) => problems.push(not_yaml(file, error, "the policy")),
        }
    }
    trees
}

pub(super) fn find_policies<'t>(
    file: &Arc<PolicyFile>,
    tree: &'t Tree<'t>,
    sources: &[GroupKind],
    found: &mut Vec<FoundDocument<'t>>,
    problems: &mut Vec<Diagnostic>,
) {
    let before = found.len() + problems.len();
    let has_strays = !unclaimed_resources(file, tree, sources).is_empty();
    for root in all_objects(tree) {
        match read_object(file, tree, root, sources) {
            Ok(policy) => found.extend(policy),
            Err(problem) => problems.push(problem),
        }
    }
    if found.len() + problems.len() == before && !has_strays {
        let message = format!("`{}` contains no policy", file.name);
        let help = format!("valid kinds: {}", understood());
        problems.push(
            Diagnostic::error(Code::BadPolicy, message)
                .at(file.place(0..0), "in this file")
                .help(help),
        );
    }
}

/// Custom resources that no policy is for. The group decides: those of Kubernetes have no dot or end in `.k8s.io`.
fn unclaimed_resources(
    file: &PolicyFile,
    tree: &Tree<'_>,
    sources: &[GroupKind],
) -> Vec<(GroupKind, Place)> {
    let mut unclaimed = Vec::new();
    for root in all_objects(tree) {
        let kind = kind_of(tree, root);
        let is_custom = kind.0.contains('.') && !kind.0.ends_with(".k8s.io");
        let is_known = sources.contains(&kind)
            || kind.0 == OWN_GROUP
            || role_of(word(tree, root, "apiVersion"), &kind.1).is_some();
        if is_custom && !is_known && !kind.1.is_empty() {
            let at = find(tree, root, &Path::of(&["kind"])).value;
            unclaimed.push((kind, file.place(tree.span(at))));
        }
    }
    unclaimed
}

/// The API group of podgraft's own kinds.
const OWN_GROUP: &str = "podgraft.dev";

/// Errors for custom resources that no policy uses, which would otherwise be ignored silently.
pub(super) fn check_unclaimed(
    trees: &[(&Arc<PolicyFile>, Tree<'_>)],
    sources: &[GroupKind],
    policies: &[Policy],
) -> Vec<Diagnostic> {
    let unclaimed = trees
        .iter()
        .flat_map(|(file, tree)| unclaimed_resources(file, tree, sources));
    let is_looked_up =
        |kind: &GroupKind| policies.iter().any(|policy| policy.looks_up.contains(kind));
    let of_given = sources
        .iter()
        .map(|(group, kind)| format!(", `{group}/* {kind}`"));
    let of_given: BTreeSet<String> = of_given.collect();
    let known = understood();
    let unlisted = of_given
        .iter()
        .filter(|given| !known.contains(given.trim_start_matches(", ")));
    let known: String = std::iter::once(known.clone())
        .chain(unlisted.cloned())
        .collect();
    let help = format!("add a policy with this kind in `source`; known kinds: {known}");
    let unclaimed = unclaimed.filter(|(kind, _)| !is_looked_up(kind));
    let problems = unclaimed.map(|((group, kind), place)| {
        let message = format!("no policy handles the kind `{kind}` of `{group}`");
        let problem = Diagnostic::error(Code::BadPolicy, message).at(place, "here");
        problem.help(&*help)
    });
    problems.collect()
}

/// The objects of a document: the items of a list, or the document itself. Lists of custom resources count too.
pub(crate) fn objects(tree: &Tree<'_>, root: NodeId) -> Vec<NodeId> {
    let items = find(tree, root, &Path::of(&["items"]));
    if word(tree, root, "kind").ends_with("List") && items.key.is_some() {
        return tree.children(tree.follow(items.value)).collect();
    }
    vec![root]
}

/// The scalar at a key of an object; empty if there is none.
fn word<'t>(tree: &'t Tree<'_>, root: NodeId, key: &str) -> &'t str {
    let found = find(tree, root, &Path::of(&[key]));
    if found.key.is_some() {
        tree.scalar(found.value).unwrap_or_default()
    } else {
        ""
    }
}

fn read_object<'t>(
    file: &Arc<PolicyFile>,
    tree: &'t Tree<'t>,
    root: NodeId,
    sources: &[GroupKind],
) -> Result<Option<FoundDocument<'t>>, Diagnostic> {
    let (api_version, kind) = (word(tree, root, "apiVersion"), word(tree, root, "kind"));
    let at = |key: &str| file.place(tree.span(find(tree, root, &Path::of(&[key])).value));
    let role = match sources.contains(&kind_of(tree, root)) {
        true => Some(ObjectRole::Resource),
        false => role_of(api_version, kind),
    };
    let Some(role) = role else {
        return match misspelt(api_version, kind) {
            Some((key, message, help)) => Err(Diagnostic::error(Code::BadPolicy, message)
                .at(at(key), "here")
                .help(help)),
            None => Ok(None),
        };
    };
    if matches!(role, ObjectRole::InjectionPolicy)
        && let Some(key) = boolean_key(tree, root)
    {
        let text = tree.scalar(key).unwrap_or_default();
        let message = format!("the key `{text}` must be a string, not a boolean");
        let problem =
            Diagnostic::error(Code::WrongType, message).at(file.place(tree.span(key)), "here");
        return Err(problem.help(format!("quote it: \"{text}\"")));
    }
    let document = Document::of(file, tree, root)?;
    Ok(Some(FoundDocument { document, role }))
}

/// The role of an object in one of the formats.
fn role_of(api_version: &str, kind: &str) -> Option<ObjectRole> {
    let roles = [
        (INJECTION_POLICY, ObjectRole::InjectionPolicy),
        (INSTRUMENTATION, ObjectRole::Instrumentation),
    ];
    let mut roles = roles.into_iter();
    let found = roles.find(|(format, _)| format.has(api_version, kind));
    found.map(|(_, role)| role)
}

/// Kinds of `podgraft.dev` that are not policies and may be among the files.
const NO_POLICIES: [&str; 2] = ["Config", "PolicyTest"];

/// For an object that is almost a policy of ours: the wrong key, a message and a help.
fn misspelt(api_version: &str, kind: &str) -> Option<(&'static str, String, String)> {
    let native = INJECTION_POLICY;
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
        None => format!("valid kinds: {}", understood()),
    };
    is_ours.then(|| ("kind", format!("podgraft.dev has no kind `{kind}`"), help))
}

/// Keeps the first policy of each identity and reports the others.
pub(super) fn without_duplicates<'t>(
    found: Vec<FoundDocument<'t>>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<FoundDocument<'t>> {
    let name = Path::of(&["metadata", "name"]);
    let mut first = BTreeMap::new();
    let mut kept: Vec<FoundDocument<'t>> = Vec::new();
    for policy in found {
        let identity = policy.document.identity();
        match first.get(&identity) {
            Some(earlier) => {
                let message = format!("two policies are named `{identity}`");
                let problem = Diagnostic::error(Code::DuplicatePolicy, message);
                let earlier: &FoundDocument<'_> = &kept[*earlier];
                let problem = problem
                    .at(policy.document.place(&name), "second definition")
                    .at(earlier.document.place(&name), "first definition");
                problems.push(problem.help("rename one of them"));
            }
            None => {
                first.insert(identity, kept.len());
                kept.push(policy);
            }
        }
    }
    kept
}
