//! The fold of policies with a record: what each did is noted, what an earlier run did is put back or left out.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::options::{Options, TakeOut};
use crate::policy::Policy;
use crate::record::fold::Redo;
use crate::record::words::{undo_command, words_of};
use crate::record::{
    Effects, JoinHint, Joined, MARKER, Paths, PolicyRecord, RECORD, Record, Replaced, Taken,
    VERSION, digest, effects_of,
};
use crate::yaml::value::{has_value, to_value};

use super::draft::{Draft, Refusal};
use super::marks::{marked, open_annotations, with_names};
use super::reconcile::reconcile;

/// What an earlier run did to the workload, which is planned without it.
#[derive(Debug, Clone)]
pub struct Earlier<'r> {
    /// Its record.
    pub record: Record,
    /// The record stands in an annotation.
    pub is_annotated: bool,
    /// The object with all that it did.
    pub current: &'r Value,
    /// The object without, and what puts it back.
    pub taken: &'r Taken,
    /// Policies of the record that this run adopts. Then nothing else is injected, and the others' items stay.
    pub adopting: Option<Vec<String>>,
}

impl Earlier<'_> {
    /// Whether a given policy is asked what it does to the workload.
    pub fn acts(&self, policy: &str) -> bool {
        let adopting = self.adopting.as_ref();
        adopting.is_none_or(|adopted| adopted.iter().any(|own| own == policy))
    }
}

/// What the policies of this run do to the workload, as it is noted.
#[derive(Debug, Clone)]
pub(super) struct Recording<'t> {
    paths: Paths,
    /// The object as the policies so far left it.
    draft: Draft<'t>,
    record: Record,
}

/// What a rule says about its work, beside the result.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// Texts joined to variables.
    pub joins: Vec<JoinHint>,
    /// What another policy of this workload had put there already, with its place.
    pub shared: Vec<(String, Value)>,
    /// Texts that another policy of this workload had joined already.
    pub twins: Vec<(String, Joined)>,
    /// Objects that the policy generates, with their digests.
    pub generated: BTreeMap<String, String>,
    /// What the policy wants and the manifest has already.
    pub met: Vec<Met>,
}

/// Something that a policy wants and the manifest has already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// Where it stands.
    pub path: String,
    /// A text that would be joined to the variable there.
    pub joined: Option<Joined>,
}

impl Notes {
    pub(super) fn extend(&mut self, others: Notes) {
        self.joins.extend(others.joins);
        self.shared.extend(others.shared);
        self.twins.extend(others.twins);
        self.generated.extend(others.generated);
        self.met.extend(others.met);
    }
}

impl<'t> Recording<'t> {
    /// `None` where nobody could tell later what was done: see [`cannot_record`].
    pub(super) fn begin(workload: &Workload<'t>, draft: &Draft<'t>) -> Option<Self> {
        let paths = Paths::of(&workload.pod_kind.path);
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
        notes: Notes,
        earlier: Option<&Earlier<'_>>,
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
        for (path, joined) in notes.twins {
            effects.joined.entry(path).or_insert(joined);
        }
        self.keep_places(&policy.identity, &mut effects, earlier);
        self.draft = draft.clone();
        if effects.is_empty() && notes.generated.is_empty() {
            return;
        }
        let mut noted = self.record.policies.iter_mut();
        if let Some(own) = noted.find(|own| own.policy == policy.identity) {
            own.effects.extend(effects);
            if !own.digest.is_empty() {
                own.digest = own.effects.digest();
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
    fn keep_places(&self, policy: &str, effects: &mut Effects, earlier: Option<&Earlier<'_>>) {
        let Some(before) = earlier.and_then(|earlier| earlier.record.policy(policy)) else {
            return;
        };
        let is_of_others = |path: &String| {
            let mut others = self.record.policies.iter().map(|other| &other.effects);
            others.any(|other| other.made.contains(path) || other.added.contains_key(path))
        };
        for (path, removed) in &mut effects.removed {
            let recorded = before.effects.removed.get(path);
            if let Some(recorded) = recorded.filter(|_| is_of_others(path)) {
                removed.after.clone_from(&recorded.after);
            }
        }
    }

    /// Puts back the work of a policy that is not given.
    pub(super) fn put_back(
        &mut self,
        redo: &Redo,
        draft: &mut Draft<'t>,
        workload: &Workload<'_>,
        earlier: &Earlier<'_>,
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
            let problem = Diagnostic::error(Code::Conflict, message).at(workload.own_place(), "this workload");
            let command = undo_command(&found.policy, &workload.source.name, false);
            Box::new(problem.help(format!("give `{}`, too, or take it out: {command}", found.policy)))
        })?;
        reconcile(draft, &before, &value)
            .map_err(|refusal| Box::new(super::refusal_diagnostic(&refusal, workload)))?;
        self.draft = draft.clone();
        self.keep_places(&redo.policy, &mut done.effects, Some(earlier));
        if !done.effects.is_empty() || !done.generated.is_empty() {
            self.record.policies.push(done);
        }
        Ok(())
    }

    /// Writes the marker where a policy did something, and the record where it belongs into an annotation.
    pub(super) fn finish(
        mut self,
        draft: &mut Draft<'t>,
        earlier: Option<&Earlier<'_>>,
        options: &Options,
    ) -> Result<Option<Record>, Refusal> {
        if self.record.policies.is_empty() {
            return Ok(None);
        }
        let own = marked(draft);
        let policies = self.record.policies.iter();
        let names = with_names(&own, policies.map(|policy| &*policy.policy));
        let annotations = open_annotations(draft)?;
        draft.set(annotations, MARKER, Value::String(names.join(",")), &[])?;
        if let Some((before, after)) = draft.difference(&self.draft) {
            self.record.marker = effects_of(&before, &after, &self.paths, &[]);
            self.record.marker.added.clear();
            if !own.is_empty() {
                let (was, now) = (Value::String(own), String::new());
                let path = self.paths.in_object(&["metadata", "annotations", MARKER]);
                self.record
                    .marker
                    .replaced
                    .insert(path, Replaced { was, now });
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
        .text_at(&super::draft::Part::Open(annotations), RECORD)
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
    let why = "readers disagree about some value in it (a key that stands twice, or a tag that Kubernetes does not know), \
               or containers have no name, or the same";
    let title = workload.title();
    let problem = if has_record {
        let message = format!("what is injected into {title} cannot be recorded any more");
        Diagnostic::error(Code::NoRecord, message).help(format!(
            "{why}; `podgraft undo` takes out what the record says"
        ))
    } else {
        let message =
            format!("what is injected into {title} cannot be recorded, so undo will not know it");
        Diagnostic::warning(Code::NoRecord, message).help(why)
    };
    problem.at(workload.own_place(), "this workload")
}

/// One step of the fold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn<'f> {
    /// By its place in the order.
    Given(usize),
    Kept(&'f Redo),
}

/// The given policies in their order, and each kept one behind the one that it followed. Those that are `idle` hold no
/// place: this run's record does not have them, and the next one could not know where they stood.
pub(super) fn turns<'f>(
    policies: &'f [Policy],
    earlier: Option<&'f Earlier<'f>>,
    options: &Options,
    idle: &BTreeSet<&str>,
) -> Vec<Turn<'f>> {
    let mut turns: Vec<Turn<'f>> = (0..policies.len()).map(Turn::Given).collect();
    let Some(earlier) = earlier else { return turns };
    let mut previous: Option<&str> = None;
    for (policy, redo) in earlier.record.policies.iter().zip(&earlier.taken.redo) {
        let is_given = is_given(&policy.policy, policies, earlier);
        if !is_given && !is_dropped(policy, options) {
            let is_it = |turn: &Turn<'_>| previous == Some(name_of(turn, policies));
            let at = turns.iter().position(is_it).map_or(0, |at| at + 1);
            turns.insert(at, Turn::Kept(redo));
        }
        let holds_place = !idle.contains(policy.policy.as_str());
        if holds_place && (is_given || !is_dropped(policy, options)) {
            previous = Some(&policy.policy);
        }
    }
    turns
}

/// The given policies that did something in an earlier run, and nothing beside those that are kept.
pub(super) fn idle<'f>(
    policies: &'f [Policy],
    earlier: Option<&'f Earlier<'f>>,
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
    earlier: &'f Earlier<'f>,
    options: &'f Options,
) -> impl Iterator<Item = &'f str> {
    let is_kept = |own: &&PolicyRecord| {
        !is_given(&own.policy, policies, earlier) && !is_dropped(own, options)
    };
    let all = earlier.record.policies.iter();
    all.filter(is_kept).map(|own| own.policy.as_str())
}

/// Whether a policy of the record is among the given ones, and this run asks it.
fn is_given(policy: &str, policies: &[Policy], earlier: &Earlier<'_>) -> bool {
    policies.iter().any(|given| given.identity == policy) && earlier.acts(policy)
}

fn name_of<'f>(turn: &Turn<'f>, policies: &'f [Policy]) -> &'f str {
    match turn {
        Turn::Given(at) => &policies[*at].identity,
        Turn::Kept(redo) => &redo.policy,
    }
}

/// Whether a policy of the record that is not given is to be taken out.
pub(crate) fn is_dropped(policy: &PolicyRecord, options: &Options) -> bool {
    match &options.take_out {
        TakeOut::Nothing => false,
        TakeOut::All => true,
        TakeOut::Only(names) => names.contains(&policy.policy),
        TakeOut::NotGiven(given) => {
            policy.set.is_some() && policy.set == options.set && !given.contains(&policy.policy)
        }
    }
}
