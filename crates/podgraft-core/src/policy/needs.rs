//! Finds what an injection needs from a cluster: images, Secrets, ConfigMaps and the like that must exist, and
//! privileges.

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{GenerateEntry, Injection, Policy, PolicyValue, Rule};
use crate::dangers::{self, FoundDanger};
use crate::outcome::needs::{Need, NeedKind};

/// What all rules of a policy need, except for objects that the policy always generates. Names with `${...}` are returned
/// unevaluated.
pub fn needs_of(policy: &Policy) -> BTreeSet<Need> {
    let mut needs = BTreeSet::new();
    parts_of(policy)
        .iter()
        .for_each(|part| needs.extend(needs_in(&part.value)));
    let generated: Vec<&Value> = policy
        .generate
        .iter()
        .filter(|entry| entry.when.is_none())
        .map(|entry| entry.resource.unevaluated())
        .collect();
    needs.retain(|need| {
        let is_met = |object: &&Value| {
            object["apiVersion"] == "v1"
                && object["kind"].as_str().and_then(NeedKind::of_object) == Some(need.kind)
                && object["metadata"]["name"] == *need.name
        };
        !generated.iter().any(is_met)
    });
    needs
}

impl Injection {
    /// What this needs in a workload, or in running pods (then ephemeral containers count too). Names of objects have
    /// no namespace yet.
    pub fn needs(&self, in_running_pods: bool) -> BTreeSet<Need> {
        let parts = if in_running_pods {
            self.parts()
        } else {
            self.parts_of_workload()
        };
        parts
            .iter()
            .flat_map(|part| needs_in(&part.value))
            .collect()
    }
}

impl Rule {
    /// Like [`Injection::needs`], for the parts of the rule that are the same in all workloads.
    pub(crate) fn common_needs(&self, in_running_pods: bool) -> &BTreeSet<Need> {
        let needs = &self.needs[usize::from(in_running_pods)];
        needs.get_or_init(|| self.inject.needs(in_running_pods))
    }
}

/// What a part of a workload needs. Names of objects have no namespace.
pub(crate) fn needs_in(value: &Value) -> BTreeSet<Need> {
    let mut needs = BTreeSet::new();
    add(value, "", &mut needs);
    let privileges = dangers::find(value)
        .into_iter()
        .filter(|found| found.danger.is_privilege());
    needs.extend(privileges.map(|FoundDanger { danger, excerpt }| Need {
        detail: Some(excerpt),
        ..Need::of(NeedKind::Privilege, danger.name())
    }));
    needs
}

/// Walks a value and adds its needs. `parent` is the key that leads to `value`; lists do not change it.
fn add(value: &Value, parent: &str, needs: &mut BTreeSet<Need>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                add_field(parent, key, inner, needs);
                add(inner, key, needs);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add(item, parent, needs)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn add_field(parent: &str, key: &str, value: &Value, needs: &mut BTreeSet<Need>) {
    match (parent, key) {
        (_, "image") | ("image", "reference") => {
            needs.extend(value.as_str().map(|image| Need::of(NeedKind::Image, image)));
        }
        // A secret volume has `secretName`; projected volumes, references and CSI drivers have `name`.
        (_, "secret") => add_object(NeedKind::Secret, &["secretName", "name"], value, needs),
        (_, "secretRef" | "secretKeyRef" | "nodePublishSecretRef") => {
            add_object(NeedKind::Secret, &["name"], value, needs);
        }
        (_, "configMap" | "configMapRef" | "configMapKeyRef") => {
            add_object(NeedKind::ConfigMap, &["name"], value, needs);
        }
        (_, "persistentVolumeClaim") => {
            add_object(NeedKind::VolumeClaim, &["claimName"], value, needs);
        }
        (_, "serviceAccountName") => {
            needs.extend(
                value
                    .as_str()
                    .map(|name| Need::of(NeedKind::ServiceAccount, name)),
            );
        }
        (_, "imagePullSecrets") => {
            let names = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|secret| secret.get("name")?.as_str());
            needs.extend(names.map(|name| Need::of(NeedKind::Secret, name)));
        }
        _ => {}
    }
}

/// Adds a reference to an object: one need for each key that it names, or one for the whole object. The name is in the
/// first of `names` that is there.
fn add_object(kind: NeedKind, names: &[&str], value: &Value, needs: &mut BTreeSet<Need>) {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let Some(name) = names.iter().copied().find_map(text) else {
        return;
    };
    let is_optional = value.get("optional") == Some(&Value::Bool(true));
    let object = Need {
        is_optional,
        ..Need::of(kind, name)
    };
    let items = value
        .get("items")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let keys = items
        .filter_map(|item| item.get("key")?.as_str())
        .chain(text("key"));
    let keyed = |key: &str| Need {
        detail: Some(key.to_owned()),
        ..object.clone()
    };
    let keys: Vec<Need> = keys.map(keyed).collect();
    needs.extend(if keys.is_empty() { vec![object] } else { keys });
}

/// The `spec` of an object that a policy generates, such as a DaemonSet.
fn specification(entry: &GenerateEntry) -> Option<PolicyValue> {
    let value = entry.resource.unevaluated().get("spec")?;
    Some(PolicyValue {
        value: Arc::new(value.clone()),
        at: entry.at.clone(),
    })
}

/// The parts that a policy injects or generates. Templates that wait for a workload are returned unevaluated.
pub fn parts_of(policy: &Policy) -> Vec<PolicyValue> {
    let rules = policy.rules.iter();
    let mutation = policy.mutation.iter();
    rules
        .flat_map(|rule| match &rule.template {
            Some(template) => template.unevaluated(),
            None => rule.inject.parts(),
        })
        .chain(mutation.flat_map(|mutation| mutation.parts()))
        .chain(policy.generate.iter().filter_map(specification))
        .collect()
}
