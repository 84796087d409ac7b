//! YAML text as a flat arena of nodes with byte spans: what is where, and in which style. Nothing is copied that
//! can be read from the text.
//!
//! Nodes stand in document order, a parent before its children, so a node and all that it holds are the ids from the
//! node up to [`Tree::after`] it. A mapping's children are key, value, key, value.
//!
//! Spans are the content's: a quoted scalar with its quotes, a block scalar from its `|` or `>` to the end of its last
//! content line without the line end (with keep chomping, `|+`, with all its blank lines and the last line end), a flow
//! collection with its brackets, a block mapping from its first key, a block sequence from its first dash, both to the
//! end of their last content. A value that is not written at all has an empty span behind its `:` or `-`.
//! Properties (anchor, tag) stand before the span.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fast::Checkpoint;

/// A node of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// The kind of a node, and the style in which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// `key: value` lines.
    BlockMapping,
    /// `{key: value}`.
    FlowMapping,
    /// `- item` lines.
    BlockSequence,
    /// `[item]`.
    FlowSequence,
    /// Text without quotes.
    Plain,
    /// `'text'`.
    SingleQuoted,
    /// `"text"`.
    DoubleQuoted,
    /// `|` and lines.
    Literal,
    /// `>` and lines.
    Folded,
    /// A value that is not written: `key:` and nothing.
    Absent,
    /// `*name`.
    Alias,
}

impl NodeKind {
    /// A mapping of either style.
    pub fn is_mapping(self) -> bool {
        matches!(self, NodeKind::BlockMapping | NodeKind::FlowMapping)
    }

    /// A sequence of either style.
    pub fn is_sequence(self) -> bool {
        matches!(self, NodeKind::BlockSequence | NodeKind::FlowSequence)
    }

    /// A collection in flow style.
    pub fn is_flow(self) -> bool {
        matches!(self, NodeKind::FlowMapping | NodeKind::FlowSequence)
    }

    /// A mapping or sequence.
    pub fn is_collection(self) -> bool {
        self.is_mapping() || self.is_sequence()
    }
}

/// One node: 20 bytes, so that a document of a few kilobytes stays in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub kind: NodeKind,
    /// Has an entry in `properties`.
    pub has_properties: bool,
    /// Some alias of the document points here.
    pub is_aliased: bool,
    pub start: u32,
    pub end: u32,
    /// The id after the last descendant.
    pub after: u32,
    /// Scalars: index into `decoded`, or `VERBATIM`. Aliases: the target.
    pub extra: u32,
}

/// `extra` of a scalar whose value is its text between the quotes, byte for byte.
pub(crate) const VERBATIM: u32 = u32::MAX;

/// `unread` of a tree that has all nodes; no node has this id.
pub(super) const ALL_READ: u32 = u32::MAX;

/// The properties of a node: its anchor and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeProperties {
    pub node: NodeId,
    /// Where the first of them begins.
    pub start: u32,
    pub anchor: Option<Range<u32>>,
    /// The resolved tag, `tag:yaml.org,2002:str` for `!!str`.
    pub tag: Option<Box<str>>,
}

/// The documents of one piece of text. Two trees are equal if they have the same text, nodes and values.
#[derive(Debug, Clone)]
pub struct Tree<'a> {
    pub(crate) text: &'a str,
    pub(crate) nodes: Vec<Node>,
    pub(crate) decoded: Vec<Box<str>>,
    pub(crate) properties: Vec<NodeProperties>,
    pub(crate) roots: Vec<NodeId>,
    /// Read by the parser of plain YAML, which gives up on all that readers disagree about.
    pub(crate) is_plain: bool,
    /// Of a plain tree: the parser's state before each line.
    pub(super) marks: Vec<Checkpoint>,
    /// Of a text that was read again: nodes that were taken from the tree before.
    pub(super) taken: Vec<ReusedNodes>,
    /// Of an outline: a mapping that was not read, or [`ALL_READ`].
    pub(super) unread: u32,
    /// Somebody looked for what it holds, or where it ends.
    pub(super) unread_access: AccessFlag,
    /// The text's first line end, once somebody wants it.
    pub(super) line_end: OnceLock<&'static str>,
}

/// A flag that is set when a skipped part of the outline is accessed.
#[derive(Debug, Default)]
pub(super) struct AccessFlag(AtomicBool);

impl AccessFlag {
    fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Clone for AccessFlag {
    fn clone(&self) -> Self {
        AccessFlag(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Nodes reused from another tree, with all descendants except those of nodes that were still open.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReusedNodes {
    pub from: NodeId,
    pub to: NodeId,
    pub count: u32,
}

impl PartialEq for Tree<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
            && self.nodes == other.nodes
            && self.decoded == other.decoded
            && self.properties == other.properties
            && self.roots == other.roots
    }
}

impl Eq for Tree<'_> {}

impl<'a> Tree<'a> {
    pub(crate) fn empty(text: &'a str) -> Self {
        Tree {
            text,
            nodes: Vec::new(),
            decoded: Vec::new(),
            properties: Vec::new(),
            roots: Vec::new(),
            is_plain: false,
            marks: Vec::new(),
            taken: Vec::new(),
            unread: ALL_READ,
            unread_access: AccessFlag::default(),
            line_end: OnceLock::new(),
        }
    }

    /// Whether something of the document was passed over.
    pub fn is_outline(&self) -> bool {
        self.unread != ALL_READ
    }

    /// Whether an outline was asked for something that was passed over, so that the answers were wrong.
    pub fn has_unread_access(&self) -> bool {
        self.unread_access.0.load(Ordering::Relaxed)
    }

    /// Takes note that somebody asks for what may have been passed over.
    pub fn record_full_access(&self) {
        self.unread_access.note();
    }

    /// Takes note where something of these nodes was not read.
    #[inline(always)]
    fn record_access(&self, first: u32, after: u32) {
        if self.unread != ALL_READ {
            self.record_outline_access(first, after);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_outline_access(&self, first: u32, after: u32) {
        if (first..after).contains(&self.unread) {
            self.unread_access.note();
        }
    }

    /// Whether the text is of the plain YAML that programs write, on which all readers agree.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The text that was parsed.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The line end of the text's first line. A compact text is one long line, which is searched once.
    pub fn line_end(&self) -> &'static str {
        self.line_end.get_or_init(|| {
            let text = self.text.as_bytes();
            match memchr::memchr(b'\n', text) {
                Some(at) if at > 0 && text[at - 1] == b'\r' => "\r\n",
                _ => "\n",
            }
        })
    }

    /// The root of every document that has content, in order.
    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// All nodes in document order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.record_access(0, u32::MAX);
        let end =
            u32::try_from(self.nodes.len()).expect("a text under 4 GiB has fewer nodes than bytes");
        (0..end).map(NodeId)
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// What the node is and how it is written.
    pub fn kind(&self, id: NodeId) -> NodeKind {
        self.node(id).kind
    }

    /// The content's bytes, see the module's text.
    #[inline(always)]
    pub fn span(&self, id: NodeId) -> Range<usize> {
        let node = self.node(id);
        self.record_access(id.0, node.after);
        node.start as usize..node.end as usize
    }

    /// Where the content begins.
    pub fn start(&self, id: NodeId) -> usize {
        self.node(id).start as usize
    }

    /// The content as it is written.
    #[inline]
    pub fn slice(&self, id: NodeId) -> &'a str {
        &self.text[self.span(id)]
    }

    /// The id behind the node and all that it holds.
    pub fn after(&self, id: NodeId) -> NodeId {
        NodeId(self.node(id).after)
    }

    /// The node and all that it holds, in document order.
    pub fn within(&self, id: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        self.record_access(id.0, self.node(id).after);
        (id.0..self.node(id).after).map(NodeId)
    }

    /// The direct children; of a mapping keys and values in turn.
    pub fn children(&self, id: NodeId) -> Children<'_, 'a> {
        let node = self.node(id);
        self.record_access(id.0, id.0 + 1);
        let end = if node.kind.is_collection() {
            node.after
        } else {
            id.0 + 1
        };
        Children {
            tree: self,
            next: id.0 + 1,
            end,
        }
    }

    /// The key and value of every entry of a mapping, as written: aliases and `<<` are not followed.
    pub fn entries(&self, id: NodeId) -> Entries<'_, 'a> {
        self.record_access(id.0, id.0 + 1);
        let end = if self.kind(id).is_mapping() {
            self.node(id).after
        } else {
            id.0 + 1
        };
        Entries(Children {
            tree: self,
            next: id.0 + 1,
            end,
        })
    }

    /// The target of an alias (never an alias itself), or the node as it is.
    pub fn follow(&self, id: NodeId) -> NodeId {
        let node = self.node(id);
        if node.kind == NodeKind::Alias {
            NodeId(node.extra)
        } else {
            id
        }
    }

    /// A scalar's value as text, before any typing: quotes, escapes and folding undone. `None` for collections;
    /// aliases are followed. Not written is the empty text.
    pub fn scalar(&self, id: NodeId) -> Option<&str> {
        let id = self.follow(id);
        let node = self.node(id);
        if node.kind.is_collection() {
            return None;
        }
        if node.extra != VERBATIM {
            return Some(&self.decoded[node.extra as usize]);
        }
        let span = node.start as usize..node.end as usize;
        let quoted = matches!(node.kind, NodeKind::SingleQuoted | NodeKind::DoubleQuoted);
        Some(if quoted {
            &self.text[span.start + 1..span.end - 1]
        } else {
            &self.text[span]
        })
    }

    /// Whether a node and all that it holds was taken over, unread, from a node of the tree that this one was made from:
    /// same bytes, same nodes.
    pub fn is_taken_from(&self, id: NodeId, original: NodeId) -> bool {
        let Some(at) = self
            .taken
            .partition_point(|taken| taken.to <= id)
            .checked_sub(1)
        else {
            return false;
        };
        let taken = self.taken[at];
        let place = id.0 - taken.to.0;
        self.node(id).after <= taken.to.0 + taken.count
            && original.0.checked_sub(taken.from.0) == Some(place)
    }

    /// Whether an alias of the document points at the node.
    pub fn is_aliased(&self, id: NodeId) -> bool {
        self.node(id).is_aliased
    }

    /// The anchor in front of the node, as it is written.
    pub fn anchor(&self, id: NodeId) -> Option<&'a str> {
        let anchor = self.properties_of(id)?.anchor.as_ref()?;
        Some(&self.text[anchor.start as usize..anchor.end as usize])
    }

    pub(crate) fn properties_of(&self, id: NodeId) -> Option<&NodeProperties> {
        if !self.node(id).has_properties {
            return None;
        }
        let at = self
            .properties
            .binary_search_by_key(&id, |properties| properties.node)
            .ok()?;
        Some(&self.properties[at])
    }

    /// The node's tag, resolved: `tag:yaml.org,2002:str` for `!!str`.
    pub fn tag(&self, id: NodeId) -> Option<&str> {
        self.properties_of(id)?.tag.as_deref()
    }

    /// Where the node begins with its properties.
    pub fn start_with_properties(&self, id: NodeId) -> usize {
        self.properties_of(id)
            .map_or(self.node(id).start, |properties| properties.start) as usize
    }
}

/// Whether two subtrees are written with the same bytes and read alike, node by node: kinds, places, values. Says no to
/// whatever has anchors, tags or aliases.
pub fn is_same_text(left: &Tree<'_>, left_id: NodeId, right: &Tree<'_>, right_id: NodeId) -> bool {
    let nodes = |tree: &Tree<'_>, id: NodeId| id.0 as usize..tree.node(id).after as usize;
    let (left_nodes, right_nodes) = (
        &left.nodes[nodes(left, left_id)],
        &right.nodes[nodes(right, right_id)],
    );
    let (Some(left_root), Some(right_root)) = (left_nodes.first(), right_nodes.first()) else {
        return false;
    };
    let (left_start, right_start) = (left_root.start, right_root.start);
    let is_same = |(left_node, right_node): (&Node, &Node)| {
        left_node.kind == right_node.kind
            && left_node.kind != NodeKind::Alias
            && !left_node.has_properties
            && !right_node.has_properties
            && left_node.start.wrapping_sub(left_start)
                == right_node.start.wrapping_sub(right_start)
            && left_node.end.wrapping_sub(left_node.start)
                == right_node.end.wrapping_sub(right_node.start)
            && left_node.after - left_id.0 == right_node.after - right_id.0
            && (left_node.extra == VERBATIM) == (right_node.extra == VERBATIM)
            && (left_node.extra == VERBATIM
                || left.decoded[left_node.extra as usize]
                    == right.decoded[right_node.extra as usize])
    };
    left_nodes.len() == right_nodes.len()
        && left.slice(left_id) == right.slice(right_id)
        && left_nodes.iter().zip(right_nodes).all(is_same)
}

/// See [`Tree::children`].
#[derive(Debug, Clone)]
pub struct Children<'t, 'a> {
    tree: &'t Tree<'a>,
    next: u32,
    end: u32,
}

impl Iterator for Children<'_, '_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let id = NodeId(self.next);
        self.next = self.tree.node(id).after;
        Some(id)
    }
}

/// See [`Tree::entries`].
#[derive(Debug, Clone)]
pub struct Entries<'t, 'a>(Children<'t, 'a>);

impl Iterator for Entries<'_, '_> {
    type Item = (NodeId, NodeId);

    fn next(&mut self) -> Option<(NodeId, NodeId)> {
        Some((self.0.next()?, self.0.next()?))
    }
}
