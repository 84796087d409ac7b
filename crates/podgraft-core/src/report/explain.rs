//! For each workload and policy: whether the policy applies, or the first reason why not, with the places in the policy
//! and in the manifest.

use serde_json::{Value, json};
use std::fmt::Write as _;

use super::workload_head::WorkloadHeader;
use crate::change::{list, list_removed};
use crate::diagnostic::Label;
use crate::excerpt::{GAP, is_balanced, narrowed};
use crate::mask::{MASK, hide, secrets_in};
use crate::outcome::{Outcome, PolicyReport, ReportedFile, WorkloadReport};
use crate::wording::{self, Paint, count, one_line, without_nulls};

/// Characters of a source line that are shown beside its place.
const EXCERPT: usize = 60;

/// An outcome in words for people, and the ANSI style of the words.
fn verdict(outcome: &Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Injected(_) => ("applies", "32"),
        Outcome::UpToDate => ("applies, up to date", "32"),
        Outcome::TakenOut(_) => ("no longer applies and is removed", "33"),
        Outcome::Skipped(skip) if skip.is_near_miss => ("nearly applies", "33"),
        Outcome::Skipped(_) => ("does not apply", "2"),
        Outcome::Failed(Some(_)) => ("fails and is removed, see the message", "31"),
        Outcome::Failed(None) => ("applies and fails, see the message", "31"),
    }
}

/// Explains all workloads of all files, followed by the totals.
pub fn render(files: &[ReportedFile<'_>], paint: Paint) -> String {
    let mut text = String::new();
    for file in files {
        for workload in file.report.input_workloads() {
            let title = paint.wrap("1", &one_line(&workload.title()));
            let _ = writeln!(text, "{title} ({}:{})", one_line(file.name), workload.line);
            workload
                .policies
                .iter()
                .for_each(|policy_report| policy(policy_report, paint, &mut text));
            text.push('\n');
        }
    }
    text + &totals(files)
}

fn policy(policy_report: &PolicyReport, paint: Paint, text: &mut String) {
    let (words, style) = verdict(&policy_report.outcome);
    let _ = write!(
        text,
        "  {}: {}",
        one_line(&policy_report.policy),
        paint.wrap(style, words)
    );
    match &policy_report.outcome {
        Outcome::Injected(changes) => {
            let _ = writeln!(text, ": {}", one_line(&list(changes)));
        }
        Outcome::TakenOut(changes) | Outcome::Failed(Some(changes)) => {
            let _ = writeln!(text, ": {}", one_line(&list_removed(changes)));
        }
        Outcome::UpToDate | Outcome::Failed(None) => text.push('\n'),
        Outcome::Skipped(skip) => {
            let _ = writeln!(text, ": {}", one_line(&wording::brief(&skip.reason)));
            let links = skip
                .places
                .iter()
                .map(|label| one_line(&label.place.link()));
            let links: Vec<String> = links.collect();
            let width = links.iter().map(|link| link.chars().count()).max();
            let width = width.unwrap_or(0);
            for (label, link) in skip.places.iter().zip(&links) {
                let shown = paint.wrap("2", &format!("{:<7}{link:width$}", label.text));
                let _ = writeln!(text, "      {shown}  {}", excerpt(label));
            }
            if let Some(hint) = &skip.hint {
                let (help, hint) = (paint.wrap("33", "help"), one_line(&wording::brief(hint)));
                let _ = writeln!(text, "      {help}   {hint}");
            }
        }
    }
}

/// The line of a place, without the secrets in it. One that cannot be read on its own may hold them anywhere.
fn excerpt(label: &Label) -> String {
    let place = narrowed(&label.place);
    let line = place.excerpt.trim();
    let piece = line.trim_start_matches(GAP).trim_end_matches(GAP);
    let shown = match is_balanced(piece) {
        true => hide(piece.as_bytes(), 0, &secrets_in(piece.as_bytes())),
        false => MASK.to_owned(),
    };
    let line = one_line(&line.replacen(piece, &shown, 1));
    match line.char_indices().nth(EXCERPT) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

/// The last line: `3 workloads and 2 policies: 1 applies, 5 do not (1 near miss)`.
fn totals(files: &[ReportedFile<'_>]) -> String {
    let reports = files.iter().flat_map(|file| file.report.input_workloads());
    let workloads: Vec<&WorkloadReport> = reports.collect();
    if workloads.is_empty() {
        return "0 workloads\n".to_owned();
    }
    let policies = workloads.iter().map(|workload| workload.policies.len());
    let policies = match policies.max().unwrap_or(0) {
        1 => "1 policy".to_owned(),
        policies => format!("{policies} policies"),
    };
    let outcomes = workloads.iter().flat_map(|workload| &workload.policies);
    let outcomes = outcomes.map(|policy_report| &policy_report.outcome);
    let of = |is: fn(&Outcome) -> bool| outcomes.clone().filter(|outcome| is(outcome)).count();
    let apply = of(|outcome| matches!(outcome, Outcome::Injected(_) | Outcome::UpToDate));
    let not = of(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let near = of(|outcome| matches!(outcome, Outcome::Skipped(skip) if skip.is_near_miss));
    let removed = of(|outcome| matches!(outcome, Outcome::TakenOut(_)));
    let failed = of(|outcome| matches!(outcome, Outcome::Failed(_)));
    let verb = |number: usize, singular: &str, plural: &str| match number {
        1 => format!("1 {singular}"),
        _ => format!("{number} {plural}"),
    };
    let near = match near {
        0 => String::new(),
        _ => format!(" ({})", verb(near, "near miss", "near misses")),
    };
    let mut parts = vec![verb(apply, "applies", "apply")];
    if not > 0 {
        parts.push(verb(not, "does not", "do not") + &near);
    }
    if removed > 0 {
        parts.push(verb(removed, "no longer does", "no longer do"));
    }
    if failed > 0 {
        parts.push(verb(failed, "fails", "fail"));
    }
    let workloads = count(workloads.len(), "workload");
    format!("{workloads} and {policies}: {}\n", parts.join(", "))
}

/// The same as JSON: `kind: Explanation`.
pub fn render_json(files: &[ReportedFile<'_>]) -> String {
    let mut workloads = Vec::new();
    for file in files {
        for workload in file.report.input_workloads() {
            let mut explained = json!(WorkloadHeader::of(workload));
            explained["file"] = json!(file.name);
            explained["policies"] = workload.policies.iter().map(policy_json).collect();
            workloads.push(explained);
        }
    }
    wording::pretty_json(&json!({
        "apiVersion": "podgraft.dev/v1alpha1",
        "kind": "Explanation",
        "workloads": workloads,
    }))
}

fn policy_json(policy_report: &PolicyReport) -> Value {
    let skip = policy_report.skip();
    let changes = policy_report.changes().unwrap_or_default();
    let places = skip.map_or(&[][..], |skip| &skip.places);
    let all = |values: Vec<Value>| (!values.is_empty()).then_some(values);
    without_nulls(json!({
        "policy": &*policy_report.policy,
        "outcome": policy_report.outcome_name(),
        "changes": all(changes.iter().map(|change| change.to_string().into()).collect()),
        "reason": skip.map(|skip| &skip.reason),
        "nearMiss": skip.map(|skip| skip.is_near_miss),
        "optedIn": skip.map(|skip| skip.is_opted_in).filter(|is| *is),
        "hint": skip.and_then(|skip| skip.hint.as_ref()),
        "places": all(places.iter().map(place_json).collect()),
    }))
}

fn place_json(label: &Label) -> Value {
    let place = &label.place;
    json!({
        "file": &*place.source,
        "line": place.line,
        "column": place.column,
        "what": label.text,
    })
}
