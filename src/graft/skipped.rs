//! Workloads that no policy may touch, whatever it wants.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::policy::Policy;

use super::document::DocumentTask;
use super::orphans::orphans;
use super::refusals::refuse_pod;

impl DocumentTask<'_> {
    /// What every policy comes to with a workload that nobody asked for.
    pub(super) fn not_asked_for(&self) -> Vec<PolicyReport> {
        let skip = Skip::because(SkipCause::NotAskedFor, "not among those of --workload");
        self.report_all_policies(|| Outcome::Skipped(skip.clone()))
    }

    /// Warnings about what the workload has of policies that are not given.
    pub(super) fn orphans(&self, workload: &Workload<'_>) -> Vec<Diagnostic> {
        let setting = self.setting;
        let locked = |workload: &Workload<'_>| self.locked_record(workload).ok().flatten();
        let orphans = orphans(workload, setting.policies, setting.options, locked);
        self.of_workload(orphans, workload)
    }

    /// Why a pod cannot be edited, where one of the policies is for it.
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

    /// The same outcome for every policy.
    pub(super) fn report_all_policies(&self, outcome: impl Fn() -> Outcome) -> Vec<PolicyReport> {
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

    /// Problems with the name of their workload, without those that are accepted.
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
        let is_accepted = |problem: &Diagnostic| {
            !problem.is_error()
                && acknowledged
                    .iter()
                    .any(|acknowledgement| acknowledgement.covers(problem))
        };
        named.filter(|problem| !is_accepted(problem)).collect()
    }
}
