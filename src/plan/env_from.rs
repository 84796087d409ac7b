//! Variables that come from `envFrom`: whole ConfigMaps and Secrets, whose keys are looked up among the manifests.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables>

use serde_json::{Value, json};

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{DataKind, DataName, DataValue, UnclearObject};
use crate::manifest::pod::Container;
use crate::policy::EnvChange;

use super::planner::Planner;

/// The references of an EnvFromSource, and of an env var's `valueFrom`.
const SOURCES: [(&str, &str, DataKind); 2] = [
    ("configMapRef", "configMapKeyRef", DataKind::ConfigMap),
    ("secretRef", "secretKeyRef", DataKind::Secret),
];

/// What `envFrom` says of a variable.
pub(super) enum EnvFromVariable {
    /// From none of the objects.
    Nowhere,
    /// From this key; one that stands for the same variable in `env`, and the text in it.
    Key {
        /// `valueFrom` of the variable.
        reference: Value,
        /// As it is now; `None` when it is no text.
        text: Option<String>,
    },
}

/// A source in `envFrom` that may define the variable.
struct EnvFromCandidate {
    name: DataName,
    key: String,
    key_reference: &'static str,
}

impl Planner<'_, '_> {
    /// What `envFrom` of a container brings under a name. Of several sources the last one that has the key counts.
    /// Objects that are not among the manifests are given back: they may bring it, too.
    pub(super) fn find_in_sources(
        &self,
        container: &Container<'_>,
        name: &str,
    ) -> Result<(EnvFromVariable, Vec<DataName>), UnclearObject> {
        let mut unknown = Vec::new();
        for source in self.sources(container, name).into_iter().rev() {
            let Some(entries) = self.inventory.entries(&source.name)? else {
                unknown.push(source.name);
                continue;
            };
            if let Some(entry) = entries.get(&source.key) {
                let text = match entry {
                    DataValue::Text(text) => Some(text.clone()),
                    // Of ConfigMaps only `data` becomes variables.
                    DataValue::Binary(_) if source.name.kind == DataKind::ConfigMap => continue,
                    DataValue::Binary(_) => None,
                };
                let reference =
                    json!({source.key_reference: {"name": source.name.name, "key": source.key}});
                return Ok((EnvFromVariable::Key { reference, text }, unknown));
            }
        }
        Ok((EnvFromVariable::Nowhere, unknown))
    }

    /// The sources that could bring a variable: its name begins with their prefix.
    fn sources(&self, container: &Container<'_>, name: &str) -> Vec<EnvFromCandidate> {
        let part = self.container_part(container);
        let list = part
            .as_ref()
            .and_then(|part| self.draft.get(part, "envFrom"));
        let entries = list.map(|list| self.draft.items(&list)).unwrap_or_default();
        let mut sources = Vec::new();
        for entry in entries {
            let prefix = self.draft.text_at(&entry, "prefix").unwrap_or_default();
            let Some(key) = name.strip_prefix(&*prefix).filter(|key| !key.is_empty()) else {
                continue;
            };
            for (reference, key_reference, kind) in SOURCES {
                let named = self
                    .draft
                    .get(&entry, reference)
                    .and_then(|source| self.draft.text_at(&source, "name"));
                let Some(object) = named.filter(|object| !object.is_empty()) else {
                    continue;
                };
                sources.push(EnvFromCandidate {
                    name: self.data_name(kind, &object),
                    key: key.to_owned(),
                    key_reference,
                });
            }
        }
        sources
    }

    fn data_name(&self, kind: DataKind, name: &str) -> DataName {
        DataName {
            kind,
            namespace: self.workload.namespace.clone(),
            name: name.to_owned(),
            folder: self.workload.folder(),
        }
    }

    /// Whether the key that a `valueFrom` names is among the manifests.
    pub(super) fn has_key(&self, value_from: &Value) -> Result<bool, UnclearObject> {
        for (_, key_reference, kind) in SOURCES {
            let Some(reference) = value_from.get(key_reference) else {
                continue;
            };
            let text = |key: &str| {
                reference
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let entries = self
                .inventory
                .entries(&self.data_name(kind, text("name")))?;
            return Ok(entries.is_some_and(|entries| entries.contains_key(text("key"))));
        }
        Ok(false)
    }

    /// Objects of `envFrom` that are not there may bring the variable, and ours would win over it.
    pub(super) fn warn_of_unknown_sources(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        unknown: Vec<DataName>,
    ) {
        for object in unknown {
            let name = &change.name;
            let message = format!(
                "policy `{}` sets `{name}`, which wins over a `{name}` that the {} may bring by `envFrom`",
                self.policy.identity,
                object.title()
            );
            let warning = Diagnostic::warning(Code::HiddenEnv, message)
                .at(
                    self.workload.place(container.node),
                    format!("container `{}`", container.name),
                )
                .at(
                    self.policy.text.place(change.item.at.clone()),
                    "set by this",
                )
                .help(format!(
                    "give the file that holds the {} with `--context`",
                    object.kind
                ));
            self.problems.push(warning);
        }
    }

    pub(super) fn doubt_diagnostic(
        &self,
        doubt: UnclearObject,
        change: &EnvChange,
    ) -> Box<Diagnostic> {
        let policy_label = format!("policy `{}` wants this", self.policy.identity);
        let problem = doubt
            .into_diagnostic()
            .at(self.workload.name_place(), "for this workload");
        Box::new(problem.at(self.policy.text.place(change.item.at.clone()), policy_label))
    }
}
