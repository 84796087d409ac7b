//! The diff as SARIF: one note for each hunk, with the change as its fix, for code scanning to show in the pull
//! request.

use super::hunks::{Hunk, HunkLine, LineSign, line_counts};
use super::review::{GroupBy, ReviewedWorkload, reviewed};
use super::sarif::{SarifLocation, SarifLog, SarifReplacement, SarifResult, SarifRule};
use crate::change::list;
use crate::diagnostic::Severity;
use crate::outcome::ReportedFile;

/// Renders the whole log.
pub fn render(files: &[ReportedFile<'_>]) -> String {
    let reviews = reviewed(files, GroupBy::Nothing);
    let mut log = SarifLog::default();
    let mut hunks: Vec<HunkOf<'_, '_>> = Vec::new();
    for review in &reviews {
        hunks.extend(review.hunks.iter().map(|hunk| (review, hunk)));
    }
    for (index, &(review, hunk)) in hunks.iter().enumerate() {
        let policies = hunk.policies.join(", ");
        let mut result = result(review, hunk, &policies);
        // One fix would undo the other.
        let neighbours = [index.checked_sub(1), Some(index + 1)]
            .into_iter()
            .flatten();
        let mut neighbours = neighbours.filter_map(|index| hunks.get(index));
        if neighbours.any(|neighbour| have_common_line((review, hunk), *neighbour)) {
            result.replacements.clear();
        }
        log.push(rule(&policies), result);
    }
    log.render()
}

/// A hunk, and the workload that it is of.
type HunkOf<'r, 'a> = (&'r ReviewedWorkload<'a>, &'r Hunk<'a>);

/// Whether two hunks change the same line, as those of workloads on one line do.
fn have_common_line(one: HunkOf<'_, '_>, other: HunkOf<'_, '_>) -> bool {
    let pair = removed_lines(one.1).zip(removed_lines(other.1));
    let is_common = pair.is_some_and(|((first, last), (other_first, other_last))| {
        first <= other_last && other_first <= last
    });
    is_common && one.0.file == other.0.file
}

/// The first and the last removed line.
fn removed_lines(hunk: &Hunk<'_>) -> Option<(usize, usize)> {
    let removed = hunk
        .changed_lines()
        .filter(|(sign, _)| *sign == LineSign::Removed);
    let mut numbers = removed.map(|(_, number)| number);
    let first = numbers.next()?;
    Some((first, numbers.last().unwrap_or(first)))
}

fn rule(policies: &str) -> SarifRule {
    SarifRule {
        id: policies.to_owned(),
        short: format!("Changed by {policies}."),
        full: format!("These lines are changed by {policies}."),
        markdown: None,
    }
}

fn result(review: &ReviewedWorkload<'_>, hunk: &Hunk<'_>, policies: &str) -> SarifResult {
    let (insertions, deletions) = line_counts(std::slice::from_ref(hunk));
    let by_policy = review
        .changes_by_policy()
        .filter(|(policy, _)| hunk.policies.contains(policy));
    let descriptions: Vec<String> = by_policy.map(|(_, changes)| list(changes)).collect();
    let changed = hunk
        .lines
        .iter()
        .position(|line| line.sign != LineSign::Context)
        .unwrap_or(0);
    // An insertion at the end of the file has no line of its own, so it is shown at the last line.
    let line = if review.is_in_file {
        (hunk.old.start + changed + 1).min(hunk.old.end.max(1))
    } else {
        review.workload.line
    };
    let title = review.workload.title();
    SarifResult {
        level: Severity::Note,
        message: format!(
            "{policies} changes {title} here (+{insertions} -{deletions} lines). In all: {}.",
            descriptions.join(", ")
        ),
        help: String::new(),
        location: Some(SarifLocation {
            file: String::from_utf8_lossy(review.path).into_owned(),
            line,
            column: None,
        }),
        related: Vec::new(),
        workload: Some(title),
        replacements: if review.is_in_file {
            replacements(hunk)
        } else {
            Vec::new()
        },
    }
}

/// The hunk's changes as a fix; empty if an added secret is masked, because the text is then not the one that `apply`
/// writes.
fn replacements(hunk: &Hunk<'_>) -> Vec<SarifReplacement> {
    let is_unknown = |line: &HunkLine<'_>| line.is_masked && line.sign == LineSign::Added;
    if hunk.lines.iter().any(is_unknown) {
        return Vec::new();
    }
    let mut replacements = Vec::new();
    let mut at = hunk.old.start;
    let is_context = |line: &HunkLine<'_>| line.sign == LineSign::Context;
    for lines in hunk
        .lines
        .chunk_by(|line, next| is_context(line) == is_context(next))
    {
        let added = lines.iter().filter(|line| line.sign == LineSign::Added);
        let old_lines = lines.len() - added.clone().count();
        if !is_context(&lines[0]) {
            replacements.push(SarifReplacement {
                line: at + 1,
                lines: old_lines,
                text: added
                    .flat_map(|line| [line.text.as_str(), line.line_end])
                    .collect(),
            });
        }
        at += old_lines;
    }
    replacements
}
