//! The parts of a draft, as comparisons read them.

use serde_json::Value;
use std::borrow::Cow;

use crate::record::{Effects, JoinHint, RecordPaths};
use crate::yaml::scalar::is_typed;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{field, is_equal, key_text, to_value};
use crate::yaml::view::View;

use super::effects::effects_of;
use super::{Draft, DraftField, DraftKey, DraftValue, OpenId, OpenedCollection};

impl<'t> Draft<'t> {
    /// Returns the effects that make this draft of `earlier`, from which it was made. `None` if a part that differs
    /// has no value that all readers agree on.
    pub(crate) fn effects_since(
        &self,
        earlier: &Draft<'t>,
        paths: &RecordPaths,
        joins: &[JoinHint],
    ) -> Option<Effects> {
        let (before, after) = (earlier.part(&earlier.root), self.part(&self.root));
        effects_of(before, after, paths, joins)
    }

    fn part<'d>(&'d self, value: &'d DraftValue) -> DraftPart<'d> {
        match value {
            DraftValue::Node(node) => DraftPart::Input(self, self.tree.follow(*node)),
            DraftValue::Open(id) => DraftPart::Opened(self, *id),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => DraftPart::Planned(value),
        }
    }
}

/// The fields of a mapping.
pub(super) type PartFields<'d> = Vec<(PartKey<'d>, DraftPart<'d>)>;

/// A part of a draft. It is only read where a comparison asks for it.
#[derive(Clone, Copy)]
pub(in crate::plan) enum DraftPart<'d> {
    /// A node of the input; an alias is followed.
    Input(&'d Draft<'d>, NodeId),
    Opened(&'d Draft<'d>, OpenId),
    Planned(&'d Value),
}

impl<'d> DraftPart<'d> {
    /// Whether both parts are known to be equal.
    pub(super) fn is_same(self, later: Self) -> bool {
        match (self, later) {
            (DraftPart::Input(_, node), DraftPart::Input(_, later)) => node == later,
            (DraftPart::Planned(value), DraftPart::Planned(later)) => {
                std::ptr::eq(value, later) || is_equal(value, later)
            }
            (DraftPart::Opened(draft, id), DraftPart::Opened(later_draft, later)) => {
                draft.is_same_opened(id, later_draft, later)
            }
            _ => false,
        }
    }

    /// The fields of a mapping. `None` for anything else, and for a mapping of which only the whole value can be read.
    pub(super) fn fields(self) -> Option<PartFields<'d>> {
        match self {
            DraftPart::Input(draft, node) => draft.fields_of_node(node),
            DraftPart::Opened(draft, id) => draft.fields_of_opened(id),
            DraftPart::Planned(value) => {
                let fields = value.as_object()?.iter();
                let parts =
                    fields.map(|(key, value)| (PartKey::Text(key), DraftPart::Planned(value)));
                Some(parts.collect())
            }
        }
    }

    /// The items of a list. `None` for anything else.
    pub(super) fn items(self) -> Option<Vec<Self>> {
        match self {
            DraftPart::Input(draft, node) => {
                let items = draft.tree.items(node);
                let items = items.map(|item| DraftPart::Input(draft, item));
                draft.tree.kind(node).is_sequence().then(|| items.collect())
            }
            DraftPart::Opened(draft, id) => match draft.opened(id) {
                OpenedCollection::List { items, .. } => {
                    Some(items.iter().map(|item| draft.part(item)).collect())
                }
                OpenedCollection::Mapping { .. } => None,
            },
            DraftPart::Planned(value) => {
                Some(value.as_array()?.iter().map(DraftPart::Planned).collect())
            }
        }
    }

    /// The string under a key.
    pub(super) fn text(self, key: &str) -> Option<Cow<'d, str>> {
        match self {
            DraftPart::Input(draft, node) => draft.string_at(&DraftValue::Node(node), key),
            DraftPart::Opened(draft, id) => draft.string_at(&DraftValue::Open(id), key),
            DraftPart::Planned(value) => field(value, key)?.as_str().map(Cow::Borrowed),
        }
    }

    /// The value. `None` if readers disagree about it.
    pub(super) fn value(self) -> Option<Cow<'d, Value>> {
        match self {
            DraftPart::Input(draft, node) => to_value(draft.tree, node).ok().map(Cow::Owned),
            DraftPart::Opened(draft, id) => draft.value(&DraftValue::Open(id)).map(Cow::Owned),
            DraftPart::Planned(value) => Some(Cow::Borrowed(value)),
        }
    }
}

/// The key of a field.
#[derive(Clone, Copy)]
pub(super) enum PartKey<'d> {
    /// As JSON has it.
    Text(&'d str),
    /// As written in the input.
    Node(&'d Tree<'d>, NodeId),
}

impl<'d> PartKey<'d> {
    /// Whether both are known to be equal.
    pub(super) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (PartKey::Text(text), PartKey::Text(other)) => text == other,
            (PartKey::Node(_, node), PartKey::Node(_, other)) => node == other,
            _ => false,
        }
    }

    /// The key as JSON has it: that of `y: 1` is "true", since `y` is a YAML 1.1 boolean. `None` if it cannot be a key.
    pub(super) fn text(self) -> Option<Cow<'d, str>> {
        match self {
            PartKey::Text(text) => Some(Cow::Borrowed(text)),
            PartKey::Node(tree, node) => match View::read(tree, node) {
                Some(View::Text(text)) => Some(text),
                _ => key_text(tree, node).map(Cow::Owned),
            },
        }
    }
}

impl Draft<'_> {
    /// Whether the content of an opened part is the same in a later draft.
    fn is_same_opened(&self, id: OpenId, later_draft: &Draft<'_>, later: OpenId) -> bool {
        let is_same =
            |(old, new): (&DraftValue, &DraftValue)| self.part(old).is_same(later_draft.part(new));
        match (self.opened(id), later_draft.opened(later)) {
            (
                OpenedCollection::Mapping { fields: old, .. },
                OpenedCollection::Mapping { fields: new, .. },
            ) => {
                let is_same = |(old, new): (&DraftField, &DraftField)| {
                    old.key == new.key && is_same((&old.value, &new.value))
                };
                old.len() == new.len() && old.iter().zip(new).all(is_same)
            }
            (
                OpenedCollection::List { items: old, .. },
                OpenedCollection::List { items: new, .. },
            ) => old.len() == new.len() && old.iter().zip(new).all(is_same),
            _ => false,
        }
    }

    /// The fields of a mapping of the input. `None` for anything else, and for a mapping with a merge key, which has
    /// more fields.
    fn fields_of_node(&self, node: NodeId) -> Option<PartFields<'_>> {
        let tree = self.tree;
        if !tree.kind(node).is_mapping() || tree.has_merge_key(node) {
            return None;
        }
        let fields = tree.entries(node).map(|(key, value)| {
            let value = DraftPart::Input(self, tree.follow(value));
            (PartKey::Node(tree, key), value)
        });
        Some(fields.collect())
    }

    /// The fields of an opened mapping. `None` for a list, for a mapping with a merge key, which has more fields, and if
    /// two keys in YAML are the same string in JSON.
    fn fields_of_opened(&self, id: OpenId) -> Option<PartFields<'_>> {
        let OpenedCollection::Mapping { fields, .. } = self.opened(id) else {
            return None;
        };
        if self.has_merge_key(fields) {
            return None;
        }
        let mut parts = PartFields::with_capacity(fields.len());
        for field in fields {
            let key = match &field.key {
                DraftKey::Node(node) => PartKey::Node(self.tree, *node),
                DraftKey::New(text) => PartKey::Text(text),
            };
            parts.push((key, self.part(&field.value)));
        }
        // Only a number or a boolean can be written as another text, and stand there already.
        let may_have_twin = |field: &DraftField| match &field.key {
            DraftKey::New(text) => is_typed(text),
            DraftKey::Node(_) => false,
        };
        let has_twins = fields.iter().any(may_have_twin) && has_twins(&parts);
        (!has_twins).then_some(parts)
    }
}

fn has_twins(fields: &PartFields<'_>) -> bool {
    let mut keys: Vec<_> = fields.iter().map(|(key, _)| key.text()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}
