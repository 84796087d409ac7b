//! The value of an object with a record, read when it is asked for: most runs need only the places that the record
//! names.

use serde_json::Value;
use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::path::RecordPaths;
use super::renamed::LISTS;
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
        let tree = self.tree;
        let list = self.pod_list(paths, list);
        let containers = list.into_iter().flat_map(|list| tree.items(list));
        containers
            .filter_map(|container| tree.string(tree.get(container, "name")?))
            .collect()
    }

    /// Whether containers have no name, or the same: what is injected into such an object is never recorded.
    pub(super) fn has_twin_containers(&self, paths: &RecordPaths) -> bool {
        let lists = LISTS.into_iter();
        lists
            .filter_map(|list| self.pod_list(paths, list))
            .any(|list| has_twins(self.tree, list))
    }

    fn pod_list(&self, paths: &RecordPaths, list: &str) -> Option<NodeId> {
        let mut keys = paths.template_keys().chain(["spec", list]);
        keys.try_fold(self.node, |node, key| self.tree.get(node, key))
    }
}

/// Whether items of a list have no name, or the same, so that none can be found again.
pub(crate) fn has_twins(tree: &Tree<'_>, list: NodeId) -> bool {
    let mut seen = BTreeSet::new();
    tree.items(list).any(|item| {
        let name = tree.get(item, "name");
        match name.map(|name| to_value(tree, name)) {
            Some(Ok(Value::String(name))) => !seen.insert(name),
            _ => true,
        }
    })
}
