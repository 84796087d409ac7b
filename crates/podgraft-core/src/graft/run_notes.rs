//! Diagnostics that need the reports of all files of a run.

use crate::diagnostic::{Code, Diagnostic};
use crate::outcome::{FileReport, Outcome};
use crate::policy::Policy;

/// The most workloads that a message names.
const MOST_NAMES: usize = 5;

/// Returns the notes of policies that injected something, once per policy, and warnings about the whole run.
pub fn notes(policies: &[Policy], reports: &[&FileReport]) -> Vec<Diagnostic> {
    let mut notes = broad_names(policies, reports);
    for policy in policies.iter().filter(|policy| !policy.effects.is_empty()) {
        let mut policy_reports = reports
            .iter()
            .flat_map(|report| &report.workloads)
            .flat_map(|workload| &workload.policies);
        if policy_reports.any(|policy_report| {
            *policy_report.policy == *policy.identity
                && matches!(policy_report.outcome, Outcome::Injected(_))
        }) {
            notes.extend(policy.effects.iter().cloned());
        }
    }
    notes
}

/// Returns a warning for each rule whose name fragment occurs in the names of several workloads.
fn broad_names(policies: &[Policy], reports: &[&FileReport]) -> Vec<Diagnostic> {
    let mut warnings: Vec<Diagnostic> = Vec::new();
    for policy in policies {
        for (index, rule) in policy.rules.iter().enumerate() {
            let Some((part, at)) = &rule.name_part else {
                continue;
            };
            let titles = titles(policy, index, reports);
            if titles.len() < 2 {
                continue;
            }
            let more = match titles.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names = titles[..titles.len().min(MOST_NAMES)].join(", ");
            let message = format!("`{part}` matches {} workloads: {names}{more}", titles.len());
            let warning = Diagnostic::warning(Code::BroadName, message).at(
                policy.text.place(at.clone()),
                "matches any name that contains this",
            );
            warnings.push(warning.help(
                "to select only one of them, specify more of its name, its namespace, or its \
                 labels",
            ));
        }
    }
    warnings
}

fn titles(policy: &Policy, rule: usize, reports: &[&FileReport]) -> Vec<String> {
    let workloads = reports.iter().flat_map(|report| &report.workloads);
    let is_meant = workloads.filter(|workload| {
        workload.policies.iter().any(|policy_report| {
            *policy_report.policy == *policy.identity && policy_report.rules.contains(&rule)
        })
    });
    is_meant.map(|workload| workload.title()).collect()
}
