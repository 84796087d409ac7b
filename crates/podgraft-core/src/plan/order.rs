//! The usual order of keys. A new key goes behind the nearest existing key that comes before it in the list.

/// Keys of an object.
pub(super) const OBJECT: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
/// Keys of any `metadata`.
pub(super) const METADATA: &[&str] =
    &["name", "generateName", "namespace", "labels", "annotations"];
/// Keys of a pod template.
pub(super) const TEMPLATE: &[&str] = &["metadata", "spec"];
/// Keys of a pod spec that have a fixed place; all others go last.
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
/// Keys of a container.
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
/// Keys of an environment variable.
pub(super) const ENV_VAR: &[&str] = &["name", "value", "valueFrom"];
