//! The changes of a workload as hunks for people to review: numbered lines, each with the policies that wrote it, and
//! secrets masked. The unified diff has its own hunks, because it is a patch.

use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;

use super::lines::{AddedLine, ChangeGroup, GroupLine, LineChange, LineIndex, changes_of, group};
use crate::mask::{MASK, hide, secrets_in};
use crate::outcome::{ReportedFile, WorkloadReport};
use crate::yaml::splice::splice_part;

// Whether a line is context, added or removed. No doc comment: the schema of the diff would have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Sign"))]
#[serde(rename_all = "camelCase")]
pub(super) enum LineSign {
    Context,
    Added,
    Removed,
}

impl LineSign {
    pub(super) fn char(self) -> char {
        match self {
            LineSign::Context => ' ',
            LineSign::Removed => '-',
            LineSign::Added => '+',
        }
    }
}

/// A line of a hunk.
#[derive(Debug)]
pub(super) struct HunkLine<'a> {
    pub(super) sign: LineSign,
    /// The text without its line end, with secrets masked.
    pub(super) text: String,
    /// The line end; empty at the end of a file that lacks one.
    pub(super) line_end: &'static str,
    /// The policies that wrote an added line, where these are not all of the hunk's.
    pub(super) policies: Option<Vec<&'a str>>,
    /// Whether a secret in it is masked.
    pub(super) is_masked: bool,
}

/// Adjacent changes with the context lines around them.
#[derive(Debug)]
pub(super) struct Hunk<'a> {
    /// 0-based lines of the file before the edits.
    pub(super) old: Range<usize>,
    /// 0-based lines of the file after all its edits.
    pub(super) new: Range<usize>,
    /// The policies that made its changes.
    pub(super) policies: Vec<&'a str>,
    pub(super) lines: Vec<HunkLine<'a>>,
}

impl Hunk<'_> {
    /// The removed lines by their numbers in the file before, and the added ones by those in the file after the edits.
    pub(super) fn changed_lines(&self) -> impl Iterator<Item = (LineSign, usize)> {
        let (mut old, mut new) = (self.old.clone(), self.new.clone());
        self.lines.iter().filter_map(move |line| {
            let number = match line.sign {
                LineSign::Added => new.next(),
                LineSign::Removed => old.next(),
                LineSign::Context => {
                    old.next();
                    new.next();
                    None
                }
            };
            Some((line.sign, number?))
        })
    }
}

/// The number of added and of removed lines.
pub(super) fn line_counts(hunks: &[Hunk<'_>]) -> (usize, usize) {
    let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
    let of = |sign| lines.clone().filter(|line| line.sign == sign).count();
    (of(LineSign::Added), of(LineSign::Removed))
}

/// A file with what the hunks of its workloads need.
pub(super) struct ReviewedFile<'a> {
    pub(super) file: &'a ReportedFile<'a>,
    lines: LineIndex<'a>,
    /// For each edit, by how many lines the edits before it move the text; one entry more than edits.
    line_offsets: Vec<isize>,
}

impl<'a> ReviewedFile<'a> {
    pub(super) fn new(file: &'a ReportedFile<'a>) -> Self {
        let breaks = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count() as isize;
        let mut moved = vec![0];
        for edit in &file.report.edits {
            let before = moved.last().copied().unwrap_or(0);
            moved.push(before + breaks(edit.text.as_bytes()) - breaks(&file.text[edit.at.clone()]));
        }
        ReviewedFile {
            file,
            lines: LineIndex::of(file.text),
            line_offsets: moved,
        }
    }

    /// The hunks of one workload. The line numbers are those of the whole file.
    pub(super) fn hunks(&self, workload: &'a WorkloadReport) -> Vec<Hunk<'a>> {
        let edits = self
            .file
            .report
            .edits
            .get(workload.edits.clone())
            .unwrap_or_default();
        let (Some(first), Some(last)) = (edits.first(), edits.last()) else {
            return Vec::new();
        };
        let changes = changes_of(edits, &self.lines);
        let extent = self.lines.lines_touched(&workload.extent);
        let range = workload.extent.start.min(first.at.start)..workload.extent.end.max(last.at.end);
        let start = self.lines.start(self.lines.line_at(range.start));
        let end = self
            .lines
            .start(self.lines.line_at(range.end.saturating_sub(1)) + 1)
            .max(range.end);
        let old_text = &self.file.text[start..end];
        let new_text = splice_part(self.file.text, &(start..end), edits);
        // Secrets are searched in the whole object, because a single line may lack the name that marks its value as a
        // secret.
        let secrets = SecretRanges {
            start,
            old: secrets_in(old_text),
            new: secrets_in(&new_text),
        };
        let around = |change: &LineChange| {
            extent.start.min(change.old.start)..extent.end.max(change.old.end)
        };
        let groups = group(&changes, around, |_, _| true).into_iter();
        groups
            .map(|hunk| self.hunk(hunk, workload, &secrets))
            .collect()
    }

    fn hunk(
        &self,
        hunk: ChangeGroup<'_>,
        workload: &'a WorkloadReport,
        secrets: &SecretRanges,
    ) -> Hunk<'a> {
        let policies = policies_of(hunk.changes.iter(), workload, 0);
        let lines = hunk.lines().map(|line| match line {
            GroupLine::Context(line) => self.old_line(line, LineSign::Context, secrets),
            GroupLine::Removed(line) => self.old_line(line, LineSign::Removed, secrets),
            GroupLine::Added(line) => HunkLine {
                policies: Some(writers(line, workload)).filter(|writers| *writers != policies),
                ..secrets.masked(&line.text, line.at, LineSign::Added)
            },
        });
        let lines: Vec<HunkLine<'a>> = lines.collect();
        let first = hunk.changes.first().map_or(0, |change| change.edits.start);
        let moved = self.line_offsets[first + workload.edits.start];
        let new_start = hunk.old.start.saturating_add_signed(moved);
        let new = lines.iter().filter(|line| line.sign != LineSign::Removed);
        Hunk {
            new: new_start..new_start + new.count(),
            old: hunk.old,
            policies,
            lines,
        }
    }

    fn old_line(&self, line: usize, sign: LineSign, secrets: &SecretRanges) -> HunkLine<'a> {
        secrets.masked(self.lines.get(line), self.lines.start(line), sign)
    }
}

/// The byte ranges of secrets in the lines of a workload, relative to `start`, before and after the edits.
struct SecretRanges {
    /// The byte offset in the file at which these lines begin.
    start: usize,
    old: Vec<Range<usize>>,
    new: Vec<Range<usize>>,
}

impl SecretRanges {
    /// The line at this byte offset of the text before or, if it is added, after the edits.
    fn masked<'a>(&self, line: &[u8], at: usize, sign: LineSign) -> HunkLine<'a> {
        let secrets = match sign {
            LineSign::Context | LineSign::Removed => &self.old,
            LineSign::Added => &self.new,
        };
        let mut line_ends = ["\r\n", "\n", "\r"].into_iter();
        let line_end = line_ends.find(|end| line.ends_with(end.as_bytes()));
        let line_end = line_end.unwrap_or_default();
        let body = &line[..line.len() - line_end.len()];
        let text = hide(body, at.saturating_sub(self.start), secrets);
        HunkLine {
            sign,
            is_masked: text.contains(MASK),
            text,
            line_end,
            policies: None,
        }
    }
}

/// The policies that wrote an added line; all policies that changed the workload if that is not known.
fn writers<'a>(line: &AddedLine, workload: &'a WorkloadReport) -> Vec<&'a str> {
    let pieces = line.written_by.iter();
    let authors = pieces.flat_map(|(edit, bytes)| authors_of(workload, *edit, bytes));
    names(workload, authors)
}

/// The policies that wrote some bytes of an edit's text, as indices into the policies of the workload.
fn authors_of<'a>(
    workload: &'a WorkloadReport,
    edit: usize,
    bytes: &Range<usize>,
) -> impl Iterator<Item = usize> + use<'a> {
    let bytes = bytes.clone();
    let authors = workload
        .authors
        .get(edit)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let touches = move |piece: &Range<usize>| {
        piece.start < bytes.end && bytes.start < piece.end || piece.is_empty() && bytes.is_empty()
    };
    authors
        .iter()
        .filter(move |author| touches(&author.bytes))
        .flat_map(|author| author.policies.iter().copied())
}

/// The names of policies by index, without duplicates, in the order in which they apply. Only of those that changed the
/// workload, and of all these if there are none.
fn names(workload: &WorkloadReport, policies: impl Iterator<Item = usize>) -> Vec<&str> {
    let places: BTreeSet<usize> = policies.collect();
    let policies = workload.policies.iter().enumerate();
    let changing = policies.filter(|(_, policy)| policy.changes().is_some());
    let found = changing.clone().filter(|(place, _)| places.contains(place));
    let names: Vec<&str> = found.map(|(_, policy)| &*policy.policy).collect();
    if !names.is_empty() {
        return names;
    }
    changing.map(|(_, policy)| &*policy.policy).collect()
}

/// The policies that made some changes of a workload; all policies that changed it if that is not known. `first` is the
/// index that the workload's first edit has in `changes`.
pub(super) fn policies_of<'a, 'c>(
    changes: impl Iterator<Item = &'c LineChange> + Clone,
    workload: &'a WorkloadReport,
    first: usize,
) -> Vec<&'a str> {
    let edits = first..first + workload.edits.len();
    let written = changes
        .clone()
        .flat_map(|change| &change.new)
        .flat_map(|line| line.written_by(&edits))
        .map(|(edit, bytes)| (*edit, bytes.clone()));
    // An edit that only removes has no text, so its authors are found by an empty range.
    let removed = changes
        .flat_map(|change| change.edits.start.max(edits.start)..change.edits.end.min(edits.end))
        .map(|edit| (edit, 0..0));
    let found = written
        .chain(removed)
        .flat_map(|(edit, bytes)| authors_of(workload, edit - first, &bytes));
    names(workload, found)
}
