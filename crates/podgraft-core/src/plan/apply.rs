//! Applies one policy to one workload: checks that it selects the workload, applies its rules in order, and adds the
//! objects that it generates. The result is the changed draft and an outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use crate::change::{Change, ChangeTarget, Operation, net};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::inventory::written_name;
use crate::manifest::pod::Container;
use crate::outcome::needs::Need;
use crate::outcome::{GeneratedObject, Outcome, Skip, SkipCause};
use crate::policy::{ApplyRules, ChecksumAnnotation, FailurePolicy, Policy, PolicyValue, Rule};
use crate::record::digest;
use crate::select::{NotApplied, WorkloadFacts};
use crate::yaml::tree::NodeId;

use super::added_containers::{self, AddedContainer};
use super::draft::{Draft, DraftValue};
use super::missing_volumes::MissingVolume;
use super::planner::Planner;
use super::recording::RuleNotes;
use super::skips::{no_container, no_rule};
use super::{
    PlanContext, WorkloadPlan, companions, config_keys, ephemeral, expand, forbidden, foreign,
    mutation, needs,
};

/// The reason to skip a policy in a run that adopts others.
const NOT_ADOPTED: &str = "not adopted: some of what it injects is missing";

/// The context in which a rule is applied: its policy, and what is the same for all policies.
#[derive(Clone, Copy)]
pub(super) struct RuleContext<'s, 't> {
    pub plan: &'s PlanContext<'s, 't>,
    pub policy: &'s Policy,
}

impl<'s, 't> Deref for RuleContext<'s, 't> {
    type Target = PlanContext<'s, 't>;

    fn deref(&self) -> &Self::Target {
        self.plan
    }
}

/// Details that applying a policy collects besides its changes.
#[derive(Default)]
pub(super) struct PolicyDetails {
    /// The indexes of the rules that apply to the workload.
    pub rules: Vec<usize>,
    /// The checksums to add when all policies have been applied.
    pub checksums: Vec<ChecksumAnnotation>,
    /// The volumes that the policy mounts and the pod does not have so far.
    pub missing_volumes: Vec<MissingVolume>,
    /// What the record needs beyond the changes themselves.
    pub notes: RuleNotes,
}

impl<'s, 't> RuleContext<'s, 't> {
    /// What expressions can use that are not about a container.
    pub(super) fn facts(&self) -> WorkloadFacts<'s, 't> {
        let plan = self.plan;
        WorkloadFacts::new(self.policy, plan.workload, plan.base, plan.inventory)
            .with_reasons(!plan.options.brief)
    }

    /// An error that points at the workload and at the item of the policy.
    pub(super) fn problem(
        &self,
        code: Code,
        message: impl Into<String>,
        item: &PolicyValue,
    ) -> Diagnostic {
        let problem = Diagnostic::error(code, message);
        self.wanted(
            problem.at(self.workload.name_place(), "this workload"),
            item,
        )
    }

    /// Adds the item of the policy to a problem.
    pub(super) fn wanted(&self, problem: Diagnostic, item: &PolicyValue) -> Diagnostic {
        let label = format!("policy `{}` wants this", self.policy.identity);
        problem.at(self.policy.text.place(item.at.clone()), label)
    }

    /// The pod template in a draft.
    pub(super) fn template_in(&self, draft: &Draft<'_>) -> DraftValue {
        draft.template(&self.workload.pod_kind.path)
    }
}

/// The results of the rules of a policy so far.
#[derive(Default)]
struct RuleResults<'p> {
    is_done: bool,
    done: Vec<Change>,
    problems: Vec<Diagnostic>,
    checksums: Vec<ChecksumAnnotation>,
    missing_volumes: Vec<MissingVolume>,
    skips: Vec<(&'p Rule, Skip)>,
    /// Containers that a rule was applied to. Those that policies add may share a node, so they have a name, too.
    taken: BTreeSet<(NodeId, Option<String>)>,
    notes: RuleNotes,
    /// What the rules need from a cluster; empty unless the options ask for it.
    needs: BTreeSet<Need>,
}

/// Applies a policy, except for its checksums.
pub(super) fn apply<'t>(
    subject: RuleContext<'_, 't>,
    earlier: &[Policy],
    planned: &mut WorkloadPlan<'t>,
    found: &mut PolicyDetails,
) -> Outcome {
    let policy = subject.policy;
    match check_turn(subject, earlier, planned) {
        Ok(()) => {}
        Err(NotApplied::Skip(skip)) => return Outcome::Skipped(*skip),
        Err(NotApplied::Undecided(problem)) => return failed(policy, vec![*problem], planned),
    }
    if let Some(mutation) = &policy.mutation {
        return mutation::apply(subject, mutation, planned);
    }
    let before = (planned.draft.clone(), planned.ephemeral_containers.len());
    let mut applied = apply_rules(subject, planned, found);
    let is_skipped = applied.skips.len() == policy.rules.len();
    let companions = match is_skipped {
        true => Vec::new(),
        false => companions_of_policy(subject, &mut applied.problems),
    };
    let (errors, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) =
        applied.problems.into_iter().partition(Diagnostic::is_error);
    if !errors.is_empty() {
        // All or nothing: one failed rule takes back the others.
        planned.draft = before.0;
        planned.ephemeral_containers.truncate(before.1);
        return failed(policy, errors, planned);
    }
    planned.diagnostics.extend(warnings);
    found.checksums = applied.checksums;
    found.notes = applied.notes;
    if is_skipped {
        return Outcome::Skipped(no_rule(applied.skips));
    }
    let has_ephemeral = planned.ephemeral_containers.len() > before.1;
    if applied.is_done && !has_ephemeral && planned.draft.is_put_back(&before.0) {
        // Not even a comment of what was taken out and put back is lost.
        planned.draft = before.0;
        applied.is_done = false;
    }
    found.notes.generated = generated_by_us(subject, &companions);
    needs::add_needs(subject, applied.needs, &companions, planned);
    for (companion, is_present) in companions {
        if is_present {
            planned.present.push(companion.name);
            continue;
        }
        let target = ChangeTarget::Object(companion.name.to_string());
        applied.is_done = true;
        applied.done.push(Change::new(Operation::Add, target));
        planned.companions.push(companion);
    }
    match applied.is_done {
        true => Outcome::Injected(net(applied.done)),
        false => Outcome::UpToDate,
    }
}

/// Whether a policy applies to the workload, given its selectors, other injectors, and the policies before it.
fn check_turn(
    subject: RuleContext<'_, '_>,
    earlier: &[Policy],
    planned: &mut WorkloadPlan<'_>,
) -> Result<(), NotApplied> {
    let (policy, workload) = (subject.policy, subject.workload);
    subject.facts().select(&mut planned.diagnostics)?;
    if let Some(skip) = foreign::left_alone(policy, workload, &planned.draft) {
        return Err(NotApplied::Skip(Box::new(skip)));
    }
    let known = subject.earlier;
    if known.is_some_and(|known| !known.evaluates(&policy.identity)) {
        return Err(NotApplied::Skip(Box::new(Skip {
            is_near_miss: true,
            ..Skip::because(SkipCause::NotAdopted, NOT_ADOPTED)
        })));
    }
    match foreign::conflicting_policy(policy, workload, earlier, &planned.policies) {
        Some(problem) => Err(NotApplied::Undecided(Box::new(problem))),
        None => Ok(()),
    }
}

/// Applies the rules in order, and notes which ones apply and which volumes are missing then.
fn apply_rules<'p, 't>(
    subject: RuleContext<'p, 't>,
    planned: &mut WorkloadPlan<'t>,
    found: &mut PolicyDetails,
) -> RuleResults<'p> {
    let policy = subject.policy;
    let added = added_containers::containers(subject, &planned.draft);
    let added: Vec<Container<'_>> = added.iter().map(AddedContainer::container).collect();
    let mut applied = RuleResults::default();
    for (index, rule) in policy.rules.iter().enumerate() {
        let skips = applied.skips.len();
        apply_rule(subject, rule, &added, planned, &mut applied);
        if applied.skips.len() == skips {
            found.rules.push(index);
        }
    }
    let missing = std::mem::take(&mut applied.missing_volumes).into_iter();
    let is_missing = |volume: &MissingVolume| volume.is_missing(subject.workload, &planned.draft);
    found.missing_volumes = missing.filter(is_missing).collect();
    applied
}

/// The objects that the policy generates, each with whether it is among the manifests already.
fn companions_of_policy(
    subject: RuleContext<'_, '_>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<(GeneratedObject, bool)> {
    problems.extend(config_keys::check(subject));
    match companions::of(subject) {
        Ok(found) => {
            let objects = found.iter().map(|(companion, _)| companion);
            problems.extend(objects.filter_map(|object| companions::parted(subject, object)));
            let present = found.iter().filter(|(_, is_present)| *is_present);
            problems
                .extend(present.filter_map(|(object, _)| companions::elsewhere(subject, object)));
            found
        }
        Err(found) => {
            problems.extend(found);
            Vec::new()
        }
    }
}

/// The names and digests of the generated objects that this run or an earlier one has created.
fn generated_by_us(
    subject: RuleContext<'_, '_>,
    companions: &[(GeneratedObject, bool)],
) -> BTreeMap<String, String> {
    if !subject.is_recording {
        return BTreeMap::new();
    }
    let mut generated = BTreeMap::new();
    let wanted: Vec<String> = companions
        .iter()
        .map(|(companion, _)| written_name(&companion.object))
        .collect();
    for ((companion, is_present), name) in companions.iter().zip(&wanted) {
        let (name, digest) = (name.clone(), digest(&companion.object));
        let inventory = subject.inventory;
        let is_recorded = inventory.recorded_policies(&name, &digest).next().is_some();
        // An object that another workload's record names is podgraft's as well; now this workload needs it, too.
        if !is_present
            || is_recorded
            || subject.earlier_digests(&name).is_some()
            || subject.has_lost_record(companion, &wanted)
        {
            generated.insert(name, digest);
        }
    }
    generated
}

fn apply_rule<'p, 't>(
    subject: RuleContext<'p, 't>,
    rule: &'p Rule,
    added: &[Container<'_>],
    planned: &mut WorkloadPlan<'t>,
    applied: &mut RuleResults<'p>,
) {
    let policy = subject.policy;
    let problems = &mut applied.problems;
    let warnings = &mut planned.diagnostics;
    let chosen = match choose(subject, rule, added, warnings, &mut applied.taken) {
        Ok(chosen) => chosen,
        Err(NotApplied::Skip(skip)) => return applied.skips.push((rule, *skip)),
        Err(NotApplied::Undecided(problem)) => return problems.push(*problem),
    };
    let expanded = match expand::expand(subject.facts(), rule, &chosen) {
        Ok(expanded) => expanded,
        Err(found) => return problems.extend(found),
    };
    let checksums = expanded.inject.checksums.iter().cloned();
    applied.checksums.extend(checksums);
    match subject.options.ephemeral_containers {
        true => {
            let containers = &expanded.inject.ephemeral_containers;
            ephemeral::collect(subject, containers, planned, problems);
        }
        false => problems.extend(expanded.nothing_to_write(policy)),
    }
    // The planner gives the draft back.
    let draft = Draft::new(subject.workload.tree, subject.workload.object.node);
    let draft = std::mem::replace(&mut planned.draft, draft);
    let planner = Planner::new(subject, rule, &expanded, chosen, draft).run();
    problems.extend(forbidden::refuse(subject, &expanded, Some(&planner)));
    let needs = needs::of(subject, Some(rule), &expanded, Some(&planner));
    applied.needs.extend(needs);
    planned.draft = planner.draft;
    applied.missing_volumes.extend(planner.missing_volumes);
    applied.notes.extend(planner.notes);
    applied.is_done |= planner.is_done;
    applied.done.extend(planner.done);
    applied.problems.extend(planner.problems);
}

/// Returns the containers that a rule chooses, or why it chooses none.
fn choose<'c>(
    subject: RuleContext<'c, '_>,
    rule: &Rule,
    added: &[Container<'c>],
    warnings: &mut Vec<Diagnostic>,
    taken: &mut BTreeSet<(NodeId, Option<String>)>,
) -> Result<Vec<Container<'c>>, NotApplied> {
    let facts = subject.facts();
    facts.select_rule(rule, warnings)?;
    let chosen = facts.choose_containers(&rule.containers, added);
    let mut chosen = chosen.map_err(NotApplied::Undecided)?;
    let needs_none = chosen.is_empty() && rule.needs_no_container();
    if subject.policy.apply_rules == ApplyRules::One {
        chosen.retain(|container| {
            let added = container.added.as_ref().map(|_| container.name.to_owned());
            taken.insert((container.node, added))
        });
    }
    match chosen.is_empty() && !needs_none {
        true => Err(NotApplied::Skip(Box::new(no_container(subject, rule)))),
        false => Ok(chosen),
    }
}

/// Reports problems as `failurePolicy` says: as errors, or as warnings that the policy injects nothing here.
pub(super) fn failed(
    policy: &Policy,
    problems: Vec<Diagnostic>,
    planned: &mut WorkloadPlan<'_>,
) -> Outcome {
    let ignored = |problem: Diagnostic| {
        let help = format!(
            "policy `{}` has `failurePolicy: Ignore`, so it injects nothing into this workload",
            policy.identity
        );
        problem.with_severity(Severity::Warning).help(help)
    };
    match policy.failure_policy {
        FailurePolicy::Fail => planned.diagnostics.extend(problems),
        FailurePolicy::Ignore => {
            let ignored = problems.into_iter().map(ignored);
            planned.diagnostics.extend(ignored);
        }
    }
    Outcome::Failed(None)
}
