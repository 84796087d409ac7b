//! Finds what an API server would refuse in a pod spec. The faults of two drafts show what a step has introduced.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::manifest::workload::PodKind;
use crate::policy::validation::{self, Checker, ContainerRole, ValidationError};
use crate::record::RECORD;
use crate::yaml::value::{Path, field_at, find};
use crate::yaml::view::View;

use super::draft::{Draft, DraftValue};
use super::os_rules::{FieldPlace, entries};
use super::pod_rules;
use super::recording::EarlierRun;

/// A fault that an API server would reject.
#[derive(Debug, Clone)]
pub(super) struct ApiFault {
    /// A sentence without a full stop. It also identifies the fault when two drafts are compared.
    pub message: String,
    /// The path from the pod spec; empty if the fault is elsewhere.
    at: Path,
}

/// Whose faults are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultOrigin {
    /// The policy's: also what an API server accepts but nobody intends.
    Policy,
    /// The manifest's: only what an API server refuses.
    Manifest,
}

/// Returns all faults of a workload in a draft.
pub(super) fn faults(
    draft: &Draft<'_>,
    template: &DraftValue,
    kind: &PodKind,
    origin: FaultOrigin,
) -> Vec<ApiFault> {
    let found = |part: &DraftValue, path: &[&str]| draft.view(&draft.get_in(part, path)?);
    let of_object = |path: &[&str]| found(&draft.root(), path);
    faults_by(kind, origin, of_object, |path| found(template, path))
}

/// Returns all faults of a workload given as a value.
pub(super) fn faults_of(object: &Value, kind: &PodKind) -> Vec<ApiFault> {
    let found = |path: &[&str]| field_at(object, path).map(View::from);
    let keys: Vec<&str> = kind.path.iter().map(String::as_str).collect();
    let of_template = |path: &[&str]| found(&[&keys, path].concat());
    faults_by(kind, FaultOrigin::Manifest, found, of_template)
}

fn faults_by<'v>(
    kind: &PodKind,
    origin: FaultOrigin,
    of_object: impl Fn(&[&str]) -> Option<View<'v>>,
    of_template: impl Fn(&[&str]) -> Option<View<'v>>,
) -> Vec<ApiFault> {
    let spec = of_template(&["spec"]).unwrap_or_default();
    let claims = of_object(&["spec", "volumeClaimTemplates"]).unwrap_or_default();
    let claims = claims
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|claim| claim["metadata"]["name"].as_str());
    let mut faults = FaultCollector {
        origin,
        found: Vec::new(),
        seen: BTreeSet::new(),
    };
    let role = match kind.group.as_str() {
        "serving.knative.dev" => ContainerRole::Knative,
        _ => ContainerRole::App,
    };
    faults.pod(&spec, claims.collect(), role);
    for (at, sentence) in pod_rules::refused(kind, &spec) {
        faults.add(at, sentence);
    }
    if let Some(annotations) = of_template(&["metadata", "annotations"]) {
        for (at, sentence) in pod_rules::annotations(&annotations, &spec) {
            faults.add(at, sentence);
        }
    }
    if let Some(selector) = of_object(&["spec", "selector"]) {
        let labels = of_template(&["metadata", "labels"]);
        faults.selector(&selector, labels.as_ref());
    }
    faults.found
}

/// Returns warnings about faults that the input had and that the planned result still has. What an earlier run injected is
/// taken out of the workload, which alone may be a fault: a sidecar that somebody changed stays without its volume.
pub(super) fn of_input(
    workload: &Workload<'_>,
    planned: &Draft<'_>,
    earlier: Option<&EarlierRun<'_>>,
) -> Vec<Diagnostic> {
    let kind = workload.pod_kind;
    let mut found = of_draft(&Draft::new(workload.tree, workload.object.node), kind);
    let current = earlier.map(|earlier| Draft::new(earlier.current.tree, earlier.current.node));
    for draft in current.iter().chain([planned]) {
        if found.is_empty() {
            break;
        }
        let others = of_draft(draft, kind);
        let others: BTreeSet<&str> = others.iter().map(|fault| fault.message.as_str()).collect();
        found.retain(|fault| others.contains(fault.message.as_str()));
    }
    let warnings = found.iter().map(|fault| invalid_before(workload, fault));
    warnings.collect()
}

/// The faults of a manifest.
fn of_draft(draft: &Draft<'_>, kind: &PodKind) -> Vec<ApiFault> {
    let template = draft.template(&kind.path);
    faults(draft, &template, kind, FaultOrigin::Manifest)
}

fn invalid_before(workload: &Workload<'_>, fault: &ApiFault) -> Diagnostic {
    let message = format!(
        "{} was already invalid before the injection: {}",
        workload.title(),
        fault.message
    );
    let place = match fault.at.0.is_empty() {
        true => workload.name_place(),
        false => workload.place(find(workload.tree, workload.pod_spec, &fault.at).value),
    };
    let warning = Diagnostic::warning(Code::InvalidBefore, message).at(place, "here");
    warning.help("fix the manifest: the API server rejects it with or without the injection")
}

/// Whether the object's annotations are too long together only because of this run, with marker and record.
pub(crate) fn are_annotations_too_long(draft: &Draft<'_>) -> bool {
    let annotations = |draft: &Draft<'_>| {
        let metadata = draft.get(&draft.root(), "metadata")?;
        draft.get(&metadata, "annotations")
    };
    let Some(part) = annotations(draft) else {
        return false;
    };
    let origin = draft.origin(&draft.root());
    // An alias may bring what stands elsewhere in the document.
    let length_before = match origin.filter(|_| draft.tree.is_plain()) {
        Some(object) => draft.tree.span(object).len(),
        None => draft.tree.text().len(),
    };
    let record = draft.text_at(&part, RECORD);
    // A quick check: the object and the record together are far below the limit.
    if length_before + record.map_or(0, |record| record.len()) < pod_rules::MAX_ANNOTATIONS / 4 {
        return false;
    }
    let is_too_long = |draft: &Draft<'_>| {
        let value = annotations(draft).and_then(|part| draft.view(&part));
        value.is_some_and(|value| pod_rules::too_long(&value, "object").is_some())
    };
    is_too_long(draft) && origin.is_none_or(|object| !is_too_long(&Draft::new(draft.tree, object)))
}

struct FaultCollector {
    origin: FaultOrigin,
    found: Vec<ApiFault>,
    seen: BTreeSet<String>,
}

impl FaultCollector {
    fn add(&mut self, at: Path, message: impl Into<String>) {
        let fault = ApiFault {
            message: message.into(),
            at,
        };
        if self.seen.insert(fault.message.clone()) {
            self.found.push(fault);
        }
    }

    fn add_all(
        &mut self,
        owner: fmt::Arguments<'_>,
        at: impl Fn() -> Path,
        found: Vec<ValidationError>,
    ) {
        let origin = self.origin;
        for invalid in found
            .into_iter()
            .filter(|invalid| origin == FaultOrigin::Policy || invalid.is_refused)
        {
            let sentence = invalid.sentence(|| invalid.path.to_string());
            let message = match sentence.strip_prefix("the container ") {
                Some(rest) => format!("{owner} {rest}"),
                None => format!("{owner}: {sentence}"),
            };
            self.add(at().join(&invalid.path), message);
        }
    }

    fn pod(&mut self, spec: &View<'_>, claims: BTreeSet<&str>, role: ContainerRole) {
        let mut names = BTreeSet::new();
        for (at, container) in entries(spec, "containers") {
            self.container(container, at, role, &mut names);
        }
        for (at, container) in entries(spec, "initContainers") {
            let role = match container.text("restartPolicy") {
                "Always" => ContainerRole::NativeSidecar,
                _ => ContainerRole::Init,
            };
            self.container(container, at, role, &mut names);
        }
        let (mut volumes, mut volume_names) = (claims, BTreeSet::new());
        for (at, volume) in entries(spec, "volumes") {
            let name = volume.text("name");
            self.add_all(
                format_args!("volume `{name}`"),
                || at.path(),
                validation::check(volume, Checker::volume),
            );
            // A claim template may have the name of a volume and then replaces it, so that is not a duplicate.
            if !volume_names.insert(name) {
                self.add(at.path(), format!("two volumes are named `{name}`"));
            }
            volumes.insert(name);
        }
        for key in ["containers", "initContainers"] {
            for (at, container) in entries(spec, key) {
                self.mounts(container, at, &volumes);
            }
        }
        self.ports(spec);
        let found = validation::check(spec, Checker::pod_spec);
        self.add_all(format_args!("the pod"), Path::default, found);
    }

    fn container<'s>(
        &mut self,
        container: &'s View<'s>,
        at: FieldPlace,
        role: ContainerRole,
        names: &mut BTreeSet<&'s str>,
    ) {
        let name = container.text("name");
        self.add_all(
            format_args!("container `{name}`"),
            || at.path(),
            validation::check(container, |checker| checker.container(role)),
        );
        // Containers of both lists share one name space. Knative names those without a name itself.
        let is_named_later = role == ContainerRole::Knative && name.is_empty();
        if !names.insert(name) && !is_named_later {
            self.add(at.path(), format!("two containers are named `{name}`"));
        }
    }

    fn mounts(&mut self, container: &View<'_>, at: FieldPlace, volumes: &BTreeSet<&str>) {
        let owner = container.text("name");
        for (index, mount) in container.list("volumeMounts").iter().enumerate() {
            let volume = mount.text("name");
            if !volumes.contains(volume) {
                let message = format!(
                    "container `{owner}` mounts the volume `{volume}`, which the pod does not have"
                );
                self.add(at.path().key("volumeMounts").index(index), message);
            }
            let mut devices = container.list("volumeDevices").iter();
            let path = mount.get("mountPath").filter(|path| path.is_string());
            if devices.any(|device| path.is_some() && device.get("devicePath") == path) {
                let message = format!(
                    "container `{owner}` mounts {} where it already has a device",
                    path.unwrap_or(&View::Null)
                );
                self.add(at.path().key("volumeMounts").index(index), message);
            }
        }
    }

    /// Finds host ports that two containers want (`checkHostPortConflicts`), and port names that the pod has twice.
    fn ports(&mut self, spec: &View<'_>) {
        let (mut hosts, mut names) = (BTreeSet::new(), BTreeSet::new());
        for (at, container) in entries(spec, "containers") {
            let (mut own_hosts, mut own_names) = (BTreeSet::new(), BTreeSet::new());
            for (index, port) in container.list("ports").iter().enumerate() {
                let host = port
                    .get("hostPort")
                    .and_then(View::as_i64)
                    .unwrap_or_default();
                let protocol = match port.text("protocol") {
                    "" => "TCP",
                    stated => stated,
                };
                let name = port.text("name");
                let at = || at.path().key("ports").index(index);
                if host != 0 {
                    let of_node = (host, protocol, port.text("hostIP"));
                    if hosts.contains(&of_node) {
                        self.add(
                            at(),
                            format!("two containers use host port {host}/{protocol}"),
                        );
                    }
                    own_hosts.insert(of_node);
                }
                if self.origin == FaultOrigin::Policy {
                    if names.contains(name) {
                        self.add(at(), format!("two ports of the pod are named `{name}`"));
                    }
                    own_names.extend(Some(name).filter(|name| !name.is_empty()));
                }
            }
            // Added only now: duplicates within one container are a fault of that container, not of two.
            hosts.extend(own_hosts);
            names.extend(own_names);
        }
    }

    /// Finds labels that the workload's selector wants and the pod template does not have.
    fn selector(&mut self, selector: &View<'_>, labels: Option<&View<'_>>) {
        // The selector of a ReplicationController is a plain mapping of labels.
        let is_plain = selector
            .as_object()
            .is_some_and(|map| map.iter().all(|(_, value)| value.is_string()));
        let wanted = if is_plain {
            Some(selector)
        } else {
            selector.get("matchLabels")
        };
        for (key, value) in wanted.and_then(View::as_object).into_iter().flatten() {
            if labels.and_then(|labels| labels.get(key)) != Some(value) {
                let value = value.as_str().unwrap_or_default();
                let message = format!(
                    "the selector requires the label `{key}: {value}`, which the pod template does \
                     not have"
                );
                self.add(Path::default(), message);
            }
        }
    }
}
