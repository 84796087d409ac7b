//! `banzaicloud.com PrometheusJmxExporter`: the JMX exporter's Java agent, with its configuration from a ConfigMap.
//!
//! The fields and marks are those of `pkg/apis/banzaicloud/v1alpha1/types.go` and `pkg/stub/handler.go` of
//! <https://github.com/banzaicloud/prometheus-jmx-exporter-operator>. The operator attaches to JVMs that run; here the
//! agent is there from the start. Its port is called `jmx-metrics`, for the operator's own name is not valid.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::ConfigKey;
use super::conversion::{self, Conversion, Given, literal, literals, pointer};
use super::document::Document;
use super::names::{check_config_key, check_dns_subdomain};
use super::schema::Schema;
use super::stored::JMX_EXPORTER;
use crate::diagnostic::{Code, Diagnostic};

/// The parameters: `image` carries the agent's jar, `container` is the JVM's.
pub const PARAMS: &[&str] = &["image", "container"];

/// The resource.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "fields that stand there for the schema alone")]
pub(crate) struct PrometheusJmxExporter {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    /// Which pods, and how the agent is set up.
    spec: Spec,
    status: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Spec {
    /// Labels of the pods.
    label_selector: BTreeMap<String, String>,
    /// Where the agent's configuration is.
    config: Config,
    /// Where the agent serves the metrics.
    port: Option<i32>,
    /// The same: the operator's own type spells it so.
    #[serde(rename = "Port")]
    port_in_capitals: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Config {
    /// The ConfigMap.
    config_map_name: String,
    /// The key in it.
    config_map_key: String,
}

const AGENT: &str = "jmx-exporter-agent";
const CONFIG: &str = "jmx-exporter-config";
const JAR: &str = "jmx_prometheus_javaagent.jar";

/// The mark that the operator sets on a pod that it is done with.
const MARK: &str = "jmx-prometheus-exporter";

/// The release that is fetched where no image carries the jar, and its checksum: those of `builtin:jmx-exporter`.
const FETCHER: &str = "docker.io/curlimages/curl:8.14.1";
const JAR_URL: &str = "https://github.com/prometheus/jmx_exporter/releases/download/1.6.0/jmx_prometheus_javaagent-1.6.0.jar";
const JAR_SHA256: &str = "a95983fd96e865d2bcdf911cc500e7c82808c27ab9fd226bf96732b6c3d8c46e";

static SCHEMA: Schema = Schema::Stored(&JMX_EXPORTER, "PrometheusJmxExporter");

/// What the resource becomes.
///
/// # Errors
/// All that is wrong with it.
pub fn convert(document: &Document<'_>, given: &Given<'_>) -> Result<Conversion, Vec<Diagnostic>> {
    let PrometheusJmxExporter { spec, .. } = conversion::read(document, &SCHEMA)?;
    let mut conversion = Conversion::of(
        document,
        "Serve JVM metrics for Prometheus, as the Prometheus JMX exporter operator does.",
    );
    check(document, &spec, &mut conversion.problems);
    let port = port(document, &spec, &mut conversion.problems);
    conversion.beyond.is_alone = true;
    conversion.set(
        "leaveAlone",
        json!([{"annotation": MARK, "values": ["verified", "verified-failed"]}]),
    );
    conversion.beyond.config_keys = vec![ConfigKey {
        name: spec.config.config_map_name.clone(),
        key: spec.config.config_map_key.clone(),
        at: document.span(&pointer("/spec/config")),
    }];
    let labels = pointer("/spec/labelSelector");
    let labels = labels
        .get(&document.value)
        .map(literals)
        .unwrap_or_default();
    conversion.set("match", json!({"selector": {"matchLabels": labels}}));
    conversion.set(
        "containers",
        match given.param("container") {
            Some(name) => json!({"names": [globset::escape(name)]}),
            None => json!({"mode": "First"}),
        },
    );
    conversion.set("inject", inject(&spec.config, port, given.param("image")));
    say_origins(
        &mut conversion,
        if spec.port.is_some() {
            "/spec/port"
        } else {
            "/spec/Port"
        },
    );
    note(document, given, &mut conversion);
    Ok(conversion)
}

fn say_origins(conversion: &mut Conversion, port: &str) {
    for (part, origin) in [
        ("/spec/match", "/spec/labelSelector"),
        ("/spec/match/selector/matchLabels", "/spec/labelSelector"),
        ("/spec/inject", "/metadata/name"),
        ("/spec/inject/volumes/1", "/spec/config"),
        (
            "/spec/inject/volumes/1/configMap/name",
            "/spec/config/configMapName",
        ),
        (
            "/spec/inject/volumes/1/configMap/items/0/key",
            "/spec/config/configMapKey",
        ),
        ("/spec/inject/ports/0", port),
        ("/spec/inject/ports/0/containerPort", port),
        ("/spec/inject/podAnnotations", port),
    ] {
        conversion.comes_from(part, origin);
    }
}

/// What an API server, or the operator itself, would choke on.
fn check(document: &Document<'_>, spec: &Spec, problems: &mut Vec<Diagnostic>) {
    let config = pointer("/spec/config");
    problems.extend(document.invalid(
        &config.key("configMapName"),
        check_dns_subdomain(&spec.config.config_map_name),
    ));
    problems.extend(document.invalid(
        &config.key("configMapKey"),
        check_config_key(&spec.config.config_map_key),
    ));
    if spec.label_selector.is_empty() {
        let message = "`labelSelector` is empty: it would take every workload";
        let problem = document.error(Code::BadPolicy, &pointer("/spec/labelSelector"), message);
        problems.push(problem.help("name labels that the pods of your Java applications have"));
    }
}

fn port(document: &Document<'_>, spec: &Spec, problems: &mut Vec<Diagnostic>) -> i32 {
    let problem = match (spec.port, spec.port_in_capitals) {
        (Some(port), None) | (None, Some(port)) => return port,
        (Some(port), Some(other)) if port == other => return port,
        (Some(_), Some(_)) => {
            let problem = document.key_error(
                Code::BadPolicy,
                &pointer("/spec/Port"),
                "there are two ports",
            );
            problem
                .at(document.key_place(&pointer("/spec/port")), "and here")
                .help("leave `Port` out")
        }
        (None, None) => {
            let problem = document.error(
                Code::BadPolicy,
                &pointer("/spec"),
                "`spec` must have `port`",
            );
            problem.help("`port`: where the agent serves the metrics, such as 9404")
        }
    };
    problems.push(problem);
    // Any number that is valid: the problem is said already.
    9404
}

fn inject(config: &Config, port: i32, image: Option<&str>) -> Value {
    let agent_folder = "/opt/jmx-exporter/agent";
    let config_folder = "/opt/jmx-exporter/conf";
    json!({
        "volumes": [
            {"name": AGENT, "emptyDir": {"sizeLimit": "16Mi"}},
            {"name": CONFIG, "configMap": {
                "name": literal(&config.config_map_name),
                "items": [{"key": literal(&config.config_map_key), "path": "config.yaml"}],
            }},
        ],
        "initContainers": [image.map_or_else(fetching_container, copying_container)],
        "volumeMounts": [
            {"name": AGENT, "mountPath": agent_folder, "readOnly": true},
            {"name": CONFIG, "mountPath": config_folder, "readOnly": true},
        ],
        "env": [{
            "name": "JAVA_TOOL_OPTIONS",
            "op": "Append",
            "value": format!("-javaagent:{agent_folder}/{JAR}={port}:{config_folder}/config.yaml"),
        }],
        "ports": [{"name": "jmx-metrics", "containerPort": port, "protocol": "TCP"}],
        "podAnnotations": {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": port.to_string(),
            MARK: "verified",
        },
    })
}

fn copying_container(image: &str) -> Value {
    json!({
        "name": AGENT,
        "image": literal(image),
        "command": ["cp", format!("/{JAR}"), format!("/agent/{JAR}")],
        "volumeMounts": [{"name": AGENT, "mountPath": "/agent"}],
    })
}

/// Starts in a namespace that enforces the Pod Security level "restricted".
fn fetching_container() -> Value {
    json!({
        "name": AGENT,
        "image": FETCHER,
        "command": ["sh", "-ec"],
        "args": [format!(
            "curl -fsSL --retry 3 -o /agent/{JAR} \"$JAR_URL\"\n\
             echo \"$JAR_SHA256  /agent/{JAR}\" | sha256sum -c -\n"
        )],
        "env": [{"name": "JAR_URL", "value": JAR_URL}, {"name": "JAR_SHA256", "value": JAR_SHA256}],
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": "200m", "memory": "64Mi"},
        },
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": AGENT, "mountPath": "/agent"}],
    })
}

fn note(document: &Document<'_>, given: &Given<'_>, conversion: &mut Conversion) {
    let name = pointer("/metadata/name");
    let restart =
        "the agent is loaded when a JVM starts, so the pods of the workloads that get it restart";
    let restart =
        Diagnostic::note(Code::PodsRestart, restart).at(document.place(&name), "by this resource");
    conversion.beyond.effects.push(
        restart.help(
            "by the workload's own strategy, and once: the operator attaches to JVMs that run",
        ),
    );
    if given.param("image").is_none() {
        let fetch =
            "no image with the agent's jar is named, so every pod fetches the jar when it starts";
        let fetch = Diagnostic::note(Code::FetchedAtStart, fetch)
            .at(document.place(&name), "by this resource");
        let help = format!(
            "an image that carries it as `/{JAR}` is the better choice: --param image=IMAGE"
        );
        conversion.beyond.effects.push(fetch.help(help));
        conversion.remarks.push(format!(
            "Better in production: an image that carries /{JAR} (--param image=IMAGE)."
        ));
    }
    conversion.remarks.push(format!(
        "Pods that the operator has marked ({MARK}: verified or verified-failed) are not left alone by this policy."
    ));
    let unchecked = "This policy does not check that the ConfigMap has the key.";
    conversion.remarks.push(unchecked.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::builtin;

    #[test]
    fn the_released_jar_is_that_of_the_built_in_policy() {
        let builtin = builtin::find("jmx-exporter").unwrap();
        for constant in [FETCHER, JAR_URL, JAR_SHA256] {
            assert!(
                builtin.text.contains(&format!("default: {constant}\n")),
                "{constant}"
            );
        }
    }
}
