//! Decides what policies change in a workload. The result is a draft and a report; no text is made here.

mod added_containers;
mod apply;
mod baseline;
mod check;
mod checksums;
pub(crate) mod companions;
mod compose;
mod config_keys;
mod conflict;
mod containers;
mod defaults;
mod dependent_defaults;
pub mod draft;
pub(crate) mod draft_paths;
mod env;
mod env_from;
mod env_order;
mod ephemeral;
mod equality;
mod expand;
mod faults;
mod forbidden;
mod foreign;
mod joined;
mod kept_policies;
pub(crate) mod marks;
pub(crate) mod metrics;
mod missing_volumes;
mod mutation;
mod needs;
mod notes;
mod order;
mod os_rules;
pub(crate) mod patch;
mod patch_guard;
mod patch_limits;
mod patches;
mod planner;
mod pod;
mod pod_fields;
mod pod_rules;
mod positions;
mod qos;
mod rebase;
pub(crate) mod reconcile;
pub(crate) mod recording;
mod reference_rules;
pub mod removal;
mod renamed_items;
pub(crate) mod replay;
mod restored;
mod since;
mod skips;
mod uptake;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use crate::change::{Change, ChangeTarget};
use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{Inventory, written_name};
use crate::manifest::pod::Workload;
use crate::options::Options;
use crate::outcome::needs::RunNeeds;
use crate::outcome::{GeneratedObject, ObjectName, Outcome, PolicyReport};
use crate::policy::{ChecksumAnnotation, Policy, PolicyValue};
use crate::record::Record;
use crate::select::Baseline;
use renamed_items::unclear_items;
use replay::Replay;

use apply::{PolicyDetails, RuleContext, apply, failed};
use draft::Draft;
pub(crate) use faults::are_annotations_too_long;
pub(crate) use kept_policies::faults_of_kept;
use marks::{mark, stale_marks};
use missing_volumes::MissingVolume;
pub use planner::explain as explain_refusal;
pub(crate) use planner::refusal_diagnostic;
use recording::{
    EarlierRun, FoldStep, Recording, RuleNotes, SatisfiedChange, idle_policies, kept, policy_order,
};
use since::SinceEarlier;

pub use crate::record::MARKER;

/// The plan of all policies for one workload.
#[derive(Debug, Clone)]
pub struct WorkloadPlan<'t> {
    /// The workload as it will be.
    pub draft: Draft<'t>,
    /// What each policy did.
    pub policies: Vec<PolicyReport>,
    /// Objects that the policies generate beside the workload and that are not among the manifests yet.
    pub companions: Vec<GeneratedObject>,
    /// The names of those that are among the manifests.
    pub present: Vec<ObjectName>,
    /// Errors, warnings and notes.
    pub diagnostics: Vec<Diagnostic>,
    /// Ephemeral containers; empty unless the options ask for them.
    pub ephemeral_containers: Vec<PolicyValue>,
    /// The record of the injected changes, if the run keeps one.
    pub record: Option<Record>,
    /// What the policies need from a cluster; empty unless the options ask for it.
    pub needs: RunNeeds,
    /// Changes that the manifest already satisfies, with the policy's identity; empty unless the run records.
    pub satisfied: Vec<(String, SatisfiedChange)>,
    /// The draft after each policy that changed it, with the policy's index; empty unless the options ask for authors.
    pub steps: Vec<(usize, Draft<'t>)>,
}

impl<'t> From<Draft<'t>> for WorkloadPlan<'t> {
    /// The plan before the first policy.
    fn from(draft: Draft<'t>) -> Self {
        WorkloadPlan {
            draft,
            policies: Vec::new(),
            companions: Vec::new(),
            present: Vec::new(),
            diagnostics: Vec::new(),
            ephemeral_containers: Vec::new(),
            record: None,
            needs: RunNeeds::default(),
            satisfied: Vec::new(),
            steps: Vec::new(),
        }
    }
}

/// What all workloads of a run are planned with.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'r> {
    /// The policies, in the order in which they apply.
    pub policies: &'r [Policy],
    /// The options of the run.
    pub options: &'r Options,
    /// What the policies look up.
    pub inventory: &'r Inventory,
}

impl<'r> RunContext<'r> {
    /// The context of a run.
    pub fn new(policies: &'r [Policy], options: &'r Options, inventory: &'r Inventory) -> Self {
        RunContext {
            policies,
            options,
            inventory,
        }
    }
}

/// Applies the policies to a workload in order; each plans on the result of those before it. What an earlier run
/// injected has already been taken out of `workload`.
pub fn plan<'t>(
    workload: &Workload<'t>,
    run: RunContext<'_>,
    earlier: Option<&EarlierRun<'_>>,
) -> WorkloadPlan<'t> {
    plan_without(workload, run, earlier, BTreeMap::new())
}

/// [`plan`] without some of the policies: those whose result has problems, given by their index.
pub(crate) fn plan_without<'t>(
    workload: &Workload<'t>,
    run: RunContext<'_>,
    earlier: Option<&EarlierRun<'_>>,
    mut failed_late: BTreeMap<usize, Vec<Diagnostic>>,
) -> WorkloadPlan<'t> {
    for env in run.options.image_env.iter().filter(|env| !env.is_met()) {
        let containers = workload.containers().iter();
        containers.for_each(|container| env.match_container(container.name));
    }
    let base = added_containers::base_of(workload, run, earlier.is_some());
    // An existing record must stay true, so it is updated even if this run would not create one.
    let is_recording = run.options.is_recording() || earlier.is_some();
    let plan = PlanContext {
        run,
        workload,
        base: &base,
        earlier,
        is_recording,
    };
    let mut without_place = BTreeSet::new();
    // Two results are known only when all policies have been applied, and each starts the plan over. If a checksum or a
    // mount of a policy fails, the others are planned without that policy. If a recorded policy now changes nothing, it
    // no longer marks the position of the kept policies behind it. Both sets only grow, so the loop ends.
    loop {
        match plan.apply_with_checksums(&failed_late, &without_place) {
            Ok(applied) => {
                let idle = idle_policies(&plan, applied.recording.as_ref());
                if idle.is_subset(&without_place) {
                    return plan.finish(applied);
                }
                without_place.extend(idle);
            }
            Err((policy, problems)) => drop(failed_late.insert(policy, problems)),
        }
    }
}

/// Returns the plan of a workload for the objects that policies generate beside it. Checksums are left out: they may be
/// of objects that are generated for other workloads.
pub(crate) fn plan_companions<'t>(
    workload: &Workload<'t>,
    run: RunContext<'_>,
) -> WorkloadPlan<'t> {
    let base = added_containers::base_of(workload, run, false);
    let draft = Draft::new(workload.tree, workload.object.node);
    plan_once(draft, workload, &base, run)
}

/// Applies the policies to a draft of the workload, without checksums and records.
fn plan_once<'t>(
    draft: Draft<'t>,
    workload: &Workload<'t>,
    base: &Baseline,
    run: RunContext<'_>,
) -> WorkloadPlan<'t> {
    let plan = PlanContext {
        run,
        workload,
        base,
        earlier: None,
        is_recording: false,
    };
    let mut failed_late = BTreeMap::new();
    loop {
        let mut applying = plan.apply_all(draft.clone(), &failed_late, &BTreeSet::new());
        match plan.check_volumes(&mut applying) {
            Ok(()) => return applying.planned,
            Err((policy, problems)) => drop(failed_late.insert(policy, problems)),
        }
    }
}

/// The context of a plan: a workload and all policies.
struct PlanContext<'r, 't> {
    run: RunContext<'r>,
    workload: &'r Workload<'t>,
    base: &'r Baseline,
    earlier: Option<&'r EarlierRun<'r>>,
    /// Whether the changes go into a record.
    is_recording: bool,
}

/// The plan while policies are applied.
struct PlanInProgress<'r, 't> {
    planned: WorkloadPlan<'t>,
    /// The checksums that are still to be added, with the index of their policy.
    checksums: Vec<(usize, Vec<ChecksumAnnotation>)>,
    /// The volumes that are mounted and may still be added, with the index of the policy.
    missing_volumes: Vec<(usize, Vec<MissingVolume>)>,
    recording: Option<Recording<'r, 't>>,
    /// The policies that put there what another one has put there already.
    sharing: BTreeSet<Arc<str>>,
}

/// The index of a policy, and its problems that are known only when all policies have been applied.
type LateFailure = (usize, Vec<Diagnostic>);

impl<'r> Deref for PlanContext<'r, '_> {
    type Target = RunContext<'r>;

    fn deref(&self) -> &Self::Target {
        &self.run
    }
}

impl<'r, 't> PlanContext<'r, 't> {
    fn subject(&'r self, policy: &'r Policy) -> RuleContext<'r, 't> {
        RuleContext { plan: self, policy }
    }

    /// Applies all policies in order and collects the checksums that they ask for.
    fn apply_all(
        &self,
        draft: Draft<'t>,
        failed_late: &BTreeMap<usize, Vec<Diagnostic>>,
        without_place: &BTreeSet<&str>,
    ) -> PlanInProgress<'_, 't> {
        let begin = || Recording::begin(self, &draft);
        let recording = self.is_recording.then(begin).flatten();
        let mut applying = PlanInProgress {
            planned: WorkloadPlan::from(draft),
            checksums: Vec::new(),
            missing_volumes: Vec::new(),
            recording,
            sharing: BTreeSet::new(),
        };
        for turn in policy_order(self, without_place) {
            match turn {
                FoldStep::Given(at) => self.apply_given(at, failed_late.get(&at), &mut applying),
                FoldStep::Kept(redo) => {
                    let done = self.put_back(redo, &mut applying);
                    let problem = done.err().map(|problem| *problem);
                    applying.planned.diagnostics.extend(problem);
                }
            }
        }
        applying
    }

    /// Restores the changes of a recorded policy that is not given in this run.
    fn put_back(
        &self,
        redo: &Replay,
        applying: &mut PlanInProgress<'_, 't>,
    ) -> Result<(), Box<Diagnostic>> {
        match &mut applying.recording {
            Some(recording) => recording.restore_policy(redo, &mut applying.planned.draft),
            None => Err(Box::new(recording::cannot_update_record(self.workload))),
        }
    }

    /// Applies a given policy, records its changes and reports its outcome.
    fn apply_given(
        &self,
        at: usize,
        failed_late: Option<&Vec<Diagnostic>>,
        applying: &mut PlanInProgress<'_, 't>,
    ) {
        let planned = &mut applying.planned;
        let policy = &self.policies[at];
        let first = planned.diagnostics.len();
        let mut found = PolicyDetails::default();
        let outcome = match failed_late {
            Some(problems) => failed(policy, problems.clone(), planned),
            None => {
                let earlier = &self.policies[..at];
                apply(self.subject(policy), earlier, planned, &mut found)
            }
        };
        let identity: Arc<str> = Arc::from(policy.identity.as_str());
        for diagnostic in &mut planned.diagnostics[first..] {
            let owner = || Arc::clone(&identity);
            diagnostic.policy.get_or_insert_with(owner);
        }
        let met = found.notes.satisfied.iter().cloned();
        let met = met.map(|met| (policy.identity.clone(), met));
        planned.satisfied.extend(met);
        if found.notes.is_sharing() {
            applying.sharing.insert(Arc::clone(&identity));
        }
        if let Some(recording) = &mut applying.recording {
            recording.note(policy, &planned.draft, found.notes);
        }
        if self.options.authors && matches!(outcome, Outcome::Injected(_)) {
            let step = (planned.policies.len(), planned.draft.clone());
            planned.steps.push(step);
        }
        planned.policies.push(PolicyReport {
            policy: identity,
            outcome,
            rules: found.rules,
            is_older: false,
        });
        if !found.checksums.is_empty() {
            applying.checksums.push((at, found.checksums));
        }
        if !found.missing_volumes.is_empty() {
            applying.missing_volumes.push((at, found.missing_volumes));
        }
    }

    /// Applies all policies, then adds their checksums: these cover what the finished pod template refers to.
    fn apply_with_checksums(
        &self,
        failed_late: &BTreeMap<usize, Vec<Diagnostic>>,
        without_place: &BTreeSet<&str>,
    ) -> Result<PlanInProgress<'_, 't>, LateFailure> {
        let draft = Draft::new(self.workload.tree, self.workload.object.node);
        let mut applying = self.apply_all(draft, failed_late, without_place);
        self.check_volumes(&mut applying)?;
        for (at, found) in std::mem::take(&mut applying.checksums) {
            let planned = &mut applying.planned;
            self.add_checksums(at, &found, planned)?;
            if let Some(recording) = &mut applying.recording {
                recording.note(&self.policies[at], &planned.draft, RuleNotes::default());
            }
        }
        Ok(applying)
    }

    /// Writes marker and record, adapts outcomes to an earlier run, and adds the diagnostics of the whole plan.
    fn finish(&self, applied: PlanInProgress<'_, 't>) -> WorkloadPlan<'t> {
        let (mut planned, mut recording) = (applied.planned, applied.recording);
        planned.draft.restore_unchanged();
        if !planned.draft.is_changed() && !self.has_kept() {
            drop_reverted_changes(&mut planned, recording.as_mut());
        }
        let stale = stale_marks(self.workload, self.policies, &planned, self.earlier);
        planned.diagnostics.extend(stale);
        let can_record = recording.is_some();
        let marked = match recording {
            Some(recording) => {
                let finished = recording.finish(&mut planned.draft);
                finished.map(|record| planned.record = record)
            }
            None if !self.options.no_marker => mark(self.workload, &mut planned, &applied.sharing),
            None => Ok(()),
        };
        if self.is_recording && !can_record && planned.draft.is_changed() {
            planned.diagnostics.push(match self.earlier {
                Some(_) => recording::cannot_update_record(self.workload),
                None => recording::cannot_record(self.workload),
            });
        }
        let refused = marked.map_err(|refusal| refusal_diagnostic(&refusal, self.workload));
        planned.diagnostics.extend(refused.err());
        planned.diagnostics.extend(self.missing());
        self.report_since(&mut planned);
        let is_injected = |report: &PolicyReport| matches!(report.outcome, Outcome::Injected(_));
        if self.options.lint && planned.policies.iter().any(is_injected) {
            let faults = faults::of_input(self.workload, &planned.draft, self.earlier);
            planned.diagnostics.extend(faults);
        }
        planned
    }

    /// Whether a recorded policy stays that is not given in this run.
    fn has_kept(&self) -> bool {
        let earlier = self.earlier;
        earlier.is_some_and(|earlier| kept(self.policies, earlier, self.options).next().is_some())
    }

    /// Notes about objects that expressions looked up in vain: the cluster may have them although the files do not.
    fn missing(&self) -> Vec<Diagnostic> {
        let missing = self.base.missing.borrow();
        let note = |name: &String| {
            let message = format!(
                "an expression looks up the {name}, which is not among the files of this run"
            );
            let note = Diagnostic::note(Code::MissingObject, message);
            note.at(self.workload.name_place(), "for this workload")
                .help(
                    "if the cluster has it, pass its file with `--context`: the policy treats it \
                     as missing",
                )
        };
        missing.iter().map(note).collect()
    }

    /// Turns each outcome into the change since the earlier run. The plan itself starts from the workload without it.
    fn report_since(&self, planned: &mut WorkloadPlan<'t>) {
        let Some(earlier) = self.earlier else { return };
        let unclear = unclear_items(self.workload, planned, earlier);
        planned.diagnostics.extend(unclear);
        let written: Vec<String> = planned
            .companions
            .iter()
            .map(|companion| written_name(&companion.object))
            .collect();
        let since = SinceEarlier {
            draft: &planned.draft,
            record: planned.record.as_ref(),
            earlier,
            is_refused: planned.diagnostics.iter().any(Diagnostic::is_error),
        };
        for report in &mut planned.policies {
            let outcome = std::mem::replace(&mut report.outcome, Outcome::UpToDate);
            report.outcome = since.outcome(&report.policy, outcome);
            if let Outcome::Injected(changes) = &mut report.outcome {
                // An object that was there already is only recorded.
                changes.retain(|change| match &change.target {
                    ChangeTarget::Object(name) => !change.is_generated() || written.contains(name),
                    _ => true,
                });
                if changes.is_empty() {
                    report.outcome = Outcome::UpToDate;
                }
            }
            report.is_older = !self.options.brief && since.is_older(&report.policy);
        }
        let dropped = since.dropped(self.policies, self.options);
        planned.policies.extend(dropped);
    }
}

/// Drops changes that cancel each other out, such as a removal that a later policy undoes: the manifest is as it was.
/// What policies generate stays.
fn drop_reverted_changes(
    planned: &mut WorkloadPlan<'_>,
    recording: Option<&mut Recording<'_, '_>>,
) {
    if let Some(recording) = recording {
        recording.keep_only_generated();
    }
    for report in &mut planned.policies {
        let Outcome::Injected(changes) = &mut report.outcome else {
            continue;
        };
        changes.retain(Change::is_generated);
        if changes.is_empty() {
            report.outcome = Outcome::UpToDate;
        }
    }
}
