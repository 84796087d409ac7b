//! Validates containers of all kinds and the values in them.

use std::collections::BTreeSet;

use super::{Checker, check_descending};
use crate::policy::names::{self, require};
use crate::policy::quantity;
use crate::yaml::view::View;

/// The host port, its protocol and its address.
type HostPort<'v> = (i64, &'v str, &'v str);

/// The ports of a container that were visited.
#[derive(Default)]
struct SeenPorts<'v> {
    names: BTreeSet<&'v str>,
    hosts: BTreeSet<HostPort<'v>>,
    numbers: BTreeSet<(i64, &'v str, HostPort<'v>)>,
}

/// The role of a container in its pod, which decides the fields that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerRole {
    /// One of `containers`.
    App,
    /// One of `containers` of a Knative Service or Configuration, which gives its container a name.
    Knative,
    /// One of `initContainers` that runs to completion.
    Init,
    /// One of `initContainers` with `restartPolicy: Always`.
    NativeSidecar,
    /// One of `ephemeralContainers`.
    Ephemeral,
}

const PROTOCOLS: [&str; 4] = ["", "TCP", "UDP", "SCTP"];
pub(super) const PULL_POLICIES: [&str; 4] = ["", "Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
/// Fields that an ephemeral container may not have, because they are not in `allowedEphemeralContainerFields`.
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
/// Fields that an init container may not have, unless it is a sidecar (`validateInitContainers` of Kubernetes).
const NOT_INIT: [&str; 4] = [
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];
const ENV_SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];
/// Fields that the downward API offers to variables (`validEnvDownwardAPIFieldPathExpressions`). Labels and annotations
/// by key come in addition.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Native resources of a container, besides devices and huge pages.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const LARGE_PAGES: &str = "hugepages-";
pub(super) const MAX_USER_ID: i64 = i32::MAX as i64;

/// Whether a resource cannot be overcommitted (`IsOvercommitAllowed`): huge pages and devices, which are extended
/// resources outside of `kubernetes.io/`.
fn is_device(name: &str) -> bool {
    name.starts_with(LARGE_PAGES) || name.contains('/') && !name.contains("kubernetes.io/")
}

impl<'v> Checker<'v> {
    pub(crate) fn container(&mut self, role: ContainerRole) {
        match self.get("name") {
            Some(_) => self.text("name", names::check_dns_label),
            None if role == ContainerRole::Knative => {}
            None => self.add("a container must have a `name`"),
        }
        if self.is_empty("image") {
            self.add("the container must have an `image`");
        }
        self.likely_text("image", |image| {
            require(
                !image.contains(char::is_whitespace),
                "must not contain whitespace",
            )
        });
        self.forbidden_fields(role);
        self.word("restartPolicy", &RESTART_POLICIES);
        self.word(
            "terminationMessagePolicy",
            &["", "File", "FallbackToLogsOnError"],
        );
        self.each("ports", Self::port);
        self.each("env", Self::env_var);
        self.each("envFrom", Self::env_from);
        self.each("volumeMounts", Self::volume_mount);
        self.resize_policies(role);
        self.container_fields();
        self.probes_and_hooks();
        let is_privileged = self.value["securityContext"]["privileged"] == true;
        self.each("volumeMounts", |checker| {
            if checker.text_at("mountPropagation") == "Bidirectional" && !is_privileged {
                checker.add("`mountPropagation: Bidirectional` is only for privileged containers");
            }
        });
        self.duplicates();
    }

    /// Checks `resizePolicy` (`validateResizePolicy`) and that `restartPolicyRules` come with a `restartPolicy`.
    fn resize_policies(&mut self, role: ContainerRole) {
        self.each_once("resizePolicy", "resourceName", |checker| {
            checker.word("resourceName", &["cpu", "memory"]);
            let policies = match role {
                ContainerRole::Init => &["NotRequired"][..],
                _ => &["NotRequired", "RestartContainer"],
            };
            checker.word("restartPolicy", policies);
        });
        if !self.list("restartPolicyRules").is_empty() && self.is_empty("restartPolicy") {
            self.add("`restartPolicyRules` requires `restartPolicy`");
        }
    }

    fn forbidden_fields(&mut self, role: ContainerRole) {
        let (fields, reason): (&[&'static str], _) = match role {
            ContainerRole::App | ContainerRole::Knative | ContainerRole::NativeSidecar => return,
            ContainerRole::Init => (
                &NOT_INIT,
                "an init container without `restartPolicy: Always` cannot have",
            ),
            ContainerRole::Ephemeral => (&NOT_EPHEMERAL, "an ephemeral container cannot have"),
        };
        self.none_of(fields, reason);
        if role == ContainerRole::Ephemeral {
            self.each("volumeMounts", |checker| {
                checker.none_of(&["subPath", "subPathExpr"], reason);
            });
        }
    }

    fn none_of(&mut self, fields: &[&'static str], reason: &str) {
        for field in fields {
            self.visit_key(field, |checker| checker.add(format!("{reason} `{field}`")));
        }
    }

    /// Checks the fields that `defaults` can set: `resources`, `securityContext`, `imagePullPolicy`.
    pub(crate) fn container_fields(&mut self) {
        self.word("imagePullPolicy", &PULL_POLICIES);
        self.visit_key("resources", Self::resources);
        self.visit_key("securityContext", Self::security_context);
    }

    pub(crate) fn port(&mut self) {
        if self.get("containerPort").is_none() {
            self.add("a port must have `containerPort`");
        }
        self.number("containerPort", 1..=65535);
        self.number("hostPort", 0..=65535);
        self.text_or_empty("name", names::check_port_name);
        self.word("protocol", &PROTOCOLS);
    }

    pub(crate) fn env_var(&mut self) {
        self.text("name", names::check_env_name);
        if self.is_stated("valueFrom") && !self.is_empty("value") {
            let name = self.text_at("name");
            self.add(format!(
                "the variable `{name}` has both `value` and `valueFrom`"
            ));
        }
        self.visit_key("valueFrom", |checker| {
            if let Some(kind) = checker.one_of(&ENV_SOURCES, "`valueFrom`") {
                checker.visit_key(kind, |checker| checker.env_source(kind));
            }
        });
    }

    fn env_source(&mut self, kind: &str) {
        match kind {
            "fieldRef" => self.field_of_pod(),
            "fileKeyRef" => self.required_text("path", check_descending),
            "resourceFieldRef" => self.resource_of_container(),
            "configMapKeyRef" | "secretKeyRef" => {
                self.object();
                self.required_text("key", names::check_config_key);
            }
            _ => {}
        }
    }

    fn field_of_pod(&mut self) {
        self.word("apiVersion", &["", "v1"]);
        self.visit_key("fieldPath", Self::field_path);
    }

    fn field_path(&mut self) {
        let Some(path) = self.value.as_str() else {
            return;
        };
        let key = ["metadata.labels['", "metadata.annotations['"]
            .iter()
            .find_map(|begin| path.strip_prefix(begin)?.strip_suffix("']"));
        match key {
            Some(key) => self.rule(names::check_key(key)),
            None if FIELDS.contains(&path) => {}
            None => self.report_rule(format!(
                "must be one of {}, metadata.labels['KEY'], metadata.annotations['KEY'], not `{path}`",
                FIELDS.join(", ")
            )),
        }
    }

    /// Checks a `resourceFieldRef` (`validateContainerResourceFieldSelector`).
    pub(super) fn resource_of_container(&mut self) {
        let text = self.get("resource").and_then(View::as_str);
        let (kind, name) = text
            .and_then(|text| text.split_once('.'))
            .unwrap_or_default();
        self.visit_key("resource", |checker| {
            let is_known = RESOURCES.contains(&name) || name.starts_with(LARGE_PAGES);
            if let (Some(text), false) = (text, matches!(kind, "limits" | "requests") && is_known) {
                checker.report_rule(format!(
                    "must be limits or requests of cpu, memory, or ephemeral-storage, not `{text}`"
                ));
            }
        });
        self.visit_key("divisor", |checker| checker.divisor(name));
    }

    fn divisor(&mut self, name: &str) {
        let units: &[&str] = match name {
            "cpu" => &["1m", "1"],
            _ => &[
                "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
            ],
        };
        let number = quantity::of_view(self.value);
        let is_unit = |unit: &&str| number.is_some() && quantity::of_text(unit) == number;
        // Zero means the default, which is 1.
        if number != Some(0) && !units.iter().any(is_unit) {
            self.report_rule(format!("must be one of {}", units.join(", ")));
        }
    }

    pub(crate) fn env_from(&mut self) {
        self.text_or_empty("prefix", names::check_env_name);
        if let Some(kind) = self.one_of(&["configMapRef", "secretRef"], "an entry of `envFrom`") {
            self.visit_key(kind, Self::object);
        }
    }

    /// Checks a reference to an object by `name`.
    pub(crate) fn object(&mut self) {
        self.required_text("name", names::check_dns_subdomain);
    }

    pub(crate) fn volume_mount(&mut self) {
        if self.get("mountPath").is_none() {
            self.add("a mount must have `mountPath`");
        }
        self.text("mountPath", |path| {
            require(!path.is_empty(), "must not be empty")
        });
        self.likely_text("mountPath", |path| {
            require(!path.contains(':'), "must not contain `:`")
        });
        self.text("name", names::check_dns_label);
        for key in ["subPath", "subPathExpr"] {
            self.text(key, check_descending);
        }
        if !self.is_empty("subPath") && !self.is_empty("subPathExpr") {
            self.add("a mount cannot have both `subPath` and `subPathExpr`");
        }
        self.word(
            "mountPropagation",
            &["None", "HostToContainer", "Bidirectional"],
        );
        self.word("recursiveReadOnly", &["Disabled", "IfPossible", "Enabled"]);
        let is_recursive = self
            .get("recursiveReadOnly")
            .is_some_and(|word| word != "Disabled" && !word.is_null());
        if is_recursive && !self.is_true("readOnly") {
            self.add("`recursiveReadOnly` requires `readOnly: true`");
        }
        let propagation = self.text_at("mountPropagation");
        if is_recursive && !matches!(propagation, "" | "None") {
            self.add("`recursiveReadOnly` cannot be used together with `mountPropagation`");
        }
    }

    /// Checks `resources`: valid quantities, known names, and no request above its limit.
    pub(super) fn resources(&mut self) {
        for kind in ["limits", "requests"] {
            self.amounts(kind);
            self.fields(kind, Self::resource);
        }
        let limits = self.get("limits");
        self.fields("requests", |checker, name| {
            checker.request_within_limit(name, limits.and_then(|limits| limits.get(name)));
        });
        let both = [limits, self.get("requests")].into_iter().flatten();
        let quantities = both.filter_map(View::as_object).flatten();
        let mut names = quantities.map(|(name, _)| &**name);
        if names.clone().any(|name| name.starts_with(LARGE_PAGES))
            && !names.any(|name| matches!(name, "cpu" | "memory"))
        {
            self.add("huge pages (`hugepages-*`) require `cpu` or `memory`");
        }
    }

    fn request_within_limit(&mut self, name: &str, limit: Option<&View<'_>>) {
        if limit == Some(self.value) {
            return;
        }
        let limit = limit.and_then(quantity::of_view);
        let request = quantity::of_view(self.value);
        if limit.is_some() && request > limit {
            self.add(format!("the container requests more {name} than its limit"));
        } else if is_device(name) && limit != request {
            // Resources that cannot be overcommitted need a request equal to the limit.
            self.add(format!(
                "the container must request as much {name} as its limit"
            ));
        }
    }

    fn resource(&mut self, name: &str) {
        let amount = quantity::of_view(self.value);
        let is_multiple = |unit: i128| amount.is_none_or(|number| number % unit == 0);
        let pages = name.strip_prefix(LARGE_PAGES).and_then(quantity::of_text);
        if pages.is_some_and(|page| page > 0 && !is_multiple(page)) {
            self.add(format!("`{name}` must be a multiple of its page size"));
        }
        if !name.contains('/') {
            if !RESOURCES.contains(&name) && !name.starts_with(LARGE_PAGES) {
                let known = RESOURCES.join(", ");
                self.add(format!(
                    "`{name}` is not one of {known}, and not the name of a device such as \
                     `example.com/gpu`"
                ));
            }
        } else if is_device(name) && !is_multiple(quantity::NANO_UNITS) {
            self.add(format!("`{name}` must be an integer"));
        } else {
            self.rule(names::check_label_key(name));
        }
    }

    /// Checks that the values of a mapping are quantities and not negative.
    pub(super) fn amounts(&mut self, key: &'static str) {
        self.fields(key, Self::amount);
    }

    fn amount(&mut self, name: &str) {
        let amount = self.value;
        let shown = || match amount.as_str() {
            Some(text) => text.to_owned(),
            None => amount.to_string(),
        };
        match quantity::of_view(amount) {
            None => self.add(format!(
                "`{}` is not a quantity of {name} (such as `500m`, `1.5`, or `64Mi`)",
                shown()
            )),
            Some(number) if number < 0 => {
                self.add(format!(
                    "the quantity `{}` of {name} must not be negative",
                    shown()
                ));
            }
            Some(_) => {}
        }
    }

    fn security_context(&mut self) {
        self.number("runAsUser", 0..=MAX_USER_ID);
        self.number("runAsGroup", 0..=MAX_USER_ID);
        self.word("procMount", &["Default", "Unmasked"]);
        self.profiles();
        let is_admin = self.get("capabilities").is_some_and(|capabilities| {
            let mut added = capabilities.list("add").iter();
            added.any(|capability| capability == "CAP_SYS_ADMIN")
        });
        let is_confined = self.get("allowPrivilegeEscalation") == Some(&View::Bool(false));
        if is_confined && (self.is_true("privileged") || is_admin) {
            self.add(
                "`allowPrivilegeEscalation: false` cannot be used together with `privileged` or \
                 CAP_SYS_ADMIN",
            );
        }
    }

    /// Checks `windowsOptions`, `seccompProfile` and `appArmorProfile` in the security context of a container or a pod.
    pub(super) fn profiles(&mut self) {
        self.visit_key("windowsOptions", |checker| {
            checker.text("gmsaCredentialSpecName", names::check_dns_subdomain);
            for key in ["gmsaCredentialSpec", "runAsUserName"] {
                checker.text(key, |text| require(!text.is_empty(), "must not be empty"));
            }
        });
        for key in ["seccompProfile", "appArmorProfile"] {
            self.visit_key(key, |checker| checker.profile(key));
        }
    }

    fn profile(&mut self, key: &str) {
        self.word("type", &["RuntimeDefault", "Localhost", "Unconfined"]);
        let is_local = self.text_at("type") == "Localhost";
        if is_local == self.is_empty("localhostProfile") {
            self.report_rule("must have `localhostProfile` with `type: Localhost`, and only then");
        }
        self.text("localhostProfile", |name| match key {
            "seccompProfile" => check_descending(name),
            _ if name.trim() != name => Err("must not start or end with whitespace"),
            _ => Ok(()),
        });
    }

    fn duplicate_port(&mut self, seen: &mut SeenPorts<'v>) {
        let value = self.value;
        let number = |key: &str| value.get(key).and_then(View::as_i64).unwrap_or_default();
        let protocol = match value.text("protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        let (port, name) = (number("containerPort"), value.text("name"));
        let host = (number("hostPort"), protocol, value.text("hostIP"));
        let message = || format!("the container has the port {port} or its name twice");
        let is_named_twice = !name.is_empty() && !seen.names.insert(name);
        if is_named_twice || host.0 != 0 && !seen.hosts.insert(host) {
            self.add(message());
        } else if !seen.numbers.insert((port, protocol, host)) {
            // The API server accepts the same port twice if neither name nor host port collide.
            self.likely_mistakes(|checker| checker.add(message()));
        }
    }

    /// Checks for duplicate ports and mounts.
    fn duplicates(&mut self) {
        if self.list("ports").len() > 1 {
            let mut seen = SeenPorts::default();
            self.each("ports", |checker| checker.duplicate_port(&mut seen));
        }
        if self.list("volumeMounts").len() > 1 {
            let mut paths = BTreeSet::new();
            self.each("volumeMounts", |checker| {
                let path = checker.text_at("mountPath");
                if !paths.insert(path.trim_end_matches('/')) {
                    checker.add(format!("the container mounts `{path}` twice"));
                }
            });
        }
    }
}
