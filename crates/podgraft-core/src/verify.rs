//! Proves that the output is what was planned: walks the tree of the output in step with the input's tree and the
//! draft. Planned values must be there, and everything else must be equal. The editor is not used, so its errors show.

use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

use crate::edit::companion::ObjectPlacement;
use crate::plan::draft::{Draft, DraftField, DraftKey, DraftValue, OpenId, OpenedCollection};
use crate::yaml::scalar::is_typed;
use crate::yaml::tree::{NodeId, NodeKind, Tree, is_same_text};
use crate::yaml::value::scalar_value;

/// A difference between output and plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The node of the output; `None` for the text as a whole.
    pub node: Option<NodeId>,
    /// What is wrong with it.
    pub description: &'static str,
}

/// Compares the tree of an edited text with the input's. `drafts` are the drafts of changed objects by their node, and
/// `written` the objects that were written behind others. New items of a list are part of the draft of the list.
///
/// # Errors
/// The first difference.
pub fn verify(
    output: &Tree<'_>,
    input: &Tree<'_>,
    drafts: &[(NodeId, Draft<'_>)],
    written: &[(ObjectPlacement, Arc<Value>)],
) -> Result<(), Difference> {
    let missing = |description| Difference {
        node: None,
        description,
    };
    let is_document =
        |(beside, _): &&(ObjectPlacement, _)| matches!(beside, ObjectPlacement::Documents(_));
    let documents = written.iter().filter(is_document).count();
    if output.roots().len() != input.roots().len() + documents {
        return Err(missing("a different number of documents"));
    }
    debug_assert!(
        drafts.is_sorted_by_key(|(root, _)| *root),
        "objects are found in the order of the text"
    );
    let check = Verifier {
        output,
        input,
        drafts,
    };
    let mut outs = output.roots().iter().copied();
    for &node in input.roots() {
        let mut next = || outs.next().ok_or(missing("a missing document"));
        let out = next()?;
        let is_list =
            |(beside, _): &(ObjectPlacement, _)| *beside == ObjectPlacement::NewList(node);
        match written.iter().any(is_list) {
            true => check.check_new_list(out, node, written)?,
            false => check.check_node(out, node)?,
        }
        let is_behind =
            |(beside, _): &&(ObjectPlacement, _)| *beside == ObjectPlacement::Documents(node);
        for (_, object) in written.iter().filter(is_behind) {
            check.check_value(next()?, object)?;
        }
    }
    Ok(())
}

/// Whether an object is already as a draft wants it, node for node. `node` is the object in `tree`, and the draft may be
/// of another tree.
pub(crate) fn is_drafted(tree: &Tree<'_>, node: NodeId, draft: &Draft<'_>) -> bool {
    let check = Verifier {
        output: tree,
        input: draft.tree,
        drafts: &[],
    };
    check.check_part(draft, node, &draft.root()).is_ok()
}

#[derive(Clone, Copy)]
struct Verifier<'c, 't> {
    output: &'c Tree<'t>,
    input: &'c Tree<'t>,
    /// The drafts inside of what is checked, sorted by node, which is the order of the text.
    drafts: &'c [(NodeId, Draft<'c>)],
}

type VerifyResult = Result<(), Difference>;

fn difference(node: NodeId, description: &'static str) -> VerifyResult {
    Err(Difference {
        node: Some(node),
        description,
    })
}

/// Checks the parts of a node one by one, and that there are as many as wanted. `missing` and `more` say what is wrong
/// with another number.
fn check_each<P, W>(
    out: NodeId,
    mut parts: impl Iterator<Item = P>,
    wanted: impl Iterator<Item = W>,
    [missing, more]: [&'static str; 2],
    check: impl Fn(P, W) -> VerifyResult,
) -> VerifyResult {
    for wanted in wanted {
        match parts.next() {
            Some(part) => check(part, wanted)?,
            None => return difference(out, missing),
        }
    }
    match parts.next() {
        Some(_) => difference(out, more),
        None => Ok(()),
    }
}

const ITEMS: [&str; 2] = ["a missing item", "an extra item"];
const FIELDS: [&str; 2] = ["a missing field", "an extra field"];

impl Verifier<'_, '_> {
    /// Checks a new List around an object and the objects written behind it.
    fn check_new_list(
        &self,
        out: NodeId,
        node: NodeId,
        written: &[(ObjectPlacement, Arc<Value>)],
    ) -> VerifyResult {
        let fields: Vec<(NodeId, NodeId)> = self.output.entries(out).collect();
        let [(_, version), (_, kind), (_, items)] = fields[..] else {
            return difference(out, "no List");
        };
        let is_list = self.output.is_text(version, "v1") && self.output.is_text(kind, "List");
        let keys = ["apiVersion", "kind", "items"];
        if !is_list
            || !fields
                .iter()
                .zip(keys)
                .all(|((key, _), name)| self.output.is_text(*key, name))
        {
            return difference(out, "no List");
        }
        let mut items = self.output.children(items);
        match items.next() {
            Some(first) => self.check_node(first, node)?,
            None => return difference(out, "a missing item"),
        }
        check_each(out, items, written.iter(), ITEMS, |item, (_, object)| {
            self.check_value(item, object)
        })
    }

    fn check_node(&self, out: NodeId, node: NodeId) -> VerifyResult {
        if self.is_untouched(out, node) {
            return Ok(());
        }
        match self.drafts_from(node) {
            [(root, draft), behind @ ..] if *root == node => {
                let after = self.input.after(node);
                let inside = behind.partition_point(|(root, _)| *root < after);
                let check = Verifier {
                    drafts: &behind[..inside],
                    ..*self
                };
                check.check_part(draft, out, &draft.root())
            }
            _ => self.check_same(out, node),
        }
    }

    /// The drafts at and behind a node. Found by binary search, since a list may hold thousands of objects.
    fn drafts_from(&self, node: NodeId) -> &[(NodeId, Draft<'_>)] {
        &self.drafts[self.drafts.partition_point(|(root, _)| *root < node)..]
    }

    /// Whether a subtree has no drafts and the same bytes as before. Most of a document does, and is not walked then.
    fn is_untouched(&self, out: NodeId, node: NodeId) -> bool {
        let has_drafts = self
            .drafts_from(node)
            .first()
            .is_some_and(|(root, _)| *root < self.input.after(node));
        !has_drafts && self.is_same_text(out, node)
    }

    fn is_same_text(&self, out: NodeId, node: NodeId) -> bool {
        self.output.is_taken_from(out, node) || is_same_text(self.output, out, self.input, node)
    }

    /// Checks a subtree that no edit touches: it must have the same kinds, texts and properties.
    fn check_same(&self, out: NodeId, node: NodeId) -> VerifyResult {
        let (output, input) = (self.output, self.input);
        if output.kind(out) != input.kind(node) {
            return difference(out, "a style that differs from the input");
        }
        self.same_properties(out, node)?;
        if input.kind(node) == NodeKind::Alias {
            return match output.slice(out) == input.slice(node) {
                true => Ok(()),
                false => difference(out, "a different alias"),
            };
        }
        if !input.kind(node).is_collection() {
            return match output.scalar(out) == input.scalar(node) {
                true => Ok(()),
                false => difference(out, "a different text"),
            };
        }
        let words = ["missing content", "extra content"];
        let (parts, wanted) = (output.children(out), input.children(node));
        check_each(out, parts, wanted, words, |part, node| {
            self.check_node(part, node)
        })
    }

    fn same_properties(&self, out: NodeId, node: NodeId) -> VerifyResult {
        let is_same = self.output.tag(out) == self.input.tag(node)
            && self.output.anchor(out) == self.input.anchor(node);
        match is_same {
            true => Ok(()),
            false => difference(out, "a different tag or anchor"),
        }
    }

    fn check_part(&self, draft: &Draft<'_>, out: NodeId, part: &DraftValue) -> VerifyResult {
        match part {
            // An item of a list may have a draft of its own, beside that of the list.
            DraftValue::Node(node) => self.check_node(out, *node),
            DraftValue::New(value) | DraftValue::Instead { value, .. } => {
                self.check_value(out, value)
            }
            DraftValue::Open(id) => self.opened(draft, out, *id),
        }
    }

    fn opened(&self, draft: &Draft<'_>, out: NodeId, id: OpenId) -> VerifyResult {
        match draft.opened(id) {
            _ if draft.stays_null(id) => match self.output.is_null(out) {
                true => Ok(()),
                false => difference(out, "no null"),
            },
            OpenedCollection::Mapping { fields, .. } => self.mapping(draft, out, fields),
            OpenedCollection::List { items, .. } => self.list(draft, out, items),
        }
    }

    fn mapping(&self, draft: &Draft<'_>, out: NodeId, fields: &[DraftField]) -> VerifyResult {
        if !self.output.kind(out).is_mapping() {
            return difference(out, "no mapping");
        }
        let entries = self.output.entries(out);
        check_each(
            out,
            entries,
            fields.iter(),
            FIELDS,
            |(key, value), field| {
                if self.is_same_field(key..self.output.after(value), field) {
                    return Ok(());
                }
                match &field.key {
                    DraftKey::Node(node) if self.is_same_text(key, *node) => {}
                    DraftKey::Node(node) => self.check_same(key, *node)?,
                    DraftKey::New(text) if self.output.scalar(key) == Some(text) => {}
                    DraftKey::New(_) => return difference(key, "a different key"),
                }
                self.check_part(draft, value, &field.value)
            },
        )
    }

    /// Whether a field without drafts was copied from the input, where its value is behind its key, too.
    fn is_same_field(&self, out: Range<NodeId>, field: &DraftField) -> bool {
        match (&field.key, &field.value) {
            (DraftKey::Node(key), DraftValue::Node(value)) => {
                self.drafts.is_empty()
                    && *value == self.input.after(*key)
                    && self.output.are_taken_from(out, *key)
            }
            _ => false,
        }
    }

    fn list(&self, draft: &Draft<'_>, out: NodeId, items: &[DraftValue]) -> VerifyResult {
        if !self.output.kind(out).is_sequence() {
            return difference(out, "no list");
        }
        let children = self.output.children(out);
        check_each(out, children, items.iter(), ITEMS, |child, item| {
            self.check_part(draft, child, item)
        })
    }

    /// Whether a node without a tag is a string with this text. Quicker than to build its value.
    fn is_string(&self, out: NodeId, text: &str) -> bool {
        let is_string_by_style = match self.output.kind(out) {
            NodeKind::Plain => !is_typed(text),
            NodeKind::SingleQuoted
            | NodeKind::DoubleQuoted
            | NodeKind::Literal
            | NodeKind::Folded => true,
            _ => false,
        };
        is_string_by_style
            && self.output.tag(out).is_none()
            && self.output.scalar(out) == Some(text)
    }

    /// Checks a new value: every reader must read exactly this value.
    fn check_value(&self, out: NodeId, value: &Value) -> VerifyResult {
        match value {
            Value::Array(_) if !self.output.kind(out).is_sequence() => difference(out, "no list"),
            Value::Array(items) => {
                let children = self.output.children(out);
                check_each(out, children, items.iter(), ITEMS, |child, item| {
                    self.check_value(child, item)
                })
            }
            Value::Object(_) if !self.output.kind(out).is_mapping() => {
                difference(out, "no mapping")
            }
            Value::Object(map) => {
                let entries = self.output.entries(out);
                check_each(
                    out,
                    entries,
                    map.iter(),
                    FIELDS,
                    |(key, child), (name, item)| match self.output.is_text(key, name) {
                        true => self.check_value(child, item),
                        false => difference(key, "a different key"),
                    },
                )
            }
            Value::String(text) if self.is_string(out, text) => Ok(()),
            scalar => match scalar_value(self.output, out) {
                Ok(found) if found == *scalar && self.output.kind(out) != NodeKind::Alias => Ok(()),
                _ => difference(out, "a different value"),
            },
        }
    }
}
