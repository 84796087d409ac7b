//! Skips policies with `failurePolicy: Ignore` that are not idempotent, which only the finished plan shows.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::manifest::pod::Workload;
use crate::plan::{WorkloadPlan, plan, plan_without};
use crate::policy::{FailurePolicy, Policy};

use super::document::DocumentTask;

impl DocumentTask<'_> {
    /// Plans a workload without a record. Policies that fail on their own result and may be ignored are left out: the last
    /// one first, because it may be what another one does not go together with.
    pub(super) fn plan_with_ignored<'w>(&self, workload: &Workload<'w>) -> WorkloadPlan<'w> {
        let mut ignored = BTreeMap::new();
        let mut planned = plan(workload, self.setting.run, None);
        while let Some((policy, problem)) = self.repeated_and_ignored(workload, &planned) {
            ignored.insert(policy, vec![problem]);
            planned = plan_without(workload, self.setting.run, None, ignored.clone());
        }
        planned
    }

    /// The index of the last policy that a second run would apply again and that may be ignored, and the problem.
    fn repeated_and_ignored(
        &self,
        workload: &Workload<'_>,
        planned: &WorkloadPlan<'_>,
    ) -> Option<(usize, Diagnostic)> {
        let (policies, options) = (self.setting.policies, self.setting.options);
        let may_be_ignored = |policy: &Policy| policy.failure_policy == FailurePolicy::Ignore;
        // With a record, policies do not see their own output.
        if !policies.iter().any(may_be_ignored)
            || !planned.draft.is_changed()
            || planned.record.is_some()
            || options.is_recorded_when_written()
        {
            return None;
        }
        let problems = self.idempotence_problems(workload, &planned.draft, &planned.policies);
        problems.into_iter().rev().find_map(|problem| {
            let owner = problem.policy.as_deref()?;
            let is_owner = |policy: &Policy| policy.identity == owner && may_be_ignored(policy);
            let at = policies.iter().position(is_owner)?;
            Some((at, problem))
        })
    }
}
