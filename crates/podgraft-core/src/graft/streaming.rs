//! Edits a stream that is read once. A document may depend on objects before it, but not on objects after it. If an
//! object comes too late for a document that looked it up, that is an error.

use std::sync::Arc;

use super::{DocumentRun, RunContext, generated_companions, graft_part};
use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{
    Inventory, InventoryKey, InventoryNeeds, SourceRole, read_part, unreadable,
};
use crate::outcome::FileReport;
use crate::source::{LineCounter, Place};
use crate::yaml::stream::chunks;

/// Grafts a stream that is read once.
#[derive(Debug)]
pub struct StreamingGraft<'p> {
    name: Arc<str>,
    /// The context of the run, with what is known from other sources.
    run: RunContext<'p>,
    needs: InventoryNeeds,
    /// What is known so far.
    inventory: Inventory,
}

impl<'p> StreamingGraft<'p> {
    /// Starts a stream. `None` if the policies look nothing up, so the order of documents does not matter.
    pub fn new(name: &Arc<str>, run: RunContext<'p>) -> Option<Self> {
        let needs = InventoryNeeds::of(run.policies);
        if needs.is_nothing() {
            return None;
        }
        let mut inventory = run.inventory.clone();
        inventory.track_lookups();
        Some(StreamingGraft {
            name: Arc::clone(name),
            run,
            needs,
            inventory,
        })
    }

    /// Plans and edits the next documents. How the stream is split into runs makes no difference.
    pub fn graft(&mut self, run: DocumentRun<'_>) -> FileReport {
        let mut report = FileReport::default();
        let mut part = BatchStart {
            start: 0,
            first_line: run.first_line,
        };
        let mut lines = LineCounter::new(run.text, run.first_line);
        for chunk in chunks(run.text) {
            let line = lines.line_at(chunk.start);
            let (found, problems) = read_part(
                &self.name,
                chunk.text,
                line,
                SourceRole::Manifest,
                &self.needs,
                self.run.options,
            );
            // Each batch ends before a document that adds to the inventory: that one and those after it must see the
            // addition, those before it must not. Objects generated for one document are visible to later ones, too.
            let is_turn =
                !found.is_empty() || !problems.is_empty() || !self.needs.generated.is_empty();
            if is_turn && chunk.start > part.start {
                report.append(self.graft_part(&run, part, chunk.start));
                part = BatchStart {
                    start: chunk.start,
                    first_line: line,
                };
            }
            report.diagnostics.extend(problems);
            let late = self.inventory.outdated_lookups(&found);
            report
                .diagnostics
                .extend(late.into_iter().map(|(name, place)| too_late(&name, place)));
            let unread = self.inventory.outdated_by_unread(&found).into_iter();
            report.diagnostics.extend(unread.map(unreadable));
            self.inventory.add(found);
        }
        report.append(self.graft_part(&run, part, run.text.len()));
        report
    }

    fn graft_part(&mut self, run: &DocumentRun<'_>, part: BatchStart, end: usize) -> FileReport {
        let text = &run.text[part.start..end];
        let foreseen = generated_companions(&self.name, text, self.context());
        foreseen
            .missing
            .into_iter()
            .for_each(|companion| self.inventory.add_companion(companion));
        let has_more = run.has_more || end < run.text.len();
        let part = DocumentRun {
            start: run.start + part.start,
            text,
            first_line: part.first_line,
            has_more,
        };
        graft_part(&self.name, part, self.context())
    }

    fn context(&self) -> RunContext<'_> {
        RunContext {
            inventory: &self.inventory,
            ..self.run
        }
    }
}

/// The byte offset in the run, and the line, at which a batch of documents starts.
#[derive(Clone, Copy)]
struct BatchStart {
    start: usize,
    first_line: usize,
}

fn too_late(name: &InventoryKey, place: Place) -> Diagnostic {
    let message = format!(
        "the {name} comes after what depends on it, and --stream reads the input only once"
    );
    let problem = Diagnostic::error(Code::TooLate, message).at(place, "this object");
    problem.help(
        "run without --stream, move the object to the start, or also pass its file with --context",
    )
}
