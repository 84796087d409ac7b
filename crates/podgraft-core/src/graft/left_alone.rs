//! Workloads that are left alone, whatever the policies select, and injections of policies that are not among the given
//! ones: this run neither updates nor removes them.

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::ownership::marked_policies;
use crate::plan::recording::is_dropped;
use crate::record::words::undo_command;
use crate::record::{MARKER, PolicyRecord};
use crate::undo::read_record;
use crate::yaml::tree::NodeId;

use super::document::DocumentTask;
use super::refusals::refuse_pod;

impl DocumentTask<'_> {
    /// The policy reports of a workload that `--workload` excludes.
    pub(super) fn not_asked_for(&self) -> Vec<PolicyReport> {
        let skip = Skip::because(SkipCause::NotAskedFor, "not matched by --workload");
        self.report_all_policies(&Outcome::Skipped(skip))
    }

    /// Why the pod cannot be edited. `None` if it can, or if no policy selects it.
    pub(super) fn refused_pod(
        &self,
        workload: &Workload<'_>,
        planned: &[PolicyReport],
    ) -> Option<Diagnostic> {
        match planned.iter().all(is_left_alone) {
            true => None,
            false => refuse_pod(workload),
        }
    }

    /// Reports that the policies which select a workload have failed, as it cannot be edited.
    pub(super) fn failed_if_selected(&self, planned: Vec<PolicyReport>) -> Vec<PolicyReport> {
        let given = self.setting.policies.iter().zip(planned);
        let reports = given.map(|(policy, report)| match is_left_alone(&report) {
            true => report,
            false => PolicyReport::of(&policy.identity, Outcome::Failed(None)),
        });
        reports.collect()
    }

    /// Reports the same outcome for every policy.
    pub(super) fn report_all_policies(&self, outcome: &Outcome) -> Vec<PolicyReport> {
        let policies = self.setting.policies.iter();
        policies
            .map(|policy| PolicyReport::of(&policy.identity, outcome.clone()))
            .collect()
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

impl DocumentTask<'_> {
    /// Returns a warning for each policy that injected something into the workload and is not given: this run neither
    /// updates nor removes it. A policy of another set belongs to another run and is not reported.
    pub(super) fn orphans(&self, workload: &Workload<'_>) -> Vec<Diagnostic> {
        let (policies, options) = (self.setting.policies, self.setting.options);
        let Some(given) = &options.given else {
            return Vec::new();
        };
        let Some(marker) = workload.workload_annotation(MARKER) else {
            return Vec::new();
        };
        let marked = workload.tree.scalar(marker).unwrap_or_default();
        let marked = marked_policies(marked);
        let is_given = |name: &str| given.iter().any(|given| given == name);
        let recorded = match read_record(workload.tree, workload.object.node) {
            // Only asks the lock file if the marker names a policy that is not given.
            Ok(None) if marked.clone().all(is_given) => return Vec::new(),
            Ok(None) => self.locked_record(workload).ok().flatten(),
            Ok(recorded) => recorded,
            // `read_records` refuses a record that cannot be read.
            Err(_) => return Vec::new(),
        };
        let recorded = recorded.map_or_else(Vec::new, |recorded| recorded.record.policies);
        let has_record = |name: &str| recorded.iter().any(|policy| policy.policy == name);
        let unrecorded = marked.filter(|name| !has_record(name));
        let unrecorded = unrecorded.map(|name| PolicyRecord {
            policy: name.to_owned(),
            set: options.set.clone(),
            ..PolicyRecord::default()
        });
        let unrecorded: Vec<PolicyRecord> = unrecorded.collect();
        let renamed = |name: &String| {
            let mut policies = policies.iter();
            policies.any(|given| given.renamed_from.as_ref() == Some(name))
        };
        let orphans = recorded.iter().chain(&unrecorded).filter(|policy| {
            let name = &policy.policy;
            let is_pruned = has_record(name) && is_dropped(policy, options);
            !is_given(name) && !renamed(name) && !is_pruned && policy.set == options.set
        });
        let help = |policy: &PolicyRecord| {
            orphan_help(workload, &policy.policy, has_record(&policy.policy))
        };
        let orphans =
            orphans.map(|policy| orphan(workload, marker, &policy.policy).help(help(policy)));
        self.of_workload(orphans.collect(), workload)
    }
}

fn is_left_alone(report: &PolicyReport) -> bool {
    matches!(&report.outcome, Outcome::Skipped(skip) if !skip.is_selected)
}

fn orphan(workload: &Workload<'_>, marker: NodeId, policy: &str) -> Diagnostic {
    let message = format!(
        "{} contains injections of policy `{policy}`, which is not among the given policies",
        workload.title()
    );
    Diagnostic::warning(Code::Orphaned, message)
        .at(workload.place(marker), "injected by these policies")
        .of_policy(policy)
}

fn orphan_help(workload: &Workload<'_>, name: &str, has_record: bool) -> String {
    match has_record {
        true => format!(
            "pass the policy as well, or remove it with `{}`",
            undo_command(name, &workload.source.name)
        ),
        false => format!(
            "pass the policy as well, or remove by hand what it injected and `{name}` from \
             {MARKER}: without a record, podgraft cannot"
        ),
    }
}
