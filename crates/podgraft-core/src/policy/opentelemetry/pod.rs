//! A pod spec in the form that the injection changes: containers and volumes as lists, all other fields untouched.

use serde_json::{Map, Value};

use super::env::{Env, SharedVariables, items};
use super::go_slice;

/// The size of Go's `corev1.Container` in bytes.
const CONTAINER_SIZE: usize = 408;

/// A pod spec that agents are injected into.
#[derive(Debug, Clone)]
pub(super) struct InstrumentedPod {
    /// The whole pod spec. Its lists are replaced by the fields below in `into_value`.
    fields: Map<String, Value>,
    /// `initContainers`.
    pub init: Vec<InstrumentedContainer>,
    /// The capacity of the init container slice in the operator's code.
    init_room: usize,
    /// `containers`.
    pub apps: Vec<InstrumentedContainer>,
    /// `volumes`.
    pub volumes: Vec<Value>,
}

/// A container of such a pod.
#[derive(Debug, Clone)]
pub(super) struct InstrumentedContainer {
    fields: Map<String, Value>,
    /// The name that a platform gives the container when it has none; empty if none does.
    default_name: String,
    /// `env`.
    pub env: Env,
    /// The `env` that replaces [`Self::env`] if the container shares its variables with the one it was copied from.
    pub shared: Option<SharedVariables>,
    /// `volumeMounts`.
    pub mounts: Vec<Value>,
}

/// The list and the index of a container in a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContainerPosition {
    /// Of `initContainers`.
    Init(usize),
    /// Of `containers`.
    App(usize),
}

impl InstrumentedPod {
    /// Reads a pod spec; `None` if it or a container is not a mapping.
    pub(super) fn read(spec: &Value) -> Option<Self> {
        let fields = spec.as_object()?.clone();
        let init = containers(&fields, "initContainers")?;
        Some(InstrumentedPod {
            init_room: go_slice::decoded(CONTAINER_SIZE, init.len()),
            init,
            apps: containers(&fields, "containers")?,
            volumes: list(&fields, "volumes").to_vec(),
            fields,
        })
    }

    /// Names the containers that have no name as Knative does before the operator sees the pod
    /// (`RevisionSpec.SetDefaults`).
    pub(super) fn name_like_knative(&mut self) {
        let is_single = self.apps.len() == 1;
        for (index, app) in self.apps.iter_mut().enumerate() {
            app.default_name = match is_single {
                true => "user-container".to_owned(),
                false => format!("user-container-{index}"),
            };
        }
    }

    /// Writes the pod spec. A list that was absent and is empty stays absent.
    pub(super) fn into_value(mut self) -> Value {
        let init = self.init.into_iter().map(InstrumentedContainer::into_value);
        let apps = self.apps.into_iter().map(InstrumentedContainer::into_value);
        put_list(&mut self.fields, "initContainers", init.collect());
        put_list(&mut self.fields, "containers", apps.collect());
        put_list(&mut self.fields, "volumes", self.volumes);
        Value::Object(self.fields)
    }

    /// A field of the pod spec; null if it is absent.
    pub(super) fn field(&self, key: &str) -> &Value {
        self.fields.get(key).unwrap_or(&Value::Null)
    }

    /// Sets a field of the pod spec.
    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.fields.insert(key.to_owned(), value);
    }

    /// The container at a position.
    pub(super) fn get(&self, at: ContainerPosition) -> &InstrumentedContainer {
        match at {
            ContainerPosition::Init(at) => &self.init[at],
            ContainerPosition::App(at) => &self.apps[at],
        }
    }

    /// The container at a position, mutable.
    pub(super) fn get_mut(&mut self, at: ContainerPosition) -> &mut InstrumentedContainer {
        match at {
            ContainerPosition::Init(at) => &mut self.init[at],
            ContainerPosition::App(at) => &mut self.apps[at],
        }
    }

    /// The position of the container of a name. `containers` are searched before `initContainers`.
    pub(super) fn find(&self, name: &str) -> Option<ContainerPosition> {
        let is_meant = |container: &InstrumentedContainer| container.name() == name;
        let app = self.apps.iter().position(is_meant);
        let init = || self.init.iter().position(is_meant);
        app.map(ContainerPosition::App)
            .or_else(|| init().map(ContainerPosition::Init))
    }

    /// The index of the init container of a name.
    pub(super) fn find_init(&self, name: &str) -> Option<usize> {
        self.init
            .iter()
            .position(|container| container.name() == name)
    }

    /// Inserts an init container. Returns whether the containers behind it moved within the same backing array: then a
    /// pointer of the operator's code to one of them now points to the new container.
    pub(super) fn insert_init(&mut self, at: usize, container: InstrumentedContainer) -> bool {
        let room = go_slice::grown(CONTAINER_SIZE, self.init_room, self.init.len() + 1);
        let is_within = at < self.init.len() && room == self.init_room;
        self.init_room = room;
        self.init.insert(at, container);
        is_within
    }
}

impl InstrumentedContainer {
    /// Reads a container; `None` if it is not a mapping.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let fields = value.as_object()?.clone();
        Some(InstrumentedContainer {
            env: Env::of(list(&fields, "env").to_vec()),
            shared: None,
            default_name: String::new(),
            mounts: list(&fields, "volumeMounts").to_vec(),
            fields,
        })
    }

    fn into_value(mut self) -> Value {
        let env = match &self.shared {
            Some(shared) => shared.borrow().clone(),
            None => self.env.items().to_vec(),
        };
        put_list(&mut self.fields, "env", env);
        put_list(&mut self.fields, "volumeMounts", self.mounts);
        Value::Object(self.fields)
    }

    /// Gives the container variables of its own, if it shares those of the container that it is a copy of.
    pub(super) fn unshare(&mut self) {
        if let Some(shared) = self.shared.take() {
            self.env = Env::of(shared.take());
        }
    }

    /// The name of the container.
    pub(super) fn name(&self) -> &str {
        let name = self.fields.get("name").and_then(Value::as_str);
        let name = name.filter(|name| !name.is_empty());
        name.unwrap_or(&self.default_name)
    }

    /// The value of a field; `None` if it is absent or null.
    pub(super) fn field(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// Sets a field, or removes it.
    pub(super) fn set(&mut self, key: &str, value: Option<Value>) {
        match value {
            Some(value) => drop(self.fields.insert(key.to_owned(), value)),
            None => drop(self.fields.shift_remove(key)),
        }
    }
}

fn containers(fields: &Map<String, Value>, key: &str) -> Option<Vec<InstrumentedContainer>> {
    let containers = list(fields, key).iter();
    containers.map(InstrumentedContainer::read).collect()
}

fn list<'v>(fields: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    fields.get(key).map_or(&[], items)
}

/// Puts a list back into its field, unless it is empty and was before.
fn put_list(fields: &mut Map<String, Value>, key: &str, items: Vec<Value>) {
    let had = list(fields, key).len();
    if !items.is_empty() || had > 0 {
        fields.insert(key.to_owned(), Value::Array(items));
    }
}
