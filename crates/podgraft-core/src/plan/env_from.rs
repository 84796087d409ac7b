//! Finds variables that come from `envFrom`: all keys of ConfigMaps and Secrets, if these are among the manifests.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables>

use serde_json::{Value, json};

use crate::diagnostic::Diagnostic;
use crate::inventory::{DataKind, DataValue};
use crate::outcome::ObjectName;
use crate::policy::EnvChange;

use super::containers::ListPlace;
use super::env::VariableChange;
use super::planner::{PlanError, Planner};

/// The field of an EnvFromSource, the field of `valueFrom` that refers to one key, and the kind of object.
const SOURCES: [(&str, &str, DataKind); 2] = [
    ("configMapRef", "configMapKeyRef", DataKind::ConfigMap),
    ("secretRef", "secretKeyRef", DataKind::Secret),
];

/// A variable that `envFrom` brings: a key of a known object.
pub(super) struct EnvFromVariable {
    /// The `valueFrom` by which a variable in `env` can read the same key.
    pub reference: Value,
    /// The current value; `None` if it is binary.
    pub text: Option<String>,
}

/// A source in `envFrom` that may define the variable.
struct EnvFromCandidate {
    name: ObjectName,
    key: String,
    key_reference: &'static str,
}

impl Planner<'_, '_> {
    /// Finds the variable that `envFrom` of a container brings under a name. Of several sources with the key, the last
    /// one takes effect. Also returns the objects that are not among the manifests and might bring it instead.
    pub(super) fn find_in_sources(
        &self,
        change: VariableChange<'_>,
    ) -> Result<(Option<EnvFromVariable>, Vec<ObjectName>), Diagnostic> {
        let mut unknown = Vec::new();
        for source in self.sources(change).into_iter().rev() {
            let Some(entries) = self.inventory.entries(&source.name)? else {
                unknown.push(source.name);
                continue;
            };
            if let Some(entry) = entries.get(&source.key) {
                let text = match entry {
                    DataValue::Text(text) => Some(text.clone()),
                    // `envFrom` ignores `binaryData` of a ConfigMap.
                    DataValue::Binary(_) if source.name.kind == DataKind::ConfigMap.name() => {
                        continue;
                    }
                    DataValue::Binary(_) => None,
                };
                let reference =
                    json!({source.key_reference: {"name": source.name.name, "key": source.key}});
                return Ok((Some(EnvFromVariable { reference, text }), unknown));
            }
        }
        Ok((None, unknown))
    }

    /// The sources that could bring a variable: those whose prefix its name has.
    fn sources(&self, change: VariableChange<'_>) -> Vec<EnvFromCandidate> {
        let (container, name) = (change.container, &change.entry.name);
        let list = self.list_part(ListPlace::OfContainer(container, "envFrom"));
        let mut sources = Vec::new();
        for entry in list.map(|list| self.draft.items(&list)).unwrap_or_default() {
            let prefix = self.draft.text_at(&entry, "prefix").unwrap_or_default();
            let Some(key) = name.strip_prefix(&*prefix).filter(|key| !key.is_empty()) else {
                continue;
            };
            for (reference, key_reference, kind) in SOURCES {
                let source = self.draft.get(&entry, reference);
                let named = source.and_then(|source| self.draft.text_at(&source, "name"));
                let named = named.filter(|object| !object.is_empty());
                sources.extend(named.map(|object| EnvFromCandidate {
                    name: kind.beside(self.workload, &object),
                    key: key.to_owned(),
                    key_reference,
                }));
            }
        }
        sources
    }

    /// Whether the key that a `valueFrom` names is among the manifests.
    pub(super) fn has_key(&self, value_from: &Value) -> Result<bool, Diagnostic> {
        for (_, key_reference, kind) in SOURCES {
            let Some(reference) = value_from.get(key_reference) else {
                continue;
            };
            let text = |key: &str| reference[key].as_str().unwrap_or_default();
            let name = kind.beside(self.workload, text("name"));
            let entries = self.inventory.entries(&name)?;
            return Ok(entries.is_some_and(|entries| entries.contains_key(text("key"))));
        }
        Ok(false)
    }

    /// Warns of objects of `envFrom` that are not among the manifests: they may bring the variable, and the policy's
    /// would override it. Only the help names them, so that a report shows the warning once for all workloads.
    pub(super) fn warn_of_unknown_sources(
        &mut self,
        change: VariableChange<'_>,
        unknown: &[ObjectName],
    ) {
        if self.options.brief || unknown.is_empty() {
            return;
        }
        let name = &change.entry.name;
        let message = format!(
            "policy `{}` sets `{name}`, which overrides any `{name}` that `envFrom` provides",
            self.policy.identity
        );
        let objects: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        let files = if unknown.len() == 1 {
            "file that contains"
        } else {
            "files that contain"
        };
        let help = format!(
            "pass the {files} the {} with `--context`",
            objects.join(" and the ")
        );
        self.warn_of_hidden(change, message, help);
    }

    pub(super) fn in_doubt(&self, doubt: Diagnostic, change: &EnvChange) -> PlanError {
        let problem = doubt.at(self.workload.name_place(), "for this workload");
        self.wanted(problem, &change.item).into()
    }
}
