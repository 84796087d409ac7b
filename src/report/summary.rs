//! The changes of a run by workload and policy, in the manner of `terraform plan`.

use std::fmt::Write as _;

use crate::change::ChangeVerb;
use crate::outcome::{Outcome, ReportedFile, WorkloadReport};
use crate::wording::{Paint, count, one_line};

/// The changed workloads with the changes of each policy, followed by the totals.
pub fn render(files: &[ReportedFile<'_>], paint: Paint) -> String {
    let mut summary = String::new();
    let (mut changed, mut unchanged) = (0, 0);
    for file in files {
        for workload in file.report.input_workloads() {
            if !workload.status().is_change() {
                unchanged += 1;
                continue;
            }
            changed += 1;
            render_workload(file.name, workload, paint, &mut summary);
        }
    }
    let _ = writeln!(
        summary,
        "Plan: {} to change, {unchanged} unchanged.",
        count(changed, "workload")
    );
    summary
}

fn render_workload(file: &str, workload: &WorkloadReport, paint: Paint, summary: &mut String) {
    let title = paint.wrap("1", &one_line(&workload.title()));
    let _ = writeln!(summary, "{title} ({}:{})", one_line(file), workload.line);
    for policy_report in &workload.policies {
        let changes = match &policy_report.outcome {
            Outcome::Injected(changes) | Outcome::TakenOut(changes) => changes,
            Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed => continue,
        };
        let _ = writeln!(summary, "  {}", one_line(&policy_report.policy));
        for change in changes {
            let sign = match change.verb() {
                ChangeVerb::Add => paint.wrap("32", "+"),
                ChangeVerb::Change | ChangeVerb::Adopt => paint.wrap("33", "~"),
                ChangeVerb::TakeOut => paint.wrap("31", "-"),
            };
            let _ = writeln!(summary, "    {sign} {}", one_line(&change.to_string()));
        }
    }
    summary.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Change, ChangeTarget, Operation};
    use crate::report::tests::{added_volume, report_of, workload};

    #[test]
    fn each_policy_lists_what_it_adds_and_the_plan_is_counted() {
        let injected = Outcome::Injected(vec![
            added_volume(),
            Change::new(
                Operation::Update,
                ChangeTarget::env("app", "JAVA_TOOL_OPTIONS"),
            ),
        ]);
        let report = report_of(vec![
            workload("orders", 0..1, injected),
            workload("cart", 1..1, Outcome::UpToDate),
        ]);
        let file = ReportedFile {
            name: "a.yaml",
            path: b"a.yaml",
            text: b"",
            report: &report,
        };
        let expected = "Deployment shop/orders (a.yaml:1)\n  agent\n    + volume agent\n    ~ app: env JAVA_TOOL_OPTIONS updated\n\n\
                        Plan: 1 workload to change, 1 unchanged.\n";
        assert_eq!(render(&[file], Paint::Plain), expected);
    }
}
