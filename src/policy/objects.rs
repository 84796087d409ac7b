//! The schemas of whole objects, as the Kubernetes types have them: those with a pod template, and those that policies
//! generate most.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Pod, PodTemplate, ReplicationController, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use std::sync::LazyLock;

use super::schema::Schema;

/// A schema is made when it is first asked for.
type Lazy = LazyLock<Schema>;

static OBJECTS: [(&str, &str, Lazy); 15] = [
    ("apps/v1", "Deployment", Lazy::new(Schema::of::<Deployment>)),
    (
        "apps/v1",
        "StatefulSet",
        Lazy::new(Schema::of::<StatefulSet>),
    ),
    ("apps/v1", "DaemonSet", Lazy::new(Schema::of::<DaemonSet>)),
    ("apps/v1", "ReplicaSet", Lazy::new(Schema::of::<ReplicaSet>)),
    ("batch/v1", "Job", Lazy::new(Schema::of::<Job>)),
    ("batch/v1", "CronJob", Lazy::new(Schema::of::<CronJob>)),
    ("v1", "Pod", Lazy::new(Schema::of::<Pod>)),
    ("v1", "PodTemplate", Lazy::new(Schema::of::<PodTemplate>)),
    (
        "v1",
        "ReplicationController",
        Lazy::new(Schema::of::<ReplicationController>),
    ),
    ("v1", "ConfigMap", Lazy::new(Schema::of::<ConfigMap>)),
    ("v1", "Secret", Lazy::new(Schema::of::<Secret>)),
    ("v1", "Service", Lazy::new(Schema::of::<Service>)),
    (
        "v1",
        "ServiceAccount",
        Lazy::new(Schema::of::<ServiceAccount>),
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "Role",
        Lazy::new(Schema::of::<Role>),
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        Lazy::new(Schema::of::<RoleBinding>),
    ),
];

/// The schema of a built-in kind; `None` for all others.
pub fn schema_of(api_version: &str, kind: &str) -> Option<&'static Schema> {
    let found = OBJECTS
        .iter()
        .find(|(version, name, _)| *version == api_version && *name == kind);
    found.map(|(.., schema)| &**schema)
}
