//! Reads the texts of a draft, and finds the items of its lists by them.

use serde_json::Value;
use std::borrow::Cow;

use super::text_index::without_slashes;
use super::{Draft, DraftValue, member};

impl<'t> Draft<'t> {
    /// The items that have this text under a key, each with its index.
    pub(crate) fn items_by(
        &self,
        list: &DraftValue,
        key: &'static str,
        text: &str,
    ) -> Vec<(usize, DraftValue)> {
        if let Some(found) = self.indexed_items(list, key, text, |found| found == text) {
            return found;
        }
        let is_meant = |(_, item): &(usize, DraftValue)| self.is_text_at(item, key, text);
        match list {
            DraftValue::Node(node) => {
                let items = self.tree.items(*node).map(DraftValue::Node).enumerate();
                items.filter(is_meant).collect()
            }
            DraftValue::Open(id) => {
                let items = self.raw_items(*id).iter().enumerate();
                let found = items.filter(|(_, item)| self.is_text_at(item, key, text));
                found
                    .map(|(at, item)| (at, self.resolve_alias(item)))
                    .collect()
            }
            DraftValue::New(_) | DraftValue::Instead { .. } => self
                .items(list)
                .into_iter()
                .enumerate()
                .filter(is_meant)
                .collect(),
        }
    }

    /// The first item that has this text under a key, with its index.
    pub(crate) fn item_by(
        &self,
        list: &DraftValue,
        key: &'static str,
        text: &str,
    ) -> Option<(usize, DraftValue)> {
        match self.indexed_items(list, key, text, |found| found == text) {
            Some(found) => found.into_iter().next(),
            None => self.find_item(list, |item| self.is_text_at(item, key, text)),
        }
    }

    /// The first mount that has this path, with its index. Slashes at the end of a path do not count.
    pub(crate) fn find_mount(&self, list: &DraftValue, path: &str) -> Option<(usize, DraftValue)> {
        let key = "mountPath";
        let is_same = |found: &str| without_slashes(found) == without_slashes(path);
        match self.indexed_items(list, key, path, is_same) {
            Some(found) => found.into_iter().next(),
            None => self.find_item(list, |item| self.is_text_where(item, key, is_same)),
        }
    }

    /// Whether the value under a key is a scalar with this text.
    pub(crate) fn is_text_at(&self, part: &DraftValue, key: &str, text: &str) -> bool {
        match part {
            DraftValue::Node(node) => {
                let value = self.tree.get(*node, key);
                value.is_some_and(|value| {
                    self.tree.is_text(value, text) && !self.tree.is_null(value)
                })
            }
            DraftValue::New(_) | DraftValue::Instead { .. } | DraftValue::Open(_) => {
                self.is_text_where(part, key, |found| found == text)
            }
        }
    }

    /// Whether the value under a key is a scalar whose text is meant.
    pub(crate) fn is_text_where(
        &self,
        part: &DraftValue,
        key: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> bool {
        match part {
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                is_text_in(value, key, is_meant)
            }
            DraftValue::Node(_) | DraftValue::Open(_) => {
                let text = self.text_at(part, key);
                text.is_some_and(|text| is_meant(&text))
            }
        }
    }

    /// The text of a scalar; `None` for collections and null.
    pub fn text(&self, part: &DraftValue) -> Option<Cow<'t, str>> {
        match part {
            DraftValue::Node(node) if self.tree.is_null(*node) => None,
            DraftValue::Node(node) => self.tree.scalar(*node).map(Cow::Borrowed),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => text_of_value(value),
            DraftValue::Open(_) => None,
        }
    }

    /// The text of the scalar under a key.
    pub(crate) fn text_at(&self, part: &DraftValue, key: &str) -> Option<Cow<'t, str>> {
        match part {
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                text_of_value(member(value, key)?)
            }
            DraftValue::Node(_) | DraftValue::Open(_) => self.text(&self.get(part, key)?),
        }
    }
}

fn is_text_in(value: &Value, key: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    match member(value, key) {
        Some(Value::String(text)) => is_meant(text),
        other => other
            .and_then(text_of_value)
            .is_some_and(|text| is_meant(&text)),
    }
}

fn text_of_value(value: &Value) -> Option<Cow<'static, str>> {
    match value {
        Value::String(text) => Some(Cow::Owned(text.clone())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(bool) => Some(Cow::Owned(bool.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
