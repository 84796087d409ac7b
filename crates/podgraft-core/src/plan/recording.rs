//! Records the changes of each policy, and restores or drops those of policies of an earlier run that are not given.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::options::Options;
use crate::policy::Policy;
use crate::record::words::{undo_command, words_of};
use crate::record::{
    Effects, JoinHint, JoinedText, MARKER, PolicyRecord, RECORD, Record, RecordPaths,
    RecordedValue, ReplacedValue, VERSION, digest, has_twin_containers,
};
use crate::yaml::value::has_value;

use super::PlanContext;
use super::draft::{Draft, Refusal};
use super::marks::{marked, open_annotations, with_names};
use super::removal::RemovalResult;
use super::replay::{Replay, ReplayError};

/// The changes of an earlier run. The workload is planned without them.
#[derive(Debug, Clone)]
pub struct EarlierRun<'r> {
    /// Its record.
    pub record: Record,
    /// Whether the record is in an annotation, not in a lock file.
    pub is_annotated: bool,
    /// The object with all changes of the earlier run.
    pub current: &'r RecordedValue<'r>,
    /// The object without these changes, and the steps that restore them.
    pub taken: &'r RemovalResult,
    /// The policies of the record that this run adopts. If set, nothing else is injected, and the items of others stay.
    pub adopting: Option<Vec<String>>,
    /// The policies of the workload's mark whose record was lost and that this run records again.
    pub recovered: &'r [String],
}

impl EarlierRun<'_> {
    /// Whether this run applies a given policy to the workload.
    pub(crate) fn evaluates(&self, policy: &str) -> bool {
        let adopting = self.adopting.as_ref();
        adopting.is_none_or(|adopted| adopted.iter().any(|identity| identity == policy))
    }
}

/// Records the changes of this run to the workload.
pub(super) struct Recording<'r, 't> {
    plan: &'r PlanContext<'r, 't>,
    paths: RecordPaths,
    /// The object after the last policy that was noted.
    draft: Draft<'t>,
    record: Record,
}

/// What a rule notes for the record besides its changes.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleNotes {
    /// Texts joined to variables.
    pub joins: Vec<JoinHint>,
    /// Paths and values that another policy of this run had added already.
    pub shared: Vec<(String, Value)>,
    /// Paths and texts that another policy of this run had joined already.
    pub repeated_joins: Vec<(String, JoinedText)>,
    /// The names of the objects that the policy generates, with their digests.
    pub generated: BTreeMap<String, String>,
    /// Changes that the manifest already satisfies.
    pub satisfied: Vec<SatisfiedChange>,
}

/// A change that the manifest already satisfies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SatisfiedChange {
    /// The path of the item in the form of the record.
    pub path: String,
    /// The text, if the change would be to join it to a variable.
    pub joined: Option<JoinedText>,
}

impl RuleNotes {
    /// Whether the rule puts there what another policy of this run has put there already.
    pub(super) fn is_sharing(&self) -> bool {
        !self.shared.is_empty() || !self.repeated_joins.is_empty()
    }

    pub(super) fn extend(&mut self, other: RuleNotes) {
        self.joins.extend(other.joins);
        self.shared.extend(other.shared);
        self.repeated_joins.extend(other.repeated_joins);
        self.generated.extend(other.generated);
        self.satisfied.extend(other.satisfied);
    }
}

impl<'r, 't> Recording<'r, 't> {
    /// Begins a record. `None` if the changes could not be found again later: see [`cannot_record`].
    pub(super) fn begin(plan: &'r PlanContext<'r, 't>, draft: &Draft<'t>) -> Option<Self> {
        let workload = plan.workload;
        let paths = RecordPaths::of(&workload.pod_kind.path);
        // What has a record has a value, also without the changes that it names.
        let has_value = plan.earlier.is_some() || has_value(workload.tree, workload.object.node);
        if has_twin_containers(workload.tree, workload.pod_spec) || !has_value {
            return None;
        }
        let record = Record {
            version: VERSION,
            pod: paths.template(),
            ..Record::default()
        };
        Some(Recording {
            plan,
            paths,
            draft: draft.clone(),
            record,
        })
    }

    /// Records what a policy did: the difference between the last noted draft and this one.
    pub(super) fn note(&mut self, policy: &Policy, draft: &Draft<'t>, notes: RuleNotes) {
        let effects = draft.effects_since(&self.draft, &self.paths, &notes.joins);
        let Some(mut effects) = effects else {
            return;
        };
        let shared = notes.shared.into_iter();
        let shared = shared.map(|(path, value)| (path, digest(&value)));
        effects.shared = shared
            .filter(|(path, _)| !effects.added.contains_key(path))
            .collect();
        for (path, joined) in notes.repeated_joins {
            effects.joined.entry(path).or_insert(joined);
        }
        self.keep_recorded_positions(&policy.identity, &mut effects);
        self.draft = draft.clone();
        if effects.is_empty() && notes.generated.is_empty() {
            return;
        }
        if !self.is_annotated() {
            let present = notes.satisfied.into_iter();
            effects.present = present.map(|change| change.path).collect();
        }
        let mut noted = self.record.policies.iter_mut();
        // The checksums of a policy are noted later than its other changes.
        if let Some(existing) = noted.find(|existing| existing.policy == policy.identity) {
            existing.effects.extend(effects);
            if !existing.digest.is_empty() {
                existing.digest = existing.effects.digest();
            }
            return;
        }
        let set_before = || self.recorded_before(&policy.identity)?.set.clone();
        let set = self.plan.options.set.clone().or_else(set_before);
        // Only records in annotations have digests, not those in a lock file.
        let digest = match self.is_annotated() {
            true => effects.digest(),
            false => String::new(),
        };
        let noted = PolicyRecord {
            policy: policy.identity.clone(),
            digest,
            set,
            generated: notes.generated,
            effects,
            ..PolicyRecord::default()
        };
        let at = self.place_of(&policy.identity);
        self.record.policies.insert(at, noted);
    }

    /// The index of a given policy in the record, before those that come after it. One that only has checksums is noted
    /// when all others are.
    fn place_of(&self, policy: &str) -> usize {
        let given = self.plan.policies.iter();
        let after = given.skip_while(|given| given.identity != policy).skip(1);
        let after: BTreeSet<&str> = after.map(|given| given.identity.as_str()).collect();
        let mut noted = self.record.policies.iter();
        let next = noted.position(|noted| after.contains(noted.policy.as_str()));
        next.unwrap_or(self.record.policies.len())
    }

    /// Drops all that was noted of the workload itself.
    pub(super) fn keep_only_generated(&mut self) {
        let policies = &mut self.record.policies;
        policies.retain(|policy| !policy.generated.is_empty());
        for policy in policies {
            policy.effects = Effects::default();
            if !policy.digest.is_empty() {
                policy.digest = policy.effects.digest();
            }
        }
    }

    /// What an earlier run recorded of a policy.
    fn recorded_before(&self, policy: &str) -> Option<&'r PolicyRecord> {
        self.plan.earlier?.record.policy(policy)
    }

    /// Whether the record goes into an annotation.
    fn is_annotated(&self) -> bool {
        let earlier = self.plan.earlier;
        let was_annotated = earlier.is_some_and(|earlier| earlier.is_annotated);
        self.plan.options.annotates(was_annotated)
    }

    /// Keeps the recorded position of items that the policy removes and other policies of this run have added. The user
    /// did not write these, so their current position says nothing.
    fn keep_recorded_positions(&self, policy: &str, effects: &mut Effects) {
        let Some(before) = self.recorded_before(policy) else {
            return;
        };
        let is_of_others = |path: &String| {
            let mut other_effects = self.record.policies.iter().map(|other| &other.effects);
            other_effects.any(|other| other.made.contains(path) || other.added.contains_key(path))
        };
        for (path, removed) in &mut effects.removed {
            let recorded = before.effects.removed.get(path);
            if let Some(recorded) = recorded.filter(|_| is_of_others(path)) {
                removed.after.clone_from(&recorded.after);
            }
        }
    }

    /// Restores the changes of a recorded policy that is not given in this run.
    pub(super) fn restore_policy(
        &mut self,
        redo: &Replay,
        draft: &mut Draft<'t>,
    ) -> Result<(), Box<Diagnostic>> {
        let workload = self.plan.workload;
        let replayed = redo
            .apply(draft, &self.paths)
            .map_err(|error| match error {
                ReplayError::Conflict(path) => {
                    replay_conflict(&path, &redo.record.policy, workload)
                }
                ReplayError::Entangled(path) => entangled(&path, &redo.record.policy, self.plan),
                ReplayError::Refused(refusal) => super::refusal_diagnostic(&refusal, workload),
            })?;
        let mut done = replayed.ok_or_else(|| Box::new(cannot_update_record(workload)))?;
        self.draft = draft.clone();
        self.keep_recorded_positions(&redo.record.policy, &mut done.effects);
        if !done.effects.is_empty() || !done.generated.is_empty() {
            self.record.policies.push(done);
        }
        Ok(())
    }

    /// Writes the marker if a policy changed something, and the record if it goes into an annotation. Returns it.
    pub(super) fn finish(mut self, draft: &mut Draft<'t>) -> Result<Option<Record>, Refusal> {
        if self.record.policies.is_empty() {
            return Ok(None);
        }
        let marks = marked(draft);
        let policies = self.record.policies.iter();
        let names = with_names(&marks, policies.map(|policy| &*policy.policy));
        let annotations = open_annotations(draft, &[])?;
        draft.set(annotations, MARKER, Value::String(names.join(",")), &[])?;
        if let Some(effects) = draft.effects_since(&self.draft, &self.paths, &[]) {
            self.record.marker = effects;
            self.record.marker.added.clear();
            if !marks.is_empty() {
                let (was, now) = (Value::String(marks), String::new());
                let path = self.paths.in_object(&["metadata", "annotations", MARKER]);
                let replaced = ReplacedValue { was, now };
                self.record.marker.replaced.insert(path, replaced);
                let made = self.plan.earlier.map(|earlier| &earlier.record.marker.made);
                self.record
                    .marker
                    .made
                    .extend(made.into_iter().flatten().cloned());
            }
        }
        let earlier = self.plan.earlier;
        self.record.text = earlier.and_then(|earlier| earlier.record.text.clone());
        if self.is_annotated() {
            write_record(draft, &self.record)?;
        } else {
            let workload = self.plan.workload;
            self.record.note_untouched(workload.tree, workload.pod_spec);
        }
        Ok(Some(self.record))
    }
}

fn replay_conflict(path: &str, policy: &str, workload: &Workload<'_>) -> Diagnostic {
    let message = format!(
        "{} of {} comes from policy `{policy}`, which is not given, and a given policy injects \
         something different there",
        words_of(path),
        workload.title(),
    );
    let problem =
        Diagnostic::error(Code::Conflict, message).at(workload.name_place(), "this workload");
    let command = undo_command(policy, &workload.source.name);
    problem.help(format!("pass `{policy}` as well, or remove it: {command}"))
}

/// The error that nobody can tell what a kept policy makes of the value that is there now.
fn entangled(path: &str, policy: &str, plan: &PlanContext<'_, '_>) -> Diagnostic {
    let workload = plan.workload;
    let message = format!(
        "{} of {} was changed by policy `{policy}`, which is not given, so its effect on the new \
         value is unclear",
        words_of(path),
        workload.title(),
    );
    let command = undo_command(policy, &workload.source.name);
    let help = match plan.options.take_out.is_undo() {
        true => format!("remove it as well: {command}"),
        false => format!("pass `{policy}` as well, or remove it: {command}"),
    };
    let problem = Diagnostic::error(Code::Conflict, message);
    let problem = problem.at(workload.name_place(), "this workload");
    problem.help(help)
}

/// Writes the record behind the marker, or replaces the existing one.
///
/// # Errors
/// When the annotations may not be edited.
pub(crate) fn write_record(draft: &mut Draft<'_>, record: &Record) -> Result<(), Refusal> {
    let annotations = open_annotations(draft, &[])?;
    let text = Value::String(record.render());
    if draft
        .text_at(&super::draft::DraftValue::Open(annotations), RECORD)
        .is_some()
    {
        return draft.set(annotations, RECORD, text, &[]);
    }
    draft.insert_field(annotations, Some(MARKER), RECORD, text);
    Ok(())
}

/// Why changes cannot be recorded.
const UNRECORDABLE: &str = "remove duplicate keys and tags that Kubernetes does not know, and give \
                            each container its own name";

/// The warning that changes of a workload without a record cannot be recorded.
pub(super) fn cannot_record(workload: &Workload<'_>) -> Diagnostic {
    let title = workload.title();
    let message =
        format!("the injection into {title} cannot be recorded, so undo cannot remove it");
    Diagnostic::warning(Code::NoRecord, message)
        .help(UNRECORDABLE)
        .at(workload.name_place(), "this workload")
}

/// The error that changes of a workload with a record cannot be recorded any more: its record would become wrong.
pub(super) fn cannot_update_record(workload: &Workload<'_>) -> Diagnostic {
    let title = workload.title();
    let message = format!("the injection into {title} can no longer be recorded");
    let help = format!("{UNRECORDABLE}; `podgraft undo` removes what the record lists");
    Diagnostic::error(Code::NoRecord, message)
        .help(help)
        .at(workload.name_place(), "this workload")
}

/// A policy to apply or to restore.
#[derive(Debug, Clone, Copy)]
pub(super) enum FoldStep<'f> {
    /// The index of a given policy.
    Given(usize),
    Kept(&'f Replay),
}

/// Returns the given policies in order, with each kept one behind the policy that it followed in the record. Those in
/// `idle` do not count: the new record will not have them, so the next run could not find the position.
pub(super) fn policy_order<'f>(
    plan: &PlanContext<'f, '_>,
    idle: &BTreeSet<&str>,
) -> Vec<FoldStep<'f>> {
    let (policies, options) = (plan.policies, plan.options);
    let mut order: Vec<FoldStep<'f>> = (0..policies.len()).map(FoldStep::Given).collect();
    let Some(earlier) = plan.earlier else {
        return order;
    };
    let mut previous: Option<&str> = None;
    for (policy, redo) in earlier.record.policies.iter().zip(&earlier.taken.redo) {
        let is_given = is_given(&policy.policy, policies, earlier);
        if !is_given && !is_dropped(policy, options) {
            let is_match = |turn: &FoldStep<'_>| previous == Some(name_of(turn, policies));
            let at = order.iter().position(is_match).map_or(0, |at| at + 1);
            order.insert(at, FoldStep::Kept(redo));
        }
        let holds_place = !idle.contains(policy.policy.as_str());
        if holds_place && (is_given || !is_dropped(policy, options)) {
            previous = Some(&policy.policy);
        }
    }
    order
}

/// The given policies that are in the earlier record but not in the new one. Empty if no policy is kept: then positions
/// do not matter.
pub(super) fn idle_policies<'f>(
    plan: &PlanContext<'f, '_>,
    recording: Option<&Recording<'_, '_>>,
) -> BTreeSet<&'f str> {
    let (Some(earlier), Some(recording)) = (plan.earlier, recording) else {
        return BTreeSet::new();
    };
    if kept(plan.policies, earlier, plan.options).next().is_none() {
        return BTreeSet::new();
    }
    let names = plan.policies.iter().map(|given| given.identity.as_str());
    let is_idle = |name: &&str| {
        earlier.record.policy(name).is_some() && recording.record.policy(name).is_none()
    };
    names.filter(is_idle).collect()
}

/// The recorded policies that are neither given nor to be removed: their changes are restored.
pub(super) fn kept<'f>(
    policies: &'f [Policy],
    earlier: &'f EarlierRun<'f>,
    options: &'f Options,
) -> impl Iterator<Item = &'f str> {
    let is_kept = |policy: &&PolicyRecord| {
        !is_given(&policy.policy, policies, earlier) && !is_dropped(policy, options)
    };
    let recorded = earlier.record.policies.iter();
    recorded
        .filter(is_kept)
        .map(|policy| policy.policy.as_str())
}

/// Whether a recorded policy is among the given ones and this run applies it.
fn is_given(policy: &str, policies: &[Policy], earlier: &EarlierRun<'_>) -> bool {
    policies.iter().any(|given| given.identity == policy) && earlier.evaluates(policy)
}

fn name_of<'f>(turn: &FoldStep<'f>, policies: &'f [Policy]) -> &'f str {
    match turn {
        FoldStep::Given(at) => &policies[*at].identity,
        FoldStep::Kept(redo) => &redo.record.policy,
    }
}

/// Whether a recorded policy that is not given is to be removed.
pub(crate) fn is_dropped(policy: &PolicyRecord, options: &Options) -> bool {
    options.removes(&policy.policy, policy.set.as_ref())
}
