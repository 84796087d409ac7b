//! Finds planned values that equal the input's: a later policy may put back what an earlier one removed.

use super::text_index::TextIndexes;
use super::{Draft, DraftField, DraftKey, DraftValue, OpenId, OpenedCollection};
use crate::yaml::tree::NodeId;
use crate::yaml::value::{key_text, to_value};

impl Draft<'_> {
    /// Replaces planned values that equal the input's by the input's nodes, so that no edit rewrites them.
    pub(crate) fn restore_unchanged(&mut self) {
        if !self.has_removals {
            return;
        }
        self.root = self.restored(self.root.clone());
        if matches!(self.root, DraftValue::Node(_)) {
            self.opened.clear();
            self.indexes = TextIndexes::default();
        }
    }

    /// Whether something was taken out since `earlier`, and everything has the same value again.
    pub(in crate::plan) fn is_put_back(&self, earlier: &Self) -> bool {
        let value = |draft: &Self| draft.value(&draft.root);
        self.has_removals && value(self).is_some_and(|now| value(earlier) == Some(now))
    }

    fn restored(&mut self, part: DraftValue) -> DraftValue {
        match part {
            DraftValue::Open(id) => self.restored_collection(id),
            DraftValue::Instead { of, ref value }
                if to_value(self.tree, of).is_ok_and(|original| original == **value) =>
            {
                DraftValue::Node(of)
            }
            DraftValue::Node(_) | DraftValue::New(_) | DraftValue::Instead { .. } => part,
        }
    }

    fn restored_collection(&mut self, id: OpenId) -> DraftValue {
        let origin = match self.opened(id).clone() {
            OpenedCollection::Mapping { origin, fields } => {
                let fields = fields
                    .into_iter()
                    .map(|DraftField { key, value }| DraftField {
                        key,
                        value: self.restored(value),
                    })
                    .collect();
                *self.fields(id) = self.restored_fields(origin, fields);
                origin.filter(|node| {
                    let entries = self.tree.entries(*node);
                    entries
                        .map(|(key, value)| (DraftKey::Node(key), DraftValue::Node(value)))
                        .eq(self.fields(id).iter().map(as_pair))
                })
            }
            OpenedCollection::List { origin, items } => {
                let items: Vec<DraftValue> =
                    items.into_iter().map(|item| self.restored(item)).collect();
                let children = origin.map(|node| self.tree.children(node).collect::<Vec<_>>());
                let is_unchanged = children.is_some_and(|children| {
                    children.len() == items.len()
                        && children
                            .iter()
                            .zip(&items)
                            .all(|(node, item)| self.is_item(*node, item))
                });
                *self.list_items(id) = items;
                self.indexes.forget(id);
                origin.filter(|_| is_unchanged)
            }
        };
        // A null that was opened as a collection is not equal to an empty collection.
        match origin.filter(|node| self.tree.kind(*node).is_collection()) {
            Some(node) => DraftValue::Node(node),
            None => DraftValue::Open(id),
        }
    }

    /// Returns the fields. Those that were removed and came back with the same value are the input's again, in their
    /// old place.
    fn restored_fields(
        &self,
        origin: Option<NodeId>,
        mut fields: Vec<DraftField>,
    ) -> Vec<DraftField> {
        let Some(origin) = origin else { return fields };
        let entries: Vec<(NodeId, NodeId)> = self.tree.entries(origin).collect();
        let is_from_source = |field: &&DraftField| matches!(field.key, DraftKey::Node(_));
        // No key of the input is missing, so none can have come back.
        if fields.iter().filter(is_from_source).count() == entries.len() {
            return fields;
        }
        for (at, &(node, value)) in entries.iter().enumerate() {
            let Some(text) = key_text(self.tree, node) else {
                continue;
            };
            let Some(new) = fields
                .iter()
                .position(|field| matches!(&field.key, DraftKey::New(key) if **key == *text))
            else {
                continue;
            };
            if !self.is_same(value, &fields[new].value) {
                continue;
            }
            fields.remove(new);
            let before = entries[..at].iter().rev().find_map(|(key, _)| {
                fields
                    .iter()
                    .position(|field| field.key == DraftKey::Node(*key))
            });
            fields.insert(
                before.map_or(0, |before| before + 1),
                DraftField {
                    key: DraftKey::Node(node),
                    value: DraftValue::Node(value),
                },
            );
        }
        fields
    }

    /// Whether an item is a node of the input, or a new value equal to it. An opened item that was not restored has
    /// another value than its node.
    fn is_item(&self, node: NodeId, item: &DraftValue) -> bool {
        match self.origin(item) {
            Some(_) => *item == DraftValue::Node(node),
            None => self.is_same(node, item),
        }
    }

    /// Whether a part has the value of a node of the input.
    pub(in crate::plan) fn is_same(&self, node: NodeId, part: &DraftValue) -> bool {
        *part == DraftValue::Node(node)
            || to_value(self.tree, node).is_ok_and(|original| self.value(part) == Some(original))
    }
}

fn as_pair(field: &DraftField) -> (DraftKey, DraftValue) {
    (field.key.clone(), field.value.clone())
}
