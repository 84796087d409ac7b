//! Containers of all sorts, and what stands in them.

use serde_json::Value;
use std::collections::BTreeSet;

use super::{Checker, check_descending};
use crate::policy::{names, quantity};

/// Which list a container stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// One of `containers`.
    App,
    /// One of `initContainers` that ends.
    Init,
    /// One of `initContainers` with `restartPolicy: Always`.
    NativeSidecar,
    /// One of `ephemeralContainers`.
    Ephemeral,
}

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
/// `allowedEphemeralContainerFields` of Kubernetes.
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
/// `validateInitContainers` of Kubernetes.
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
/// What the downward API offers to variables (`validEnvDownwardAPIFieldPathExpressions`); labels and annotations by key.
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
const MOST_USER: i64 = i32::MAX as i64;

impl<'v> Checker<'v> {
    pub(super) fn container(&mut self, container: &'v Value, role: Role) {
        match container.get("name") {
            Some(_) => self.text(container, "name", names::check_dns_label),
            None => self.add("a container needs a `name`"),
        }
        if super::is_empty(container.get("image")) {
            self.add("the container needs an `image`");
        }
        self.text(container, "image", |image| {
            match image.contains(char::is_whitespace) {
                true => Err("must have no blanks"),
                false => Ok(()),
            }
        });
        self.forbidden_fields(container, role);
        self.word(container, "restartPolicy", &RESTART_POLICIES);
        self.word(
            container,
            "terminationMessagePolicy",
            &["File", "FallbackToLogsOnError"],
        );
        self.each(container, "ports", Self::port);
        self.each(container, "env", Self::env_var);
        self.each(container, "envFrom", Self::env_from);
        self.each(container, "volumeMounts", Self::volume_mount);
        self.container_fields(container);
        self.probes_and_hooks(container);
        let is_privileged =
            container.pointer("/securityContext/privileged") == Some(&Value::Bool(true));
        self.each(container, "volumeMounts", |checker, mount| {
            if mount
                .get("mountPropagation")
                .is_some_and(|word| word == "Bidirectional")
                && !is_privileged
            {
                checker.add("`mountPropagation: Bidirectional` is for privileged containers only");
            }
        });
        self.twice(container);
    }

    fn forbidden_fields(&mut self, container: &'v Value, role: Role) {
        let (fields, why): (&[&'static str], _) = match role {
            Role::App | Role::NativeSidecar => return,
            Role::Init => (
                &NOT_INIT,
                "an init container without `restartPolicy: Always` has no",
            ),
            Role::Ephemeral => (&NOT_EPHEMERAL, "an ephemeral container has no"),
        };
        for &field in fields {
            self.under(container, field, |checker, _| {
                checker.add(format!("{why} `{field}`"))
            });
        }
        if role == Role::Ephemeral {
            self.each(container, "volumeMounts", |checker, mount| {
                for field in ["subPath", "subPathExpr"] {
                    checker.under(mount, field, |checker, _| {
                        checker.add(format!("{why} `{field}`"))
                    });
                }
            });
        }
    }

    /// `resources`, `securityContext`, `imagePullPolicy`.
    pub(super) fn container_fields(&mut self, container: &'v Value) {
        self.word(container, "imagePullPolicy", &PULL_POLICIES);
        self.under(container, "resources", Self::resources);
        self.under(container, "securityContext", Self::security_context);
    }

    pub(super) fn port(&mut self, port: &'v Value) {
        if port.get("containerPort").is_none() {
            self.add("a port needs `containerPort`");
        }
        self.number(port, "containerPort", (1, 65535));
        self.number(port, "hostPort", (0, 65535));
        self.text(port, "name", names::check_port_name);
        self.word(port, "protocol", &PROTOCOLS);
    }

    pub(super) fn env_var(&mut self, variable: &'v Value) {
        let name = variable
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.text(variable, "name", names::check_env_name);
        let source = variable.get("valueFrom").filter(|source| !source.is_null());
        if source.is_some() && !super::is_empty(variable.get("value")) {
            self.add(format!(
                "the variable `{name}` has `value` beside `valueFrom`"
            ));
        }
        self.under(variable, "valueFrom", |checker, source| {
            let Some(kind) = checker.one_of(source, &ENV_SOURCES, "`valueFrom`") else {
                return;
            };
            checker.under(source, kind, |checker, source| {
                checker.env_source(kind, source)
            });
        });
    }

    fn env_source(&mut self, kind: &str, source: &'v Value) {
        match kind {
            "fieldRef" => self.under(source, "fieldPath", |checker, path| {
                let Some(path) = path.as_str() else { return };
                let key = ["metadata.labels['", "metadata.annotations['"]
                    .iter()
                    .find_map(|begin| path.strip_prefix(begin)?.strip_suffix("']"));
                match key {
                    Some(key) => checker.rule(names::check_key(key)),
                    None if FIELDS.contains(&path) => {}
                    None => checker.must(format!(
                        "must be one of {}, metadata.labels['KEY'], metadata.annotations['KEY'], not `{path}`",
                        FIELDS.join(", ")
                    )),
                }
            }),
            "resourceFieldRef" => self.under(source, "resource", |checker, resource| {
                let Some(text) = resource.as_str() else { return };
                let (kind, name) = text.split_once('.').unwrap_or((text, ""));
                let is_known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
                if !matches!(kind, "limits" | "requests") || !is_known {
                    checker.must(format!("must be limits or requests of cpu, memory, ephemeral-storage, not `{text}`"));
                }
            }),
            "configMapKeyRef" | "secretKeyRef" => {
                self.object(source);
                self.needs_text(source, "key");
                self.text(source, "key", |key| if key.is_empty() { Ok(()) } else { names::check_config_key(key) });
            }
            _ => {}
        }
    }

    pub(super) fn env_from(&mut self, source: &'v Value) {
        self.text(source, "prefix", |prefix| {
            if prefix.is_empty() {
                Ok(())
            } else {
                names::check_env_name(prefix)
            }
        });
        if let Some(kind) = self.one_of(
            source,
            &["configMapRef", "secretRef"],
            "an entry of `envFrom`",
        ) {
            self.under(source, kind, Self::object);
        }
    }

    /// A reference to an object by `name`.
    pub(super) fn object(&mut self, reference: &'v Value) {
        self.needs_text(reference, "name");
        self.text(reference, "name", |name| {
            if name.is_empty() {
                Ok(())
            } else {
                names::check_dns_subdomain(name)
            }
        });
    }

    pub(super) fn volume_mount(&mut self, mount: &'v Value) {
        if mount.get("mountPath").is_none() {
            self.add("a mount needs `mountPath`");
        }
        self.text(mount, "mountPath", |path| {
            match path.is_empty() || path.contains(':') {
                true => Err("must not be empty and have no `:`"),
                false => Ok(()),
            }
        });
        self.text(mount, "name", names::check_dns_label);
        for key in ["subPath", "subPathExpr"] {
            self.text(mount, key, check_descending);
        }
        if !super::is_empty(mount.get("subPath")) && !super::is_empty(mount.get("subPathExpr")) {
            self.add("a mount has either `subPath` or `subPathExpr`");
        }
        self.word(
            mount,
            "mountPropagation",
            &["None", "HostToContainer", "Bidirectional"],
        );
        self.word(
            mount,
            "recursiveReadOnly",
            &["Disabled", "IfPossible", "Enabled"],
        );
        let is_recursive = mount
            .get("recursiveReadOnly")
            .is_some_and(|word| word != "Disabled" && !word.is_null());
        if is_recursive && mount.get("readOnly") != Some(&Value::Bool(true)) {
            self.add("`recursiveReadOnly` needs `readOnly: true`");
        }
    }

    /// Amounts that are none, and requests above limits.
    fn resources(&mut self, resources: &'v Value) {
        for kind in ["limits", "requests"] {
            self.fields(resources, kind, |checker, name, amount| {
                let shown = || {
                    amount
                        .as_str()
                        .map_or_else(|| amount.to_string(), str::to_owned)
                };
                match quantity::parse(amount) {
                    None => checker.add(format!(
                        "`{}` is no amount of {name} (`500m`, `1.5`, `64Mi`)",
                        shown()
                    )),
                    Some(number) if number < 0 => {
                        checker.add(format!("`{}` is less than nothing of {name}", shown()));
                    }
                    Some(_) => {}
                }
            });
        }
        let limits = resources.get("limits");
        self.fields(resources, "requests", |checker, name, request| {
            let limit = limits
                .and_then(|limits| limits.get(name))
                .and_then(quantity::parse);
            let request = quantity::parse(request);
            if limit.is_some() && request > limit {
                checker.add(format!("the container requests more {name} than its limit"));
            } else if limit.is_some() && request != limit && name.contains('/') {
                // Resources of devices are not overcommitted.
                checker.add(format!(
                    "the container requests less {name} than its limit, and must request the same"
                ));
            }
        });
    }

    fn security_context(&mut self, context: &'v Value) {
        self.number(context, "runAsUser", (0, MOST_USER));
        self.number(context, "runAsGroup", (0, MOST_USER));
        self.word(context, "procMount", &["Default", "Unmasked"]);
        self.profiles(context);
        let is =
            |key: &str, wanted: bool| context.get(key).and_then(Value::as_bool) == Some(wanted);
        let added = context
            .get("capabilities")
            .and_then(|all| all.get("add"))
            .and_then(Value::as_array);
        let is_admin = added.is_some_and(|added| added.iter().any(|one| one == "CAP_SYS_ADMIN"));
        if is("allowPrivilegeEscalation", false) && (is("privileged", true) || is_admin) {
            self.add(
                "`allowPrivilegeEscalation: false` does not go with `privileged` or CAP_SYS_ADMIN",
            );
        }
    }

    /// Of containers and pods alike.
    pub(super) fn profiles(&mut self, context: &'v Value) {
        for key in ["seccompProfile", "appArmorProfile"] {
            self.under(context, key, |checker, profile| {
                checker.word(
                    profile,
                    "type",
                    &["RuntimeDefault", "Localhost", "Unconfined"],
                );
                let is_local = profile.get("type").is_some_and(|kind| kind == "Localhost");
                if is_local == super::is_empty(profile.get("localhostProfile")) {
                    checker.must("has `localhostProfile` with `type: Localhost`, and only then");
                }
            });
        }
    }

    /// What stands twice in one container.
    fn twice(&mut self, container: &'v Value) {
        let (mut names, mut hosts, mut numbers) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        self.each(container, "ports", |checker, port| {
            let text = |key: &str| port.get(key).and_then(Value::as_str).unwrap_or_default();
            let number = |key: &str| port.get(key).and_then(Value::as_i64).unwrap_or_default();
            let protocol = if text("protocol").is_empty() {
                "TCP"
            } else {
                text("protocol")
            };
            let host = (number("hostPort"), protocol, text("hostIP"));
            let message = || {
                format!(
                    "the container states the port {} or its name twice",
                    number("containerPort")
                )
            };
            let is_named_twice = !text("name").is_empty() && !names.insert(text("name"));
            if is_named_twice || host.0 != 0 && !hosts.insert(host) {
                checker.add(message());
            } else if !numbers.insert((number("containerPort"), protocol, host)) {
                checker.advise(message());
            }
        });
        let mut paths = BTreeSet::new();
        self.each(container, "volumeMounts", |checker, mount| {
            let path = mount
                .get("mountPath")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if !paths.insert(path.trim_end_matches('/')) {
                checker.add(format!("the container mounts `{path}` twice"));
            }
        });
    }
}
