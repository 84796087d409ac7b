//! Workloads that no policy may touch, whatever it wants.

use std::sync::Arc;

use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::policy::Policy;

use super::Chunk;
use super::orphans::orphans;
use super::refusals::{refuse_pod, refuse_workload};

impl Chunk<'_, '_> {
    /// What every policy comes to, where the workload is not looked at any further.
    pub(super) fn left_alone(&mut self, workload: &Workload<'_>) -> Option<Vec<PolicyReport>> {
        if !self.is_wanted(workload) {
            return Some(self.all(|| {
                Outcome::Skipped(Skip::because(
                    SkipCause::NotAskedFor,
                    "not among those of --workload",
                ))
            }));
        }
        let orphans = orphans(
            workload,
            self.setting.policies,
            self.setting.options,
            |workload| self.locked_record(workload).ok().flatten(),
        );
        self.add_diagnostics(orphans, workload);
        let refused = refuse_workload(workload)?;
        self.report.diagnostics.push(refused);
        Some(self.all(|| Outcome::Failed))
    }

    /// What every policy comes to, where one of them is for a workload whose pod cannot be edited.
    pub(super) fn refused_pod(
        &mut self,
        workload: &Workload<'_>,
        planned: &[PolicyReport],
    ) -> Option<Vec<PolicyReport>> {
        let is_left_alone = |report: &PolicyReport| matches!(&report.outcome, Outcome::Skipped(skip) if !skip.is_selected);
        if planned.iter().all(is_left_alone) {
            return None;
        }
        let refused = refuse_pod(workload)?;
        self.report.diagnostics.push(refused);
        Some(self.all(|| Outcome::Failed))
    }

    pub(super) fn all(&self, outcome: impl Fn() -> Outcome) -> Vec<PolicyReport> {
        let report = |policy: &Policy| PolicyReport {
            policy: Arc::from(policy.identity.as_str()),
            outcome: outcome(),
            rules: Vec::new(),
            is_older: false,
        };
        self.setting.policies.iter().map(report).collect()
    }

    pub(super) fn is_wanted(&self, workload: &Workload<'_>) -> bool {
        let patterns = &self.setting.options.workloads;
        let (kind, namespace) = (&workload.object.kind, workload.namespace.as_deref());
        // Every pattern is asked: one that fits nothing is an error.
        let fitting = patterns
            .iter()
            .filter(|pattern| pattern.matches(kind, namespace, &workload.name));
        patterns.is_empty() || fitting.count() > 0
    }
}
