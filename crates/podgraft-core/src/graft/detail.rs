//! Fills in the details of a workload's report, other than its edits.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::Label;
use crate::manifest::object::objects_in;
use crate::manifest::pod::Workload;
use crate::manifest::view::view_of;
use crate::outcome::view::WorkloadView;
use crate::outcome::{Outcome, PolicyReport, WorkloadReport};
use crate::source::{LineCounter, Source};
use crate::yaml::parse::parse;
use crate::yaml::splice::{Edit, splice};
use crate::yaml::value::to_value;

use super::document::ParsedDocument;

impl ParsedDocument<'_> {
    /// Describes a workload, whatever happened to it.
    pub(super) fn describe(
        &self,
        workload: &Workload<'_>,
        lines: &mut LineCounter<'_>,
    ) -> WorkloadReport {
        let start = self.start;
        let document = self.range();
        let is_alone = workload.tree.roots() == [workload.object.node];
        let extent = |span: Range<usize>| start + span.start..start + span.end;
        WorkloadReport {
            api_version: workload.object.api_version.clone(),
            kind: workload.object.kind.clone(),
            namespace: workload.namespace.clone(),
            states_namespace: workload.states_namespace(),
            name: workload.name.clone(),
            line: self.line_of(workload.object.node, lines),
            // The lines of other list items, and of documents behind `...`, must not be shown: they are other objects,
            // perhaps Secrets.
            extent: match is_alone {
                true => document.clone(),
                false => extent(workload.tree.span(workload.object.node)),
            },
            document,
            view: self
                .setting
                .options
                .views
                .then(|| Box::new(view_of(workload))),
            labels: match self.setting.options.labels {
                true => labels_of(workload),
                false => Default::default(),
            },
            ..WorkloadReport::default()
        }
    }

    /// Adds the places of conditions that do not hold: in the policy, then in the manifest.
    pub(super) fn add_places(&self, workload: &Workload<'_>, policies: &mut [PolicyReport]) {
        let label = |place, text: &str| Label {
            place,
            text: text.to_owned(),
        };
        for (policy, policy_report) in self.setting.policies.iter().zip(policies) {
            let Outcome::Skipped(skip) = &mut policy_report.outcome else {
                continue;
            };
            let wanted = skip
                .in_policy
                .clone()
                .map(|at| label(policy.text.place(at), "wanted"));
            let found = skip
                .in_manifest
                .clone()
                .map(|at| label(workload.place_of(at), "found"));
            skip.places = wanted.into_iter().chain(found).collect();
        }
    }

    /// Returns `metadata` of the document if it is a List and the run asks for views.
    pub(super) fn list_metadata(&self) -> Option<serde_json::Value> {
        let tree = self.tree;
        let root = tree.follow(*tree.roots().first()?);
        let is_list = tree
            .scalar(tree.get(root, "kind")?)
            .is_some_and(|kind| kind.ends_with("List"));
        let is_wanted = is_list && self.setting.options.views;
        let metadata = tree.get(root, "metadata").filter(|_| is_wanted)?;
        let metadata = to_value(tree, metadata).ok();
        metadata.filter(serde_json::Value::is_object)
    }

    /// Adds the views of the workloads after the edits, read from the edited text.
    pub(super) fn add_views(&self, workloads: &mut [WorkloadReport], edits: &[Edit]) {
        let edited =
            String::from_utf8_lossy(&splice(self.source.text.as_bytes(), edits)).into_owned();
        let Ok(output) = &parse(&edited) else { return };
        let source = Source::new(std::sync::Arc::clone(self.setting.name), output.text());
        let document = self.task.parsed(output, &source);
        let views = objects_in(output, self.setting.kinds)
            .filter_map(|object| Some(view_of(&document.read_workload(&object)?)));
        let mut views: Vec<WorkloadView> = views.collect();
        for workload in workloads
            .iter_mut()
            .filter(|document_workloads| document_workloads.view.is_some())
        {
            let wanted = (&workload.name, &workload.kind, &workload.namespace);
            let mut found = views.iter();
            if let Some(index) =
                found.position(|view| (&view.name, &view.kind, &view.namespace) == wanted)
            {
                workload.view_after = Some(Box::new(views.remove(index)));
            }
        }
    }
}

/// The labels of the pod template.
fn labels_of(workload: &Workload<'_>) -> BTreeMap<String, String> {
    let tree = workload.tree;
    let labels = workload.pod_metadata().labels;
    let entries = labels.into_iter().flat_map(|labels| tree.entries(labels));
    let text = |node| tree.string(node).map(str::to_owned);
    entries
        .filter_map(|(key, value)| Some((text(key)?, text(value)?)))
        .collect()
}
