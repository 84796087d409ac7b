//! Finds the Kubernetes objects of a document: the root, or the items of a List.

use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

use crate::yaml::tree::{NodeId, NodeKind, Tree};

use super::workload::PodKinds;

/// A Kubernetes object: a mapping with an `apiVersion` and a `kind`.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its node.
    pub node: NodeId,
    /// `apiVersion`, such as `apps/v1`.
    pub api_version: String,
    /// `kind`, such as `Deployment`.
    pub kind: String,
    /// Its position, if it is an item of a List.
    pub within: Option<ListMembership>,
}

impl Object {
    /// A text of its metadata; `None` if it is empty.
    pub(crate) fn metadata_text<'t>(&self, tree: &'t Tree<'_>, key: &str) -> Option<&'t str> {
        let metadata = tree.get(self.node, "metadata")?;
        let text = tree.string(tree.get(metadata, key)?);
        text.filter(|text| !text.is_empty())
    }
}

/// The position of an object in a List.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListMembership {
    /// The list, an object with `items`.
    pub list: NodeId,
    /// The item in the list; an alias is not followed.
    pub item: NodeId,
}

/// An object of a document, or something that should be one.
#[derive(Debug, Clone)]
pub enum DocumentContent {
    /// An object.
    Object(Object),
    /// An item of a list of workloads, such as a `DeploymentList`, without `apiVersion` and `kind`.
    Untyped {
        /// The list's kind.
        list_kind: String,
        /// The item.
        node: NodeId,
    },
}

impl DocumentContent {
    /// The object, unless it is untyped.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            DocumentContent::Object(object) => Some(object),
            DocumentContent::Untyped { .. } => None,
        }
    }
}

/// The maximum depth of nested Lists. A List of Lists is legal, but real ones do not nest deeper than two.
const MAX_LISTS: usize = 8;

/// Returns all objects of all documents of a tree, in order.
pub fn find_objects(tree: &Tree<'_>, kinds: &PodKinds) -> Vec<DocumentContent> {
    let mut found = Vec::new();
    for &root in tree.roots() {
        collect(tree, tree.follow(root), None, kinds, MAX_LISTS, &mut found);
    }
    found
}

/// [`find_objects`] without what is no object.
pub(crate) fn objects_in(tree: &Tree<'_>, kinds: &PodKinds) -> impl Iterator<Item = Object> {
    let found = find_objects(tree, kinds).into_iter();
    found.filter_map(|content| match content {
        DocumentContent::Object(object) => Some(object),
        DocumentContent::Untyped { .. } => None,
    })
}

/// Whether a document of a tree is a List without items.
pub fn has_empty_list(tree: &Tree<'_>) -> bool {
    tree.roots().iter().any(|&root| is_empty_list(tree, root))
}

fn is_empty_list(tree: &Tree<'_>, root: NodeId) -> bool {
    let items = tree
        .get(root, "items")
        .filter(|&items| tree.kind(items).is_sequence() && tree.children(items).next().is_none());
    items.is_some() && as_object(tree, root).is_some_and(|list| list.kind.ends_with("List"))
}

fn collect(
    tree: &Tree<'_>,
    node: NodeId,
    within: Option<ListMembership>,
    kinds: &PodKinds,
    lists: usize,
    found: &mut Vec<DocumentContent>,
) {
    let Some(object) = as_object(tree, node) else {
        return;
    };
    let items = tree
        .get(node, "items")
        .filter(|&items| tree.kind(items).is_sequence());
    let (Some(item_kind), Some(items)) = (object.kind.strip_suffix("List"), items) else {
        found.push(DocumentContent::Object(Object { within, ..object }));
        return;
    };
    if lists == 0 {
        return;
    }
    let is_of_pods = kinds.has_kind(item_kind);
    for item in tree.children(items) {
        if as_object(tree, item).is_some() {
            collect(
                tree,
                item,
                Some(ListMembership { list: node, item }),
                kinds,
                lists - 1,
                found,
            );
        } else if is_of_pods {
            found.push(DocumentContent::Untyped {
                list_kind: object.kind.clone(),
                node: item,
            });
        }
    }
}

fn as_object(tree: &Tree<'_>, node: NodeId) -> Option<Object> {
    let text = |key| {
        Some(tree.string(tree.get(node, key)?)?.to_owned()).filter(|text: &String| !text.is_empty())
    };
    Some(Object {
        node,
        api_version: text("apiVersion")?,
        kind: text("kind")?,
        within: None,
    })
}

/// The place of something like a pod template in an object of an unknown kind.
#[derive(Debug, Default)]
pub(crate) struct FoundTemplate {
    /// The keys that lead to it, or to the list that contains it.
    pub path: Vec<String>,
    /// It is in a list, so a path of keys does not lead to it.
    pub is_in_list: bool,
}

/// Searches an object of an unknown kind for something like a pod template: a mapping with `spec.containers` whose
/// items have a name and an image.
pub(crate) fn find_pod_template(tree: &Tree<'_>, object: NodeId) -> Option<FoundTemplate> {
    let mut found = FoundTemplate::default();
    if search(tree, object, &mut found.path) {
        return Some(found);
    }
    found.is_in_list = true;
    search_lists(tree, object, &mut found.path).then_some(found)
}

/// The number of what looks like a pod template in an object.
pub(crate) fn count_pod_templates(tree: &Tree<'_>, object: NodeId) -> usize {
    let nodes = tree.within(object);
    nodes
        .filter(|&node| tree.kind(node).is_mapping() && is_pod_template(tree, node))
        .count()
}

/// Like [`search`], for what is in a list. `path` becomes that of the list.
fn search_lists(tree: &Tree<'_>, node: NodeId, path: &mut Vec<String>) -> bool {
    let has_template = |item| {
        let mut path = Vec::new();
        search(tree, item, &mut path) || search_lists(tree, item, &mut path)
    };
    if tree.kind(node).is_sequence() {
        return tree.items(node).any(has_template);
    }
    for (key, value) in tree.entries(node) {
        let Some(name) = tree.scalar(key) else {
            continue;
        };
        path.push(name.to_owned());
        if search_lists(tree, value, path) {
            return true;
        }
        path.pop();
    }
    false
}

fn search(tree: &Tree<'_>, node: NodeId, path: &mut Vec<String>) -> bool {
    if !tree.kind(node).is_mapping() {
        return false;
    }
    if is_pod_template(tree, node) {
        return true;
    }
    for (key, value) in tree.entries(node) {
        let Some(name) = tree.scalar(key) else {
            continue;
        };
        path.push(name.to_owned());
        if search(tree, value, path) {
            return true;
        }
        path.pop();
    }
    false
}

fn is_pod_template(tree: &Tree<'_>, node: NodeId) -> bool {
    let containers = tree
        .get(node, "spec")
        .and_then(|spec| tree.get(spec, "containers"));
    let Some(containers) = containers.filter(|&list| tree.kind(list).is_sequence()) else {
        return false;
    };
    let mut items = tree.items(containers).peekable();
    // The patterns of policy engines have wildcards.
    let is_stated = |item, key| {
        let value = tree.get(item, key).and_then(|value| tree.scalar(value));
        value.is_some_and(|value| !value.contains(['*', '?']))
    };
    items.peek().is_some() && items.all(|item| is_stated(item, "name") && is_stated(item, "image"))
}

/// Made once, because preparing the search takes as long as searching a document.
static BRACES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"{{"));

/// Finds an unrendered template in a parsed document: `key: {{ value }}` parses as a mapping in a mapping.
pub(crate) fn find_template_braces(tree: &Tree<'_>, within: NodeId) -> Option<NodeId> {
    // The parser of plain YAML does not accept a mapping as a key.
    if tree.is_plain() {
        return None;
    }
    BRACES.find(tree.slice(within).as_bytes())?;
    tree.within(within)
        .find(|&id| tree.kind(id) == NodeKind::FlowMapping && tree.slice(id).starts_with("{{"))
}

/// Finds the first `{{` that begins a line or a value, as in an unrendered template.
pub(crate) fn find_template_line(text: &str) -> Option<Range<usize>> {
    let mut places = text.match_indices("{{").map(|(at, _)| at..at + 2);
    places.find(|place| {
        let line = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
        let before = text[line..place.start].trim_end();
        before.is_empty() || before.ends_with([':', '-'])
    })
}
