//! The facts about a workload that expressions can use, without what the baseline leaves out.

use serde_json::{Map, Value};

use crate::diagnostic::Code;
use crate::inventory::Inventory;
use crate::manifest::pod::{Container, ContainerListKey, Workload};
use crate::outcome::ObjectName;
use crate::policy::Policy;
use crate::policy::expression::{Evaluator, Facts, LookupKey};
use crate::policy::pruning::drop_nulls;
use crate::policy::template::{Evaluated, TemplateError};
use crate::yaml::tree::NodeId;
use crate::yaml::value::to_value;

use super::Baseline;

/// The prefix of podgraft's own annotations, which expressions do not see.
const ANNOTATION_PREFIX: &str = "podgraft.dev/";

/// A workload, and a container of it if the expression is for one.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadFacts<'f, 't> {
    /// The policy whose expressions use them.
    pub policy: &'f Policy,
    /// The workload.
    pub workload: &'f Workload<'t>,
    /// The baseline, which says what is left out.
    pub base: &'f Baseline,
    /// The container for `container`, if there is one.
    pub container: Option<&'f Container<'t>>,
    /// Other objects that expressions can look up.
    pub inventory: &'f Inventory,
    /// Whether conditions that do not hold are put into words. Without a report, nobody reads them.
    pub gives_reasons: bool,
}

impl Facts for WorkloadFacts<'_, '_> {
    fn fact(&self, root: &str, field: &str) -> Evaluated<Option<Value>> {
        match root {
            "workload" => self.of_workload(field),
            "pod" => match field {
                "spec" => self.pod_spec().map(Some),
                _ => self
                    .texts(self.workload.pod_metadata().node, field)
                    .map(Some),
            },
            "container" => match self.container {
                Some(container) if field == "type" => Ok(Some(Value::from(kind_of(container)))),
                Some(container) => match &container.added {
                    Some(value) => Ok(value.get(field).cloned()),
                    None => self.field(container.node, field),
                },
                None => Err(TemplateError::new(
                    Code::BadExpression,
                    "no container is selected here",
                    "use `containers.first`",
                )),
            },
            "containers" => self.first_container(),
            "object" => self.object().map(Some),
            "namespaceObject" => self.namespace_object(),
            _ => Ok(None),
        }
    }

    fn lookup(&self, wanted: &LookupKey) -> Evaluated<Option<Value>> {
        let workload_namespace = self.workload.namespace.as_ref();
        let stated = wanted.namespace.as_ref();
        let named = self.name_of(wanted, stated.or(workload_namespace));
        let mut found = self.object_named(&named)?;
        // The kind may be cluster-scoped, so look for an object without a namespace, too.
        if found.is_none() && stated.is_none() && workload_namespace.is_some() {
            found = self.object_named(&self.name_of(wanted, None))?;
        }
        if found.is_none() {
            self.base.missing.borrow_mut().insert(named.to_string());
        }
        Ok(found)
    }
}

impl<'f, 't> WorkloadFacts<'f, 't> {
    /// The facts for expressions about the workload as a whole.
    pub fn new(
        policy: &'f Policy,
        workload: &'f Workload<'t>,
        base: &'f Baseline,
        inventory: &'f Inventory,
    ) -> Self {
        WorkloadFacts {
            policy,
            workload,
            base,
            container: None,
            inventory,
            gives_reasons: true,
        }
    }

    /// The same, for a run that reports no reasons if not asked to.
    pub(crate) fn with_reasons(self, gives_reasons: bool) -> Self {
        WorkloadFacts {
            gives_reasons,
            ..self
        }
    }

    /// An evaluator for the policy's expressions, with what earlier ones kept.
    pub(crate) fn evaluator(&self) -> Evaluator<'_> {
        let container = self.container.and_then(Container::input_node);
        Evaluator::new(&self.policy.params, &self.policy.variables, self)
            .with_memory(self.base.memory(self.policy, container))
    }

    fn name_of(&self, wanted: &LookupKey, namespace: Option<&String>) -> ObjectName {
        ObjectName {
            group: wanted.group.clone(),
            kind: wanted.kind.clone(),
            namespace: namespace.cloned(),
            name: wanted.name.clone(),
            folder: self.workload.folder().filter(|_| namespace.is_none()),
        }
    }

    fn object_named(&self, name: &ObjectName) -> Evaluated<Option<Value>> {
        Ok(self.inventory.looked_up(name)?.cloned())
    }

    /// The Namespace object of the workload. `None` if it is not known, or the workload has no namespace.
    fn namespace_object(&self) -> Evaluated<Option<Value>> {
        let Some(name) = &self.workload.namespace else {
            return Ok(None);
        };
        Ok(self.inventory.namespace_object(name)?.cloned())
    }

    fn of_workload(&self, field: &str) -> Evaluated<Option<Value>> {
        let workload = self.workload;
        let tree = workload.tree;
        match field {
            "name" if workload.name.ends_with('*') || workload.name.is_empty() => {
                let help = "set `metadata.name`, or do not use `workload.name`";
                Err(TemplateError::new(
                    Code::BadExpression,
                    format!("{} has no name yet", workload.title()),
                    help,
                ))
            }
            "name" => Ok(Some(Value::from(workload.name.as_str()))),
            "kind" => Ok(Some(Value::from(workload.object.kind.as_str()))),
            "apiVersion" => Ok(Some(Value::from(workload.object.api_version.as_str()))),
            "namespace" => match &workload.namespace {
                Some(namespace) => Ok(Some(Value::from(namespace.as_str()))),
                None => {
                    let message = format!(
                        "{} does not specify a namespace, but this depends on it",
                        workload.title()
                    );
                    let help = "set the namespace of these manifests with `--namespace NAME`";
                    Err(TemplateError::new(Code::UnknownNamespace, message, help))
                }
            },
            "selector" => match tree.get(workload.object.node, "spec") {
                Some(spec) => self.field(spec, field),
                None => Ok(None),
            },
            _ => self.texts(workload.metadata().node, field).map(Some),
        }
    }

    /// The value of a node without what the base leaves out, and without fields that are null.
    fn value(&self, node: NodeId) -> Evaluated<Value> {
        let mut value = self.whole_value(node)?;
        if !self.base.left_out.is_empty() {
            self.leave_out(self.workload.tree.follow(node), &mut value);
        }
        drop_nulls(&mut value);
        Ok(value)
    }

    /// Removes from a value what the baseline leaves out. A list that gets empty is removed, too: it was injected.
    fn leave_out(&self, node: NodeId, value: &mut Value) {
        let tree = self.workload.tree;
        match value {
            Value::Object(map) => {
                for (key, inner) in tree.entries(node) {
                    let Some(key) = tree.scalar(key) else {
                        continue;
                    };
                    let Some(field) = map.get_mut(key) else {
                        continue;
                    };
                    let had_items = field.as_array().is_some_and(|items| !items.is_empty());
                    self.leave_out(tree.follow(inner), field);
                    let is_emptied = had_items && field.as_array().is_some_and(Vec::is_empty);
                    if is_emptied || self.base.left_out.contains(&tree.follow(inner)) {
                        map.shift_remove(key);
                    }
                }
            }
            Value::Array(items) => {
                let nodes: Vec<NodeId> = tree.items(node).collect();
                items
                    .iter_mut()
                    .zip(&nodes)
                    .for_each(|(item, node)| self.leave_out(*node, item));
                let mut seen = nodes.iter().map(|node| !self.base.left_out.contains(node));
                items.retain(|_| seen.next().unwrap_or(true));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn whole_value(&self, node: NodeId) -> Evaluated<Value> {
        to_value(self.workload.tree, node).map_err(|error| {
            let (title, line) = (self.workload.title(), self.workload.place_of(error.at).line);
            let message = format!("{title} cannot be read here (line {line})");
            let help = "write the value so that all YAML readers agree on it";
            TemplateError::new(Code::BadExpression, message, help)
        })
    }

    /// The value of a field. `None` if it is missing or null, or all its items are left out.
    fn field(&self, mapping: NodeId, field: &str) -> Evaluated<Option<Value>> {
        let Some(node) = self.workload.tree.get(mapping, field) else {
            return Ok(None);
        };
        let value = self.value(node)?;
        let is_emptied = value.as_array().is_some_and(Vec::is_empty)
            && self.workload.tree.items(node).next().is_some();
        Ok(Some(value).filter(|value| !value.is_null() && !is_emptied))
    }

    /// The labels or annotations; an empty mapping if there are none.
    fn texts(&self, metadata: Option<NodeId>, field: &str) -> Evaluated<Value> {
        let node = metadata.and_then(|metadata| self.workload.tree.get(metadata, field));
        let mut value = node.map_or(Ok(Value::Null), |node| self.value(node))?;
        self.leave_out_texts(&mut value, node);
        Ok(if value.is_object() {
            value
        } else {
            Value::Object(Map::new())
        })
    }

    fn leave_out_texts(&self, value: &mut Value, mapping: Option<NodeId>) {
        let (Some(map), Some(mapping)) = (value.as_object_mut(), mapping) else {
            return;
        };
        map.retain(|key, _| {
            let node = self.workload.tree.get(mapping, key);
            !key.starts_with(ANNOTATION_PREFIX)
                && node.is_none_or(|node| !self.base.left_out.contains(&node))
        });
    }

    fn first_container(&self) -> Evaluated<Option<Value>> {
        let containers = self.workload.containers();
        let is_seen = |container: &&Container<'_>| {
            container.list == ContainerListKey::Containers
                && !self.base.left_out.contains(&container.node)
        };
        containers
            .iter()
            .find(is_seen)
            .map(|container| self.value(container.node))
            .transpose()
    }

    fn pod_spec(&self) -> Evaluated<Value> {
        self.value(self.workload.pod_spec)
    }

    fn object(&self) -> Evaluated<Value> {
        let workload = self.workload;
        let mut object = self.value(workload.object.node)?;
        let template = workload.pod_kind.path.iter().map(String::as_str);
        let template: String = template.flat_map(|key| ["/", key]).collect();
        for (holder, metadata) in [
            (String::new(), workload.metadata()),
            (template.clone(), workload.pod_metadata()),
        ] {
            for field in ["labels", "annotations"] {
                let node = metadata.texts(field);
                if let Some(texts) = object.pointer_mut(&format!("{holder}/metadata/{field}")) {
                    self.leave_out_texts(texts, node);
                }
            }
        }
        Ok(object)
    }
}

/// The value of `container.type`.
fn kind_of(container: &Container<'_>) -> &'static str {
    match container.list {
        ContainerListKey::Containers => "Container",
        ContainerListKey::InitContainers if container.is_native_sidecar => "Sidecar",
        ContainerListKey::InitContainers => "InitContainer",
    }
}
