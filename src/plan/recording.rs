//! The fold of policies with a record: what each did is noted, what an earlier run did is put back or left out.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::options::{Options, RemovalSelection};
use crate::policy::Policy;
use crate::record::redo::Replay;
use crate::record::words::{undo_command, words_of};
use crate::record::{
    Effects, JoinHint, JoinedText, MARKER, PolicyRecord, RECORD, Record, RecordPaths,
    RemovalResult, ReplacedValue, VERSION, digest, effects_of,
};
use crate::yaml::value::{has_value, to_value};

use super::draft::{Draft, Refusal};
use super::marks::{marked, open_annotations, with_names};
use super::reconcile::reconcile;

/// The changes of an earlier run. The workload is planned without them.
#[derive(Debug, Clone)]
pub struct EarlierRun<'r> {
    /// Its record.
    pub record: Record,
    /// The record stands in an annotation.
    pub is_annotated: bool,
    /// The object with all that it did.
    pub current: &'r Value,
    /// The object without, and what puts it back.
    pub taken: &'r RemovalResult,
    /// Policies of the record that this run adopts. Then nothing else is injected, and the others' items stay.
    pub adopting: Option<Vec<String>>,
}

impl EarlierRun<'_> {
    /// Whether a given policy is asked what it does to the workload.
    pub fn evaluates(&self, policy: &str) -> bool {
        let adopting = self.adopting.as_ref();
        adopting.is_none_or(|adopted| adopted.iter().any(|identity| identity == policy))
    }
}

/// Records the changes of this run to the workload.
#[derive(Debug, Clone)]
pub(super) struct Recording<'t> {
    paths: RecordPaths,
    /// The object as the policies so far left it.
    draft: Draft<'t>,
    record: Record,
}

/// What a rule notes for the record besides its changes.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleNotes {
    /// Texts joined to variables.
    pub joins: Vec<JoinHint>,
    /// What another policy of this workload had put there already, with its place.
    pub shared: Vec<(String, Value)>,
    /// Texts that another policy of this workload had joined already.
    pub repeated_joins: Vec<(String, JoinedText)>,
    /// Objects that the policy generates, with their digests.
    pub generated: BTreeMap<String, String>,
    /// What the policy wants and the manifest has already.
    pub satisfied: Vec<SatisfiedChange>,
}

/// A change that the manifest already satisfies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SatisfiedChange {
    /// Where it stands.
    pub path: String,
    /// A text that would be joined to the variable there.
    pub joined: Option<JoinedText>,
}

impl RuleNotes {
    pub(super) fn extend(&mut self, other: RuleNotes) {
        self.joins.extend(other.joins);
        self.shared.extend(other.shared);
        self.repeated_joins.extend(other.repeated_joins);
        self.generated.extend(other.generated);
        self.satisfied.extend(other.satisfied);
    }
}

impl<'t> Recording<'t> {
    /// `None` where nobody could tell later what was done: see [`cannot_record`].
    pub(super) fn begin(workload: &Workload<'t>, draft: &Draft<'t>) -> Option<Self> {
        let paths = RecordPaths::of(&workload.pod_kind.path);
        let Workload { tree, pod_spec, .. } = *workload;
        let names = |list: &str| -> Option<Vec<Option<Value>>> {
            let list = tree.get(pod_spec, list)?;
            let name = |item| to_value(tree, tree.get(item, "name")?).ok();
            Some(tree.items(list).map(name).collect())
        };
        let are_named = ["initContainers", "containers"].into_iter().all(|list| {
            let names = names(list).unwrap_or_default();
            are_names(names.iter().map(|name| name.as_ref()?.as_str()))
        });
        if !are_named || !has_value(tree, workload.object.node) {
            return None;
        }
        let record = Record {
            version: VERSION,
            pod: paths.template(),
            ..Record::default()
        };
        Some(Recording {
            paths,
            draft: draft.clone(),
            record,
        })
    }

    /// Notes what a policy did.
    pub(super) fn note(
        &mut self,
        policy: &Policy,
        draft: &Draft<'t>,
        notes: RuleNotes,
        earlier: Option<&EarlierRun<'_>>,
        options: &Options,
    ) {
        let Some((before, after)) = draft.difference(&self.draft) else {
            return;
        };
        let mut effects = effects_of(&before, &after, &self.paths, &notes.joins);
        let shared = notes.shared.into_iter();
        let shared = shared.map(|(path, value)| (path, digest(&value)));
        effects.shared = shared
            .filter(|(path, _)| !effects.added.contains_key(path))
            .collect();
        for (path, joined) in notes.repeated_joins {
            effects.joined.entry(path).or_insert(joined);
        }
        self.keep_recorded_positions(&policy.identity, &mut effects, earlier);
        self.draft = draft.clone();
        if effects.is_empty() && notes.generated.is_empty() {
            return;
        }
        let mut noted = self.record.policies.iter_mut();
        if let Some(existing) = noted.find(|existing| existing.policy == policy.identity) {
            existing.effects.extend(effects);
            if !existing.digest.is_empty() {
                existing.digest = existing.effects.digest();
            }
            return;
        }
        let before = earlier.and_then(|earlier| earlier.record.policy(&policy.identity));
        let set_before = || before.and_then(|before| before.set.clone());
        // A lock file has none.
        let is_annotated = earlier.is_some_and(|earlier| earlier.is_annotated);
        let digest = match options.annotates(is_annotated) {
            true => effects.digest(),
            false => String::new(),
        };
        self.record.policies.push(PolicyRecord {
            policy: policy.identity.clone(),
            digest,
            set: options.set.clone().or_else(set_before),
            generated: notes.generated,
            effects,
        });
    }

    /// Of what a policy takes away from others of this run, nobody wrote where it stood: that stays as it was recorded.
    fn keep_recorded_positions(
        &self,
        policy: &str,
        effects: &mut Effects,
        earlier: Option<&EarlierRun<'_>>,
    ) {
        let Some(before) = earlier.and_then(|earlier| earlier.record.policy(policy)) else {
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

    /// Puts back the work of a policy that is not given.
    pub(super) fn restore_policy(
        &mut self,
        redo: &Replay,
        draft: &mut Draft<'t>,
        workload: &Workload<'_>,
        earlier: &EarlierRun<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let Some(before) = draft.value(&draft.root()) else {
            return Err(Box::new(cannot_record(workload, true)));
        };
        let mut value = before.clone();
        let mut done = redo.apply(&mut value, &self.paths).map_err(|found| {
            let message = format!(
                "{} of {} is from policy `{}`, which is not given, and a given policy puts something else there",
                words_of(&found.path),
                workload.title(),
                found.policy
            );
            let problem = Diagnostic::error(Code::Conflict, message).at(workload.name_place(), "this workload");
            let command = undo_command(&found.policy, &workload.source.name, false);
            Box::new(problem.help(format!("give `{}`, too, or take it out: {command}", found.policy)))
        })?;
        reconcile(draft, &before, &value)
            .map_err(|refusal| Box::new(super::refusal_diagnostic(&refusal, workload)))?;
        self.draft = draft.clone();
        self.keep_recorded_positions(&redo.policy, &mut done.effects, Some(earlier));
        if !done.effects.is_empty() || !done.generated.is_empty() {
            self.record.policies.push(done);
        }
        Ok(())
    }

    /// Writes the marker where a policy did something, and the record where it belongs into an annotation.
    pub(super) fn finish(
        mut self,
        draft: &mut Draft<'t>,
        earlier: Option<&EarlierRun<'_>>,
        options: &Options,
    ) -> Result<Option<Record>, Refusal> {
        if self.record.policies.is_empty() {
            return Ok(None);
        }
        let marks = marked(draft);
        let policies = self.record.policies.iter();
        let names = with_names(&marks, policies.map(|policy| &*policy.policy));
        let annotations = open_annotations(draft)?;
        draft.set(annotations, MARKER, Value::String(names.join(",")), &[])?;
        if let Some((before, after)) = draft.difference(&self.draft) {
            self.record.marker = effects_of(&before, &after, &self.paths, &[]);
            self.record.marker.added.clear();
            if !marks.is_empty() {
                let (was, now) = (Value::String(marks), String::new());
                let path = self.paths.in_object(&["metadata", "annotations", MARKER]);
                self.record
                    .marker
                    .replaced
                    .insert(path, ReplacedValue { was, now });
            }
        }
        self.record.text = earlier.and_then(|earlier| earlier.record.text.clone());
        if options.annotates(earlier.is_some_and(|earlier| earlier.is_annotated)) {
            write_record(draft, &self.record)?;
        }
        Ok(Some(self.record))
    }
}

/// Writes the record behind the marker, or over the one that is there.
///
/// # Errors
/// Where the annotations may not be edited.
pub(crate) fn write_record(draft: &mut Draft<'_>, record: &Record) -> Result<(), Refusal> {
    let annotations = open_annotations(draft)?;
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

/// Containers without a name, or two of a list with one: what is put into each could not be told apart later.
pub(crate) fn has_twin_containers(object: &Value, template: &[String]) -> bool {
    let spec = template
        .iter()
        .try_fold(object, |value, key| value.get(key))
        .and_then(|template| template.get("spec"));
    let lists = ["initContainers", "containers"]
        .iter()
        .filter_map(|list| spec?.get(list)?.as_array());
    let mut names = lists.map(|list| list.iter().map(|container| container["name"].as_str()));
    names.any(|names| !are_names(names))
}

/// Whether all have a name, each another.
fn are_names<'n>(mut names: impl Iterator<Item = Option<&'n str>>) -> bool {
    let mut seen = BTreeSet::new();
    names.all(|name| name.is_some_and(|name| seen.insert(name)))
}

/// Something in the workload has no value that every reader agrees on, so nobody can say what changed. That is refused
/// where a record says already what was injected.
pub(super) fn cannot_record(workload: &Workload<'_>, has_record: bool) -> Diagnostic {
    let help = "readers disagree about some value in it (a key that stands twice, or a tag that Kubernetes does not know), \
               or containers have no name, or the same";
    let title = workload.title();
    let problem = if has_record {
        let message = format!("what is injected into {title} cannot be recorded any more");
        Diagnostic::error(Code::NoRecord, message).help(format!(
            "{help}; `podgraft undo` takes out what the record says"
        ))
    } else {
        let message =
            format!("what is injected into {title} cannot be recorded, so undo will not know it");
        Diagnostic::warning(Code::NoRecord, message).help(help)
    };
    problem.at(workload.name_place(), "this workload")
}

/// One step of the fold.
#[derive(Debug, Clone, Copy)]
pub(super) enum FoldStep<'f> {
    /// By its place in the order.
    Given(usize),
    Kept(&'f Replay),
}

/// The given policies in their order, and each kept one behind the one that it followed. Those that are `idle_policies` hold no
/// place: this run's record does not have them, and the next one could not know where they stood.
pub(super) fn policy_order<'f>(
    policies: &'f [Policy],
    earlier: Option<&'f EarlierRun<'f>>,
    options: &Options,
    idle: &BTreeSet<&str>,
) -> Vec<FoldStep<'f>> {
    let mut order: Vec<FoldStep<'f>> = (0..policies.len()).map(FoldStep::Given).collect();
    let Some(earlier) = earlier else { return order };
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

/// The given policies that did something in an earlier run, and nothing beside those that are kept.
pub(super) fn idle_policies<'f>(
    policies: &'f [Policy],
    earlier: Option<&'f EarlierRun<'f>>,
    options: &Options,
    recording: Option<&Recording>,
) -> BTreeSet<&'f str> {
    let (Some(earlier), Some(recording)) = (earlier, recording) else {
        return BTreeSet::new();
    };
    if kept(policies, earlier, options).next().is_none() {
        return BTreeSet::new();
    }
    let names = policies.iter().map(|given| given.identity.as_str());
    let is_idle = |name: &&str| {
        earlier.record.policy(name).is_some() && recording.record.policy(name).is_none()
    };
    names.filter(is_idle).collect()
}

/// The policies of the record whose work is put back as it was.
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

/// Whether a policy of the record is among the given ones, and this run asks it.
fn is_given(policy: &str, policies: &[Policy], earlier: &EarlierRun<'_>) -> bool {
    policies.iter().any(|given| given.identity == policy) && earlier.evaluates(policy)
}

fn name_of<'f>(turn: &FoldStep<'f>, policies: &'f [Policy]) -> &'f str {
    match turn {
        FoldStep::Given(at) => &policies[*at].identity,
        FoldStep::Kept(redo) => &redo.policy,
    }
}

/// Whether a policy of the record that is not given is to be taken out.
pub(crate) fn is_dropped(policy: &PolicyRecord, options: &Options) -> bool {
    match &options.take_out {
        RemovalSelection::Nothing => false,
        RemovalSelection::All => true,
        RemovalSelection::Only(names) => names.contains(&policy.policy),
        RemovalSelection::NotGiven(given) => {
            policy.set.is_some() && policy.set == options.set && !given.contains(&policy.policy)
        }
    }
}
