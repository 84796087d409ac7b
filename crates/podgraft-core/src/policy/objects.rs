//! The stored schemas of Kubernetes kinds: those with a pod template, and those that policies often generate.

use super::schema::Schema;

/// The apiVersions, each with the package of its types.
const PACKAGES: [(&str, &str); 4] = [
    ("v1", "io.k8s.api.core.v1."),
    ("apps/v1", "io.k8s.api.apps.v1."),
    ("batch/v1", "io.k8s.api.batch.v1."),
    ("rbac.authorization.k8s.io/v1", "io.k8s.api.rbac.v1."),
];

static OBJECTS: [Schema; 15] = [
    Schema::kubernetes("io.k8s.api.apps.v1.Deployment"),
    Schema::kubernetes("io.k8s.api.apps.v1.StatefulSet"),
    Schema::kubernetes("io.k8s.api.apps.v1.DaemonSet"),
    Schema::kubernetes("io.k8s.api.apps.v1.ReplicaSet"),
    Schema::kubernetes("io.k8s.api.batch.v1.Job"),
    Schema::kubernetes("io.k8s.api.batch.v1.CronJob"),
    Schema::kubernetes("io.k8s.api.core.v1.Pod"),
    Schema::kubernetes("io.k8s.api.core.v1.PodTemplate"),
    Schema::kubernetes("io.k8s.api.core.v1.ReplicationController"),
    Schema::kubernetes("io.k8s.api.core.v1.ConfigMap"),
    Schema::kubernetes("io.k8s.api.core.v1.Secret"),
    Schema::kubernetes("io.k8s.api.core.v1.Service"),
    Schema::kubernetes("io.k8s.api.core.v1.ServiceAccount"),
    Schema::kubernetes("io.k8s.api.rbac.v1.Role"),
    Schema::kubernetes("io.k8s.api.rbac.v1.RoleBinding"),
];

/// The schema of a kind in the table; `None` for all others, which get no field check.
pub(crate) fn schema_of(api_version: &str, kind: &str) -> Option<&'static Schema> {
    let (_, package) = PACKAGES
        .iter()
        .find(|(version, _)| *version == api_version)?;
    OBJECTS.iter().find(|schema| {
        matches!(schema, Schema::Stored(_, name) if name.strip_prefix(package) == Some(kind))
    })
}
