//! The diff as a comment on a pull request: a table, and a collapsed block for each workload. GitHub accepts 65,536
//! characters. Beyond that, diffs and then whole workloads are left out and counted.

use std::fmt::Write as _;

use super::grouping::{and_more, group_alike};
use super::hunks::Hunk;
use super::review::{GroupBy, ReviewedWorkload, groups, reviewed, total_lines};
use super::{statuses, without_record};
use crate::diagnostic::{Diagnostic, Severity};
use crate::outcome::{PolicyReport, ReportedFile, WorkloadReport, WorkloadStatus};
use crate::wording::{self, count, one_line};

/// The longest comment in bytes. GitHub counts characters, of which there are never more than bytes.
const MAX_COMMENT: usize = 65_536;
/// Bytes that are reserved for the notes about what is left out.
const NOTES: usize = 1_024;
/// The longest table in bytes.
const MAX_TABLE: usize = 20_000;
/// The most entries of the lists of warnings and near misses.
const MAX_MISSES: usize = 20;

/// Renders the whole comment, with a line end.
pub fn render(
    files: &[ReportedFile<'_>],
    group_by: GroupBy<'_>,
    problems: &[Diagnostic],
) -> String {
    let reviews = reviewed(files, group_by);
    let mut comment = head(files, &reviews);
    if reviews.is_empty() {
        return comment + &misses(files) + &warnings(problems);
    }
    comment.push_str(&table(&reviews, !matches!(group_by, GroupBy::Nothing)));
    comment.push_str(&misses(files));
    comment.push_str(&warnings(problems));
    let mut left_out = 0;
    for (name, members) in groups(&reviews) {
        let mut heading = match name {
            "" => String::new(),
            // As code: a plain `@team` would notify the team.
            name => format!("\n#### {}\n", code(name)),
        };
        for review in members {
            let room = MAX_COMMENT - NOTES - comment.len().min(MAX_COMMENT - NOTES);
            let block = [whole(review), brief(review)]
                .into_iter()
                .find(|block| heading.len() + block.len() <= room);
            match block {
                Some(block) => {
                    comment.push_str(&std::mem::take(&mut heading));
                    comment.push_str(&block);
                }
                None => left_out += 1,
            }
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            comment,
            "\n_{} omitted: a comment can have at most 65,536 characters. `podgraft diff -o html` \
             shows all._",
            count(left_out, "workload")
        );
    }
    comment
}

/// The warnings, for reviewers to read beside the changes.
fn warnings(problems: &[Diagnostic]) -> String {
    let of_warning = |problem: &&Diagnostic| problem.severity == Severity::Warning;
    let warnings: Vec<&Diagnostic> = problems.iter().filter(of_warning).collect();
    if warnings.is_empty() {
        return String::new();
    }
    let mut list = format!("\n**{}**\n\n", count(warnings.len(), "warning"));
    let folded = group_alike(&warnings);
    for (warning, others) in folded.iter().take(MAX_MISSES) {
        let place = warning.place();
        let place = place.map_or(String::new(), |place| format!(" ({})", code(&place.link())));
        let message = plain(&wording::brief(&warning.message));
        let more = and_more(warning, others);
        let _ = writeln!(list, "- `{}`{place}: {message}{more}", warning.code.name());
    }
    if folded.len() > MAX_MISSES {
        let more = folded.len() - MAX_MISSES;
        let _ = writeln!(list, "- and {more} more: `podgraft check` lists all");
    }
    list
}

fn head(files: &[ReportedFile<'_>], reviews: &[ReviewedWorkload<'_>]) -> String {
    let statuses = statuses(files);
    let seen = statuses.len();
    let changed = statuses.iter().filter(|status| status.is_change()).count();
    let (insertions, deletions) = total_lines(reviews);
    if reviews.is_empty() {
        return format!(
            "### podgraft: no changes\n\n{} seen, nothing to inject.\n",
            count(seen, "workload")
        );
    }
    let lines = format!("+{insertions} −{deletions} lines");
    format!(
        "### podgraft: {changed} of {} change\n\n{lines}.\n",
        count(seen, "workload")
    )
}

fn table(reviews: &[ReviewedWorkload<'_>], is_grouped: bool) -> String {
    let (group, line) = if is_grouped {
        ("| Group ", "|---")
    } else {
        ("", "")
    };
    let mut table =
        format!("\n{group}| Workload | File | Policies | Lines |\n{line}|---|---|---|---|\n");
    let mut rows: Vec<&ReviewedWorkload<'_>> = reviews.iter().collect();
    rows.sort_by_key(|review| &review.group);
    for (index, review) in rows.iter().enumerate() {
        let policies: Vec<String> = review.policies().into_iter().map(code).collect();
        let group = if is_grouped {
            format!("| {} ", cell(&code(&review.group)))
        } else {
            String::new()
        };
        let title = cell(&format!(
            "{} {}",
            review.workload.kind,
            code(&place_of(review))
        ));
        let file = cell(&code(&format!("{}:{}", review.file, review.workload.line)));
        let row = format!(
            "{group}| {title} | {file} | {} | +{} −{} |\n",
            cell(&policies.join(", ")),
            review.insertions,
            review.deletions
        );
        if table.len() + row.len() > MAX_TABLE {
            let _ = writeln!(
                table,
                "\n_and {} more_",
                count(rows.len() - index, "workload")
            );
            return table;
        }
        table.push_str(&row);
    }
    table
}

/// The name of the workload: `shop/orders`.
fn place_of(review: &ReviewedWorkload<'_>) -> String {
    match &review.workload.namespace {
        Some(namespace) => format!("{namespace}/{}", review.workload.name),
        None => review.workload.name.clone(),
    }
}

/// The block of a workload with its diff.
fn whole(review: &ReviewedWorkload<'_>) -> String {
    let diffs: String = review.hunks.iter().map(diff).collect();
    let fence = fence_for(&diffs);
    block(review, &format!("{fence}diff\n{diffs}{fence}\n"))
}

/// The block of a workload without its diff, which has no room.
fn brief(review: &ReviewedWorkload<'_>) -> String {
    block(
        review,
        "_Diff omitted: a comment can have at most 65,536 characters._\n",
    )
}

fn block(review: &ReviewedWorkload<'_>, body: &str) -> String {
    let title = html(&one_line(&review.workload.title()));
    let policies = html(&review.policies().join(", "));
    let mut block = format!(
        "\n<details><summary><b>{title}</b>: {policies} (+{} −{})</summary>\n\n",
        review.insertions, review.deletions
    );
    for (policy, changes) in review.changes_by_policy() {
        let _ = writeln!(block, "**{}**", code(policy));
        for change in changes {
            let verb = change.verb().third_person;
            let _ = writeln!(block, "- {verb} {}", code(&change.object()));
        }
        block.push('\n');
    }
    block + body + "\n</details>\n"
}

fn diff(hunk: &Hunk<'_>) -> String {
    let range = |lines: &std::ops::Range<usize>| match lines.len() {
        0 => format!("{},0", lines.start),
        len => format!("{},{len}", lines.start + 1),
    };
    let policies = one_line(&hunk.policies.join(", "));
    let mut diff = format!(
        "@@ -{} +{} @@ {policies}\n",
        range(&hunk.old),
        range(&hunk.new)
    );
    for line in &hunk.lines {
        let _ = writeln!(
            diff,
            "{}{}",
            line.sign.char(),
            one_line(&without_record(&line.text))
        );
    }
    diff
}

/// Near misses, and the number of workloads left alone because of a problem.
fn misses(files: &[ReportedFile<'_>]) -> String {
    let workloads = files.iter().flat_map(|file| &file.report.workloads);
    let failed = workloads
        .clone()
        .filter(|workload| workload.status() == WorkloadStatus::Failed)
        .count();
    let near = workloads.flat_map(|workload| {
        let policies = workload.policies.iter();
        policies.filter_map(|policy_report| near_miss(workload, policy_report))
    });
    let near: Vec<String> = near.collect();
    let mut text = String::new();
    if !near.is_empty() {
        let more = near.len().saturating_sub(MAX_MISSES);
        let shown: String = near.iter().take(MAX_MISSES).map(String::as_str).collect();
        let _ = write!(text, "\n**Nearly selected:**\n\n{shown}");
        if more > 0 {
            let _ = writeln!(text, "- and {more} more");
        }
    }
    if failed > 0 {
        let _ = writeln!(
            text,
            "\n**Left alone because of a problem:** {}",
            count(failed, "workload")
        );
    }
    text
}

fn near_miss(workload: &WorkloadReport, policy_report: &PolicyReport) -> Option<String> {
    let skip = policy_report.skip().filter(|skip| skip.is_near_miss)?;
    let hint = skip
        .hint
        .as_ref()
        .map_or(String::new(), |hint| format!(" ({})", plain(hint)));
    Some(format!(
        "- {}: {} does not apply: {}{hint}\n",
        code(&workload.title()),
        code(&policy_report.policy),
        plain(&skip.reason)
    ))
}

/// Escapes a text so that nothing in it is markup, a mention or a reference. What stands between backticks stays code, in
/// which GitHub shows a backslash as it is.
fn plain(text: &str) -> String {
    let text = one_line(text);
    let (mut plain, mut rest) = (String::new(), &*text);
    while let Some((before, ticks, behind)) = at_ticks(rest) {
        escape(before, &mut plain);
        rest = match end_of_code(behind, ticks) {
            Some(end) => {
                let (inner, rest) = behind.split_at(end);
                plain.extend([ticks, inner]);
                rest
            }
            None => {
                plain.push_str(&"\\`".repeat(ticks.len()));
                behind
            }
        };
    }
    escape(rest, &mut plain);
    plain
}

/// The first run of backticks, with what stands before and behind it.
fn at_ticks(text: &str) -> Option<(&str, &str, &str)> {
    let (before, run) = text.split_at(text.find('`')?);
    let behind = run.trim_start_matches('`');
    Some((before, &run[..run.len() - behind.len()], behind))
}

/// The end of inline code that some backticks open: behind the next run of as many.
/// Source: <https://spec.commonmark.org/0.31.2/#code-spans>
fn end_of_code(text: &str, ticks: &str) -> Option<usize> {
    let mut rest = text;
    while let Some((_, run, behind)) = at_ticks(rest) {
        rest = behind;
        if run == ticks {
            return Some(text.len() - rest.len());
        }
    }
    None
}

/// A zero-width space after `@` stops the mention.
fn escape(text: &str, escaped: &mut String) {
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '@' => escaped.push_str("@\u{200b}"),
            '*' | '_' | '[' | ']' | '#' | '\\' | '|' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
}

/// Formats a text as inline code. It is delimited by one backtick more than its longest run of them.
fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = longest_run(&text, '`');
    match ticks {
        0 => format!("`{text}`"),
        _ => {
            let fence = "`".repeat(ticks + 1);
            format!("{fence} {text} {fence}")
        }
    }
}

/// Escapes `|`, which ends a cell of a table even in inline code.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('@', "@\u{200b}")
}

fn fence_for(text: &str) -> String {
    "`".repeat(longest_run(text, '`').max(2) + 1)
}

fn longest_run(text: &str, wanted: char) -> usize {
    let mut run = 0;
    text.chars().fold(0, |longest, c| {
        run = if c == wanted { run + 1 } else { 0 };
        longest.max(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_keeps_backticks_and_cells_keep_bars() {
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(cell(&code("a|b")), "`a\\|b`");
        assert_eq!(fence_for("x ```` y"), "`````");
        assert_eq!(plain("@team *x*"), "@\u{200b}team \\*x\\*");
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        assert_eq!(plain("`A_B|<c` a_b"), "`A_B|<c` a\\_b");
        assert_eq!(plain("``a`_`` `b_"), "``a`_`` \\`b\\_");
        assert_eq!(plain("`a``_ [`` `"), "`a``_ [`` `");
        assert_eq!(plain("``a`*"), "\\`\\`a\\`\\*");
        assert_eq!(plain("\\`a_`"), "\\\\`a_`");
    }
}
