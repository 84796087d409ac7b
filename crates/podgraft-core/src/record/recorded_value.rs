//! The value of an object with a record, read when it is asked for: most runs need only the places that the record
//! names.

use serde_json::Value;
use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::path::{LISTS, RecordPaths};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{has_value, to_value};

/// An object with a record, whose value is read on first use.
#[derive(Debug, Clone)]
pub struct RecordedValue<'t> {
    /// The tree of the object.
    pub tree: &'t Tree<'t>,
    /// The object's node.
    pub node: NodeId,
    whole: OnceCell<Value>,
}

impl<'t> RecordedValue<'t> {
    /// `None` if the object has no value that all readers agree on.
    pub fn of(tree: &'t Tree<'t>, node: NodeId) -> Option<Self> {
        has_value(tree, node).then(|| Self::known(tree, node))
    }

    /// Like [`RecordedValue::of`], for an object that has a value.
    pub(crate) fn known(tree: &'t Tree<'t>, node: NodeId) -> Self {
        RecordedValue {
            tree,
            node,
            whole: OnceCell::new(),
        }
    }

    /// The whole value.
    pub fn whole(&self) -> &Value {
        self.whole
            .get_or_init(|| to_value(self.tree, self.node).unwrap_or_default())
    }

    /// The names of the containers in a list of the pod.
    pub(super) fn container_names(&self, paths: &RecordPaths, list: &str) -> Vec<&'t str> {
        let pod_spec = self.pod_spec(paths);
        pod_spec.map_or_else(Vec::new, |pod_spec| {
            container_names(self.tree, pod_spec, list).collect()
        })
    }

    /// See [`has_twin_containers`].
    pub(super) fn has_twin_containers(&self, paths: &RecordPaths) -> bool {
        let pod_spec = self.pod_spec(paths);
        pod_spec.is_some_and(|pod_spec| has_twin_containers(self.tree, pod_spec))
    }

    fn pod_spec(&self, paths: &RecordPaths) -> Option<NodeId> {
        let mut keys = paths.template_keys().chain(["spec"]);
        keys.try_fold(self.node, |node, key| self.tree.get(node, key))
    }
}

/// The names of the containers in a list of a pod.
pub(super) fn container_names<'t>(
    tree: &'t Tree<'t>,
    pod_spec: NodeId,
    list: &str,
) -> impl Iterator<Item = &'t str> {
    let list = tree.get(pod_spec, list).into_iter();
    let containers = list.flat_map(|list| tree.items(list));
    containers.filter_map(|container| tree.string(tree.get(container, "name")?))
}

/// Whether a list of a pod has two containers of one name, or without one: later, nobody could tell what went into
/// which, so what is injected into such an object is never recorded.
pub(crate) fn has_twin_containers(tree: &Tree<'_>, pod_spec: NodeId) -> bool {
    let mut lists = LISTS
        .into_iter()
        .filter_map(|list| tree.get(pod_spec, list));
    lists.any(|list| has_twins(tree, list))
}

/// Whether two items of a list have the same name, or none, so that they cannot be found again.
fn has_twins(tree: &Tree<'_>, list: NodeId) -> bool {
    let mut seen = BTreeSet::new();
    tree.items(list).any(|item| {
        let name = tree.get(item, "name");
        match name.map(|name| to_value(tree, name)) {
            Some(Ok(Value::String(name))) => !seen.insert(name),
            // Knative names a single container itself.
            None => !seen.insert(String::new()),
            Some(_) => true,
        }
    })
}

/// Whether a value is null or an empty collection.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
