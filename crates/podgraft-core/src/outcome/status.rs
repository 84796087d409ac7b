//! The status of a workload over all policies.

use super::{FileReport, Outcome, PolicyReport, WorkloadReport};

/// The most workloads of a text that its report lists.
const MAX_LISTED: usize = 20_000;

/// The status of a workload over all policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadStatus {
    /// Changed, or an object beside it is.
    Injected,
    /// The same, but only by removing what an earlier run injected.
    TakenOut,
    /// A policy adopted something that was there.
    Adopted,
    /// Selected, and everything is in place already.
    Unchanged,
    /// A policy selected it but failed.
    Failed,
    /// No policy selected it.
    NotSelected,
}

impl WorkloadStatus {
    /// Whether something of the workload changes.
    pub(crate) fn is_change(self) -> bool {
        match self {
            WorkloadStatus::Injected | WorkloadStatus::TakenOut | WorkloadStatus::Adopted => true,
            WorkloadStatus::Unchanged | WorkloadStatus::Failed | WorkloadStatus::NotSelected => {
                false
            }
        }
    }
}

impl FileReport {
    /// Limits the listed workloads of a very large text: the others are only counted, by status.
    pub fn limit_listed(&mut self) {
        if self.workloads.len() > MAX_LISTED {
            for workload in self.workloads.drain(MAX_LISTED..) {
                *self.unlisted.entry(workload.status()).or_default() += 1;
            }
        }
    }
}

impl WorkloadReport {
    /// Whether a policy adopted something that was there.
    pub fn is_adopted(&self) -> bool {
        self.policies.iter().any(PolicyReport::is_adopted)
    }

    /// Whether a policy has an outcome for which `is_meant` holds.
    pub fn has_outcome(&self, is_meant: impl Fn(&Outcome) -> bool) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy_report| is_meant(&policy_report.outcome))
    }

    /// Returns the status of the workload.
    pub fn status(&self) -> WorkloadStatus {
        let is_injected = self.has_outcome(|outcome| matches!(outcome, Outcome::Injected(_)));
        let is_taken_out = self.has_outcome(|outcome| outcome.removals().is_some());
        let has_failed = self.has_outcome(|outcome| matches!(outcome, Outcome::Failed(_)));
        if self.is_adopted() {
            WorkloadStatus::Adopted
        } else if has_failed && !self.is_changed() {
            WorkloadStatus::Failed
        } else if is_taken_out && !is_injected {
            WorkloadStatus::TakenOut
        } else if is_injected || self.is_changed() {
            WorkloadStatus::Injected
        } else if self.has_outcome(|outcome| *outcome == Outcome::UpToDate) {
            WorkloadStatus::Unchanged
        } else {
            WorkloadStatus::NotSelected
        }
    }
}
