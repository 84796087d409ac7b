//! Determines which policy wrote which bytes of a workload's edits. The text is lowered after each policy, and each
//! line is followed from one text to the next, as `git blame` does.

use std::ops::Range;

use similar::{Algorithm, DiffOp};

use crate::edit::{TextCache, lower};
use crate::outcome::Author;
use crate::plan::draft::Draft;
use crate::yaml::splice::{Edit, splice_part};
use crate::yaml::tree::NodeId;

/// The draft of a workload after one policy, with the index of that policy.
pub(super) type PolicyStep<'t> = (usize, Draft<'t>);

/// Returns the authors of each edit. `None` if at most one policy changed the workload, or if the authors cannot be
/// determined.
pub(super) fn authors(
    text: &str,
    object: NodeId,
    steps: &[PolicyStep<'_>],
    edits: &[Edit],
) -> Option<Vec<Vec<Author>>> {
    let (first, last) = (edits.first()?, edits.last()?);
    if steps.len() < 2 {
        return None;
    }
    let start = text[..first.at.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[last.at.end..]
        .find('\n')
        .map_or(text.len(), |at| last.at.end + at + 1);
    let mut blame = Blame::new(&text[start..end]);
    for (policy, draft) in steps {
        let step_edits = lower(draft, object, &mut TextCache::default()).ok()?;
        let new = spliced_within(text, start..end, &step_edits)?;
        blame.advance(&new, &[*policy]);
    }
    // What the final edits change beyond the last step cannot be attributed to one policy.
    let all_policies: Vec<usize> = steps.iter().map(|(policy, _)| *policy).collect();
    let new = spliced_within(text, start..end, edits)?;
    blame.advance(&new, &all_policies);
    let (mut moved, mut authors) = (0, Vec::with_capacity(edits.len()));
    for edit in edits {
        let old = edit.at.start - start..edit.at.end - start;
        let at = old.start.saturating_add_signed(moved);
        moved += edit.text.len() as isize - old.len() as isize;
        let remover = blame.remover_of(&text[start..end], &old).into_iter();
        authors.push(remover.chain(blame.authors_of(at, &edit.text)).collect());
    }
    Some(authors)
}

/// Returns a part of the text with the edits applied. `None` if an edit is outside of the part.
fn spliced_within(text: &str, part: Range<usize>, edits: &[Edit]) -> Option<String> {
    let is_inside = |edit: &Edit| part.start <= edit.at.start && edit.at.end <= part.end;
    if !edits.iter().all(is_inside) {
        return None;
    }
    String::from_utf8(splice_part(text.as_bytes(), &part, edits)).ok()
}

/// A line without its line end, which the last one of a file may lack until something follows.
fn body(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

/// A line of the current text, with its origin and the policies that wrote it.
#[derive(Clone)]
struct BlameLine {
    text: String,
    /// Its line in the first text, if it is unchanged since.
    origin: Option<usize>,
    /// The policies that wrote it or a part of it.
    policies: Vec<usize>,
}

impl BlameLine {
    /// The same line in the next text. There it may have a line end that the file lacks.
    fn with_end_of(&self, text: &str, policies: &[usize]) -> Self {
        let is_ended = self.origin.is_some() && self.text != text;
        let ended_by = if is_ended { policies } else { &[] };
        BlameLine {
            text: text.to_owned(),
            origin: self.origin,
            policies: [&self.policies, ended_by].concat(),
        }
    }
}

struct Blame {
    lines: Vec<BlameLine>,
    /// For each line of the first text, the policies that removed or changed it.
    removed_by: Vec<Vec<usize>>,
}

impl Blame {
    fn new(text: &str) -> Self {
        let lines = text.split_inclusive('\n').enumerate();
        let lines = lines.map(|(index, text)| BlameLine {
            text: text.to_owned(),
            origin: Some(index),
            policies: Vec::new(),
        });
        let lines: Vec<BlameLine> = lines.collect();
        let removed_by = vec![Vec::new(); lines.len()];
        Blame { lines, removed_by }
    }

    /// Moves on to the next text, which these policies wrote.
    fn advance(&mut self, new: &str, policies: &[usize]) {
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let old_bodies: Vec<&str> = self.lines.iter().map(|line| body(&line.text)).collect();
        let bodies: Vec<&str> = new.iter().map(|line| body(line)).collect();
        let ops = similar::capture_diff_slices(Algorithm::Myers, &old_bodies, &bodies);
        let mut lines: Vec<BlameLine> = Vec::with_capacity(new.len());
        for op in ops {
            let (before, after) = (op.old_range(), op.new_range());
            if matches!(op, DiffOp::Equal { .. }) {
                let pairs = self.lines[before].iter().zip(&new[after]);
                lines.extend(pairs.map(|(line, text)| line.with_end_of(text, policies)));
                continue;
            }
            for origin in self.lines[before.clone()]
                .iter()
                .filter_map(|line| line.origin)
            {
                self.removed_by[origin].extend(policies);
            }
            // With as many lines as before, each new line is the old one at its position, changed once more.
            let is_paired = before.len() == after.len();
            for (index, text) in new[after].iter().enumerate() {
                let old = self.lines.get(before.start + index).filter(|_| is_paired);
                let earlier = old.map_or(&[][..], |old| &old.policies);
                lines.push(BlameLine {
                    text: (*text).to_owned(),
                    origin: None,
                    policies: [earlier, policies].concat(),
                });
            }
        }
        self.lines = lines;
    }

    /// Returns the authors of each line of `piece`, which is at offset `at` in the last text.
    fn authors_of(&self, at: usize, piece: &str) -> Vec<Author> {
        let mut start = 0;
        let ends = self.lines.iter().map(|line| {
            start += line.text.len();
            start
        });
        let ends: Vec<usize> = ends.collect();
        let (mut from, mut authors) = (0, Vec::new());
        for text in piece.split_inclusive('\n') {
            let line = ends.partition_point(|&end| end <= at + from);
            let line = self.lines.get(line);
            let bytes = from..from + text.len();
            from = bytes.end;
            authors.push(Author {
                bytes,
                policies: line.map_or_else(Vec::new, |line| line.policies.clone()),
            });
        }
        authors
    }

    /// Returns the policies that removed or changed a range of the first text. `None` for an empty range.
    fn remover_of(&self, first: &str, range: &Range<usize>) -> Option<Author> {
        if range.is_empty() {
            return None;
        }
        // Bytes, because the last one may be inside of a character.
        let line_of = |at: usize| memchr::memchr_iter(b'\n', &first.as_bytes()[..at]).count();
        let lines = line_of(range.start)..=line_of(range.end - 1);
        let mut policies: Vec<usize> = lines
            .filter_map(|line| self.removed_by.get(line))
            .flatten()
            .copied()
            .collect();
        policies.sort_unstable();
        policies.dedup();
        Some(Author {
            bytes: 0..0,
            policies,
        })
    }
}
