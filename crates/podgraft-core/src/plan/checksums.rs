//! Checksums of ConfigMaps and Secrets as annotations of the pod template: pods restart, by their workload's own
//! strategy, when what they read has changed.

use serde_json::Value;
use std::collections::BTreeMap;

use crate::change::{Change, ChangeTarget, MetadataOwner, Operation};
use crate::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use crate::inventory::{DataEntries, DataKind, sum};
use crate::outcome::{ObjectName, Outcome};
use crate::policy::expression::{Evaluator, ExpressionResult, Facts, LookupKey};
use crate::policy::functions::sha256;
use crate::policy::template::{Evaluated, Template, TemplateError};
use crate::policy::{ChecksumAnnotation, ChecksumKey, names};
use crate::select::WorkloadFacts;

use super::containers::items_of;
use super::draft::Draft;
use super::marks::open_annotations;
use super::{LateFailure, PlanContext, RuleContext, WorkloadPlan, refusal_diagnostic};

/// Adds checksums of a policy to the pod template. An existing annotation with another value is updated without a
/// conflict.
///
/// # Errors
/// All problems. The draft is then only partly changed and must be dropped.
fn add(
    subject: RuleContext<'_, '_>,
    checksums: &[ChecksumAnnotation],
    draft: &mut Draft<'_>,
) -> Diagnosed<Vec<Change>> {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for checksum in checksums {
        let context = ChecksumContext {
            subject,
            checksum,
            draft: &*draft,
        };
        let annotations = context.annotations().unwrap_or_else(|found| {
            problems.extend(found);
            Vec::new()
        });
        for (key, value) in annotations {
            match set(subject, draft, &key, value) {
                Ok(change) => done.extend(change),
                Err(problem) => problems.push(problem),
            }
        }
    }
    unless(problems, done)
}

impl<'t> PlanContext<'_, 't> {
    /// Adds the checksums of a policy to the plan.
    ///
    /// # Errors
    /// All problems, with the index of the policy.
    pub(super) fn add_checksums(
        &self,
        at: usize,
        found: &[ChecksumAnnotation],
        planned: &mut WorkloadPlan<'t>,
    ) -> Result<(), LateFailure> {
        let done = add(self.subject(&self.policies[at]), found, &mut planned.draft);
        let done = done.map_err(|problems| (at, problems))?;
        if self.options.authors && !done.is_empty() {
            planned.steps.push((at, planned.draft.clone()));
        }
        let outcome = &mut planned.policies[at].outcome;
        match outcome {
            Outcome::Injected(changes) => changes.extend(done),
            Outcome::UpToDate if !done.is_empty() => *outcome = Outcome::Injected(done),
            Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed(_) | Outcome::TakenOut(_) => {
            }
        }
        Ok(())
    }
}

fn set(
    subject: RuleContext<'_, '_>,
    draft: &mut Draft<'_>,
    key: &str,
    value: String,
) -> Result<Option<Change>, Diagnostic> {
    let annotations = draft.get_in(&subject.template_in(draft), &["metadata", "annotations"]);
    let existing = annotations.and_then(|annotations| draft.text_at(&annotations, key));
    if existing.as_deref() == Some(value.as_str()) {
        return Ok(None);
    }
    let opened = open_annotations(draft, &subject.workload.pod_kind.path);
    let written = opened.and_then(|map| draft.set(map, key, Value::String(value), &[]));
    written.map_err(|refusal| refusal_diagnostic(&refusal, subject.workload))?;
    let operation = match existing {
        Some(_) => Operation::Update,
        None => Operation::Add,
    };
    let target = ChangeTarget::metadata(MetadataOwner::Pod, "annotations", key);
    Ok(Some(Change::new(operation, target)))
}

/// An entry of `checksums`, and the planned workload whose references it covers.
struct ChecksumContext<'s, 't> {
    subject: RuleContext<'s, 't>,
    checksum: &'s ChecksumAnnotation,
    draft: &'s Draft<'t>,
}

impl ChecksumContext<'_, '_> {
    /// The annotations to set as pairs of key and checksum, ordered by object.
    fn annotations(&self) -> Diagnosed<Vec<(String, String)>> {
        let mut sums = Vec::new();
        let mut problems = Vec::new();
        let mut is_whole = true;
        for (name, may_be_missing) in self.names() {
            match self.sum_of(&name) {
                Ok(Some(sum)) => sums.push((name, sum)),
                Ok(None) if may_be_missing => {}
                Ok(None) if self.checksum.skips_missing => is_whole = false,
                Ok(None) => problems.push(self.missing(&name)),
                Err(problem) => problems.push(problem),
            }
        }
        unless(problems, ())?;
        match &self.checksum.annotation {
            ChecksumKey::Text(key) => {
                let sum = Some(sums)
                    .filter(|sums| is_whole && !sums.is_empty())
                    .map(of_several);
                Ok(sum.map(|sum| (key.clone(), sum)).into_iter().collect())
            }
            ChecksumKey::OfEach(template) => {
                let keyed = sums
                    .into_iter()
                    .map(|(name, sum)| Ok((self.key_of(template, &name)?, sum)));
                keyed
                    .collect::<Result<_, Diagnostic>>()
                    .map_err(|problem| vec![problem])
            }
        }
    }

    /// The objects to sum, each with whether it is optional: whether the pod also starts without it.
    fn names(&self) -> BTreeMap<ObjectName, bool> {
        let named = |kind: DataKind, name: &str| kind.beside(self.subject.workload, name);
        let checksum = self.checksum;
        let mut names = BTreeMap::new();
        let references = match checksum.all_config_maps || checksum.all_secrets {
            true => self.references(),
            false => Vec::new(),
        };
        for (kind, name, is_optional) in references {
            let is_asked_for = match kind {
                DataKind::ConfigMap => checksum.all_config_maps,
                DataKind::Secret => checksum.all_secrets,
            };
            if is_asked_for {
                // An object that is optional in one place and required in another is required.
                names
                    .entry(named(kind, &name))
                    .and_modify(|is_optional_everywhere| *is_optional_everywhere &= is_optional)
                    .or_insert(is_optional);
            }
        }
        let config_maps = checksum.config_maps.iter();
        names.extend(config_maps.map(|name| (named(DataKind::ConfigMap, name), false)));
        let secrets = checksum.secrets.iter();
        names.extend(secrets.map(|name| (named(DataKind::Secret, name), false)));
        names
    }

    /// The objects that volumes, `env` and `envFrom` of the pod template refer to, each with its `optional`.
    fn references(&self) -> Vec<Reference> {
        let template = self.subject.template_in(self.draft);
        let pod_spec = self.draft.get(&template, "spec");
        let value = pod_spec.and_then(|spec| self.draft.value(&spec));
        let value = value.unwrap_or_default();
        let mut found = Vec::new();
        for volume in items_of(&value, "volumes") {
            found.extend(references(volume, OF_VOLUMES));
            for source in items_of(&volume["projected"], "sources") {
                found.extend(references(source, OF_PROJECTIONS));
            }
        }
        let init = items_of(&value, "initContainers").iter();
        for container in init.chain(items_of(&value, "containers")) {
            for source in items_of(container, "envFrom") {
                found.extend(references(source, OF_ENV_FROM));
            }
            for variable in items_of(container, "env") {
                found.extend(references(&variable["valueFrom"], OF_VARIABLES));
            }
        }
        found
    }

    fn sum_of(&self, name: &ObjectName) -> Result<Option<String>, Diagnostic> {
        let entries = self.subject.inventory.entries(name);
        let entries = entries.map_err(|doubt| self.labelled(doubt))?;
        let (Some(entries), keys) = (entries, &self.checksum.keys) else {
            return Ok(None);
        };
        if keys.is_empty() {
            return Ok(Some(sum(&entries)));
        }
        let wanted = keys.iter();
        let wanted = wanted.map(|key| Some((key.clone(), entries.get(key)?.clone())));
        let wanted = wanted.collect::<Option<DataEntries>>();
        Ok(wanted.map(|entries| sum(&entries)))
    }

    fn missing(&self, name: &ObjectName) -> Diagnostic {
        let inventory = self.subject.inventory;
        let known = inventory.entries(name).ok().flatten();
        let known = known.as_ref();
        let is_absent = |key: &&String| known.is_some_and(|entries| !entries.contains_key(*key));
        let (message_end, help) = match (
            self.checksum.keys.iter().find(is_absent),
            inventory.namesake(name),
        ) {
            (Some(key), _) => (
                format!("has no key `{key}`"),
                "use a key that exists".to_owned(),
            ),
            (None, Some((namesake, _))) => {
                let help = match (&name.namespace, &namesake.namespace) {
                    (_, Some(_)) if name.namespace.is_none() => {
                        "the workload has no namespace: set it with `--namespace`"
                    }
                    (_, None) => "the existing one has no namespace: set it with `--namespace`",
                    _ => {
                        "move it to the namespace of the workload: a pod can read only objects in \
                         its own namespace"
                    }
                };
                (
                    format!("is not among the manifests, only {} is", namesake),
                    help.to_owned(),
                )
            }
            (None, None) => {
                let word = if self.subject.policy.kind().is_some() {
                    "--param onMissing=Skip"
                } else {
                    "onMissing: Skip"
                };
                let help =
                    format!("pass the file that contains it with `--context`, or use `{word}`");
                ("is not among the manifests".to_owned(), help.to_owned())
            }
        };
        let message = format!("the {} {message_end}, so no checksum can be computed", name);
        self.labelled(Diagnostic::error(Code::MissingObject, message))
            .help(help)
    }

    fn labelled(&self, problem: Diagnostic) -> Diagnostic {
        let policy = self.subject.policy;
        let policy_label = format!("policy `{}` wants this", policy.identity);
        problem
            .at(self.subject.workload.name_place(), "for this workload")
            .at(policy.text.place(self.checksum.at.clone()), policy_label)
    }

    fn not_evaluated(&self, fault: TemplateError) -> Diagnostic {
        self.labelled(Diagnostic {
            labels: Vec::new(),
            ..*fault.problem
        })
    }

    /// Evaluates the template of the annotation's key for one object.
    fn key_of(&self, template: &Template, name: &ObjectName) -> Result<String, Diagnostic> {
        let policy = self.subject.policy;
        let facts = ReferenceFacts {
            name,
            workload: self.subject.facts(),
        };
        let key = match template
            .evaluate(&Evaluator::new(&policy.params, &policy.variables, &facts))
            .map_err(|fault| self.not_evaluated(fault))?
        {
            ExpressionResult::Value(value) => {
                crate::policy::template::as_text(&value).unwrap_or_default()
            }
            ExpressionResult::Absent => String::new(),
        };
        match names::check_key(&key) {
            Ok(()) => Ok(key),
            Err(rule) => {
                let message = format!("the annotation `{key}` for the {} {rule}", name);
                let help = "shorten it: `checksum/${dnsLabel(ref.kind + '-' + ref.name)}`";
                Err(self
                    .labelled(Diagnostic::error(Code::Invalid, message))
                    .help(help))
            }
        }
    }
}

/// Combines checksums. A single one stays as it is; for several, their names and checksums are hashed again.
fn of_several(sums: Vec<(ObjectName, String)>) -> String {
    if let [(_, sum)] = sums.as_slice() {
        return sum.clone();
    }
    let named: BTreeMap<String, String> = sums
        .into_iter()
        .map(|(name, sum)| (format!("{}/{}", name.kind, name.name), sum))
        .collect();
    sha256(&serde_json::to_string(&named).expect("texts are always JSON"))
}

/// The fields that refer to a ConfigMap and to a Secret, each with the field of its name.
type ReferenceFields = [(&'static str, &'static str); 2];

const OF_VOLUMES: ReferenceFields = [("configMap", "name"), ("secret", "secretName")];
const OF_PROJECTIONS: ReferenceFields = [("configMap", "name"), ("secret", "name")];
const OF_ENV_FROM: ReferenceFields = [("configMapRef", "name"), ("secretRef", "name")];
const OF_VARIABLES: ReferenceFields = [("configMapKeyRef", "name"), ("secretKeyRef", "name")];

/// An object that a pod refers to, and whether the pod also starts without it.
type Reference = (DataKind, String, bool);

/// The references in a volume, a source or a variable.
fn references(holder: &Value, fields: ReferenceFields) -> impl Iterator<Item = Reference> {
    let kinds = [DataKind::ConfigMap, DataKind::Secret].into_iter();
    kinds.zip(fields).filter_map(|(kind, (field, name))| {
        let source = &holder[field];
        let name = source[name].as_str().filter(|name| !name.is_empty())?;
        Some((kind, name.to_owned(), source["optional"] == true))
    })
}

/// What an expression can use: `ref`, the object, and the facts of the workload.
struct ReferenceFacts<'f, 't> {
    name: &'f ObjectName,
    workload: WorkloadFacts<'f, 't>,
}

impl Facts for ReferenceFacts<'_, '_> {
    fn fact(&self, root: &str, field: &str) -> Evaluated<Option<Value>> {
        match (root, field) {
            ("ref", "kind") => Ok(Some(Value::from(self.name.kind.to_lowercase()))),
            ("ref", _) => Ok(Some(Value::from(self.name.name.as_str()))),
            _ => self.workload.fact(root, field),
        }
    }

    fn lookup(&self, wanted: &LookupKey) -> Evaluated<Option<Value>> {
        self.workload.lookup(wanted)
    }
}
