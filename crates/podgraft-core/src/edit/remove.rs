//! Removes fields of block mappings as whole lines. Comments above them stay.

use foldhash::HashSet;
use std::ops::Range;

use crate::plan::draft::{DraftField, DraftKey};
use crate::yaml::splice::Edit;
use crate::yaml::tree::NodeId;

use super::layout::{BlockScalarEnd, line_behind, line_end, line_end_at, line_start};
use super::lower::{EditResult, Lowering, LoweringError};

type KeyValueNodes = (NodeId, NodeId);

impl Lowering<'_, '_> {
    /// Removes the fields of the input that the draft does not have, each run of adjacent fields at once.
    pub(super) fn remove_fields(&mut self, origin: NodeId, fields: &[DraftField]) -> EditResult {
        let kept = fields.iter().filter_map(|field| match &field.key {
            DraftKey::Node(key) => Some(*key),
            _ => None,
        });
        // In the common case all fields are kept, in order.
        let keys = self.tree.entries(origin).map(|(key, _)| key);
        if kept.clone().eq(keys) {
            return Ok(());
        }
        let kept: HashSet<NodeId> = kept.collect();
        let entries: Vec<KeyValueNodes> = self.tree.entries(origin).collect();
        let is_kept = |(key, _): &&KeyValueNodes| kept.contains(key);
        let mut at = 0;
        while at < entries.len() {
            let length = entries[at..]
                .iter()
                .take_while(|entry| !is_kept(entry))
                .count();
            if length > 0 {
                let (before, rest) = entries.split_at(at);
                let (run, after) = rest.split_at(length);
                self.remove_run(before.last(), run, after.first())?;
            }
            at += length + 1;
        }
        Ok(())
    }

    fn remove_run(
        &mut self,
        previous: Option<&KeyValueNodes>,
        run: &[KeyValueNodes],
        next: Option<&KeyValueNodes>,
    ) -> EditResult {
        let [(first, _), ..] = run else { return Ok(()) };
        let text = self.tree.text();
        let start = self.tree.start_with_properties(*first);
        if text[start..].starts_with('?') || self.is_behind_question_mark(previous, start) {
            return Err(not_key_and_value(*first));
        }
        let line = line_start(text, start);
        if text[line..start].bytes().all(|byte| byte == b' ') {
            let end = run
                .iter()
                .map(|&(key, value)| self.end_of(key, value))
                .max()
                .unwrap_or(start);
            self.remove(line..end);
            return Ok(());
        }
        // The first field of a list item shares its line with the dash. The next field moves up to its place.
        let node = *first;
        let Some(&(next, _)) = next else {
            let reason = "shares its line with other content";
            return Err(LoweringError { node, reason });
        };
        let to = self.tree.start_with_properties(next);
        if self.is_behind_question_mark(run.last(), to) {
            return Err(not_key_and_value(next));
        }
        let last = run
            .last()
            .map_or(start, |&(_, value)| self.tree.span(value).end.min(to));
        // The span of a `|+` block includes its last line ends.
        let line_end = line_end(text, text[..last].trim_end_matches(['\r', '\n']).len());
        let end = match text[line_end..to].contains('#') {
            // Comments above the next field stay there, below the dash.
            true => line_end,
            false => to,
        };
        self.remove(start..end);
        Ok(())
    }

    /// Widens the removals behind a block scalar that stays: blank lines and comments behind what is removed would become
    /// its content, so they go, too.
    pub(super) fn widen_removals(&mut self) {
        if self.removals.is_empty() {
            return;
        }
        let removals = self.removals.iter().map(|(&from, &to)| from..to);
        let mut removals: Vec<Range<usize>> = removals.collect();
        removals.sort_unstable_by_key(|removal| removal.start);
        let mut edits: Vec<&Edit> = self.edits.iter().collect();
        edits.sort_by_key(|edit| edit.at.start);
        let widened = removals.iter().filter_map(|removal| {
            let scalar = self.block_scalar_before(removal.start, &removals, &edits)?;
            let removed = |from: usize| self.end_of_removal(from);
            let to = scalar.behind_content(self.tree.text(), removal.end, removed);
            (to > removal.end).then(|| (removal.clone(), to))
        });
        let widened: Vec<(Range<usize>, usize)> = widened.collect();
        for (removal, to) in widened {
            self.widen(&removal, to);
        }
    }

    /// The block scalar that stands right before an offset in the edited text. `None` behind another removal: that one is
    /// widened over this one.
    fn block_scalar_before(
        &self,
        offset: usize,
        removals: &[Range<usize>],
        edits: &[&Edit],
    ) -> Option<BlockScalarEnd> {
        let text = self.tree.text();
        let node = self.tree.last_before(offset)?;
        let (start, end) = (self.tree.start(node), self.tree.span(node).end);
        let begun = removals.partition_point(|removal| removal.start <= start);
        let is_removed = begun > 0 && removals[begun - 1].contains(&start);
        // A comment may stand behind the header of a block scalar without lines.
        let between = text.get(end..offset)?;
        let (rest, lines) = between.split_once('\n').unwrap_or((between, ""));
        let is_adjacent = matches!(rest.trim_ascii().chars().next(), None | Some('#'))
            && lines.trim_ascii().is_empty();
        if is_removed || !is_adjacent {
            return None;
        }
        let before = |offset: usize| edits.partition_point(|edit| edit.at.start < offset);
        let is_entry =
            |edit: &&Edit| !edit.text.is_empty() && text[..edit.at.start].ends_with('\n');
        if edits[before(end)..before(offset + 1)].iter().any(is_entry) {
            return None;
        }
        let begun = before(start + 1);
        match edits[..begun]
            .last()
            .filter(|edit| edit.at.contains(&start))
        {
            Some(edit) => BlockScalarEnd::of_header(&edit.text, text, start),
            None => BlockScalarEnd::of_node(self.tree, node),
        }
    }

    /// Widens a removal, which may reach over others and over places where something is inserted.
    fn widen(&mut self, removal: &Range<usize>, to: usize) {
        let is_at_end = to == self.tree.text().len();
        for edit in &mut self.edits {
            if edit.at == *removal {
                edit.at.end = to;
            } else if edit.at.start > removal.start && edit.at.start < to {
                edit.at = to..to;
            } else if is_at_end && edit.at == (to..to) {
                // The last line, which new lines would have ended first, is gone.
                let text = edit.text.trim_start_matches(['\r', '\n']).to_owned();
                edit.text = text.into();
            }
        }
    }

    /// Whether a key stands behind a `?`, on its line or on the line above. A `?` of the field before it is text.
    fn is_behind_question_mark(&self, previous: Option<&KeyValueNodes>, key: usize) -> bool {
        let end = previous.map_or(0, |&(_, value)| self.tree.span(value).end);
        let between = self.tree.text().get(end..key).unwrap_or_default();
        let before = between.trim_end().strip_suffix('?');
        before.is_some_and(|before| {
            let line = &before[line_start(before, before.len())..];
            line.bytes().all(|byte| matches!(byte, b' ' | b'-'))
        })
    }

    /// The offset of the line behind a field.
    fn end_of(&self, key: NodeId, value: NodeId) -> usize {
        let end = self.tree.span(value).end.max(self.tree.span(key).end);
        line_behind(self.tree.text(), end)
    }

    /// Replaces a value on lines of its own that has comments or blank lines between it and its key. A new value of
    /// several lines takes the place of the old lines; one of a single line goes before what stands between. `false` for
    /// other values.
    pub(super) fn write_before_lines(&mut self, (key, value): KeyValueNodes, new: &str) -> bool {
        let text = self.tree.text();
        let (key_end, span) = (self.tree.span(key).end, self.tree.span(value));
        let start = line_start(text, span.start);
        if start <= key_end || !text[start..span.start].bytes().all(|byte| byte == b' ') {
            return false;
        }
        let Some(head) = self
            .behind_properties(key, value)
            .filter(|&head| has_lines(&text[head..start]))
        else {
            return false;
        };
        let end = self.end_of(key, value);
        match new.trim_start_matches('\r').strip_prefix('\n') {
            Some(lines) => {
                let eol = match text[..end].ends_with('\n') {
                    true => line_end_at(text, start),
                    false => "",
                };
                let (at, text) = (start..end, [lines, eol].concat().into());
                self.edits.push(Edit { at, text });
            }
            None if new.contains('\n') => return false,
            None => {
                self.edits.push(Edit::insertion(head, new));
                self.remove(start..end);
            }
        }
        true
    }

    /// The offset behind the `:` of a field, or behind the anchor and tag of its value on the same line. `None` if
    /// there is more than comments between that and the value.
    pub(super) fn behind_properties(&self, key: NodeId, value: NodeId) -> Option<usize> {
        let text = self.tree.text();
        let key_end = self.tree.span(key).end;
        let colon =
            key_end + text[key_end..].len() - text[key_end..].trim_start_matches([' ', '\t']).len();
        let head = text[colon..].starts_with(':').then_some(colon + 1)?;
        let (first, start) = (
            self.tree.start_with_properties(value),
            self.tree.span(value).start,
        );
        let end = match first == start {
            true => head,
            false => {
                let line = text[first..start].split(['\r', '\n']).next()?;
                let comment = line
                    .find(" #")
                    .or_else(|| line.find("\t#"))
                    .unwrap_or(line.len());
                first + line[..comment].trim_end().len()
            }
        };
        let is_comment =
            |line: &str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
        text[end..start.max(end)]
            .lines()
            .all(is_comment)
            .then_some(end)
    }
}

/// Whether there are comments or blank lines between a key and the line of its value.
fn has_lines(between: &str) -> bool {
    between.contains('#') || between.matches('\n').nth(1).is_some()
}

/// The error for a field that is written in another way, such as behind a `?`.
pub(super) fn not_key_and_value(key: NodeId) -> LoweringError {
    LoweringError {
        node: key,
        reason: "is not written as `key: value`",
    }
}
