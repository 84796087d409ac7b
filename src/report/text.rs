//! The report for people: which workloads changed by which policy, which did not and why, and the totals.

use std::fmt::Write as _;

use super::needs;
use crate::change::{Change, list, list_removed};
use crate::outcome::needs::RunNeeds;
use crate::outcome::{
    FileReport, Outcome, PolicyReport, ReportedFile, Skip, WorkloadReport, WorkloadStatus,
};
use crate::wording::{self, count, one_line};

/// The most reasons of one policy that are listed; the others are counted.
const MAX_REASONS: usize = 20;
/// The most workloads that are named in each part; the others are counted. `--report` has all.
const MAX_WORKLOADS: usize = 500;
/// The most workloads that are named with one reason for a near miss.
const MAX_ALIKE: usize = 5;
/// The most changes of one policy to one workload that are listed.
const MAX_CHANGES: usize = 50;

/// The whole report: [`injected`], [`taken_out`], [`skipped`], what the injections need from a cluster, and [`totals`].
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

/// The name of a workload: `deployment shop/orders`.
fn name(workload: &WorkloadReport) -> String {
    let title = workload.title();
    let (kind, name) = title.split_once(' ').unwrap_or((&title, ""));
    one_line(&format!("{} {name}", kind.to_lowercase()))
}

/// The names of workloads: `deployment shop/orders`, or `3 workloads (deployment shop/orders, ...)`.
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

/// Lines about workloads, of which only the first [`MAX_WORKLOADS`] are kept.
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

    /// Returns the lines, and the number of those that were not kept. `noun` says what they are about.
    fn finish(mut self, noun: &str) -> String {
        if self.number > MAX_WORKLOADS {
            let more = count(self.number - MAX_WORKLOADS, "more workload");
            let _ = writeln!(self.text, "... and {more} {noun}; --report FILE names all");
        }
        self.text
    }
}

/// One line for each workload that policies injected something into.
pub fn injected(files: &[ReportedFile<'_>]) -> String {
    let mut lines = LimitedLines::default();
    let is_injected = |outcome: &Outcome| matches!(outcome, Outcome::Injected(_));
    for file in files {
        let workloads = file.report.workloads.iter();
        for workload in workloads.filter(|workload| workload.has_outcome(is_injected)) {
            let verb = match workload.is_adopted() {
                true => "adopted",
                false => "injected",
            };
            lines.add(|| {
                let (name, place) = (name(workload), place(files, file, workload));
                let by: Vec<_> = workload.policies.iter().filter_map(by_policy).collect();
                format!("{name}{place}: {verb} by {}", by.join("; "))
            });
        }
    }
    lines.number += unlisted(files, WorkloadStatus::Injected);
    lines.finish("injected")
}

fn by_policy(report: &PolicyReport) -> Option<String> {
    let policy = &report.policy;
    match &report.outcome {
        Outcome::Injected(changes) => {
            Some(one_line(&format!("{policy} ({})", first_of(changes, list))))
        }
        Outcome::TakenOut(_) | Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed => None,
    }
}

/// The first changes in words, and the number of the others.
fn first_of(changes: &[Change], list: impl Fn(&[Change]) -> String) -> String {
    let (first, remaining) = changes.split_at(changes.len().min(MAX_CHANGES));
    let more = if remaining.is_empty() {
        String::new()
    } else {
        format!(", and {} more", remaining.len())
    };
    format!("{}{more}", list(first))
}

/// One line for each workload from which something was removed.
pub fn taken_out(files: &[ReportedFile<'_>]) -> String {
    let mut lines = LimitedLines::default();
    for file in files {
        for workload in file.report.input_workloads() {
            let mut by = workload.policies.iter().filter_map(of_policy).peekable();
            if by.peek().is_some() {
                lines.add(|| {
                    let (name, place) = (name(workload), place(files, file, workload));
                    format!(
                        "{name}{place}: taken out {}",
                        by.collect::<Vec<_>>().join("; ")
                    )
                });
            }
        }
    }
    lines.finish("taken out")
}

/// The place of a workload; empty if the run has only one file.
fn place(files: &[ReportedFile<'_>], file: &ReportedFile<'_>, workload: &WorkloadReport) -> String {
    match files.len() {
        0 | 1 => String::new(),
        _ => format!(" ({}:{})", one_line(file.name), workload.line),
    }
}

fn of_policy(report: &PolicyReport) -> Option<String> {
    let policy = &report.policy;
    match &report.outcome {
        Outcome::TakenOut(changes) => Some(one_line(&format!(
            "{policy} ({})",
            first_of(changes, list_removed)
        ))),
        Outcome::Injected(_) | Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed => None,
    }
}

/// Why policies did not change workloads: near misses by name, the others counted by policy and reason.
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

/// The policies of the run, in the order in which they apply.
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

/// The number of workloads with this status that are counted but not listed, because there are too many.
fn unlisted(files: &[ReportedFile<'_>], status: WorkloadStatus) -> usize {
    files
        .iter()
        .filter_map(|file| file.report.unlisted.get(&status))
        .sum()
}

/// The number of objects that are no workloads. The items of a List count, and the List itself does not.
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
    /// The changes were written.
    Done,
    /// Nothing was written; the report says what would be.
    Shown,
}

/// The last line of the report: `3 workloads: 1 injected, 1 unchanged, 1 not selected; 4 other objects`.
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

    fn skip(reason: &str) -> Skip {
        Skip::because(SkipCause::NoRule, reason)
    }

    #[test]
    fn every_workload_is_accounted_for() {
        let injected = Outcome::Injected(vec![
            added_volume(),
            Change::new(Operation::Update, ChangeTarget::env("app", "X")),
        ]);
        let near_miss = Skip {
            is_near_miss: true,
            ..skip("matched, no container (wants app)")
        };
        let mut report = report_of(vec![
            workload("orders", 0..1, injected),
            workload("cart", 1..1, Outcome::UpToDate),
            workload("a", 1..1, Outcome::Skipped(skip("kind is Job"))),
            workload("b", 1..1, Outcome::Skipped(skip("kind is Job"))),
            workload("c", 1..1, Outcome::Skipped(skip("label is missing"))),
            workload("d", 1..1, Outcome::Skipped(near_miss)),
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
