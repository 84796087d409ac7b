//! Suggests policies for manifests: built-in ones and resources of operators. It looks for the annotations, labels and
//! resources that the injectors of a cluster react to.

use memchr::memmem;
use serde_json::Value;
use std::sync::Arc;

use crate::inventory::written_name;
use crate::manifest::object::{Object, objects_in};
use crate::manifest::workload::{PodKinds, group_of};
use crate::options::Options;
use crate::source::{LineCounter, Place, Source};
use crate::yaml::parse::parse;
use crate::yaml::stream::chunks;
use crate::yaml::tree::Tree;
use crate::yaml::value::to_value;

/// What in a manifest suggests a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestionRule {
    /// A label or annotation with this key, on the object or its pod template, with one of these values in lower case.
    /// An empty list means any value.
    Key(&'static str, &'static [&'static str]),
    /// An annotation with this key, on a Pod, a pod template or a Namespace, with any value but `false` or an empty
    /// one.
    OnPod(&'static str),
    /// A resource with this group and kind.
    Resource(&'static str, &'static str),
}

use SuggestionRule::{Key, OnPod, Resource};

const YES: &[&str] = &["1", "on", "t", "true", "y", "yes"];
const ANY: &[&str] = &[];

/// The resource that configures the injection of the OpenTelemetry Operator.
pub const INSTRUMENTATION: &str = "Instrumentation";

/// The policies that can be suggested, each with its rules: built-in ones by name, resources of operators by kind.
pub(crate) const RULES: &[(&str, &[SuggestionRule])] = &[
    ("aws-irsa", &[Key("eks.amazonaws.com/role-arn", ANY)]),
    (
        "aws-pod-identity",
        &[
            Key("eks.amazonaws.com/pod-identity", ANY),
            Resource("eks.services.k8s.aws", "PodIdentityAssociation"),
        ],
    ),
    (
        "azure-workload-identity",
        &[Key("azure.workload.identity/use", &["true"])],
    ),
    (
        "cloud-sql-proxy",
        &[Resource("cloudsql.cloud.google.com", "AuthProxyWorkload")],
    ),
    (
        "config-monitor",
        &[Resource("magalix.com", "ConfigMonitor")],
    ),
    ("dapr", &[Key("dapr.io/enabled", YES)]),
    (
        "datadog-config",
        &[Key("admission.datadoghq.com/enabled", &["true"])],
    ),
    (
        "elastic-apm-java",
        &[Key("co.elastic.apm/attach", &["java"])],
    ),
    (
        "linkerd",
        &[Key("linkerd.io/inject", &["enabled", "ingress"])],
    ),
    (
        "newrelic-java",
        &[Key("app.newrelic.instrumentation", &["java"])],
    ),
    ("podbuggertool", &[Resource("ualter.com", "Podbuggertool")]),
    (
        "prometheus-jmx-exporter",
        &[Resource("banzaicloud.com", "PrometheusJmxExporter")],
    ),
    ("rookout", &[Resource("rookout.rookout.com", "Rookout")]),
    (
        "vault-agent",
        &[Key("vault.hashicorp.com/agent-inject", YES)],
    ),
    (
        INSTRUMENTATION,
        &[
            Resource("opentelemetry.io", INSTRUMENTATION),
            OnPod("instrumentation.opentelemetry.io/inject-java"),
            OnPod("instrumentation.opentelemetry.io/inject-nodejs"),
            OnPod("instrumentation.opentelemetry.io/inject-python"),
            OnPod("instrumentation.opentelemetry.io/inject-dotnet"),
            OnPod("instrumentation.opentelemetry.io/inject-go"),
            OnPod("instrumentation.opentelemetry.io/inject-apache-httpd"),
            OnPod("instrumentation.opentelemetry.io/inject-nginx"),
            OnPod("instrumentation.opentelemetry.io/inject-sdk"),
        ],
    ),
    (
        "opentelemetry-java",
        &[OnPod("instrumentation.opentelemetry.io/inject-java")],
    ),
    (
        "opentelemetry-nodejs",
        &[OnPod("instrumentation.opentelemetry.io/inject-nodejs")],
    ),
    (
        "opentelemetry-python",
        &[OnPod("instrumentation.opentelemetry.io/inject-python")],
    ),
    (
        "opentelemetry-dotnet",
        &[OnPod("instrumentation.opentelemetry.io/inject-dotnet")],
    ),
    ("onepassword", &[Key("operator.1password.io/inject", ANY)]),
    (
        "reloader",
        &[
            Key("reloader.stakater.com/auto", &["true"]),
            Key("reloader.stakater.com/search", &["true"]),
            Key("configmap.reloader.stakater.com/auto", &["true"]),
            Key("secret.reloader.stakater.com/auto", &["true"]),
            Key("configmap.reloader.stakater.com/reload", ANY),
            Key("secret.reloader.stakater.com/reload", ANY),
        ],
    ),
];

/// A suggested policy, and what suggests it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The name of a built-in policy, or the kind of an operator's resource.
    pub policy: &'static str,
    /// The title of the object that suggests it: `Deployment shop/orders`.
    pub object: String,
    /// The key of the label or annotation; `None` if the object itself is a resource of the operator.
    pub key: Option<&'static str>,
    /// The place of the object.
    pub place: Place,
}

/// Returns the suggestions of a text. Documents that cannot be parsed are skipped: a run that applies the policy
/// reports them.
pub fn read(name: &Arc<str>, text: &[u8]) -> Vec<Suggestion> {
    let mut suggestions = Vec::new();
    let mut lines = LineCounter::new(text, 1);
    let kinds = PodKinds::of(&Options::default());
    for chunk in chunks(text) {
        let line = lines.line_at(chunk.start);
        if !has_word(chunk.text) {
            continue;
        }
        let Ok(text) = std::str::from_utf8(chunk.text) else {
            continue;
        };
        let source = Source::from_line(Arc::clone(name), text, line);
        if let Ok(tree) = parse(text) {
            for object in objects_in(&tree, &kinds) {
                add_suggestions(&object, &tree, &source, &mut suggestions);
            }
        }
    }
    suggestions
}

/// Whether the text may have something that suggests a policy, so that most documents need no parsing.
fn has_word(text: &[u8]) -> bool {
    let words = RULES.iter().flat_map(|(_, marks)| *marks);
    words
        .map(|mark| match mark {
            SuggestionRule::Key(key, _) | SuggestionRule::OnPod(key) => key,
            SuggestionRule::Resource(_, kind) => kind,
        })
        .any(|word| memmem::find(text, word.as_bytes()).is_some())
}

fn add_suggestions(
    object: &Object,
    tree: &Tree<'_>,
    source: &Source<'_>,
    suggestions: &mut Vec<Suggestion>,
) {
    let Ok(value) = to_value(tree, object.node) else {
        return;
    };
    for (policy, marks) in RULES {
        let Some(mark) = marks.iter().find(|mark| matches_rule(object, &value, mark)) else {
            continue;
        };
        let name = tree
            .get(object.node, "metadata")
            .and_then(|metadata| tree.get(metadata, "name"));
        suggestions.push(Suggestion {
            policy,
            object: written_name(&value),
            key: match mark {
                SuggestionRule::Key(key, _) | SuggestionRule::OnPod(key) => Some(key),
                SuggestionRule::Resource(..) => None,
            },
            place: source.place(tree.span(name.unwrap_or(object.node))),
        });
    }
}

fn matches_rule(object: &Object, value: &Value, mark: &SuggestionRule) -> bool {
    match mark {
        SuggestionRule::Resource(group, kind) => {
            object.kind == *kind && group_of(&object.api_version) == *group
        }
        SuggestionRule::Key(key, values) => metadata_of(value, &METADATA)
            .flat_map(|metadata| [&metadata["annotations"], &metadata["labels"]])
            .filter_map(|keys| keys.get(key)?.as_str())
            .any(|found| values.is_empty() || values.contains(&found.to_lowercase().as_str())),
        SuggestionRule::OnPod(key) => {
            let places = match object.kind.as_str() {
                "Pod" | "Namespace" => &METADATA[..],
                _ => &METADATA[1..],
            };
            metadata_of(value, places)
                .filter_map(|metadata| metadata["annotations"].get(key)?.as_str())
                .any(|found| !found.is_empty() && !found.eq_ignore_ascii_case("false"))
        }
    }
}

/// Where the metadata of an object and of its pod template is; that of the object itself comes first.
const METADATA: [&str; 3] = [
    "/metadata",
    "/spec/template/metadata",
    "/spec/jobTemplate/spec/template/metadata",
];

fn metadata_of<'v>(value: &'v Value, places: &[&str]) -> impl Iterator<Item = &'v Value> {
    places.iter().filter_map(|place| value.pointer(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::builtin::{BUILTINS, Group, find};
    use crate::policy::format::FORMATS;
    use crate::policy::opentelemetry::language::Language;

    #[test]
    fn every_policy_that_follows_a_webhook_is_asked_for_by_something() {
        for builtin in BUILTINS.iter() {
            assert!(
                builtin.group == Group::Agents
                    || RULES.iter().any(|(policy, _)| *policy == builtin.name),
                "{}",
                builtin.name
            );
        }
        for (policy, _) in RULES {
            assert!(
                find(policy).is_ok() || FORMATS.iter().any(|format| format.kind == *policy),
                "{policy}"
            );
        }
        for language in Language::ALL {
            let key = language.inject_key();
            let of = |policy: &str| {
                let mut marks = RULES.iter().filter(|(name, _)| *name == policy);
                marks.any(|(_, marks)| {
                    marks
                        .iter()
                        .any(|mark| matches!(mark, SuggestionRule::OnPod(inject_key) if *inject_key == key))
                })
            };
            assert!(of(INSTRUMENTATION), "{language}");
            let builtin = format!("opentelemetry-{language}");
            assert_eq!(of(&builtin), find(&builtin).is_ok(), "{language}");
        }
    }
}
