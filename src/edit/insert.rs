//! Inserts lines into block style: behind a node or before it.

use std::sync::Arc;

use crate::yaml::splice::Edit;
use crate::yaml::tree::NodeId;

use super::layout::{
    behind_attached_comments, behind_blanks, comments_above, line_end_at, line_start, next_line,
};
use super::lower::{Lowering, LoweringError};
use super::text_cache::{InsertedLines, InsertionSite, LineFrame};

impl Lowering<'_, '_> {
    fn text(
        &mut self,
        lines: InsertedLines<'_>,
        column: usize,
        frame: LineFrame,
        line_end: &'static str,
    ) -> Arc<str> {
        self.written.text(
            lines,
            InsertionSite {
                column,
                style: self.layout.block,
                frame,
                line_end,
            },
        )
    }

    /// Inserts lines behind the line on which a node ends, and behind the comments that belong to it.
    pub(super) fn insert_behind(
        &mut self,
        previous: NodeId,
        column: usize,
        lines: InsertedLines<'_>,
    ) {
        let text = self.tree.text();
        let end = self.tree.span(previous).end;
        let ends_in_line_end =
            end > 0 && text.as_bytes()[end - 1] == b'\n' && !self.tree.span(previous).is_empty();
        // Blanks without a line end are the last kept line of a `|+` block.
        let is_last_line_of_blanks = text[end..].bytes().all(|byte| byte == b' ');
        let at = if ends_in_line_end && !is_last_line_of_blanks {
            end
        } else if has_only_kept_blanks(text, end) {
            text.len()
        } else {
            next_line(text, end)
        };
        let at = behind_attached_comments(text, at, column);
        let at = lines
            .last()
            .map_or(at, |value| behind_blanks(text, at, column, value));
        let eol = line_end_at(text, end.saturating_sub(usize::from(ends_in_line_end)));
        let (frame, eol) = match at == text.len() && !text.ends_with('\n') {
            true if self.is_tail_removed() => (LineFrame::Behind, ""),
            true => (LineFrame::Behind, eol),
            false => (LineFrame::Whole, eol),
        };
        let text = self.text(lines, column, frame, eol);
        self.edits.push(Edit::insertion(at, text));
    }

    /// Whether the last lines of the text are removed and nothing is inserted behind them yet. New text then begins a
    /// line and needs no line end before it.
    fn is_tail_removed(&self) -> bool {
        let end = self.tree.text().len();
        let is_removal =
            |edit: &Edit| edit.at.end == end && !edit.at.is_empty() && edit.text.is_empty();
        self.edits.iter().any(is_removal) && !self.edits.iter().any(|edit| edit.at.start == end)
    }

    /// Inserts lines before what begins at `at`, which may share its line with dashes.
    pub(super) fn insert_before(
        &mut self,
        next: NodeId,
        at: usize,
        column: usize,
        lines: InsertedLines<'_>,
    ) -> Result<(), LoweringError> {
        let text = self.tree.text();
        let before = text[line_start(text, at)..at].trim_start_matches('\u{feff}');
        if !before.bytes().all(|byte| matches!(byte, b' ' | b'-')) {
            return Err(LoweringError {
                node: next,
                reason: "does not begin its line",
            });
        }
        let eol = line_end_at(text, at);
        let above = comments_above(text, at);
        let (at, frame) = if above < line_start(text, at) {
            (above, LineFrame::Whole)
        } else {
            (at, LineFrame::Before)
        };
        let text = self.text(lines, column, frame, eol);
        self.edits.push(Edit::insertion(at, text));
        Ok(())
    }
}

/// Whether the text up to `end` may end with the header of a `|+` block, and its only line are the blanks at the end of
/// the text.
fn has_only_kept_blanks(text: &str, end: usize) -> bool {
    let header = text[..end].trim_end_matches(|char: char| char.is_ascii_digit());
    let rest = text[end..].split_once('\n');
    rest.is_some_and(|(comment, blanks)| {
        let has_blanks = !blanks.is_empty() && blanks.bytes().all(|byte| byte == b' ');
        header.ends_with('+') && has_blanks && !comment.trim_start().starts_with(|char| char != '#')
    })
}
