//! The diff as SARIF: one note for each hunk, with the change as its fix, for code scanning to show in the pull
//! request.

use super::hunks::{Hunk, LineSign};
use super::review::{GroupBy, ReviewedWorkload, reviewed};
use super::sarif::{SarifLevel, SarifLocation, SarifLog, SarifReplacement, SarifResult, SarifRule};
use crate::change::list;
use crate::outcome::ReportedFile;

/// Renders the whole log.
pub fn render(files: &[ReportedFile<'_>]) -> String {
    let reviews = reviewed(files, GroupBy::Nothing);
    let mut log = SarifLog::default();
    for review in &reviews {
        for hunk in &review.hunks {
            let policies = hunk.policies.join(", ");
            log.push(rule(&policies), result(review, hunk, &policies));
        }
    }
    log.render()
}

fn rule(policies: &str) -> SarifRule {
    SarifRule {
        id: policies.to_owned(),
        short: format!("Changed by {policies}."),
        full: format!("What policies say changes these lines: {policies}."),
        markdown: None,
    }
}

fn result(review: &ReviewedWorkload<'_>, hunk: &Hunk<'_>, policies: &str) -> SarifResult {
    let insertions = hunk
        .lines
        .iter()
        .filter(|line| line.sign == LineSign::Added)
        .count();
    let deletions = hunk
        .lines
        .iter()
        .filter(|line| line.sign == LineSign::Removed)
        .count();
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
        level: SarifLevel::Note,
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
    if hunk
        .lines
        .iter()
        .any(|line| line.is_masked && line.sign == LineSign::Added)
    {
        return Vec::new();
    }
    let mut replacements: Vec<SarifReplacement> = Vec::new();
    let mut at = hunk.old.start;
    let mut is_open = false;
    for line in &hunk.lines {
        if line.sign == LineSign::Context {
            at += 1;
            is_open = false;
            continue;
        }
        if !is_open {
            replacements.push(SarifReplacement {
                line: at + 1,
                lines: 0,
                text: String::new(),
            });
            is_open = true;
        }
        let Some(open) = replacements.last_mut() else {
            continue;
        };
        if line.sign == LineSign::Removed {
            open.lines += 1;
            at += 1;
        } else {
            open.text.push_str(&line.text);
            open.text.push('\n');
        }
    }
    replacements
}
