//! Policies and a workload in, the workload as it will be out: pure, no text.

mod added;
mod base;
mod check;
mod checksums;
pub(crate) mod companions;
mod compose;
mod config_keys;
mod containers;
pub mod draft;
mod env;
mod env_from;
mod env_order;
mod ephemeral;
mod expand;
mod faults;
mod forbidden;
mod growth;
mod intact;
mod kept;
mod links;
pub(crate) mod metrics;
mod mutation;
mod needs;
mod order;
mod others;
pub(crate) mod patch;
mod patches;
mod planner;
mod pod;
mod qos;
pub(crate) mod reconcile;
pub(crate) mod recording;
mod same;
mod systems;
mod together;
mod unselected;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::change::{Change, Operation, Target};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::inventory::{Inventory, written_name};
use crate::manifest::pod::{Container, Workload};
use crate::options::Options;
use crate::outcome::needs::{Need, NeedsOfRun};
use crate::outcome::{Companion, Outcome, PolicyReport, Skip, SkipCause};
use crate::policy::{ApplyRules, Checksum, FailurePolicy, Item, Policy, Rule};
use crate::record::{Record, digest};
use crate::select::{Base, No, choose_containers, select, select_rule};
use crate::yaml::tree::NodeId;

use added::Added;
use draft::{Draft, Refusal};
pub use faults::are_annotations_too_long;
pub use kept::unfit;
use planner::Planner;
pub use planner::explain as explain_refusal;
use recording::{
    Earlier, Met, Notes, Recording, Turn, idle, is_older, outcome_since, report_dropped, turns,
};
pub use unselected::left_alone;
use unselected::{no_container, no_rule};

pub use crate::record::MARKER;

/// A workload as all policies together want it.
#[derive(Debug, Clone)]
pub struct Planned<'t> {
    /// The result.
    pub draft: Draft<'t>,
    /// What each policy did.
    pub policies: Vec<PolicyReport>,
    /// What they generate beside it, as far as it is not among the manifests.
    pub companions: Vec<Companion>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// Ephemeral containers, where the options ask for them.
    pub ephemeral_containers: Vec<Item>,
    /// What was done, where that is written into the workload.
    pub record: Option<Record>,
    /// What they need from a cluster, where it was asked for.
    pub needs: NeedsOfRun,
    /// What policies want and the manifest has already, where it is recorded.
    pub met: Vec<(String, Met)>,
    /// The draft after each policy that changed it, where it was asked for.
    pub steps: Vec<(usize, Draft<'t>)>,
}

/// Folds the policies over a workload, in order; each plans on the result of those before it. What an earlier run did is
/// no part of the workload here.
pub fn plan<'t>(
    workload: &Workload<'t>,
    policies: &[Policy],
    options: &Options,
    inventory: &Inventory,
    earlier: Option<&Earlier<'_>>,
) -> Planned<'t> {
    for env in options.image_env.iter().filter(|env| !env.is_met()) {
        let containers = workload.containers().iter();
        containers.for_each(|container| env.meet(container.name));
    }
    let base = added::base_of(workload, policies, inventory);
    // A record that is there is kept true.
    let is_recording = options.is_recording() || earlier.is_some();
    let run = Run {
        workload,
        policies,
        base: &base,
        options,
        inventory,
        earlier,
        is_recording,
    };
    let (mut failed_late, mut without_place) = (BTreeMap::new(), BTreeSet::new());
    // A policy whose checksums fail leaves the workload alone as a whole: those behind it are planned again without it.
    // So are they where one comes to nothing behind which others are kept.
    let mut planned = loop {
        match run.fold(&failed_late, &without_place) {
            Ok(planned) => {
                let idle = idle(policies, earlier, options, planned.1.as_ref());
                if idle.is_subset(&without_place) {
                    break planned;
                }
                without_place.extend(idle);
            }
            Err((policy, problems)) => drop(failed_late.insert(policy, problems)),
        }
    };
    run.finish(&mut planned.0, planned.1);
    planned.0
}

/// What policies generate beside a workload. Their checksums are left out: they may be of what others generate.
pub fn foresee(
    workload: &Workload<'_>,
    policies: &[Policy],
    options: &Options,
    inventory: &Inventory,
) -> Vec<Companion> {
    let base = added::base_of(workload, policies, inventory);
    let run = Run {
        workload,
        policies,
        base: &base,
        options,
        inventory,
        earlier: None,
        is_recording: false,
    };
    let draft = Draft::new(workload.tree, workload.object.node);
    let applying = run.apply_all(draft, &BTreeMap::new(), &BTreeSet::new());
    applying.planned.companions
}

/// Why a policy is not adopted beside others.
const NOT_ADOPTED: &str = "not adopted: not all that it puts here is there";

/// A workload and all policies.
struct Run<'r, 't> {
    workload: &'r Workload<'t>,
    policies: &'r [Policy],
    base: &'r Base,
    options: &'r Options,
    inventory: &'r Inventory,
    earlier: Option<&'r Earlier<'r>>,
    is_recording: bool,
}

/// What all policies come to before their checksums.
struct Applying<'t> {
    planned: Planned<'t>,
    /// Those of a policy, by its place in the order.
    checksums: Vec<(usize, Vec<Checksum>)>,
    recording: Option<Recording<'t>>,
}

/// A policy by its place in the order, and what is wrong with its checksums.
type FailedLate = (usize, Vec<Diagnostic>);

impl<'r, 't> Run<'r, 't> {
    fn subject(&self, policy: &'r Policy) -> Subject<'r, 't> {
        let Run {
            workload,
            base,
            options,
            inventory,
            is_recording,
            earlier,
            ..
        } = *self;
        Subject {
            workload,
            policy,
            base,
            options,
            inventory,
            is_recording,
            earlier,
        }
    }

    /// All policies in order, and the checksums that they want.
    fn apply_all(
        &self,
        draft: Draft<'t>,
        failed_late: &BTreeMap<usize, Vec<Diagnostic>>,
        without_place: &BTreeSet<&str>,
    ) -> Applying<'t> {
        let mut recording = self
            .is_recording
            .then(|| Recording::begin(self.workload, &draft))
            .flatten();
        let mut planned = Planned {
            draft,
            policies: Vec::new(),
            companions: Vec::new(),
            diagnostics: Vec::new(),
            ephemeral_containers: Vec::new(),
            record: None,
            needs: NeedsOfRun::default(),
            met: Vec::new(),
            steps: Vec::new(),
        };
        let mut checksums = Vec::new();
        for turn in turns(self.policies, self.earlier, self.options, without_place) {
            let at = match (turn, recording.as_mut().zip(self.earlier)) {
                (Turn::Given(at), _) => at,
                (Turn::Kept(redo), Some((recording, earlier))) => {
                    let done = recording.put_back(redo, &mut planned.draft, self.workload, earlier);
                    planned
                        .diagnostics
                        .extend(done.err().map(|problem| *problem));
                    continue;
                }
                (Turn::Kept(_), None) => {
                    planned
                        .diagnostics
                        .push(recording::cannot_record(self.workload, true));
                    continue;
                }
            };
            let policy = &self.policies[at];
            let first = planned.diagnostics.len();
            let mut found = Found::default();
            let outcome = match failed_late.get(&at) {
                Some(problems) => failed(policy, problems.clone(), &mut planned),
                None => apply(
                    self.subject(policy),
                    &self.policies[..at],
                    &mut planned,
                    &mut found,
                ),
            };
            for diagnostic in &mut planned.diagnostics[first..] {
                let owner = || Arc::from(policy.identity.as_str());
                diagnostic.policy.get_or_insert_with(owner);
            }
            let met = std::mem::take(&mut found.notes.met).into_iter();
            planned
                .met
                .extend(met.map(|met| (policy.identity.clone(), met)));
            if let Some(recording) = &mut recording {
                recording.note(
                    policy,
                    &planned.draft,
                    found.notes,
                    self.earlier,
                    self.options,
                );
            }
            if self.options.authors && matches!(outcome, Outcome::Injected(_)) {
                planned
                    .steps
                    .push((planned.policies.len(), planned.draft.clone()));
            }
            let rules = found.rules;
            let identity = Arc::from(policy.identity.as_str());
            planned.policies.push(PolicyReport {
                policy: identity,
                outcome,
                rules,
                is_older: false,
            });
            if !found.checksums.is_empty() {
                checksums.push((at, found.checksums));
            }
        }
        Applying {
            planned,
            checksums,
            recording,
        }
    }

    /// All policies in order, then their checksums, which are of what the pod template names in the end.
    fn fold(
        &self,
        failed_late: &BTreeMap<usize, Vec<Diagnostic>>,
        without_place: &BTreeSet<&str>,
    ) -> Result<(Planned<'t>, Option<Recording<'t>>), FailedLate> {
        let draft = Draft::new(self.workload.tree, self.workload.object.node);
        let Applying {
            mut planned,
            checksums,
            mut recording,
        } = self.apply_all(draft, failed_late, without_place);
        for (at, found) in checksums {
            self.add_checksums(at, &found, &mut planned)?;
            if let Some(recording) = &mut recording {
                recording.note(
                    &self.policies[at],
                    &planned.draft,
                    Notes::default(),
                    self.earlier,
                    self.options,
                );
            }
        }
        Ok((planned, recording))
    }

    fn add_checksums(
        &self,
        at: usize,
        found: &[Checksum],
        planned: &mut Planned<'t>,
    ) -> Result<(), FailedLate> {
        let done = checksums::add(self.subject(&self.policies[at]), found, &mut planned.draft);
        let done = done.map_err(|problems| (at, problems))?;
        if self.options.authors && !done.is_empty() {
            planned.steps.push((at, planned.draft.clone()));
        }
        let outcome = &mut planned.policies[at].outcome;
        match outcome {
            Outcome::Injected(changes) => changes.extend(done),
            Outcome::UpToDate if !done.is_empty() => *outcome = Outcome::Injected(done),
            Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed | Outcome::TakenOut(_) => {}
        }
        Ok(())
    }

    /// Marker and record, what came of each policy, and what was wrong before.
    fn finish(&self, planned: &mut Planned<'t>, recording: Option<Recording<'t>>) {
        if recording.is_none() {
            settle(planned);
        }
        if self.earlier.is_none() {
            let stale = stale_marks(self.workload, self.policies, planned);
            planned.diagnostics.extend(stale);
        }
        let can_record = recording.is_some();
        let marked = match recording {
            Some(recording) => {
                let finished = recording.finish(&mut planned.draft, self.earlier, self.options);
                finished.map(|record| planned.record = record)
            }
            None if self.options.marker => mark(self.workload, planned),
            None => Ok(()),
        };
        if self.is_recording && !can_record && planned.draft.is_changed() {
            planned.diagnostics.push(recording::cannot_record(
                self.workload,
                self.earlier.is_some(),
            ));
        }
        if let Err(refusal) = marked {
            planned
                .diagnostics
                .push(refusal_diagnostic(&refusal, self.workload));
        }
        planned.diagnostics.extend(self.missing());
        self.report_since(planned);
        let is_injected = |report: &PolicyReport| matches!(report.outcome, Outcome::Injected(_));
        if self.options.details && planned.policies.iter().any(is_injected) {
            planned
                .diagnostics
                .extend(faults::of_input(self.workload, &planned.draft));
        }
    }

    /// What expressions looked up and did not find: not in these files is not the same as not in the cluster.
    fn missing(&self) -> Vec<Diagnostic> {
        let missing = self.base.missing.borrow();
        let note = |name: &String| {
            let message = format!(
                "an expression looks up the {name}, and it is not among the files of this run"
            );
            let note = Diagnostic::note(Code::MissingObject, message);
            note.at(self.workload.own_place(), "for this workload").help(
                "the policy goes on as if it did not exist; where the cluster has it, give it with `--context`",
            )
        };
        missing.iter().map(note).collect()
    }

    /// What came of each policy, seen from before the run.
    fn report_since(&self, planned: &mut Planned<'t>) {
        let Some(earlier) = self.earlier else { return };
        for report in &mut planned.policies {
            let outcome = std::mem::replace(&mut report.outcome, Outcome::UpToDate);
            report.outcome =
                outcome_since(&report.policy, outcome, planned.record.as_ref(), earlier);
            report.is_older =
                self.options.details && is_older(&report.policy, planned.record.as_ref(), earlier);
        }
        report_dropped(planned, self.policies, earlier, self.options);
    }
}

/// Leaves out what comes to nothing: what one policy takes away and another puts back stays as it is.
fn settle(planned: &mut Planned<'_>) {
    if !planned.draft.is_changed() {
        return;
    }
    planned.draft.settle();
    if planned.draft.is_changed() {
        return;
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

/// What applying a policy has found out beside what it did.
#[derive(Default)]
struct Found {
    /// The numbers of the rules that are for the workload.
    rules: Vec<usize>,
    /// What is summed when all policies are applied.
    checksums: Vec<Checksum>,
    /// For the record.
    notes: Notes,
}

/// Applies all of a policy but its checksums.
fn apply<'t>(
    subject: Subject<'_, 't>,
    earlier: &[Policy],
    planned: &mut Planned<'t>,
    found: &mut Found,
) -> Outcome {
    let Subject {
        workload,
        policy,
        base,
        inventory,
        ..
    } = subject;
    match select(policy, workload, base, inventory, &mut planned.diagnostics) {
        Ok(()) => {}
        Err(No::Skip(skip)) => return Outcome::Skipped(*skip),
        Err(No::Undecided(problem)) => return failed(policy, vec![*problem], planned),
    }
    if let Some(skip) = others::left_alone(policy, workload, &planned.draft) {
        return Outcome::Skipped(skip);
    }
    let known = subject.earlier;
    if known.is_some_and(|known| !known.acts(&policy.identity)) {
        return Outcome::Skipped(Skip {
            is_near_miss: true,
            ..Skip::because(SkipCause::NotAdopted, NOT_ADOPTED)
        });
    }
    if let Some(problem) = others::rival(policy, workload, earlier, &planned.policies) {
        return failed(policy, vec![problem], planned);
    }
    if let Some(mutation) = &policy.mutation {
        return mutation::apply(subject, &**mutation, planned);
    }
    let before = (planned.draft.clone(), planned.ephemeral_containers.len());
    let added = added::containers(policy, &planned.draft, workload, base);
    let added: Vec<Container<'_>> = added.iter().map(Added::container).collect();
    let mut applied = Applied::default();
    for (index, rule) in policy.rules.iter().enumerate() {
        let skips = applied.skips.len();
        apply_rule(subject, rule, &added, planned, &mut applied);
        if applied.skips.len() == skips {
            found.rules.push(index);
        }
    }
    let is_skipped = applied.skips.len() == policy.rules.len();
    let companions = if is_skipped {
        Vec::new()
    } else {
        beside(subject, &mut applied.problems)
    };
    let (errors, others): (Vec<Diagnostic>, Vec<Diagnostic>) =
        applied.problems.into_iter().partition(Diagnostic::is_error);
    if !errors.is_empty() {
        // Never half an injection.
        planned.draft = before.0;
        planned.ephemeral_containers.truncate(before.1);
        return failed(policy, errors, planned);
    }
    planned.diagnostics.extend(others);
    found.checksums = applied.checksums;
    found.notes = applied.notes;
    if is_skipped {
        return Outcome::Skipped(no_rule(applied.skips));
    }
    found.notes.generated = generated_by_us(subject, &companions);
    needs::tell(
        subject,
        std::mem::take(&mut applied.needs),
        &companions,
        planned,
    );
    for (companion, _) in companions.into_iter().filter(|(_, is_there)| !is_there) {
        let target = Target::Object(companion.name.to_string());
        applied.is_done = true;
        applied.done.push(Change::new(Operation::Add, target));
        planned.companions.push(companion);
    }
    match applied.is_done {
        true => Outcome::Injected(applied.done),
        false => Outcome::UpToDate,
    }
}

/// What is to stand beside the workload, and whether it does already.
fn beside(subject: Subject<'_, '_>, problems: &mut Vec<Diagnostic>) -> Vec<(Companion, bool)> {
    problems.extend(config_keys::check(subject));
    companions::of(subject).unwrap_or_else(|found| {
        problems.extend(found);
        Vec::new()
    })
}

/// The objects that stand there because of this run or an earlier one, with their digests.
fn generated_by_us(
    subject: Subject<'_, '_>,
    companions: &[(Companion, bool)],
) -> BTreeMap<String, String> {
    if !subject.is_recording {
        return BTreeMap::new();
    }
    let named = companions.iter().map(|(companion, is_there)| {
        (
            written_name(&companion.object),
            digest(&companion.object),
            is_there,
        )
    });
    // What another workload's record names is needed by this one, too.
    let is_ours = |(name, digest, is_there): &(String, String, &bool)| {
        !**is_there
            || subject.earlier_digest(name).is_some()
            || subject.inventory.is_recorded(name, digest)
    };
    named
        .filter(is_ours)
        .map(|(name, digest, _)| (name, digest))
        .collect()
}

/// What a rule is applied to.
#[derive(Clone, Copy)]
struct Subject<'s, 't> {
    workload: &'s Workload<'t>,
    policy: &'s Policy,
    base: &'s Base,
    options: &'s Options,
    inventory: &'s Inventory,
    /// What is done will be written down.
    is_recording: bool,
    earlier: Option<&'s Earlier<'s>>,
}

/// What the rules of a policy came to so far.
#[derive(Default)]
struct Applied<'p> {
    is_done: bool,
    done: Vec<Change>,
    problems: Vec<Diagnostic>,
    checksums: Vec<Checksum>,
    skips: Vec<(&'p Rule, Skip)>,
    /// Containers that have got a rule; those that policies add by their names.
    taken: BTreeSet<(NodeId, Option<String>)>,
    notes: Notes,
    /// What they need from a cluster, where it was asked for.
    needs: BTreeSet<Need>,
}

fn apply_rule<'p, 't>(
    subject: Subject<'p, 't>,
    rule: &'p Rule,
    added: &[Container<'_>],
    planned: &mut Planned<'t>,
    applied: &mut Applied<'p>,
) {
    let Subject {
        workload,
        policy,
        base,
        inventory,
        ..
    } = subject;
    match select_rule(
        policy,
        rule,
        workload,
        base,
        inventory,
        &mut planned.diagnostics,
    ) {
        Ok(()) => {}
        Err(No::Skip(skip)) => return applied.skips.push((rule, *skip)),
        Err(No::Undecided(problem)) => return applied.problems.push(*problem),
    }
    let chosen = choose_containers(policy, &rule.containers, workload, base, inventory, added);
    let mut chosen = match chosen {
        Ok(chosen) => chosen,
        Err(problem) => return applied.problems.push(*problem),
    };
    if policy.apply_rules == ApplyRules::One {
        chosen.retain(|container| {
            let added = container.added.as_ref().map(|_| container.name.to_owned());
            applied.taken.insert((container.node, added))
        });
    }
    if chosen.is_empty() {
        return applied.skips.push((rule, no_container(rule, workload)));
    }
    let expanded = match expand::expand(policy, rule, workload, base, inventory, &chosen) {
        Ok(expanded) => expanded,
        Err(found) => return applied.problems.extend(found),
    };
    applied
        .problems
        .extend(forbidden::refuse(subject, &expanded));
    applied
        .checksums
        .extend(expanded.inject.checksums.iter().cloned());
    needs::collect(subject, &expanded, &mut applied.needs);
    match subject.options.ephemeral_containers {
        true => ephemeral::collect(
            subject,
            &expanded.inject.ephemeral_containers,
            planned,
            &mut applied.problems,
        ),
        false => applied.problems.extend(expanded.note(policy)),
    }
    let draft = planned.draft.clone();
    let planner = Planner::new(subject, rule, &expanded, chosen, draft);
    let Planner {
        draft,
        is_done,
        done,
        problems,
        notes,
        ..
    } = planner.run();
    planned.draft = draft;
    applied.notes.extend(notes);
    applied.is_done |= is_done;
    applied.done.extend(done);
    applied.problems.extend(problems);
}

/// `failurePolicy`: the run fails, or the workload is left alone with a warning.
fn failed(policy: &Policy, problems: Vec<Diagnostic>, planned: &mut Planned<'_>) -> Outcome {
    match policy.failure_policy {
        FailurePolicy::Fail => planned.diagnostics.extend(problems),
        FailurePolicy::Ignore => planned
            .diagnostics
            .extend(problems.into_iter().map(|problem| {
                let help = format!(
                    "policy `{}` says `failurePolicy: Ignore`, so it leaves this workload alone",
                    policy.identity
                );
                problem.with_severity(Severity::Warning).help(help)
            })),
    }
    Outcome::Failed
}

/// The policies that the workload's annotation names, as it is written.
fn marked(draft: &Draft<'_>) -> String {
    let metadata = draft.get(&draft.root(), "metadata");
    let annotations = metadata.and_then(|metadata| draft.get(&metadata, "annotations"));
    annotations
        .and_then(|annotations| draft.text_at(&annotations, MARKER))
        .unwrap_or_default()
        .into_owned()
}

/// Warnings about policies that were here before, and now would do something else or nothing: what an earlier run put
/// there stays.
fn stale_marks(
    workload: &Workload<'_>,
    policies: &[Policy],
    planned: &Planned<'_>,
) -> Vec<Diagnostic> {
    let own = marked(&Draft::new(workload.tree, workload.object.node));
    if own.is_empty() {
        return Vec::new();
    }
    let was_here =
        |report: &&PolicyReport| own.split(',').any(|name| name.trim() == &*report.policy);
    let stale = planned
        .policies
        .iter()
        .filter(was_here)
        .filter_map(|report| {
            let now = match &report.outcome {
                Outcome::Injected(_) => {
                    "now adds something else to it, beside what an earlier run put there"
                }
                Outcome::Skipped(_) => {
                    "no longer applies to it; what an earlier run put there stays"
                }
                Outcome::UpToDate | Outcome::Failed | Outcome::TakenOut(_) => return None,
            };
            let policy = policies
                .iter()
                .find(|policy| policy.identity == *report.policy)?;
            let message = format!(
                "{} is marked as injected by `{}`, which {now}",
                workload.title(),
                policy.identity
            );
            let warning = Diagnostic::warning(Code::AppliedBefore, message)
                .at(workload.own_place(), "this workload");
            Some(warning.help(
                "apply to the original manifest, or take out by hand what is not wanted any more",
            ))
        });
    stale.collect()
}

/// Names the policies that changed the workload in its own annotations, behind those that are named there already.
fn mark(workload: &Workload<'_>, planned: &mut Planned<'_>) -> Result<(), Refusal> {
    let own = marked(&planned.draft);
    let mut names: Vec<&str> = own
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let injected = planned
        .policies
        .iter()
        .filter(|report| matches!(report.outcome, Outcome::Injected(_)));
    let added: Vec<&str> = injected
        .map(|report| &*report.policy)
        .filter(|name| !names.contains(name))
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    names.extend(added);
    let value = Value::String(names.join(","));
    let root = planned.draft.open_root()?;
    let metadata = planned
        .draft
        .open_mapping(root, "metadata", order::OBJECT)?;
    let annotations = planned
        .draft
        .open_mapping(metadata, "annotations", order::METADATA)?;
    debug_assert_eq!(
        planned.draft.origin(&planned.draft.root()),
        Some(workload.object.node)
    );
    planned.draft.set(annotations, MARKER, value, &[])
}

/// A refusal to edit something, as a problem of its workload.
pub fn refusal_diagnostic(refusal: &Refusal, workload: &Workload<'_>) -> Diagnostic {
    let (code, why, help) = planner::explain(refusal.why);
    let message = format!("{} cannot be edited here: {why}", workload.title());
    let code = if code == Code::WrongType {
        Code::Invalid
    } else {
        code
    };
    Diagnostic::error(code, message)
        .at(workload.place(refusal.node), "here")
        .help(help)
}
