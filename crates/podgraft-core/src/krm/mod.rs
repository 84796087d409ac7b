//! The wire format of KRM functions. It reads a ResourceList, and gives its functionConfig, its items, and an edit that
//! adds results
//! (<https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md>).
//!
//! The text of the list is kept as it came: orchestrators write back what they read, with its comments and quotes.

mod results;

use serde_json::Value;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::config::FUNCTION_KIND;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::format;
use crate::policy::read::{PolicyFile, find_with_resources, resource_kinds};
use crate::source::{LineFinder, Place, Source};
use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

pub use results::{FunctionResult, of_diagnostic, of_workloads};

/// The supported versions of the list. They do not differ in what is read here.
const VERSIONS: [&str; 3] = [
    "config.kubernetes.io/v1",
    "config.kubernetes.io/v1beta1",
    "config.kubernetes.io/v1alpha1",
];
const KIND: &str = "ResourceList";

/// Annotations in which an orchestrator notes the file of an item: the current key and the legacy one.
const PATH: [&str; 2] = [
    "internal.config.kubernetes.io/path",
    "config.kubernetes.io/path",
];
/// Annotations for the index of an item in its file: the current key and the legacy one.
const INDEX: [&str; 2] = [
    "internal.config.kubernetes.io/index",
    "config.kubernetes.io/index",
];

/// A ResourceList as an orchestrator sends it.
#[derive(Debug)]
pub struct ResourceList<'a> {
    source: Source<'a>,
    tree: Tree<'a>,
    root: NodeId,
    /// The nodes of the items, in document order.
    items: Vec<NodeId>,
    /// Computed on first use, as most lists have no results.
    lines: OnceLock<LineFinder<'a>>,
}

/// The content of `functionConfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionConfig {
    /// There is none.
    Absent,
    /// A policy, in one of the formats that podgraft reads.
    Policy(PolicyFile),
    /// A `PodgraftFunction`.
    Function(PolicyFile),
    /// A ConfigMap, as kpt makes it of `-- key=value`: its data, with the places of the entries.
    Values(Vec<(String, String, Place)>),
}

impl<'a> ResourceList<'a> {
    /// Parses a ResourceList.
    ///
    /// # Errors
    /// If the text is no ResourceList.
    pub fn read(name: Arc<str>, text: &'a str) -> Result<Self, Diagnostic> {
        let source = Source::new(name, text);
        let refuse = |message, at| not_read(message, source.place(at));
        let tree = parse(text).map_err(|error| refuse("the input is not valid YAML", error.at))?;
        let &[root] = tree.roots() else {
            return Err(refuse(
                "the input must be one document, a ResourceList",
                0..0,
            ));
        };
        let word = |key| tree.scalar_at(root, key).unwrap_or_default();
        if word("kind") != KIND || !VERSIONS.contains(&word("apiVersion")) {
            return Err(refuse(
                "the input must be a ResourceList of config.kubernetes.io/v1",
                tree.span(root),
            ));
        }
        let items = tree
            .get(root, "items")
            .filter(|&items| !tree.is_null(items));
        if let Some(items) = items.filter(|&items| !tree.kind(tree.follow(items)).is_sequence()) {
            return Err(refuse("`items` must be a list", tree.span(items)));
        }
        let items = items.map_or_else(Vec::new, |items| tree.items(tree.follow(items)).collect());
        Ok(ResourceList {
            source: source.clone(),
            tree,
            root,
            items,
            lines: OnceLock::new(),
        })
    }

    /// The tree of the list's text.
    pub fn tree(&self) -> &Tree<'a> {
        &self.tree
    }

    /// Reads `functionConfig`.
    ///
    /// # Errors
    /// If its kind is unknown to podgraft.
    pub fn function_config(&self) -> Result<FunctionConfig, Diagnostic> {
        let tree = &self.tree;
        let node = tree
            .get(self.root, "functionConfig")
            .map(|node| tree.follow(node));
        let Some(node) = node.filter(|&node| !tree.is_null(node)) else {
            return Ok(FunctionConfig::Absent);
        };
        let (api_version, kind) = (self.word(node, "apiVersion"), self.word(node, "kind"));
        if (api_version, kind) == ("v1", "ConfigMap") {
            return self.values(node).map(FunctionConfig::Values);
        }
        let file = || self.standalone(node, "functionConfig");
        if api_version.starts_with("podgraft.dev/") && kind == FUNCTION_KIND {
            return Ok(FunctionConfig::Function(file()));
        }
        if api_version.starts_with("podgraft.dev/") || format::is_policy(api_version, kind, &[]) {
            return Ok(FunctionConfig::Policy(file()));
        }
        let message = match (api_version, kind) {
            _ if !tree.kind(node).is_mapping() => "the functionConfig must be an object".to_owned(),
            ("", _) => "missing field `apiVersion` in the functionConfig".to_owned(),
            (_, "") => "missing field `kind` in the functionConfig".to_owned(),
            _ => format!("the functionConfig has an unknown kind: `{kind}` of `{api_version}`"),
        };
        let help = format!(
            "use an InjectionPolicy, a {FUNCTION_KIND}, or a ConfigMap whose `policy` lists files \
             or `builtin:` policies"
        );
        let at = self.source.place(tree.span(node));
        let problem = Diagnostic::error(Code::BadResourceList, message);
        Err(problem.at(at, "here").help(help))
    }

    /// The policies among the items, and the resources that they or the given policies are for, each as a file of its own.
    pub fn policies(&self, given: &[PolicyFile]) -> Vec<PolicyFile> {
        find_with_resources(given, |kinds| {
            self.items_of(|api_version, kind| format::is_policy(api_version, kind, kinds))
        })
    }

    /// The resources among the items that a policy has as its `source`, each as a file of its own.
    pub fn resources_of(&self, policy: &PolicyFile) -> Vec<PolicyFile> {
        let kinds = resource_kinds(std::slice::from_ref(policy));
        self.items_of(|api_version, kind| format::is_one_of(api_version, kind, &kinds))
    }

    fn items_of(&self, is_meant: impl Fn(&str, &str) -> bool) -> Vec<PolicyFile> {
        let items = self.items.iter().copied();
        let items =
            items.filter(|&item| is_meant(self.word(item, "apiVersion"), self.word(item, "kind")));
        items.map(|item| self.standalone(item, "items")).collect()
    }

    fn word(&self, node: NodeId, key: &str) -> &str {
        self.tree.scalar_at(node, key).unwrap_or_default()
    }

    fn values(&self, node: NodeId) -> Result<Vec<(String, String, Place)>, Diagnostic> {
        let tree = &self.tree;
        let Some(values) = tree
            .get(node, "data")
            .filter(|&values| !tree.is_null(values))
        else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for (key, value) in tree.entries(tree.follow(values)) {
            match (tree.scalar(key), tree.scalar(value)) {
                (Some("policy"), Some(_)) if self.value(value).is_some_and(is_no_string) => {
                    let message = "`policy` must be a string with the names of policies";
                    let problem = Diagnostic::error(Code::BadResourceList, message)
                        .at(self.source.place(tree.span(value)), "not a string")
                        .help("write builtin:NAME, or the name of a file, in quotes if it is a number");
                    return Err(problem);
                }
                (Some(name), Some(text)) => {
                    let at = tree.span(key).start..tree.span(value).end;
                    found.push((name.to_owned(), text.to_owned(), self.source.place(at)));
                }
                _ => {
                    let message = "values of a ConfigMap must be strings";
                    let problem = Diagnostic::error(Code::BadResourceList, message);
                    return Err(problem.at(self.source.place(tree.span(value)), "not a string"));
                }
            }
        }
        Ok(found)
    }

    /// The text of a node as a file of its own: line 1 is its first line, and the indentation of the list is removed.
    /// Its name is the file that the orchestrator notes, if any.
    fn standalone(&self, node: NodeId, default_name: &str) -> PolicyFile {
        let Range { start, end } = self.tree.span(node);
        // Line ends after the node may be content of its last block scalar (`|+`), so they are kept.
        let behind = &self.source.text[end..];
        let behind = &behind[..behind.len() - behind.trim_start().len()];
        let slice = &self.source.text[start..end + behind.rfind('\n').map_or(0, |at| at + 1)];
        let line_start = self.source.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let column = self.source.text[line_start..start].chars().count();
        let text = match self.tree.kind(node).is_flow() {
            true => slice.to_owned(),
            false => {
                let mut lines = slice.split_inclusive('\n');
                let first = lines.next().into_iter();
                first
                    .chain(lines.map(|line| outdented(line, column)))
                    .collect()
            }
        };
        let name = self.annotation(node, &PATH).unwrap_or(default_name);
        PolicyFile {
            name: name.into(),
            text,
        }
    }

    fn annotation(&self, object: NodeId, keys: &[&str]) -> Option<&str> {
        let annotations = self
            .tree
            .get(self.tree.get(object, "metadata")?, "annotations")?;
        keys.iter()
            .find_map(|key| self.tree.scalar(self.tree.get(annotations, key)?))
    }

    fn value(&self, node: NodeId) -> Option<Value> {
        to_value(&self.tree, node).ok()
    }
}

fn is_no_string(value: Value) -> bool {
    !value.is_string()
}

fn not_read(message: &str, place: Place) -> Diagnostic {
    let problem = Diagnostic::error(Code::BadResourceList, message).at(place, "here");
    problem.help(
        "for manifests, use `podgraft apply`; `podgraft fn` is for tools such as kustomize and kpt",
    )
}

/// Takes at most `columns` leading blanks off a line.
fn outdented(line: &str, columns: usize) -> &str {
    let blanks = line.bytes().take(columns);
    &line[blanks.take_while(|&byte| byte == b' ').count()..]
}

#[cfg(test)]
mod tests;
