//! Fields of a pod spec that an API server takes each by itself and refuses together, or in a template of some kind.
//! Sources: `pkg/apis/core/validation`, `pkg/apis/apps/validation` and `pkg/apis/batch/validation` of Kubernetes.

use serde_json::Value;

use crate::manifest::workload::PodKind;
use crate::yaml::value::Path;

/// Kinds whose pods are always started again.
const LASTING: [(&str, &str); 5] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("", "ReplicationController"),
];

/// Fields that [`refused`] looks at.
pub(super) const FIELDS: [&str; 8] = [
    "restartPolicy",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "terminationGracePeriodSeconds",
];

/// As long as all annotations of an object may be together (`TotalAnnotationSizeLimitB`).
pub(super) const MOST_ANNOTATIONS: usize = 256 << 10;

/// How the annotation with a container's profile of AppArmor begins.
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// How long a pod is given to end where it does not say so.
const GRACE_SECONDS: i64 = 30;

/// What is refused in the pod spec of a kind: where in it, and a sentence without a full stop.
pub(super) fn refused(kind: &PodKind, spec: &Value) -> Vec<(Path, String)> {
    let mut found = restart_policy(kind, spec);
    let is_lasting = LASTING.contains(&(kind.group.as_str(), kind.kind.as_str()));
    let has = |key: &str| spec.get(key).is_some_and(|value| !value.is_null());
    if is_lasting && has("activeDeadlineSeconds") {
        found.push((
            Path::of(&["activeDeadlineSeconds"]),
            format!("a {} has no `activeDeadlineSeconds`", kind.kind),
        ));
    }
    let nameservers = spec
        .pointer("/dnsConfig/nameservers")
        .and_then(Value::as_array);
    if spec.get("dnsPolicy").is_some_and(|policy| policy == "None")
        && nameservers.is_none_or(Vec::is_empty)
    {
        found.push((
            Path::of(&["dnsPolicy"]),
            "`dnsPolicy: None` needs `dnsConfig.nameservers`".to_owned(),
        ));
    }
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        found.extend(host_ports(spec));
    }
    if spec.get("hostUsers") == Some(&Value::Bool(false)) {
        let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
        let shared = shared.filter(|field| spec.get(field) == Some(&Value::Bool(true)));
        let sentence = |field| {
            let what = format!("`{field}: true` does not go with `hostUsers: false`");
            (Path::of(&[field]), what)
        };
        found.extend(shared.map(sentence));
    }
    found.extend(long_sleeps(spec));
    found
}

/// Hooks that sleep for longer than the pod has to end (`validateSleepAction`).
fn long_sleeps(spec: &Value) -> Vec<(Path, String)> {
    let grace = spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(GRACE_SECONDS);
    let mut found = Vec::new();
    for list in ["containers", "initContainers"] {
        let containers = spec.get(list).and_then(Value::as_array);
        for (at, container) in containers.into_iter().flatten().enumerate() {
            for hook in ["postStart", "preStop"] {
                let seconds = &container["lifecycle"][hook]["sleep"]["seconds"];
                if seconds.as_i64().is_some_and(|seconds| seconds > grace) {
                    let path = Path::of(&[list]).index(at).key("lifecycle").key(hook);
                    let name = container["name"].as_str().unwrap_or_default();
                    let what = format!(
                        "container `{name}` sleeps {seconds} seconds in `{hook}`, longer than the {grace} of the pod's \
                         `terminationGracePeriodSeconds`"
                    );
                    found.push((path, what));
                }
            }
        }
    }
    found
}

/// What is refused in the annotations of a pod template: more of them than there may be (`ValidateAnnotationsSize`), and
/// profiles of AppArmor that the container's own field contradicts (`validateAppArmorAnnotationsAndFieldsMatchOnCreate`).
pub(super) fn annotations(annotations: &Value, spec: &Value) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    let texts = annotations.as_object().into_iter().flatten();
    let length = |(key, text): (&String, &Value)| key.len() + text.as_str().map_or(0, str::len);
    if texts.map(length).sum::<usize>() > MOST_ANNOTATIONS {
        let what = format!(
            "the annotations of the pod template are longer than {MOST_ANNOTATIONS} bytes together"
        );
        found.push((Path::default(), what));
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get(list).and_then(Value::as_array);
        for (at, container) in containers.into_iter().flatten().enumerate() {
            let name = container["name"].as_str().unwrap_or_default();
            let field = &container["securityContext"]["appArmorProfile"];
            let stated = match field["type"].as_str() {
                Some("RuntimeDefault") => "runtime/default".to_owned(),
                Some("Unconfined") => "unconfined".to_owned(),
                Some("Localhost") => {
                    format!(
                        "localhost/{}",
                        field["localhostProfile"].as_str().unwrap_or_default()
                    )
                }
                _ => continue,
            };
            let annotation = annotations[format!("{APP_ARMOR}{name}")].as_str();
            if let Some(annotation) = annotation.filter(|annotation| *annotation != stated) {
                let what = format!(
                    "the annotation `{APP_ARMOR}{name}: {annotation}` is not what container `{name}` says in \
                     `securityContext.appArmorProfile`"
                );
                found.push((Path::of(&[list]).index(at), what));
            }
        }
    }
    found
}

fn restart_policy(kind: &PodKind, spec: &Value) -> Vec<(Path, String)> {
    let identity = (kind.group.as_str(), kind.kind.as_str());
    let stated = spec.get("restartPolicy").and_then(Value::as_str);
    let sentence = match stated {
        Some(policy) if LASTING.contains(&identity) && policy != "Always" => {
            format!(
                "a {} takes `restartPolicy: Always` only, not `{policy}`",
                kind.kind
            )
        }
        None | Some("Always") if matches!(identity, ("batch", "Job" | "CronJob")) => {
            format!(
                "a {} needs `restartPolicy: OnFailure` or `Never`",
                kind.kind
            )
        }
        _ => return Vec::new(),
    };
    vec![(Path::of(&["restartPolicy"]), sentence)]
}

/// On the node's network, a container's port is the node's.
fn host_ports(spec: &Value) -> Vec<(Path, String)> {
    let containers = spec
        .get("containers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut found = Vec::new();
    for (at, container) in containers.iter().enumerate() {
        let ports = container
            .get("ports")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (index, port) in ports.iter().enumerate() {
            let number = |key: &str| {
                port.get(key)
                    .and_then(Value::as_i64)
                    .filter(|number| *number != 0)
            };
            if let (Some(host), Some(own)) = (number("hostPort"), number("containerPort"))
                && host != own
            {
                let path = Path::of(&["containers"])
                    .index(at)
                    .key("ports")
                    .index(index);
                found.push((
                    path,
                    format!("with `hostNetwork`, `hostPort: {host}` must be the port {own} itself"),
                ));
            }
        }
    }
    found
}
