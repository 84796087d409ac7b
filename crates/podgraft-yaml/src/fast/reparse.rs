//! Parses an edited text only around its edits, and copies the other nodes from the old tree.
//!
//! The result for a line depends on the lines from there on and on the parser's state, which is small: the open
//! collections, and where a value is expected. If after an edit the parser is at a line of the old text in the state
//! it had there before, it would repeat what it did. So the nodes up to shortly before the next edit are copied, with
//! shifted offsets. The parser may look at a line while it reads the previous one, so parsing resumes a line earlier.

use std::ops::Range;

use super::super::tree::{Node, NodeId, NodeKind, ReusedNodes, Tree, VERBATIM};
use super::{OpenBlockCollection, Parser, characters, offset};

/// The state of the parser before a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    /// The offset at which the line starts.
    pub at: u32,
    /// The number of nodes so far.
    pub nodes: u32,
    /// The offset after the `:` or `-` whose value is expected, or [`NOTHING_DUE`].
    pub due: u32,
    /// The end of the last content.
    pub end: u32,
}

pub(super) const NOTHING_DUE: u32 = u32::MAX;

/// A byte range of the old text, and the length of its replacement.
pub type ReplacedRange = (Range<usize>, usize);

/// Returns the tree of a text that was made from another by `changes`, which are in order. It is the tree that
/// [`super::parse`] makes of the text.
pub(crate) fn reparse<'o>(
    old: &Tree<'_>,
    text: &'o str,
    changes: &[ReplacedRange],
) -> Option<Tree<'o>> {
    if !are_known(old, text, changes) {
        return None;
    }
    let mut parser = Parser::new(text);
    parser.skip_separator()?;
    let again = IncrementalParser {
        old,
        parser,
        changes,
        passed: 0,
        moved: 0,
        path: Vec::with_capacity(16),
        known: None,
        reached: 0,
    };
    again.run()
}

/// Like [`characters::are_known`], but checks only the changes, since the old text was checked. A change right after
/// a carriage return may separate it from its line feed, so then the whole text is checked.
fn are_known(old: &Tree<'_>, text: &str, changes: &[ReplacedRange]) -> bool {
    let is_behind_return = |at: usize| at > 0 && old.text.as_bytes()[at - 1] == b'\r';
    if changes.iter().any(|(at, _)| is_behind_return(at.start)) {
        return characters::are_known(text);
    }
    let mut moved = 0_isize;
    changes.iter().all(|(at, length)| {
        let start = at.start.wrapping_add_signed(moved);
        moved += length.cast_signed() - at.len().cast_signed();
        text.get(start..start + length)
            .is_some_and(characters::are_known)
    })
}

/// A collection that encloses the current line of the old text.
#[derive(Debug, Clone, Copy)]
struct EnclosingCollection {
    id: u32,
    column: usize,
    is_sequence: bool,
    /// The child that contains the last node before the current line.
    child: u32,
}

struct IncrementalParser<'t, 'i, 'o> {
    old: &'t Tree<'i>,
    parser: Parser<'o>,
    changes: &'t [ReplacedRange],
    /// How many changes the parser has passed.
    passed: usize,
    /// By how many bytes these changes have shifted the text.
    moved: isize,
    /// The block collections that were open before the mark `known`. Marks are visited in order, so this is updated,
    /// not recomputed.
    path: Vec<EnclosingCollection>,
    /// The index of the last visited mark.
    known: Option<usize>,
    /// The index of the first mark of a line that the parser has not read.
    reached: usize,
}

impl<'o> IncrementalParser<'_, '_, 'o> {
    fn run(mut self) -> Option<Tree<'o>> {
        loop {
            if let Some(mark) = self.find_known_state() {
                match self.last_safe_mark() {
                    None => {
                        self.copy_nodes(mark, None);
                        self.parser.tree.roots.push(NodeId(0));
                        return Some(self.parser.tree);
                    }
                    Some(until) if until > mark => self.copy_nodes(mark, Some(until)),
                    Some(_) => {}
                }
            }
            if !self.parser.read_next()? {
                return Some(self.parser.finish());
            }
            self.skip_changes();
        }
    }

    fn skip_changes(&mut self) {
        while let Some((at, length)) = self.changes.get(self.passed) {
            let end = at
                .start
                .checked_add_signed(self.moved)
                .map(|start| start + length);
            if end.is_none_or(|end| end > self.parser.next) {
                return;
            }
            self.passed += 1;
            self.moved += length.cast_signed() - at.len().cast_signed();
        }
    }

    fn to_new(&self, at: u32) -> u32 {
        offset((at as usize).wrapping_add_signed(self.moved))
    }

    /// Returns the index of the old text's mark at which the parser had its present state, if no change is between
    /// the two. `None` if there is no such mark.
    fn find_known_state(&mut self) -> Option<usize> {
        let at = self.parser.next.checked_add_signed(-self.moved)?;
        let is_inside = self
            .changes
            .get(self.passed)
            .is_some_and(|(change, _)| change.start < at);
        let is_behind = self
            .passed
            .checked_sub(1)
            .is_none_or(|last| self.changes[last].0.end <= at);
        if is_inside || !is_behind {
            return None;
        }
        let marks = &self.old.marks;
        while marks
            .get(self.reached)
            .is_some_and(|mark| (mark.at as usize) < at)
        {
            self.reached += 1;
        }
        let index = self.reached;
        let mark = marks.get(index).filter(|mark| mark.at as usize == at)?;
        let due = mark.due;
        let is_same_due = match self.parser.due {
            None => due == NOTHING_DUE,
            Some(place) => due != NOTHING_DUE && self.to_new(due) as usize == place,
        };
        if !is_same_due {
            return None;
        }
        self.open_at_mark(index);
        let is_same = |(old, new): (&EnclosingCollection, &OpenBlockCollection)| {
            old.column == new.column && old.is_sequence == new.is_sequence
        };
        let is_known = self.path.len() == self.parser.open.len()
            && self.path.iter().zip(&self.parser.open).all(is_same);
        is_known.then_some(index)
    }

    /// Returns the last mark that is at least two lines before the next change, counted from the start of the
    /// change's line, and at which no value is expected: a dash alone on its line closes collections, which the nodes
    /// do not show. `None` if no change is left.
    fn last_safe_mark(&self) -> Option<usize> {
        let (change, _) = self.changes.get(self.passed)?;
        let marks = &self.old.marks;
        let from = self.known.unwrap_or(0);
        let behind = from + marks[from..].partition_point(|mark| mark.at as usize <= change.start);
        let last = behind.saturating_sub(2);
        marks
            .iter()
            .take(last + 1)
            .rposition(|mark| mark.due == NOTHING_DUE)
            .or(Some(0))
    }

    /// Sets `path` to the block collections that were open before a mark: those around the last node before it.
    fn open_at_mark(&mut self, mark: usize) {
        self.known = Some(mark);
        let nodes = &self.old.nodes;
        let Some(last) = self.old.marks[mark].nodes.checked_sub(1) else {
            return;
        };
        while self
            .path
            .pop_if(|around| nodes[around.id as usize].after <= last)
            .is_some()
        {}
        loop {
            let id = match self.path.last_mut() {
                None => 0,
                Some(around) if around.id == last => return,
                Some(around) => {
                    while nodes[around.child as usize].after <= last {
                        around.child = nodes[around.child as usize].after;
                    }
                    around.child
                }
            };
            let Node { kind, extra, .. } = nodes[id as usize];
            if !matches!(kind, NodeKind::BlockMapping | NodeKind::BlockSequence) {
                return;
            }
            self.path.push(EnclosingCollection {
                id,
                column: extra as usize,
                is_sequence: kind == NodeKind::BlockSequence,
                child: id + 1,
            });
        }
    }

    /// Copies nodes of the old tree, with new ids and offsets.
    fn move_nodes(&mut self, range: Range<u32>) {
        let old = self.old;
        let Tree { nodes, decoded, .. } = &mut self.parser.tree;
        // A negative shift wraps around; so do the additions below, which gives the right offset.
        let moved = offset(self.moved.cast_unsigned() & u32::MAX as usize);
        let renumbered = offset(nodes.len()).wrapping_sub(range.start);
        let base = nodes.len();
        nodes.extend_from_slice(&old.nodes[range.start as usize..range.end as usize]);
        for node in &mut nodes[base..] {
            node.start = node.start.wrapping_add(moved);
            node.end = node.end.wrapping_add(moved);
            node.after = node.after.wrapping_add(renumbered);
            if node.extra != VERBATIM && !node.kind.is_collection() {
                decoded.push(old.decoded[node.extra as usize].clone());
                node.extra = offset(decoded.len() - 1);
            }
        }
    }

    /// Copies the nodes between two marks, or up to the end, and sets the parser's state as it is there.
    fn copy_nodes(&mut self, from: usize, until: Option<usize>) {
        let old = self.old;
        let first = old.marks[from];
        let before: Vec<EnclosingCollection> = self.path.clone();
        let (end, kept) = match until {
            Some(until) => {
                self.open_at_mark(until);
                // Collections that began before the first mark are in the new tree already.
                let is_before = |around: &&EnclosingCollection| around.id < first.nodes;
                let kept = self.path.iter().take_while(is_before).count();
                (old.marks[until].nodes, kept)
            }
            None => (offset(old.nodes.len()), 0),
        };
        let base = offset(self.parser.tree.nodes.len());
        let renumbered = |id: u32| id.wrapping_sub(first.nodes).wrapping_add(base);
        self.close(&before[kept..], first, renumbered);
        let taken = ReusedNodes {
            from: NodeId(first.nodes),
            to: NodeId(base),
            count: end - first.nodes,
        };
        self.parser.tree.taken.push(taken);
        self.move_nodes(first.nodes..end);
        let Some(until) = until else { return };
        self.reached = until;
        let mark = old.marks[until];
        self.parser.open.truncate(kept);
        let opened = self.path[kept..].iter().map(|around| OpenBlockCollection {
            id: renumbered(around.id),
            column: around.column,
            is_sequence: around.is_sequence,
        });
        self.parser.open.extend(opened);
        self.parser.next = self.to_new(mark.at) as usize;
        self.parser.due = (mark.due != NOTHING_DUE).then(|| self.to_new(mark.due) as usize);
        self.parser.end = self.to_new(mark.end);
    }

    /// Closes the collections that end in the copied part. One that got no more content there ends at the parser's
    /// current end.
    fn close(
        &mut self,
        closed: &[EnclosingCollection],
        first: Checkpoint,
        renumbered: impl Fn(u32) -> u32,
    ) {
        let open = self.parser.open.len() - closed.len();
        for (around, open) in closed.iter().zip(&self.parser.open[open..]) {
            let node = self.old.nodes[around.id as usize];
            let end = if node.end <= first.end {
                self.parser.end
            } else {
                self.to_new(node.end)
            };
            let collection = &mut self.parser.tree.nodes[open.id as usize];
            collection.end = end;
            collection.after = renumbered(node.after);
        }
    }
}
