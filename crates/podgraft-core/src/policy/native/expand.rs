//! An `inject` with expressions, expanded for each workload and then checked like an `inject` without expressions.

use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;

use super::evaluate::{PendingTemplates, write_as_text};
use super::{PolicyReader, patches};
use crate::diagnostic::{Code, Diagnosed, unless};
use crate::policy::document::{Document, KeptValue};
use crate::policy::expression::{Evaluator, ExpressionResult};
use crate::policy::parts::{CONTAINER_LISTS, POD_LISTS};
use crate::policy::schema::Schema;
use crate::policy::stored_schemas::INJECTION_POLICY;
use crate::policy::template::{Evaluated, Template, TemplateError, evaluate_all};
use crate::policy::vocabulary::Vocabulary;
use crate::policy::{Injection, PatchScope, PolicyValue};
use crate::yaml::value::{Path, Step};

static INJECT: Schema = Schema::Stored(&INJECTION_POLICY, "Inject");

/// Goes into each chosen container, like [`CONTAINER_LISTS`], except for [`OF_POD`].
const DEFAULTS: &str = "defaults";
const OF_POD: &str = "podSecurityContext";

/// An `inject` with templates that depend on the workload.
#[derive(Debug)]
pub struct InjectionTemplate {
    /// `inject` with its constants filled in.
    inject: KeptValue,
    /// Templates in items of the pod or the workload.
    pod: Vec<(Path, Template)>,
    /// Templates in items of containers.
    container: Vec<(Path, Template)>,
    /// Annotation keys of checksums, which are evaluated for each hashed object.
    of_each: Vec<(Path, Arc<Template>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TemplateScope {
    Pod,
    Container,
    Both,
}

impl TemplateScope {
    /// Whether a field of `inject` is expanded in this scope.
    fn has_field(self, key: &str) -> bool {
        match self {
            TemplateScope::Both => true,
            TemplateScope::Pod => !CONTAINER_LISTS.contains(&key),
            // Patches keep their indexes in the list, which templates refer to; `expand` drops those of the other
            // scope.
            TemplateScope::Container => {
                key == "patches" || key == DEFAULTS || CONTAINER_LISTS.contains(&key)
            }
        }
    }
}

/// The part of an `inject` that a path leads into: one item of a list, one entry of a map, or the whole value of
/// `podSpec` and of `defaults`. Of `defaults`, `podSecurityContext` is an entry of its own.
pub(super) fn entry_of(path: &Path, injects: &[Path]) -> Path {
    let Some(inject) = injects.iter().find(|inject| path.starts_with(inject)) else {
        return path.clone();
    };
    let steps = &path.0[inject.0.len()..];
    let is_one =
        matches!(steps.first(), Some(Step::Key(key)) if key == "podSpec" || key == DEFAULTS);
    let is_of_pod = matches!(steps.get(1), Some(Step::Key(key)) if key == OF_POD);
    let depth = if is_one && !is_of_pod { 1 } else { 2 };
    Path(path.0[..path.0.len().min(inject.0.len() + depth)].to_vec())
}

fn is_in_containers(document: &Value, path: &Path, inject: &Path) -> bool {
    if patches::is_of_container(document, path, inject) {
        return true;
    }
    match &path.0[inject.0.len()..] {
        [Step::Key(key), Step::Key(inner), ..] if key == DEFAULTS => inner != OF_POD,
        [Step::Key(key), ..] => key == DEFAULTS || CONTAINER_LISTS.contains(&key.as_str()),
        _ => false,
    }
}

impl PolicyReader<'_, '_> {
    /// The template of the `inject` at a path; `None` if nothing in it waits for a workload.
    pub(super) fn template(&mut self, at: &Path) -> Option<Arc<InjectionTemplate>> {
        let templates = self
            .unfilled
            .templates
            .iter()
            .filter(|(path, _)| path.starts_with(at))
            .cloned();
        let document = &self.document.value;
        let (container, pod): (Vec<_>, Vec<_>) =
            templates.partition(|(path, _)| is_in_containers(document, path, at));
        if container.is_empty() && pod.is_empty() {
            return None;
        }
        if container
            .iter()
            .any(|(path, _)| path.0.len() == at.0.len() + 1 && path.name() == DEFAULTS)
        {
            self.report_error(
                &at.key(DEFAULTS),
                "`defaults` cannot be a single expression",
                "write out its fields",
            );
        }
        Some(Arc::new(InjectionTemplate {
            inject: self.document.keep(at)?,
            pod,
            container,
            of_each: self.unfilled.of_each.clone(),
        }))
    }
}

impl InjectionTemplate {
    /// All parts that it injects, with their expressions unevaluated.
    pub(crate) fn unevaluated(&self) -> Vec<PolicyValue> {
        let lists = self.inject.value.as_object().into_iter().flatten();
        let mut parts = Vec::new();
        for (key, value) in
            lists.filter(|(key, _)| !matches!(key.as_str(), "checksums" | "volumeMounts"))
        {
            let at = self.inject.at.key(key);
            match value
                .as_array()
                .filter(|_| key != "imagePullSecrets" && key != "patches")
            {
                Some(entries) => {
                    parts.extend((0..).zip(entries).map(|(index, entry)| PolicyValue {
                        value: Arc::new(entry.clone()),
                        at: self.inject.span(&at.index(index)),
                    }))
                }
                None => {
                    let value = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
                    parts.push(PolicyValue {
                        value: Arc::new(value),
                        at: self.inject.span(&at),
                    });
                }
            }
        }
        parts
    }

    /// Expands what goes into the pod and the workload. If nothing depends on the container, the items of containers
    /// are included too, because they are the same for all. There is one evaluator for each chosen container; an item
    /// of the pod may use `container` only if all containers give the same value.
    ///
    /// # Errors
    /// All problems, with their places in the policy.
    pub(crate) fn expand_pod(&self, evaluators: &[Evaluator<'_>]) -> Diagnosed<Injection> {
        let level = if self.container.is_empty() {
            TemplateScope::Both
        } else {
            TemplateScope::Pod
        };
        self.expand(level, &self.pod, |template| {
            evaluate_once(template, evaluators)
        })
    }

    /// Expands what goes into one chosen container. `None` if `expand_pod` has it already.
    ///
    /// # Errors
    /// All problems, with their places in the policy.
    pub(crate) fn expand_container(
        &self,
        evaluator: &Evaluator<'_>,
    ) -> Diagnosed<Option<Injection>> {
        if self.container.is_empty() {
            return Ok(None);
        }
        self.expand(TemplateScope::Container, &self.container, |template| {
            template.evaluate(evaluator)
        })
        .map(Some)
    }

    /// The place of an item that could change what the policy itself reads, so that a second run would compute another
    /// value: the first patch, or the first evaluated variable, label or annotation that the policy reads. `reads` is
    /// asked about a field, or a field and a key.
    pub(crate) fn self_reference(
        &self,
        reads: impl Fn(&str, Option<&str>) -> bool,
    ) -> Option<Range<usize>> {
        if self.has("patches") {
            return Some(self.inject.span(&self.inject.at.key("patches")));
        }
        let env = self.inject.at.key("env");
        let mut of_containers = self.container.iter().filter(|_| reads("env", None));
        if let Some((path, _)) = of_containers.find(|(path, _)| path.starts_with(&env)) {
            return Some(self.inject.span(path));
        }
        let maps = [
            ("annotations", "annotations"),
            ("labels", "labels"),
            ("podAnnotations", "annotations"),
            ("podLabels", "labels"),
        ];
        let is_evaluated = |text: &Value| text.as_str().is_some_and(|text| text.contains("${"));
        maps.iter().find_map(|(map, field)| {
            let mut texts = self.inject.value.get(map)?.as_object()?.iter();
            let (key, _) =
                texts.find(|(key, text)| is_evaluated(text) && reads(field, Some(key)))?;
            Some(self.place_of_entry(map, key))
        })
    }

    /// The place of the first entry with an expression.
    pub(crate) fn first_expression(&self) -> Option<Range<usize>> {
        let mut places = self.pod.iter().chain(&self.container);
        places.next().map(|(path, _)| self.inject.span(path))
    }

    /// The fields of the pod spec and of containers into which it puts something other than containers.
    pub(crate) fn filled_fields(&self) -> Vec<&str> {
        let inject = &self.inject.value;
        let lists = POD_LISTS.into_iter().chain(CONTAINER_LISTS);
        let lists = lists.filter(|list| self.has(list));
        let maps = [DEFAULTS, "podSpec"].into_iter();
        let maps = maps.filter_map(|map| inject.get(map)?.as_object());
        let fields = maps.flat_map(Map::keys).map(String::as_str);
        let fields = fields.map(|field| match field {
            OF_POD => "securityContext",
            field => field,
        });
        lists.chain(fields).collect()
    }

    /// The place of an item of a list.
    pub(crate) fn place_of_item(&self, list: &str, index: usize) -> Range<usize> {
        self.inject.span(&self.inject.at.key(list).index(index))
    }

    /// The place of an entry of a mapping.
    pub(crate) fn place_of_entry(&self, mapping: &str, key: &str) -> Range<usize> {
        self.inject.span(&self.inject.at.key(mapping).key(key))
    }

    /// `inject` with its expressions unevaluated.
    pub fn written(&self) -> &Value {
        &self.inject.value
    }

    /// Whether `inject` has a key.
    pub fn has(&self, key: &str) -> bool {
        self.inject.value.get(key).is_some()
    }

    fn expand(
        &self,
        level: TemplateScope,
        templates: &[(Path, Template)],
        evaluate: impl Fn(&Template) -> Evaluated<ExpressionResult>,
    ) -> Diagnosed<Injection> {
        let mut document = self.document(level);
        let outcomes =
            evaluate_all(templates, evaluate).map_err(|faults| document.faults(faults))?;
        let evaluated: Vec<Path> = templates.iter().map(|(path, _)| path.clone()).collect();
        let moves = document.put_all(outcomes);
        let evaluated = moves.all_new_paths(&evaluated);
        let found = document.check(&INJECT, &self.inject.at);
        write_as_text(&mut document.value, &found, &evaluated);
        // `write_as_text` has fixed numbers and booleans where a string is wanted, so check again.
        let problems = match found.is_empty() {
            true => found,
            false => document.check(&INJECT, &self.inject.at),
        };
        if !problems.is_empty() {
            return Err(document.problems(&problems));
        }
        let mut unfilled = PendingTemplates {
            of_each: self.of_each.clone(),
            ..PendingTemplates::default()
        };
        unfilled.move_by(&moves);
        let mut reader = PolicyReader::of(&document, Vocabulary::default(), unfilled);
        let mut inject = reader.inject(&self.inject.at);
        inject.patches.retain(|entry| match level {
            TemplateScope::Both => true,
            TemplateScope::Pod => entry.scope != PatchScope::Container,
            TemplateScope::Container => entry.scope == PatchScope::Container,
        });
        unless(reader.problems, inject)
    }

    /// The part of `inject` for a scope, at its path in an otherwise empty document.
    fn document(&self, level: TemplateScope) -> Document<'static> {
        let fields = self.inject.value.as_object().into_iter().flatten();
        let fields = fields.filter(|(key, _)| level.has_field(key));
        let mut inject: Map<String, Value> = fields
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if let Some(defaults) = inject.get_mut(DEFAULTS).and_then(Value::as_object_mut) {
            defaults.retain(|key, _| {
                level == TemplateScope::Both || (level == TemplateScope::Pod) == (key == OF_POD)
            });
        }
        self.inject.document(Value::Object(inject))
    }
}

/// The value of a template that has one place in the pod: if it uses `container`, all evaluators must agree.
fn evaluate_once(template: &Template, evaluators: &[Evaluator<'_>]) -> Evaluated<ExpressionResult> {
    let wanted = if template.uses().container {
        evaluators.len()
    } else {
        1
    };
    let mut outcomes = evaluators
        .iter()
        .take(wanted)
        .map(|evaluator| template.evaluate(evaluator));
    let first = outcomes.next().unwrap_or(Ok(ExpressionResult::Absent))?;
    for outcome in outcomes {
        if outcome? != first {
            return Err(disagreement());
        }
    }
    Ok(first)
}

fn disagreement() -> TemplateError {
    let message = "this differs between the selected containers, but the pod can have it only once";
    let help = "select one container with `containers`, or use `containers.first`";
    TemplateError::new(Code::BadExpression, message, help)
}
