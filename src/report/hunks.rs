//! The changes of a workload as hunks for people to review: numbered lines, each with the policies that wrote it, and
//! secrets masked. The unified diff has its own hunks, because it is a patch.

use std::ops::Range;

use super::lines::{AddedLine, LineChange, LineIndex, changes_of};
use crate::mask::{MASK, hide, secrets_in};
use crate::outcome::{Outcome, ReportedFile, WorkloadReport};
use crate::yaml::splice::splice_part;

const CONTEXT: usize = 3;

/// Whether a line is context, removed or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineSign {
    Context,
    Removed,
    Added,
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
    /// The policies that wrote an added line; empty for other lines.
    pub(super) policies: Vec<&'a str>,
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
        let grouped = group(&changes, &extent);
        grouped
            .into_iter()
            .map(|(old, changes)| self.hunk(old, changes, workload, &secrets))
            .collect()
    }

    fn hunk(
        &self,
        old: Range<usize>,
        changes: &[LineChange],
        workload: &'a WorkloadReport,
        secrets: &SecretRanges,
    ) -> Hunk<'a> {
        let mut lines: Vec<HunkLine<'a>> = Vec::new();
        let old_line = |line: usize, sign: LineSign| self.old_line(line, sign, secrets);
        let mut at = old.start;
        for change in changes {
            lines.extend((at..change.old.start).map(|line| old_line(line, LineSign::Context)));
            lines.extend(
                change
                    .old
                    .clone()
                    .map(|line| old_line(line, LineSign::Removed)),
            );
            lines.extend(
                change
                    .new
                    .iter()
                    .map(|line| new_line(line, workload, secrets)),
            );
            at = change.old.end;
        }
        lines.extend((at..old.end).map(|line| old_line(line, LineSign::Context)));
        let first = changes.first().map_or(0, |change| change.edits.start) + workload.edits.start;
        let new_start = old.start.saturating_add_signed(self.line_offsets[first]);
        let new_len = lines
            .iter()
            .filter(|line| line.sign != LineSign::Removed)
            .count();
        let policies = policies_of(changes.iter(), workload, 0);
        Hunk {
            old,
            new: new_start..new_start + new_len,
            policies,
            lines,
        }
    }

    fn old_line(&self, line: usize, sign: LineSign, secrets: &SecretRanges) -> HunkLine<'a> {
        let at = self.lines.start(line).saturating_sub(secrets.start);
        masked_line(self.lines.get(line), at, &secrets.old, sign, Vec::new())
    }
}

/// The byte ranges of secrets in the lines of a workload, relative to `start`, before and after the edits.
struct SecretRanges {
    /// The byte offset in the file at which these lines begin.
    start: usize,
    old: Vec<Range<usize>>,
    new: Vec<Range<usize>>,
}

fn new_line<'a>(
    line: &AddedLine,
    workload: &'a WorkloadReport,
    secrets: &SecretRanges,
) -> HunkLine<'a> {
    let pieces = line
        .written_by
        .iter()
        .flat_map(|(edit, bytes)| authors_of(workload, *edit, bytes));
    let policies = names(workload, pieces);
    let policies = if policies.is_empty() {
        injected(workload)
    } else {
        policies
    };
    masked_line(
        &line.text,
        line.at.saturating_sub(secrets.start),
        &secrets.new,
        LineSign::Added,
        policies,
    )
}

fn masked_line<'a>(
    line: &[u8],
    at: usize,
    secrets: &[Range<usize>],
    sign: LineSign,
    policies: Vec<&'a str>,
) -> HunkLine<'a> {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    let body = body.strip_suffix(b"\r").unwrap_or(body);
    let text = hide(body, at, secrets);
    HunkLine {
        sign,
        is_masked: text.contains(MASK),
        text,
        policies,
    }
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

/// The names of policies by index, without duplicates, in the order in which they apply.
fn names(workload: &WorkloadReport, policies: impl Iterator<Item = usize>) -> Vec<&str> {
    let mut places: Vec<usize> = policies.collect();
    places.sort_unstable();
    places.dedup();
    places
        .into_iter()
        .filter_map(|place| workload.policies.get(place))
        .map(|policy_report| &*policy_report.policy)
        .collect()
}

/// The names of all policies that changed the workload.
pub(super) fn injected(workload: &WorkloadReport) -> Vec<&str> {
    let policy_reports = workload.policies.iter().filter(|policy_report| {
        matches!(
            policy_report.outcome,
            Outcome::Injected(_) | Outcome::TakenOut(_)
        )
    });
    policy_reports
        .map(|policy_report| &*policy_report.policy)
        .collect()
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
    let found = names(workload, found);
    if found.is_empty() {
        injected(workload)
    } else {
        found
    }
}

/// Groups changes that are close: returns the old lines of each hunk with its context, and its changes.
fn group<'c>(
    changes: &'c [LineChange],
    extent: &Range<usize>,
) -> Vec<(Range<usize>, &'c [LineChange])> {
    let mut groups: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let from = change
            .old
            .start
            .saturating_sub(CONTEXT)
            .max(extent.start)
            .min(change.old.start);
        let to = (change.old.end + CONTEXT)
            .min(extent.end)
            .max(change.old.end);
        match groups.last_mut() {
            Some((old, of)) if from <= old.end => {
                old.end = to;
                of.end = index + 1;
            }
            _ => groups.push((from..to, index..index + 1)),
        }
    }
    groups
        .into_iter()
        .map(|(old, of)| (old, &changes[of]))
        .collect()
}
