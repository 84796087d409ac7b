//! Which built-in policies manifests ask for: the annotations, labels and resources by which injectors are told what to do.

use memchr::memmem;
use serde_json::Value;
use std::sync::Arc;

use crate::inventory::written_name;
use crate::manifest::object::{Found, Object, find_objects};
use crate::manifest::workload::{PodKinds, group_of};
use crate::options::Options;
use crate::source::{Place, Source};
use crate::yaml::parse::parse;
use crate::yaml::stream::chunks;
use crate::yaml::tree::Tree;
use crate::yaml::value::to_value;

/// What asks for a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A label or annotation of this key, on the object or its pod template, with one of these values, in small letters;
    /// none: any.
    Key(&'static str, &'static [&'static str]),
    /// A resource of this group and kind.
    Resource(&'static str, &'static str),
}

const YES: &[&str] = &["1", "on", "t", "true", "y", "yes"];
const ANY: &[&str] = &[];

/// The built-in policies that something asks for, by name, each with its marks.
pub const MARKS: &[(&str, &[Mark])] = &[
    ("aws-irsa", &[Mark::Key("eks.amazonaws.com/role-arn", ANY)]),
    (
        "aws-pod-identity",
        &[
            Mark::Key("eks.amazonaws.com/pod-identity", ANY),
            Mark::Resource("eks.services.k8s.aws", "PodIdentityAssociation"),
        ],
    ),
    (
        "azure-workload-identity",
        &[Mark::Key("azure.workload.identity/use", &["true"])],
    ),
    (
        "cloud-sql-proxy",
        &[Mark::Resource(
            "cloudsql.cloud.google.com",
            "AuthProxyWorkload",
        )],
    ),
    ("dapr", &[Mark::Key("dapr.io/enabled", YES)]),
    (
        "datadog-config",
        &[Mark::Key("admission.datadoghq.com/enabled", &["true"])],
    ),
    (
        "elastic-apm-java",
        &[Mark::Key("co.elastic.apm/attach", &["java"])],
    ),
    (
        "linkerd",
        &[Mark::Key("linkerd.io/inject", &["enabled", "ingress"])],
    ),
    (
        "newrelic-java",
        &[Mark::Key("app.newrelic.instrumentation", &["java"])],
    ),
    (
        "vault-agent",
        &[Mark::Key("vault.hashicorp.com/agent-inject", YES)],
    ),
    (
        "opentelemetry-java",
        &[Mark::Key(
            "instrumentation.opentelemetry.io/inject-java",
            ANY,
        )],
    ),
    (
        "onepassword",
        &[Mark::Key("operator.1password.io/inject", ANY)],
    ),
    (
        "reloader",
        &[
            Mark::Key("reloader.stakater.com/auto", &["true"]),
            Mark::Key("reloader.stakater.com/search", &["true"]),
            Mark::Key("configmap.reloader.stakater.com/auto", &["true"]),
            Mark::Key("secret.reloader.stakater.com/auto", &["true"]),
            Mark::Key("configmap.reloader.stakater.com/reload", ANY),
            Mark::Key("secret.reloader.stakater.com/reload", ANY),
        ],
    ),
];

/// What asks for a policy, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The built-in policy.
    pub policy: &'static str,
    /// `Deployment shop/orders`.
    pub object: String,
    /// The key of the label or annotation; none: the resource itself.
    pub key: Option<&'static str>,
    /// Where the object stands.
    pub place: Place,
}

/// What a text asks for. Documents that cannot be read are passed over: who applies a policy says what is wrong.
pub fn read(name: &Arc<str>, text: &[u8]) -> Vec<Wish> {
    let mut wishes = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for chunk in chunks(text) {
        line += memchr::memchr_iter(b'\n', &text[counted..chunk.start]).count();
        counted = chunk.start;
        if !has_word(chunk.text) {
            continue;
        }
        let Ok(text) = std::str::from_utf8(chunk.text) else {
            continue;
        };
        let source = Source {
            name: Arc::clone(name),
            text,
            first_line: line,
        };
        if let Ok(tree) = parse(text) {
            for found in find_objects(&tree, &PodKinds::of(&Options::default())) {
                if let Found::Object(object) = found {
                    wishes_of(&object, &tree, &source, &mut wishes);
                }
            }
        }
    }
    wishes
}

fn has_word(text: &[u8]) -> bool {
    let words = MARKS.iter().flat_map(|(_, marks)| *marks);
    words
        .map(|mark| match mark {
            Mark::Key(key, _) => key,
            Mark::Resource(_, kind) => kind,
        })
        .any(|word| memmem::find(text, word.as_bytes()).is_some())
}

fn wishes_of(object: &Object, tree: &Tree<'_>, source: &Source<'_>, wishes: &mut Vec<Wish>) {
    let Ok(value) = to_value(tree, object.node) else {
        return;
    };
    for (policy, marks) in MARKS {
        let Some(mark) = marks.iter().find(|mark| has(object, &value, mark)) else {
            continue;
        };
        let name = tree
            .get(object.node, "metadata")
            .and_then(|metadata| tree.get(metadata, "name"));
        wishes.push(Wish {
            policy,
            object: written_name(&value),
            key: match mark {
                Mark::Key(key, _) => Some(key),
                Mark::Resource(..) => None,
            },
            place: source.place(tree.span(name.unwrap_or(object.node))),
        });
    }
}

fn has(object: &Object, value: &Value, mark: &Mark) -> bool {
    match mark {
        Mark::Resource(group, kind) => {
            object.kind == *kind && group_of(&object.api_version) == *group
        }
        Mark::Key(key, values) => [
            "/metadata",
            "/spec/template/metadata",
            "/spec/jobTemplate/spec/template/metadata",
        ]
        .iter()
        .filter_map(|place| value.pointer(place))
        .flat_map(|metadata| [&metadata["annotations"], &metadata["labels"]])
        .filter_map(|keys| keys.get(key)?.as_str())
        .any(|found| values.is_empty() || values.contains(&found.to_lowercase().as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::builtin::{BUILTINS, Group, find};

    #[test]
    fn every_policy_that_follows_a_webhook_is_asked_for_by_something() {
        for builtin in BUILTINS {
            assert!(
                builtin.group == Group::Agents
                    || MARKS.iter().any(|(policy, _)| *policy == builtin.name),
                "{}",
                builtin.name
            );
        }
        for (policy, _) in MARKS {
            assert!(find(policy).is_ok(), "{policy}");
        }
    }

    fn asked(text: &str) -> Vec<(&'static str, String)> {
        let wishes = read(&"input.yaml".into(), text.as_bytes());
        wishes
            .into_iter()
            .map(|wish| (wish.policy, wish.object))
            .collect()
    }

    #[test]
    fn templates_objects_and_lists_are_looked_at() {
        let template = "metadata: {annotations: {dapr.io/enabled: \"Yes\"}}";
        let text = format!(
            "apiVersion: v1
kind: List
items:
- {{apiVersion: batch/v1, kind: CronJob, metadata: {{name: a}}, spec: {{jobTemplate: {{spec: {{template: {{{template}}}}}}}}}}}
- apiVersion: v1
  kind: ServiceAccount
  metadata: {{name: b, namespace: shop, annotations: {{eks.amazonaws.com/role-arn: arn}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: c}}
data: {{note: dapr.io/enabled}}
"
        );
        let asked = asked(&text);
        let policies: Vec<&str> = asked.iter().map(|(policy, _)| *policy).collect();
        assert_eq!(policies, ["dapr", "aws-irsa"], "{asked:?}");
        assert!(asked[1].1.contains("shop"), "{asked:?}");
    }

    #[test]
    fn a_value_that_says_no_asks_for_nothing() {
        let pod = |labels: &str| {
            format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a, labels: {{{labels}}}}}\n")
        };
        assert_eq!(asked(&pod("linkerd.io/inject: disabled")), []);
        assert_eq!(asked(&pod("linkerd.io/inject: enabled")).len(), 1);
        assert_eq!(asked("kind: [dapr.io/enabled"), []);
    }
}
