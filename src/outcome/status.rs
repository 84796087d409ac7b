//! What became of a workload, over all policies.

use super::{FileReport, Outcome, PolicyReport, WorkloadReport};

/// So many workloads of a very large text are listed in its report at all.
const MAX_LISTED: usize = 20_000;

/// The status of a workload over all policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadStatus {
    /// Changed.
    Injected,
    /// Changed, and only by what was taken out.
    TakenOut,
    /// What was there is a policy's own now.
    Adopted,
    /// Selected, and everything is there already.
    Unchanged,
    /// A policy wanted it and could not.
    Failed,
    /// No policy wanted it.
    NotSelected,
}

impl FileReport {
    /// Counts the workloads of a very large text that nobody would read the names of, instead of listing them.
    pub fn limit_listed(&mut self) {
        if self.workloads.len() > MAX_LISTED {
            for workload in self.workloads.drain(MAX_LISTED..) {
                *self.unlisted.entry(workload.status()).or_default() += 1;
            }
        }
    }
}

impl WorkloadReport {
    /// Whether a policy took over what stood there.
    pub fn is_adopted(&self) -> bool {
        self.policies.iter().any(PolicyReport::is_adopted)
    }

    /// What became of it.
    pub fn status(&self) -> WorkloadStatus {
        let any = |is: fn(&Outcome) -> bool| {
            self.policies
                .iter()
                .any(|policy_report| is(&policy_report.outcome))
        };
        let is_only_taken_out = any(|outcome| matches!(outcome, Outcome::TakenOut(_)))
            && !any(|outcome| matches!(outcome, Outcome::Injected(_)));
        if self.is_adopted() {
            WorkloadStatus::Adopted
        } else if self.is_changed() {
            if is_only_taken_out {
                WorkloadStatus::TakenOut
            } else {
                WorkloadStatus::Injected
            }
        } else if any(|outcome| *outcome == Outcome::Failed) {
            WorkloadStatus::Failed
        } else if any(|outcome| matches!(outcome, Outcome::UpToDate | Outcome::Injected(_))) {
            WorkloadStatus::Unchanged
        } else {
            WorkloadStatus::NotSelected
        }
    }
}
