//! The report for people: which workloads changed by which policy, which did not and why, and the totals.

use indexmap::{IndexMap, IndexSet};
use std::fmt::Write as _;

use super::{needs, statuses};
use crate::change::{Change, list, list_removed};
use crate::outcome::needs::RunNeeds;
use crate::outcome::{FileReport, Outcome, ReportedFile, Skip, WorkloadReport, WorkloadStatus};
use crate::wording::{self, count, one_line};

/// The most reasons of one policy that are listed; the others are counted.
const MAX_REASONS: usize = 20;
/// The most workloads that are named in each part; the others are counted. `--report` has all.
const MAX_WORKLOADS: usize = 500;
/// The most workloads that are named with one reason for a near miss.
const MAX_ALIKE: usize = 5;
/// The most changes of one policy to one workload that are listed.
const MAX_CHANGES: usize = 50;

/// The whole report: `injected`, `taken_out`, [`skipped`], what the injections need from a cluster, and [`totals`].
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
    let kind = workload.kind.to_lowercase();
    one_line(&workload.title().replacen(&workload.kind, &kind, 1))
}

/// The names of workloads: `deployment shop/orders`, or `3 workloads (deployment shop/orders, ...)`.
fn names(group: &[&WorkloadReport]) -> String {
    if let [workload] = group {
        return name(workload);
    }
    let first = group.iter().take(MAX_ALIKE);
    let first: Vec<String> = first.map(|workload| name(workload)).collect();
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
            let _ = writeln!(self.text, "... and {more} {noun}; --report FILE lists all");
        }
        self.text
    }
}

/// One line for each workload in which policies did something: the changes that `of` finds, put into `words`.
fn changed(
    files: &[ReportedFile<'_>],
    verb: impl Fn(&WorkloadReport) -> &'static str,
    of: fn(&Outcome) -> Option<&[Change]>,
    words: impl Fn(&[Change]) -> String,
) -> LimitedLines {
    let mut lines = LimitedLines::default();
    // A fleet has many workloads that a policy changes alike.
    let mut last: (&[Change], String) = Default::default();
    for file in files {
        for workload in file.report.input_workloads() {
            let policies = workload.policies.iter();
            let by = policies.filter_map(|policy| Some((&policy.policy, of(&policy.outcome)?)));
            if by.clone().next().is_none() {
                continue;
            }
            lines.add(|| {
                let by = by.map(|(policy, changes)| {
                    if last.0 != changes || last.1.is_empty() {
                        last = (changes, one_line(&first_of(changes, &words)));
                    }
                    format!("{} ({})", one_line(policy), last.1)
                });
                let by: Vec<String> = by.collect();
                let (name, place) = (name(workload), place(files, file, workload));
                format!("{name}{place}: {} {}", verb(workload), by.join("; "))
            });
        }
    }
    lines
}

/// One line for each workload that policies injected something into.
fn injected(files: &[ReportedFile<'_>]) -> String {
    let verb = |workload: &WorkloadReport| match workload.is_adopted() {
        true => "adopted by",
        false => "injected by",
    };
    let mut lines = changed(files, verb, Outcome::injections, list);
    lines.number += unlisted(files, WorkloadStatus::Injected);
    lines.finish("injected")
}

/// One line for each workload from which something was removed.
fn taken_out(files: &[ReportedFile<'_>]) -> String {
    changed(files, |_| "removed", Outcome::removals, list_removed).finish("removed")
}

/// The first changes in words, and the number of the others.
fn first_of(changes: &[Change], list: impl Fn(&[Change]) -> String) -> String {
    match changes.split_at_checked(MAX_CHANGES) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{}, and {} more", list(first), rest.len())
        }
        Some(_) | None => list(changes),
    }
}

/// The place of a workload; empty if the run has only one file.
fn place(files: &[ReportedFile<'_>], file: &ReportedFile<'_>, workload: &WorkloadReport) -> String {
    match files.len() {
        0 | 1 => String::new(),
        _ => format!(" ({}:{})", one_line(file.name), workload.line),
    }
}

/// Why policies did not change workloads: near misses by name, the others counted by policy and reason.
pub fn skipped(files: &[ReportedFile<'_>]) -> String {
    let mut lines = String::new();
    for policy in policies(files) {
        let mut near = WorkloadsByReason::new();
        let mut reasons = WorkloadsByReason::new();
        for (workload, skip) in skips(files, policy) {
            if !skip.is_near_miss {
                reasons.entry(&*skip.reason).or_default().push(workload);
                continue;
            }
            let hint = skip.hint.as_ref();
            let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
            let reason = wording::brief(&format!("{}{hint}", skip.reason)).into_owned();
            near.entry(one_line(&reason)).or_default().push(workload);
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

/// The workloads by reason, in the order of the first of each.
type WorkloadsByReason<'w, R> = IndexMap<R, Vec<&'w WorkloadReport>>;

fn left_alone(files: &[ReportedFile<'_>]) -> String {
    let mut lines = LimitedLines::default();
    for workload in workloads(files) {
        let policies = workload.policies.iter();
        for report in policies.filter(|report| report.outcome == Outcome::Failed(None)) {
            let policy = &report.policy;
            lines.add(|| {
                format!(
                    "{}: left alone by {policy}, see the message",
                    name(workload)
                )
            });
        }
    }
    lines.finish("left alone")
}

/// The policies of the run, in the order in which they apply.
fn policies<'a>(files: &'a [ReportedFile<'_>]) -> IndexSet<&'a str> {
    let reports = workloads(files).flat_map(|workload| &workload.policies);
    reports.map(|report| &*report.policy).collect()
}

fn skips<'a>(
    files: &'a [ReportedFile<'_>],
    policy: &'a str,
) -> impl Iterator<Item = (&'a WorkloadReport, &'a Skip)> {
    workloads(files).flat_map(move |workload| {
        let reports = workload.policies.iter();
        let same = reports.filter(move |report| &*report.policy == policy);
        same.filter_map(move |report| Some((workload, report.skip()?)))
    })
}

fn render_reasons(policy: &str, reasons: &WorkloadsByReason<&str>, lines: &mut String) {
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
pub(crate) fn other_objects(files: &[ReportedFile<'_>]) -> usize {
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
    let statuses = statuses(files);
    let with = |wanted: WorkloadStatus| statuses.iter().filter(|&&status| status == wanted).count();
    let would = match mode {
        ReportMode::Done => "",
        ReportMode::Shown => "would be ",
    };
    let parts = [
        (WorkloadStatus::Injected, would, "injected"),
        (WorkloadStatus::TakenOut, would, "removed"),
        (WorkloadStatus::Adopted, "", "adopted"),
        (WorkloadStatus::Unchanged, "", "unchanged"),
        (WorkloadStatus::NotSelected, "", "not selected"),
        (WorkloadStatus::Failed, "", "left alone"),
    ];
    let parts = parts.map(|(status, would, word)| (with(status), would, word));
    let total: usize = parts.iter().map(|(number, ..)| number).sum();
    let parts = parts.iter().filter(|(number, ..)| *number > 0);
    let parts: Vec<String> = parts
        .map(|(number, would, word)| format!("{number} {would}{word}"))
        .collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    let others = count(other_objects(files), "other object");
    format!(
        "{}{colon}{}; {others}\n",
        count(total, "workload"),
        parts.join(", ")
    )
}
