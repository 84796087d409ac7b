//! Injects the modules of Apache HTTPD and nginx. A copy of the container, as init container, saves the server's
//! configuration in a volume; a second one adds the agent's configuration; both volumes are mounted into the container.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::agents::{add_resources, sized_volume, volume};
use super::env::{Env, field, variable};
use super::injector::{Injector, addresses};
use super::language::Language;
use super::pod::{ContainerPosition, InstrumentedContainer};
use super::resource::LanguageAgent;
use crate::diagnostic::Code;

const CLONE: &str = "otel-agent-source-container-clone";
const FOLDER: &str = "/opt/opentelemetry-webserver/agent";
const SOURCE: &str = "/opt/opentelemetry-webserver/source-conf";
const POD_NAME_MARK: &str = "<<SID-PLACEHOLDER>>";
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// The differences between the two web servers.
struct WebServer {
    language: Language,
    /// The name of the init container that adds the agent's configuration.
    attach: &'static str,
    conf_volume: &'static str,
    agent_volume: &'static str,
    /// The variable with the agent's configuration.
    conf_variable: &'static str,
    /// The variable with the pod's name.
    id_variable: &'static str,
    /// The prefix of the names of the module's settings.
    prefix: &'static str,
}

const APACHE: WebServer = WebServer {
    language: Language::ApacheHttpd,
    attach: "otel-agent-attach-apache",
    conf_volume: "otel-apache-conf-dir",
    agent_volume: "otel-apache-agent",
    conf_variable: "OTEL_APACHE_AGENT_CONF",
    id_variable: "APACHE_SERVICE_INSTANCE_ID",
    prefix: "ApacheModule",
};

const NGINX: WebServer = WebServer {
    language: Language::Nginx,
    attach: "otel-agent-attach-nginx",
    conf_volume: "otel-nginx-conf-dir",
    agent_volume: "otel-nginx-agent",
    conf_variable: "OTEL_NGINX_AGENT_CONF",
    id_variable: "OTEL_NGINX_SERVICE_INSTANCE_ID",
    prefix: "NginxModule",
};

/// For both servers: copies the agent and writes its logging configuration.
const INSTALL: &str = include_str!("web/install.sh");

/// `$1` is the folder of the server's configuration. `opentemetry` is misspelt in the operator, too.
const APACHE_SCRIPT: &str = include_str!("web/apache.sh");

/// `$1` is the name of the server's configuration file.
const NGINX_SCRIPT: &str = include_str!("web/nginx.sh");

/// For nginx: saves the configuration and the server's version. `$1` is the folder of the server's configuration.
const CLONE_SCRIPT: &str = include_str!("web/clone.sh");

impl Injector<'_> {
    /// Instruments the web server of the named containers.
    pub(super) fn web(&mut self, agent: &LanguageAgent, names: &[String]) {
        let server = match self.language {
            Language::Nginx => &NGINX,
            _ => &APACHE,
        };
        if self.pod.find_init(CLONE).is_some() {
            self.warn_of_both_servers();
        }
        let mut is_first = true;
        for at in self.targets(names) {
            let name = self.pod.get(at).name().to_owned();
            if self.pod.find_init(&name).is_some() {
                let reason = format!("`{name}` is an init container");
                let help = "specify a container from `containers`";
                self.warn_not_instrumented(self.place(at), &reason, help);
                continue;
            }
            if !is_first {
                let reason = format!(
                    "only one container of a pod gets the module; `{name}` gets only the variables"
                );
                self.warn_not_instrumented(self.place(at), &reason, "specify one container");
            }
            is_first = false;
            self.server(server, agent, at);
            self.common(at);
            self.sdk(at, at);
            // For Apache HTTPD the operator sets both security contexts last, for nginx when it adds each container.
            if server.language == Language::ApacheHttpd {
                let context = self.security_context(at);
                for name in [server.attach, CLONE] {
                    if let Some(place) = self.pod.find_init(name) {
                        self.pod.init[place].set("securityContext", context.clone());
                    }
                }
            }
        }
    }

    /// Warns of a pod with both servers: the operator gives their copied containers the same name.
    fn warn_of_both_servers(&mut self) {
        let language = self.language;
        let message = format!(
            "{{}} requests Apache HTTPD and nginx in one pod, which the operator does not support: \
             their init containers have the same name, so {language} gets no configuration and the \
             pod is invalid"
        );
        let help = "instrument only one of the two";
        self.warn(Code::OddResult, None, message, help);
    }

    fn server(&mut self, server: &WebServer, agent: &LanguageAgent, at: ContainerPosition) {
        let service = self.service_name(&self.attributes(at), at);
        let context = self.security_context(at);
        self.pod.get_mut(at).env.append_unset(&agent.env);
        // The module is set up for the first container only; further ones get the variables alone.
        if self.pod.find_init(CLONE).is_none() {
            self.clone_container(server, agent, at, context.clone());
        }
        if self.pod.find_init(server.attach).is_some() {
            return;
        }
        self.pod.volumes.push(match server.language {
            Language::Nginx => json!({"name": server.agent_volume, "emptyDir": {}}),
            _ => volume(server.agent_volume, agent),
        });
        let conf = self.configuration(server, agent, &service);
        let attach = self.attach(server, agent, &conf);
        self.insert_init(&attach, "");
        if server.language == Language::Nginx {
            if let (Some(context), Some(last)) = (context, self.pod.init.last_mut()) {
                last.set("securityContext", Some(context));
            }
            let env = &mut self.pod.get_mut(at).env;
            let libraries = format!("{FOLDER}/sdk_lib/lib");
            env.extend(LIBRARIES, &libraries, |existing| {
                format!("{existing}:{libraries}")
            });
        }
    }

    /// Adds the init container that saves the configuration, a copy of the container. The container itself mounts the
    /// saved configuration in place of its own.
    fn clone_container(
        &mut self,
        server: &WebServer,
        agent: &LanguageAgent,
        at: ContainerPosition,
        context: Option<Value>,
    ) {
        let is_nginx = server.language == Language::Nginx;
        self.pod.volumes.push(match is_nginx {
            true => json!({"name": server.conf_volume, "emptyDir": {}}),
            false => sized_volume(server.conf_volume, agent),
        });
        let folder = conf_folder(server, agent);
        let original = self.pod.get_mut(at);
        let copy = copy_of(original, server, agent, &folder, context);
        let shared = original.env.share();
        // Only the first such mount is replaced.
        let covers = |mount: &Value| {
            let path = mount["mountPath"].as_str().unwrap_or_default();
            path.contains(&folder)
        };
        if let Some(place) = original.mounts.iter().position(covers) {
            original.mounts.remove(place);
        }
        original.mounts.extend([
            json!({"name": server.agent_volume, "mountPath": FOLDER}),
            json!({"name": server.conf_volume, "mountPath": folder}),
        ]);
        if let Some(mut copy) = InstrumentedContainer::read(&copy) {
            if shared.borrow().is_empty() {
                copy.set("env", None);
            }
            copy.shared = Some(shared);
            self.pod.insert_init(self.pod.init.len(), copy);
        }
    }

    fn attach(&self, server: &WebServer, agent: &LanguageAgent, conf: &str) -> Value {
        // Variables that the resource states come first, and no other replaces them.
        let mut env = Env::of(agent.env.clone());
        env.append_unset(&self.resource.env);
        env.append_unset(&addresses());
        env.append(variable(server.conf_variable, conf));
        env.append(field(server.id_variable, "metadata.name"));
        let (script, argument) = match server.language {
            Language::Nginx => (NGINX_SCRIPT, base_name(&agent.config).to_owned()),
            _ => (APACHE_SCRIPT, conf_folder(server, agent)),
        };
        let image = self.image(&agent.image);
        let mut container = self.resource.container(server.attach, &image);
        container["command"] = json!(["/bin/sh", "-c"]);
        container["args"] = json!([format!("{INSTALL}{script}"), "--", argument]);
        container["env"] = json!(env.items());
        add_resources(&mut container, agent);
        container["volumeMounts"] = json!([
            {"name": server.agent_volume, "mountPath": FOLDER},
            {"name": server.conf_volume, "mountPath": SOURCE},
        ]);
        container
    }

    /// The configuration of the module, in the syntax of the server.
    fn configuration(&self, server: &WebServer, agent: &LanguageAgent, service: &str) -> String {
        let is_nginx = server.language == Language::Nginx;
        let endpoint = match self.resource.endpoint.as_str() {
            "" => "http://localhost:4317/",
            endpoint => endpoint,
        };
        // The operator writes two spaces for Apache HTTPD.
        let on = if is_nginx { "ON" } else { " ON" };
        let namespace = self.facts.namespace.unwrap_or_default();
        let mut settings: BTreeMap<String, &str> = [
            ("Enabled", "ON"),
            ("OtelExporterEndpoint", endpoint),
            ("OtelSpanExporter", "otlp"),
            ("ResolveBackends", on),
            ("ServiceInstanceId", POD_NAME_MARK),
            ("ServiceName", service),
            ("ServiceNamespace", namespace),
            ("TraceAsError", on),
        ]
        .into_iter()
        .map(|(name, value)| (format!("{}{name}", server.prefix), value))
        .collect();
        for (name, value) in &agent.attributes {
            settings.insert(name.clone(), value);
        }
        let mut text = match is_nginx {
            true => String::new(),
            false => libraries(&agent.version),
        };
        let end = if is_nginx { ";" } else { "" };
        for (name, value) in settings {
            // `write!` to a `String` cannot fail.
            let _ = writeln!(text, "{name} {value}{end}");
        }
        text
    }
}

/// The `LoadFile` and `LoadModule` lines for Apache HTTPD.
fn libraries(version: &str) -> String {
    let mut text = String::new();
    for library in [
        "opentelemetry_common",
        "opentelemetry_resources",
        "opentelemetry_trace",
        "opentelemetry_otlp_recordable",
        "opentelemetry_exporter_ostream_span",
        "opentelemetry_exporter_otlp_grpc",
        "opentelemetry_webserver_sdk",
    ] {
        // `write!` to a `String` cannot fail.
        let _ = writeln!(text, "LoadFile {FOLDER}/sdk_lib/lib/lib{library}.so");
    }
    let suffix = if version == "2.2" { "22" } else { "" };
    let _ = writeln!(
        text,
        "LoadModule otel_apache_module {FOLDER}/WebServerModule/Apache/libmod_apache_otel{suffix}.so"
    );
    text
}

/// The folder of the server's configuration.
fn conf_folder(server: &WebServer, agent: &LanguageAgent) -> String {
    let config = agent.config.as_str();
    match server.language {
        Language::Nginx => parent(config),
        _ => config.strip_suffix('/').unwrap_or(config).to_owned(),
    }
}

/// Go's `filepath.Dir`: the path up to the last slash, cleaned.
fn parent(path: &str) -> String {
    let folder = path.rfind('/').map_or("", |at| &path[..=at]);
    let is_absolute = folder.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(&last)) if last != ".." => drop(parts.pop()),
            ("..", _) if is_absolute => {}
            _ => parts.push(part),
        }
    }
    match (is_absolute, parts.join("/")) {
        (true, path) => format!("/{path}"),
        (false, path) if path.is_empty() => ".".to_owned(),
        (false, path) => path,
    }
}

/// Go's `filepath.Base`.
fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    match path.rfind('/') {
        Some(at) => &path[at + 1..],
        None if path.is_empty() => "/",
        None => path,
    }
}

/// The init container that saves the configuration of a container.
fn copy_of(
    original: &InstrumentedContainer,
    server: &WebServer,
    agent: &LanguageAgent,
    folder: &str,
    context: Option<Value>,
) -> Value {
    let is_nginx = server.language == Language::Nginx;
    let mut copy = json!({"name": CLONE});
    for key in ["image", "imagePullPolicy"] {
        if let Some(value) = original.field(key) {
            copy[key] = value.clone();
        }
    }
    if is_nginx {
        copy["command"] = json!(["/bin/sh", "-c"]);
        copy["args"] = json!([CLONE_SCRIPT, "--", folder]);
    } else {
        copy["command"] = json!(["cp", "-r", format!("{folder}/."), SOURCE]);
    }
    if let Some(env_from) = original.field("envFrom") {
        copy["envFrom"] = env_from.clone();
    }
    copy["env"] = json!([]);
    add_resources(&mut copy, agent);
    let mut mounts = original.mounts.clone();
    mounts.push(json!({"name": server.conf_volume, "mountPath": SOURCE}));
    copy["volumeMounts"] = Value::Array(mounts);
    let context = match is_nginx {
        true => context,
        false => original.field("securityContext").cloned(),
    };
    if let Some(context) = context {
        copy["securityContext"] = context;
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_as_in_go() {
        for (path, folder, file) in [
            ("/etc/nginx/nginx.conf", "/etc/nginx", "nginx.conf"),
            ("nginx.conf", ".", "nginx.conf"),
            ("/nginx.conf", "/", "nginx.conf"),
            ("/opt//nginx/./a/../main.conf", "/opt/nginx", "main.conf"),
            ("../conf/main.conf", "../conf", "main.conf"),
        ] {
            assert_eq!(
                (parent(path).as_str(), base_name(path)),
                (folder, file),
                "{path}"
            );
        }
    }
}
