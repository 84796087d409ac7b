//! Companions: the objects that a policy generates beside a workload.

use serde_json::{Map, Value};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{RecordedPolicy, SourceRole, data_fault, name_in, written_name};
use crate::manifest::workload::group_of;
use crate::outcome::GeneratedObject;
use crate::policy::GenerateEntry;
use crate::policy::expression::{Evaluator, ExpressionResult};
use crate::policy::template::TemplateError;
use crate::record::digest;
use crate::record::live::as_created;
use crate::select::WorkloadFacts;

use super::RuleContext;
use super::equality::is_same;
use super::recording::is_named_dropped;

/// The label of all generated objects:
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/>
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "podgraft");

/// Annotations that a companion copies from its workload, so that it is created in the same phase:
/// <https://helm.sh/docs/topics/charts_hooks/>, <https://argo-cd.readthedocs.io/en/stable/user-guide/sync-waves/>.
const ORDERING: [&str; 6] = [
    "helm.sh/hook",
    "helm.sh/hook-weight",
    "helm.sh/hook-delete-policy",
    "argocd.argoproj.io/hook",
    "argocd.argoproj.io/hook-delete-policy",
    "argocd.argoproj.io/sync-wave",
];

/// Returns the objects that a policy generates for a workload, each with whether it is among the manifests already.
///
/// # Errors
/// All problems with the generated objects.
pub(super) fn of(
    subject: RuleContext<'_, '_>,
) -> Result<Vec<(GeneratedObject, bool)>, Vec<Diagnostic>> {
    let RuleContext {
        workload,
        policy,
        base,
        inventory,
        ..
    } = subject;
    if policy.generate.is_empty() {
        return Ok(Vec::new());
    }
    let facts = WorkloadFacts {
        workload,
        base,
        container: None,
        inventory,
    };
    let evaluator = Evaluator::new(&policy.params, &policy.variables, &facts);
    let (mut companions, mut problems) = (Vec::new(), Vec::new());
    for generate in &policy.generate {
        match subject.companion(generate, &evaluator) {
            Ok(companion) => companions.extend(companion),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        Ok(companions)
    } else {
        Err(problems)
    }
}

impl RuleContext<'_, '_> {
    fn companion(
        &self,
        generate: &GenerateEntry,
        evaluator: &Evaluator<'_>,
    ) -> Result<Option<(GeneratedObject, bool)>, Vec<Diagnostic>> {
        if !self
            .is_wanted(generate, evaluator)
            .map_err(|problem| vec![*problem])?
        {
            return Ok(None);
        }
        let in_place =
            |problem: Diagnostic| problem.at(self.workload.name_place(), "for this workload");
        let object = generate.resource.expand(evaluator);
        let mut object =
            object.map_err(|found| found.into_iter().map(in_place).collect::<Vec<_>>())?;
        self.complete(&mut object);
        let name = name_in(&object, &self.workload.source.name, self.options)
            .expect("its name was checked when it was expanded");
        if let Some(fault) = data_fault(&name, &object) {
            let message = format!("no API server takes the generated {name}: {fault}");
            let problem = Diagnostic::error(Code::Invalid, message);
            let label = format!("policy `{}` generates this", self.policy.identity);
            let problem = problem.at(self.policy.text.place(generate.at.clone()), label);
            return Err(vec![in_place(problem)]);
        }
        let companion = GeneratedObject {
            policy: Arc::from(self.policy.identity.as_str()),
            name,
            object: Arc::new(object),
            place: self.policy.text.place(generate.at.clone()),
        };
        let is_present = self
            .is_present(&companion)
            .map_err(|problem| vec![*problem])?;
        Ok(Some((companion, is_present)))
    }

    fn is_wanted(
        &self,
        generate: &GenerateEntry,
        evaluator: &Evaluator<'_>,
    ) -> Result<bool, Box<Diagnostic>> {
        let Some(when) = &generate.when else {
            return Ok(true);
        };
        let fault = match evaluator.evaluate(when) {
            Ok(ExpressionResult::Value(Value::Bool(is_wanted))) => return Ok(is_wanted),
            Ok(ExpressionResult::Value(_) | ExpressionResult::Absent) => TemplateError::new(
                Code::BadExpression,
                "`when` is neither true nor false",
                "make it a comparison",
            ),
            Err(fault) => fault,
        };
        let (at, label) = match fault.variable {
            Some(at) => (at, "this variable"),
            None => (generate.at.clone(), "of this object"),
        };
        let problem = Diagnostic::error(fault.code, fault.message)
            .at(self.policy.text.place(at), label)
            .at(self.workload.name_place(), "for this workload");
        Err(Box::new(match fault.help {
            Some(help) => problem.help(help),
            None => problem,
        }))
    }

    /// The digest of the object of this name that an earlier run generated for this policy and workload.
    pub(super) fn earlier_digest(&self, name: &str) -> Option<&String> {
        self.earlier?
            .record
            .policy(&self.policy.identity)?
            .generated
            .get(name)
    }

    /// Whether earlier runs generated the object, for policies that this run applies or removes: a policy that is kept
    /// still needs it as it is.
    fn is_replaceable(&self, object: &Value) -> bool {
        let (name, digest) = (written_name(object), digest(&as_created(object)));
        let recorded = || self.inventory.recorded_policies(&name, &digest);
        let earlier_digest = self.earlier_digest(&name);
        (earlier_digest == Some(&digest) || recorded().next().is_some())
            && !recorded().any(|policy| self.is_kept(policy))
    }

    fn is_kept(&self, recorded: &RecordedPolicy) -> bool {
        let is_given = self.policies.iter().any(|policy| {
            policy.identity == recorded.name || policy.renamed_from.as_ref() == Some(&recorded.name)
        });
        !is_given && !is_named_dropped(&recorded.name, recorded.set.as_ref(), self.options)
    }

    /// Adds podgraft's label, and the workload's annotations that decide the order of creation.
    fn complete(&self, object: &mut Value) {
        let workload_annotations = self
            .workload
            .metadata()
            .and_then(|metadata| self.workload.tree.get(metadata, "annotations"));
        let ordering = ORDERING.iter().filter_map(|&key| {
            let tree = self.workload.tree;
            Some((key, tree.string(tree.get(workload_annotations?, key)?)?))
        });
        let ordering: Vec<(&str, &str)> = ordering.collect();
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        texts(metadata, "labels").insert(MANAGED_BY.0.to_owned(), Value::from(MANAGED_BY.1));
        if !ordering.is_empty() {
            let annotations = texts(metadata, "annotations");
            for (key, value) in ordering {
                annotations.entry(key).or_insert_with(|| Value::from(value));
            }
        }
    }

    /// Whether the object is among the manifests already.
    fn is_present(&self, companion: &GeneratedObject) -> Result<bool, Box<Diagnostic>> {
        let name = &companion.name;
        let Some(known) = self.inventory.object(name) else {
            return Ok(false);
        };
        let generated = self.inventory.generated(name);
        let is_generated_twice = generated.is_some_and(|generated| {
            generated.contradiction.is_some()
                || !is_same_object(&generated.value, &companion.object)
        });
        if is_generated_twice {
            let message = format!("the {name} is generated twice, with different content");
            let help = "put what differs into the name, such as `${workload.name}-agent`";
            return Err(self.conflict(companion, message, help));
        }
        match (known.standing, &known.contradiction) {
            // The object is known only because policies generate it, always with the same content.
            (SourceRole::Companion, _) => Ok(false),
            (_, Some(other_place)) => {
                let message =
                    format!("the {name} stands twice among the manifests, and is generated, too");
                let problem = self.conflict(companion, message, "take one of the two out");
                let problem = problem
                    .at(known.place.clone(), "one of them")
                    .at(other_place.clone(), "the other");
                Err(Box::new(problem))
            }
            (_, None) if is_same_object(&known.value, &companion.object) => Ok(true),
            (SourceRole::RecordedFile, None) if self.is_replaceable(&known.value) => {
                let file = &known.place.source;
                let message = format!("an earlier version of the {name} stands in `{file}`");
                let help =
                    format!("give that file, too, so that the new version takes its place: {file}");
                let problem = self.conflict(companion, message, &help);
                Err(Box::new(problem.at(known.place.clone(), "stands here")))
            }
            // An earlier run generated it with other content: the new object replaces it.
            (_, None) if self.is_replaceable(&known.value) => Ok(false),
            (_, None) => {
                let message =
                    format!("the {name} is already among the manifests, with other content");
                let help = "take it out where an earlier run wrote it, or give the generated one another name";
                Err(Box::new(
                    self.conflict(companion, message, help)
                        .at(known.place.clone(), "stands here"),
                ))
            }
        }
    }

    fn conflict(
        &self,
        companion: &GeneratedObject,
        message: String,
        help: &str,
    ) -> Box<Diagnostic> {
        let policy_label = format!("policy `{}` generates this", self.policy.identity);
        let problem =
            Diagnostic::error(Code::Conflict, message).at(companion.place.clone(), policy_label);
        Box::new(
            problem
                .at(self.workload.name_place(), "for this workload")
                .help(help),
        )
    }
}

/// The mapping under a key of `metadata`. A missing one is created last, but labels go before annotations.
fn texts<'m>(metadata: &'m mut Map<String, Value>, key: &str) -> &'m mut Map<String, Value> {
    if metadata.get(key).is_none_or(|value| !value.is_object()) {
        let at = metadata
            .keys()
            .take_while(|existing_key| !(key == "labels" && *existing_key == "annotations"))
            .count();
        metadata.shift_insert(at, key.to_owned(), Value::Object(Map::new()));
    }
    metadata[key].as_object_mut().expect("it is a mapping now")
}

fn has_metadata(existing: &Value, generated: &Value, field: &str) -> bool {
    let existing = &existing["metadata"][field];
    let mut wanted = generated["metadata"][field]
        .as_object()
        .into_iter()
        .flatten();
    wanted.all(|(key, value)| key == MANAGED_BY.0 || existing.get(key) == Some(value))
}

/// Whether an object equals the generated one, except for what a cluster or its tools add: metadata, `status`,
/// defaults.
fn is_same_object(existing: &Value, generated: &Value) -> bool {
    let (Some(existing_fields), Some(wanted)) = (existing.as_object(), generated.as_object())
    else {
        return false;
    };
    let is_data = |key: &&String| !matches!(key.as_str(), "apiVersion" | "metadata" | "status");
    existing["apiVersion"].as_str().map(group_of) == generated["apiVersion"].as_str().map(group_of)
        && has_metadata(existing, generated, "labels")
        && has_metadata(existing, generated, "annotations")
        && existing_fields
            .keys()
            .filter(is_data)
            .all(|key| wanted.contains_key(key))
        && wanted
            .iter()
            .filter(|(key, _)| is_data(key))
            .all(|(key, value)| {
                existing_fields
                    .get(key)
                    .is_some_and(|found| is_same(found, value))
            })
}
