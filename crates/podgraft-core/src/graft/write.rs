//! Lowers plans to text: the edits of every workload of a document.

use std::borrow::Cow;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::{TextCache, lower};
use crate::manifest::pod::Workload;
use crate::plan::draft::{Draft, Refusal};
use crate::plan::reconcile::reconcile;
use crate::plan::recording::write_record;
use crate::plan::{self, refusal_diagnostic};
use crate::yaml::splice::Edit;
use crate::yaml::tree::NodeId;

use super::pending::{DesiredState, PendingWorkload, Plan};
use super::recorded::RecordedDocument;

impl<'t> RecordedDocument<'t> {
    /// Computes the edits of every workload of a document.
    pub(super) fn write_all(&self, plan: &mut Plan<'t>, texts: &mut TextCache) {
        for pending in &mut plan.pending {
            if let Err(problem) = self.write(pending, texts) {
                pending.problems.push(*problem);
            }
        }
    }

    fn write(
        &self,
        pending: &mut PendingWorkload<'t>,
        texts: &mut TextCache,
    ) -> Result<(), Box<Diagnostic>> {
        (pending.edits, pending.written) = Default::default();
        let workload = &pending.workload;
        let node = workload.object.node;
        if pending.is_base() {
            // Stripping the document made these edits and checked them.
            pending.edits = self.stripped_edits(node);
            return Ok(());
        }
        let draft = self.draft_of(pending);
        let draft = draft.map_err(|refusal| Box::new(refusal_diagnostic(&refusal, workload)))?;
        let Some(draft) = draft else {
            return Ok(());
        };
        let edits = self.lower(&draft, workload, texts)?;
        let written = match draft {
            Cow::Owned(draft) => Some(draft),
            Cow::Borrowed(_) => None,
        };
        // The text of a record in an annotation is no policy's.
        let planned = pending.beside.as_ref();
        let planned = planned.filter(|planned| planned.record.is_none() || !planned.is_annotated);
        if let Some(blame) = planned.and_then(|planned| planned.blame.as_ref()) {
            let policies: Vec<usize> = (0..pending.policies.len()).collect();
            let authors = blame.authors(workload, &edits, &policies);
            pending.authors = authors.unwrap_or_default();
        }
        if let (Some(planned), DesiredState::Draft(draft)) = (&pending.beside, &pending.wanted) {
            // With a record, the next run strips the workload before it plans again, so the policies see their own
            // output only without one.
            if planned.record.is_none() && !self.setting.options.is_recorded_when_written() {
                let problems = self.idempotence_problems(workload, draft, &pending.policies);
                let problems = self.of_workload(problems, workload);
                pending.problems.extend(problems);
            }
        }
        (pending.edits, pending.written) = (edits, written);
        Ok(())
    }

    /// Computes the edits of one workload. Refuses ambiguous documents and annotations above the limit of the API
    /// server.
    fn lower(
        &self,
        draft: &Draft<'_>,
        workload: &Workload<'_>,
        texts: &mut TextCache,
    ) -> Result<Vec<Edit>, Box<Diagnostic>> {
        self.refuse_ambiguity(workload)?;
        if plan::are_annotations_too_long(draft) {
            let message = format!(
                "{} would have more than 262144 bytes of annotations, including those of podgraft",
                workload.title()
            );
            let problem = Diagnostic::error(Code::Invalid, message);
            return Err(Box::new(
                problem.at(workload.name_place(), "this workload").help(
                    "use `--no-marker` to omit the marker, or `apply --in-place`, which keeps its \
                     records in podgraft.lock",
                ),
            ));
        }
        lower(draft, workload.object.node, texts).map_err(|refusal| {
            let (title, reason) = (workload.title(), refusal.reason);
            let message = format!("{title} cannot be edited: the YAML here {reason}");
            let problem = Diagnostic::error(Code::CannotEdit, message)
                .at(workload.place(refusal.node), "here");
            Box::new(problem.help("write it in block style, as `key: value` and `- item` lines"))
        })
    }

    /// Refuses to edit a document that YAML readers disagree about.
    pub(super) fn refuse_ambiguity(&self, workload: &Workload<'_>) -> Result<(), Box<Diagnostic>> {
        let Some(doubt) = self.ambiguity() else {
            return Ok(());
        };
        let message = format!(
            "{} cannot be edited safely: {}",
            workload.title(),
            doubt.description
        );
        let problem = Diagnostic::error(Code::CannotEdit, message);
        let problem = problem.at(workload.source.place(doubt.at.clone()), "here");
        let is_mark = workload.source.text[doubt.at.clone()].starts_with('\u{feff}');
        Err(Box::new(match is_mark {
            true => problem.help(
                "remove it: a byte order mark belongs at the start of a file, and gets here when \
                 files are concatenated",
            ),
            false => problem,
        }))
    }

    /// Of the edits that strip the document, returns those of one object.
    fn stripped_edits(&self, node: NodeId) -> Vec<Edit> {
        let index = self.position(node).unwrap_or_default();
        let start_of = |index: usize| {
            let recorded = self.recorded.get(index);
            recorded.map_or(usize::MAX, |recorded| self.tree.span(recorded.node).start)
        };
        let from = if index == 0 { 0 } else { start_of(index) };
        let to = start_of(index + 1);
        let edits = &self.stripped.edits;
        let index_of = |offset| edits.partition_point(|edit| edit.at.start < offset);
        // With aliases in a List, the next object may stand before this one.
        let range = index_of(from)..index_of(to);
        edits.get(range).unwrap_or_default().to_vec()
    }

    /// Returns a draft of the wanted workload, with its record if that is an annotation. `None` if nothing changes.
    pub(super) fn draft_of<'p>(
        &self,
        entry: &'p PendingWorkload<'t>,
    ) -> Result<Option<Cow<'p, Draft<'t>>>, Refusal> {
        let mut draft = match &entry.wanted {
            DesiredState::Same | DesiredState::Base(None) => return Ok(None),
            DesiredState::Draft(draft) => Cow::Borrowed(draft),
            DesiredState::Value(target) | DesiredState::Base(Some(target)) => {
                let node = entry.workload.object.node;
                let mut draft = Draft::new(self.tree, node);
                if let Some(at) = self.position(node) {
                    reconcile(&mut draft, &[], self.recorded[at].value.whole(), target)?;
                }
                Cow::Owned(draft)
            }
        };
        let beside = entry.beside.as_ref().filter(|beside| beside.is_annotated);
        if let Some(record) = beside.and_then(|beside| beside.record.as_ref()) {
            write_record(draft.to_mut(), record)?;
        }
        Ok(Some(draft))
    }
}
