//! Documents with records: planned as if nothing had been injected, compared with what is there, and proven to be
//! undone to the byte before anything leaves.

use memchr::memmem::Finder;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::sync::LazyLock;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::object::{Found, find_objects};
use crate::manifest::pod::Workload;
use crate::outcome::{Companion, Outcome, PolicyReport};
use crate::ownership::{RecordedWorkload, Room};
use crate::plan::draft::Draft;
use crate::plan::metrics::metrics_port;
use crate::plan::patch::patch_of;
use crate::plan::reconcile::reconcile;
use crate::plan::recording::{Earlier, is_dropped, write_record};
use crate::plan::{refusal_diagnostic, unfit};
use crate::record::{Changed, Leniency, MARKER, RECORD, Record, arrange};
use crate::source::{Place, Source};
use crate::undo::{Recorded, Stripped, objects_of, strip};
use crate::yaml::parse::parse;
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::is_equal;

use super::Chunk;
use super::adopt::not_adopted;
use super::check::check;
use super::loose_mounts::loose_mounts;
use super::record_refusals::{changed_form, changed_since, explain, without_record};
use super::refusals::{refuse_pod, untyped};
use super::retire::generated;

static ANNOTATION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(RECORD.as_bytes()));
static MARKED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARKER.as_bytes()));

/// A workload as the run wants it, before its text is settled.
pub(super) struct Pending<'t> {
    pub workload: Workload<'t>,
    policies: Vec<PolicyReport>,
    pub wanted: Wanted<'t>,
    pub record: Option<Record>,
    /// The record belongs into an annotation.
    pub is_annotated: bool,
    /// It was planned, so that the record holds.
    is_planned: bool,
    metrics_port: Option<u16>,
    ephemeral_containers: Vec<Value>,
    companions: Vec<Companion>,
}

impl<'t> Pending<'t> {
    /// Left as it is.
    fn same(workload: Workload<'t>, policies: Vec<PolicyReport>) -> Self {
        Self::new(workload, policies, Wanted::Same)
    }

    fn new(workload: Workload<'t>, policies: Vec<PolicyReport>, wanted: Wanted<'t>) -> Self {
        let (record, metrics_port, ephemeral_containers, companions) =
            (None, None, Vec::new(), Vec::new());
        Pending {
            workload,
            policies,
            wanted,
            record,
            is_annotated: false,
            is_planned: false,
            metrics_port,
            ephemeral_containers,
            companions,
        }
    }
}

/// The drafts of objects, and the edits of each changed one.
type Written<'t> = (Vec<(NodeId, Draft<'t>)>, Vec<(NodeId, Vec<Edit>)>);

pub(super) enum Wanted<'t> {
    /// As it is.
    Same,
    /// A draft of the workload.
    Draft(Draft<'t>),
    /// Another value than it has.
    Value(Value),
    /// As it was before anything was injected, to the byte; the value where patches are made of it.
    Base(Option<Value>),
}

/// A document and the same without what its records say.
pub(super) struct Pair<'p, 't> {
    pub tree: &'t Tree<'t>,
    pub source: &'t Source<'t>,
    pub recorded: &'p [Recorded],
    pub stripped: &'p Stripped,
    /// What undo must give back.
    pub original: &'p str,
}

impl<'a> Chunk<'a, '_> {
    /// Whether what an earlier run did is written here.
    pub(super) fn has_recorded(&self) -> bool {
        ANNOTATION.find(self.bytes).is_some() || self.is_locked()
    }

    /// Whether the lock files of the run know something of this file, and an earlier run did something here.
    fn is_locked(&self) -> bool {
        self.setting.inventory.locks().is_for(self.setting.name) && self.is_marked()
    }

    /// Whether what an earlier run did is written here, or what this one does is to be.
    pub(super) fn has_records(&self) -> bool {
        let options = self.setting.options;
        let may_adopt = options.marker && options.lock && self.is_marked();
        options.is_recording() || may_adopt || self.has_recorded() || self.is_to_undo()
    }

    /// Whether an earlier run did something here that is to be undone.
    pub(super) fn is_to_undo(&self) -> bool {
        self.setting.options.take_out.is_undo() && self.is_marked()
    }

    /// Whether an earlier run did something here.
    pub(super) fn is_marked(&self) -> bool {
        MARKED.find(self.bytes).is_some()
    }

    pub(super) fn objects_with_records<'t>(&mut self, tree: &'t Tree<'t>, source: &'t Source<'t>)
    where
        'a: 't,
    {
        let found = find_objects(tree, self.setting.kinds);
        let Some(mut recorded) = self.read_records(tree, source, &found) else {
            return;
        };
        self.adopt_unrecorded(tree, source, &found, &mut recorded);
        let strip_all = |chunk: &Self, recorded: &[Recorded]| {
            let (kinds, has_more) = (chunk.setting.kinds, chunk.place.has_more);
            strip(tree, kinds, recorded, has_more, |policy| {
                chunk.leniency(policy)
            })
        };
        let stripped = strip_all(self, &recorded).and_then(|stripped| {
            match self.adopt_changed(source, tree, &mut recorded, &stripped) {
                true => strip_all(self, &recorded),
                false => Ok(stripped),
            }
        });
        let stripped = stripped.and_then(|stripped| {
            match self.disown(source, tree, &mut recorded, &stripped) {
                true => strip_all(self, &recorded),
                false => Ok(stripped),
            }
        });
        let stripped = match stripped {
            Ok(stripped) => stripped,
            Err(obstacle) => {
                return self
                    .report
                    .diagnostics
                    .push(explain(obstacle, tree, source, &recorded));
            }
        };
        if stripped.is_inexact {
            let note = changed_form().at(source.place(0..0), "in this document");
            self.report.diagnostics.push(note);
        }
        let Some(original) = self.original(tree, source, &recorded, &stripped) else {
            return;
        };
        let pair = Pair {
            tree,
            source,
            recorded: &recorded,
            stripped: &stripped,
            original: &original,
        };
        let pending = self.plan_all(&pair, found);
        let is_refused = self.report.diagnostics[self.first_problem..]
            .iter()
            .any(Diagnostic::is_error);
        self.settle(&pair, pending, is_refused);
    }

    /// What of a policy somebody changed stays where the policy is given (then it is in the way) or is to go (then that
    /// is refused). What is kept is put back as it is.
    fn leniency(&self, policy: &str) -> Leniency {
        let is_given = self
            .setting
            .policies
            .iter()
            .any(|given| given.identity == policy);
        match is_given || (self.is_dropped(policy) && !self.setting.options.force) {
            true => Leniency::Leave,
            false => Leniency::Force,
        }
    }

    fn is_dropped(&self, policy: &str) -> bool {
        // Which set it is of does not matter here: what is kept is put back either way.
        let named = crate::record::PolicyRecord {
            policy: policy.to_owned(),
            ..Default::default()
        };
        is_dropped(&named, self.setting.options)
    }

    /// What undo gives back in the end, where what somebody changed stays.
    fn original(
        &mut self,
        tree: &Tree<'_>,
        source: &Source<'_>,
        recorded: &[Recorded],
        stripped: &Stripped,
    ) -> Option<String> {
        let strictly = |policy: &str| match self.is_dropped(policy) && self.setting.options.force {
            true => Leniency::Force,
            false => Leniency::Leave,
        };
        let mut changed = stripped.taken.iter().flat_map(|taken| &taken.changed);
        if changed.all(|changed| strictly(&changed.policy) == self.leniency(&changed.policy)) {
            return Some(stripped.text.clone());
        }
        match strip(
            tree,
            self.setting.kinds,
            recorded,
            self.place.has_more,
            strictly,
        ) {
            Ok(original) => Some(original.text),
            Err(obstacle) => {
                self.report
                    .diagnostics
                    .push(explain(obstacle, tree, source, recorded));
                None
            }
        }
    }

    /// Plans every workload: one with a record as if nothing had been injected.
    fn plan_all<'t>(&mut self, pair: &Pair<'_, 't>, found: Vec<Found>) -> Vec<Pending<'t>>
    where
        'a: 't,
    {
        let parsed = (!pair.recorded.is_empty()).then(|| parse(&pair.stripped.text));
        let Ok(base_tree) = parsed.as_ref().map(Result::as_ref).transpose() else {
            return Vec::new();
        };
        let base_source = Source {
            text: &pair.stripped.text,
            ..pair.source.clone()
        };
        let base_found = base_tree.map(|tree| find_objects(tree, self.setting.kinds));
        let base_found = base_found.unwrap_or_default();
        let mut pending = Vec::new();
        for (at, found) in found.into_iter().enumerate() {
            self.report.objects += 1;
            let object = match found {
                Found::Object(object) => object,
                Found::Untyped { list_kind, node } => {
                    let place = pair.source.place(pair.tree.span(node));
                    self.report.diagnostics.push(untyped(&list_kind, place));
                    continue;
                }
            };
            let node = object.node;
            let Some(workload) = self.workload_of(object, pair.tree, pair.source) else {
                continue;
            };
            let recorded = pair.recorded.iter().position(|one| one.node == node);
            let base = recorded.and_then(|_| match base_found.get(at) {
                Some(Found::Object(base)) => {
                    let kind = workload.pod_kind;
                    let namespace = self.setting.options.namespace_in(self.setting.name);
                    Workload::read(base_tree?, &base_source, base.clone(), kind, namespace).ok()
                }
                _ => None,
            });
            pending.push(match (recorded, base) {
                (Some(one), Some(base)) => self.plan_again(workload, &base, one, pair),
                _ => self.plan_first(workload, pair),
            });
        }
        pending
    }

    /// A workload without a record.
    fn plan_first<'t>(&mut self, workload: Workload<'t>, pair: &Pair<'_, 't>) -> Pending<'t> {
        if let Some(policies) = self.left_alone(&workload) {
            return Pending::same(workload, policies);
        }
        if self.setting.options.take_out.is_undo() {
            let problem = without_record(&workload, self.setting.options);
            self.report.diagnostics.extend(problem);
            return Pending::same(workload, Vec::new());
        }
        let mut planned = self.planned(&workload, None);
        if self.setting.options.adopt {
            return Pending::same(workload, not_adopted(planned));
        }
        if let Some(policies) = self.refused_pod(&workload, &planned.policies) {
            return Pending::same(workload, policies);
        }
        self.add_room(planned.record.as_mut(), pair, &workload, None);
        self.report.needs.append(planned.needs);
        self.add_diagnostics(planned.diagnostics, &workload);
        let metrics_port = metrics_port(&workload, &planned.draft);
        let wanted = if planned.draft.is_changed() {
            Wanted::Draft(planned.draft)
        } else {
            Wanted::Same
        };
        let ephemeral_containers = planned
            .ephemeral_containers
            .iter()
            .map(|item| (*item.value).clone())
            .collect();
        let pending = Pending::new(workload, planned.policies, wanted);
        let companions = planned.companions;
        Pending {
            record: planned.record,
            is_annotated: self.setting.options.annotates(false),
            is_planned: true,
            metrics_port,
            ephemeral_containers,
            companions,
            ..pending
        }
    }

    /// A workload with a record: planned on its base, then compared with what it is.
    fn plan_again<'t>(
        &mut self,
        workload: Workload<'t>,
        base: &Workload<'_>,
        recorded: usize,
        pair: &Pair<'_, 't>,
    ) -> Pending<'t> {
        if let Some(policies) = self.left_alone(&workload) {
            return Pending::same(workload, policies);
        }
        if let Some(refused) = refuse_pod(&workload) {
            self.report.diagnostics.push(refused);
            return Pending::same(workload, self.all(|| Outcome::Failed));
        }
        let first = self.report.diagnostics.len();
        let (one, taken) = (&pair.recorded[recorded], &pair.stripped.taken[recorded]);
        let mut record = one.record.clone();
        for (policy, redo) in record.policies.iter_mut().zip(&taken.redo) {
            redo.resolve(policy);
        }
        let earlier = Earlier {
            record,
            is_annotated: one.is_annotated,
            current: &one.value,
            taken,
            adopting: self.setting.options.adopt.then(|| one.adopted.clone()),
        };
        let mut planned = self.planned(base, Some(&earlier));
        self.add_room(planned.record.as_mut(), pair, &workload, Some(&one.record));
        self.report.needs.append(planned.needs);
        let moves = OnceCell::new();
        let moved = planned.diagnostics.into_iter().map(|mut problem| {
            for label in problem
                .labels
                .iter_mut()
                .filter(|label| label.place.source == pair.source.name)
            {
                let moves = moves.get_or_init(|| Moves::of(base.source, pair));
                label.place = moves.place_before(&label.place);
            }
            problem
        });
        self.add_diagnostics(moved.collect(), &workload);
        self.refuse_changed(&workload, &planned.policies, &taken.changed);
        let is_base = planned.record.is_none() && !planned.draft.is_changed();
        let has_patches = self.setting.options.patches;
        let target = match is_base && !has_patches && one.record.text.is_none() {
            // The text without it was compared with this when it was taken out.
            true => Some(Cow::Borrowed(&taken.value)),
            false => planned.draft.value(&planned.draft.root()).map(Cow::Owned),
        };
        let Some(target) = target else {
            let message = format!("{} has no plain value", workload.title());
            self.report
                .diagnostics
                .push(Diagnostic::error(Code::Internal, message).at(workload.own_place(), "here"));
            return Pending::same(workload, planned.policies);
        };
        let current = &one.value;
        let force = self.setting.options.force;
        let is_refused = |problems: &[Diagnostic]| problems.iter().any(Diagnostic::is_error);
        if !is_refused(&self.report.diagnostics[first..]) {
            let loose = loose_mounts(&workload, current, &target, &one.record, force);
            if loose.is_empty() {
                let given = (self.setting.policies, self.setting.options);
                let told = &self.report.diagnostics[first..];
                let unfit = unfit(base, &target, &earlier, given, told).into_iter();
                let unfit = unfit.map(|problem| problem.at(workload.own_place(), "this workload"));
                self.report.diagnostics.extend(unfit.collect::<Vec<_>>());
            }
            self.report.diagnostics.extend(loose);
        }
        let wanted = if is_base {
            Wanted::Base(has_patches.then(|| target.into_owned()))
        } else {
            let mut target = target.into_owned();
            arrange(&mut target, current);
            if is_equal(&target, current) {
                Wanted::Same
            } else {
                Wanted::Value(target)
            }
        };
        let metrics_port = metrics_port(base, &planned.draft);
        let ephemeral_containers = planned
            .ephemeral_containers
            .iter()
            .map(|item| (*item.value).clone())
            .collect();
        let pending = Pending::new(workload, planned.policies, wanted);
        let companions = planned.companions;
        Pending {
            record: planned.record,
            is_annotated: self.setting.options.annotates(one.is_annotated),
            is_planned: true,
            metrics_port,
            ephemeral_containers,
            companions,
            ..pending
        }
    }

    /// Notes what becomes of the text beside the objects that policies generate.
    fn add_room(
        &self,
        record: Option<&mut Record>,
        pair: &Pair<'_, '_>,
        workload: &Workload<'_>,
        earlier: Option<&Record>,
    ) {
        let Some(record) = record.filter(|record| generated(record).next().is_some()) else {
            return;
        };
        let now = self.beside(workload).room(workload.tree);
        // What undo gives back has a last line end where what was injected stood in the last lines.
        let now = if pair.original.ends_with('\n') {
            Room {
                list: now.list,
                ..Room::default()
            }
        } else {
            now
        };
        let earlier = earlier.filter(|earlier| generated(earlier).next().is_some());
        record.room = earlier
            .map(|earlier| earlier.room.clone())
            .unwrap_or_default();
        record.room.join(&now);
        if now.unended {
            // The end of the text is no longer the document's own.
            record.text = None;
        }
    }

    fn refuse_changed(
        &mut self,
        workload: &Workload<'_>,
        policies: &[PolicyReport],
        changed: &[Changed],
    ) {
        for Changed { policy, path } in changed {
            let is_given = self
                .setting
                .policies
                .iter()
                .any(|given| given.identity == *policy);
            let is_gone = policies.iter().any(|report| {
                *report.policy == **policy && matches!(report.outcome, Outcome::TakenOut(_))
            });
            // Then the message about the conflict says it.
            let has_failed = policies
                .iter()
                .any(|report| *report.policy == **policy && report.outcome == Outcome::Failed);
            if is_gone && !self.setting.options.force {
                self.report
                    .diagnostics
                    .push(changed_since(workload, policy, path));
            } else if is_given && !is_gone && !has_failed {
                let warning = changed_since(workload, policy, path)
                    .with_severity(crate::diagnostic::Severity::Warning);
                self.report
                    .diagnostics
                    .push(warning.help("what it was changed to stays"));
            }
        }
    }

    /// Writes the workloads, and notes where undo needs more than the records say.
    fn settle<'t>(&mut self, pair: &Pair<'_, 't>, mut pending: Vec<Pending<'t>>, is_refused: bool) {
        let is_changed = pending
            .iter()
            .any(|one| !matches!(one.wanted, Wanted::Same));
        if is_refused || !is_changed {
            return self.report_all(pair, pending, Vec::new(), Vec::new());
        }
        let mut written = self.write_checked(pair, &pending);
        if let Some((_, edits)) = &written
            && let Some(texts) = self.prove(pair, &pending, edits)
        {
            let own = objects_of(pair.tree, self.setting.kinds);
            for one in &mut pending {
                let at = own
                    .iter()
                    .position(|node| *node == one.workload.object.node);
                if let (Some(record), Some(at)) = (&mut one.record, at) {
                    record.text = texts.get(at).cloned().flatten();
                }
            }
            written = self.write_checked(pair, &pending);
            if let Some((_, edits)) = &written
                && self.prove(pair, &pending, edits).is_some()
            {
                self.unproven(pair, &pending, "the bytes differ");
                let is_refused = self.report.diagnostics[self.first_problem..]
                    .iter()
                    .any(Diagnostic::is_error);
                written = written.filter(|_| !is_refused);
            }
        }
        let (drafts, edits) = written.unwrap_or_default();
        self.report_all(pair, pending, drafts, edits);
    }

    /// The edits of every changed workload, and the draft of those that do not go back to what they were. `None` after a
    /// problem.
    fn write_checked<'t>(
        &mut self,
        pair: &Pair<'_, 't>,
        pending: &[Pending<'t>],
    ) -> Option<Written<'t>> {
        let (drafts, mut edits) = self.write_all(pair, pending)?;
        if !drafts.is_empty() && !self.check_all(pair, &drafts, &edits) {
            return None;
        }
        // These were written and checked when they were taken out.
        let bases = pending
            .iter()
            .filter(|one| matches!(one.wanted, Wanted::Base(_)));
        edits.extend(bases.map(|one| {
            let node = one.workload.object.node;
            (node, stripped_edits(pair, node))
        }));
        Some((drafts, edits))
    }

    fn write_all<'t>(
        &mut self,
        pair: &Pair<'_, 't>,
        pending: &[Pending<'t>],
    ) -> Option<Written<'t>> {
        let (mut drafts, mut edits) = (Vec::new(), Vec::new());
        for one in pending
            .iter()
            .filter(|one| !matches!(one.wanted, Wanted::Base(_)))
        {
            let node = one.workload.object.node;
            let written = draft_of(one, pair)
                .map_err(|refusal| Box::new(refusal_diagnostic(&refusal, &one.workload)));
            let Some(draft) = self.good(written)? else {
                continue;
            };
            let written = self.write(&draft, &one.workload);
            let own = self.good(written)?;
            edits.push((node, own));
            drafts.push((node, draft));
        }
        Some((drafts, edits))
    }

    fn good<T>(&mut self, result: Result<T, Box<Diagnostic>>) -> Option<T> {
        result
            .map_err(|problem| self.report.diagnostics.push(*problem))
            .ok()
    }

    fn check_all<'t>(
        &mut self,
        pair: &Pair<'_, 't>,
        drafts: &[(NodeId, Draft<'t>)],
        edits: &[(NodeId, Vec<Edit>)],
    ) -> bool {
        let problem = check(pair.tree, pair.source, drafts, &flat(edits), &[]);
        let is_right = problem.is_none();
        self.report.diagnostics.extend(problem);
        is_right
    }

    fn report_all<'t>(
        &mut self,
        pair: &Pair<'_, 't>,
        pending: Vec<Pending<'t>>,
        drafts: Vec<(NodeId, Draft<'t>)>,
        edits: Vec<(NodeId, Vec<Edit>)>,
    ) {
        let (start, before) = (self.place.start, self.report.edits.len());
        // What is taken out as a whole is written as it was, which the drafts do not say.
        let has_base = pending
            .iter()
            .any(|one| matches!(one.wanted, Wanted::Base(_)));
        for one in pending {
            let node = one.workload.object.node;
            let first = self.report.edits.len();
            let own = edits
                .iter()
                .find(|(own, _)| *own == node)
                .map_or(&[][..], |(_, edits)| edits);
            let draft = match one.wanted {
                _ if !self.setting.options.patches => None,
                Wanted::Base(Some(_)) if !own.is_empty() => draft_of(&one, pair).ok().flatten(),
                _ => drafts
                    .iter()
                    .find(|(own, _)| *own == node)
                    .map(|(_, draft)| draft.clone()),
            };
            let in_file = own.iter().map(|edit| Edit {
                at: edit.at.start + start..edit.at.end + start,
                text: edit.text.clone(),
            });
            self.report.edits.extend(in_file);
            self.place(
                one.companions,
                &one.workload,
                (own, first..self.report.edits.len()),
            );
            self.report
                .needed
                .extend(one.record.iter().flat_map(generated));
            let is_injected =
                matches!(one.wanted, Wanted::Draft(_)) && first < self.report.edits.len();
            let from = pair
                .recorded
                .iter()
                .find(|own| own.node == node)
                .and_then(|own| own.from.clone());
            if (self.setting.options.lock || from.is_some()) && one.is_planned {
                self.report.records.push(RecordedWorkload {
                    kind: one.workload.object.kind.clone(),
                    namespace: one.workload.stated_namespace().to_owned(),
                    name: one.workload.name.clone(),
                    from,
                    record: one.record.clone().filter(|_| !one.is_annotated),
                });
            }
            self.report.has_unrecorded |= is_injected && one.record.is_none();
            if !self.setting.options.details {
                continue;
            }
            let mut described =
                self.describe(&one.workload, one.policies, first..self.report.edits.len());
            described.patch = draft.as_ref().map(patch_of);
            described.metrics_port = one.metrics_port;
            described.ephemeral_containers = one.ephemeral_containers;
            self.report.workloads.push(described);
        }
        if !has_base {
            self.check_companions(pair.tree, pair.source, before, drafts);
        }
        self.report_companions();
    }
}

/// Of the edits that take everything out, those of one object.
fn stripped_edits(pair: &Pair<'_, '_>, node: NodeId) -> Vec<Edit> {
    let starts: Vec<usize> = pair
        .recorded
        .iter()
        .map(|one| pair.tree.span(one.node).start)
        .collect();
    let own = pair
        .recorded
        .iter()
        .position(|one| one.node == node)
        .unwrap_or_default();
    let from = if own == 0 { 0 } else { starts[own] };
    let to = starts.get(own + 1).copied().unwrap_or(usize::MAX);
    let edits = pair.stripped.edits.iter();
    edits
        .filter(|edit| edit.at.start >= from && edit.at.start < to)
        .cloned()
        .collect()
}

pub(super) fn flat(edits: &[(NodeId, Vec<Edit>)]) -> Vec<Edit> {
    let mut flat: Vec<Edit> = edits
        .iter()
        .flat_map(|(_, edits)| edits.iter().cloned())
        .collect();
    flat.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    flat
}

fn draft_of<'t>(
    one: &Pending<'t>,
    pair: &Pair<'_, 't>,
) -> Result<Option<Draft<'t>>, crate::plan::draft::Refusal> {
    let mut draft = match &one.wanted {
        Wanted::Same | Wanted::Base(None) => return Ok(None),
        Wanted::Draft(draft) => draft.clone(),
        Wanted::Value(target) | Wanted::Base(Some(target)) => {
            let node = one.workload.object.node;
            let mut draft = Draft::new(pair.tree, node);
            if let Some(recorded) = pair.recorded.iter().find(|own| own.node == node) {
                reconcile(&mut draft, &recorded.value, target)?;
            }
            draft
        }
    };
    if let Some(record) = one.record.as_ref().filter(|_| one.is_annotated) {
        write_record(&mut draft, record)?;
    }
    Ok(Some(draft))
}

/// Where in the document places of its base stand.
struct Moves<'m> {
    base: &'m Source<'m>,
    source: &'m Source<'m>,
    /// Where each line of the base begins.
    lines: Vec<usize>,
    /// Each edit: where it begins and ends in the base, and where it ends in the document.
    edits: Vec<(Range<usize>, usize)>,
    counted: Cell<(usize, usize)>,
}

impl<'m> Moves<'m> {
    fn of(base: &'m Source<'m>, pair: &'m Pair<'_, '_>) -> Self {
        let ends = base.text.match_indices('\n').map(|(at, _)| at + 1);
        let (mut here, mut there) = (0, 0);
        let edits = pair.stripped.edits.iter().map(|edit| {
            let start = here + edit.at.start - there;
            (here, there) = (start + edit.text.len(), edit.at.end);
            (start..here, there)
        });
        Moves {
            base,
            source: pair.source,
            lines: std::iter::once(0).chain(ends).collect(),
            edits: edits.collect(),
            counted: Cell::default(),
        }
    }

    fn place_before(&self, place: &Place) -> Place {
        let line = place.line.saturating_sub(self.base.first_line);
        let start = self.lines.get(line).copied();
        let line_start = start.unwrap_or(self.base.text.len());
        let column: usize = self.base.text[line_start..]
            .chars()
            .take(place.column - 1)
            .map(char::len_utf8)
            .sum();
        let wanted = line_start + column;
        let behind = self.edits.partition_point(|(own, _)| own.start <= wanted);
        let last = behind.checked_sub(1).map(|last| &self.edits[last]);
        let (here, there) = last.map_or((0, 0), |(own, there)| (own.end, *there));
        let at = there + wanted.saturating_sub(here);
        let span = at..at + (place.end - place.start);
        self.source.place_near(span, &self.counted)
    }
}
