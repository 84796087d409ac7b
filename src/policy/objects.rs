//! The stored schemas of Kubernetes kinds: those with a pod template, and those that policies often generate.

use super::schema::Schema;

/// apiVersion, kind and schema.
static OBJECTS: [(&str, &str, Schema); 15] = [
    (
        "apps/v1",
        "Deployment",
        Schema::kubernetes("io.k8s.api.apps.v1.Deployment"),
    ),
    (
        "apps/v1",
        "StatefulSet",
        Schema::kubernetes("io.k8s.api.apps.v1.StatefulSet"),
    ),
    (
        "apps/v1",
        "DaemonSet",
        Schema::kubernetes("io.k8s.api.apps.v1.DaemonSet"),
    ),
    (
        "apps/v1",
        "ReplicaSet",
        Schema::kubernetes("io.k8s.api.apps.v1.ReplicaSet"),
    ),
    (
        "batch/v1",
        "Job",
        Schema::kubernetes("io.k8s.api.batch.v1.Job"),
    ),
    (
        "batch/v1",
        "CronJob",
        Schema::kubernetes("io.k8s.api.batch.v1.CronJob"),
    ),
    ("v1", "Pod", Schema::kubernetes("io.k8s.api.core.v1.Pod")),
    (
        "v1",
        "PodTemplate",
        Schema::kubernetes("io.k8s.api.core.v1.PodTemplate"),
    ),
    (
        "v1",
        "ReplicationController",
        Schema::kubernetes("io.k8s.api.core.v1.ReplicationController"),
    ),
    (
        "v1",
        "ConfigMap",
        Schema::kubernetes("io.k8s.api.core.v1.ConfigMap"),
    ),
    (
        "v1",
        "Secret",
        Schema::kubernetes("io.k8s.api.core.v1.Secret"),
    ),
    (
        "v1",
        "Service",
        Schema::kubernetes("io.k8s.api.core.v1.Service"),
    ),
    (
        "v1",
        "ServiceAccount",
        Schema::kubernetes("io.k8s.api.core.v1.ServiceAccount"),
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "Role",
        Schema::kubernetes("io.k8s.api.rbac.v1.Role"),
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        Schema::kubernetes("io.k8s.api.rbac.v1.RoleBinding"),
    ),
];

/// The schema of a kind in the table; `None` for all others, which get no field check.
pub(crate) fn schema_of(api_version: &str, kind: &str) -> Option<&'static Schema> {
    let found = OBJECTS
        .iter()
        .find(|(version, name, _)| *version == api_version && *name == kind);
    found.map(|(.., schema)| schema)
}
