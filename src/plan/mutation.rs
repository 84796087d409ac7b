//! Policies that say what becomes of a whole pod: asked with what is known of it, and what they answer planned as the
//! difference to what is there, so that the rest stays as it is written.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change::{Change, ContainerItem, Operation, PodItem, Target};
use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{DataKind, DataName};
use crate::manifest::pod::ListKey;
use crate::outcome::Outcome;
use crate::policy::mutation::{Mutated, Mutation, PodFacts, Remark};
use crate::policy::{Inject, Item, Position, SidecarType};
use crate::yaml::tree::NodeId;
use crate::yaml::value::{find, to_value};

use super::draft::Part;
use super::expand::Expanded;
use super::faults::{self, Fault, Whose};
use super::reconcile::reconcile;
use super::{Planned, Subject, failed, forbidden, marked, needs, order};

/// Asks a policy for a workload, and plans what it says.
pub(super) fn apply<'t>(
    subject: Subject<'_, 't>,
    mutation: &dyn Mutation,
    planned: &mut Planned<'t>,
) -> Outcome {
    let Some(current) = planned.draft.value(&planned.draft.root()) else {
        return Outcome::Failed;
    };
    let (after, remarks) = match ask(subject, mutation, planned) {
        Ok(Mutated::Skipped(skip)) => return Outcome::Skipped(skip),
        Ok(Mutated::UpToDate) => return Outcome::UpToDate,
        Ok(Mutated::LeftAlone(remarks)) => {
            planned.diagnostics.extend(told(subject, remarks));
            return Outcome::Failed;
        }
        Ok(Mutated::Changed(after, remarks)) => (after, remarks),
        Err(problem) => return failed(subject.policy, vec![*problem], planned),
    };
    let path: Vec<&str> = subject
        .workload
        .pod_kind
        .path
        .iter()
        .map(String::as_str)
        .chain(["spec"])
        .collect();
    let mut target = current.clone();
    let places = path
        .iter()
        .try_fold(&current, |value, key| value.get(key))
        .zip(
            path.iter()
                .try_fold(&mut target, |value, key| value.get_mut(key)),
        );
    let Some((before, place)) = places else {
        return Outcome::Failed;
    };
    let after = arranged(before, after);
    let (changes, inject) = differences(subject, before, &after);
    *place = after;
    let expanded = Expanded {
        inject: Cow::Owned(inject),
        of_containers: Vec::new(),
    };
    let refused = forbidden::refuse(subject, &expanded);
    if !refused.is_empty() {
        return failed(subject.policy, refused, planned);
    }
    let old = planned.draft.clone();
    if let Err(refusal) = reconcile(&mut planned.draft, &current, &target) {
        planned.draft = old;
        let problem = super::refusal_diagnostic(&refusal, subject.workload);
        return failed(subject.policy, vec![problem], planned);
    }
    let mut found = std::collections::BTreeSet::new();
    needs::collect(subject, &expanded, &mut found);
    needs::tell(subject, found, &[], planned);
    planned.diagnostics.extend(told(subject, remarks));
    let faults = new_faults(subject, &old, planned);
    planned.diagnostics.extend(faults);
    Outcome::Injected(changes)
}

/// What the policy says of the workload as it stands in the draft.
fn ask(
    subject: Subject<'_, '_>,
    mutation: &dyn Mutation,
    planned: &Planned<'_>,
) -> Result<Mutated, Box<Diagnostic>> {
    let Subject {
        workload,
        policy,
        options,
        inventory,
        ..
    } = subject;
    let (tree, namespace) = (workload.tree, workload.namespace.as_deref());
    let texts = |metadata: Option<NodeId>, key: &str| {
        let node = metadata.and_then(|metadata| tree.get(metadata, key));
        let value = node.and_then(|node| to_value(tree, node).ok());
        texts_of(value.as_ref())
    };
    let found = match namespace {
        Some(name) => inventory.namespace(name).map_err(|doubt| {
            let problem = doubt.into_diagnostic();
            Box::new(problem.at(workload.own_place(), "for this workload"))
        })?,
        None => None,
    };
    let template = workload.pod_kind.path.iter();
    let template = template.fold(planned.draft.root(), |part, key| {
        planned.draft.get(&part, key).unwrap_or(part)
    });
    let spec = || planned.draft.value(&planned.draft.get(&template, "spec")?);
    let has_object = |is_config_map: bool, name: &str| {
        let kind = if is_config_map {
            DataKind::ConfigMap
        } else {
            DataKind::Secret
        };
        let name = DataName {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            folder: workload.folder(),
        };
        // One that cannot be read is there.
        !matches!(inventory.entries(&name), Ok(None))
    };
    let kind = policy.kind().unwrap_or_default();
    let is_marked = marked(&planned.draft).split(',').any(|name| {
        let rest = name.trim().strip_prefix(kind);
        rest.is_some_and(|rest| rest.starts_with('/'))
    });
    let facts = PodFacts {
        kind: &workload.object.kind,
        name: Some(workload.name.as_str()).filter(|name| !name.is_empty() && !name.ends_with('*')),
        namespace,
        default_namespace: options.namespace.as_deref(),
        annotations: &texts(workload.pod_metadata(), "annotations"),
        labels: &texts(workload.pod_metadata(), "labels"),
        own_annotations: &texts(workload.metadata(), "annotations"),
        namespace_annotations: found.map(|meta| &meta.annotations),
        is_marked,
        spec: &spec,
        has_object: &has_object,
    };
    Ok(mutation.mutate(&facts))
}

fn texts_of(value: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    pairs
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

/// Remarks as diagnostics of the workload.
fn told(subject: Subject<'_, '_>, remarks: Vec<Remark>) -> Vec<Diagnostic> {
    let workload = subject.workload;
    let tell = |remark: Remark| {
        let message = remark.message.replace("{}", &workload.title());
        let place = match &remark.at {
            Some(path) => {
                let found = find(workload.tree, workload.template, path);
                workload.place(found.value)
            }
            None => workload.own_place(),
        };
        let mut diagnostic = Diagnostic::warning(remark.code, message)
            .with_severity(remark.severity)
            .at(place, "here");
        if let Some(at) = remark.in_policy {
            diagnostic = diagnostic.at(subject.policy.text.place(at), "because of this");
        }
        match remark.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    };
    remarks.into_iter().map(tell).collect()
}

/// What an API server would refuse of the result, and not of what was there: exactness is what the policy promises, so
/// it is said, and done.
fn new_faults<'t>(
    subject: Subject<'_, 't>,
    before: &super::draft::Draft<'t>,
    planned: &Planned<'t>,
) -> Vec<Diagnostic> {
    let kind = subject.workload.pod_kind;
    let faults = |draft: &super::draft::Draft<'t>| -> Vec<Fault> {
        let keys = kind.path.iter();
        let template: Part = keys.fold(draft.root(), |part, key| {
            draft.get(&part, key).unwrap_or(part)
        });
        faults::faults(draft, &template, kind, Whose::Manifest)
    };
    let old = faults(before);
    let is_new = |fault: &Fault| old.iter().all(|other| other.what != fault.what);
    let warn = |fault: Fault| {
        let message = format!(
            "no API server takes {} as `{}` makes it: {}",
            subject.workload.title(),
            subject.policy.identity,
            fault.what
        );
        Diagnostic::warning(Code::Invalid, message)
            .at(subject.workload.own_place(), "this workload")
            .help("the operator does the same; the other messages say what in the manifest leads to it")
    };
    faults(&planned.draft)
        .into_iter()
        .filter(is_new)
        .map(warn)
        .collect()
}

/// New keys of the pod spec and of its containers in the places that such keys have.
fn arranged(before: &Value, mut after: Value) -> Value {
    for key in ["initContainers", "containers"] {
        let old = before.get(key).and_then(Value::as_array);
        let Some(new) = after.get_mut(key).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in new {
            let name = container.get("name").cloned();
            let mut was = old.into_iter().flatten();
            let was = was.find(|old| old.get("name") == name.as_ref());
            if let (Some(Value::Object(was)), Value::Object(now)) = (was, container) {
                arrange(was, now, order::CONTAINER);
            }
        }
    }
    if let (Value::Object(was), Value::Object(now)) = (before, &mut after) {
        arrange(was, now, order::POD_SPEC);
    }
    after
}

fn arrange(before: &Map<String, Value>, after: &mut Map<String, Value>, order: &[&str]) {
    let known = order.iter().filter(|key| !before.contains_key(**key));
    for key in known {
        let Some(value) = after.shift_remove(*key) else {
            continue;
        };
        let own = order
            .iter()
            .position(|known| known == key)
            .unwrap_or_default();
        let behind = order[..own]
            .iter()
            .rev()
            .find_map(|known| after.keys().position(|other| other == known));
        after.shift_insert(behind.map_or(0, |at| at + 1), (*key).to_owned(), value);
    }
}

/// What is another in a pod spec: in words, and the items that are new.
fn differences(subject: Subject<'_, '_>, before: &Value, after: &Value) -> (Vec<Change>, Inject) {
    let (mut changes, mut inject) = (Vec::new(), Inject::default());
    let at = subject.policy.selects.at.clone();
    let item = |value: &Value| Item {
        value: Arc::new(value.clone()),
        at: at.clone(),
    };
    for list in ["volumes", "initContainers", "containers"] {
        let kind = match list {
            "volumes" => PodItem::Volume,
            "initContainers" => PodItem::InitContainer,
            _ => PodItem::Container,
        };
        let old = items(before, list);
        for new in items(after, list) {
            let name = new["name"].as_str().unwrap_or_default();
            let twin = old.iter().find(|old| old["name"] == new["name"]);
            match twin {
                Some(twin) if twin == new => {}
                Some(twin) if list != "volumes" => in_container(name, twin, new, &mut changes),
                Some(_) | None => {
                    let target = Target::PodItem(kind, name.to_owned());
                    changes.push(Change::new(Operation::Add, target));
                    match list {
                        "volumes" => inject.volumes.push((item(new), Position::Last)),
                        "initContainers" => {
                            inject.init_containers.push((item(new), Position::Last));
                        }
                        _ => inject.sidecars.push((
                            item(new),
                            SidecarType::Container,
                            Position::Last,
                        )),
                    }
                }
            }
        }
    }
    let fields = after.as_object().into_iter().flatten();
    let lists = [
        "volumes",
        ListKey::InitContainers.key(),
        ListKey::Containers.key(),
    ];
    for (key, value) in fields.filter(|(key, _)| !lists.contains(&key.as_str())) {
        if before.get(key) != Some(value) {
            let operation = match before.get(key) {
                None => Operation::Add,
                Some(_) => Operation::Update,
            };
            changes.push(Change::new(operation, Target::PodField(vec![key.clone()])));
            let field = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
            inject.pod_spec = Some(item(&field));
        }
    }
    (changes, inject)
}

fn in_container(container: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    for (list, key, kind) in [
        ("env", "name", ContainerItem::Env),
        ("volumeMounts", "mountPath", ContainerItem::Mount),
    ] {
        let mut done = |operation: Operation, name: &str| {
            let target = Target::ContainerItem(container.to_owned(), kind, name.to_owned());
            changes.push(Change::new(operation, target));
        };
        let (old, new) = (items(before, list), items(after, list));
        let mut left: Vec<&Value> = old.iter().collect();
        for entry in new {
            let name = entry[key].as_str().unwrap_or_default();
            let twin = left.iter().position(|other| other[key] == entry[key]);
            match twin.map(|at| left.remove(at)) {
                Some(twin) if twin == entry => {}
                Some(_) => done(Operation::Update, name),
                None => done(Operation::Add, name),
            }
        }
        for gone in left {
            let name = gone[key].as_str().unwrap_or_default();
            done(Operation::Remove, name);
        }
    }
}

fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
