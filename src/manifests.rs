//! Decides which documents of a file found in a folder are manifests: Kubernetes objects other than podgraft's own.

use std::ops::Range;

use podgraft_core::outcome::FileReport;
use podgraft_core::policy::builtin::kinds_of_resources;
use podgraft_core::policy::format::{FORMATS, is_policy as is_policy_kind};
use podgraft_core::policy::read::GroupKind;
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::stream::{Chunk, chunks};
use podgraft_core::yaml::tree::{NodeId, Tree};

/// The group of podgraft's own objects.
const GROUP: &str = "podgraft.dev/";

/// The role of a document in a run over a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentRole {
    /// A Kubernetes object, or a document that may be one.
    Manifest,
    /// An object of podgraft.dev.
    Own,
    /// Has content, but is no Kubernetes object.
    Other,
    /// Blank lines and comments.
    Blank,
}

/// The byte ranges of a found file that go into a stream of documents; empty if it holds no manifest.
pub fn manifests_of(text: &[u8], report: &FileReport) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut has_manifest = false;
    for chunk in chunks(text) {
        let range = chunk.start..chunk.start + chunk.text.len();
        let role = if is_touched(&range, report) {
            DocumentRole::Manifest
        } else {
            role(&chunk)
        };
        has_manifest |= role == DocumentRole::Manifest;
        if matches!(role, DocumentRole::Own | DocumentRole::Other) {
            continue;
        }
        match parts.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => parts.push(range),
        }
    }
    if has_manifest { parts } else { Vec::new() }
}

fn is_touched(chunk: &Range<usize>, report: &FileReport) -> bool {
    report
        .workloads
        .iter()
        .any(|workload| chunk.contains(&workload.document.start))
}

/// Returns the text with every document but policies blanked, so that line numbers stay those of the file. `None` if it
/// holds no policy. Resources of built-in policies and of the given kinds are both policies and manifests.
pub fn policies_in(text: &[u8], resource_kinds: &[GroupKind]) -> Option<String> {
    let versions = FORMATS.iter().map(|format| format.api_version);
    let groups = versions.map(|version| version.split('/').next().unwrap_or_default());
    let groups = groups.chain(kinds_of_resources().map(|(group, _)| group));
    let mut groups = groups.chain(resource_kinds.iter().map(|(group, _)| &**group));
    if !groups.any(|group| memchr::memmem::find(text, group.as_bytes()).is_some()) {
        return None;
    }
    let mut kept = Vec::with_capacity(text.len());
    let mut is_empty = true;
    for chunk in chunks(text) {
        if role(&chunk) == DocumentRole::Own || is_policy(&chunk, resource_kinds) {
            kept.extend_from_slice(chunk.text);
            is_empty = false;
        } else {
            kept.extend(chunk.text.iter().filter(|&&byte| byte == b'\n'));
        }
    }
    String::from_utf8(kept).ok().filter(|_| !is_empty)
}

/// Whether the document, or an item of its list, is a policy in one of the formats.
fn is_policy(chunk: &Chunk<'_>, resource_kinds: &[GroupKind]) -> bool {
    let kinds = FORMATS.iter().map(|format| format.kind);
    let may_be = kinds
        .chain(kinds_of_resources().map(|(_, kind)| kind))
        .chain(resource_kinds.iter().map(|(_, kind)| &**kind))
        .any(|kind| memchr::memmem::find(chunk.text, kind.as_bytes()).is_some());
    let Some(tree) = std::str::from_utf8(chunk.text)
        .ok()
        .filter(|_| may_be)
        .and_then(|text| parse(text).ok())
    else {
        return false;
    };
    let is_policy = |node| {
        let text = |key| tree.scalar_at(node, key).unwrap_or_default();
        is_policy_kind(text("apiVersion"), text("kind"), resource_kinds)
    };
    tree.roots().iter().any(|&root| {
        let list = tree.get(root, "items").into_iter();
        is_policy(root) || list.flat_map(|list| tree.items(list)).any(is_policy)
    })
}

fn role(chunk: &Chunk<'_>) -> DocumentRole {
    let text = chunk.text;
    let has_text = |word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
    let has_key = |key: &[u8]| {
        let mut lines = text.split(|&byte| byte == b'\n');
        lines.any(|line| line.starts_with(key))
    };
    if is_blank(text) {
        return DocumentRole::Blank;
    }
    // Most documents are objects with both keys at the start of a line, and need no parsing. An escape in a
    // double-quoted key (`"\u006bind"`) could spell either word, so such a document is always parsed.
    if !has_text("\\") && !has_text(GROUP) && has_key(b"apiVersion:") && has_key(b"kind:") {
        return DocumentRole::Manifest;
    }
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|text| parse(text).ok());
    parsed.map_or(DocumentRole::Manifest, |tree| role_of_tree(&tree))
}

/// A chunk that holds several documents is a manifest if one of them is.
fn role_of_tree(tree: &Tree<'_>) -> DocumentRole {
    let mut roles = tree.roots().iter().map(|&root| role_of_root(tree, root));
    let first = roles.next().unwrap_or(DocumentRole::Blank);
    match roles.any(|role| role == DocumentRole::Manifest) {
        true => DocumentRole::Manifest,
        false => first,
    }
}

fn role_of_root(tree: &Tree<'_>, root: NodeId) -> DocumentRole {
    let entries: Vec<_> = tree.entries(root).collect();
    let find = |key: &str| {
        let mut entries = entries.iter();
        entries.find(|(name, _)| tree.scalar(*name) == Some(key))
    };
    let value = |key: &str| find(key).and_then(|(_, value)| tree.scalar(*value));
    match (value("apiVersion"), value("kind")) {
        (Some(version), Some(_)) if version.starts_with(GROUP) => DocumentRole::Own,
        (Some(_), Some(_)) => DocumentRole::Manifest,
        // A merge key `<<` may bring the keys that are not written here.
        _ if find("<<").is_some() => DocumentRole::Manifest,
        _ => DocumentRole::Other,
    }
}

/// Whether a text has nothing but comments and boundaries of documents.
pub fn is_blank(text: &[u8]) -> bool {
    let is_nothing =
        |line: &[u8]| line.is_empty() || line.starts_with(b"#") || line == b"---" || line == b"...";
    text.split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .all(is_nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> String {
        manifests_of(text.as_bytes(), &FileReport::default())
            .into_iter()
            .map(|part| &text[part])
            .collect()
    }

    #[test]
    fn only_objects_that_are_not_podgrafts_own_are_manifests() {
        let text = "apiVersion: v1\nkind: A\n---\nreplicas: 1\n---\n# only a comment\n---\napiVersion: podgraft.dev/v1alpha1\nkind: X\n---\n{\"kind\": \"B\", \"apiVersion\": \"v1\"}\n";
        assert_eq!(
            kept(text),
            "apiVersion: v1\nkind: A\n---\n# only a comment\n---\n{\"kind\": \"B\", \"apiVersion\": \"v1\"}\n"
        );
    }

    #[test]
    fn a_file_without_an_object_has_no_manifest() {
        assert_eq!(kept("replicas: 1\n---\n# c\n"), "");
        assert_eq!(kept("# c\n"), "");
        assert_eq!(kept("data:\n  apiVersion: v1\n  kind: A\n"), "");
    }

    #[test]
    fn what_cannot_be_told_stays() {
        assert_eq!(
            kept("\"\\u0061piVersion\": v1\nkind: A\n"),
            "\"\\u0061piVersion\": v1\nkind: A\n"
        );
        assert_eq!(kept("a: [\n"), "a: [\n");
    }

    #[test]
    fn policies_keep_their_lines() {
        let text = "apiVersion: v1\nkind: A\n---\napiVersion: podgraft.dev/v1alpha1\nkind: X\n";
        assert_eq!(
            policies_in(text.as_bytes(), &[]).unwrap(),
            "\n\n---\napiVersion: podgraft.dev/v1alpha1\nkind: X\n"
        );
        assert_eq!(
            policies_in(b"apiVersion: v1\nkind: A\ndata: {a: podgraft.dev/}\n", &[]),
            None
        );
        let text = "kind: A\napiVersion: v1\n---\nkind: Rookout\napiVersion: rookout.rookout.com/v1alpha1\n";
        assert_eq!(
            policies_in(text.as_bytes(), &[]).unwrap(),
            "\n\n---\nkind: Rookout\napiVersion: rookout.rookout.com/v1alpha1\n"
        );
        let text = "kind: List\napiVersion: v1\nitems:\n- kind: InjectionPolicy\n  apiVersion: podgraft.dev/v1alpha1\n";
        assert_eq!(policies_in(text.as_bytes(), &[]).unwrap(), text);
    }
}
