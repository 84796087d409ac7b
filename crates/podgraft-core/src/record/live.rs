//! Handles objects from an API server, with fields that it filled in and that no record mentions.

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

use super::path::{RecordPaths, below, escape, identities, identity_of_item, is_aligned};
use super::{Effects, PolicyRecord, RECORD, Record, ReplacedValue, digest, is_empty};
use crate::policy::defaults::is_default;
use crate::policy::quantity;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

/// Metadata fields that only the server writes.
const OWN_METADATA: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
];
/// The annotation of `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether the object comes from an API server, which sets `metadata.uid`.
pub(crate) fn is_live(object: &Value) -> bool {
    object["metadata"]["uid"].is_string()
}

/// Like [`is_live`], for a node.
pub(crate) fn is_live_node(tree: &Tree<'_>, object: NodeId) -> bool {
    let metadata = tree.get(object, "metadata");
    let uid = metadata.and_then(|metadata| tree.get(metadata, "uid"));
    uid.is_some_and(|uid| to_value(tree, uid).is_ok_and(|uid| uid.is_string()))
}

/// Whether an annotation is one of kustomize or of an orchestrator of KRM functions, for its own bookkeeping.
fn is_of_orchestrator(annotation: &str) -> bool {
    let known = [
        "config.kubernetes.io/path",
        "config.kubernetes.io/index",
        "config.k8s.io/id",
    ];
    annotation.starts_with("internal.config.kubernetes.io/")
        || known.contains(&annotation)
        || annotation == "kustomize.config.k8s.io/id"
}

/// Returns an object as it was created, without what a server or an orchestrator added to it.
pub(crate) fn as_created(object: &Value) -> Value {
    let is_live = is_live(object);
    let mut object = object.clone();
    if is_live && let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    if is_live {
        metadata.retain(|key, _| !OWN_METADATA.contains(&key.as_str()));
    }
    let annotations = metadata.get_mut("annotations");
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else {
        return object;
    };
    let before = annotations.len();
    annotations.retain(|key, _| key != LAST_APPLIED && !is_of_orchestrator(key));
    if annotations.is_empty() && before > 0 {
        metadata.shift_remove("annotations");
    }
    object
}

/// Where the ServiceAccount admission plugin mounts the token in every container.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Whether an item of a list is the token mount that the server adds.
pub(super) fn is_token_mount(list: &str, item: &Value) -> bool {
    let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
    list == "volumeMounts"
        && item.get("mountPath").and_then(Value::as_str) == Some(TOKEN_PATH)
        && (name.starts_with("kube-api-access-") || name.contains("-token-"))
}

/// Whether a field is a list that contains only such items.
fn has_only(value: &Value, is_such: impl Fn(&Value) -> bool) -> bool {
    let items = value.as_array().filter(|items| !items.is_empty());
    items.is_some_and(|items| items.iter().all(is_such))
}

/// What an API server filled in or normalized in a live object.
#[derive(Default)]
pub(super) struct FilledIn<'r> {
    /// The paths of what the record says that policies added. These are not of the server, also if they are defaults.
    injected: HashSet<&'r str>,
    /// What the record says that policies replaced, by path. As long as it is so, nothing in it is of the server.
    replaced: HashMap<&'r str, &'r ReplacedValue>,
    paths: RecordPaths,
    /// The names of the target's volumes, without which no token mount is kept.
    volumes: HashSet<String>,
    /// The escaped keys and the identities that lead to the current value.
    segments: Vec<String>,
}

impl<'r> FilledIn<'r> {
    /// What is not in the record of the live object.
    pub(super) fn beside(record: &'r Record) -> Self {
        let effects = record.policies.iter().map(|policy| &policy.effects);
        let injected = effects.clone().flat_map(|effects| effects.added.keys());
        let replaced = effects.flat_map(|effects| &effects.replaced);
        FilledIn {
            injected: injected.map(String::as_str).collect(),
            replaced: replaced.map(|(path, was)| (path.as_str(), was)).collect(),
            paths: record.paths(),
            ..FilledIn::default()
        }
    }

    /// Copies it from `current`, so that it causes no change. Also keeps the current record if it names the same policies
    /// in the same versions, with the same generated objects.
    pub(super) fn adopt(mut self, target: &mut Value, current: &Value) {
        self.adopt_value("", target, current);
        let (Some(old), Some(new)) = (record_text(target), record_text(current)) else {
            return;
        };
        if recorded_versions(old).is_some_and(|versions| Some(versions) == recorded_versions(new)) {
            target["metadata"]["annotations"][RECORD] = Value::String(new.to_owned());
        }
    }

    fn adopt_value(&mut self, key: &str, target: &mut Value, current: &Value) {
        if self.is_replaced(current) {
            return;
        }
        match (target, current) {
            (Value::Object(target), Value::Object(fields)) => {
                self.adopt_fields(key, target, fields);
            }
            (Value::Array(target), Value::Array(current)) => {
                self.adopt_items(key, target, current);
            }
            _ => {}
        }
    }

    /// Does a step for an entry of the current value.
    fn within<T>(&mut self, segment: String, step: impl FnOnce(&mut Self) -> T) -> T {
        self.segments.push(segment);
        let result = step(self);
        self.segments.pop();
        result
    }

    fn adopt_items(&mut self, key: &str, target: &mut Vec<Value>, current: &[Value]) {
        let names = is_aligned(key).then(|| {
            let current_places: HashMap<String, usize> =
                identities(key, current).into_iter().zip(0..).collect();
            (identities(key, target), current_places)
        });
        for (index, item) in target.iter_mut().enumerate() {
            let (name, current_index) = match &names {
                Some((names, places)) => (names[index].clone(), places.get(&names[index]).copied()),
                None => (index.to_string(), Some(index)),
            };
            if let Some(current) = current_index.and_then(|index| current.get(index)) {
                self.within(name, |inner| inner.adopt_value(key, item, current));
            }
        }
        for item in current {
            if !self.is_kept_mount(key, item) {
                continue;
            }
            let name = identity_of_item(key, item);
            // Each path has one mount.
            let is_mounted = target.iter().any(|own| identity_of_item(key, own) == name);
            let is_injected = self.within(name, |inner| inner.is_injected(item));
            if !is_injected && !is_mounted {
                target.push(item.clone());
            }
        }
    }

    fn adopt_fields(
        &mut self,
        key: &str,
        target: &mut Map<String, Value>,
        fields: &Map<String, Value>,
    ) {
        if target.contains_key("containers") {
            self.volumes = names_of(target.get("volumes"));
        }
        if key == "resources" {
            self.adopt_copied_requests(target, fields);
        }
        // Whether a value is a default depends on the target's other fields: a request that was copied from a limit goes
        // with that limit.
        let beside = ["image", "limits"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), target.get(name)?.clone())));
        let owner = Value::Object(beside.collect());
        let is_quantity = |name: &str| {
            matches!(key, "limits" | "requests") || matches!(name, "sizeLimit" | "divisor")
        };
        for (name, value) in fields {
            let segment = escape(name).into_owned();
            match target.get_mut(name) {
                Some(existing) if is_quantity(name) && quantity::is_same(existing, value) => {
                    *existing = value.clone()
                }
                Some(existing) => {
                    self.within(segment, |inner| inner.adopt_value(name, existing, value));
                }
                None if (is_default(key, name, value, &owner)
                    || has_only(value, |item| self.is_kept_mount(name, item)))
                    && !self.within(segment, |inner| inner.is_injected(value)) =>
                {
                    drop(target.insert(name.clone(), value.clone()))
                }
                None => {}
            }
        }
    }

    /// Whether an item of a list is the token mount that the server adds, and its volume stays.
    fn is_kept_mount(&self, list: &str, item: &Value) -> bool {
        let volume = item.get("name").and_then(Value::as_str);
        is_token_mount(list, item) && volume.is_some_and(|volume| self.volumes.contains(volume))
    }

    /// Copies the requests that equal a limit of the target, where others may be beside them.
    fn adopt_copied_requests(
        &mut self,
        target: &mut Map<String, Value>,
        fields: &Map<String, Value>,
    ) {
        let limits = target.get("limits").and_then(Value::as_object);
        let requests = fields.get("requests").and_then(Value::as_object);
        let (Some(limits), Some(requests)) = (limits, requests) else {
            return;
        };
        let path = self.within("requests".to_owned(), |inner| {
            inner.paths.write(&inner.segments)
        });
        let is_injected = |path: &str| self.injected.contains(path);
        let mut copied = requests.clone();
        copied.retain(|name, quantity| {
            let limit = limits.get(name);
            limit.is_some_and(|limit| quantity::is_same(quantity, limit))
                && !is_injected(&path)
                && !is_injected(&below(&path, name))
        });
        if copied.is_empty() {
            return;
        }
        let own = target
            .entry("requests")
            .or_insert_with(|| Map::new().into());
        if let Value::Object(own) = own {
            for (name, quantity) in copied {
                own.entry(name).or_insert(quantity);
            }
        }
    }

    /// Whether the current value is the one that policies put in place of another, as it was.
    fn is_replaced(&self, value: &Value) -> bool {
        if self.replaced.is_empty() {
            return false;
        }
        let replaced = self.replaced.get(&*self.paths.write(&self.segments));
        replaced.is_some_and(|replaced| replaced.now == digest(value))
    }

    /// Whether policies added the current value, or something in it.
    fn is_injected(&self, value: &Value) -> bool {
        if self.injected.is_empty() {
            return false;
        }
        let path = self.paths.write(&self.segments);
        let is_within = |added: &&str| {
            let rest = added.strip_prefix(&*path);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.injected.contains(&*path) || !is_empty(value) && self.injected.iter().any(is_within)
    }
}

/// The names of the items of a list.
fn names_of(list: Option<&Value>) -> HashSet<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    let names = items.filter_map(|item| item.get("name")?.as_str());
    names.map(str::to_owned).collect()
}

fn record_text(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][RECORD].as_str()
}

/// What a record says of its policies beside their effects, which the values of the object show.
fn recorded_versions(record: &str) -> Option<Vec<PolicyRecord>> {
    let policies = Record::read(record).ok()?.policies.into_iter();
    let versions = policies.map(|policy| PolicyRecord {
        effects: Effects::default(),
        ..policy
    });
    Some(versions.collect())
}
