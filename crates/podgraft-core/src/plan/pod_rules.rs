//! Combinations of fields in a pod spec that an API server refuses, some of them only in certain kinds of workloads.
//! Sources: `pkg/apis/core/validation`, `pkg/apis/apps/validation` and `pkg/apis/batch/validation` of Kubernetes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::manifest::workload::PodKind;
use crate::yaml::value::Path;
use crate::yaml::view::View;

use super::{os_rules, reference_rules};

/// Kinds whose pods must have `restartPolicy: Always`.
const ALWAYS_RESTARTED: [(&str, &str); 5] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("", "ReplicationController"),
];

/// Fields that [`refused`] looks at.
pub(super) const FIELDS: [&str; 17] = [
    "restartPolicy",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostnameOverride",
    "nodeName",
    "os",
    "resourceClaims",
    "resources",
    "schedulingGates",
    "securityContext",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "terminationGracePeriodSeconds",
];

/// Fields of a pod spec that restrict the fields of all its containers.
pub(super) const FIELDS_OF_ALL_CONTAINERS: [&str; 3] = ["os", "resources", "hostNetwork"];

/// Prefixes of the kernel parameters in the IPC namespace, which a pod with `hostIPC` shares with its node.
const IPC_SYSCTLS: [&str; 4] = ["kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."];

/// The limit in bytes for all annotations of an object together (`TotalAnnotationSizeLimitB`).
pub(super) const MAX_ANNOTATIONS: usize = 256 << 10;

/// The prefix of the annotation with a container's AppArmor profile; the container's name follows.
pub(super) use crate::dangers::APP_ARMOR;

/// The default of `terminationGracePeriodSeconds`.
const GRACE_SECONDS: i64 = 30;

/// Returns what is refused in the pod spec of a kind: paths from the pod spec, and sentences without a full stop.
pub(super) fn refused(kind: &PodKind, spec: &View<'_>) -> Vec<(Path, String)> {
    let mut found = restart_policy(kind, spec);
    let is_lasting = ALWAYS_RESTARTED.contains(&(kind.group.as_str(), kind.kind.as_str()));
    let has = |key: &str| spec.get(key).is_some_and(|value| !value.is_null());
    if is_lasting && has("activeDeadlineSeconds") {
        found.push((
            Path::of(&["activeDeadlineSeconds"]),
            format!("a {} cannot have `activeDeadlineSeconds`", kind.kind),
        ));
    }
    let nameservers = spec["dnsConfig"]["nameservers"].as_array();
    if spec.get("dnsPolicy").is_some_and(|policy| policy == "None")
        && nameservers.is_none_or(Vec::is_empty)
    {
        found.push((
            Path::of(&["dnsPolicy"]),
            "`dnsPolicy: None` requires `dnsConfig.nameservers`".to_owned(),
        ));
    }
    if spec.get("hostNetwork") == Some(&View::Bool(true)) {
        found.extend(host_ports(spec));
    }
    if spec.get("hostUsers") == Some(&View::Bool(false)) {
        let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
        let shared = shared.filter(|field| spec.get(field) == Some(&View::Bool(true)));
        let sentence = |field| {
            let message = format!("`{field}: true` cannot be combined with `hostUsers: false`");
            (Path::of(&[field]), message)
        };
        found.extend(shared.map(sentence));
    }
    found.extend(long_sleeps(spec));
    found.extend(kernel_parameters(spec));
    found.extend(names_and_nodes(spec));
    found.extend(os_rules::refused(spec));
    let has_claims = kind.kind == "StatefulSet";
    found.extend(reference_rules::refused(spec, has_claims));
    found
}

/// Refuses kernel parameters of namespaces that the pod shares with its node (`ValidateHostSysctl`).
fn kernel_parameters(spec: &View<'_>) -> Vec<(Path, String)> {
    let names = spec["securityContext"].list("sysctls").iter();
    let names = names.filter_map(|sysctl| Some(sysctl["name"].as_str()?.replace('/', ".")));
    let mut found = Vec::new();
    for name in names {
        let field = match () {
            () if name.starts_with("net.") => "hostNetwork",
            () if IPC_SYSCTLS.iter().any(|begin| name.starts_with(begin)) => "hostIPC",
            () => continue,
        };
        if spec[field] == true {
            let message =
                format!("the kernel parameter `{name}` cannot be combined with `{field}: true`");
            found.push((Path::of(&["securityContext", "sysctls"]), message));
        }
    }
    found
}

/// The rules of `validatePodHostName`, and that a pod with a node has no scheduling gates.
fn names_and_nodes(spec: &View<'_>) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    for field in ["hostNetwork", "setHostnameAsFQDN"] {
        if !spec["hostnameOverride"].is_null() && spec[field] == true {
            let message = format!("`hostnameOverride` cannot be combined with `{field}: true`");
            found.push((Path::of(&["hostnameOverride"]), message));
        }
    }
    if !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
        let message = "a pod with `schedulingGates` cannot have `nodeName`".to_owned();
        found.push((Path::of(&["nodeName"]), message));
    }
    found
}

/// Refuses lifecycle hooks that sleep longer than the pod's grace period (`validateSleepAction`).
fn long_sleeps(spec: &View<'_>) -> Vec<(Path, String)> {
    let grace = spec
        .get("terminationGracePeriodSeconds")
        .and_then(View::as_i64)
        .unwrap_or(GRACE_SECONDS);
    let mut found = Vec::new();
    for list in ["containers", "initContainers"] {
        for (at, container) in os_rules::entries(spec, list) {
            for hook in ["postStart", "preStop"] {
                let seconds = &container["lifecycle"][hook]["sleep"]["seconds"];
                if seconds.as_i64().is_some_and(|seconds| seconds > grace) {
                    let path = at.path().key("lifecycle").key(hook);
                    let name = container.text("name");
                    let message = format!(
                        "container `{name}` sleeps {seconds} seconds in `{hook}`, longer than the \
                         pod's `terminationGracePeriodSeconds` of {grace}"
                    );
                    found.push((path, message));
                }
            }
        }
    }
    found
}

/// Returns a fault if the annotations are too long together.
pub(super) fn too_long(annotations: &View<'_>, holder: &str) -> Option<(Path, String)> {
    let texts = annotations.as_object().into_iter().flatten();
    let length =
        |(key, text): &(Cow<'_, str>, View<'_>)| key.len() + text.as_str().map_or(0, str::len);
    (texts.map(length).sum::<usize>() > MAX_ANNOTATIONS).then(|| {
        let message = format!(
            "the annotations of the {holder} are longer than {MAX_ANNOTATIONS} bytes in total"
        );
        (Path::default(), message)
    })
}

/// Returns what is refused in the annotations of a pod template: too much text (`ValidateAnnotationsSize`), and
/// AppArmor profiles that are invalid or name no container (`ValidateAppArmorPodAnnotations`) or that the container's
/// field contradicts (`validateAppArmorAnnotationsAndFieldsMatchOnCreate`).
pub(super) fn annotations(annotations: &View<'_>, spec: &View<'_>) -> Vec<(Path, String)> {
    let mut found: Vec<_> = too_long(annotations, "pod template").into_iter().collect();
    for (key, profile) in annotations.as_object().into_iter().flatten() {
        let Some(owner) = key.strip_prefix(APP_ARMOR) else {
            continue;
        };
        if !os_rules::containers(spec).any(|(_, container)| container.text("name") == owner) {
            let message =
                format!("the annotation `{key}` refers to a container that the pod does not have");
            found.push((Path::default(), message));
        }
        let profile = profile.as_str().unwrap_or_default();
        let is_known = ["", "runtime/default", "unconfined"].contains(&profile);
        if !is_known && !profile.starts_with("localhost/") {
            let message = format!(
                "the annotation `{key}` must be `runtime/default`, `unconfined`, or \
                 `localhost/NAME`, not `{profile}`"
            );
            found.push((Path::default(), message));
        }
    }
    for list in ["containers", "initContainers"] {
        for (at, container) in os_rules::entries(spec, list) {
            let name = container.text("name");
            let field = &container["securityContext"]["appArmorProfile"];
            let stated = match field["type"].as_str() {
                Some("RuntimeDefault") => "runtime/default".to_owned(),
                Some("Unconfined") => "unconfined".to_owned(),
                Some("Localhost") => format!("localhost/{}", field.text("localhostProfile")),
                _ => continue,
            };
            let annotation = annotations[&*format!("{APP_ARMOR}{name}")].as_str();
            if let Some(annotation) = annotation.filter(|annotation| *annotation != stated) {
                let message = format!(
                    "the annotation `{APP_ARMOR}{name}: {annotation}` contradicts \
                     `securityContext.appArmorProfile` of container `{name}`"
                );
                found.push((at.path(), message));
            }
        }
    }
    found
}

fn restart_policy(kind: &PodKind, spec: &View<'_>) -> Vec<(Path, String)> {
    let identity = (kind.group.as_str(), kind.kind.as_str());
    let stated = spec.get("restartPolicy").and_then(View::as_str);
    let stated = stated.filter(|policy| !policy.is_empty());
    let sentence = match stated {
        Some(policy) if ALWAYS_RESTARTED.contains(&identity) && policy != "Always" => {
            format!(
                "a {} accepts only `restartPolicy: Always`, not `{policy}`",
                kind.kind
            )
        }
        None | Some("Always") if matches!(identity, ("batch", "Job" | "CronJob")) => {
            format!(
                "a {} requires `restartPolicy: OnFailure` or `Never`",
                kind.kind
            )
        }
        _ => return Vec::new(),
    };
    vec![(Path::of(&["restartPolicy"]), sentence)]
}

/// Refuses conflicting ports with `hostNetwork`, where each port of a container is a port of the node.
fn host_ports(spec: &View<'_>) -> Vec<(Path, String)> {
    let (mut found, mut taken) = (Vec::new(), BTreeMap::new());
    for (at, container) in os_rules::entries(spec, "containers") {
        let owner = container.text("name");
        for (index, port) in container.list("ports").iter().enumerate() {
            let path = || at.path().key("ports").index(index);
            let (host, container_port) = (
                port_number(port, "hostPort"),
                port_number(port, "containerPort"),
            );
            let protocol = match port.text("protocol") {
                "" => "TCP",
                stated => stated,
            };
            let of_node = (host.or(container_port), protocol, port.text("hostIP"));
            let (taken_by, other_owner) = *taken.entry(of_node).or_insert((at.1, owner));
            // Duplicates within one container are reported as a fault of that container.
            if let (Some(number), true) = (of_node.0, taken_by != at.1) {
                let message = format!(
                    "with `hostNetwork`, the containers `{other_owner}` and `{owner}` both use \
                     host port {number}/{protocol}"
                );
                found.push((path(), message));
            }
            if let (Some(host), Some(container_port)) = (host, container_port)
                && host != container_port
            {
                let message = format!(
                    "with `hostNetwork`, `hostPort: {host}` must equal the container port \
                     {container_port}"
                );
                found.push((path(), message));
            }
        }
    }
    found
}

/// The port number under a key. `None` for 0, which Kubernetes reads as no port.
fn port_number(port: &View<'_>, key: &str) -> Option<i64> {
    let number = port.get(key).and_then(View::as_i64);
    number.filter(|number| *number != 0)
}
