//! Finds parameters and variables of a policy that no expression reads.

use regex_lite::Regex;
use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::policy::Policy;
use crate::policy::schema::{did_you_mean, nearest};
use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, find as find_node, to_value};

/// The two lists of declarations, each with the word for its entries in messages. Expressions read an entry as
/// `LIST.NAME`.
const LISTS: [(&str, &str); 2] = [("params", "parameter"), ("variables", "variable")];

/// Warnings for unused declarations. Resources of other operators declare nothing.
pub(super) fn find(policy: &Policy) -> Vec<Diagnostic> {
    let Ok(tree) = parse(&policy.text.text) else {
        return Vec::new();
    };
    let objects = tree.roots().iter().flat_map(|&root| objects(&tree, root));
    let found = objects.filter_map(|node| Some((node, to_value(&tree, node).ok()?)));
    let policy_object = found
        .into_iter()
        .find(|(_, value)| is_policy(value, policy));
    policy_object
        .map(|(node, value)| in_document(policy, &tree, node, &value))
        .unwrap_or_default()
}

fn objects(tree: &Tree<'_>, root: NodeId) -> Vec<NodeId> {
    let items = find_node(tree, root, &Path::of(&["items"]));
    if items.key.is_some() {
        tree.children(tree.follow(items.value)).collect()
    } else {
        vec![root]
    }
}

fn is_policy(value: &Value, policy: &Policy) -> bool {
    let metadata = &value["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let identity = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    value["kind"] == "InjectionPolicy" && identity == policy.identity
}

fn in_document(policy: &Policy, tree: &Tree<'_>, node: NodeId, value: &Value) -> Vec<Diagnostic> {
    let mut texts = Vec::new();
    collect(&value["spec"], &mut texts);
    let mut unused = Vec::new();
    for (list, word) in LISTS {
        let entries = value["spec"][list]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let names: Vec<&str> = entries
            .iter()
            .filter_map(|entry| entry["name"].as_str())
            .collect();
        let read = read_names(list, &texts);
        for (index, name) in names.iter().enumerate() {
            if read.is_none_or_has(name) {
                continue;
            }
            let path = Path::of(&["spec", list]).index(index).key("name");
            let place = policy
                .text
                .place(tree.span(find_node(tree, node, &path).value));
            let message = format!(
                "the {word} `{name}` of policy `{}` is never used",
                policy.identity
            );
            let strays = read
                .0
                .iter()
                .map(String::as_str)
                .filter(|read| !names.contains(read));
            let help = match nearest(name, strays) {
                Some(near) => did_you_mean(near),
                None => format!("use it as `${{{list}.{name}}}`, or take it out"),
            };
            unused.push(
                Diagnostic::warning(Code::Unused, message)
                    .at(place, "declared here")
                    .help(help),
            );
        }
    }
    unused
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => map.values().for_each(|inner| collect(inner, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The names of a list that expressions read, and whether they read the list as a whole.
struct ListReads(Vec<String>, bool);

impl ListReads {
    fn is_none_or_has(&self, name: &str) -> bool {
        self.1 || self.0.iter().any(|read| read == name)
    }
}

fn read_names(list: &str, texts: &[&str]) -> ListReads {
    let pattern = format!(
        r#"\b{list}\s*(?:\.\??\s*([A-Za-z_][A-Za-z0-9_]*)|\[\s*\??\s*['"]([^'"]*)['"]\s*\]|([^.\[A-Za-z0-9_]|$))"#
    );
    let regex = Regex::new(&pattern).expect("the pattern is ours");
    let mut read = ListReads(Vec::new(), false);
    for captures in texts.iter().flat_map(|text| regex.captures_iter(text)) {
        match captures.get(1).or_else(|| captures.get(2)) {
            Some(name) => read.0.push(name.as_str().to_owned()),
            // The word in prose is no use of the whole list; as an argument or at the end of an expression it is.
            None => {
                read.1 |= captures
                    .get(3)
                    .is_some_and(|next| matches!(next.as_str(), ")" | "," | "}"))
            }
        }
    }
    read
}
