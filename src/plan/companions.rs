//! What policies generate beside a workload.

use serde_json::{Map, Value};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{Standing, name_in, written_name};
use crate::manifest::workload::group_of;
use crate::outcome::Companion;
use crate::policy::Generate;
use crate::policy::expression::{Evaluator, Outcome};
use crate::policy::template::Fault;
use crate::record::digest;
use crate::record::live::as_created;
use crate::select::WorkloadFacts;

use super::Subject;
use super::same::is_same;

/// All that is generated has it: <https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/>
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "podgraft");

/// What a companion takes over from its workload, so that it is there when the workload is:
/// <https://helm.sh/docs/topics/charts_hooks/>, <https://argo-cd.readthedocs.io/en/stable/user-guide/sync-waves/>.
const ORDERING: [&str; 6] = [
    "helm.sh/hook",
    "helm.sh/hook-weight",
    "helm.sh/hook-delete-policy",
    "argocd.argoproj.io/hook",
    "argocd.argoproj.io/hook-delete-policy",
    "argocd.argoproj.io/sync-wave",
];

/// What a policy generates for a workload that it applies to, each with whether it is among the manifests already.
///
/// # Errors
/// All that is wrong.
pub(super) fn of(subject: Subject<'_, '_>) -> Result<Vec<(Companion, bool)>, Vec<Diagnostic>> {
    let Subject {
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

impl Subject<'_, '_> {
    fn companion(
        &self,
        generate: &Generate,
        evaluator: &Evaluator<'_>,
    ) -> Result<Option<(Companion, bool)>, Vec<Diagnostic>> {
        if !self
            .is_wanted(generate, evaluator)
            .map_err(|problem| vec![*problem])?
        {
            return Ok(None);
        }
        let in_place =
            |problem: Diagnostic| problem.at(self.workload.own_place(), "for this workload");
        let object = generate.resource.expand(evaluator);
        let mut object =
            object.map_err(|found| found.into_iter().map(in_place).collect::<Vec<_>>())?;
        self.complete(&mut object);
        let name = name_in(&object, &self.workload.source.name, self.options)
            .expect("its name was checked when it was expanded");
        let companion = Companion {
            policy: Arc::from(self.policy.identity.as_str()),
            name,
            object: Arc::new(object),
            place: self.policy.text.place(generate.at.clone()),
        };
        let is_there = self
            .is_there(&companion)
            .map_err(|problem| vec![*problem])?;
        Ok(Some((companion, is_there)))
    }

    fn is_wanted(
        &self,
        generate: &Generate,
        evaluator: &Evaluator<'_>,
    ) -> Result<bool, Box<Diagnostic>> {
        let Some(when) = &generate.when else {
            return Ok(true);
        };
        let fault = match evaluator.evaluate(when) {
            Ok(Outcome::Value(Value::Bool(is_wanted))) => return Ok(is_wanted),
            Ok(Outcome::Value(_) | Outcome::Absent) => Fault::new(
                Code::BadExpression,
                "`when` is neither true nor false",
                "make it a comparison",
            ),
            Err(fault) => fault,
        };
        let (at, what) = match fault.variable {
            Some(at) => (at, "this variable"),
            None => (generate.at.clone(), "of this object"),
        };
        let problem = Diagnostic::error(fault.code, fault.message)
            .at(self.policy.text.place(at), what)
            .at(self.workload.own_place(), "for this workload");
        Err(Box::new(match fault.help {
            Some(help) => problem.help(help),
            None => problem,
        }))
    }

    /// The digest of what an earlier run wrote under a name for this policy and workload.
    pub(super) fn earlier_digest(&self, name: &str) -> Option<&String> {
        self.earlier?
            .record
            .policy(&self.policy.identity)?
            .generated
            .get(name)
    }

    fn is_from_earlier(&self, object: &Value) -> bool {
        let (name, digest) = (written_name(object), digest(&as_created(object)));
        self.earlier_digest(&name).is_some_and(|was| *was == digest)
            || self.inventory.is_recorded(&name, &digest)
    }

    /// Our label, and what says when the workload comes.
    fn complete(&self, object: &mut Value) {
        let own = self
            .workload
            .metadata()
            .and_then(|metadata| self.workload.tree.get(metadata, "annotations"));
        let ordering = ORDERING.iter().filter_map(|&key| {
            let tree = self.workload.tree;
            Some((key, tree.scalar(tree.get(own?, key)?)?))
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
    fn is_there(&self, companion: &Companion) -> Result<bool, Box<Diagnostic>> {
        let conflict = |message: String, help: &str| {
            let wants = format!("policy `{}` generates this", self.policy.identity);
            let problem =
                Diagnostic::error(Code::Conflict, message).at(companion.place.clone(), wants);
            Box::new(
                problem
                    .at(self.workload.own_place(), "for this workload")
                    .help(help),
            )
        };
        let name = &companion.name;
        let Some(known) = self.inventory.object(name) else {
            return Ok(false);
        };
        match (known.standing, &known.contradiction) {
            (Standing::Companion, None) => Ok(false),
            (Standing::Companion, Some(_)) => {
                let message = format!("the {name} is generated twice, with different content");
                Err(conflict(
                    message,
                    "put what differs into the name, such as `${workload.name}-agent`",
                ))
            }
            (_, Some(other)) => {
                let message =
                    format!("the {name} stands twice among the manifests, and is generated, too");
                let problem = conflict(message, "take one of the two out");
                let problem = problem
                    .at(known.place.clone(), "one of them")
                    .at(other.clone(), "the other");
                Err(Box::new(problem))
            }
            (_, None) if is_same_object(&known.says, &companion.object) => Ok(true),
            // An earlier run wrote it; it gives way to what it is now.
            (_, None) if self.is_from_earlier(&known.says) => Ok(false),
            (_, None) => {
                let message =
                    format!("the {name} is already among the manifests, with other content");
                let help = "take it out where an earlier run wrote it, or give the generated one another name";
                Err(Box::new(
                    conflict(message, help).at(known.place.clone(), "stands here"),
                ))
            }
        }
    }
}

/// The mapping under a key of `metadata`, behind `name` and `namespace`.
fn texts<'m>(metadata: &'m mut Map<String, Value>, key: &str) -> &'m mut Map<String, Value> {
    if metadata.get(key).is_none_or(|there| !there.is_object()) {
        let at = metadata
            .keys()
            .take_while(|other| !(key == "labels" && *other == "annotations"))
            .count();
        metadata.shift_insert(at, key.to_owned(), Value::Object(Map::new()));
    }
    metadata[key].as_object_mut().expect("it is a mapping now")
}

/// Whether an object has all that the generated one says, and beyond it only what a cluster or its tools add.
fn is_same_object(existing: &Value, ours: &Value) -> bool {
    let (Some(there), Some(wanted)) = (existing.as_object(), ours.as_object()) else {
        return false;
    };
    let is_data = |key: &&String| !matches!(key.as_str(), "apiVersion" | "metadata" | "status");
    let has_all = |field: &str| {
        let of = |object: &Value| object.pointer(&format!("/metadata/{field}")).cloned();
        let there = of(existing).unwrap_or_default();
        let wanted = of(ours).unwrap_or_default();
        let mut wanted = wanted.as_object().into_iter().flatten();
        wanted.all(|(key, value)| key == MANAGED_BY.0 || there.get(key) == Some(value))
    };
    let version = |object: &Value| {
        object
            .get("apiVersion")
            .and_then(Value::as_str)
            .map(group_of)
            .map(str::to_owned)
    };
    version(existing) == version(ours)
        && has_all("labels")
        && has_all("annotations")
        && there
            .keys()
            .filter(is_data)
            .all(|key| wanted.contains_key(key))
        && wanted
            .iter()
            .filter(|(key, _)| is_data(key))
            .all(|(key, value)| there.get(key).is_some_and(|found| is_same(found, value)))
}
