//! Workloads that are left alone, whatever the policies select.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};

use super::document::DocumentTask;
use super::orphans::orphans;
use super::refusals::refuse_pod;

impl DocumentTask<'_> {
    /// The policy reports of a workload that `--workload` excludes.
    pub(super) fn not_asked_for(&self) -> Vec<PolicyReport> {
        let skip = Skip::because(SkipCause::NotAskedFor, "not among those of --workload");
        self.report_all_policies(|| Outcome::Skipped(skip.clone()))
    }

    /// Warnings about injections in the workload of policies that are not given.
    pub(super) fn orphans(&self, workload: &Workload<'_>) -> Vec<Diagnostic> {
        let setting = self.setting;
        let locked = |workload: &Workload<'_>| {
            let recorded = self.locked_record(workload).ok().flatten();
            recorded.map(|recorded_object| recorded_object.record)
        };
        let orphans = orphans(workload, setting.policies, setting.options, locked);
        self.of_workload(orphans, workload)
    }

    /// Why the pod cannot be edited. `None` if it can, or if no policy selects it.
    pub(super) fn refused_pod(
        &self,
        workload: &Workload<'_>,
        planned: &[PolicyReport],
    ) -> Option<Diagnostic> {
        let is_left_alone = |report: &PolicyReport| matches!(&report.outcome, Outcome::Skipped(skip) if !skip.is_selected);
        match planned.iter().all(is_left_alone) {
            true => None,
            false => refuse_pod(workload),
        }
    }

    /// Reports the same outcome for every policy.
    pub(super) fn report_all_policies(&self, outcome: impl Fn() -> Outcome) -> Vec<PolicyReport> {
        let reports = self.setting.policies.iter().map(|policy| PolicyReport {
            policy: Arc::from(policy.identity.as_str()),
            outcome: outcome(),
            rules: Vec::new(),
            is_older: false,
        });
        reports.collect()
    }

    pub(super) fn is_wanted(&self, workload: &Workload<'_>) -> bool {
        let patterns = &self.setting.options.workloads;
        let (kind, namespace) = (&workload.object.kind, workload.namespace.as_deref());
        // No short circuit: each pattern notes that it matched, and one without a match is an error.
        let fitting = patterns
            .iter()
            .filter(|pattern| pattern.matches(kind, namespace, &workload.name));
        patterns.is_empty() || fitting.count() > 0
    }

    /// Adds the workload's name to problems, and drops warnings that the user acknowledged.
    pub(super) fn of_workload(
        &self,
        problems: Vec<Diagnostic>,
        workload: &Workload<'_>,
    ) -> Vec<Diagnostic> {
        let acknowledged = &self.setting.options.acknowledged;
        let named = problems.into_iter().map(|mut problem| {
            problem
                .workload
                .get_or_insert_with(|| workload.title().into());
            problem
        });
        let counts = |problem: &Diagnostic| {
            problem.is_error() || !acknowledged.iter().any(|known| known.covers(problem))
        };
        named.filter(counts).collect()
    }
}
