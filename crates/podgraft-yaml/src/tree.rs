//! A YAML text as a flat arena of nodes with byte spans: where each node is and in which style it is written. Values
//! are copied only if they differ from the text.
//!
//! Nodes are in document order, parents before children, so a node and its descendants have the ids from the node's
//! up to, and without, [`Tree::after`] it. The children of a mapping are key, value, key, value.
//!
//! A span covers the content of a node: of a quoted scalar with its quotes; of a block scalar from its `|` or `>` to
//! the end of its last content line without the line end (with keep chomping, `|+`, with all its blank lines and the
//! last line end, and with blanks that end the text); of a flow collection with its brackets; of a block mapping from its first key and of a block
//! sequence from its first dash, both to the end of their last content. A value that is not written at all has an
//! empty span after its `:` or `-`. Properties (anchor, tag) are before the span.

use std::ops::Range;
use std::sync::OnceLock;

use super::fast::Checkpoint;
use super::stream::mark_length;

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
    /// A plain scalar: text without quotes.
    Plain,
    /// `'text'`.
    SingleQuoted,
    /// `"text"`.
    DoubleQuoted,
    /// A literal block scalar: `|` and lines.
    Literal,
    /// A folded block scalar: `>` and lines.
    Folded,
    /// A value that is not written, as after `key:`. It is null.
    Absent,
    /// `*name`.
    Alias,
}

impl NodeKind {
    /// Whether it is a mapping in block or flow style.
    pub fn is_mapping(self) -> bool {
        matches!(self, NodeKind::BlockMapping | NodeKind::FlowMapping)
    }

    /// Whether it is a sequence in block or flow style.
    pub fn is_sequence(self) -> bool {
        matches!(self, NodeKind::BlockSequence | NodeKind::FlowSequence)
    }

    /// Whether it is a mapping or sequence in flow style.
    pub fn is_flow(self) -> bool {
        matches!(self, NodeKind::FlowMapping | NodeKind::FlowSequence)
    }

    /// Whether it is a mapping or sequence.
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
    /// An alias of the document refers to this node.
    pub is_aliased: bool,
    pub start: u32,
    pub end: u32,
    /// The id that follows the last descendant's.
    pub after: u32,
    /// Of a scalar: index into `decoded`, or [`VERBATIM`]. Of an alias: the id of its target. Of a block collection:
    /// its column.
    pub extra: u32,
}

/// `extra` of a scalar whose value is its text, without the quotes, byte for byte.
pub(crate) const VERBATIM: u32 = u32::MAX;

/// The properties of a node: its anchor and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeProperties {
    pub node: NodeId,
    /// The offset of the first property.
    pub start: u32,
    pub anchor: Option<Range<u32>>,
    /// The resolved tag, `tag:yaml.org,2002:str` for `!!str`.
    pub tag: Option<Box<str>>,
}

/// The parsed documents of a text. Two trees are equal if they have the same text, nodes and values.
#[derive(Debug, Clone)]
pub struct Tree<'a> {
    pub(crate) text: &'a str,
    pub(crate) nodes: Vec<Node>,
    pub(crate) decoded: Vec<Box<str>>,
    pub(crate) properties: Vec<NodeProperties>,
    pub(crate) roots: Vec<NodeId>,
    /// Made by the fast parser, which gives up on everything that YAML readers disagree about.
    pub(crate) is_plain: bool,
    /// In a plain tree: the parser's state before each line, in order.
    pub(super) marks: Vec<Checkpoint>,
    /// In a tree made by reparsing: the nodes copied from the previous tree.
    pub(super) taken: Vec<ReusedNodes>,
    /// The text's first line end, computed on first use.
    pub(super) line_end: OnceLock<&'static str>,
}

/// A run of nodes copied from another tree. It has all descendants of its nodes, except of collections that were
/// still open at its end.
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
            line_end: OnceLock::new(),
        }
    }

    /// Whether the text is the plain YAML that programs write, on which all readers agree.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The text that was parsed.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the line end of the text's first line. Cached, because a compact JSON text is one long line.
    pub fn line_end(&self) -> &'static str {
        self.line_end.get_or_init(|| {
            let text = self.text.as_bytes();
            // A lone `\r` is not a line end to podgraft; it is refused as ambiguous.
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
        let end =
            u32::try_from(self.nodes.len()).expect("a text under 4 GiB has fewer nodes than bytes");
        (0..end).map(NodeId)
    }

    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The kind of a node and the style in which it is written.
    #[inline]
    pub fn kind(&self, id: NodeId) -> NodeKind {
        self.node(id).kind
    }

    /// The byte range of the content; see the module's documentation for what it includes.
    #[inline(always)]
    pub fn span(&self, id: NodeId) -> Range<usize> {
        let node = self.node(id);
        node.start as usize..node.end as usize
    }

    /// The byte offset at which the content begins.
    #[inline]
    pub fn start(&self, id: NodeId) -> usize {
        self.node(id).start as usize
    }

    /// The column at which the content begins, in bytes from the start of its line. A byte order mark takes no column.
    #[inline]
    pub fn column(&self, id: NodeId) -> usize {
        let node = self.node(id);
        match node.kind {
            NodeKind::BlockMapping | NodeKind::BlockSequence => node.extra as usize,
            _ => column_of(self.text, node.start as usize),
        }
    }

    /// The content as it is written.
    #[inline]
    pub fn slice(&self, id: NodeId) -> &'a str {
        &self.text[self.span(id)]
    }

    /// The id that follows those of the node and its descendants.
    #[inline]
    pub fn after(&self, id: NodeId) -> NodeId {
        NodeId(self.node(id).after)
    }

    /// The node and its descendants, in document order.
    pub fn within(&self, id: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (id.0..self.node(id).after).map(NodeId)
    }

    /// The direct children. Those of a mapping are keys and values in turn.
    #[inline]
    pub fn children(&self, id: NodeId) -> Children<'_, 'a> {
        let node = self.node(id);
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
    #[inline]
    pub fn entries(&self, id: NodeId) -> Entries<'_, 'a> {
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

    /// Returns the target of an alias, which is never an alias itself. Returns any other node unchanged.
    #[inline]
    pub fn follow(&self, id: NodeId) -> NodeId {
        let node = self.node(id);
        if node.kind == NodeKind::Alias {
            NodeId(node.extra)
        } else {
            id
        }
    }

    /// Returns a scalar's value as text, before any typing: quotes, escapes and folding are undone, aliases followed.
    /// `None` for collections. A value that is not written is the empty text.
    #[inline]
    pub fn scalar(&self, id: NodeId) -> Option<&str> {
        let node = self.node(id);
        match node.kind == NodeKind::Plain && node.extra == VERBATIM {
            true => Some(&self.text[node.start as usize..node.end as usize]),
            false => self.other_scalar(id),
        }
    }

    /// [`Tree::scalar`] of what is seldom asked for: all but plain scalars that are their text.
    fn other_scalar(&self, id: NodeId) -> Option<&str> {
        let node = self.node(self.follow(id));
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

    /// Whether a node and its descendants were copied by [`reparse`](super::parse::reparse) from the node `original`
    /// of the previous tree, so that both have the same bytes and nodes.
    pub fn is_taken_from(&self, id: NodeId, original: NodeId) -> bool {
        self.are_taken_from(id..self.after(id), original)
    }

    /// [`Tree::is_taken_from`] for several nodes, the first of which was copied from `original`.
    pub fn are_taken_from(&self, ids: Range<NodeId>, original: NodeId) -> bool {
        let Some(at) = self
            .taken
            .partition_point(|taken| taken.to <= ids.start)
            .checked_sub(1)
        else {
            return false;
        };
        let taken = self.taken[at];
        let place = ids.start.0 - taken.to.0;
        ids.end.0 <= taken.to.0 + taken.count && original.0.checked_sub(taken.from.0) == Some(place)
    }

    /// Whether an alias of the document refers to the node.
    pub fn is_aliased(&self, id: NodeId) -> bool {
        self.node(id).is_aliased
    }

    /// The name of the node's anchor, as it is written.
    pub fn anchor(&self, id: NodeId) -> Option<&'a str> {
        let anchor = self.properties_of(id)?.anchor.as_ref()?;
        Some(&self.text[anchor.start as usize..anchor.end as usize])
    }

    #[inline]
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
    #[inline]
    pub fn tag(&self, id: NodeId) -> Option<&str> {
        self.properties_of(id)?.tag.as_deref()
    }

    /// The byte offset at which the node begins, including its properties.
    pub fn start_with_properties(&self, id: NodeId) -> usize {
        self.properties_of(id)
            .map_or(self.node(id).start, |properties| properties.start) as usize
    }
}

/// The column of an offset; see [`Tree::column`].
pub fn column_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at];
    let start = memchr::memrchr(b'\n', before).map_or(0, |found| found + 1);
    let mark = match start {
        0 => mark_length(before),
        _ => 0,
    };
    at - start - mark
}

/// The `extra` of a node whose value or target is not known yet.
pub(crate) fn new_extra(text: &str, kind: NodeKind, start: u32) -> u32 {
    match kind {
        NodeKind::BlockMapping | NodeKind::BlockSequence => {
            let column = column_of(text, start as usize);
            u32::try_from(column).expect("a column is no greater than its offset")
        }
        _ => VERBATIM,
    }
}

/// Whether two subtrees have the same bytes and the same nodes: kinds, relative positions and values. `false` if
/// there is any anchor, tag or alias.
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
    if left_nodes.len() != right_nodes.len() || left.slice(left_id) != right.slice(right_id) {
        return false;
    }
    for (left_node, right_node) in left_nodes.iter().zip(right_nodes) {
        // Nearly all nodes are the same, so a branch for each comparison would be wasted.
        let is_same = (left_node.kind == right_node.kind)
            & (left_node.kind != NodeKind::Alias)
            & !(left_node.has_properties | right_node.has_properties)
            & (left_node.start.wrapping_sub(left_start)
                == right_node.start.wrapping_sub(right_start))
            & (left_node.end.wrapping_sub(left_start) == right_node.end.wrapping_sub(right_start))
            & (left_node.after.wrapping_sub(left_id.0)
                == right_node.after.wrapping_sub(right_id.0));
        // A value that is its text is at no index.
        let is_same = is_same
            && (left_node.kind.is_collection()
                || left.decoded.get(left_node.extra as usize)
                    == right.decoded.get(right_node.extra as usize));
        if !is_same {
            return false;
        }
    }
    true
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

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let id = NodeId(self.next);
        self.next = self.tree.node(id).after;
        Some(id)
    }

    fn nth(&mut self, at: usize) -> Option<NodeId> {
        for _ in 0..at {
            if self.next >= self.end {
                return None;
            }
            self.next = self.tree.nodes[self.next as usize].after;
        }
        self.next()
    }
}

/// See [`Tree::entries`].
#[derive(Debug, Clone)]
pub struct Entries<'t, 'a>(Children<'t, 'a>);

impl Iterator for Entries<'_, '_> {
    type Item = (NodeId, NodeId);

    #[inline]
    fn next(&mut self) -> Option<(NodeId, NodeId)> {
        Some((self.0.next()?, self.0.next()?))
    }
}
