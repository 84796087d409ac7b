//! The report for people: who was changed by what, who was not and why, and the totals.

use std::fmt::Write as _;

use super::needs;
use crate::change::{Change, list, list_removed};
use crate::outcome::needs::RunNeeds;
use crate::outcome::{FileReport, Outcome, ReportedFile, Skip, WorkloadReport, WorkloadStatus};
use crate::wording::{self, count, one_line};

/// So many different reasons of one policy are spelled out; the others are counted.
const MAX_REASONS: usize = 20;
/// So many workloads are named in each part; the others are counted. `--report` has all.
const MAX_WORKLOADS: usize = 500;
/// So many workloads that are near for the same reason are named.
const MAX_ALIKE: usize = 5;
/// So many changes of one policy to one workload are spelled out.
const MAX_CHANGES: usize = 50;

/// Everything: [`injected`], [`taken_out`], [`skipped`], what the injections need from a cluster, and [`totals`].
pub fn render(files: &[ReportedFile<'_>]) -> String {
    let needs = needs::text(&RunNeeds::of_files(files));
    [
        injected(files),
        taken_out(files),
        skipped(files),
        needs,
        totals(files, ReportMode::Done),
    ]
    .concat()
}

fn workloads<'a>(files: &'a [ReportedFile<'_>]) -> impl Iterator<Item = &'a WorkloadReport> {
    files.iter().flat_map(|file| file.report.input_workloads())
}

/// `deployment shop/orders`.
fn name(workload: &WorkloadReport) -> String {
    let title = workload.title();
    let (kind, name) = title.split_once(' ').unwrap_or((&title, ""));
    one_line(&format!("{} {name}", kind.to_lowercase()))
}

/// `deployment shop/orders`, or `3 workloads (deployment shop/orders, ...)`.
fn names(group: &[&WorkloadReport]) -> String {
    if let [workload] = group {
        return name(workload);
    }
    let first: Vec<String> = group
        .iter()
        .take(MAX_ALIKE)
        .map(|workload| name(workload))
        .collect();
    let dots = if group.len() > MAX_ALIKE { ", ..." } else { "" };
    format!(
        "{} ({}{dots})",
        count(group.len(), "workload"),
        first.join(", ")
    )
}

/// Lines about workloads, up to a limit.
#[derive(Default)]
struct LimitedLines {
    text: String,
    number: usize,
}

impl LimitedLines {
    fn add(&mut self, line: impl FnOnce() -> String) {
        self.number += 1;
        if self.number <= MAX_WORKLOADS {
            self.text += &(line() + "\n");
        }
    }

    /// The lines, and how many more there would be of what the words say.
    fn finish(mut self, noun: &str) -> String {
        if self.number > MAX_WORKLOADS {
            let more = count(self.number - MAX_WORKLOADS, "more workload");
            let _ = writeln!(self.text, "... and {more} {noun}; --report FILE names all");
        }
        self.text
    }
}

/// One line a changed workload.
pub fn injected(files: &[ReportedFile<'_>]) -> String {
    let mut lines = LimitedLines::default();
    let is_injected = |outcome: &Outcome| matches!(outcome, Outcome::Injected(_));
    for file in files {
        let workloads = file.report.workloads.iter();
        for workload in workloads.filter(|workload| {
            workload
                .policies
                .iter()
                .any(|policy_report| is_injected(&policy_report.outcome))
        }) {
            let by = || {
                workload.policies.iter().filter_map(|policy_report| {
                    by_policy(&policy_report.policy, &policy_report.outcome)
                })
            };
            let joined = || by().collect::<Vec<_>>().join("; ");
            lines.add(|| {
                let verb = if workload.is_adopted() {
                    "adopted"
                } else {
                    "injected"
                };
                format!(
                    "{}{}: {verb} by {}",
                    name(workload),
                    place(files, file, workload),
                    joined()
                )
            });
        }
    }
    lines.number += unlisted(files, WorkloadStatus::Injected);
    lines.finish("injected")
}

fn by_policy(policy: &str, outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Injected(changes) => {
            Some(one_line(&format!("{policy} ({})", first_of(changes, list))))
        }
        Outcome::TakenOut(_) | Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed => None,
    }
}

/// The first changes in words, and how many more there are.
fn first_of(changes: &[Change], list: impl Fn(&[Change]) -> String) -> String {
    let (first, remaining) = changes.split_at(changes.len().min(MAX_CHANGES));
    let more = if remaining.is_empty() {
        String::new()
    } else {
        format!(", and {} more", remaining.len())
    };
    format!("{}{more}", list(first))
}

/// One line a workload that something was taken out of.
pub fn taken_out(files: &[ReportedFile<'_>]) -> String {
    let mut lines = LimitedLines::default();
    for file in files {
        for workload in file.report.input_workloads() {
            let by = || {
                workload.policies.iter().filter_map(|policy_report| {
                    of_policy(&policy_report.policy, &policy_report.outcome)
                })
            };
            if by().next().is_some() {
                let place = place(files, file, workload);
                lines.add(|| {
                    format!(
                        "{}{place}: taken out {}",
                        name(workload),
                        by().collect::<Vec<_>>().join("; ")
                    )
                });
            }
        }
    }
    lines.finish("taken out")
}

/// Where a workload stands; of one file everybody knows.
fn place(files: &[ReportedFile<'_>], file: &ReportedFile<'_>, workload: &WorkloadReport) -> String {
    match files.len() {
        0 | 1 => String::new(),
        _ => format!(" ({}:{})", one_line(file.name), workload.line),
    }
}

fn of_policy(policy: &str, outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::TakenOut(changes) => Some(one_line(&format!(
            "{policy} ({})",
            first_of(changes, list_removed)
        ))),
        Outcome::Injected(_) | Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed => None,
    }
}

/// Why workloads were left alone: near misses by name, the others counted by policy and reason.
pub fn skipped(files: &[ReportedFile<'_>]) -> String {
    let mut lines = String::new();
    for policy in policies(files) {
        let mut near: Vec<(String, Vec<&WorkloadReport>)> = Vec::new();
        let mut reasons: Vec<(&str, Vec<&WorkloadReport>)> = Vec::new();
        for (workload, skip) in skips(files, policy) {
            if skip.is_near_miss {
                let hint = skip
                    .hint
                    .as_ref()
                    .map_or(String::new(), |hint| format!("; {hint}"));
                let reason = one_line(&wording::brief(&format!("{}{hint}", skip.reason)));
                match near.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, group)) => group.push(workload),
                    None => near.push((reason, vec![workload])),
                }
                continue;
            }
            match reasons
                .iter_mut()
                .find(|(reason, _)| *reason == skip.reason)
            {
                Some((_, group)) => group.push(workload),
                None => reasons.push((&skip.reason, vec![workload])),
            }
        }
        let mut near_lines = LimitedLines::default();
        for (reason, group) in &near {
            near_lines.add(|| format!("{}: not injected by {policy}: {reason}", names(group)));
        }
        lines += &near_lines.finish(&format!("not injected by {policy}"));
        render_reasons(policy, &reasons, &mut lines);
    }
    lines + &left_alone(files)
}

fn left_alone(files: &[ReportedFile<'_>]) -> String {
    let mut lines = LimitedLines::default();
    for workload in workloads(files) {
        for policy_report in workload
            .policies
            .iter()
            .filter(|policy_report| policy_report.outcome == Outcome::Failed)
        {
            lines.add(|| {
                format!(
                    "{}: left alone by {}, see the message",
                    name(workload),
                    policy_report.policy
                )
            });
        }
    }
    lines.finish("left alone")
}

/// In the order in which they apply.
fn policies<'a>(files: &'a [ReportedFile<'_>]) -> Vec<&'a str> {
    let mut policies: Vec<&str> = Vec::new();
    for policy_report in workloads(files).flat_map(|workload| &workload.policies) {
        if !policies.contains(&&*policy_report.policy) {
            policies.push(&policy_report.policy);
        }
    }
    policies
}

fn skips<'a>(
    files: &'a [ReportedFile<'_>],
    policy: &'a str,
) -> impl Iterator<Item = (&'a WorkloadReport, &'a Skip)> {
    let policy_reports = workloads(files).flat_map(|workload| {
        workload
            .policies
            .iter()
            .map(move |policy_report| (workload, policy_report))
    });
    policy_reports
        .filter(move |(_, policy_report)| &*policy_report.policy == policy)
        .filter_map(|(workload, policy_report)| match &policy_report.outcome {
            Outcome::Skipped(skip) => Some((workload, skip)),
            Outcome::Injected(_) | Outcome::TakenOut(_) | Outcome::UpToDate | Outcome::Failed => {
                None
            }
        })
}

fn render_reasons(policy: &str, reasons: &[(&str, Vec<&WorkloadReport>)], lines: &mut String) {
    for (reason, group) in reasons.iter().take(MAX_REASONS) {
        let subject = match group[..] {
            [workload] => name(workload),
            _ => count(group.len(), "workload"),
        };
        let _ = writeln!(
            lines,
            "{subject}: not selected by {policy}: {}",
            one_line(&wording::brief(reason))
        );
    }
    let remaining: usize = reasons
        .iter()
        .skip(MAX_REASONS)
        .map(|(_, group)| group.len())
        .sum();
    if remaining > 0 {
        let further = count(reasons.len() - MAX_REASONS, "further reason");
        let _ = writeln!(
            lines,
            "{}: not selected by {policy} for {further}",
            count(remaining, "workload")
        );
    }
}

fn unlisted(files: &[ReportedFile<'_>], status: WorkloadStatus) -> usize {
    files
        .iter()
        .filter_map(|file| file.report.unlisted.get(&status))
        .sum()
}

/// Objects that are no workload. The items of a List are objects of their own, the List is none.
pub fn other_objects(files: &[ReportedFile<'_>]) -> usize {
    let workloads = |report: &FileReport| {
        report.input_workloads().count() + report.unlisted.values().sum::<usize>()
    };
    files
        .iter()
        .map(|file| file.report.objects.saturating_sub(workloads(file.report)))
        .sum()
}

/// Whether the reported changes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportMode {
    /// It was.
    Done,
    /// It would be: nothing was written.
    Shown,
}

/// `3 workloads: 1 injected, 1 unchanged, 1 not selected; 4 other objects`.
pub fn totals(files: &[ReportedFile<'_>], mode: ReportMode) -> String {
    let statuses: Vec<WorkloadStatus> = workloads(files).map(WorkloadReport::status).collect();
    let with = |wanted: WorkloadStatus| {
        statuses.iter().filter(|&&status| status == wanted).count() + unlisted(files, wanted)
    };
    let parts = [
        (
            WorkloadStatus::Injected,
            if mode == ReportMode::Done {
                "injected"
            } else {
                "would be injected"
            },
        ),
        (
            WorkloadStatus::TakenOut,
            if mode == ReportMode::Done {
                "taken out"
            } else {
                "would be taken out"
            },
        ),
        (WorkloadStatus::Adopted, "adopted"),
        (WorkloadStatus::Unchanged, "unchanged"),
        (WorkloadStatus::NotSelected, "not selected"),
        (WorkloadStatus::Failed, "left alone"),
    ];
    let parts = parts.map(|(status, word)| (with(status), word));
    let total: usize = parts.iter().map(|(number, _)| number).sum();
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    let others = count(other_objects(files), "other object");
    format!(
        "{}{colon}{}; {others}\n",
        count(total, "workload"),
        parts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Change, ChangeTarget, Operation};
    use crate::outcome::SkipCause;
    use crate::report::tests::{added_volume, report_of, workload};

    fn skip(reason: &str, is_near_miss: bool) -> Outcome {
        Outcome::Skipped(Skip {
            is_near_miss,
            ..Skip::because(SkipCause::NoRule, reason)
        })
    }

    #[test]
    fn every_workload_is_accounted_for() {
        let injected = Outcome::Injected(vec![
            added_volume(),
            Change::new(Operation::Update, ChangeTarget::env("app", "X")),
        ]);
        let mut report = report_of(vec![
            workload("orders", 0..1, injected),
            workload("cart", 1..1, Outcome::UpToDate),
            workload("a", 1..1, skip("kind is Job", false)),
            workload("b", 1..1, skip("kind is Job", false)),
            workload("c", 1..1, skip("label is missing", false)),
            workload("d", 1..1, skip("matched, no container (wants app)", true)),
            workload("e", 1..1, Outcome::Failed),
        ]);
        report.objects = 9;
        let file = ReportedFile {
            name: "a.yaml",
            path: b"a.yaml",
            text: b"",
            report: &report,
        };
        let expected = "\
deployment shop/orders: injected by agent (volume agent, app: env X updated)
deployment shop/d: not injected by agent: matched, no container (wants app)
2 workloads: not selected by agent: kind is Job
deployment shop/c: not selected by agent: label is missing
deployment shop/e: left alone by agent, see the message
7 workloads: 1 injected, 1 unchanged, 4 not selected, 1 left alone; 2 other objects
";
        assert_eq!(render(&[file]), expected);
    }

    #[test]
    fn a_run_without_workloads_says_so() {
        let report = report_of(Vec::new());
        let file = ReportedFile {
            name: "a.yaml",
            path: b"a.yaml",
            text: b"",
            report: &report,
        };
        assert_eq!(render(&[file]), "0 workloads; 0 other objects\n");
    }
}
