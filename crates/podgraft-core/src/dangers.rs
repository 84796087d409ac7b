//! Finds settings that give an injection power over the node or the cluster, or that cannot be relied on, such as the
//! tag `latest`. The table is closed and is looked up in any Kubernetes value.

use serde_json::{Map, Value};
use std::fmt;

use crate::mask::{self, is_secret_name};

/// One kind of danger, as `--forbid` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    /// `privileged: true`: root on the node.
    Privileged,
    /// A `hostPath` volume: files of the node.
    HostPath,
    /// `hostNetwork`, `hostPID` or `hostIPC`: namespaces of the node.
    HostNamespaces,
    /// `hostPort`: a port of the node.
    HostPort,
    /// Linux capabilities that are added to the default ones.
    Capabilities,
    /// `allowPrivilegeEscalation: true`.
    PrivilegeEscalation,
    /// `runAsUser: 0` or `runAsNonRoot: false`.
    RunAsRoot,
    /// No seccomp or AppArmor profile, or an unmasked /proc.
    Unconfined,
    /// `shareProcessNamespace: true`: the containers of the pod see each other's processes and files.
    ShareProcessNamespace,
    /// The service account's token is mounted.
    ServiceAccountToken,
    /// An image with the tag `latest` or none: tomorrow it may be another one.
    LatestTag,
    /// An image that is not pinned by a digest.
    NoDigest,
    /// A token or password in clear text.
    ClearSecret,
}

/// All dangers with the names that users write.
const NAMES: [(Danger, &str); 13] = [
    (Danger::Privileged, "privileged"),
    (Danger::HostPath, "host-path"),
    (Danger::HostNamespaces, "host-namespaces"),
    (Danger::HostPort, "host-port"),
    (Danger::Capabilities, "capabilities"),
    (Danger::PrivilegeEscalation, "privilege-escalation"),
    (Danger::RunAsRoot, "run-as-root"),
    (Danger::Unconfined, "unconfined"),
    (Danger::ShareProcessNamespace, "share-process-namespace"),
    (Danger::ServiceAccountToken, "service-account-token"),
    (Danger::LatestTag, "latest-tag"),
    (Danger::NoDigest, "no-digest"),
    (Danger::ClearSecret, "clear-secret"),
];

impl Danger {
    /// The name that users write.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(danger, _)| *danger == self)
            .map_or("", |(_, name)| name)
    }

    /// The names of all dangers.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        NAMES.iter().map(|(_, name)| *name)
    }

    /// The danger with this name.
    pub fn find(name: &str) -> Option<Danger> {
        NAMES
            .iter()
            .find(|(_, known_name)| *known_name == name)
            .map(|(danger, _)| *danger)
    }

    /// Whether it gives a container power beyond its pod; the others are about images and secrets.
    pub(crate) fn is_privilege(self) -> bool {
        !matches!(
            self,
            Danger::LatestTag | Danger::NoDigest | Danger::ClearSecret
        )
    }
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A danger, and the setting that causes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundDanger {
    /// The kind of danger.
    pub danger: Danger,
    /// The setting as it is written: `hostPath: /var/log`.
    pub excerpt: String,
}

impl FoundDanger {
    /// Whether it may have become the other one when a patch wrote it: capabilities go into a list with others.
    pub(crate) fn may_become(&self, other: &FoundDanger) -> bool {
        let is_list = self.danger == Danger::Capabilities;
        self.danger == other.danger && (is_list || self.excerpt == other.excerpt)
    }
}

/// Where annotations of a pod had AppArmor profiles before the field existed; the name of a container follows.
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// All dangers in a value, which may be a container, a volume or any part of a pod spec.
pub fn find(value: &Value) -> Vec<FoundDanger> {
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

fn walk(value: &Value, parent: &str, found: &mut Vec<FoundDanger>) {
    match value {
        Value::Object(map) => {
            found.extend(clear_secret(map));
            for (key, inner) in map {
                found.extend(dangers_of(parent, key, inner));
                walk(inner, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, parent, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn dangers_of(parent: &str, key: &str, value: &Value) -> Vec<FoundDanger> {
    let is_bool = |wanted: bool| value.as_bool() == Some(wanted);
    let danger = match key {
        "image" | "reference" => return value.as_str().map(image).unwrap_or_default(),
        "privileged" if is_bool(true) => Danger::Privileged,
        "hostPath" if value.is_object() => Danger::HostPath,
        "hostNetwork" | "hostPID" | "hostIPC" if is_bool(true) => Danger::HostNamespaces,
        "hostPort" if value.as_i64() != Some(0) => Danger::HostPort,
        // Pod Security's level "restricted" allows this one capability.
        "add"
            if parent == "capabilities"
                && value.as_array().is_some_and(|capabilities| {
                    capabilities
                        .iter()
                        .any(|capability| capability != "NET_BIND_SERVICE")
                }) =>
        {
            Danger::Capabilities
        }
        "allowPrivilegeEscalation" if is_bool(true) => Danger::PrivilegeEscalation,
        "runAsUser" if value.as_i64() == Some(0) => Danger::RunAsRoot,
        "runAsNonRoot" if is_bool(false) => Danger::RunAsRoot,
        "type" if value == "Unconfined" => Danger::Unconfined,
        _ if key.starts_with(APP_ARMOR) && value == "unconfined" => Danger::Unconfined,
        "procMount" if value == "Unmasked" => Danger::Unconfined,
        "shareProcessNamespace" if is_bool(true) => Danger::ShareProcessNamespace,
        "automountServiceAccountToken" if is_bool(true) => Danger::ServiceAccountToken,
        "serviceAccountToken" if value.is_object() => Danger::ServiceAccountToken,
        _ => return Vec::new(),
    };
    let shown = match (value.get("path"), value) {
        (Some(Value::String(path)), _) => path.clone(),
        (_, Value::String(text)) => text.clone(),
        _ => value.to_string(),
    };
    vec![FoundDanger {
        danger,
        excerpt: format!("{key}: {shown}"),
    }]
}

/// Dangers of an image reference. A reference that is not resolved yet (`${...}`) has none.
fn image(name: &str) -> Vec<FoundDanger> {
    if name.contains("${") || name.is_empty() {
        return Vec::new();
    }
    let has_digest = name.contains("@sha256:");
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = last
        .split('@')
        .next()
        .and_then(|name| name.split_once(':'))
        .map(|(_, tag)| tag);
    let is_latest = !has_digest && tag.is_none_or(|tag| tag == "latest");
    let dangers = [
        (is_latest, Danger::LatestTag),
        (!has_digest, Danger::NoDigest),
    ];
    let dangers = dangers.into_iter().filter(|(is_present, _)| *is_present);
    dangers
        .map(|(_, danger)| FoundDanger {
            danger,
            excerpt: format!("image: {name}"),
        })
        .collect()
}

/// Endings of the names of variables that only say where a secret is.
const LOCATION_SUFFIXES: [&str; 8] = [
    "_FILE",
    "_PATH",
    "_DIR",
    "_URL",
    "_NAME",
    "_ENDPOINT",
    "_AUDIENCE",
    "_HEADER",
];

fn clear_secret(variable: &Map<String, Value>) -> Option<FoundDanger> {
    let name = variable.get("name")?.as_str()?;
    let value = variable.get("value")?.as_str()?;
    let upper = name.to_uppercase();
    let is_secret = mask::value(name, value) != value
        && !LOCATION_SUFFIXES
            .iter()
            .any(|word| upper.ends_with(word) && is_secret_name(name))
        && is_clear(value)
        && !matches!(value, "true" | "false");
    is_secret.then(|| FoundDanger {
        danger: Danger::ClearSecret,
        excerpt: format!("{name}: ..."),
    })
}

/// Whether the value stands there. `$(...)` refers to other variables, and `${...}` is not resolved yet.
fn is_clear(value: &str) -> bool {
    !value.is_empty() && !value.contains("$(") && !value.contains("${")
}

/// All dangers in an object that a policy generates.
pub(crate) fn find_generated(object: &Value) -> Vec<FoundDanger> {
    let parts = ["spec", "template", "items"].into_iter();
    let in_parts = parts.filter_map(|part| object.get(part)).flat_map(find);
    data_of_secret(object).into_iter().chain(in_parts).collect()
}

/// The data of a Secret.
pub(crate) fn data_of_secret(object: &Value) -> Option<FoundDanger> {
    if object.get("kind")?.as_str()? != "Secret" {
        return None;
    }
    ["data", "stringData"].into_iter().find_map(|field| {
        let mut data = object.get(field)?.as_object()?.iter();
        let (key, _) = data.find(|(_, value)| value.as_str().is_some_and(is_clear))?;
        Some(FoundDanger {
            danger: Danger::ClearSecret,
            excerpt: format!("{field}: {{{key}: ...}}"),
        })
    })
}
