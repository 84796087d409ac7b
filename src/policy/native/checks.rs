//! What an API server would refuse, seen when the policy is read: names, ports, mounts, variables.

use serde_json::Value;

use super::Reader;
use crate::diagnostic::Code;
use crate::policy::names;
use crate::yaml::value::Path;

/// Fields of a pod spec that have their own key in `inject`, and which.
pub const NOT_IN_POD_SPEC: [(&str, &str); 5] = [
    ("containers", "use `sidecars` with `type: Container`"),
    ("initContainers", "use `initContainers` of `inject`, or `sidecars` with `type: Native`"),
    ("ephemeralContainers", "use `ephemeralContainers` of `inject`"),
    ("volumes", "use `volumes` of `inject`"),
    ("imagePullSecrets", "use `imagePullSecrets` of `inject`"),
];

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
/// What an API server refuses in an ephemeral container (`validateEphemeralContainers` of Kubernetes).
const NOT_EPHEMERAL: [&str; 8] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "restartPolicy",
    "resizePolicy",
];

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

impl Reader<'_, '_> {
    fn invalid(&mut self, path: &Path, message: impl Into<String>) {
        self.problems.push(self.document.error(Code::Invalid, path, message));
    }

    pub(super) fn check_container(&mut self, container: &Value, at: &Path) {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        self.rule(&at.key("name"), names::check_dns_label(name));
        if container.get("image").and_then(Value::as_str).is_none_or(str::is_empty) {
            self.invalid(at, format!("the container `{name}` needs an `image`"));
        }
        self.check_word(&at.key("imagePullPolicy"), &PULL_POLICIES);
        for path in self.paths(&at.key("ports")) {
            self.check_port(&path);
        }
        for path in self.paths(&at.key("volumeMounts")) {
            self.check_volume_mount(&path);
        }
        for path in self.paths(&at.key("env")) {
            self.check_env(&path);
        }
    }

    /// An ephemeral container has no ports, probes and resources: <https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/>.
    pub(super) fn check_ephemeral_container(&mut self, container: &Value, at: &Path) {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        if container.get("image").and_then(Value::as_str).is_none_or(str::is_empty) {
            self.invalid(at, format!("the container `{name}` needs an `image`"));
        }
        for field in NOT_EPHEMERAL.into_iter().filter(|field| container.get(field).is_some()) {
            self.invalid(&at.key(field), format!("an ephemeral container has no `{field}`"));
        }
        self.check_word(&at.key("imagePullPolicy"), &PULL_POLICIES);
    }

    fn check_word(&mut self, at: &Path, words: &[&str]) {
        let Some(word) = at.get(&self.document.value).and_then(Value::as_str) else { return };
        if !words.contains(&word) {
            let name = self.document.places.name(at);
            self.invalid(at, format!("`{name}` must be one of {}, not `{word}`", words.join(", ")));
        }
    }

    pub(super) fn check_port(&mut self, at: &Path) {
        let number = at.key("containerPort");
        let port = number.get(&self.document.value).and_then(Value::as_i64).unwrap_or_default();
        if !(1..=65535).contains(&port) {
            let name = self.document.places.name(&number);
            self.invalid(&number, format!("`{name}` must be between 1 and 65535, not {port}"));
        }
        let name = at.key("name");
        if let Some(text) = name.get(&self.document.value).and_then(Value::as_str) {
            self.rule(&name, names::check_port_name(text));
        }
        self.check_word(&at.key("protocol"), &PROTOCOLS);
    }

    pub(super) fn check_volume(&mut self, at: &Path) {
        let name = self.document_text(&at.key("name"));
        self.rule(&at.key("name"), names::check_dns_label(&name));
        self.check_volume_source(at, &name);
    }

    /// <https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume/>: one source each.
    fn check_volume_source(&mut self, at: &Path, name: &str) {
        let fields = at.get(&self.document.value).and_then(Value::as_object);
        let sources: Vec<&str> =
            fields.into_iter().flatten().map(|(key, _)| key.as_str()).filter(|key| *key != "name").collect();
        match sources.as_slice() {
            [_] => {}
            [] => self.invalid(at, format!("the volume `{name}` has no source, such as `emptyDir: {{}}`")),
            several => {
                let message = format!("the volume `{name}` has several sources: {}", several.join(", "));
                self.invalid(at, message);
            }
        }
    }

    pub(super) fn check_volume_mount(&mut self, at: &Path) {
        let path = self.document_text(&at.key("mountPath"));
        if path.is_empty() || path.contains(':') {
            self.invalid(&at.key("mountPath"), "`mountPath` must not be empty and have no `:`");
        }
        let name = self.document_text(&at.key("name"));
        self.rule(&at.key("name"), names::check_dns_label(&name));
    }

    fn document_text(&self, at: &Path) -> String {
        at.get(&self.document.value).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub(super) fn check_env(&mut self, at: &Path) {
        let name = self.document_text(&at.key("name"));
        self.rule(&at.key("name"), names::check_env_name(&name));
        let has_value = !self.document_text(&at.key("value")).is_empty();
        if has_value && at.key("valueFrom").get(&self.document.value).is_some() {
            self.invalid(at, format!("the variable `{name}` has `value` beside `valueFrom`"));
        }
    }

    pub(super) fn check_pull_policy(&mut self, at: &Path) {
        self.check_word(&at.key("imagePullPolicy"), &PULL_POLICIES);
    }

    /// Names of the objects that an injection refers to.
    pub(super) fn check_object_names(&mut self, at: &Path) {
        const HOLDERS: [&str; 7] =
            ["initContainers", "sidecars", "ephemeralContainers", "volumes", "env", "envFrom", "podSpec"];
        for path in HOLDERS.map(|key| at.key(key)) {
            if let Some(value) = path.get(&self.document.value).cloned() {
                self.check_names_within(&value, &path);
            }
        }
        for path in self.paths(&at.key("imagePullSecrets")) {
            self.check_object_name(&path.key("name"));
        }
    }

    fn check_names_within(&mut self, value: &Value, at: &Path) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    let path = at.key(key);
                    match key.as_str() {
                        "configMapRef" | "secretRef" | "configMapKeyRef" | "secretKeyRef" => {
                            self.check_object_name(&path.key("name"));
                        }
                        "secret" => self.check_object_name(&path.key("secretName")),
                        "persistentVolumeClaim" => self.check_object_name(&path.key("claimName")),
                        "serviceAccountName" => self.check_object_name(&path),
                        _ => {}
                    }
                    self.check_names_within(inner, &path);
                }
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| self.check_names_within(item, &at.index(index)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// What is not known yet is checked when it is.
    fn check_object_name(&mut self, at: &Path) {
        let name = at.get(&self.document.value).and_then(Value::as_str).map(str::to_owned);
        if let Some(name) = name.filter(|name| !name.contains("${") && !name.is_empty()) {
            self.rule(at, names::check_dns_subdomain(&name));
        }
    }

    /// A second item of one identity would conflict with the first.
    pub(super) fn check_names(&mut self, at: &Path) {
        let lists = ["initContainers", "sidecars", "ephemeralContainers"];
        let containers = lists.map(|list| self.paths(&at.key(list))).concat();
        self.check_unique(&containers, "name");
        self.check_unique(&self.paths(&at.key("volumes")), "name");
        self.check_unique(&self.paths(&at.key("volumeMounts")), "mountPath");
    }

    fn check_unique(&mut self, paths: &[Path], key: &str) {
        let mut seen: Vec<String> = Vec::new();
        for path in paths {
            let at = path.key(key);
            let text = self.document_text(&at);
            if seen.contains(&text) {
                self.invalid(&at, format!("`{key}` `{text}` stands twice"));
            }
            seen.push(text);
        }
    }
}
