//! Policies that compute a whole pod spec instead of listing items. They get the facts about the workload, and only the
//! difference between their answer and the current pod spec is planned, so that the rest stays as it is written.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change::{Change, ChangeTarget, ContainerItem, Operation, PodItem};
use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::DataKind;
use crate::manifest::pod::Workload;
use crate::outcome::Outcome;
use crate::ownership::marked_policies;
use crate::policy::mutation::{MutationResult, PodFacts, Remark};
use crate::policy::opentelemetry::InstrumentationMutation;
use crate::policy::{Injection, Policy, PolicyValue, Position, SidecarType};
use crate::yaml::tree::NodeId;
use crate::yaml::value::{find, to_value};

use super::containers::items_of;
use super::draft::{Draft, Refusal, RefusalReason};
use super::expand::ExpandedInjection;
use super::faults::{self, ApiFault, FaultOrigin};
use super::marks::marked;
use super::reconcile::reconcile;
use super::{RuleContext, WorkloadPlan, failed, forbidden, needs, order, refusal_diagnostic};

/// Runs a policy's mutation on a workload and plans the result.
pub(super) fn apply<'t>(
    subject: RuleContext<'_, 't>,
    mutation: &InstrumentationMutation,
    planned: &mut WorkloadPlan<'t>,
) -> Outcome {
    match run_mutation(subject, mutation, planned) {
        Ok(MutationResult::Skipped(skip)) => Outcome::Skipped(skip),
        Ok(MutationResult::UpToDate) => Outcome::UpToDate,
        Ok(MutationResult::Unreadable) => {
            failed(subject.policy, vec![unreadable(subject.workload)], planned)
        }
        Ok(MutationResult::LeftAlone(remarks)) => {
            planned.diagnostics.extend(diagnostics_of(subject, remarks));
            Outcome::Failed(None)
        }
        Ok(MutationResult::Changed(after, remarks)) => change(subject, after, remarks, planned),
        Err(problem) => failed(subject.policy, vec![*problem], planned),
    }
}

/// Plans the difference between the draft's pod spec and a new one.
fn change<'t>(
    subject: RuleContext<'_, 't>,
    after: Value,
    remarks: Vec<Remark>,
    planned: &mut WorkloadPlan<'t>,
) -> Outcome {
    let Some(before) = pod_spec_in(subject, &planned.draft) else {
        return failed(subject.policy, vec![unreadable(subject.workload)], planned);
    };
    let after = arranged(&before, after);
    let (changes, inject) = differences(subject, &before, &after);
    let expanded = ExpandedInjection {
        inject: Cow::Owned(inject),
        of_containers: Vec::new(),
    };
    let refused = forbidden::refuse(subject, &expanded, None);
    if !refused.is_empty() {
        return failed(subject.policy, refused, planned);
    }
    let old = planned.draft.clone();
    let path = [&subject.workload.pod_kind.path[..], &["spec".to_owned()]].concat();
    if let Err(refusal) = reconcile(&mut planned.draft, &path, &before, &after) {
        planned.draft = old;
        let problem = refusal_diagnostic(&refusal, subject.workload);
        return failed(subject.policy, vec![problem], planned);
    }
    let found = needs::of(subject, None, &expanded, None);
    needs::add_needs(subject, found, &[], planned);
    planned.diagnostics.extend(diagnostics_of(subject, remarks));
    let faults = new_faults(subject, &old, planned);
    planned.diagnostics.extend(faults);
    Outcome::Injected(changes)
}

/// Runs the mutation on the workload in the draft.
fn run_mutation(
    subject: RuleContext<'_, '_>,
    mutation: &InstrumentationMutation,
    planned: &WorkloadPlan<'_>,
) -> Result<MutationResult, Box<Diagnostic>> {
    let workload = subject.workload;
    let namespace = workload.namespace.as_deref();
    let found = namespace.map(|name| subject.inventory.namespace(name));
    let found = found
        .transpose()
        .map_err(|problem| Box::new(problem.at(workload.name_place(), "for this workload")))?;
    let spec = || pod_spec_in(subject, &planned.draft);
    let has_object = |kind: &str, name: &str| has_object(subject, kind, name);
    let facts = PodFacts {
        kind: &workload.object.kind,
        name: Some(workload.name.as_str()).filter(|name| !name.is_empty() && !name.ends_with('*')),
        namespace,
        default_namespace: subject.options.namespace.as_deref(),
        annotations: &texts(workload, workload.pod_metadata().annotations),
        labels: &|| texts(workload, workload.pod_metadata().labels),
        workload_annotations: &|| texts(workload, workload.metadata().annotations),
        namespace_annotations: found.flatten().map(|meta| &meta.annotations),
        is_marked: &|| is_marked_by_kind(&planned.draft, subject.policy),
        spec: &spec,
        has_object: &has_object,
    };
    Ok(mutation.mutate(&facts))
}

/// The pod spec in a draft. `None` if it has no value that all readers agree on.
fn pod_spec_in(subject: RuleContext<'_, '_>, draft: &Draft<'_>) -> Option<Value> {
    draft.value(&draft.get(&subject.template_in(draft), "spec")?)
}

/// Refuses a pod spec without a value that all readers agree on.
fn unreadable(workload: &Workload<'_>) -> Diagnostic {
    let tree = workload.tree;
    let mut nodes = tree.within(workload.pod_spec);
    if let Some(node) = nodes.find_map(|node| tree.duplicate_key(node)) {
        let reason = RefusalReason::DuplicateKey;
        return refusal_diagnostic(&Refusal { node, reason }, workload);
    }
    let found = to_value(tree, workload.pod_spec).err();
    let place = found.map_or(workload.name_place(), |error| {
        workload.source.place(error.at)
    });
    let message = format!(
        "YAML readers disagree about the pod spec of {}",
        workload.title()
    );
    Diagnostic::error(Code::CannotEdit, message)
        .at(place, "here")
        .help("write it in plain YAML, without tags and merge keys")
}

/// Whether an object is in the namespace of the workload. One that cannot be read counts as present.
fn has_object(subject: RuleContext<'_, '_>, kind: &str, name: &str) -> bool {
    DataKind::of(kind.as_bytes()).is_none_or(|kind| {
        let name = kind.beside(subject.workload, name);
        !matches!(subject.inventory.entries(&name), Ok(None))
    })
}

/// Whether the workload is marked as injected by a policy of the same kind.
fn is_marked_by_kind(draft: &Draft<'_>, policy: &Policy) -> bool {
    let kind = policy.kind().unwrap_or_default();
    marked_policies(&marked(draft)).any(|name| {
        let rest = name.strip_prefix(kind);
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

/// The labels or annotations in metadata, as an API server shows them.
fn texts(workload: &Workload<'_>, mapping: Option<NodeId>) -> BTreeMap<String, String> {
    let tree = workload.tree;
    let value = mapping.and_then(|mapping| to_value(tree, mapping).ok());
    let pairs = value.as_ref().and_then(Value::as_object);
    let pairs = pairs.into_iter().flatten();
    pairs
        .map(|(key, value)| (key.clone(), metadata_text(value)))
        .collect()
}

fn metadata_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Remarks as diagnostics of the workload.
fn diagnostics_of(subject: RuleContext<'_, '_>, remarks: Vec<Remark>) -> Vec<Diagnostic> {
    let diagnostics = remarks.into_iter();
    let diagnostics = diagnostics.map(|remark| diagnostic_of(subject, remark));
    diagnostics.collect()
}

fn diagnostic_of(subject: RuleContext<'_, '_>, remark: Remark) -> Diagnostic {
    let workload = subject.workload;
    let message = remark.message.replace("{}", &workload.title());
    let place = match &remark.at {
        Some(path) => {
            let found = find(workload.tree, workload.template, path);
            workload.place(found.value)
        }
        None => workload.name_place(),
    };
    let mut diagnostic = Diagnostic::warning(remark.code, message)
        .with_severity(remark.severity)
        .at(place, "here");
    if let Some(at) = remark.in_policy {
        diagnostic = diagnostic.at(subject.policy.text.place(at), "because of this");
    }
    diagnostic.help = remark.help;
    diagnostic
}

/// Warns of what an API server would refuse in the result and not in what was there. It is no error: the policy
/// promises to do exactly what the operator does.
fn new_faults<'t>(
    subject: RuleContext<'_, 't>,
    before: &Draft<'t>,
    planned: &WorkloadPlan<'t>,
) -> Vec<Diagnostic> {
    let kind = subject.workload.pod_kind;
    let faults = |draft: &Draft<'t>| {
        let template = subject.template_in(draft);
        faults::faults(draft, &template, kind, FaultOrigin::Manifest)
    };
    let old = faults(before);
    let is_new = |fault: &ApiFault| old.iter().all(|known| known.message != fault.message);
    faults(&planned.draft)
        .into_iter()
        .filter(is_new)
        .map(|fault| as_operator_does(subject, &fault))
        .collect()
}

fn as_operator_does(subject: RuleContext<'_, '_>, fault: &ApiFault) -> Diagnostic {
    let message = format!(
        "the API server rejects {} as changed by `{}`: {}",
        subject.workload.title(),
        subject.policy.identity,
        fault.message
    );
    Diagnostic::warning(Code::Invalid, message)
        .at(subject.workload.name_place(), "this workload")
        .help("the operator does the same; see the other messages for the cause in the manifest")
}

/// Moves new keys of the pod spec and of its containers to their usual places.
fn arranged(before: &Value, mut after: Value) -> Value {
    for key in ["initContainers", "containers"] {
        let old = before.get(key).and_then(Value::as_array);
        let Some(new) = after.get_mut(key).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in new {
            let name = container.get("name").cloned();
            let mut original = old.into_iter().flatten();
            let original = original.find(|old| old.get("name") == name.as_ref());
            if let (Some(Value::Object(original)), Value::Object(current)) = (original, container) {
                arrange(original, current, order::CONTAINER);
            }
        }
    }
    if let (Value::Object(original), Value::Object(current)) = (before, &mut after) {
        arrange(original, current, order::POD_SPEC);
    }
    after
}

fn arrange(before: &Map<String, Value>, after: &mut Map<String, Value>, order: &[&str]) {
    let known = order.iter().filter(|key| !before.contains_key(**key));
    for key in known {
        let Some(value) = after.shift_remove(*key) else {
            continue;
        };
        let rank = order
            .iter()
            .position(|known| known == key)
            .unwrap_or_default();
        let previous = order[..rank]
            .iter()
            .rev()
            .find_map(|known| after.keys().position(|existing| existing == known));
        after.shift_insert(previous.map_or(0, |at| at + 1), (*key).to_owned(), value);
    }
}

/// Compares two pod specs. Returns the changes for the report, and the new items for the checks of an injection.
fn differences(
    subject: RuleContext<'_, '_>,
    before: &Value,
    after: &Value,
) -> (Vec<Change>, Injection) {
    let (mut changes, mut inject) = (Vec::new(), Injection::default());
    let at = subject.policy.selects.at.clone();
    let item = |value: &Value| PolicyValue {
        value: Arc::new(value.clone()),
        at: at.clone(),
    };
    for (list, kind, add) in LISTS {
        let old = items_of(before, list);
        for new in items_of(after, list) {
            let name = new["name"].as_str().unwrap_or_default();
            let counterpart = old.iter().find(|old| old["name"] == new["name"]);
            match counterpart {
                Some(counterpart) if counterpart == new => {}
                Some(counterpart) if kind != PodItem::Volume => {
                    in_container(name, counterpart, new, &mut changes);
                }
                Some(_) | None => {
                    let target = ChangeTarget::PodItem(kind, name.to_owned());
                    changes.push(Change::new(Operation::Add, target));
                    add(&mut inject, item(new));
                }
            }
        }
    }
    let fields = after.as_object().into_iter().flatten();
    let is_list = |key: &str| LISTS.iter().any(|(list, ..)| *list == key);
    let mut changed_fields = Map::new();
    for (key, value) in fields.filter(|(key, _)| !is_list(key)) {
        let operation = match before.get(key) {
            Some(before) if before == value => continue,
            Some(_) => Operation::Update,
            None => Operation::Add,
        };
        changes.push(Change::new(
            operation,
            ChangeTarget::PodField(vec![key.clone()]),
        ));
        changed_fields.insert(key.clone(), value.clone());
    }
    if !changed_fields.is_empty() {
        inject.pod_spec = Some(item(&Value::Object(changed_fields)));
    }
    (changes, inject)
}

/// Adds an item to an injection.
type AddItem = fn(&mut Injection, PolicyValue);

/// The lists of a pod spec that are compared item by item.
const LISTS: [(&str, PodItem, AddItem); 3] = [
    ("volumes", PodItem::Volume, |inject, item| {
        inject.volumes.push((item, Position::Last));
    }),
    ("initContainers", PodItem::InitContainer, |inject, item| {
        inject.init_containers.push((item, Position::Last));
    }),
    ("containers", PodItem::Container, |inject, item| {
        let kind = SidecarType::Container;
        inject.sidecars.push((item, kind, Position::Last));
    }),
];

fn in_container(container: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    for (list, key, kind) in [
        ("env", "name", ContainerItem::Env),
        ("volumeMounts", "mountPath", ContainerItem::Mount),
    ] {
        let mut done = |operation: Operation, name: &str| {
            let target = ChangeTarget::ContainerItem(container.to_owned(), kind, name.to_owned());
            changes.push(Change::new(operation, target));
        };
        let (old, new) = (items_of(before, list), items_of(after, list));
        let mut left: Vec<&Value> = old.iter().collect();
        for entry in new {
            let name = entry[key].as_str().unwrap_or_default();
            let counterpart = left
                .iter()
                .position(|candidate| candidate[key] == entry[key]);
            match counterpart.map(|at| left.remove(at)) {
                Some(counterpart) if counterpart == entry => {}
                Some(_) => done(Operation::Update, name),
                None => done(Operation::Add, name),
            }
        }
        for removed in left {
            let name = removed[key].as_str().unwrap_or_default();
            done(Operation::Remove, name);
        }
    }
}
