//! Finds parameters and variables of a policy that no expression reads.

use regex_lite::Regex;
use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::policy::Policy;
use crate::policy::document::Document;
use crate::policy::format::INJECTION_POLICY;
use crate::policy::found::objects;
use crate::policy::schema::{did_you_mean, nearest};
use crate::yaml::parse::parse;
use crate::yaml::value::Path;

/// The two lists of declarations, each with the word for its entries in messages. Expressions read an entry as
/// `LIST.NAME`.
const LISTS: [(&str, &str); 2] = [("params", "parameter"), ("variables", "variable")];

/// Warnings for unused declarations. Resources of other operators declare nothing.
pub(super) fn find(policy: &Policy) -> Vec<Diagnostic> {
    let Ok(tree) = parse(&policy.text.text) else {
        return Vec::new();
    };
    let objects = tree.roots().iter().flat_map(|&root| objects(&tree, root));
    let documents = objects.filter_map(|node| Document::of(&policy.text, &tree, node).ok());
    let is_policy = |document: &Document<'_>| {
        document.text(&["kind"]) == Some(INJECTION_POLICY.kind)
            && document.identity() == policy.identity
    };
    let document = documents.into_iter().find(is_policy);
    document.map_or_else(Vec::new, |document| in_document(policy, &document))
}

fn in_document(policy: &Policy, document: &Document<'_>) -> Vec<Diagnostic> {
    let spec = Path::of(&["spec"]);
    let texts = spec.get(&document.value);
    let texts = texts.map(|value| texts_in(value)).unwrap_or_default();
    let mut unused = Vec::new();
    for (list, word) in LISTS {
        let paths = document.entries(&spec.key(list)).into_iter();
        let paths: Vec<Path> = paths.map(|entry| entry.key("name")).collect();
        let name_at = |path: &Path| path.get(&document.value)?.as_str();
        let names: Vec<&str> = paths.iter().filter_map(name_at).collect();
        let read = read_names(list, &texts);
        for path in &paths {
            let Some(name) = name_at(path).filter(|name| !read.is_none_or_has(name)) else {
                continue;
            };
            let message = format!(
                "the {word} `{name}` of policy `{}` is never used",
                policy.identity
            );
            let strays = read
                .names
                .iter()
                .map(String::as_str)
                .filter(|read| !names.contains(read));
            let help = match nearest(name, strays) {
                Some(near) => did_you_mean(near),
                None => format!("use it as `${{{list}.{name}}}`, or remove it"),
            };
            let problem = Diagnostic::warning(Code::Unused, message);
            let problem = problem.at(document.place(path), "declared here");
            unused.push(problem.help(help));
        }
    }
    unused
}

/// All texts in a value.
fn texts_in(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        Value::Object(map) => map.values().flat_map(texts_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// What expressions read of a list.
#[derive(Default)]
struct ListReads {
    names: Vec<String>,
    /// They also read the list as a whole.
    as_whole: bool,
}

impl ListReads {
    fn is_none_or_has(&self, name: &str) -> bool {
        self.as_whole || self.names.iter().any(|read| read == name)
    }
}

fn read_names(list: &str, texts: &[&str]) -> ListReads {
    let pattern = format!(
        r#"\b{list}\s*(?:\.\??\s*([A-Za-z_][A-Za-z0-9_]*)|\[\s*\??\s*['"]([^'"]*)['"]\s*\]|([^.\[A-Za-z0-9_]|$))"#
    );
    let regex = Regex::new(&pattern).expect("the pattern is ours");
    let mut read = ListReads::default();
    for captures in texts.iter().flat_map(|text| regex.captures_iter(text)) {
        match captures.get(1).or_else(|| captures.get(2)) {
            Some(name) => read.names.push(name.as_str().to_owned()),
            // The word in prose is no use of the whole list; as an argument or at the end of an expression it is.
            None => {
                read.as_whole |= captures
                    .get(3)
                    .is_some_and(|next| matches!(next.as_str(), ")" | "," | "}"))
            }
        }
    }
    read
}
