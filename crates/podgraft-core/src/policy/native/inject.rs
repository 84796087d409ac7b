//! Reads the items of `inject` as Kubernetes values, without the fields that podgraft adds to them.

use k8s_openapi::api::core::v1::EphemeralContainer;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::types::{self, EnvEntry, EnvOp, SidecarType, TextEntry};
use super::{PolicyReader, checks};
use crate::change::MetadataOwner;
use crate::diagnostic::Code;
use crate::ownership::{MARKER, RECORD};
use crate::policy::label_selector::check_label;
use crate::policy::validation::{Checker, ContainerRole};
use crate::policy::{self, EnvChange, Injection, PolicyValue, Position, TextChange, names};
use crate::yaml::value::{Path, leaves};

/// Fields that podgraft adds to the Kubernetes fields of an item.
const POLICY_FIELDS: [&str; 4] = ["op", "separator", "position", "type"];

/// The fields that podgraft adds to an item. The schema has checked the rest.
#[derive(Deserialize)]
struct PlacedItem {
    #[serde(default)]
    position: types::Position,
}

#[derive(Deserialize)]
struct PlacedSidecar {
    r#type: SidecarType,
    #[serde(default)]
    position: types::Position,
}

impl PolicyReader<'_, '_> {
    /// Reads the `inject` at a path, except for entries that wait for a workload.
    pub(super) fn inject(&mut self, at: &Path) -> Injection {
        self.check_names(at);
        self.report_each(&at.key("imagePullSecrets"), |secret| secret.object());
        Injection {
            init_containers: self.read_each(&at.key("initContainers"), Self::init_container),
            sidecars: self.read_each(&at.key("sidecars"), Self::sidecar),
            ephemeral_containers: self
                .read_each(&at.key("ephemeralContainers"), Self::ephemeral_container),
            volumes: self.read_each(&at.key("volumes"), Self::volume),
            volume_mounts: self.checked(&at.key("volumeMounts"), |mount| mount.volume_mount()),
            env: self.read_each(&at.key("env"), Self::env),
            env_from: self.checked(&at.key("envFrom"), |source| source.env_from()),
            ports: self.checked(&at.key("ports"), |port| port.port()),
            pod_annotations: self.metadata("annotations", &at.key("podAnnotations")),
            pod_labels: self.metadata("labels", &at.key("podLabels")),
            annotations: self.metadata("annotations", &at.key("annotations")),
            labels: self.metadata("labels", &at.key("labels")),
            text_changes: self.text_changes(at),
            image_pull_secrets: self.items(&at.key("imagePullSecrets")),
            pod_spec: self.pod_spec(&at.key("podSpec")),
            pod_spec_places: self.pod_spec_places(&at.key("podSpec")),
            container_defaults: self.container_defaults(&at.key("defaults")),
            pod_security_context: self
                .pod_security_context(&at.key("defaults").key("podSecurityContext")),
            checksums: self.read_each(&at.key("checksums"), Self::checksum),
            patches: self.patches(&at.key("patches")),
        }
    }

    /// Deserializes each entry of the list at a path and passes it to `read`.
    pub(super) fn read_each<T: DeserializeOwned, I>(
        &mut self,
        at: &Path,
        read: impl Fn(&mut Self, T, &Path) -> I,
    ) -> Vec<I> {
        let mut items = Vec::new();
        for path in self.paths(at) {
            let value = path.get(&self.document.value).unwrap_or(&Value::Null);
            match T::deserialize(value) {
                Ok(entry) => items.push(read(self, entry, &path)),
                Err(error) => {
                    let message = format!("`{}` is not valid: {error}", path.name());
                    self.problems
                        .push(self.document.error(Code::WrongType, &path, message));
                }
            }
        }
        items
    }

    /// Whether a path is in an entry that waits for a workload.
    fn is_left_out(&self, at: &Path) -> bool {
        self.pending_entries.iter().any(|path| at.starts_with(path))
    }

    /// The value at a path; `None` if it is absent or waits for a workload.
    fn item(&self, at: &Path) -> Option<PolicyValue> {
        let value = at
            .get(&self.document.value)
            .filter(|_| !self.is_left_out(at))?
            .clone();
        Some(PolicyValue {
            value: Arc::new(value),
            at: self.document.span(at),
        })
    }

    /// The values of the list at a path.
    fn items(&self, at: &Path) -> Vec<PolicyValue> {
        self.paths(at)
            .iter()
            .filter_map(|path| self.item(path))
            .collect()
    }

    /// The paths of the entries of the list at a path, except for entries that wait for a workload.
    pub(super) fn paths(&self, at: &Path) -> Vec<Path> {
        let mut paths = self.document.entries(at);
        paths.retain(|path| !self.is_left_out(path));
        paths
    }

    /// The mapping at a path, without [`POLICY_FIELDS`].
    pub(super) fn kubernetes_item(&self, at: &Path) -> PolicyValue {
        let value = at
            .get(&self.document.value)
            .expect("the caller walks the entries that are there");
        let mut map = value
            .as_object()
            .cloned()
            .expect("the schema checked that it is a mapping");
        map.retain(|key, _| !POLICY_FIELDS.contains(&key.as_str()));
        PolicyValue {
            value: Arc::new(Value::Object(map)),
            at: self.document.span(at),
        }
    }

    fn init_container(&mut self, entry: PlacedItem, at: &Path) -> (PolicyValue, Position) {
        let item = self.kubernetes_item(at);
        self.report(at, |container| container.container(ContainerRole::Init));
        if item.value.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            let message = "an init container with `restartPolicy: Always` is a sidecar";
            self.report_error(
                &at.key("restartPolicy"),
                message,
                "move it to `sidecars` with `type: Native`",
            );
        }
        (item, entry.position)
    }

    /// Reads a volume. Like the API server, defaults a volume without a source to `emptyDir`.
    fn volume(&mut self, entry: PlacedItem, at: &Path) -> (PolicyValue, Position) {
        let mut item = self.kubernetes_item(at);
        let has_source = |(key, source): (&String, &Value)| key != "name" && !source.is_null();
        let fields = item.value.as_object();
        if !fields.is_some_and(|fields| fields.iter().any(has_source)) {
            Arc::make_mut(&mut item.value)["emptyDir"] = Value::Object(Map::new());
        }
        self.report_in(&item.value, at, |volume| volume.volume());
        (item, entry.position)
    }

    /// Reads an ephemeral container. Deserializing the entry has checked the types of its fields.
    fn ephemeral_container(&mut self, _: EphemeralContainer, at: &Path) -> PolicyValue {
        self.report(at, |container| {
            container.container(ContainerRole::Ephemeral)
        });
        self.kubernetes_item(at)
    }

    fn sidecar(
        &mut self,
        entry: PlacedSidecar,
        at: &Path,
    ) -> (PolicyValue, policy::SidecarType, Position) {
        let mut item = self.kubernetes_item(at);
        let role = match entry.r#type {
            SidecarType::Native => ContainerRole::NativeSidecar,
            SidecarType::Container => ContainerRole::App,
        };
        self.report(at, |container| container.container(role));
        let stated = item.value.get("restartPolicy").and_then(Value::as_str);
        let wrong = match (entry.r#type, stated) {
            (SidecarType::Native, None | Some("Always")) => {
                Arc::make_mut(&mut item.value)["restartPolicy"] = Value::from("Always");
                None
            }
            (SidecarType::Native, Some(_)) => {
                Some(("a native sidecar always restarts", "remove `restartPolicy`"))
            }
            (SidecarType::Container, Some("Always")) => Some((
                "`restartPolicy: Always` is only for init containers, and this is an app container",
                "remove it, or use `type: Native`",
            )),
            (SidecarType::Container, _) => None,
        };
        if let Some((message, help)) = wrong {
            self.report_error(&at.key("restartPolicy"), message, help);
        }
        (item, entry.r#type, entry.position)
    }

    fn env(&mut self, entry: EnvEntry, at: &Path) -> EnvChange {
        self.report(at, |variable| variable.env_var());
        self.check_env_op(&entry, at);
        EnvChange {
            item: self.kubernetes_item(at),
            name: entry.var.name.clone(),
            op: entry.op,
            separator: entry
                .separator
                .clone()
                .unwrap_or_else(|| entry.op.default_separator(&entry.var.name).to_owned()),
            position: entry.position.clone(),
        }
    }

    fn check_env_op(&mut self, entry: &EnvEntry, at: &Path) {
        let name = &entry.var.name;
        let has_value = entry.var.value.is_some();
        let has_source = entry.var.value_from.is_some();
        if entry.op.joins() && !has_value {
            let message = format!("`op: {:?}` of `{name}` requires `value`", entry.op);
            self.report_error(
                at,
                message,
                "add a string to join with the existing value; for a reference, use `op: Set`",
            );
        }
        if entry.op == EnvOp::Remove && (has_value || has_source) {
            let message = format!("`op: Remove` of `{name}` does not accept a value");
            self.report_error(at, message, "remove `value` and `valueFrom`");
        }
        if let Some(separator) = &entry.separator {
            let owners = "Append, Prepend, and MergeKeys";
            self.check_separator(separator, name, entry.op, owners, at);
        }
    }

    /// Checks the separator of an entry. `owners` are the operations that have one.
    fn check_separator(&mut self, separator: &str, name: &str, op: EnvOp, owners: &str, at: &Path) {
        let (fault, help) = match op {
            EnvOp::MergeKeys if matches!(separator, "" | "=") => (
                "cannot separate `key=value` pairs".to_owned(),
                "use the text between two pairs; the default is a comma".to_owned(),
            ),
            op if !op.joins() => (
                format!("has no effect with `op: {op:?}`"),
                format!("remove it; it is only for {owners}"),
            ),
            _ => return,
        };
        let message = format!("`separator` of `{name}` {fault}");
        self.report_error(&at.key("separator"), message, &help);
    }

    /// Reads the labels or annotations at a path, for this field of a metadata.
    fn metadata(&mut self, field: &str, at: &Path) -> Vec<(String, PolicyValue)> {
        let entries = self.map_items(at);
        for (key, item) in &entries {
            self.check_entry(field, key, item, &at.key(key));
        }
        entries.into_iter().chain(self.set_items(at)).collect()
    }

    /// Checks an entry of this field of a metadata: the key, and the value of a label. podgraft reads its own annotations
    /// back, so a policy cannot set them.
    fn check_entry(&mut self, field: &str, key: &str, item: &PolicyValue, at: &Path) {
        match field {
            "labels" => {
                let value = item.value.as_str().unwrap_or_default();
                check_label(self.document, key, value, at, &mut self.problems);
            }
            _ if [MARKER, RECORD].contains(&key) => {
                let message = format!("a policy cannot set `{key}`: podgraft writes it itself");
                self.report_error(at, message, "use a different key");
            }
            _ => self.report_invalid(at, names::check_key(key)),
        }
    }

    /// The entries of a mapping of labels or annotations.
    fn map_items(&self, at: &Path) -> Vec<(String, PolicyValue)> {
        let map = at
            .get(&self.document.value)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        map.filter_map(|(key, _)| Some((key.clone(), self.item(&at.key(key))?)))
            .collect()
    }

    /// The entries with `op: Set` of a list of labels or annotations. `text_changes` reads the same lists and reports
    /// their errors, so unreadable entries are skipped here.
    fn set_items(&self, at: &Path) -> Vec<(String, PolicyValue)> {
        let set = self.paths(at).into_iter().filter_map(|path| {
            let entry = path.get(&self.document.value)?.clone();
            let entry: TextEntry = serde_json::from_value(entry).ok()?;
            let item = self.item(&path.key("value"))?;
            (entry.op == EnvOp::Set).then_some((entry.key, item))
        });
        set.collect()
    }

    /// The entries with another `op` than `Set`, of all four lists of labels and annotations.
    fn text_changes(&mut self, inject: &Path) -> Vec<TextChange> {
        // Key of `inject`, and the metadata that it is about.
        const LISTS: [(&str, MetadataOwner, &str); 4] = [
            ("podAnnotations", MetadataOwner::Pod, "annotations"),
            ("podLabels", MetadataOwner::Pod, "labels"),
            ("annotations", MetadataOwner::Workload, "annotations"),
            ("labels", MetadataOwner::Workload, "labels"),
        ];
        let mut changes = Vec::new();
        for (key, owner, field) in LISTS {
            let read = |reader: &mut Self, entry, path: &Path| {
                reader.text_change(entry, path, owner, field)
            };
            changes.extend(self.read_each(&inject.key(key), read).into_iter().flatten());
        }
        changes
    }

    fn text_change(
        &mut self,
        entry: TextEntry,
        at: &Path,
        owner: MetadataOwner,
        field: &'static str,
    ) -> Option<TextChange> {
        let item = self.item(&at.key("value"))?;
        self.check_entry(field, &entry.key, &item, at);
        if let Some(separator) = &entry.separator {
            self.check_separator(separator, &entry.key, entry.op, "Append and MergeKeys", at);
        }
        let value = serde_json::json!({"name": entry.key, "value": &*item.value});
        let change = EnvChange {
            item: PolicyValue {
                value: Arc::new(value),
                at: item.at,
            },
            name: entry.key,
            op: entry.op,
            separator: entry.separator.unwrap_or_else(|| ",".to_owned()),
            position: Position::Last,
        };
        (entry.op != EnvOp::Set).then_some(TextChange {
            owner,
            field,
            change,
        })
    }

    fn pod_spec(&mut self, at: &Path) -> Option<PolicyValue> {
        let item = self.item(at)?;
        for (key, instead) in checks::NOT_IN_POD_SPEC {
            if item.value.get(key).is_some() {
                let message = format!("`podSpec` does not accept `{key}`");
                let problem = self
                    .document
                    .key_error(Code::BadPolicy, &at.key(key), message);
                self.problems.push(problem.help(instead));
            }
        }
        self.report(at, |spec| spec.pod_spec());
        Some(item)
    }

    /// The byte range of each leaf of `podSpec`, by its path.
    fn pod_spec_places(&self, at: &Path) -> BTreeMap<Vec<String>, Range<usize>> {
        let mut places = BTreeMap::new();
        let Some(fields) = at.get(&self.document.value) else {
            return places;
        };
        leaves(fields, &mut Vec::new(), &mut |path, _| {
            let field = path.iter().fold(at.clone(), |at, key| at.key(key));
            places.insert(path.to_vec(), self.document.span(&field));
        });
        places
    }

    fn container_defaults(&mut self, at: &Path) -> Option<PolicyValue> {
        let mut item = self.item(at)?;
        let map: &mut Map<String, Value> = Arc::make_mut(&mut item.value).as_object_mut()?;
        map.retain(|key, _| key != "podSecurityContext");
        let is_empty = map.is_empty();
        self.report(at, |fields| fields.container_fields());
        (!is_empty).then_some(item)
    }

    fn pod_security_context(&mut self, at: &Path) -> Option<PolicyValue> {
        let item = self.item(at)?;
        self.report(at, |context| context.pod_security_context());
        Some(item)
    }

    /// Validates and returns the values of the list at a path.
    fn checked(&mut self, at: &Path, check: impl Fn(&mut Checker<'_>)) -> Vec<PolicyValue> {
        self.report_each(at, check);
        self.items(at)
    }
}
