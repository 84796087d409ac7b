//! Findings that somebody has looked at and accepted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::diagnostic::{Code, Diagnostic};
use crate::source::Place;

use super::WorkloadPattern;

/// A finding that is accepted, with all like it.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    /// Its code.
    pub code: Code,
    /// Whose workloads; all where there is none.
    pub workload: Option<WorkloadPattern>,
    /// Of which policy; all where there is none.
    pub policy: Option<String>,
    /// Where it is written.
    pub at: Place,
    is_used: Arc<AtomicBool>,
}

impl Acknowledgement {
    /// One that nothing has used yet.
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

    /// Whether this is about a finding; then it is used.
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

    /// Whether it covered anything.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}
