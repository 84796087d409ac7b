//! Classifies the objects of a document: workloads, and diagnostics about the others.

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::object::{
    DocumentContent, FoundTemplate, Object, count_pod_templates, find_objects, find_pod_template,
    find_template_braces,
};
use crate::manifest::pod::{PodTemplateError, Workload, duplicate_on_path};
use crate::manifest::workload::group_of;
use crate::options::PodTemplatePath;
use crate::outcome::{FileReport, Outcome, PlacedObject, Skip, SkipCause, WorkloadReport};
use crate::plan;
use crate::policy::schema::nearest;
use crate::source::{LineCounter, Place};
use crate::yaml::tree::{NodeId, Tree};

use super::document::ParsedDocument;
use super::recorded::RecordedDocument;
use super::refusals::{duplicate_in, not_rendered, refuse_pod, refuse_workload, untyped};

/// The class of an object.
pub(super) enum ObjectClass<'t> {
    Workload(Box<Workload<'t>>),
    Other(OtherObject),
}

/// An object that is no workload.
pub(super) struct OtherObject {
    pub problems: Vec<Diagnostic>,
    /// Set if its kind has pods but it has no pod template.
    pub without_template: Option<Object>,
}

impl ObjectClass<'_> {
    fn of_problem(problem: Diagnostic) -> Self {
        ObjectClass::Other(OtherObject {
            problems: vec![problem],
            without_template: None,
        })
    }
}

impl RecordedDocument<'_> {
    /// Reports the objects that policies would generate for the workloads of a document. Writes nothing. `stripped` is
    /// the stripped form of a document with records: what an earlier run injected does not decide.
    pub(super) fn list_generated(
        &self,
        stripped: Option<&Tree<'_>>,
        found: Vec<DocumentContent>,
    ) -> FileReport {
        let (tree, source, found) = match stripped {
            Some(tree) => {
                let source = self.source.with_text(&self.stripped.text);
                (tree, source, find_objects(tree, self.setting.kinds))
            }
            None => (self.tree, self.source.with_text(self.source.text), found),
        };
        let document = self.task.parsed(tree, &source);
        let mut report = FileReport::default();
        for found in found {
            let ObjectClass::Workload(workload) = document.classify(found) else {
                continue;
            };
            self.note_generated(&workload, &mut report);
        }
        report
    }
}

impl<'t> ParsedDocument<'t> {
    /// Classifies an object of the document.
    pub(super) fn classify(&self, found: DocumentContent) -> ObjectClass<'t> {
        let (tree, source) = (self.tree, self.source);
        let object = match found {
            DocumentContent::Object(object) => object,
            DocumentContent::Untyped { list_kind, node } => {
                return ObjectClass::of_problem(untyped(&list_kind, self.place_of(node)));
            }
        };
        let Some(pod_kind) = self.setting.kinds.find(&object.api_version, &object.kind) else {
            return ObjectClass::Other(self.classify_other(&object));
        };
        if let Some(node) = find_template_braces(tree, object.node) {
            return ObjectClass::of_problem(not_rendered(self.place_of(node)));
        }
        let namespace = self.setting.options.namespace_in(self.setting.name);
        match Workload::read(tree, source, object.clone(), pod_kind, namespace) {
            Ok(workload) => ObjectClass::Workload(Box::new(workload)),
            Err(PodTemplateError::Absent) => {
                let problem = duplicate_on_path(tree, &object, pod_kind)
                    .map(|key| duplicate_in(tree, key, source))
                    .or_else(|| self.misplaced_template(&object));
                ObjectClass::Other(OtherObject {
                    problems: problem.into_iter().collect(),
                    without_template: Some(object),
                })
            }
            Err(PodTemplateError::WrongShape(node)) => {
                let message = format!("the pod template of this {} is not a mapping", object.kind);
                let problem = Diagnostic::error(Code::Invalid, message);
                ObjectClass::of_problem(problem.at(self.place_of(node), "expected a mapping"))
            }
        }
    }

    fn classify_other(&self, object: &Object) -> OtherObject {
        let is_linted = self.setting.options.lint;
        let mistake = is_linted.then(|| self.api_service(object));
        let unknown = self.unknown_kind(object);
        OtherObject {
            problems: mistake.flatten().into_iter().chain(unknown).collect(),
            without_template: None,
        }
    }

    /// A note about an object of an unknown kind with something like a pod template: a warning if `--pod-template` has
    /// nearly this kind, for then it was meant.
    fn unknown_kind(&self, object: &Object) -> Option<Diagnostic> {
        let found = find_pod_template(self.tree, object.node)?;
        let (api_version, kind) = (&object.api_version, &object.kind);
        let at = self.place_of(object.node);
        if found.is_in_list {
            let message = format!(
                "this {kind} of {api_version} seems to contain pod templates in the list `{}`, into \
                 which podgraft does not inject",
                found.path.join(".")
            );
            let help = match (group_of(api_version), kind.as_str()) {
                ("template.openshift.io", "Template") => {
                    "pass the objects that `oc process --local -o yaml -f FILE` writes"
                }
                _ => "podgraft injects only where keys alone lead to the pod template",
            };
            let note = Diagnostic::note(Code::UnknownKind, message);
            return Some(note.at(at, "left unchanged").help(help));
        }
        let path = written_path(&found);
        let mut declared = self.setting.options.pod_templates.iter();
        let problem = match declared.find(|row| is_slip(row, object)) {
            Some(row) => {
                let given = format!("{}/{}", row.api_version, row.kind);
                let message = format!(
                    "the kind of this object is `{api_version}/{kind}`, but `--pod-template` has \
                     `{given}`"
                );
                Diagnostic::warning(Code::UnknownKind, message)
                    .help(format!("did you mean `{api_version}/{kind}={path}`?"))
            }
            None => {
                let message = format!(
                    "this {kind} of {api_version} seems to contain a pod template, but podgraft does \
                     not know this kind"
                );
                let flag = format!("--pod-template {api_version}/{kind}={path}");
                let count = count_pod_templates(self.tree, object.node);
                let only = match count {
                    1 => String::new(),
                    _ => format!(" (podgraft injects into only one of its {count} pod templates)"),
                };
                Diagnostic::note(Code::UnknownKind, message)
                    .help(format!("to inject into it: {flag}{only}"))
            }
        };
        Some(problem.at(at, "left unchanged"))
    }

    /// A warning if `--pod-template` has the kind with a path that leads nowhere, and the object has something like a pod
    /// template in another place. An object without one may be right.
    fn misplaced_template(&self, object: &Object) -> Option<Diagnostic> {
        let mut declared = self.setting.options.pod_templates.iter();
        let declared = declared.find(|row| {
            row.kind == object.kind && group_of(&row.api_version) == group_of(&object.api_version)
        })?;
        let found = find_pod_template(self.tree, object.node);
        let path = written_path(&found.filter(|found| !found.is_in_list)?);
        let given = declared.path.join(".");
        let message = format!(
            "this {} has nothing at `{given}`, where `--pod-template` expects its pod template",
            object.kind
        );
        let help = format!("did you mean `{path}`?");
        let problem = Diagnostic::warning(Code::UnknownKind, message).help(help);
        Some(problem.at(self.place_of(object.node), "left unchanged"))
    }

    fn note_generated(&self, workload: &Workload<'_>, report: &mut FileReport) {
        let is_left_alone = !self.is_wanted(workload) || refuse_workload(workload).is_some();
        if is_left_alone || refuse_pod(workload).is_some() {
            return;
        }
        let planned = plan::plan_companions(workload, self.setting.run);
        report.present.extend(planned.present);
        let placed = planned
            .companions
            .into_iter()
            .map(|companion| PlacedObject {
                workload: 0,
                edits: 0..0,
                companion,
                text: None,
            });
        report.companions.extend(placed);
    }

    /// Describes an object without a pod template for the report.
    pub(super) fn describe_without_template(
        &self,
        object: Object,
        lines: &mut LineCounter<'_>,
    ) -> WorkloadReport {
        let text = |key| object.metadata_text(self.tree, key);
        let of_run = || self.setting.options.namespace_in(self.setting.name);
        let skip = Skip::because(SkipCause::NoPodTemplate, "it has no pod template");
        let document = self.range();
        WorkloadReport {
            name: text("name").unwrap_or_default().to_owned(),
            namespace: text("namespace").or_else(of_run).map(str::to_owned),
            line: self.line_of(object.node, lines),
            api_version: object.api_version,
            kind: object.kind,
            document: document.clone(),
            extent: document,
            policies: self.report_all_policies(&Outcome::Skipped(skip)),
            ..WorkloadReport::default()
        }
    }

    pub(super) fn line_of(&self, node: NodeId, lines: &mut LineCounter<'_>) -> usize {
        lines.line_at(self.in_run + self.tree.start(node))
    }

    pub(super) fn place_of(&self, node: NodeId) -> Place {
        self.source.place(self.tree.span(node))
    }

    /// Checks that the name of an APIService is `<version>.<group>`, by which it is looked up. Source:
    /// <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/> and the validation of
    /// kube-aggregator, which wants `spec.version + "." + spec.group`.
    fn api_service(&self, object: &Object) -> Option<Diagnostic> {
        if object.kind != API_SERVICE || group_of(&object.api_version) != "apiregistration.k8s.io" {
            return None;
        }
        let tree = self.tree;
        let under = |key: &str, field: &str| tree.get(tree.get(object.node, key)?, field);
        let text = |node| tree.scalar(node).unwrap_or_default();
        let name = under("metadata", "name")?;
        let group = under("spec", "group").map(text).unwrap_or_default();
        let wanted = format!(
            "{}.{group}",
            under("spec", "version").map(text).unwrap_or_default()
        );
        if text(name) == wanted {
            return None;
        }
        let message = format!(
            "the name of the APIService `{}` does not match its version and group",
            text(name)
        );
        let problem = Diagnostic::error(Code::WrongName, message);
        let problem = problem.at(self.place_of(name), "this name");
        Some(problem.help(format!("rename it to `{wanted}`")))
    }
}

/// The path of what looks like a pod template in the object.
fn written_path(found: &FoundTemplate) -> String {
    match found.path.is_empty() {
        true => ".".to_owned(),
        false => found.path.join("."),
    }
}

/// Whether a kind of `--pod-template` is probably meant for an object of another kind: misspelt, or without the group.
fn is_slip(declared: &PodTemplatePath, object: &Object) -> bool {
    let is_near = |given: &str, found: &str| nearest(given, [found].into_iter()).is_some();
    let given = group_of(&declared.api_version);
    is_near(&declared.kind, &object.kind)
        && (given.is_empty() || is_near(given, group_of(&object.api_version)))
}

pub(super) const API_SERVICE: &str = "APIService";
