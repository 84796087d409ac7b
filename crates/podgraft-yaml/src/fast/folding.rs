//! Plain and quoted scalars over several lines, which go-yaml (so kustomize and kubectl) writes for long values. A
//! single line end becomes a space; of several, each but the first becomes a line feed (YAML 1.2.2, 6.5).

use super::super::tree::{NodeKind, Tree};
use super::{Parser, characters};

/// The offset at which a scalar continues, and the number of line ends before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Continuation {
    pub at: usize,
    line_ends: usize,
}

impl Continuation {
    pub(super) fn fold_into(self, value: &mut String) {
        match self.line_ends {
            1 => value.push(' '),
            more => value.extend(std::iter::repeat_n('\n', more - 1)),
        }
    }

    pub(super) fn has_empty_lines(self) -> bool {
        self.line_ends > 1
    }
}

impl Parser<'_> {
    /// Finds the next text after a line feed. `None` if it is not deeper than `parent`.
    pub(super) fn find_continuation(
        &self,
        line_feed: usize,
        parent: usize,
    ) -> Option<Continuation> {
        let mut start = line_feed + 1;
        let mut line_ends = 1;
        loop {
            let at = characters::skip_indentation(self.bytes, start);
            match *self.bytes.get(at)? {
                b'\n' => start = at + 1,
                b'\r' => start = at + 2,
                b'\t' => return None,
                _ => return (at - start > parent).then_some(Continuation { at, line_ends }),
            }
            line_ends += 1;
        }
    }

    /// Finds where a plain value continues on a later line. `None` if it ends at `end`.
    #[inline]
    pub(super) fn find_plain_continuation(&self, end: usize) -> Option<Continuation> {
        let parent = self.open.last()?.column;
        let at = self.skip_spaces(end);
        let line_feed = if self.byte(at) == b'\r' { at + 1 } else { at };
        // Nearly always the next line is not deep enough, which one byte shows.
        if self.byte(line_feed) != b'\n' || self.byte(line_feed + 1 + parent) != b' ' {
            return None;
        }
        self.find_continuation(line_feed, parent)
            .filter(|next| self.bytes[next.at] != b'#')
    }

    /// Reads the other lines of a plain value. Gives up on a `: ` or ` #` on a later line, which is an error or left
    /// to the complete parser.
    pub(super) fn read_plain_lines(
        &mut self,
        at: usize,
        end: usize,
        next: Continuation,
    ) -> Option<()> {
        let mut value = self.tree.text[at..end].to_owned();
        let mut next = Some(next);
        let mut end = end;
        while let Some(line) = next {
            line.fold_into(&mut value);
            end = self.find_plain_line_end(line.at)?;
            value.push_str(&self.tree.text[line.at..end]);
            next = self.find_plain_continuation(end);
        }
        let extra = self.keep(value);
        self.push(NodeKind::Plain, at, end, extra);
        self.end_line(end)
    }

    fn find_plain_line_end(&self, at: usize) -> Option<usize> {
        let mut stop = at;
        loop {
            stop = characters::find_stop(self.bytes, stop);
            match self.byte(stop) {
                b':' if !matches!(self.byte(stop + 1), b' ' | b'\n' | b'\r') => stop += 1,
                b'#' if self.bytes[stop - 1] != b' ' => stop += 1,
                b'\n' | b'\r' => break,
                _ => return None,
            }
        }
        Some(stop - trailing_blanks(&self.bytes[at..stop]))
    }
}

/// The text of a line in a quoted scalar, without trailing blanks.
pub(super) fn without_trailing_blanks<'a>(tree: &Tree<'a>, from: usize, to: usize) -> &'a str {
    tree.text[from..to].trim_end_matches([' ', '\t', '\r'])
}

fn trailing_blanks(line: &[u8]) -> usize {
    line.iter()
        .rev()
        .take_while(|&&byte| matches!(byte, b' ' | b'\r'))
        .count()
}
