//! Validates containers of all kinds and the values in them.

use std::collections::BTreeSet;

use super::{Checker, PathStep, check_descending, is_empty, text_at};
use crate::policy::{names, quantity};
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

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
pub(super) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
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
    pub(super) fn container(&mut self, container: &'v View<'v>, role: ContainerRole) {
        match container.get("name") {
            Some(_) => self.text(container, "name", names::check_dns_label),
            None if role == ContainerRole::Knative => {}
            None => self.add("a container needs a `name`"),
        }
        if is_empty(container.get("image")) {
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
        self.resize_policies(container);
        self.container_fields(container);
        self.probes_and_hooks(container);
        let is_privileged = container["securityContext"]["privileged"] == true;
        self.each(container, "volumeMounts", |checker, mount| {
            if text_at(mount, "mountPropagation") == "Bidirectional" && !is_privileged {
                checker.add("`mountPropagation: Bidirectional` is for privileged containers only");
            }
        });
        self.duplicates(container);
    }

    /// Checks `resizePolicy` (`validateResizePolicy`) and that `restartPolicyRules` come with a `restartPolicy`.
    fn resize_policies(&mut self, container: &'v View<'v>) {
        self.each_once(
            container,
            "resizePolicy",
            "resourceName",
            |checker, policy| {
                checker.word(policy, "resourceName", &["cpu", "memory"]);
                checker.word(
                    policy,
                    "restartPolicy",
                    &["NotRequired", "RestartContainer"],
                );
            },
        );
        let rules = container.get("restartPolicyRules").and_then(View::as_array);
        if rules.is_some_and(|rules| !rules.is_empty()) && is_empty(container.get("restartPolicy"))
        {
            self.add("`restartPolicyRules` need a `restartPolicy` of the container");
        }
    }

    fn forbidden_fields(&mut self, container: &'v View<'v>, role: ContainerRole) {
        let (fields, reason): (&[&'static str], _) = match role {
            ContainerRole::App | ContainerRole::Knative | ContainerRole::NativeSidecar => return,
            ContainerRole::Init => (
                &NOT_INIT,
                "an init container without `restartPolicy: Always` has no",
            ),
            ContainerRole::Ephemeral => (&NOT_EPHEMERAL, "an ephemeral container has no"),
        };
        for &field in fields {
            self.visit_key(container, field, |checker, _| {
                checker.add(format!("{reason} `{field}`"))
            });
        }
        if role == ContainerRole::Ephemeral {
            self.each(container, "volumeMounts", |checker, mount| {
                for field in ["subPath", "subPathExpr"] {
                    checker.visit_key(mount, field, |checker, _| {
                        checker.add(format!("{reason} `{field}`"))
                    });
                }
            });
        }
    }

    /// Checks the fields that `defaults` can set: `resources`, `securityContext`, `imagePullPolicy`.
    pub(super) fn container_fields(&mut self, container: &'v View<'v>) {
        self.word(container, "imagePullPolicy", &PULL_POLICIES);
        self.visit_key(container, "resources", Self::resources);
        self.visit_key(container, "securityContext", Self::security_context);
    }

    pub(super) fn port(&mut self, port: &'v View<'v>) {
        if port.get("containerPort").is_none() {
            self.add("a port needs `containerPort`");
        }
        self.number(port, "containerPort", 1..=65535);
        self.number(port, "hostPort", 0..=65535);
        self.text(port, "name", names::check_port_name);
        self.word(port, "protocol", &PROTOCOLS);
    }

    pub(super) fn env_var(&mut self, variable: &'v View<'v>) {
        self.text(variable, "name", names::check_env_name);
        let source = variable.get("valueFrom").filter(|source| !source.is_null());
        let Some(source) = source else { return };
        if !is_empty(variable.get("value")) {
            let name = text_at(variable, "name");
            self.add(format!(
                "the variable `{name}` has `value` beside `valueFrom`"
            ));
        }
        self.visit_step(PathStep::Key("valueFrom"), |checker| {
            let Some(kind) = checker.one_of(source, &ENV_SOURCES, "`valueFrom`") else {
                return;
            };
            checker.visit_key(source, kind, |checker, source| {
                checker.env_source(kind, source)
            });
        });
    }

    fn env_source(&mut self, kind: &str, source: &'v View<'v>) {
        match kind {
            "fieldRef" => self.field_of_pod(source),
            "fileKeyRef" => self.required_text(source, "path", check_descending),
            "resourceFieldRef" => self.resource_of_container(source),
            "configMapKeyRef" | "secretKeyRef" => {
                self.object(source);
                self.required_text(source, "key", names::check_config_key);
            }
            _ => {}
        }
    }

    fn field_of_pod(&mut self, source: &'v View<'v>) {
        self.word(source, "apiVersion", &["", "v1"]);
        self.visit_key(source, "fieldPath", |checker, path| {
            let Some(path) = path.as_str() else { return };
            let key = ["metadata.labels['", "metadata.annotations['"]
                .iter()
                .find_map(|begin| path.strip_prefix(begin)?.strip_suffix("']"));
            match key {
                Some(key) => checker.rule(names::check_key(key)),
                None if FIELDS.contains(&path) => {}
                None => checker.report_rule(format!(
                    "must be one of {}, metadata.labels['KEY'], metadata.annotations['KEY'], not `{path}`",
                    FIELDS.join(", ")
                )),
            }
        });
    }

    /// Checks a `resourceFieldRef` (`validateContainerResourceFieldSelector`).
    pub(super) fn resource_of_container(&mut self, source: &'v View<'v>) {
        let text = source.get("resource").and_then(View::as_str);
        let (kind, name) = text
            .and_then(|text| text.split_once('.'))
            .unwrap_or_default();
        self.visit_key(source, "resource", |checker, _| {
            let is_known = RESOURCES.contains(&name) || name.starts_with(LARGE_PAGES);
            if let (Some(text), false) = (text, matches!(kind, "limits" | "requests") && is_known) {
                checker.report_rule(format!(
                    "must be limits or requests of cpu, memory, ephemeral-storage, not `{text}`"
                ));
            }
        });
        self.visit_key(source, "divisor", |checker, divisor| {
            checker.divisor(name, divisor)
        });
    }

    fn divisor(&mut self, name: &str, divisor: &View<'_>) {
        let units: &[&str] = match name {
            "cpu" => &["1m", "1"],
            _ => &[
                "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
            ],
        };
        let number = quantity::of_view(divisor);
        let is_unit = |unit: &&str| number.is_some() && quantity::of_text(unit) == number;
        // Zero means the default, which is 1.
        if number != Some(0) && !units.iter().any(is_unit) {
            self.report_rule(format!("must be one of {}", units.join(", ")));
        }
    }

    pub(super) fn env_from(&mut self, source: &'v View<'v>) {
        self.text_or_empty(source, "prefix", names::check_env_name);
        if let Some(kind) = self.one_of(
            source,
            &["configMapRef", "secretRef"],
            "an entry of `envFrom`",
        ) {
            self.visit_key(source, kind, Self::object);
        }
    }

    /// Checks a reference to an object by `name`.
    pub(super) fn object(&mut self, reference: &'v View<'v>) {
        self.required_text(reference, "name", names::check_dns_subdomain);
    }

    pub(super) fn volume_mount(&mut self, mount: &'v View<'v>) {
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
        if !is_empty(mount.get("subPath")) && !is_empty(mount.get("subPathExpr")) {
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
        if is_recursive && mount.get("readOnly") != Some(&View::Bool(true)) {
            self.add("`recursiveReadOnly` needs `readOnly: true`");
        }
        let propagation = text_at(mount, "mountPropagation");
        if is_recursive && !matches!(propagation, "" | "None") {
            self.add("`recursiveReadOnly` does not go with `mountPropagation`");
        }
    }

    /// Checks `resources`: valid quantities, known names, and no request above its limit.
    pub(super) fn resources(&mut self, resources: &'v View<'v>) {
        for kind in ["limits", "requests"] {
            self.amounts(resources, kind);
            self.fields(resources, kind, Self::resource);
        }
        let limits = resources.get("limits");
        self.fields(resources, "requests", |checker, name, request| {
            checker.request_within_limit(name, request, limits.and_then(|limits| limits.get(name)));
        });
        let both = [limits, resources.get("requests")].into_iter().flatten();
        let quantities = both.filter_map(View::as_object).flatten();
        let mut names = quantities.map(|(name, _)| &**name);
        if names.clone().any(|name| name.starts_with(LARGE_PAGES))
            && !names.any(|name| matches!(name, "cpu" | "memory"))
        {
            self.add("large pages (`hugepages-*`) need `cpu` or `memory` beside them");
        }
    }

    fn request_within_limit(&mut self, name: &str, request: &View<'_>, limit: Option<&View<'_>>) {
        if limit == Some(request) {
            return;
        }
        let limit = limit.and_then(quantity::of_view);
        let request = quantity::of_view(request);
        if limit.is_some() && request > limit {
            self.add(format!("the container requests more {name} than its limit"));
        } else if is_device(name) && limit != request {
            // Resources that cannot be overcommitted need a request equal to the limit.
            self.add(format!(
                "the container must request as much {name} as its limit is"
            ));
        }
    }

    fn resource(&mut self, name: &str, amount: &View<'_>) {
        let is_whole =
            || quantity::of_view(amount).is_none_or(|number| number % quantity::NANO_UNITS == 0);
        if !name.contains('/') {
            if !RESOURCES.contains(&name) && !name.starts_with(LARGE_PAGES) {
                let known = RESOURCES.join(", ");
                self.add(format!(
                    "`{name}` is none of {known}, and devices have names such as `example.com/gpu`"
                ));
            }
        } else if is_device(name) && !is_whole() {
            self.add(format!("`{name}` is counted in whole numbers"));
        }
    }

    /// Checks that the values of a mapping are quantities and not negative.
    pub(super) fn amounts(&mut self, holder: &'v View<'v>, key: &'static str) {
        self.fields(holder, key, Self::amount);
    }

    fn amount(&mut self, name: &str, amount: &View<'_>) {
        let shown = || match amount.as_str() {
            Some(text) => text.to_owned(),
            None => amount.to_string(),
        };
        match quantity::of_view(amount) {
            None => self.add(format!(
                "`{}` is no amount of {name} (`500m`, `1.5`, `64Mi`)",
                shown()
            )),
            Some(number) if number < 0 => {
                self.add(format!("`{}` is less than nothing of {name}", shown()));
            }
            Some(_) => {}
        }
    }

    fn security_context(&mut self, context: &'v View<'v>) {
        self.number(context, "runAsUser", 0..=MAX_USER_ID);
        self.number(context, "runAsGroup", 0..=MAX_USER_ID);
        self.word(context, "procMount", &["Default", "Unmasked"]);
        self.profiles(context);
        let is = |key: &str, wanted: bool| context.get(key).and_then(View::as_bool) == Some(wanted);
        let added = context
            .get("capabilities")
            .and_then(|capabilities| capabilities.get("add"))
            .and_then(View::as_array);
        let is_admin =
            added.is_some_and(|added| added.iter().any(|capability| capability == "CAP_SYS_ADMIN"));
        if is("allowPrivilegeEscalation", false) && (is("privileged", true) || is_admin) {
            self.add(
                "`allowPrivilegeEscalation: false` does not go with `privileged` or CAP_SYS_ADMIN",
            );
        }
    }

    /// Checks `seccompProfile` and `appArmorProfile` in the security context of a container or a pod.
    pub(super) fn profiles(&mut self, context: &'v View<'v>) {
        for key in ["seccompProfile", "appArmorProfile"] {
            self.visit_key(context, key, |checker, profile| {
                checker.profile(key, profile)
            });
        }
    }

    fn profile(&mut self, key: &str, profile: &'v View<'v>) {
        self.word(
            profile,
            "type",
            &["RuntimeDefault", "Localhost", "Unconfined"],
        );
        let is_local = profile.get("type").is_some_and(|kind| kind == "Localhost");
        if is_local == is_empty(profile.get("localhostProfile")) {
            self.report_rule("has `localhostProfile` with `type: Localhost`, and only then");
        }
        self.text(profile, "localhostProfile", |name| match key {
            "seccompProfile" => check_descending(name),
            _ if name.trim() != name => Err("must have no blanks around it"),
            _ => Ok(()),
        });
    }

    fn duplicate_port(&mut self, port: &'v View<'v>, seen: &mut SeenPorts<'v>) {
        let text = |key: &str| text_at(port, key);
        let number = |key: &str| port.get(key).and_then(View::as_i64).unwrap_or_default();
        let protocol = match text("protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        let (port, name) = (number("containerPort"), text("name"));
        let host = (number("hostPort"), protocol, text("hostIP"));
        let message = || format!("the container states the port {port} or its name twice");
        let is_named_twice = !name.is_empty() && !seen.names.insert(name);
        if is_named_twice || host.0 != 0 && !seen.hosts.insert(host) {
            self.add(message());
        } else if !seen.numbers.insert((port, protocol, host)) {
            // The API server accepts the same port twice if neither name nor host port collide.
            self.report_likely_mistake(message());
        }
    }

    /// Checks for duplicate ports and mounts.
    fn duplicates(&mut self, container: &'v View<'v>) {
        let has_several = |key: &str| {
            let list = container.get(key).and_then(View::as_array);
            list.is_some_and(|list| list.len() > 1)
        };
        if has_several("ports") {
            let mut seen = SeenPorts::default();
            self.each(container, "ports", |checker, port| {
                checker.duplicate_port(port, &mut seen)
            });
        }
        if has_several("volumeMounts") {
            let mut paths = BTreeSet::new();
            self.each(container, "volumeMounts", |checker, mount| {
                let path = text_at(mount, "mountPath");
                if !paths.insert(path.trim_end_matches('/')) {
                    checker.add(format!("the container mounts `{path}` twice"));
                }
            });
        }
    }
}
