//! The changes of a run by workload and policy, in the manner of `terraform plan`.

use std::fmt::Write as _;

use crate::change::ChangeKind;
use crate::outcome::{ReportedFile, WorkloadReport, WorkloadStatus};
use crate::wording::{Paint, count, one_line};

/// The changed workloads with the changes of each policy, followed by the totals.
pub fn render(files: &[ReportedFile<'_>], paint: Paint) -> String {
    let mut summary = String::new();
    let (mut changed, mut unchanged, mut failed) = (0, 0, 0);
    for file in files {
        for workload in file.report.input_workloads() {
            match workload.status() {
                status if status.is_change() => {
                    changed += 1;
                    render_workload(file.name, workload, paint, &mut summary);
                }
                WorkloadStatus::Failed => failed += 1,
                _ => unchanged += 1,
            }
        }
    }
    let left_alone = match failed {
        0 => String::new(),
        _ => format!(", {failed} left alone"),
    };
    let _ = writeln!(
        summary,
        "Plan: {} to change, {unchanged} unchanged{left_alone}.",
        count(changed, "workload")
    );
    summary
}

fn render_workload(file: &str, workload: &WorkloadReport, paint: Paint, summary: &mut String) {
    let title = paint.wrap("1", &one_line(&workload.title()));
    let _ = writeln!(summary, "{title} ({}:{})", one_line(file), workload.line);
    for policy_report in &workload.policies {
        let Some(changes) = policy_report.changes() else {
            continue;
        };
        let _ = writeln!(summary, "  {}", one_line(&policy_report.policy));
        for change in changes {
            let sign = match change.kind() {
                ChangeKind::Add => paint.wrap("32", "+"),
                ChangeKind::Change | ChangeKind::Adopt => paint.wrap("33", "~"),
                ChangeKind::TakeOut => paint.wrap("31", "-"),
            };
            let _ = writeln!(summary, "    {sign} {}", one_line(&change.to_string()));
        }
    }
    summary.push('\n');
}
