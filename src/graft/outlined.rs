//! Workloads that no policy selects, found without reading what is in their pods.

use crate::manifest::object::{Found, find_objects};
use crate::manifest::pod::Workload;
use crate::plan::draft::Draft;
use crate::plan::{left_alone, metrics::metrics_port};
use crate::source::Source;
use crate::yaml::parse::{ParseError, parse, parse_outline, parse_with_granit};
use crate::yaml::tree::Tree;

use super::refusals::{refuse_root, refuse_workload};
use super::{Aim, Chunk};

/// How often an outline was enough, in the documents so far. One that was not is work for nothing, though reading goes on
/// from it: about a quarter of what another one saves.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Outlines {
    enough: u32,
    in_vain: u32,
}

impl Outlines {
    fn are_worth_it(self) -> bool {
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

impl Chunk<'_, '_> {
    /// Parses a document; `None` where no policy selects its workload, which then is reported.
    pub(super) fn parse<'t>(
        &mut self,
        source: &Source<'t>,
    ) -> Option<Result<Tree<'t>, ParseError>> {
        if !self.may_do_with_outline() {
            return Some(parse(source.text));
        }
        let Some(outline) = parse_outline(source.text) else {
            return Some(parse_with_granit(source.text));
        };
        if outline.tree.is_outline() {
            let is_enough = self.report_outlined(&outline.tree, source).is_some();
            self.outlines.count(is_enough);
            if is_enough {
                return None;
            }
        }
        Some(
            outline
                .read_on()
                .map_or_else(|| parse_with_granit(source.text), Ok),
        )
    }

    /// Whether a document that cannot be read is one of a workload that no policy selects, which then is reported. So what
    /// is wrong in its pod counts as little where the outline was not tried, which depends on the documents before.
    pub(super) fn is_right_in_outline(&mut self, source: &Source<'_>) -> bool {
        let outline = if self.may_pass_over() {
            parse_outline(source.text)
        } else {
            None
        };
        outline.is_some_and(|outline| {
            outline.tree.is_outline() && self.report_outlined(&outline.tree, source).is_some()
        })
    }

    fn may_do_with_outline(&self) -> bool {
        self.outlines.are_worth_it() && self.may_pass_over()
    }

    /// Who asks for pictures or findings asks for what is in the pods.
    fn may_pass_over(&self) -> bool {
        let options = self.setting.options;
        let asks_for_all = options.parse_all || options.views || options.lint;
        let may_be_orphaned = options.given.is_some() && self.is_marked();
        !asks_for_all
            && !may_be_orphaned
            && self.setting.aim == Aim::Edit
            && !self.has_recorded()
            && !self.is_to_undo()
    }

    /// `None`, and nothing reported, where a policy selects the workload, something is to be said about it, or it cannot
    /// be told without what was passed over.
    fn report_outlined(&mut self, outline: &Tree<'_>, source: &Source<'_>) -> Option<()> {
        let setting = self.setting;
        if refuse_root(outline, source).is_some() {
            return None;
        }
        let mut found = find_objects(outline, setting.kinds);
        let (Some(Found::Object(object)), true) = (found.pop(), found.is_empty()) else {
            return None;
        };
        let kind = setting.kinds.find(&object.api_version, &object.kind)?;
        let workload = Workload::read(
            outline,
            source,
            object,
            kind,
            setting.options.namespace_in(setting.name),
        )
        .ok()?;
        if !self.is_wanted(&workload) || refuse_workload(&workload).is_some() {
            return None;
        }
        let mut policies = left_alone(&workload, setting.policies, setting.inventory)?;
        if outline.was_asked_for_unread() {
            return None;
        }
        let described = setting.options.details.then(|| {
            if setting.options.places {
                self.add_places(&workload, &mut policies);
            }
            let none = self.report.edits.len()..self.report.edits.len();
            let mut described = self.describe(&workload, policies, none);
            described.metrics_port =
                metrics_port(&workload, &Draft::new(outline, workload.object.node));
            described
        });
        if outline.was_asked_for_unread() {
            return None;
        }
        self.report.documents += 1;
        self.report.objects += 1;
        self.report.workloads.extend(described);
        Some(())
    }
}
