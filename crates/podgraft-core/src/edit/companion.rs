//! Writes generated objects behind a workload: as documents of their own, as items of its List, or, if the text is a
//! single JSON object, in a new List around both.

use foldhash::HashMap;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::manifest::object::{ListMembership, Object};
use crate::outcome::ObjectText;
use crate::ownership::TextAdjustment;
use crate::plan::draft::{Draft, Refusal};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, NodeKind, Tree};

use super::emit::{BlockStyle, FlowStyle, block_fields, flow_lines, flow_value, needs_line_end};
use super::flow::{FlowWriter, json_unit};
use super::layout::{
    BlockScalarEnd, behind_attached_comments, block_style, flow_style, line_behind, line_end_at,
};
use super::lower::{EditResult, Lowering, LoweringError};
use super::text_cache::TextCache;

/// The reason to write nothing behind an object that ends like this: undo could not tell these blanks from the text
/// that it removes.
pub(crate) const BLANKS_WITHOUT_END: &str = "ends with spaces and no newline";

/// How objects are written into the Lists of a document. Each List is looked at once, however many objects are written
/// into it.
#[derive(Debug, Default)]
pub struct ListWriters<'t>(BTreeMap<NodeId, EditResult<ListWriter<'t>>>);

#[derive(Debug)]
struct ListWriter<'t> {
    style: BlockStyle,
    items: NodeId,
    first_item: NodeId,
    /// For items inside brackets.
    flow: Option<FlowWriter<'t>>,
}

/// Where the objects generated for a workload are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectPlacement {
    /// Behind the workload in its list.
    InList(ListMembership),
    /// In documents of their own, behind the document with this root.
    Documents(NodeId),
    /// In a new List around the single object of a JSON text, which is this root.
    NewList(NodeId),
}

impl ObjectPlacement {
    /// The placement for an object. `is_whole` says whether the tree is a whole file.
    pub fn of(object: &Object, tree: &Tree<'_>, is_whole: bool) -> Self {
        if let Some(within) = object.within {
            return ObjectPlacement::InList(within);
        }
        let is_json =
            || tree.slice(object.node).starts_with('{') && flow_style(tree, object.node).is_json;
        match tree.roots() {
            [root] if is_whole && is_json() => ObjectPlacement::NewList(*root),
            _ => ObjectPlacement::Documents(object.node),
        }
    }

    /// Returns the edits that write one object there.
    ///
    /// # Errors
    /// Where the text is written in a way that leaves no safe place for it.
    pub fn write<'t>(
        self,
        tree: &'t Tree<'t>,
        object: &Arc<Value>,
        lists: &mut ListWriters<'t>,
    ) -> EditResult<ObjectText> {
        match self {
            ObjectPlacement::InList(within) => {
                let writer = lists.0.entry(within.list);
                let writer = writer.or_insert_with(|| ListWriter::new(tree, within));
                let writer = writer.as_ref().map_err(LoweringError::clone)?;
                write_item(tree, within, object, writer)
            }
            ObjectPlacement::Documents(root) => Ok(write_document(tree, root, object)),
            ObjectPlacement::NewList(root) => Ok(write_list(tree, root, object)),
        }
    }
}

impl ObjectPlacement {
    /// How the text around the objects is adjusted when they are written there, if it has no last line end. Undo needs it
    /// to restore the text.
    pub fn room(self, tree: &Tree<'_>) -> TextAdjustment {
        let text = tree.text();
        let is_last = |node: NodeId, column| {
            behind_attached_comments(text, line_behind(text, tree.span(node).end), column)
                == text.len()
        };
        let is_line_made = match self {
            ObjectPlacement::NewList(_) => {
                return TextAdjustment {
                    list: true,
                    ..TextAdjustment::default()
                };
            }
            ObjectPlacement::Documents(root) => tree.roots().len() == 1 || is_last(root, 0),
            ObjectPlacement::InList(within) => {
                !tree.kind(within.list).is_flow() && is_last(within.item, tree.column(within.list))
            }
        };
        TextAdjustment {
            unended: is_line_made,
            list: false,
        }
    }
}

/// Returns the edits that remove a List made by [`ObjectPlacement::NewList`], when a single object is left in it.
pub(crate) fn unwrap_list(tree: &Tree<'_>) -> Option<[Edit; 2]> {
    let &[root] = tree.roots() else { return None };
    let entries: Vec<(NodeId, NodeId)> = tree.entries(root).collect();
    let &[(_, version), (_, kind), (last, items)] = entries.as_slice() else {
        return None;
    };
    let is_generated_list = tree.kind(root) == NodeKind::FlowMapping
        && (tree.get(root, "apiVersion"), tree.get(root, "kind")) == (Some(version), Some(kind))
        && (tree.scalar(version), tree.scalar(kind), tree.scalar(last))
            == (Some("v1"), Some("List"), Some("items"));
    let mut items = tree.children(items);
    let item = items
        .next()
        .filter(|_| is_generated_list && items.next().is_none())?;
    let (outer, inner) = (tree.span(root), tree.span(item));
    Some([
        Edit::removal(outer.start..inner.start),
        Edit::removal(inner.end..outer.end),
    ])
}

/// The draft of a List with new items, each behind one of its items. The output is compared with it.
///
/// # Errors
/// When the List may not be edited.
pub(crate) fn extended_list<'t>(
    tree: &'t Tree<'t>,
    list: NodeId,
    new: HashMap<NodeId, Vec<Arc<Value>>>,
) -> Result<Draft<'t>, Refusal> {
    let mut draft = Draft::new(tree, list);
    let root = draft.open_root()?;
    let items = draft.open_list(root, "items", &[])?;
    draft.insert_behind(items, new);
    Ok(draft)
}

impl<'t> ListWriter<'t> {
    fn new(tree: &'t Tree<'t>, within: ListMembership) -> EditResult<Self> {
        let refused = |node| LoweringError {
            node,
            reason: "is a list that cannot be edited",
        };
        extended_list(tree, within.list, HashMap::default())
            .map_err(|refusal| refused(refusal.node))?;
        let items = tree.get(within.list, "items");
        let items = items.ok_or_else(|| refused(within.list))?;
        let first_item = tree.children(items).next();
        let first_item = first_item.ok_or_else(|| refused(items))?;
        let is_flow = tree.kind(items).is_flow();
        let flow = is_flow.then(|| FlowWriter::of_list(tree, items));
        Ok(ListWriter {
            style: block_style(tree, within.list),
            items,
            first_item,
            flow: flow.transpose()?,
        })
    }

    /// The edits that write an object behind an item.
    fn item_behind(&self, tree: &Tree<'_>, item: NodeId, object: &Arc<Value>) -> Vec<Edit> {
        let draft = Draft::new(tree, self.items);
        let mut texts = TextCache::default();
        let mut lowering = Lowering::new(self.style, &draft, &mut texts);
        match &self.flow {
            Some(flow) => flow.insert_item_behind(item, object, &mut lowering.edits),
            None => {
                let object = Arc::clone(object);
                lowering.insert_item_behind(self.items, self.first_item, item, object);
            }
        }
        lowering.finish()
    }
}

fn write_item(
    tree: &Tree<'_>,
    within: ListMembership,
    object: &Arc<Value>,
    writer: &ListWriter<'_>,
) -> EditResult<ObjectText> {
    let mut room = writer.item_behind(tree, within.item, object);
    // The edit with the longest text is the item; the others only add commas or line ends for it.
    let index = (0..room.len()).max_by_key(|&index| room[index].text.len());
    let edit = index.map(|index| room.remove(index));
    let mut edit = edit.ok_or(LoweringError {
        node: within.item,
        reason: "has no room after it",
    })?;
    let text = tree.text();
    if edit.at.start == text.len() && !text.ends_with('\n') && !tree.kind(within.list).is_flow() {
        if text.ends_with([' ', '\t']) {
            return Err(LoweringError {
                node: within.item,
                reason: BLANKS_WITHOUT_END,
            });
        }
        // The line end in front becomes an edit of its own. So the item can end in one, as a block scalar needs.
        let eol = line_end_at(text, text.len());
        room.push(Edit::insertion(text.len(), eol));
        let item = edit.text.strip_prefix(eol).unwrap_or(&edit.text);
        let end = if needs_line_end(object) { "" } else { eol };
        edit.text = [item, end].concat().into();
    }
    let has_comma = room.iter().any(|edit| &*edit.text == ",");
    Ok(ObjectText {
        room,
        edit,
        between: if has_comma { "," } else { "" },
        end: None,
    })
}

fn write_document(tree: &Tree<'_>, root: NodeId, object: &Value) -> ObjectText {
    let text = tree.text();
    let style = block_style(tree, root);
    let eol = style.line_end;
    let body = block_fields(object, style);
    let at = match tree.roots() {
        [_] => text.len(),
        // More documents follow, so the object goes right behind the content, before the next separator.
        _ => {
            let behind = behind_attached_comments(text, line_behind(text, tree.span(root).end), 0);
            let end = BlockScalarEnd::of_value(object, 0);
            end.map_or(behind, |end| end.behind_content(text, behind, |_| None))
        }
    };
    let mut room = Vec::new();
    if at == text.len() && !text.ends_with('\n') {
        room.push(Edit::insertion(at, eol));
    }
    ObjectText {
        room,
        edit: Edit::insertion(at, format!("---{eol}{body}{eol}")),
        between: "",
        end: None,
    }
}

fn write_list(tree: &Tree<'_>, root: NodeId, object: &Value) -> ObjectText {
    let span = tree.span(root);
    let eol = line_end_at(tree.text(), span.start);
    let style = FlowStyle {
        brace_space: false,
        ..flow_style(tree, root)
    };
    let (line, text) = match json_unit(tree, root) {
        Some(unit) => (eol, flow_lines(object, "", &unit, eol, &style)),
        None => ("", flow_value(object, &style)),
    };
    let colon = if style.colon_space { ": " } else { ":" };
    let comma = style.comma();
    let head = format!(
        r#"{{"apiVersion"{colon}"v1"{comma}"kind"{colon}"List"{comma}"items"{colon}[{line}"#
    );
    let comma = if line.is_empty() { comma } else { "," };
    ObjectText {
        room: vec![Edit::insertion(span.start, head)],
        edit: Edit::insertion(span.end, format!("{comma}{line}{text}")),
        between: "",
        end: Some(Edit::insertion(span.end, format!("{line}]}}"))),
    }
}
