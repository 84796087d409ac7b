//! Injects the agents that an init container copies into a volume: Java, Node.js, Python, .NET.

use serde_json::{Value, json};

use super::env::variable;
use super::injector::Injector;
use super::language::{Language, annotation};
use super::pod::ContainerPosition;
use super::resource::LanguageAgent;
use crate::diagnostic::Code;

/// The size limit of an agent's volume if the resource states none. The operator's default.
const VOLUME_SIZE: &str = "200Mi";

const AUTO_HOME: &str = "OTEL_DOTNET_AUTO_HOME";

impl Injector<'_> {
    /// Why the operator does not instrument a container for the language; `None` if it does.
    pub(super) fn refusal_reason(
        &self,
        agent: &LanguageAgent,
        at: ContainerPosition,
    ) -> Option<String> {
        let env = &self.pod.get(at).env;
        let mut loading = loading_variables(self.language).iter();
        if let Some(name) = loading.find(|name| env.is_from_elsewhere(name)) {
            return Some(format!("its {name} comes from `valueFrom`"));
        }
        if self.language == Language::DotNet {
            if env.has(AUTO_HOME) {
                return Some(format!("it already has {AUTO_HOME}"));
            }
            if agent.env.iter().any(|item| item["name"] == AUTO_HOME) {
                return Some(format!("`dotnet.env` of the resource has {AUTO_HOME}"));
            }
        }
        let (key, known) = platform(self.language)?;
        let stated = self.annotations.value(&key);
        (!stated.is_empty() && !known.contains(&stated))
            .then(|| format!("`{key}: {stated}` is not one of {}", known.join(", ")))
    }

    /// Adds the resource's variables for the language and the mount of the agent's volume.
    pub(super) fn add_env_and_mount(&mut self, agent: &LanguageAgent, at: ContainerPosition) {
        let path = self.mount_path(at);
        let container = self.pod.get_mut(at);
        container.env.append_unset(&agent.env);
        // The operator extends PYTHONPATH on both sides: its own `sitecustomize` must be found first.
        if self.language == Language::Python {
            let first = format!("{path}/opentelemetry/instrumentation/auto_instrumentation");
            let both = format!("{first}:{path}");
            let around = |existing| format!("{first}:{existing}:{path}");
            container.env.extend("PYTHONPATH", &both, around);
        }
        container
            .mounts
            .push(json!({"name": self.language.agent_name(), "mountPath": path}));
    }

    /// Where a container mounts the agent's volume. Only Java's path has the container's name.
    fn mount_path(&self, at: ContainerPosition) -> String {
        let path = self.language.agent_path();
        match self.language {
            Language::Java => format!("{path}-{}", self.pod.get(at).name()),
            _ => path,
        }
    }

    /// Adds the variables that load the agent.
    pub(super) fn defaults(&mut self, agent: &LanguageAgent, at: ContainerPosition) {
        let path = self.mount_path(at);
        let platform = platform(self.language).map(|(key, _)| self.annotations.value(&key));
        let system = match platform {
            Some("linux-musl-x64") => "linux-musl",
            _ => "linux",
        };
        for AgentVariable {
            name,
            mut text,
            separator,
        } in agent_variables(self.language, &path, system)
        {
            if self.language == Language::Java && !agent.extensions.is_empty() {
                text.push_str(&format!(" -Dotel.javaagent.extensions={path}/extensions"));
            }
            let env = &mut self.pod.get_mut(at).env;
            match separator {
                None => env.append_unset(&[variable(name, &text)]),
                // The operator leaves a variable with `valueFrom` unchanged.
                Some(_) if env.is_from_elsewhere(name) => self.warn_not_loaded(at, name),
                // As with the operator, options begin with a blank even if they are the first.
                Some(" ") => env.extend(name, &format!(" {text}"), |existing| {
                    format!("{existing} {text}")
                }),
                Some(separator) => env.extend(name, &text, |existing| {
                    format!("{existing}{separator}{text}")
                }),
            }
        }
    }

    /// The command of the init container, which copies the agent's files into the volume.
    fn copy_command(&self, path: &str) -> Value {
        if self.language == Language::Java {
            return json!(["cp", "/javaagent.jar", format!("{path}/javaagent.jar")]);
        }
        let (key, _) = platform(self.language).unwrap_or_default();
        let source = match (self.language, self.annotations.value(&key)) {
            (Language::Python, "musl") => "/autoinstrumentation-musl/.",
            // For an unknown platform the operator copies nothing. `refusal_reason` has warned about it.
            (Language::Python, other) if !matches!(other, "" | "glibc") => "",
            _ => "/autoinstrumentation/.",
        };
        json!(["cp", "-r", source, path])
    }

    /// Adds the volume and the init container that fills it, once per pod.
    pub(super) fn add_agent(&mut self, agent: &LanguageAgent, first: ContainerPosition) {
        let (language, resource) = (self.language, self.resource);
        let name = language.agent_name();
        if self.pod.find_init(&name).is_some() {
            return;
        }
        let context = self.security_context(first);
        self.pod.volumes.push(volume(&name, agent));
        let before = self.pod.get(first).name().to_owned();
        let path = language.agent_path();
        let mount = json!({"name": name, "mountPath": path});
        let mut copying = resource.container(&name, &self.image(&agent.image));
        copying["command"] = self.copy_command(&path);
        complete_copying(&mut copying, agent, &mount, context.as_ref());
        let is_within = self.insert_init(&copying, &before);
        // The operator sets Java's security context before it inserts the container, that of the others afterwards.
        if is_within && language != Language::Java && context != resource.init_security_context {
            self.drop_security_context(&name);
        }
        for (index, (image, folder)) in agent.extensions.iter().enumerate() {
            let name = format!("opentelemetry-auto-instrumentation-extension-{index}");
            let (from, to) = (format!("{folder}/."), format!("{path}/extensions"));
            let command = ["cp", "-r", &from, &to];
            let image = self.image(image);
            let mut extension = json!({"name": name, "image": image, "command": command});
            complete_copying(&mut extension, agent, &mount, context.as_ref());
            self.insert_init(&extension, &before);
        }
    }

    /// Warns of a `valueFrom` in the Instrumentation. If the container itself has it, `refusal_reason` reports it; for
    /// the resource the operator logs nothing.
    fn warn_not_loaded(&mut self, at: ContainerPosition, name: &str) {
        let message = format!(
            "container `{}` of {{}} gets the agent but does not load it: the Instrumentation sets \
             {name} with `valueFrom`, which the operator does not change",
            self.pod.get(at).name()
        );
        let help = format!("set {name} with `value` in the Instrumentation");
        self.warn(Code::NotInstrumented, self.place(at), message, &help);
    }

    /// Imitates an effect of Go slices: the operator reads the security context of the first container through its old
    /// place in the slice, where the new init container is now if the slice did not have to grow.
    fn drop_security_context(&mut self, name: &str) {
        if let Some(at) = self.pod.find_init(name) {
            let stated = self.resource.init_security_context.clone();
            self.pod.init[at].set("securityContext", stated);
        }
        let message = format!(
            "init container `{name}` of {{}} gets no security context, although the container that \
             it is for has one; the operator does the same when its list of init containers has \
             room for one more"
        );
        let help = "set `initContainerSecurityContext` in the Instrumentation";
        self.warn(Code::OddResult, None, message, help);
    }
}

/// The variables through which a runtime loads its agent.
pub(super) fn loading_variables(language: Language) -> &'static [&'static str] {
    match language {
        Language::Java => &["JAVA_TOOL_OPTIONS"],
        Language::NodeJs => &["NODE_OPTIONS"],
        Language::Python => &["PYTHONPATH"],
        Language::DotNet => &[
            "DOTNET_STARTUP_HOOKS",
            "DOTNET_ADDITIONAL_DEPS",
            "DOTNET_SHARED_STORE",
        ],
        Language::Go | Language::ApacheHttpd | Language::Nginx | Language::Sdk => &[],
    }
}

/// A variable that loads an agent, or that the agent needs.
pub(super) struct AgentVariable {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
    /// What separates the text from one that is there already; `None` if the latter stays as it is.
    pub separator: Option<&'static str>,
}

impl AgentVariable {
    fn added(name: &'static str, separator: &'static str, text: String) -> Self {
        AgentVariable {
            name,
            text,
            separator: Some(separator),
        }
    }

    fn unset(name: &'static str, text: &str) -> Self {
        AgentVariable {
            name,
            text: text.to_owned(),
            separator: None,
        }
    }
}

/// The variables of an agent in a folder, but `PYTHONPATH`. `system` is the platform of .NET's native library.
pub(super) fn agent_variables(language: Language, path: &str, system: &str) -> Vec<AgentVariable> {
    let in_path = |name, file: &str| AgentVariable::added(name, ":", format!("{path}/{file}"));
    let library = format!("{path}/{system}/OpenTelemetry.AutoInstrumentation.Native.so");
    let hook = "net/OpenTelemetry.AutoInstrumentation.StartupHook.dll";
    match language {
        Language::Java => vec![AgentVariable::added(
            "JAVA_TOOL_OPTIONS",
            " ",
            format!("-javaagent:{path}/javaagent.jar"),
        )],
        Language::NodeJs => vec![
            AgentVariable::added(
                "NODE_OPTIONS",
                " ",
                format!("--require {path}/autoinstrumentation.js"),
            ),
            AgentVariable::unset("OTEL_METRICS_EXPORTER", "otlp"),
        ],
        Language::Python => vec![
            AgentVariable::unset("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            AgentVariable::unset("OTEL_TRACES_EXPORTER", "otlp"),
            AgentVariable::unset("OTEL_METRICS_EXPORTER", "otlp"),
            AgentVariable::unset("OTEL_LOGS_EXPORTER", "otlp"),
        ],
        Language::DotNet => vec![
            AgentVariable::unset("CORECLR_ENABLE_PROFILING", "1"),
            AgentVariable::unset("CORECLR_PROFILER", "{918728DD-259F-4A6A-AC2B-B85E1B658318}"),
            AgentVariable::unset("CORECLR_PROFILER_PATH", &library),
            in_path("DOTNET_STARTUP_HOOKS", hook),
            in_path("DOTNET_ADDITIONAL_DEPS", "AdditionalDeps"),
            AgentVariable::unset(AUTO_HOME, path),
            in_path("DOTNET_SHARED_STORE", "store"),
        ],
        Language::Go | Language::ApacheHttpd | Language::Nginx | Language::Sdk => Vec::new(),
    }
}

/// The annotation that selects a platform, and its valid values; `None` if the language has no such annotation.
fn platform(language: Language) -> Option<(String, &'static [&'static str])> {
    match language {
        Language::Python => Some((annotation("otel-python-platform"), &["glibc", "musl"])),
        Language::DotNet => Some((
            annotation("otel-dotnet-auto-runtime"),
            &["linux-x64", "linux-musl-x64"],
        )),
        _ => None,
    }
}

/// An agent's volume: an ephemeral volume with the resource's claim template, or an `emptyDir`.
pub(super) fn volume(name: &str, agent: &LanguageAgent) -> Value {
    match &agent.claim {
        Some(claim) => json!({"name": name, "ephemeral": {"volumeClaimTemplate": claim}}),
        None => sized_volume(name, agent),
    }
}

/// An `emptyDir` with the size limit of the resource.
pub(super) fn sized_volume(name: &str, agent: &LanguageAgent) -> Value {
    let size = agent.limit.clone().unwrap_or_else(|| VOLUME_SIZE.into());
    json!({"name": name, "emptyDir": {"sizeLimit": size}})
}

/// Adds what all containers have that copy a part of an agent.
pub(super) fn complete_copying(
    container: &mut Value,
    agent: &LanguageAgent,
    mount: &Value,
    context: Option<&Value>,
) {
    add_resources(container, agent);
    container["volumeMounts"] = json!([mount]);
    if let Some(context) = context {
        container["securityContext"] = context.clone();
    }
}

/// Adds `resources` to a container unless they are empty.
pub(super) fn add_resources(container: &mut Value, agent: &LanguageAgent) {
    if agent
        .resources
        .as_object()
        .is_some_and(|map| !map.is_empty())
    {
        container["resources"] = agent.resources.clone();
    }
}
