//! What an injection needs from a cluster: images, Secrets, ConfigMaps and the like that must be there, and privileges.

use serde_json::Value;
use std::collections::BTreeSet;

use super::Policy;
use super::parts::Part;
use crate::dangers::{self, Found};

/// What a policy's injections need, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Images that nodes pull; those with `${...}` depend on the workload.
    pub images: BTreeSet<String>,
    /// Secrets that pods refer to.
    pub secrets: BTreeSet<String>,
    /// ConfigMaps that pods refer to.
    pub config_maps: BTreeSet<String>,
    /// PersistentVolumeClaims that pods refer to.
    pub claims: BTreeSet<String>,
    /// The service account that pods run as.
    pub service_accounts: BTreeSet<String>,
    /// What gives a container power beyond its pod.
    pub privileges: BTreeSet<Found>,
}

impl Needs {
    /// Of one policy, in all of its rules.
    pub fn of(policy: &Policy) -> Self {
        let mut needs = Needs::default();
        for part in parts_of(policy) {
            needs.add(&part.value, "");
            needs.privileges.extend(dangers::find(&part.value).into_iter().filter(|found| found.danger.is_privilege()));
        }
        needs
    }

    fn add(&mut self, value: &Value, parent: &str) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    self.add_field(parent, key, inner);
                    self.add(inner, key);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item, parent)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn add_field(&mut self, parent: &str, key: &str, value: &Value) {
        let name = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        match (parent, key) {
            (_, "image") | ("image", "reference") => self.images.extend(value.as_str().map(str::to_owned)),
            // Of a volume, `secretName`; of projected sources, references and CSI drivers, `name`.
            (_, "secret") => self.secrets.extend(name("secretName").or_else(|| name("name"))),
            (_, "secretRef" | "secretKeyRef" | "nodePublishSecretRef") => self.secrets.extend(name("name")),
            (_, "configMap" | "configMapRef" | "configMapKeyRef") => self.config_maps.extend(name("name")),
            (_, "persistentVolumeClaim") => self.claims.extend(name("claimName")),
            (_, "serviceAccountName") => self.service_accounts.extend(value.as_str().map(str::to_owned)),
            (_, "imagePullSecrets") => {
                let names = value.as_array().into_iter().flatten().filter_map(|secret| secret.get("name")?.as_str());
                self.secrets.extend(names.map(str::to_owned));
            }
            _ => {}
        }
    }
}

/// What all rules of a policy put somewhere; what waits for a workload as it is written.
pub fn parts_of(policy: &Policy) -> Vec<Part> {
    let rules = policy.rules.iter();
    rules
        .flat_map(|rule| match &rule.template {
            Some(template) => template.unevaluated(),
            None => rule.inject.parts(),
        })
        .collect()
}
