//! Reads an Instrumentation, with the defaults that the operator's mutating webhook fills in.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

use super::admission::admit;
use super::env::{items, normalized, text_of};
use super::language::Language;
use super::release::OperatorSettings;
use super::sampler::check_argument;
use crate::diagnostic::{Code, Diagnosed, Diagnostic};
use crate::policy::document::Document;
use crate::yaml::value::Path;

/// An Instrumentation resource.
#[derive(Debug, Clone)]
pub(super) struct Instrumentation {
    /// Kind, namespace and name, such as `Instrumentation/shop/agents`.
    pub identity: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`, if stated.
    pub namespace: Option<String>,
    /// The byte range of the name in its file.
    pub at: Range<usize>,
    /// `exporter.endpoint`.
    pub endpoint: String,
    /// `exporter.tls`.
    pub tls: Option<ExporterTls>,
    /// `resource.resourceAttributes`.
    pub attributes: BTreeMap<String, String>,
    /// `resource.addK8sUIDAttributes`.
    pub adds_uids: bool,
    /// `propagators`.
    pub propagators: Vec<String>,
    /// `sampler.type`.
    pub sampler: String,
    /// `sampler.argument`.
    pub sampler_argument: String,
    /// `defaults.useLabelsForResourceAttributes`.
    pub uses_labels: bool,
    /// `env`.
    pub env: Vec<Value>,
    /// `imagePullPolicy`.
    pub pull_policy: String,
    /// `initContainerSecurityContext`.
    pub init_security_context: Option<Value>,
    agents: Vec<LanguageAgent>,
}

/// `exporter.tls`.
#[derive(Debug, Clone, Default)]
pub(super) struct ExporterTls {
    /// `secretName`.
    pub secret: String,
    /// `configMapName`.
    pub config_map: String,
    /// `ca_file`.
    pub ca: String,
    /// `cert_file`.
    pub cert: String,
    /// `key_file`.
    pub key: String,
    /// Its byte range in the resource's file.
    pub at: Range<usize>,
}

/// The agent settings of one language. Each language uses some of the fields.
#[derive(Debug, Clone, Default)]
pub(super) struct LanguageAgent {
    /// `image`.
    pub image: String,
    /// `env`.
    pub env: Vec<Value>,
    /// `resources` or `resourceRequirements`.
    pub resources: Value,
    /// `volumeLimitSize`.
    pub limit: Option<Value>,
    /// `volumeClaimTemplate`, unless it is Go's zero value.
    pub claim: Option<Value>,
    /// Image and folder (`dir`) of each of the `extensions`.
    pub extensions: Vec<(String, String)>,
    /// `securityContext`.
    pub security_context: Option<Value>,
    /// `attrs`.
    pub attributes: Vec<(String, String)>,
    /// `version`.
    pub version: String,
    /// `configPath` or `configFile`.
    pub config: String,
    /// Its byte range in the resource's file.
    pub at: Range<usize>,
}

impl Instrumentation {
    /// The agent settings of a language; `None` for the SDK.
    pub(super) fn agent(&self, language: Language) -> Option<&LanguageAgent> {
        self.agents.get(language.index())
    }

    /// The beginning of a container of an agent.
    pub(super) fn container(&self, name: &str, image: &str) -> Value {
        let mut container = json!({"name": name, "image": image});
        if !self.pull_policy.is_empty() {
            container["imagePullPolicy"] = self.pull_policy.as_str().into();
        }
        container
    }

    /// Reads a resource. Warnings go to `problems`.
    ///
    /// # Errors
    /// The reasons for which an API server or the operator's webhook would refuse the resource.
    pub(super) fn read(
        document: &Document<'_>,
        settings: &OperatorSettings,
        problems: &mut Vec<Diagnostic>,
    ) -> Diagnosed<Self> {
        let document = &admit(document, problems)?;
        let text = |keys: &[&str]| document.text(keys).unwrap_or_default().to_owned();
        let spec = &document.value["spec"];
        let agents = Language::with_images()
            .map(|language| LanguageAgent::read(document, language, settings));
        let resource = Instrumentation {
            identity: document.identity(),
            name: text(&["metadata", "name"]),
            namespace: document
                .text(&["metadata", "namespace"])
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
            at: document.span(&Path::of(&["metadata", "name"])),
            endpoint: text(&["spec", "exporter", "endpoint"]),
            tls: ExporterTls::read(document),
            attributes: texts(&spec["resource"]["resourceAttributes"]),
            adds_uids: spec["resource"]["addK8sUIDAttributes"] == true,
            propagators: items(&spec["propagators"])
                .iter()
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect(),
            sampler: text(&["spec", "sampler", "type"]),
            sampler_argument: text(&["spec", "sampler", "argument"]),
            uses_labels: spec["defaults"]["useLabelsForResourceAttributes"] == true,
            env: variables(&spec["env"]),
            pull_policy: text(&["spec", "imagePullPolicy"]),
            init_security_context: stated(&spec["initContainerSecurityContext"]),
            agents: agents.collect(),
        };
        let refused = resource.webhook_errors(document);
        if refused.is_empty() {
            problems.extend(resource.webhook_warnings(document));
            Ok(resource)
        } else {
            Err(refused)
        }
    }

    /// Errors of the operator's validating webhook.
    fn webhook_errors(&self, document: &Document<'_>) -> Vec<Diagnostic> {
        let mut refused = Vec::new();
        if let Err(reason) = check_argument(&self.sampler, &self.sampler_argument) {
            let path = Path::of(&["spec", "sampler", "argument"]);
            let message = format!("the operator rejects the resource: {reason}");
            refused.push(document.error(Code::BadPolicy, &path, message));
        }
        let fields = Language::ALL
            .into_iter()
            .filter_map(|language| Some((language.field()?, self.agent(language)?)));
        for (field, agent) in fields {
            if agent.claim.is_some() && agent.limit.is_some() {
                let path = Path::of(&["spec", field]);
                let message = format!(
                    "the operator rejects the resource: `{field}` has both `volumeClaimTemplate` \
                     and `volumeLimitSize`"
                );
                refused.push(
                    document
                        .error(Code::BadPolicy, &path, message)
                        .help("remove one of the two"),
                );
            }
        }
        refused
    }

    /// Warnings of the validating webhook, which only the client that applies the resource shows.
    fn webhook_warnings(&self, document: &Document<'_>) -> Vec<Diagnostic> {
        let path = Path::of(&["spec", "exporter"]);
        let warn = |message: &str| {
            Diagnostic::warning(Code::PartIgnored, message).at(document.place(&path), "here")
        };
        let is_https = self.endpoint.starts_with("https://");
        let mut found = Vec::new();
        if let Some(tls) = &self.tls {
            if tls.key.is_empty() != tls.cert.is_empty() {
                found.push(warn(
                    "`exporter.tls` has only one of `cert_file` and `key_file`",
                ));
            }
            if !is_https {
                found.push(warn(
                    "`exporter.tls` is set, but the endpoint does not start with https://",
                ));
            }
            let has_source = !tls.secret.is_empty() || !tls.config_map.is_empty();
            let is_relative = |file: &String| !file.is_empty() && !file.starts_with('/');
            if !has_source && [&tls.ca, &tls.cert, &tls.key].into_iter().any(is_relative) {
                found.push(warn(
                    "`exporter.tls` lists files but neither a Secret nor a ConfigMap, so nothing \
                     mounts them",
                ));
            }
        }
        found
    }
}

impl ExporterTls {
    fn read(document: &Document<'_>) -> Option<Self> {
        let path = Path::of(&["spec", "exporter", "tls"]);
        let tls = path.get(&document.value).filter(|tls| tls.is_object())?;
        let text = |key: &str| tls[key].as_str().unwrap_or_default().to_owned();
        Some(ExporterTls {
            secret: text("secretName"),
            config_map: text("configMapName"),
            ca: text("ca_file"),
            cert: text("cert_file"),
            key: text("key_file"),
            at: document.span(&path),
        })
    }

    /// The volumes with the files of the Secret and of the ConfigMap, as far as they are stated.
    pub(super) fn volumes(&self) -> [Option<Value>; 2] {
        let volume = |prefix, name: &str, kind: &str, key: &str| {
            let volume = json!({"name": volume_name(prefix, name), kind: {key: name}});
            (!name.is_empty()).then_some(volume)
        };
        [
            volume("otel-auto-secret-", &self.secret, "secret", "secretName"),
            volume(
                "otel-auto-configmap-",
                &self.config_map,
                "configMap",
                "name",
            ),
        ]
    }
}

impl LanguageAgent {
    fn read(document: &Document<'_>, language: Language, settings: &OperatorSettings) -> Self {
        let field = language.field().unwrap_or_default();
        let path = Path::of(&["spec", field]);
        let spec = &document.value["spec"][field];
        let or = |key: &str, default: &str| match spec[key].as_str() {
            None | Some("") => default.to_owned(),
            Some(text) => text.to_owned(),
        };
        let attributes = items(&spec["attrs"]).iter();
        let extensions = items(&spec["extensions"]).iter();
        let text_at = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        LanguageAgent {
            image: or("image", settings.image(language)),
            env: variables(&spec["env"]),
            resources: resources(spec, language),
            limit: stated(&spec["volumeLimitSize"]),
            claim: stated(&spec["volumeClaimTemplate"]).filter(|claim| !is_zero(claim)),
            extensions: extensions
                .map(|extension| (text_at(extension, "image"), text_at(extension, "dir")))
                .collect(),
            security_context: stated(&spec["securityContext"]),
            attributes: attributes
                .map(|attribute| (text_at(attribute, "name"), text_of(attribute)))
                .collect(),
            version: or("version", "2.4"),
            config: match language {
                Language::Nginx => or("configFile", "/etc/nginx/nginx.conf"),
                _ => or("configPath", "/usr/local/apache2/conf"),
            },
            at: document.span(&path),
        }
    }
}

/// `resources` of the init container. Limits and requests are defaulted separately.
fn resources(spec: &Value, language: Language) -> Value {
    let key = match language {
        Language::Java => "resources",
        _ => "resourceRequirements",
    };
    let (cpu, memory) = match language {
        Language::Java | Language::Python | Language::Go => ("50m", "64Mi"),
        Language::NodeJs | Language::DotNet => ("50m", "128Mi"),
        Language::ApacheHttpd | Language::Nginx | Language::Sdk => ("1m", "128Mi"),
    };
    let stated = &spec[key];
    let or = |key: &str, default: Value| match &stated[key] {
        Value::Null => default,
        value => value.clone(),
    };
    let mut resources = Map::new();
    let parts = [
        (
            "limits",
            or("limits", json!({"cpu": "500m", "memory": "256Mi"})),
        ),
        (
            "requests",
            or("requests", json!({"cpu": cpu, "memory": memory})),
        ),
        ("claims", stated["claims"].clone()),
    ];
    for (key, value) in parts {
        let is_empty = match &value {
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            other => other.is_null(),
        };
        if !is_empty {
            resources.insert(key.to_owned(), value);
        }
    }
    Value::Object(resources)
}

/// The fields of a claim that are pointers in Go: an empty string in them is a value.
const POINTERS: [&str; 3] = [
    "storageClassName",
    "volumeMode",
    "volumeAttributesClassName",
];

/// Whether Go would decode a claim template to its zero value: empty strings, and nested structs that are zero. A map
/// or a list is not zero, even if it is empty.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.iter().all(|(key, inner)| {
            let is_type = matches!(key.as_str(), "metadata" | "spec" | "resources");
            let is_pointer = POINTERS.contains(&key.as_str()) && !inner.is_null();
            is_zero(inner) && !is_pointer && (is_type || !inner.is_object())
        }),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    }
}

/// A volume name of at most 63 characters. The end of `name` is cut, never the prefix.
fn volume_name(prefix: &str, name: &str) -> String {
    const MAX_LENGTH: usize = 63;
    let excess = (prefix.len() + name.len()).saturating_sub(MAX_LENGTH);
    let kept = name
        .get(..name.len().saturating_sub(excess))
        .unwrap_or(name);
    let full = format!("{prefix}{kept}");
    full.trim_matches(|char: char| !char.is_ascii_alphanumeric())
        .to_owned()
}

fn stated(value: &Value) -> Option<Value> {
    (!value.is_null()).then(|| value.clone())
}

fn variables(value: &Value) -> Vec<Value> {
    items(value).iter().map(normalized).collect()
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_says_nothing_is_none() {
        for claim in [
            json!({}),
            json!({"metadata": {}}),
            json!({"spec": {"resources": {}}}),
            json!({"spec": {"storageClassName": null, "volumeName": ""}}),
        ] {
            assert!(is_zero(&claim), "{claim}");
        }
        for claim in [
            json!({"spec": {"accessModes": []}}),
            json!({"spec": {"storageClassName": "x"}}),
            json!({"spec": {"storageClassName": ""}}),
        ] {
            assert!(!is_zero(&claim), "{claim}");
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        let name = volume_name("otel-auto-secret-", &format!("{}-b", "a".repeat(45)));
        assert_eq!(name.len(), 62, "{name}");
        assert_eq!(
            volume_name("otel-auto-secret-", "certs"),
            "otel-auto-secret-certs"
        );
    }
}
