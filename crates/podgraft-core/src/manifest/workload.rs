//! The table of kinds with a pod template, and where they have it.

use crate::options::Options;

/// A kind with a pod template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The keys from the object to the mapping with the pod's `metadata` and `spec`; empty for the object itself.
    pub path: Vec<String>,
    /// Whether it runs to completion, which an app container that never ends would prevent.
    pub completes: bool,
}

/// Group, kind, path. A group serves a kind with the same path in all its versions.
/// Sources: the Kubernetes API reference, and for custom kinds their CustomResourceDefinitions.
const KINDS: &[(&str, &str, &str)] = &[
    ("", "Pod", ""),
    ("", "PodTemplate", "template"),
    ("", "ReplicationController", "spec.template"),
    ("apps", "Deployment", "spec.template"),
    ("apps", "StatefulSet", "spec.template"),
    ("apps", "DaemonSet", "spec.template"),
    ("apps", "ReplicaSet", "spec.template"),
    ("extensions", "Deployment", "spec.template"),
    ("extensions", "DaemonSet", "spec.template"),
    ("extensions", "ReplicaSet", "spec.template"),
    ("batch", "Job", "spec.template"),
    ("batch", "CronJob", "spec.jobTemplate.spec.template"),
    // Argo Rollouts
    ("argoproj.io", "Rollout", "spec.template"),
    // Knative Serving
    ("serving.knative.dev", "Service", "spec.template"),
    ("serving.knative.dev", "Configuration", "spec.template"),
    // OpenKruise
    ("apps.kruise.io", "CloneSet", "spec.template"),
    ("apps.kruise.io", "StatefulSet", "spec.template"),
    ("apps.kruise.io", "DaemonSet", "spec.template"),
    ("apps.kruise.io", "BroadcastJob", "spec.template"),
    (
        "apps.kruise.io",
        "AdvancedCronJob",
        "spec.template.jobTemplate.spec.template",
    ),
    // Agones
    ("agones.dev", "Fleet", "spec.template.spec.template"),
    ("agones.dev", "GameServerSet", "spec.template.spec.template"),
    ("agones.dev", "GameServer", "spec.template"),
    // KEDA
    ("keda.sh", "ScaledJob", "spec.jobTargetRef.template"),
    // OpenShift
    ("apps.openshift.io", "DeploymentConfig", "spec.template"),
    // Strimzi and the like embed only parts of a pod template; they are not in the table.
];

const COMPLETING: &[&str] = &[
    "Job",
    "CronJob",
    "BroadcastJob",
    "AdvancedCronJob",
    "ScaledJob",
];

/// The kinds with a pod template that a run knows: those of the table, and those that the user adds.
#[derive(Debug, Clone)]
pub struct PodKinds {
    kinds: Vec<PodKind>,
    /// The indexes of kinds by the length of their name. It makes the lookup quick, which is done for every document.
    by_length: Vec<Vec<usize>>,
}

impl PodKinds {
    /// The table and more kinds, each with apiVersion, kind and path.
    pub fn with(more: impl IntoIterator<Item = (String, String, Vec<String>)>) -> Self {
        let added = more.into_iter().map(|(api_version, kind, path)| PodKind {
            group: group_of(&api_version).to_owned(),
            completes: COMPLETING.contains(&kind.as_str()),
            kind,
            path,
        });
        let known = KINDS.iter().map(|&(group, kind, path)| PodKind {
            group: group.to_owned(),
            kind: kind.to_owned(),
            path: path
                .split('.')
                .filter(|key| !key.is_empty())
                .map(str::to_owned)
                .collect(),
            completes: COMPLETING.contains(&kind),
        });
        // The user's kinds come first, so that they override the table.
        let kinds: Vec<PodKind> = added.chain(known).collect();
        let longest = kinds.iter().map(|row| row.kind.len()).max().unwrap_or(0);
        let mut by_length = vec![Vec::new(); longest + 1];
        for (index, row) in kinds.iter().enumerate() {
            by_length[row.kind.len()].push(index);
        }
        PodKinds { kinds, by_length }
    }

    /// The table and the kinds of `--pod-template`.
    pub fn of(options: &Options) -> Self {
        let rows = options.pod_templates.iter();
        Self::with(rows.map(|row| (row.api_version.clone(), row.kind.clone(), row.path.clone())))
    }

    /// The entry of a kind.
    pub fn find(&self, api_version: &str, kind: &str) -> Option<&PodKind> {
        let group = group_of(api_version);
        self.of_name(kind.as_bytes()).find(|row| row.group == group)
    }

    /// The names of all kinds.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|row| row.kind.as_str())
    }

    /// Whether any API group has a kind of this name.
    pub(crate) fn has_kind(&self, kind: impl AsRef<[u8]>) -> bool {
        self.of_name(kind.as_ref()).next().is_some()
    }

    /// Whether a kind is known.
    pub fn has(&self, api_version: &[u8], kind: &[u8]) -> bool {
        let group =
            memchr::memchr(b'/', api_version).map_or(&b""[..], |index| &api_version[..index]);
        self.of_name(kind).any(|row| row.group.as_bytes() == group)
    }

    fn of_name(&self, kind: &[u8]) -> impl Iterator<Item = &PodKind> {
        let rows = self
            .by_length
            .get(kind.len())
            .map(Vec::as_slice)
            .unwrap_or_default();
        let first = kind.first();
        // Most names differ in the first letter already.
        let is_kind = move |row: &&PodKind| {
            row.kind.as_bytes().first() == first && row.kind.as_bytes() == kind
        };
        rows.iter().map(|&at| &self.kinds[at]).filter(is_kind)
    }
}

/// `apps` of `apps/v1`; empty for `v1`.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_group_and_name_in_every_version() {
        let kinds = PodKinds::with([]);
        let path = |api_version, kind| kinds.find(api_version, kind).map(|row| row.path.join("."));
        assert_eq!(
            path("batch/v1beta1", "CronJob").as_deref(),
            Some("spec.jobTemplate.spec.template")
        );
        assert_eq!(path("v1", "Pod").as_deref(), Some(""));
        assert_eq!(path("v1", "Service"), None);
        assert_eq!(
            path("serving.knative.dev/v1", "Service").as_deref(),
            Some("spec.template")
        );
    }
}
