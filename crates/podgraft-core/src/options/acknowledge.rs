//! Findings that the configuration accepts, because somebody has looked at them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::diagnostic::{Code, Diagnostic};
use crate::source::Place;

use super::WorkloadPattern;

/// An accepted finding. It covers all findings with its code, workload and policy.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    /// The code of the finding.
    pub code: Code,
    /// The workloads; `None` means all.
    pub workload: Option<WorkloadPattern>,
    /// The identity of the policy; `None` means any.
    pub policy: Option<String>,
    /// Its place in the configuration.
    pub at: Place,
    is_used: Arc<AtomicBool>,
}

impl Acknowledgement {
    /// An acknowledgement that has not covered anything yet.
    pub fn new(
        code: Code,
        workload: Option<WorkloadPattern>,
        policy: Option<String>,
        at: Place,
    ) -> Self {
        Acknowledgement {
            code,
            workload,
            policy,
            at,
            is_used: Arc::default(),
        }
    }

    /// Whether it covers a finding. If so, it is marked as used.
    pub fn covers(&self, finding: &Diagnostic) -> bool {
        let is_of_workload = |pattern: &WorkloadPattern| {
            let title = finding.workload.as_deref();
            title.is_some_and(|title| pattern.fits_title(title))
        };
        let covers = self.code == finding.code
            && self.workload.as_ref().is_none_or(is_of_workload)
            && self
                .policy
                .as_ref()
                .is_none_or(|policy| finding.policy.as_deref() == Some(policy));
        if covers {
            self.is_used.store(true, Ordering::Relaxed);
        }
        covers
    }

    /// Whether it has covered a finding.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}
