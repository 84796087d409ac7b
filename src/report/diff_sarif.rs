//! The diff as SARIF: a note a hunk, with the change as its fix, for code scanning to show in the pull request.

use super::hunks::{Hunk, Sign};
use super::reviewed::{GroupBy, Reviewed, reviewed};
use super::sarif::{Level, Location, Log, Replacement, Result, Rule};
use crate::change::list;
use crate::outcome::ReportedFile;

/// The whole log.
pub fn render(files: &[ReportedFile<'_>]) -> String {
    let all = reviewed(files, GroupBy::Nothing);
    let mut log = Log::default();
    for one in &all {
        for hunk in &one.hunks {
            let policies = hunk.policies.join(", ");
            log.push(rule(&policies), result(one, hunk, &policies));
        }
    }
    log.render()
}

fn rule(policies: &str) -> Rule {
    Rule {
        id: policies.to_owned(),
        short: format!("Changed by {policies}."),
        full: format!("What policies say changes these lines: {policies}."),
        markdown: None,
    }
}

fn result(one: &Reviewed<'_>, hunk: &Hunk<'_>, policies: &str) -> Result {
    let come = hunk
        .lines
        .iter()
        .filter(|line| line.sign == Sign::Added)
        .count();
    let go = hunk
        .lines
        .iter()
        .filter(|line| line.sign == Sign::Removed)
        .count();
    let own = one
        .changes_by_policy()
        .filter(|(policy, _)| hunk.policies.contains(policy));
    let deeds: Vec<String> = own.map(|(_, changes)| list(changes)).collect();
    let changed = hunk
        .lines
        .iter()
        .position(|line| line.sign != Sign::Context)
        .unwrap_or(0);
    // Behind the last line stands no line to point at.
    let line = if one.is_in_file {
        (hunk.old.start + changed + 1).min(hunk.old.end.max(1))
    } else {
        one.workload.line
    };
    let title = one.workload.title();
    Result {
        level: Level::Note,
        message: format!(
            "{policies} changes {title} here (+{come} -{go} lines). In all: {}.",
            deeds.join(", ")
        ),
        location: Some(Location {
            file: one.file.to_owned(),
            line,
            column: None,
        }),
        workload: Some(title),
        replacements: if one.is_in_file {
            replacements(hunk)
        } else {
            Vec::new()
        },
    }
}

/// The hunk's changes; none where a secret is masked, for then the text is not what comes.
fn replacements(hunk: &Hunk<'_>) -> Vec<Replacement> {
    if hunk
        .lines
        .iter()
        .any(|line| line.is_masked && line.sign == Sign::Added)
    {
        return Vec::new();
    }
    let mut replacements: Vec<Replacement> = Vec::new();
    let mut at = hunk.old.start;
    let mut is_open = false;
    for line in &hunk.lines {
        if line.sign == Sign::Context {
            at += 1;
            is_open = false;
            continue;
        }
        if !is_open {
            replacements.push(Replacement {
                line: at + 1,
                lines: 0,
                text: String::new(),
            });
            is_open = true;
        }
        let Some(open) = replacements.last_mut() else {
            continue;
        };
        if line.sign == Sign::Removed {
            open.lines += 1;
            at += 1;
        } else {
            open.text.push_str(&line.text);
            open.text.push('\n');
        }
    }
    replacements
}
