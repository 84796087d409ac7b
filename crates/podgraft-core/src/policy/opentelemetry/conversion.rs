//! Converts an Instrumentation to an `InjectionPolicy`, as far as rules can express it, for users who want to edit it.

use serde_json::{Map, Value, json};

use super::agents::{agent_variables, complete_copying};
use super::attributes::OWNERS;
use super::language::Language;
use super::resource::{Instrumentation, LanguageAgent};
use crate::diagnostic::{Code, Diagnosed};
use crate::policy::conversion::{
    ConversionContext, ConvertedResource, literal, literals, metadata_of,
};
use crate::policy::document::Document;
use crate::policy::format::INJECTION_POLICY;

/// Remarks for every conversion: behaviour that rules cannot express.
const REMARKS: [&str; 6] = [
    "An InjectionPolicy reads annotations of workloads, not of their Namespace, and `true` does \
     not select a resource.",
    "Each resource becomes one policy: a pod whose languages use several resources gets the \
     content of each.",
    "Annotations that specify containers or a platform are ignored: the first container gets the \
     agent for glibc.",
    "Go, Apache HTTPD, and nginx are left out: they copy a container, or refer to another \
     container.",
    "The agent has the same path in every container; for Java, the operator uses one path for each \
     container.",
    "The order of variables and the operator's duplicates are not kept; a container's own \
     variables take precedence here, too.",
];

/// Remarks about parts of this resource that are left out.
fn not_converted(resource: &Instrumentation) -> Vec<String> {
    let mut out = vec!["attributes from pod annotations (resource.opentelemetry.io/...)"];
    let conditions = [
        (resource.uses_labels, "attributes from labels"),
        (resource.adds_uids, "UIDs (`addK8sUIDAttributes`)"),
        (resource.tls.is_some(), "the files of `exporter.tls`"),
        (
            resource
                .agent(Language::Java)
                .is_some_and(|agent| !agent.extensions.is_empty()),
            "`java.extensions`",
        ),
    ];
    out.extend(
        conditions
            .into_iter()
            .filter(|(is_said, _)| *is_said)
            .map(|(_, part)| part),
    );
    let unsaid = resource.attributes.iter().filter(|pair| !is_plain(pair));
    let mut remarks = vec![format!("Left out: {}.", out.join(", "))];
    remarks.extend(unsaid.map(|(key, value)| {
        format!(
            "The attribute `{key}` is left out: `{value}` does not fit into a comma-separated list."
        )
    }));
    remarks
}

/// Whether an attribute fits into a comma-separated list.
fn is_plain((key, value): &(&String, &String)) -> bool {
    !key.is_empty() && !value.is_empty() && !value.contains(',')
}

/// Converts a resource to a policy.
///
/// # Errors
/// All problems of the resource.
pub fn convert(
    document: &Document<'_>,
    given: &ConversionContext<'_>,
) -> Diagnosed<ConvertedResource> {
    let settings = &given.reading.opentelemetry;
    // Its warnings are those of the translation, which reads the resource as well.
    let resource = Instrumentation::read(document, settings, &mut Vec::new())?;
    let languages = [
        Language::Java,
        Language::NodeJs,
        Language::Python,
        Language::DotNet,
        Language::Sdk,
    ];
    let rules: Vec<Value> = languages
        .into_iter()
        .filter(|&language| settings.is_on(language))
        .map(|language| rule(&resource, language))
        .collect();
    let policy = json!({
        "apiVersion": INJECTION_POLICY.api_version,
        "kind": INJECTION_POLICY.kind,
        "metadata": metadata_of(document),
        "spec": {"description": "Instrument pods that request it.", "rules": rules},
    });
    let mut conversion = ConvertedResource::of(document, policy);
    conversion.remarks = REMARKS.iter().map(|&remark| remark.to_owned()).collect();
    conversion.remarks.extend(not_converted(&resource));
    if resource.name.is_empty() {
        let message = "missing field `name` in `metadata`";
        let at = crate::yaml::value::Path::of(&["metadata"]);
        return Err(vec![document.error(Code::BadPolicy, &at, message)]);
    }
    Ok(conversion)
}

fn rule(resource: &Instrumentation, language: Language) -> Value {
    let key = language.inject_key();
    let asks = |word: &str| json!({"annotations": {key: literal(&globset::escape(word))}});
    let mut inject = Map::new();
    let name = language.agent_name();
    let path = language.agent_path();
    let mut env: Vec<Value> = vec![
        absent_field("OTEL_NODE_IP", "status.hostIP"),
        absent_field("OTEL_POD_IP", "status.podIP"),
    ];
    if let Some(agent) = resource.agent(language) {
        inject.insert("volumes".to_owned(), json!([volume(&name, agent)]));
        inject.insert(
            "initContainers".to_owned(),
            json!([init_container(resource, language, agent)]),
        );
        let mount = json!({"name": name, "mountPath": path});
        inject.insert("volumeMounts".to_owned(), json!([mount]));
        env.extend(agent.env.iter().map(absent_variable));
    }
    env.extend(resource.env.iter().map(absent_variable));
    env.extend(loader_env(language, &path));
    env.extend(common(resource));
    // As in the operator, the first definition of a variable wins.
    let mut seen = std::collections::BTreeSet::new();
    env.retain(|item| seen.insert(item["name"].to_string()));
    inject.insert("env".to_owned(), Value::Array(env));
    json!({
        "name": language.word(),
        "match": {"any": [asks("true"), asks(&resource.name)]},
        "containers": {"mode": "First"},
        "inject": inject,
    })
}

fn volume(name: &str, agent: &LanguageAgent) -> Value {
    literals(&super::agents::volume(name, agent))
}

fn init_container(resource: &Instrumentation, language: Language, agent: &LanguageAgent) -> Value {
    let (name, path) = (language.agent_name(), language.agent_path());
    let mut container = resource.container(&name, &agent.image);
    container["command"] = match language {
        Language::Java => json!(["cp", "/javaagent.jar", format!("{path}/javaagent.jar")]),
        _ => json!(["cp", "-r", "/autoinstrumentation/.", &path]),
    };
    let mount = json!({"name": name, "mountPath": path});
    let context = resource.init_security_context.as_ref();
    complete_copying(&mut container, agent, &mount, context);
    literals(&container)
}

/// The variables that load an agent.
fn loader_env(language: Language, path: &str) -> Vec<Value> {
    let joined = |name: &str, op: &str, separator: &str, text: &str| json!({"name": name, "op": op, "separator": separator, "value": text});
    let variables = agent_variables(language, path, "linux").into_iter();
    let mut env: Vec<Value> = variables
        .map(|variable| match variable.separator {
            Some(separator) => joined(variable.name, "Append", separator, &variable.text),
            None => absent(variable.name, &variable.text),
        })
        .collect();
    if language == Language::Python {
        let packages = "opentelemetry/instrumentation/auto_instrumentation";
        let text = format!("{path}/{packages}:{path}");
        env.insert(0, joined("PYTHONPATH", "Prepend", ":", &text));
    }
    env
}

/// The variables of every language.
fn common(resource: &Instrumentation) -> Vec<Value> {
    let (pod, node) = (
        "OTEL_RESOURCE_ATTRIBUTES_POD_NAME",
        "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME",
    );
    let mut env = vec![json!({
        "name": "OTEL_SERVICE_NAME",
        "op": "SetIfAbsent",
        "value": "${workload.name}",
    })];
    if !resource.endpoint.is_empty() {
        env.push(absent("OTEL_EXPORTER_OTLP_ENDPOINT", &resource.endpoint));
    }
    // The attributes use them, wherever the container has its own.
    for (name, path) in [(pod, "metadata.name"), (node, "spec.nodeName")] {
        let mut variable = absent_field(name, path);
        variable["position"] = "First".into();
        env.push(variable);
    }
    if !resource.propagators.is_empty() {
        env.push(absent("OTEL_PROPAGATORS", &resource.propagators.join(",")));
    }
    if !resource.sampler.is_empty() {
        env.push(absent("OTEL_TRACES_SAMPLER", &resource.sampler));
    }
    if !resource.sampler.is_empty() && !resource.sampler_argument.is_empty() {
        env.push(absent(
            "OTEL_TRACES_SAMPLER_ARG",
            &resource.sampler_argument,
        ));
    }
    let attributes = resource.attributes.iter().filter(is_plain);
    let stated = attributes.map(|(key, value)| literal(&format!("{key}={value},")));
    let stated: String = stated.collect();
    env.push(json!({
        "name": "OTEL_RESOURCE_ATTRIBUTES",
        "op": "MergeKeys",
        "value": format!("{stated}{}k8s.node.name=$({node}),k8s.pod.name=$({pod})", computed_attributes(pod)),
    }));
    env
}

/// The attributes of a workload and its container, each with a comma behind it.
fn computed_attributes(pod: &str) -> String {
    let kinds = OWNERS.map(|kind| format!("'{kind}'")).join(", ");
    let owner = format!(
        "workload.kind.lowerAscii() in [{kinds}] ? 'k8s.' + workload.kind.lowerAscii() + '.name=' + workload.name + ',' : ''"
    );
    let namespace = format!(
        "workload.namespace == '' ? '' : 'k8s.namespace.name=' + workload.namespace + ',service.instance.id=' + \
         workload.namespace + '.$({pod}).' + container.name + ',service.namespace=' + workload.namespace + ','"
    );
    let version = "container.image.matches('[:@][^/]+$') ? 'service.version=' + imageTag(container.image) + ',' : ''";
    format!("k8s.container.name=${{container.name}},${{{owner}}}${{{namespace}}}${{{version}}}")
}

fn absent(name: &str, text: &str) -> Value {
    json!({"name": name, "op": "SetIfAbsent", "value": literal(text)})
}

fn absent_field(name: &str, path: &str) -> Value {
    json!({"name": name, "op": "SetIfAbsent", "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

fn absent_variable(item: &Value) -> Value {
    let mut item = literals(item);
    if item["value"].is_null() && item["valueFrom"].is_null() {
        item["value"] = "".into();
    }
    item["op"] = "SetIfAbsent".into();
    item
}
