//! What stands in a draft as the input has it: a later policy may put back what an earlier one took away.

use super::{Draft, Field, Key, OpenId, Opened, Part};
use crate::yaml::tree::NodeId;
use crate::yaml::value::{key_text, to_value};

impl Draft<'_> {
    /// Takes the input's node wherever the planned value is the same, so that no edit writes what is there.
    pub fn settle(&mut self) {
        if !self.has_removals {
            return;
        }
        self.root = self.settled(self.root.clone());
        if matches!(self.root, Part::Node(_)) {
            self.opened.clear();
        }
    }

    fn settled(&mut self, part: Part) -> Part {
        match part {
            Part::Open(id) => self.settled_collection(id),
            Part::Instead { of, ref value }
                if to_value(self.tree, of).is_ok_and(|own| own == **value) =>
            {
                Part::Node(of)
            }
            Part::Node(_) | Part::New(_) | Part::Instead { .. } => part,
        }
    }

    fn settled_collection(&mut self, id: OpenId) -> Part {
        let origin = match self.opened(id).clone() {
            Opened::Mapping { origin, fields } => {
                let fields = fields
                    .into_iter()
                    .map(|Field { key, value }| Field {
                        key,
                        value: self.settled(value),
                    })
                    .collect();
                *self.fields(id) = self.put_back(origin, fields);
                origin.filter(|node| {
                    let own = self.tree.entries(*node);
                    own.map(|(key, value)| (Key::Node(key), Part::Node(value)))
                        .eq(self.fields(id).iter().map(as_pair))
                })
            }
            Opened::List { origin, items } => {
                let items: Vec<Part> = items.into_iter().map(|item| self.settled(item)).collect();
                let own = origin.map(|node| self.tree.children(node).collect::<Vec<_>>());
                let is_own = own.is_some_and(|own| {
                    own.len() == items.len()
                        && own
                            .iter()
                            .zip(&items)
                            .all(|(node, item)| self.is_item(*node, item))
                });
                *self.list_items(id) = items;
                origin.filter(|_| is_own)
            }
        };
        // A null that was opened is no empty collection.
        match origin.filter(|node| self.tree.kind(*node).is_collection()) {
            Some(node) => Part::Node(node),
            None => Part::Open(id),
        }
    }

    /// Fields whose key was taken out and came back with the same value, where and as the input has them.
    fn put_back(&self, origin: Option<NodeId>, mut fields: Vec<Field>) -> Vec<Field> {
        let Some(origin) = origin else { return fields };
        let own: Vec<(NodeId, NodeId)> = self.tree.entries(origin).collect();
        let is_own = |field: &&Field| matches!(field.key, Key::Node(_));
        if fields.iter().filter(is_own).count() == own.len() {
            return fields;
        }
        for (at, &(node, value)) in own.iter().enumerate() {
            let Some(text) = key_text(self.tree, node) else {
                continue;
            };
            let Some(new) = fields
                .iter()
                .position(|field| matches!(&field.key, Key::New(key) if **key == *text))
            else {
                continue;
            };
            if !self.is_same(value, &fields[new].value) {
                continue;
            }
            fields.remove(new);
            let before = own[..at]
                .iter()
                .rev()
                .find_map(|(key, _)| fields.iter().position(|field| field.key == Key::Node(*key)));
            fields.insert(
                before.map_or(0, |before| before + 1),
                Field {
                    key: Key::Node(node),
                    value: Part::Node(value),
                },
            );
        }
        fields
    }

    /// What is opened and was not settled is another value than the node has.
    fn is_item(&self, node: NodeId, item: &Part) -> bool {
        match self.origin(item) {
            Some(_) => *item == Part::Node(node),
            None => self.is_same(node, item),
        }
    }

    fn is_same(&self, node: NodeId, part: &Part) -> bool {
        *part == Part::Node(node)
            || to_value(self.tree, node).is_ok_and(|own| self.value(part) == Some(own))
    }
}

fn as_pair(field: &Field) -> (Key, Part) {
    (field.key.clone(), field.value.clone())
}
