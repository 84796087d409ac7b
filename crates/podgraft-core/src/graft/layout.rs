//! Assembles the result of a document: the edits of all workloads in order, the generated objects, and the reports.
//! Byte ranges are those of the document until it becomes the file's report.

use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::edit::companion::ListWriters;
use crate::outcome::{FileReport, ObjectText, PlacedObject, WorkloadReport};
use crate::ownership::RecordedWorkload;
use crate::plan::draft::Draft;
use crate::plan::patch::patch_of;
use crate::source::{LineCounter, Source};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, Tree};

use super::check::check;
use super::companions::{UnwrittenCompanion, merge, with_companions, written_beside};
use super::document::ParsedDocument;
use super::objects::OtherObject;
use super::pending::{DesiredState, PendingWorkload, Plan};
use super::prune::generated;
use super::recorded::RecordedDocument;

/// The result of a document; see the module's documentation.
pub(super) struct DocumentLayout<'t> {
    pub report: FileReport,
    drafts: Vec<(NodeId, Draft<'t>)>,
    /// The generated objects of the document.
    pub companions: Vec<UnwrittenCompanion>,
    /// Index ranges of the edits that restore a base. No draft describes these edits.
    given_back: Vec<Range<usize>>,
    /// Whether the edits of the workloads were compared with the drafts already.
    is_checked: bool,
    /// The Lists into which objects are generated.
    pub lists: ListWriters<'t>,
}

impl<'t> RecordedDocument<'t> {
    /// Assembles the plans and the edits.
    pub(super) fn lay_out(
        &self,
        plan: Plan<'t>,
        lines: &mut LineCounter<'_>,
    ) -> DocumentLayout<'t> {
        let mut layout = DocumentLayout {
            report: FileReport::of_problems(self.notes()),
            drafts: Vec::new(),
            companions: Vec::new(),
            given_back: Vec::new(),
            is_checked: plan.is_checked,
            lists: ListWriters::default(),
        };
        layout.report.objects = plan.pending.len() + plan.others.len();
        let mut others = plan.others.into_iter().peekable();
        for (at, pending) in plan.pending.into_iter().enumerate() {
            while let Some((_, other)) = others.next_if(|(before, _)| *before <= at) {
                layout.add_other(other, self, lines);
            }
            self.lay_out_workload(&mut layout, pending, lines);
        }
        for (_, other) in others {
            layout.add_other(other, self, lines);
        }
        layout.report.diagnostics.extend(plan.problems);
        layout
    }

    fn lay_out_workload(
        &self,
        layout: &mut DocumentLayout<'t>,
        mut pending: PendingWorkload<'t>,
        lines: &mut LineCounter<'_>,
    ) {
        let edits = layout.add_edits(std::mem::take(&mut pending.edits));
        if pending.is_base() {
            layout.given_back.push(edits.clone());
        }
        layout.add_record(self.recorded_workload(&pending), &pending, &edits);
        if !edits.is_empty() {
            self.report_record_changes(&mut pending);
        }
        let mut described =
            (!self.setting.options.brief).then(|| self.describe_changed(&pending, lines));
        let problems = std::mem::take(&mut pending.problems);
        layout.report.diagnostics.extend(problems);
        self.place_companions(layout, &pending, &edits);
        if let Some(described) = &mut described {
            let (mut policies, places) = (pending.policies, self.setting.options.places);
            if places {
                self.add_places(&pending.workload, &mut policies);
            }
            described.policies = policies;
            described.edits = edits;
            described.authors = pending.authors;
        }
        layout.report.workloads.extend(described);
        if let Some(beside) = pending.beside {
            layout.report.needs.append(beside.needs);
        }
        let draft = pending.written.or(match pending.wanted {
            DesiredState::Draft(draft) => Some(draft),
            DesiredState::Same | DesiredState::Value(_) | DesiredState::Base(_) => None,
        });
        let node = pending.workload.object.node;
        layout.drafts.extend(draft.map(|draft| (node, draft)));
    }

    /// Returns what the lock file is to say about a workload. `None` if the lock file has no part in it.
    fn recorded_workload(&self, pending: &PendingWorkload<'_>) -> Option<RecordedWorkload> {
        let workload = &pending.workload;
        let beside = pending.beside.as_ref()?;
        let recorded = self.position(workload.object.node);
        let from = recorded.and_then(|at| self.recorded[at].from.clone());
        let is_locked = self.setting.options.lock || from.is_some();
        is_locked.then(|| RecordedWorkload {
            kind: workload.object.kind.clone(),
            namespace: workload.stated_namespace().to_owned(),
            name: workload.name.clone(),
            from,
            record: beside.record.clone().filter(|_| !beside.is_annotated),
            joined_values: beside.joined_values.clone(),
        })
    }

    fn describe_changed(
        &self,
        pending: &PendingWorkload<'_>,
        lines: &mut LineCounter<'_>,
    ) -> WorkloadReport {
        let patch = || match &pending.wanted {
            DesiredState::Base(Some(_)) => {
                let draft = self.draft_of(pending).ok().flatten();
                draft.map(|draft| patch_of(&draft))
            }
            _ => pending.draft().map(patch_of),
        };
        let beside = pending.beside.as_ref();
        WorkloadReport {
            patch: self.setting.options.patches.then(patch).flatten(),
            metrics_port: pending.metrics_port,
            ephemeral_containers: beside
                .map_or_else(Vec::new, |planned| planned.ephemeral_containers.clone()),
            ..self.describe(&pending.workload, lines)
        }
    }
}

impl<'t> DocumentLayout<'t> {
    fn add_other(
        &mut self,
        other: OtherObject,
        document: &ParsedDocument<'_>,
        lines: &mut LineCounter<'_>,
    ) {
        self.report.diagnostics.extend(other.problems);
        let Some(object) = other.without_template else {
            return;
        };
        let none = self.report.edits.len()..self.report.edits.len();
        self.report.workloads.push(WorkloadReport {
            edits: none,
            ..document.describe_without_template(object, lines)
        });
    }

    fn add_edits(&mut self, edits: Vec<Edit>) -> Range<usize> {
        let first = self.report.edits.len();
        self.report.edits.extend(edits);
        first..self.report.edits.len()
    }

    fn add_record(
        &mut self,
        recorded: Option<RecordedWorkload>,
        pending: &PendingWorkload<'_>,
        edits: &Range<usize>,
    ) {
        let is_injected = matches!(pending.wanted, DesiredState::Draft(_)) && !edits.is_empty();
        self.report.has_unrecorded |= is_injected && pending.record().is_none();
        let needed = pending.record().into_iter().flat_map(generated);
        self.report.needed.extend(needed);
        self.report.records.extend(recorded);
    }

    /// Parses the edited document and compares it with the drafts.
    pub(super) fn check(&mut self, tree: &'t Tree<'t>, source: &Source<'_>) {
        let is_done = self.is_checked || self.drafts.is_empty();
        if is_done && self.companions.is_empty() || self.report.is_refused() {
            return;
        }
        let problem = if self.given_back.is_empty() {
            let drafts = &mut self.drafts;
            let merged = with_companions(tree, &self.report.edits, &self.companions, drafts);
            let edits = merged.as_deref().unwrap_or(&self.report.edits);
            check(
                tree,
                source,
                drafts,
                edits,
                &written_beside(&self.companions),
            )
        } else {
            let is_given_back = |at: &usize| self.given_back.iter().any(|range| range.contains(at));
            let edits = self.report.edits.iter().enumerate();
            let drafted = edits.filter(|(at, _)| !is_given_back(at));
            let drafted: Vec<Edit> = drafted.map(|(_, edit)| edit.clone()).collect();
            check(tree, source, &self.drafts, &drafted, &[])
        };
        self.report.diagnostics.extend(problem);
    }

    /// Returns the report, with byte ranges of the file.
    pub(super) fn into_report(self, document: ParsedDocument<'_>) -> FileReport {
        let mut report = self.report;
        let is_changed = !report.edits.is_empty() || !self.companions.is_empty();
        // The views after the edits are not computed for documents with records.
        let is_drawn = document.setting.options.views && !document.has_records();
        if is_drawn && is_changed && !report.is_refused() {
            let placed = self.companions.iter().map(|companion| &companion.placed);
            let (merged, _) = merge(&report.edits, 0, placed);
            document.add_views(&mut report.workloads, &merged);
        }
        let start = document.start;
        let edits = report.edits.into_iter();
        report.edits = edits.map(|edit| edit.shifted(start)).collect();
        let placed = self
            .companions
            .into_iter()
            .map(|companion| companion.placed);
        report.companions = placed.map(|companion| in_file(companion, start)).collect();
        report.diagnostics = once(report.diagnostics);
        report
    }
}

fn in_file(mut placed: PlacedObject, start: usize) -> PlacedObject {
    let behind = |edit: Edit| edit.shifted(start);
    placed.text = placed.text.map(|text| ObjectText {
        room: text.room.into_iter().map(behind).collect(),
        edit: behind(text.edit),
        end: text.end.map(behind),
        ..text
    });
    placed
}

/// Returns each problem once, in order. Of problems that are reported once per file, those with equal messages count
/// as duplicates wherever they are.
pub(super) fn once(problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut places: HashMap<u64, Vec<usize>, FixedState> = HashMap::default();
    let mut distinct: Vec<Diagnostic> = Vec::with_capacity(problems.len());
    for problem in problems {
        let alike = places.entry(FixedState::default().hash_one(&problem));
        let alike = alike.or_default();
        let is_said = match problem.is_reported_once() {
            true => distinct
                .iter()
                .any(|other| other.message == problem.message),
            false => alike.iter().any(|&at| distinct[at] == problem),
        };
        if !is_said {
            alike.push(distinct.len());
            distinct.push(problem);
        }
    }
    distinct
}
