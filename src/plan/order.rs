//! Where a new key goes among those that are there: behind the nearest that comes before it in these lists.

/// Of an object.
pub(super) const OBJECT: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
/// Of any `metadata`.
pub(super) const METADATA: &[&str] =
    &["name", "generateName", "namespace", "labels", "annotations"];
/// Of a pod template.
pub(super) const TEMPLATE: &[&str] = &["metadata", "spec"];
/// Of a pod spec, as far as podgraft adds keys; others go last.
pub(super) const POD_SPEC: &[&str] = &[
    "serviceAccountName",
    "automountServiceAccountToken",
    "hostNetwork",
    "hostPID",
    "shareProcessNamespace",
    "imagePullSecrets",
    "securityContext",
    "initContainers",
    "containers",
    "volumes",
];
/// Of a container.
pub(super) const CONTAINER: &[&str] = &[
    "name",
    "image",
    "imagePullPolicy",
    "restartPolicy",
    "command",
    "args",
    "workingDir",
    "ports",
    "envFrom",
    "env",
    "resources",
    "volumeMounts",
    "startupProbe",
    "livenessProbe",
    "readinessProbe",
    "lifecycle",
    "securityContext",
    "stdin",
    "tty",
];
/// Of an env var.
pub(super) const ENV_VAR: &[&str] = &["name", "value", "valueFrom"];
