//! Changes a pod for one language. The steps and their order are those of the operator's `sdk.go`.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::agents::loading_variables;
use super::annotations::Annotations;
use super::attributes::{Attributes, owner_key};
use super::env::{Env, field, variable};
use super::language::Language;
use super::pod::{ContainerPosition, InstrumentedContainer, InstrumentedPod};
use super::release::OperatorSettings;
use super::resource::{Instrumentation, LanguageAgent};
use crate::diagnostic::Code;
use crate::policy::images::ImageMirror;
use crate::policy::mutation::{PodFacts, Remark};
use crate::yaml::value::Path;

/// The injection of one language into a pod, with everything that its steps read.
pub(super) struct Injector<'i> {
    pub language: Language,
    /// The resource that the pod requests for the language.
    pub resource: &'i Instrumentation,
    pub facts: &'i PodFacts<'i>,
    pub annotations: Annotations<'i>,
    pub settings: &'i OperatorSettings,
    pub mirrors: &'i Arc<[ImageMirror]>,
    pub pod: &'i mut InstrumentedPod,
    pub remarks: &'i mut Vec<Remark>,
}

pub(super) const POD_IP: &str = "OTEL_POD_IP";
pub(super) const NODE_IP: &str = "OTEL_NODE_IP";
pub(super) const POD_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_POD_NAME";
pub(super) const POD_UID: &str = "OTEL_RESOURCE_ATTRIBUTES_POD_UID";
pub(super) const NODE_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";
pub(super) const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
pub(super) const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// The address variables, in the order in which the operator inserts them.
pub(super) fn addresses() -> [Value; 2] {
    [
        field(POD_IP, "status.podIP"),
        field(NODE_IP, "status.hostIP"),
    ]
}

impl Injector<'_> {
    /// Injects the language into the named containers, or into the first app container if no name is given.
    pub(super) fn inject(&mut self, mut names: Vec<String>) {
        if names.is_empty() {
            names.push(self.pod.apps[0].name().to_owned());
        }
        match (self.language, self.resource.agent(self.language)) {
            (Language::Go, Some(agent)) => self.go(agent, &names),
            (Language::ApacheHttpd | Language::Nginx, Some(agent)) => self.web(agent, &names),
            (Language::Sdk, _) | (_, None) => {
                for at in self.targets(&names) {
                    self.pod.get_mut(at).unshare();
                    self.common(at);
                    self.sdk(at, at);
                }
            }
            (_, Some(agent)) => self.agent(agent, &names),
        }
    }

    /// The positions of the named containers: init containers in the pod's order, then app containers in the order of
    /// the names.
    pub(super) fn targets(&self, names: &[String]) -> Vec<ContainerPosition> {
        let place = |name: &String| {
            let init = self.pod.find_init(name).unwrap_or(usize::MAX);
            Some((init, self.pod.find(name)?))
        };
        let mut targets: Vec<_> = names.iter().filter_map(place).collect();
        targets.sort_by_key(|(init, _)| *init);
        targets.into_iter().map(|(_, at)| at).collect()
    }

    /// Injects an agent that an init container copies: Java, Node.js, Python, .NET.
    fn agent(&mut self, agent: &LanguageAgent, names: &[String]) {
        let targets = self.targets(names);
        let Some(&first) = targets.first() else {
            return;
        };
        for &at in &targets {
            match self.refusal_reason(agent, at) {
                Some(reason) => self.warn_refused(at, &reason),
                None => {
                    self.warn_hidden_env(at);
                    self.add_env_and_mount(agent, at);
                    self.common(at);
                    self.defaults(agent, at);
                    self.sdk(at, at);
                }
            }
        }
        self.add_agent(agent, first);
    }

    /// Warns that a container is not instrumented. The operator still adds the init container and the volume to the
    /// pod.
    fn warn_refused(&mut self, at: ContainerPosition, reason: &str) {
        let (container, language) = (self.pod.get(at).name(), self.language);
        let message = format!(
            "container `{container}` of {{}} is not instrumented for {language}: {reason}; as with \
             the operator, the pod still gets the init container and the volume"
        );
        let help = "fix the cause, or remove the annotation";
        self.warn(Code::NotInstrumented, self.place(at), message, help);
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, code: Code, at: Option<Path>, message: String, help: &str) {
        let remark = Remark::warning(code, message).at(at);
        self.remarks.push(remark.help(help));
    }

    /// The path of a container in the pod template.
    pub(super) fn place(&self, at: ContainerPosition) -> Option<Path> {
        let (list, index) = match at {
            ContainerPosition::Init(index) => ("initContainers", index),
            ContainerPosition::App(index) => ("containers", index),
        };
        Some(Path::of(&["spec", list]).index(index))
    }

    /// The resource's `initContainerSecurityContext`, or else the security context of a container.
    pub(super) fn security_context(&self, at: ContainerPosition) -> Option<Value> {
        let configured = self.resource.init_security_context.clone();
        configured.or_else(|| self.pod.get(at).field("securityContext").cloned())
    }

    /// The image, rewritten by the first mirror that matches.
    pub(super) fn image(&self, image: &str) -> String {
        mirrored(image, self.mirrors)
    }

    /// Prepends the address variables and appends the resource's own variables.
    pub(super) fn common(&mut self, at: ContainerPosition) {
        let env = &mut self.pod.get_mut(at).env;
        addresses()
            .into_iter()
            .for_each(|address| env.prepend_unset(address));
        env.append_unset(&self.resource.env);
    }

    /// Adds the variables of every language to container `to`. They describe container `app`, which is another one for
    /// sidecars.
    pub(super) fn sdk(&mut self, to: ContainerPosition, app: ContainerPosition) {
        let resource = self.resource;
        let mut attributes = self.attributes(app);
        let service = variable(SERVICE_NAME, &self.service_name(&attributes, app));
        if !self.pod.get(to).env.has(SERVICE_NAME) {
            self.warn_of_service_name(&attributes, app);
            self.pod.get_mut(to).env.append(service);
        }
        self.exporter(to);
        let version = self.service_version(app);
        let node = attributes.get("k8s.node.name").is_none_or(String::is_empty);
        let uid = attributes.get("k8s.pod.uid").is_none_or(String::is_empty);
        let env = &mut self.pod.get_mut(to).env;
        env.append(field(POD_NAME, "metadata.name"));
        let mut set = |key: &str, value: String| drop(attributes.insert(key.to_owned(), value));
        set("k8s.pod.name", format!("$({POD_NAME})"));
        if resource.adds_uids && uid {
            env.append(field(POD_UID, "metadata.uid"));
            set("k8s.pod.uid", format!("$({POD_UID})"));
        }
        // Like the operator, a plain substring search.
        let stated = env.text(ATTRIBUTES).unwrap_or_default();
        let states_version = stated.contains("service.version");
        if let Some(version) = version.filter(|_| !states_version) {
            set("service.version", version);
        }
        if node {
            env.append(field(NODE_NAME, "spec.nodeName"));
            set("k8s.node.name", format!("$({NODE_NAME})"));
        }
        add_attributes(env, &attributes);
        add_traces(env, resource);
        // `$(VAR)` is expanded only if VAR is defined earlier in the list.
        env.move_to_end(ATTRIBUTES);
    }

    /// Adds the exporter's endpoint and its TLS files.
    fn exporter(&mut self, to: ContainerPosition) {
        let resource = self.resource;
        let env = &mut self.pod.get_mut(to).env;
        if !resource.endpoint.is_empty() {
            env.append_unset(&[variable("OTEL_EXPORTER_OTLP_ENDPOINT", &resource.endpoint)]);
        }
        let Some(tls) = &resource.tls else { return };
        let folder = |kind: &str, name: &str| format!("/otel-auto-instrumentation-{kind}-{name}");
        let (secrets, config) = (
            folder("secret", &tls.secret),
            folder("configmap", &tls.config_map),
        );
        // The CA file is in the ConfigMap if there is one, else in the Secret. Certificate and key are in the Secret.
        let authority = match tls.config_map.as_str() {
            "" => &secrets,
            _ => &config,
        };
        for (name, folder, file) in [
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", authority, &tls.ca),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &secrets, &tls.cert),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &secrets, &tls.key),
        ] {
            if !file.is_empty() {
                let path = match file.starts_with('/') {
                    true => file.clone(),
                    false => format!("{folder}/{file}"),
                };
                env.append_unset(&[variable(name, &path)]);
            }
        }
        for (volume, path) in tls.volumes().into_iter().zip([secrets, config]) {
            let Some(volume) = volume else { continue };
            let mount = json!({"name": volume["name"], "mountPath": path, "readOnly": true});
            let is_same = |other: &Value| other["name"] == volume["name"];
            // Once per container, and the volume once per pod.
            let mounts = &mut self.pod.get_mut(to).mounts;
            if !mounts.iter().any(is_same) {
                mounts.push(mount);
            }
            if !self.pod.volumes.iter().any(is_same) {
                self.pod.volumes.push(volume);
            }
        }
    }

    /// Warns of `envFrom`: a variable that it defines is not visible here, and the agent's variable of the same name
    /// would override it.
    fn warn_hidden_env(&mut self, at: ContainerPosition) {
        let container = self.pod.get(at);
        let sources = container.field("envFrom").and_then(Value::as_array);
        let loading = loading_variables(self.language).first();
        let Some(name) = loading.filter(|name| !container.env.has(name)) else {
            return;
        };
        if sources.is_none_or(Vec::is_empty) {
            return;
        }
        let message = format!(
            "container `{}` of {{}} has `envFrom`: a `{name}` in it is hidden by the one set here, \
             as with the operator",
            container.name()
        );
        let help =
            format!("set `{name}` in the container's `env`, so that it is kept and extended");
        self.warn(Code::HiddenEnv, self.place(at), message, &help);
    }

    /// Warns if the service gets the container's name instead of the owner's. The operator drops the owner's attribute
    /// if the container states it itself, and then cannot use it as the name. Owners of other kinds have no attribute.
    fn warn_of_service_name(&mut self, attributes: &Attributes, app: ContainerPosition) {
        if self.stated_service_name(attributes).is_some() {
            return;
        }
        let reason = match owner_key(self.facts.kind) {
            Some(key) if self.facts.name.is_some() && !attributes.contains_key(&key) => {
                format!("its {ATTRIBUTES} sets {key}, which the operator then ignores")
            }
            Some(_) if self.facts.name.is_some() => return,
            Some(_) => format!(
                "the cluster generates the name of the {} (`generateName`), which the operator \
                 uses there",
                self.facts.kind
            ),
            None => format!(
                "the operator does not use the name of a {}",
                self.facts.kind
            ),
        };
        let container = self.pod.get(app).name();
        let message = format!(
            "the service name of container `{container}` of {{}} becomes `{container}`, the \
             container's own name: {reason}"
        );
        let help =
            "set OTEL_SERVICE_NAME, or the annotation resource.opentelemetry.io/service.name";
        self.warn(Code::ServiceName, self.place(app), message, help);
    }

    /// Warns that a pod is not instrumented for a language.
    pub(super) fn warn_not_instrumented(&mut self, at: Option<Path>, reason: &str, help: &str) {
        let language = self.language;
        let message = format!("{{}} is not instrumented for {language}: {reason}");
        let at = at.or_else(|| self.annotations.place(language.inject_key()));
        self.warn(Code::NotInstrumented, at, message, help);
    }

    /// Inserts an init container before another, or at the end. Returns what [`InstrumentedPod::insert_init`] returns.
    pub(super) fn insert_init(&mut self, container: &Value, before: &str) -> bool {
        let at = self.pod.find_init(before).unwrap_or(self.pod.init.len());
        InstrumentedContainer::read(container)
            .is_some_and(|container| self.pod.insert_init(at, container))
    }
}

/// The image, rewritten by the first mirror that matches.
pub(super) fn mirrored(image: &str, mirrors: &[ImageMirror]) -> String {
    let mirrored = mirrors.iter().find_map(|mirror| mirror.rewrite(image));
    mirrored.unwrap_or_else(|| image.to_owned())
}

/// Appends the attributes to `OTEL_RESOURCE_ATTRIBUTES`.
fn add_attributes(env: &mut Env, attributes: &BTreeMap<String, String>) {
    let pairs = attributes
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    let ours = pairs.collect::<Vec<_>>().join(",");
    env.extend(ATTRIBUTES, &ours, |theirs| {
        let comma = if theirs.ends_with(',') { "" } else { "," };
        format!("{theirs}{comma}{ours}")
    });
}

fn add_traces(env: &mut Env, resource: &Instrumentation) {
    if !env.has("OTEL_PROPAGATORS") && !resource.propagators.is_empty() {
        let propagators = resource.propagators.join(",");
        env.append(variable("OTEL_PROPAGATORS", &propagators));
    }
    let (sampler, argument) = ("OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG");
    if !resource.sampler.is_empty() && !env.has(sampler) && !env.has(argument) {
        env.append(variable(sampler, &resource.sampler));
        if !resource.sampler_argument.is_empty() {
            env.append(variable(argument, &resource.sampler_argument));
        }
    }
}
