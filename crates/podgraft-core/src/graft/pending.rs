//! Plans every workload of a document as if nothing had been injected before, and compares the plan with the current
//! state. No text is written yet.

use serde_json::Value;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::object::{DocumentContent, find_objects};
use crate::manifest::pod::Workload;
use crate::outcome::needs::RunNeeds;
use crate::outcome::{Author, GeneratedObject, Outcome, PolicyReport};
use crate::ownership::TextAdjustment;
use crate::plan::draft::Draft;
use crate::plan::draft_paths::joined_values;
use crate::plan::metrics::metrics_port;
use crate::plan::recording::EarlierRun;
use crate::plan::removal::RemovalResult;
use crate::plan::{WorkloadPlan, faults_of_kept};
use crate::policy::PolicyValue;
use crate::record::{Record, RecordPaths, RecordedValue, note_order, restore_order_around};
use crate::undo::RecordedObject;
use crate::verify::is_drafted;
use crate::yaml::splice::Edit;
use crate::yaml::tree::Tree;
use crate::yaml::value::is_equal;

use super::adopt::not_adopted;
use super::blame::PlanBlame;
use super::changed_file::InputOffsets;
use super::dangling_mounts::dangling_mounts;
use super::objects::{ObjectClass, OtherObject};
use super::prune::generated;
use super::record_refusals::without_record;
use super::recorded::{OffsetMap, RecordedDocument};
use super::records::drop_kept_defaults;
use super::refusals::{refuse_pod, refuse_workload};

/// A workload with its desired state, and the edits of its text when they are written.
pub(super) struct PendingWorkload<'t> {
    pub workload: Workload<'t>,
    pub policies: Vec<PolicyReport>,
    pub wanted: DesiredState<'t>,
    /// What the plan holds beside the workload; `None` if the workload is left alone.
    pub beside: Option<PlannedExtras>,
    pub metrics_port: Option<u16>,
    pub problems: Vec<Diagnostic>,
    /// Byte ranges are those of the document.
    pub edits: Vec<Edit>,
    /// The draft that the edits implement, if it is not the wanted draft itself.
    pub written: Option<Draft<'t>>,
    pub authors: Vec<Vec<Author>>,
}

pub(super) enum DesiredState<'t> {
    /// The current state.
    Same,
    /// The state after these changes to it.
    Draft(Draft<'t>),
    /// This value, which differs from the current one.
    Value(Value),
    /// The state before any injection, byte for byte. The value is only set if patches are made from it.
    Base(Option<Value>),
}

/// What a plan holds beside the workload itself.
pub(super) struct PlannedExtras {
    pub record: Option<Record>,
    /// The record goes into an annotation, not into the lock file.
    pub is_annotated: bool,
    /// See [`RecordedWorkload::joined_values`](crate::ownership::RecordedWorkload::joined_values).
    pub joined_values: BTreeMap<String, String>,
    pub companions: Vec<GeneratedObject>,
    pub ephemeral_containers: Vec<Value>,
    pub needs: RunNeeds,
    /// `None` unless the options ask for authors and several policies change the workload.
    pub blame: Option<PlanBlame>,
}

/// The plans for all objects of a document, and their edits when they are written.
#[derive(Default)]
pub(super) struct Plan<'t> {
    pub pending: Vec<PendingWorkload<'t>>,
    /// The objects that are no workloads, each with the number of workloads before it.
    pub others: Vec<(usize, OtherObject)>,
    /// Problems of the edited document as a whole.
    pub problems: Vec<Diagnostic>,
    /// Whether the edited document was compared with its drafts.
    pub is_checked: bool,
}

impl Plan<'_> {
    /// Whether an error already keeps the document from being edited.
    pub(super) fn is_refused(&self) -> bool {
        let of_workloads = self.pending.iter().flat_map(|pending| &pending.problems);
        let of_others = self.others.iter().flat_map(|(_, other)| &other.problems);
        of_workloads.chain(of_others).any(Diagnostic::is_error)
    }
}

impl<'t> PendingWorkload<'t> {
    /// Leaves the workload as it is.
    fn unchanged(workload: Workload<'t>, policies: Vec<PolicyReport>) -> Self {
        PendingWorkload {
            workload,
            policies,
            wanted: DesiredState::Same,
            beside: None,
            metrics_port: None,
            problems: Vec::new(),
            edits: Vec::new(),
            written: None,
            authors: Vec::new(),
        }
    }

    fn refused(workload: Workload<'t>, policies: Vec<PolicyReport>, problem: Diagnostic) -> Self {
        PendingWorkload {
            problems: vec![problem],
            ..PendingWorkload::unchanged(workload, policies)
        }
    }

    /// The new record of the workload.
    pub(super) fn record(&self) -> Option<&Record> {
        self.beside.as_ref()?.record.as_ref()
    }

    /// The draft of the changed workload; `None` if it stays, or returns to its base.
    pub(super) fn draft(&self) -> Option<&Draft<'t>> {
        self.written.as_ref().or(match &self.wanted {
            DesiredState::Draft(draft) => Some(draft),
            DesiredState::Same | DesiredState::Value(_) | DesiredState::Base(_) => None,
        })
    }

    pub(super) fn is_changed(&self) -> bool {
        !matches!(self.wanted, DesiredState::Same)
    }

    pub(super) fn is_base(&self) -> bool {
        matches!(self.wanted, DesiredState::Base(_))
    }
}

impl<'t> RecordedDocument<'t> {
    /// Plans every workload. `base_tree` is that of the stripped form, if the document has records.
    pub(super) fn plan_all(
        &self,
        base_tree: Option<&Tree<'_>>,
        found: Vec<DocumentContent>,
    ) -> Plan<'t> {
        let mut plan = Plan::default();
        let base_source = self.source.with_text(&self.stripped.text);
        let base_found = base_tree.map(|tree| find_objects(tree, self.setting.kinds));
        let base_found = base_found.unwrap_or_default();
        for (index, found) in found.into_iter().enumerate() {
            let workload = match self.classify(found) {
                ObjectClass::Workload(workload) => *workload,
                ObjectClass::Other(other) => {
                    plan.others.push((plan.pending.len(), other));
                    continue;
                }
            };
            let recorded = self.position(workload.object.node);
            let base = recorded.and_then(|recorded_index| {
                let base = base_found.get(index)?.as_object()?;
                let document = self.task.parsed(base_tree?, &base_source);
                Some((recorded_index, document.read_workload(base)?))
            });
            plan.pending.push(self.plan(workload, base));
        }
        plan
    }

    /// Plans a workload. For a workload with a record, `base` is the index of the record and the workload without the
    /// recorded changes.
    fn plan(
        &self,
        workload: Workload<'t>,
        base: Option<(usize, Workload<'_>)>,
    ) -> PendingWorkload<'t> {
        if !self.is_wanted(&workload) {
            return PendingWorkload::unchanged(workload, self.not_asked_for());
        }
        let mut problems = self.orphans(&workload);
        let mut pending = match (refuse_workload(&workload), base) {
            // It is unclear what the policies select by.
            (Some(problem), _) => {
                let failed = self.report_all_policies(&Outcome::Failed(None));
                PendingWorkload::refused(workload, failed, problem)
            }
            (None, None) => self.plan_first(workload),
            (None, Some((recorded, base))) => match refuse_pod(&workload) {
                Some(problem) => {
                    let failed = self.failed_again(&base, recorded);
                    PendingWorkload::refused(workload, failed, problem)
                }
                None => self.replan(workload, &base, recorded),
            },
        };
        problems.append(&mut pending.problems);
        PendingWorkload {
            problems,
            ..pending
        }
    }

    /// Plans a workload without a record.
    fn plan_first(&self, workload: Workload<'t>) -> PendingWorkload<'t> {
        if self.setting.options.take_out.is_undo() {
            let problems = without_record(&workload, self.setting.options);
            return PendingWorkload {
                problems: problems.into_iter().collect(),
                ..PendingWorkload::unchanged(workload, Vec::new())
            };
        }
        if self.setting.options.adopt {
            let planned = self.planned(&workload, None);
            return PendingWorkload::unchanged(workload, not_adopted(planned));
        }
        let mut planned = self.plan_with_ignored(&workload);
        if let Some(problem) = self.refused_pod(&workload, &planned.policies) {
            let failed = self.failed_if_selected(planned.policies);
            return PendingWorkload::refused(workload, failed, problem);
        }
        self.add_room(planned.record.as_mut(), &workload, None);
        let problems = std::mem::take(&mut planned.diagnostics);
        let is_annotated = self.setting.options.record;
        PendingWorkload {
            problems: self.of_workload(problems, &workload),
            metrics_port: self.metrics_port(&workload, &planned.draft),
            beside: Some(PlannedExtras {
                blame: PlanBlame::of(&workload, &planned.steps, true),
                ..beside(&mut planned, is_annotated)
            }),
            wanted: match planned.draft.is_changed() {
                true => DesiredState::Draft(planned.draft),
                false => DesiredState::Same,
            },
            ..PendingWorkload::unchanged(workload, planned.policies)
        }
    }

    /// The reports of a workload with a record that cannot be edited.
    fn failed_again(&self, base: &Workload<'_>, index: usize) -> Vec<PolicyReport> {
        let earlier = self.earlier(&self.recorded[index], &self.stripped.taken[index]);
        let mut planned = self.planned(base, Some(&earlier)).policies;
        move_skips(&mut planned, self);
        self.failed_if_selected(planned)
    }

    /// Plans a workload with a record: on its base, the workload without the recorded changes. Then compares the
    /// result with the current value.
    fn replan(
        &self,
        workload: Workload<'t>,
        base: &Workload<'_>,
        index: usize,
    ) -> PendingWorkload<'t> {
        let (recorded_object, taken) = (&self.recorded[index], &self.stripped.taken[index]);
        let earlier = self.earlier(recorded_object, taken);
        let mut planned = self.planned(base, Some(&earlier));
        let earlier_record = Some(&recorded_object.record);
        self.add_room(planned.record.as_mut(), &workload, earlier_record);
        move_skips(&mut planned.policies, self);
        let problems = moved(std::mem::take(&mut planned.diagnostics), base, self);
        let mut problems = self.of_workload(problems, &workload);
        problems.extend(self.changed_since(&workload, &planned.policies, &taken.changed));
        if !problems.iter().any(Diagnostic::is_error) {
            let misfits = self.misfits(&workload, base, &planned.draft, &earlier, &problems);
            problems.extend(misfits);
        }
        let is_annotated = self.setting.options.annotates(recorded_object.is_annotated);
        let wanted = match problems.iter().any(Diagnostic::is_error) {
            true => DesiredState::Same,
            false => self
                .wanted(&workload, &mut planned, is_annotated, &earlier)
                .unwrap_or_else(|| {
                    let message = format!("{} has no unambiguous value", workload.title());
                    let problem = Diagnostic::error(Code::Internal, message);
                    problems.push(problem.at(workload.name_place(), "here"));
                    DesiredState::Same
                }),
        };
        let blame = match &wanted {
            DesiredState::Value(_) => PlanBlame::of(base, &planned.steps, false),
            DesiredState::Same | DesiredState::Draft(_) | DesiredState::Base(_) => None,
        };
        if !is_annotated {
            note_written(&mut planned, &wanted, earlier.current, &workload);
        }
        PendingWorkload {
            problems,
            wanted,
            metrics_port: self.metrics_port(base, &planned.draft),
            beside: Some(PlannedExtras {
                blame,
                ..beside(&mut planned, is_annotated)
            }),
            ..PendingWorkload::unchanged(workload, planned.policies)
        }
    }

    fn earlier<'r>(
        &self,
        recorded_object: &'r RecordedObject<'r>,
        taken: &'r RemovalResult,
    ) -> EarlierRun<'r> {
        let mut record = recorded_object.record.clone();
        for (policy, redo) in record.policies.iter_mut().zip(&taken.redo) {
            redo.resolve(policy);
        }
        EarlierRun {
            record,
            is_annotated: recorded_object.is_annotated,
            current: &recorded_object.value,
            taken,
            adopting: self
                .setting
                .options
                .adopt
                .then(|| recorded_object.adopted.clone()),
            recovered: &recorded_object.adopted,
        }
    }

    /// Returns the wanted state of a workload with the record of an earlier run. `None` if it has no value that readers
    /// agree on. Drops from the report what the state keeps.
    fn wanted(
        &self,
        workload: &Workload<'_>,
        planned: &mut WorkloadPlan<'_>,
        is_annotated: bool,
        earlier: &EarlierRun<'_>,
    ) -> Option<DesiredState<'t>> {
        let target = || planned.draft.value(&planned.draft.root());
        if is_base(planned) {
            return match self.setting.options.patches {
                true => Some(DesiredState::Base(Some(target()?))),
                false => Some(DesiredState::Base(None)),
            };
        }
        // The usual case of a second run, which needs no values.
        if is_drafted(workload.tree, workload.object.node, &planned.draft) {
            return Some(DesiredState::Same);
        }
        let (mut target, current) = (target()?, earlier.current.whole());
        let record = planned.record.as_ref();
        restore_order_around(&earlier.record, record, !is_annotated, &mut target, current);
        drop_kept_defaults(planned, &target, workload);
        Some(match is_equal(&target, current) {
            true => DesiredState::Same,
            false => DesiredState::Value(target),
        })
    }

    /// Returns problems of the wanted value: mounts without a volume, and what an API server would refuse because of
    /// policies that are kept. `known` problems are not repeated.
    fn misfits(
        &self,
        workload: &Workload<'_>,
        base: &Workload<'_>,
        target: &Draft<'_>,
        earlier: &EarlierRun<'_>,
        known: &[Diagnostic],
    ) -> Vec<Diagnostic> {
        let force = self.setting.options.force;
        let loose = dangling_mounts(workload, target, &earlier.record, force);
        if !loose.is_empty() {
            return loose;
        }
        let (policies, options) = (self.setting.policies, self.setting.options);
        faults_of_kept(base, target, earlier, policies, options, known)
            .into_iter()
            .map(|problem| problem.at(workload.name_place(), "this workload"))
            .collect()
    }

    fn metrics_port(&self, workload: &Workload<'_>, draft: &Draft<'_>) -> Option<u16> {
        match self.setting.options.brief {
            true => None,
            false => metrics_port(workload, draft),
        }
    }

    /// Notes in the record how the text is adjusted to make room for generated objects.
    fn add_room(
        &self,
        record: Option<&mut Record>,
        workload: &Workload<'_>,
        earlier: Option<&Record>,
    ) {
        let Some(record) = record.filter(|record| generated(record).next().is_some()) else {
            return;
        };
        let room = self.beside(workload).room(workload.tree);
        // What counts is the text that undo gives back: if the injection is in the last lines, only one of the two may
        // end with a line end.
        let room = TextAdjustment {
            unended: room.unended && !self.original().ends_with('\n'),
            ..room
        };
        let earlier = earlier.filter(|earlier| generated(earlier).next().is_some());
        let earlier_room = earlier.map(|earlier| earlier.room.clone());
        if room.unended && !earlier_room.as_ref().is_some_and(|room| room.unended) {
            // With the added line end, text differences that the record noted may not apply any more.
            record.text = None;
        }
        record.room = earlier_room.unwrap_or_default();
        record.room.join(&room);
    }
}

fn beside(planned: &mut WorkloadPlan<'_>, is_annotated: bool) -> PlannedExtras {
    let item = |item: PolicyValue| (*item.value).clone();
    let locked = planned.record.as_ref().filter(|_| !is_annotated);
    let joined_values = locked.map(|record| joined_values(&planned.draft, record));
    let ephemeral_containers = std::mem::take(&mut planned.ephemeral_containers);
    PlannedExtras {
        record: planned.record.take(),
        is_annotated,
        joined_values: joined_values.unwrap_or_default(),
        companions: std::mem::take(&mut planned.companions),
        ephemeral_containers: ephemeral_containers.into_iter().map(item).collect(),
        needs: std::mem::take(&mut planned.needs),
        blame: None,
    }
}

/// Notes in the record what the run writes, where that has another order than the plan.
fn note_written(
    planned: &mut WorkloadPlan<'_>,
    wanted: &DesiredState<'_>,
    current: &RecordedValue<'_>,
    workload: &Workload<'_>,
) {
    let Some(record) = &mut planned.record else {
        return;
    };
    if let DesiredState::Draft(_) | DesiredState::Base(_) = wanted {
        return;
    }
    let written = || match wanted {
        DesiredState::Value(value) => value,
        _ => current.whole(),
    };
    let paths = RecordPaths::of(&workload.pod_kind.path);
    let draft = &planned.draft;
    note_order(record, &paths, || draft.value(&draft.root()), written);
}

/// Whether the plan injects nothing, so the workload returns to its base.
fn is_base(planned: &WorkloadPlan<'_>) -> bool {
    planned.record.is_none() && !planned.draft.is_changed()
}

/// Moves the places of problems from the base to the document.
fn moved(
    problems: Vec<Diagnostic>,
    base: &Workload<'_>,
    pair: &RecordedDocument<'_>,
) -> Vec<Diagnostic> {
    let moves = OnceCell::new();
    let mut problems = problems;
    let labels = problems.iter_mut().flat_map(|problem| &mut problem.labels);
    for label in labels.filter(|label| label.place.source == pair.source.name) {
        let moves = moves.get_or_init(|| OffsetMap::of(base.source, pair));
        label.place = moves.place_before(&label.place);
    }
    problems
}

/// Moves what failed conditions found in the base to the document.
fn move_skips(policies: &mut [PolicyReport], pair: &RecordedDocument<'_>) {
    let offsets = OnceCell::new();
    for report in policies {
        let Outcome::Skipped(skip) = &mut report.outcome else {
            continue;
        };
        if let Some(found) = &mut skip.in_manifest {
            let offsets = offsets.get_or_init(|| InputOffsets::of(&pair.stripped.edits));
            *found = offsets.before(found.start)..offsets.before(found.end);
        }
    }
}
