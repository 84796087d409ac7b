//! The fields of a mapping and the items of a list, by key and by index.

use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

use crate::yaml::scalar::is_typed;
use crate::yaml::tree::NodeKind;
use crate::yaml::value::{key_text, to_value};

use super::{Draft, DraftValue, OpenedCollection};

impl<'t> Draft<'t> {
    /// The field with this key: how many fields come before it, and its value. A key that only a merge key brings
    /// comes after all fields. Aliases are followed.
    pub fn field(&self, part: &DraftValue, key: &str) -> Option<(usize, DraftValue)> {
        match part {
            DraftValue::Node(node) => {
                let mut entries = self.tree.entries(self.tree.follow(*node)).enumerate();
                let found = entries.find(|(_, (name, _))| self.tree.is_text(*name, key));
                if let Some((index, (_, value))) = found {
                    return Some((index, DraftValue::Node(self.tree.follow(value))));
                }
            }
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                let mut fields = value.as_object()?.iter().enumerate();
                let (index, (_, value)) = fields.find(|(_, (name, _))| *name == key)?;
                return Some((index, DraftValue::New(Arc::new(value.clone()))));
            }
            DraftValue::Open(id) => {
                let OpenedCollection::Mapping { fields, .. } = self.opened(*id) else {
                    return None;
                };
                if let Some(index) = self.position_of(fields, key) {
                    return Some((index, self.resolve_alias(&fields[index].value)));
                }
            }
        }
        Some((usize::MAX, self.get(part, key)?))
    }

    /// The key of the field at an index, as [`Draft::value`] has it.
    pub(crate) fn key_at(&self, part: &DraftValue, index: usize) -> Option<String> {
        match part {
            DraftValue::Node(node) => {
                let mut entries = self.tree.entries(self.tree.follow(*node));
                key_text(self.tree, entries.nth(index)?.0)
            }
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                value.as_object()?.keys().nth(index).cloned()
            }
            DraftValue::Open(id) => match self.opened(*id) {
                OpenedCollection::Mapping { fields, .. } => {
                    self.key_in_value(&fields.get(index)?.key)
                }
                OpenedCollection::List { .. } => None,
            },
        }
    }

    /// The value of the field at an index, or the item at an index. Aliases are followed.
    pub(crate) fn part_at(&self, part: &DraftValue, index: usize) -> Option<DraftValue> {
        match part {
            DraftValue::Node(node) => {
                let node = self.tree.follow(*node);
                match self.tree.kind(node).is_mapping() {
                    true => {
                        let (_, value) = self.tree.entries(node).nth(index)?;
                        Some(DraftValue::Node(self.tree.follow(value)))
                    }
                    false => self.item(part, index),
                }
            }
            DraftValue::New(value) | DraftValue::Instead { value, .. } => match &**value {
                Value::Object(fields) => {
                    let value = fields.values().nth(index)?;
                    Some(DraftValue::New(Arc::new(value.clone())))
                }
                _ => self.item(part, index),
            },
            DraftValue::Open(id) => match self.opened(*id) {
                OpenedCollection::Mapping { fields, .. } => {
                    Some(self.resolve_alias(&fields.get(index)?.value))
                }
                OpenedCollection::List { .. } => self.item(part, index),
            },
        }
    }

    /// The string under a key. `None` if the value is no string.
    pub(crate) fn string_at(&self, part: &DraftValue, key: &str) -> Option<Cow<'t, str>> {
        match self.get(part, key)? {
            DraftValue::Node(node) => {
                let text = self.tree.scalar(node)?;
                let is_string = match (self.tree.tag(node), self.tree.kind(node)) {
                    (Some(_), _) => to_value(self.tree, node).is_ok_and(|value| value.is_string()),
                    (None, NodeKind::Plain | NodeKind::Absent) => !is_typed(text),
                    (None, _) => true,
                };
                is_string.then_some(Cow::Borrowed(text))
            }
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                value.as_str().map(|text| Cow::Owned(text.to_owned()))
            }
            DraftValue::Open(_) => None,
        }
    }

    /// An item of a list; an alias is followed.
    pub fn item(&self, list: &DraftValue, at: usize) -> Option<DraftValue> {
        match list {
            DraftValue::Node(node) => self.tree.items(*node).nth(at).map(DraftValue::Node),
            DraftValue::Open(id) => self
                .raw_items(*id)
                .get(at)
                .map(|item| self.resolve_alias(item)),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => value
                .as_array()?
                .get(at)
                .map(|item| DraftValue::New(Arc::new(item.clone()))),
        }
    }

    /// The items of a list; empty for anything else.
    pub fn items(&self, part: &DraftValue) -> Vec<DraftValue> {
        match part {
            DraftValue::Node(node) => self.tree.items(*node).map(DraftValue::Node).collect(),
            DraftValue::Open(id) => match self.opened(*id) {
                OpenedCollection::List { items, .. } => {
                    items.iter().map(|item| self.resolve_alias(item)).collect()
                }
                OpenedCollection::Mapping { .. } => Vec::new(),
            },
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                items
                    .iter()
                    .map(|item| DraftValue::New(Arc::new(item.clone())))
                    .collect()
            }
        }
    }

    /// The first item of a list that is meant, with its index. Aliases are followed.
    pub(crate) fn find_item(
        &self,
        list: &DraftValue,
        is_meant: impl Fn(&DraftValue) -> bool,
    ) -> Option<(usize, DraftValue)> {
        match list {
            DraftValue::Open(id) => {
                let mut items = self.raw_items(*id).iter();
                let at = items.position(|item| match item {
                    DraftValue::Node(_) => is_meant(&self.resolve_alias(item)),
                    DraftValue::Open(_) | DraftValue::New(_) | DraftValue::Instead { .. } => {
                        is_meant(item)
                    }
                })?;
                Some((at, self.item(list, at)?))
            }
            DraftValue::Node(node) => {
                let mut items = self.tree.items(*node).map(DraftValue::Node).enumerate();
                items.find(|(_, item)| is_meant(item))
            }
            DraftValue::New(_) | DraftValue::Instead { .. } => {
                let mut items = self.items(list).into_iter().enumerate();
                items.find(|(_, item)| is_meant(item))
            }
        }
    }
}
