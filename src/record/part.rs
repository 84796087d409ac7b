//! Parts of objects as comparisons read them: JSON values here, drafts in `plan`.

use serde_json::Value;
use std::borrow::Cow;

use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{field, is_equal, key_text};
use crate::yaml::view::View;

/// The fields of a mapping.
pub type PartFields<'v, P> = Vec<(PartKey<'v>, P)>;

/// A part of an object. Comparisons read only what differs.
pub trait ObjectPart<'v>: Copy {
    /// Whether both parts are known to be equal.
    fn is_same(self, later: Self) -> bool;

    /// The fields of a mapping. `None` for anything else, and for a mapping of which only the whole value can be read.
    fn fields(self) -> Option<PartFields<'v, Self>>;

    /// The items of a list. `None` for anything else.
    fn items(self) -> Option<Vec<Self>>;

    /// The string under a key.
    fn text(self, key: &str) -> Option<Cow<'v, str>>;

    /// The value. `None` if readers disagree about it.
    fn value(self) -> Option<Cow<'v, Value>>;
}

impl<'v> ObjectPart<'v> for &'v Value {
    fn is_same(self, later: Self) -> bool {
        std::ptr::eq(self, later) || is_equal(self, later)
    }

    fn fields(self) -> Option<PartFields<'v, Self>> {
        let fields = self.as_object()?.iter();
        Some(
            fields
                .map(|(key, value)| (PartKey::Text(key), value))
                .collect(),
        )
    }

    fn items(self) -> Option<Vec<Self>> {
        Some(self.as_array()?.iter().collect())
    }

    fn text(self, key: &str) -> Option<Cow<'v, str>> {
        field(self, key)?.as_str().map(Cow::Borrowed)
    }

    fn value(self) -> Option<Cow<'v, Value>> {
        Some(Cow::Borrowed(self))
    }
}

/// The key of a field.
#[derive(Clone, Copy)]
pub enum PartKey<'v> {
    /// As JSON has it.
    Text(&'v str),
    /// As written in the input.
    Node(&'v Tree<'v>, NodeId),
}

impl<'v> PartKey<'v> {
    /// Whether both are known to be equal.
    pub(super) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (PartKey::Text(text), PartKey::Text(other)) => text == other,
            (PartKey::Node(_, node), PartKey::Node(_, other)) => node == other,
            _ => false,
        }
    }

    /// The key as JSON has it: that of `y: 1` is "true", since `y` is a YAML 1.1 boolean. `None` if it cannot be a key.
    pub fn text(self) -> Option<Cow<'v, str>> {
        match self {
            PartKey::Text(text) => Some(Cow::Borrowed(text)),
            PartKey::Node(tree, node) => match View::read(tree, node) {
                Some(View::Text(text)) => Some(text),
                _ => key_text(tree, node).map(Cow::Owned),
            },
        }
    }
}
