//! A workload, read from its tree for selection and planning.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::source::{Place, Source, folder_of};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::is_boolean_or_number;

use super::object::Object;
use super::workload::{PodKind, PodKinds};

/// An object with a pod template.
#[derive(Debug, Clone)]
pub struct Workload<'t> {
    /// The nodes of the document.
    pub tree: &'t Tree<'t>,
    /// The text of the document, its file and its first line.
    pub source: &'t Source<'t>,
    /// The object.
    pub object: Object,
    /// The entry of its kind in the table of kinds.
    pub pod_kind: &'t PodKind,
    /// The mapping with the pod's `metadata` and `spec`; the object itself for a Pod.
    pub template: NodeId,
    /// The pod's `spec`.
    pub pod_spec: NodeId,
    /// `metadata.name`, or `metadata.generateName` followed by `*`, or empty.
    pub name: String,
    /// The stated namespace, or else that of the run.
    pub namespace: Option<String>,
    metadata: Metadata,
    pod_metadata: Metadata,
    containers: Vec<Container<'t>>,
}

/// The `metadata` of an object or of a pod template. Many steps look into it, so its nodes are found once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Its node.
    pub node: Option<NodeId>,
    /// `labels`
    pub labels: Option<NodeId>,
    /// `annotations`
    pub annotations: Option<NodeId>,
}

impl Metadata {
    fn of(tree: &Tree<'_>, holder: NodeId) -> Self {
        let node = tree.get(holder, "metadata");
        Metadata {
            node,
            labels: tree.get_in(node, "labels"),
            annotations: tree.get_in(node, "annotations"),
        }
    }

    /// The labels or the annotations, by the name of the field.
    pub fn texts(self, field: &str) -> Option<NodeId> {
        match field {
            "labels" => self.labels,
            _ => self.annotations,
        }
    }
}

/// Why an object of a workload kind has no pod template to edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodTemplateError {
    /// There is none, which some kinds allow, such as a Rollout with a `workloadRef`.
    Absent,
    /// A value on the path to it is not a mapping.
    WrongShape(NodeId),
}

/// The lists of containers of a pod spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerListKey {
    /// `containers`
    Containers,
    /// `initContainers`
    InitContainers,
}

impl ContainerListKey {
    /// Both, in the order in which the containers start.
    pub const ALL: [Self; 2] = [Self::InitContainers, Self::Containers];

    /// The key in the pod spec.
    pub fn key(self) -> &'static str {
        match self {
            ContainerListKey::Containers => "containers",
            ContainerListKey::InitContainers => "initContainers",
        }
    }
}

/// A container of the input.
#[derive(Debug, Clone)]
pub struct Container<'t> {
    /// Its node.
    pub node: NodeId,
    /// The list that it is in.
    pub list: ContainerListKey,
    /// Its index in that list.
    pub index: usize,
    /// `name`; empty if there is none.
    pub name: &'t str,
    /// `image`; empty if there is none.
    pub image: &'t str,
    /// Whether it is an init container with `restartPolicy: Always`.
    pub is_native_sidecar: bool,
    /// Its value, if a policy of this run adds it, or would if the input did not have it already. If the input does not
    /// have it, `node` is that of the pod spec.
    pub added: Option<Arc<Value>>,
}

impl<'t> Container<'t> {
    /// Returns a container that a policy of this run adds.
    pub fn added(
        node: NodeId,
        list: ContainerListKey,
        index: usize,
        value: &'t Arc<Value>,
    ) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let read = Self::of(node, list, index, text);
        Container {
            added: Some(Arc::clone(value)),
            ..read
        }
    }

    /// Returns a container of the input, from the texts of its fields.
    fn of(
        node: NodeId,
        list: ContainerListKey,
        index: usize,
        text: impl Fn(&str) -> Option<&'t str>,
    ) -> Self {
        let restarts = text("restartPolicy") == Some("Always");
        Container {
            node,
            list,
            index,
            name: text("name").unwrap_or_default(),
            image: text("image").unwrap_or_default(),
            is_native_sidecar: list == ContainerListKey::InitContainers && restarts,
            added: None,
        }
    }

    /// Its node, unless a policy of this run adds the container.
    pub(crate) fn input_node(&self) -> Option<NodeId> {
        self.added.is_none().then_some(self.node)
    }
}

impl<'t> Workload<'t> {
    /// Reads an object; `None` if it is no workload of a known kind, or has no pod template.
    pub fn find(
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        object: &Object,
        kinds: &'t PodKinds,
        default_namespace: Option<&str>,
    ) -> Option<Self> {
        let kind = kinds.find(&object.api_version, &object.kind)?;
        Workload::read(tree, source, object.clone(), kind, default_namespace).ok()
    }

    /// Reads an object of a known kind.
    ///
    /// # Errors
    /// When there is no pod template at the path of the kind.
    pub fn read(
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        object: Object,
        pod_kind: &'t PodKind,
        default_namespace: Option<&str>,
    ) -> Result<Self, PodTemplateError> {
        let mut template = object.node;
        for key in &pod_kind.path {
            template = descend(tree, template, key)?;
        }
        let pod_spec = descend(tree, template, "spec")?;
        let metadata = Metadata::of(tree, object.node);
        let text = |key| {
            let text = tree.string(tree.get_in(metadata.node, key)?);
            text.filter(|text| !text.is_empty())
        };
        let name = match text("name") {
            Some(name) => name.to_owned(),
            None => text("generateName").map_or_else(String::new, |prefix| format!("{prefix}*")),
        };
        let namespace = text("namespace").or(default_namespace).map(str::to_owned);
        let containers = read_containers(tree, pod_spec);
        Ok(Workload {
            tree,
            source,
            object,
            pod_kind,
            template,
            pod_spec,
            name,
            namespace,
            metadata,
            pod_metadata: Metadata::of(tree, template),
            containers,
        })
    }

    /// The namespace that the manifest states; empty if it states none.
    pub(crate) fn stated_namespace(&self) -> &'t str {
        let stated = self.tree.get_in(self.metadata.node, "namespace");
        let stated = stated.and_then(|node| self.tree.string(node));
        stated.unwrap_or_default()
    }

    /// Whether the manifest states a namespace.
    pub fn states_namespace(&self) -> bool {
        !self.stated_namespace().is_empty()
    }

    /// A title such as `Deployment shop/orders`.
    pub fn title(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.object.kind, self.name),
            None => format!("{} {}", self.object.kind, self.name),
        }
    }

    /// The folder of the file, if no namespace is known: files of one folder are applied together.
    pub fn folder(&self) -> Option<String> {
        self.namespace
            .is_none()
            .then(|| folder_of(&self.source.name))
    }

    /// The place of a node in the file.
    pub fn place(&self, node: NodeId) -> Place {
        self.place_of(self.tree.span(node))
    }

    /// The place of a byte range of the document.
    pub(crate) fn place_of(&self, span: Range<usize>) -> Place {
        self.source.place(span)
    }

    /// The place of the object's name, or else of its kind.
    pub(crate) fn name_place(&self) -> Place {
        let name = self.tree.get_in(self.metadata.node, "name");
        let node = name
            .or_else(|| self.tree.get(self.object.node, "kind"))
            .unwrap_or(self.object.node);
        self.place(node)
    }

    /// The pod template's metadata.
    pub(crate) fn pod_metadata(&self) -> Metadata {
        self.pod_metadata
    }

    /// The workload's own metadata.
    pub fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// An annotation of the workload itself.
    pub(crate) fn workload_annotation(&self, key: &str) -> Option<NodeId> {
        self.tree.get_in(self.metadata.annotations, key)
    }

    /// Whether the pod template or the workload has an annotation.
    pub(crate) fn has_annotation(&self, key: &str) -> bool {
        let holders = [self.pod_metadata, self.metadata];
        let mut values = holders.map(|metadata| self.tree.get_in(metadata.annotations, key));
        values.iter_mut().any(|value| value.is_some())
    }

    /// The first label or annotation of the workload or its pod template whose value is neither a string nor null, with
    /// `labels` or `annotations`.
    pub(crate) fn untyped_text(&self) -> Option<(&'static str, &str, NodeId)> {
        let fields = |metadata: Metadata| {
            [
                ("labels", metadata.labels),
                ("annotations", metadata.annotations),
            ]
        };
        for (field, texts) in [self.metadata, self.pod_metadata]
            .into_iter()
            .flat_map(fields)
        {
            let texts = texts.into_iter();
            for (key, value) in texts.flat_map(|texts| self.tree.entries(texts)) {
                if !self.tree.is_merge_key(key) && self.is_untyped(self.tree.follow(value)) {
                    let key = self.tree.scalar(key).unwrap_or_default();
                    return Some((field, key, value));
                }
            }
        }
        None
    }

    fn is_untyped(&self, node: NodeId) -> bool {
        self.tree.kind(node).is_collection() || is_boolean_or_number(self.tree, node)
    }

    /// All containers in order: init containers, then app containers.
    pub fn containers(&self) -> &[Container<'t>] {
        &self.containers
    }

    /// The value of a container list that is not a list, or an item of it that is not a mapping.
    pub(crate) fn malformed_containers(&self) -> Option<NodeId> {
        let tree = self.tree;
        let lists = ContainerListKey::ALL.map(|list| tree.get(self.pod_spec, list.key()));
        let lists = lists.into_iter().flatten();
        lists.filter(|&list| !tree.is_null(list)).find_map(|list| {
            match tree.kind(list).is_sequence() {
                false => Some(list),
                true => tree.items(list).find(|&item| !tree.kind(item).is_mapping()),
            }
        })
    }

    /// The second of two equal keys in the mappings that selection reads: those above the pod's `spec`, and metadata.
    pub(crate) fn duplicate_key(&self) -> Option<NodeId> {
        let tree = self.tree;
        let mut above = self.object.node;
        let path = self.pod_kind.path.iter().map_while(|key| {
            above = tree.get(above, key)?;
            Some(above)
        });
        let metadata = [self.metadata, self.pod_metadata].into_iter();
        let metadata = metadata
            .flat_map(|metadata| [metadata.node, metadata.labels, metadata.annotations])
            .flatten();
        std::iter::once(self.object.node)
            .chain(path)
            .chain(metadata)
            .find_map(|node| tree.duplicate_key(tree.follow(node)))
    }

    /// The second of two equal keys in the pod's `spec` or in a container, which edits may have to go through.
    pub(crate) fn duplicate_key_in_pod(&self) -> Option<NodeId> {
        let containers = self.containers().iter().map(|container| container.node);
        std::iter::once(self.pod_spec)
            .chain(containers)
            .find_map(|node| self.tree.duplicate_key(self.tree.follow(node)))
    }
}

/// The second of two equal keys among those on the path to the pod's `spec`, as far as the values of the first ones lead.
pub(crate) fn duplicate_on_path(
    tree: &Tree<'_>,
    object: &Object,
    pod_kind: &PodKind,
) -> Option<NodeId> {
    let mut mapping = Some(object.node);
    let mut keys = pod_kind.path.iter().map(String::as_str).chain(["spec"]);
    keys.find_map(|key| {
        let node = mapping?;
        mapping = tree.get(node, key);
        let equal = tree.entries(node).map(|(key, _)| key);
        equal
            .filter(|&other| tree.scalar(other) == Some(key))
            .nth(1)
    })
}

fn read_containers<'t>(tree: &'t Tree<'t>, pod_spec: NodeId) -> Vec<Container<'t>> {
    let mut containers = Vec::new();
    for list in ContainerListKey::ALL {
        let Some(sequence) = tree.get(pod_spec, list.key()) else {
            continue;
        };
        for (index, node) in tree.items(sequence).enumerate() {
            if tree.kind(node).is_mapping() {
                let text = |key: &str| tree.get(node, key).and_then(|value| tree.string(value));
                containers.push(Container::of(node, list, index, text));
            }
        }
    }
    containers
}

fn descend(tree: &Tree<'_>, node: NodeId, key: &str) -> Result<NodeId, PodTemplateError> {
    match tree.get(node, key) {
        None => Err(PodTemplateError::Absent),
        Some(value) if tree.is_null(value) => Err(PodTemplateError::Absent),
        Some(value) if tree.kind(value).is_mapping() => Ok(value),
        Some(value) => Err(PodTemplateError::WrongShape(value)),
    }
}
