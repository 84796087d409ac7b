//! Reports workloads that no policy selects without parsing their pod specs.

use crate::manifest::object::{DocumentContent, find_objects};
use crate::outcome::{FileReport, WorkloadReport};
use crate::plan::draft::Draft;
use crate::plan::{left_alone, metrics::metrics_port};
use crate::source::{LineCounter, Source};
use crate::yaml::parse::{ParseError, parse, parse_outline, parse_with_granit};
use crate::yaml::tree::Tree;

use super::GraftMode;
use super::document::{DocumentCaches, DocumentTask};
use super::refusals::{refuse_root, refuse_workload};

/// How often an outline was enough in the documents so far. A useless outline costs about a quarter of what a useful
/// one saves, although parsing resumes from it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OutlineStatistics {
    enough: u32,
    in_vain: u32,
}

impl OutlineStatistics {
    fn are_useful(self) -> bool {
        self.in_vain < 4 + 4 * self.enough
    }

    fn count(&mut self, is_enough: bool) {
        *(if is_enough {
            &mut self.enough
        } else {
            &mut self.in_vain
        }) += 1;
    }
}

/// The result of parsing a document, perhaps only as an outline.
pub(super) enum Outlined<'t> {
    /// No policy selects its workload, so the outline was enough for this report.
    Enough(Box<FileReport>),
    /// The whole document was read.
    Whole(Result<Tree<'t>, ParseError>),
}

impl DocumentTask<'_> {
    /// Parses a document as far as the run needs it.
    pub(super) fn parse<'t>(
        &self,
        source: &Source<'t>,
        memory: &mut DocumentCaches<'_>,
    ) -> Outlined<'t> {
        if !memory.outlines.are_useful() || !self.can_skip_pods() {
            return Outlined::Whole(parse(source.text));
        }
        let Some(outline) = parse_outline(source.text) else {
            return Outlined::Whole(parse_with_granit(source.text));
        };
        if outline.tree.is_outline() {
            let report = self.report_outlined(&outline.tree, source, &mut memory.lines);
            memory.outlines.count(report.is_some());
            if let Some(report) = report {
                return Outlined::Enough(Box::new(report));
            }
        }
        let tree = outline.parse_whole();
        Outlined::Whole(tree.map_or_else(|| parse_with_granit(source.text), Ok))
    }

    /// Reports a document that cannot be parsed, if its outline shows a workload that no policy selects. Otherwise
    /// errors in an unselected pod would depend on whether the outline was tried, which depends on the documents
    /// before.
    pub(super) fn right_in_outline(
        &self,
        source: &Source<'_>,
        memory: &mut DocumentCaches<'_>,
    ) -> Option<FileReport> {
        let outline = parse_outline(source.text).filter(|_| self.can_skip_pods())?;
        let is_outline = outline.tree.is_outline();
        let report =
            is_outline.then(|| self.report_outlined(&outline.tree, source, &mut memory.lines));
        report.flatten()
    }

    // Views, lint, records and orphan checks need the contents of the pod.
    fn can_skip_pods(&self) -> bool {
        let options = self.setting.options;
        let asks_for_all = options.parse_all || options.views || options.lint;
        let may_be_orphaned = options.given.is_some() && self.is_marked();
        !asks_for_all
            && !may_be_orphaned
            && self.setting.mode == GraftMode::Edit
            && !self.has_recorded()
            && !self.is_to_undo()
    }

    /// Returns the report of an outlined document. `None` if a policy selects the workload, if there is something to
    /// report about it, or if the report needs the skipped part.
    fn report_outlined(
        &self,
        outline: &Tree<'_>,
        source: &Source<'_>,
        lines: &mut LineCounter<'_>,
    ) -> Option<FileReport> {
        let setting = self.setting;
        if refuse_root(outline, source).is_some() {
            return None;
        }
        let mut found = find_objects(outline, setting.kinds);
        let (Some(DocumentContent::Object(object)), true) = (found.pop(), found.is_empty()) else {
            return None;
        };
        let workload = self.read_workload(&object, outline, source)?;
        if !self.is_wanted(&workload) || refuse_workload(&workload).is_some() {
            return None;
        }
        // The flag is set when anything asks for the skipped spec: then the answers are wrong and are dropped.
        let mut policies = left_alone(&workload, setting.policies, setting.inventory)?;
        if outline.has_unread_access() {
            return None;
        }
        let described = setting.options.details.then(|| {
            if setting.options.places {
                self.add_places(&workload, &mut policies);
            }
            let draft = Draft::new(outline, workload.object.node);
            WorkloadReport {
                metrics_port: metrics_port(&workload, &draft),
                policies,
                ..self.describe(&workload, lines)
            }
        });
        if outline.has_unread_access() {
            return None;
        }
        Some(FileReport {
            documents: 1,
            objects: 1,
            workloads: described.into_iter().collect(),
            ..FileReport::default()
        })
    }
}
