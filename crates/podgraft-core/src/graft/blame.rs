//! Determines which policy wrote which bytes of a workload's edits. The text is lowered after each policy, and each
//! line is followed from one text to the next, as `git blame` does.

use std::ops::Range;

use similar::{Algorithm, DiffOp};

use crate::edit::{TextCache, lower};
use crate::manifest::pod::Workload;
use crate::outcome::Author;
use crate::plan::draft::Draft;
use crate::yaml::splice::{Edit, splice_part};

/// The policies that wrote the lines of a planned workload.
pub(super) struct PlanBlame {
    blame: Blame,
    /// Where the first text begins in the input. `None` if it is not of the input, but of the workload without what an
    /// earlier run injected.
    start: Option<usize>,
}

impl PlanBlame {
    /// Follows the lines from policy to policy: `steps` has the draft of the workload after each of them, with the index of
    /// the policy. `None` if there are less than two, or if a text cannot be determined.
    pub(super) fn of(
        workload: &Workload<'_>,
        steps: &[(usize, Draft<'_>)],
        is_input: bool,
    ) -> Option<Self> {
        if steps.len() < 2 {
            return None;
        }
        let text = workload.source.text;
        let lower = |draft| lower(draft, workload.object.node, &mut TextCache::default()).ok();
        let edits: Option<Vec<Vec<Edit>>> = steps.iter().map(|(_, draft)| lower(draft)).collect();
        let edits = edits?;
        let part = part_of(workload, edits.iter().flatten());
        let mut blame = Blame::new(&text[part.clone()]);
        for ((policy, _), edits) in steps.iter().zip(&edits) {
            blame.advance(&spliced(text, &part, edits)?, &[*policy]);
        }
        let start = is_input.then_some(part.start);
        Some(PlanBlame { blame, start })
    }

    /// Returns the authors of each edit of the workload's text. What the edits change beyond the plan may be of each of
    /// `policies`. `None` if the authors cannot be determined.
    pub(super) fn authors(
        &self,
        workload: &Workload<'_>,
        edits: &[Edit],
        policies: &[usize],
    ) -> Option<Vec<Vec<Author>>> {
        let text = workload.source.text;
        let part = part_of(workload, edits.iter());
        let mut blame = self.blame.clone();
        blame.advance(&spliced(text, &part, edits)?, policies);
        let (mut moved, mut authors) = (0, Vec::with_capacity(edits.len()));
        for edit in edits {
            let at = (edit.at.start - part.start).saturating_add_signed(moved);
            moved += edit.text.len() as isize - edit.at.len() as isize;
            let removers = match self.start {
                Some(start) => blame.removers_of(&text[start..], &edit.at, start),
                // A line without another one in its place.
                None if lines_in(&text[edit.at.clone()]) > lines_in(&edit.text) => {
                    Some(policies.to_vec())
                }
                None => None,
            };
            let remover = removers.map(|policies| Author {
                bytes: 0..0,
                policies,
            });
            let writers = blame.authors_of(at, &edit.text);
            authors.push(remover.into_iter().chain(writers).collect());
        }
        Some(authors)
    }
}

/// The lines of a workload, and those of its edits.
fn part_of<'e>(workload: &Workload<'_>, edits: impl Iterator<Item = &'e Edit>) -> Range<usize> {
    let text = workload.source.text;
    let mut part = workload.tree.span(workload.object.node);
    for edit in edits {
        part = part.start.min(edit.at.start)..part.end.max(edit.at.end);
    }
    let start = text[..part.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[part.end..].find('\n');
    start..end.map_or(text.len(), |at| part.end + at + 1)
}

/// Returns a part of the text with the edits applied.
fn spliced(text: &str, part: &Range<usize>, edits: &[Edit]) -> Option<String> {
    String::from_utf8(splice_part(text.as_bytes(), part, edits)).ok()
}

fn lines_in(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
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

#[derive(Clone)]
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
            // With as many lines as before, each new line is the old one at its position, changed once more. Otherwise any
            // of the new lines may have something of the old ones.
            let is_paired = before.len() == after.len();
            let of_all = self.lines[before.clone()]
                .iter()
                .flat_map(|old| &old.policies);
            let of_all: Vec<usize> = of_all.copied().collect();
            for (index, text) in new[after].iter().enumerate() {
                let earlier = match is_paired {
                    true => &self.lines[before.start + index].policies,
                    false => &of_all,
                };
                lines.push(BlameLine {
                    text: (*text).to_owned(),
                    origin: None,
                    policies: [&earlier[..], policies].concat(),
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

    /// Returns the policies that removed or changed a range of the first text, which begins at offset `start`. `None` for an
    /// empty range.
    fn removers_of(&self, first: &str, range: &Range<usize>, start: usize) -> Option<Vec<usize>> {
        if range.is_empty() || range.start < start {
            return None;
        }
        // Bytes, because the last one may be inside of a character.
        let bytes = first.as_bytes();
        let line_of = |at: usize| memchr::memchr_iter(b'\n', &bytes[..at - start]).count();
        let lines = line_of(range.start)..=line_of(range.end - 1);
        let mut policies: Vec<usize> = lines
            .filter_map(|line| self.removed_by.get(line))
            .flatten()
            .copied()
            .collect();
        policies.sort_unstable();
        policies.dedup();
        Some(policies)
    }
}
