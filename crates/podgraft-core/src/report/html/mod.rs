//! The diff as one self-contained page: an index of workloads that any browser shows, and a script that draws diffs and
//! pods from data in the page when a workload is opened. The page loads nothing.

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::change::ChangeKind;
use crate::diagnostic::{Diagnostic, Severity};
use crate::outcome::ReportedFile;
use crate::outcome::view::WorkloadView;
use crate::report::escaped_line;
use crate::report::grouping::{and_more, group_alike};
use crate::report::hunks::{Hunk, HunkLine};
use crate::report::review::{GroupBy, ReviewedWorkload, groups, reviewed, total_lines};
use crate::wording::{self, count, one_line};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The data from which the script draws a workload.
#[derive(Serialize)]
struct WorkloadDrawing<'a> {
    hunks: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a WorkloadView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a WorkloadView>,
}

/// Renders the whole page.
pub fn render(files: &[ReportedFile<'_>], problems: &[Diagnostic]) -> String {
    let reviews = reviewed(files, GroupBy::Namespace);
    let seen: usize = files
        .iter()
        .map(|file| file.report.input_workloads().count())
        .sum();
    let mut page = String::with_capacity(64 << 10);
    head(&reviews, seen, &mut page);
    warnings(problems, &mut page);
    for (namespace, members) in groups(&reviews) {
        let name = escape(namespace);
        let _ = writeln!(
            page,
            "<section data-namespace=\"{name}\"><h2>{name} <small>{}</small></h2>",
            count(members.len(), "workload")
        );
        members.iter().for_each(|review| block(review, &mut page));
        page.push_str("</section>\n");
    }
    if reviews.is_empty() {
        page.push_str(
            "<p class=\"nothing\">Nothing to inject: all workloads stay as they are.</p>\n",
        );
    }
    let _ = write!(
        page,
        "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    page
}

/// The warnings, for reviewers to read beside the changes.
fn warnings(problems: &[Diagnostic], page: &mut String) {
    let of_warning = |problem: &&Diagnostic| problem.severity == Severity::Warning;
    let warnings: Vec<&Diagnostic> = problems.iter().filter(of_warning).collect();
    if warnings.is_empty() {
        return;
    }
    let number = count(warnings.len(), "warning");
    let _ = writeln!(
        page,
        "<details class=\"warnings\"><summary>{number}</summary><ul>"
    );
    for (warning, others) in group_alike(&warnings) {
        let place = warning.place().map_or(String::new(), |place| {
            format!(" <small>{}</small>", escape(&place.link()))
        });
        let message = escape(&wording::brief(&warning.message));
        let _ = writeln!(
            page,
            "<li><code>{}</code> {message}{}{place}</li>",
            warning.code.name(),
            and_more(warning, &others)
        );
    }
    page.push_str("</ul></details>\n");
}

fn head(reviews: &[ReviewedWorkload<'_>], seen: usize, page: &mut String) {
    let (insertions, deletions) = total_lines(reviews);
    let changed = reviews
        .iter()
        .filter(|review| !review.workload.is_generated)
        .count();
    let title = format!("podgraft: {changed} of {} change", count(seen, "workload"));
    let _ = write!(
        page,
        include_str!("head.html"),
        title = title,
        style = STYLE,
        insertions = insertions,
        deletions = deletions,
        policies = policy_buttons(reviews),
    );
}

/// A button for each policy, to show only what it changes.
fn policy_buttons(reviews: &[ReviewedWorkload<'_>]) -> String {
    let buttons = policies(reviews).into_iter().map(|(policy, number)| {
        let policy = escape(policy);
        format!(
            "<button type=\"button\" class=\"policy\" data-policy=\"{policy}\" aria-pressed=\"false\">{policy} \
             <small>{number}</small></button>"
        )
    });
    buttons.collect()
}

/// The policies, each with the number of workloads that it changes.
fn policies<'a>(reviews: &'a [ReviewedWorkload<'_>]) -> BTreeMap<&'a str, usize> {
    let mut policies = BTreeMap::new();
    for review in reviews {
        for policy in BTreeSet::from_iter(review.policies()) {
            *policies.entry(policy).or_default() += 1;
        }
    }
    policies
}

fn block(review: &ReviewedWorkload<'_>, page: &mut String) {
    let report = review.workload;
    let policies = review.policies();
    let names = escape(&serde_json::to_string(&policies).expect("strings are always JSON"));
    let _ = write!(
        page,
        "<details class=\"workload\" data-policies=\"{names}\"><summary><span class=\"kind\">{}</span> <b>{}</b> \
         <span class=\"by\">{}</span> <span class=\"lines\"><ins>+{}</ins> <del>−{}</del></span> \
         <span class=\"file\">{}:{}</span></summary>\n<ul class=\"deeds\">",
        escape(&report.kind),
        escape(&report.name),
        escape(&policies.join(", ")),
        review.insertions,
        review.deletions,
        escape(review.file),
        report.line
    );
    for (policy, changes) in review.changes_by_policy() {
        for change in changes {
            let class = match change.kind() {
                ChangeKind::Add => "added",
                ChangeKind::Change | ChangeKind::Adopt => "changed",
                ChangeKind::TakeOut => "removed",
            };
            let verb = change.verb().third_person;
            let object = escape(&change.object());
            let _ = write!(
                page,
                "<li class=\"{class}\"><i>{}</i> {verb} <b>{object}</b></li>",
                escape(policy)
            );
        }
    }
    let _ = writeln!(
        page,
        "</ul><script type=\"application/json\">{}</script></details>",
        data(review)
    );
}

fn data(review: &ReviewedWorkload<'_>) -> String {
    let drawn = WorkloadDrawing {
        hunks: review.hunks.iter().map(drawing).collect(),
        before: review.workload.view.as_deref(),
        after: review.workload.view_after.as_deref(),
    };
    let json =
        serde_json::to_string(&drawn).expect("strings, numbers and lists of these are always JSON");
    // In a script element, only a `<` can end the element or change how it is parsed.
    wording::json(json).replace('<', "\\u003c")
}

/// A hunk: its 1-based first lines, its policies, and its lines as sign, text, and policies if these are not all of the
/// hunk's.
fn drawing(hunk: &Hunk<'_>) -> Value {
    json!({
        "old": hunk.old.start + 1,
        "new": hunk.new.start + 1,
        "policies": hunk.policies,
        "lines": hunk.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

/// The sign, the text and, where they differ from the hunk's, the policies of a line.
fn line(line: &HunkLine<'_>) -> (char, String, String) {
    let policies = line.policies.as_deref().unwrap_or_default().join(", ");
    (line.sign.char(), escaped_line(&line.text), policies)
}

fn escape(text: &str) -> String {
    let text = one_line(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
