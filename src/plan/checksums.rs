//! Checksums of ConfigMaps and Secrets as annotations of the pod template: pods restart, by their workload's own
//! strategy, when what they read has changed.

use serde_json::Value;
use std::collections::BTreeMap;

use crate::change::{Change, ChangeTarget, MetadataOwner, Operation};
use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{DataEntries, DataKind, sum};
use crate::outcome::ObjectName;
use crate::policy::expression::{Evaluator, ExpressionResult, Facts, LookupKey};
use crate::policy::functions::sha256;
use crate::policy::template::{Template, TemplateError};
use crate::policy::{ChecksumAnnotation, ChecksumKey, names};
use crate::select::WorkloadFacts;

use super::draft::{Draft, Refusal};
use super::{RuleContext, order, refusal_diagnostic};

/// Adds a policy's checksums to the pod template. An existing annotation with another value is updated without a
/// conflict.
///
/// # Errors
/// All problems. The draft is then only partly changed and must be dropped.
pub(super) fn add(
    subject: RuleContext<'_, '_>,
    checksums: &[ChecksumAnnotation],
    draft: &mut Draft<'_>,
) -> Result<Vec<Change>, Vec<Diagnostic>> {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for checksum in checksums {
        match (ChecksumContext {
            subject,
            checksum,
            draft: &*draft,
        })
        .annotations()
        {
            Ok(annotations) => {
                for (key, value) in annotations {
                    match set(subject, draft, &key, value) {
                        Ok(change) => done.extend(change),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        Ok(done)
    } else {
        Err(problems)
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
    let written = write(subject, draft, key, value);
    written.map_err(|refusal| refusal_diagnostic(&refusal, subject.workload))?;
    let operation = match existing {
        Some(_) => Operation::Update,
        None => Operation::Add,
    };
    let target = ChangeTarget::metadata(MetadataOwner::Pod, "annotations", key);
    Ok(Some(Change::new(operation, target)))
}

/// Writes an annotation of the pod template.
fn write(
    subject: RuleContext<'_, '_>,
    draft: &mut Draft<'_>,
    key: &str,
    value: String,
) -> Result<(), Refusal> {
    let path = &subject.workload.pod_kind.path;
    let holder = draft.open_path(path)?;
    let within = match path.is_empty() {
        true => order::OBJECT,
        false => order::TEMPLATE,
    };
    let metadata = draft.open_mapping(holder, "metadata", within)?;
    let annotations = draft.open_mapping(metadata, "annotations", order::METADATA)?;
    draft.set(annotations, key, Value::String(value), &[])
}

/// An entry of `checksums`, and the planned workload whose references it covers.
struct ChecksumContext<'s, 't> {
    subject: RuleContext<'s, 't>,
    checksum: &'s ChecksumAnnotation,
    draft: &'s Draft<'t>,
}

impl ChecksumContext<'_, '_> {
    /// The annotations to set as pairs of key and checksum, ordered by object.
    fn annotations(&self) -> Result<Vec<(String, String)>, Vec<Diagnostic>> {
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
        if !problems.is_empty() {
            return Err(problems);
        }
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
        let asks_references = checksum.all_config_maps || checksum.all_secrets;
        for (kind, name, is_optional) in if asks_references {
            self.references()
        } else {
            Vec::new()
        } {
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
        names.extend(
            checksum
                .config_maps
                .iter()
                .map(|name| (named(DataKind::ConfigMap, name), false)),
        );
        names.extend(
            checksum
                .secrets
                .iter()
                .map(|name| (named(DataKind::Secret, name), false)),
        );
        names
    }

    /// The objects that volumes, `env` and `envFrom` of the pod template refer to, each with its `optional`.
    fn references(&self) -> Vec<(DataKind, String, bool)> {
        let pod_spec = self
            .draft
            .get(&self.subject.template_in(self.draft), "spec");
        let value = pod_spec
            .and_then(|spec| self.draft.value(&spec))
            .unwrap_or(Value::Null);
        let mut found = Vec::new();
        for volume in items(&value, "volumes") {
            add_reference(&mut found, volume, "configMap", "name", DataKind::ConfigMap);
            add_reference(&mut found, volume, "secret", "secretName", DataKind::Secret);
            for source in volume
                .get("projected")
                .into_iter()
                .flat_map(|projected| items(projected, "sources"))
            {
                add_reference(&mut found, source, "configMap", "name", DataKind::ConfigMap);
                add_reference(&mut found, source, "secret", "name", DataKind::Secret);
            }
        }
        for container in items(&value, "initContainers").chain(items(&value, "containers")) {
            for source in items(container, "envFrom") {
                add_reference(
                    &mut found,
                    source,
                    "configMapRef",
                    "name",
                    DataKind::ConfigMap,
                );
                add_reference(&mut found, source, "secretRef", "name", DataKind::Secret);
            }
            for source in items(container, "env").filter_map(|variable| variable.get("valueFrom")) {
                add_reference(
                    &mut found,
                    source,
                    "configMapKeyRef",
                    "name",
                    DataKind::ConfigMap,
                );
                add_reference(&mut found, source, "secretKeyRef", "name", DataKind::Secret);
            }
        }
        found
    }

    fn sum_of(&self, name: &ObjectName) -> Result<Option<String>, Diagnostic> {
        let entries = self
            .subject
            .inventory
            .entries(name)
            .map_err(|doubt| self.labelled(doubt.into_diagnostic()))?;
        let Some(entries) = entries else {
            return Ok(None);
        };
        if self.checksum.keys.is_empty() {
            return Ok(Some(sum(&entries)));
        }
        let wanted = self
            .checksum
            .keys
            .iter()
            .map(|key| Some((key.clone(), entries.get(key)?.clone())));
        Ok(wanted
            .collect::<Option<DataEntries>>()
            .map(|entries| sum(&entries)))
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
                "name a key that is there".to_owned(),
            ),
            (None, Some((namesake, _))) => {
                let help = match (&name.namespace, &namesake.namespace) {
                    (_, Some(_)) if name.namespace.is_none() => {
                        "the workload states no namespace: say it with `--namespace`"
                    }
                    (_, None) => {
                        "the one that is there states no namespace: say it with `--namespace`"
                    }
                    _ => "a pod reads only what is in its own namespace",
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
                let help = format!("give the file that holds it with `--context`, or say `{word}`");
                ("is not among the manifests".to_owned(), help.to_owned())
            }
        };
        let message = format!("the {} {message_end}, so that it cannot be summed", name);
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
        let problem = self.labelled(Diagnostic::error(fault.code, fault.message));
        match fault.help {
            Some(help) => problem.help(help),
            None => problem,
        }
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

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn add_reference(
    found: &mut Vec<(DataKind, String, bool)>,
    holder: &Value,
    source: &str,
    key: &str,
    kind: DataKind,
) {
    let source = holder.get(source);
    let name = source
        .and_then(|source| source.get(key))
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty());
    let is_optional = source
        .and_then(|source| source.get("optional"))
        .and_then(Value::as_bool)
        == Some(true);
    found.extend(name.map(|name| (kind, name.to_owned(), is_optional)));
}

/// What an expression can use: `ref`, the object, and the facts of the workload.
struct ReferenceFacts<'f, 't> {
    name: &'f ObjectName,
    workload: WorkloadFacts<'f, 't>,
}

impl Facts for ReferenceFacts<'_, '_> {
    fn fact(&self, root: &str, field: &str) -> Result<Option<Value>, TemplateError> {
        match (root, field) {
            ("ref", "kind") => Ok(Some(Value::from(self.name.kind.to_lowercase()))),
            ("ref", _) => Ok(Some(Value::from(self.name.name.as_str()))),
            _ => self.workload.fact(root, field),
        }
    }

    fn lookup(&self, wanted: &LookupKey) -> Result<Option<Value>, TemplateError> {
        self.workload.lookup(wanted)
    }
}
