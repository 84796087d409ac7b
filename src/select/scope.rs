//! What a workload offers to expressions, as the base shows it.

use serde_json::{Map, Value};

use crate::diagnostic::Code;
use crate::manifest::pod::{Container, ListKey, Workload};
use crate::policy::expression::Facts;
use crate::policy::template::Fault;
use crate::yaml::tree::NodeId;
use crate::yaml::value::to_value;

use super::Base;

/// podgraft's own annotations are no part of the input.
const OURS: &str = "podgraft.dev/";

const LISTS: [ListKey; 2] = [ListKey::Containers, ListKey::InitContainers];

/// A workload and, where one is chosen, a container of it.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadFacts<'f, 't> {
    /// The workload.
    pub workload: &'f Workload<'t>,
    /// What of it is not looked at.
    pub base: &'f Base,
    /// `container`.
    pub container: Option<&'f Container<'t>>,
}

impl Facts for WorkloadFacts<'_, '_> {
    fn fact(&self, root: &str, field: &str) -> Result<Option<Value>, Fault> {
        match root {
            "workload" => self.of_workload(field),
            "pod" => match field {
                "spec" => self.pod_spec().map(Some),
                _ => self.texts(self.workload.pod_metadata(), field).map(Some),
            },
            "container" => match self.container {
                Some(container) => self.field(container.node, field),
                None => Err(Fault::new(Code::BadExpression, "no container is chosen here", "use `containers.first`")),
            },
            "containers" => self.first_container(),
            "object" => self.object().map(Some),
            _ => Ok(None),
        }
    }
}

impl WorkloadFacts<'_, '_> {
    fn of_workload(&self, field: &str) -> Result<Option<Value>, Fault> {
        let workload = self.workload;
        let tree = workload.tree;
        match field {
            "name" if workload.name.ends_with('*') || workload.name.is_empty() => {
                let help = "give it `metadata.name`, or leave `workload.name` out";
                Err(Fault::new(Code::BadExpression, format!("{} has no name yet", workload.title()), help))
            }
            "name" => Ok(Some(Value::from(workload.name.as_str()))),
            "kind" => Ok(Some(Value::from(workload.object.kind.as_str()))),
            "apiVersion" => Ok(Some(Value::from(workload.object.api_version.as_str()))),
            "namespace" => match &workload.namespace {
                Some(namespace) => Ok(Some(Value::from(namespace.as_str()))),
                None => {
                    let message = format!("{} states no namespace, and this depends on it", workload.title());
                    let help = "say with `--namespace NAME` where these manifests will be installed";
                    Err(Fault::new(Code::UnknownNamespace, message, help))
                }
            },
            "selector" => match tree.get(workload.object.node, "spec") {
                Some(spec) => self.field(spec, field),
                None => Ok(None),
            },
            _ => self.texts(workload.metadata(), field).map(Some),
        }
    }

    fn value(&self, node: NodeId) -> Result<Value, Fault> {
        to_value(self.workload.tree, node).map_err(|error| {
            let place = self.workload.place_of(error.at);
            let message = format!("{} cannot be read here (line {})", self.workload.title(), place.line);
            Fault::new(Code::BadExpression, message, "expressions need values that every reader of YAML agrees on")
        })
    }

    /// A field that is there and not null.
    fn field(&self, mapping: NodeId, field: &str) -> Result<Option<Value>, Fault> {
        let Some(node) = self.workload.tree.get(mapping, field) else { return Ok(None) };
        Ok(Some(self.value(node)?).filter(|value| !value.is_null()))
    }

    /// Labels or annotations; empty where there are none.
    fn texts(&self, metadata: Option<NodeId>, field: &str) -> Result<Value, Fault> {
        let node = metadata.and_then(|metadata| self.workload.tree.get(metadata, field));
        let mut value = node.map_or(Ok(Value::Null), |node| self.value(node))?;
        self.leave_out_texts(&mut value, node);
        Ok(if value.is_object() { value } else { Value::Object(Map::new()) })
    }

    fn leave_out_texts(&self, value: &mut Value, mapping: Option<NodeId>) {
        let (Some(map), Some(mapping)) = (value.as_object_mut(), mapping) else { return };
        map.retain(|key, _| {
            let node = self.workload.tree.get(mapping, key);
            !key.starts_with(OURS) && node.is_none_or(|node| !self.base.left_out.contains(&node))
        });
    }

    fn first_container(&self) -> Result<Option<Value>, Fault> {
        let containers = self.workload.containers();
        let is_seen = |container: &&Container<'_>| {
            container.list == ListKey::Containers && !self.base.left_out.contains(&container.node)
        };
        containers.iter().find(is_seen).map(|container| self.value(container.node)).transpose()
    }

    fn pod_spec(&self) -> Result<Value, Fault> {
        let mut value = self.value(self.workload.pod_spec)?;
        self.leave_out_containers(&mut value);
        Ok(value)
    }

    fn leave_out_containers(&self, spec: &mut Value) {
        for list in LISTS {
            let Some(node) = self.workload.tree.get(self.workload.pod_spec, list.key()) else { continue };
            let seen: Vec<bool> =
                self.workload.tree.items(node).map(|item| !self.base.left_out.contains(&item)).collect();
            let Some(items) = spec.get_mut(list.key()).and_then(Value::as_array_mut) else { continue };
            let mut seen = seen.into_iter();
            items.retain(|_| seen.next().unwrap_or(true));
            if items.is_empty()
                && let Some(spec) = spec.as_object_mut()
            {
                spec.shift_remove(list.key());
            }
        }
    }

    fn object(&self) -> Result<Value, Fault> {
        let workload = self.workload;
        let mut object = self.value(workload.object.node)?;
        let template = workload.pod_kind.path.iter().map(String::as_str);
        let template: String = template.flat_map(|key| ["/", key]).collect();
        for (holder, metadata) in [(String::new(), workload.metadata()), (template.clone(), workload.pod_metadata())] {
            for field in ["labels", "annotations"] {
                let node = metadata.and_then(|metadata| workload.tree.get(metadata, field));
                if let Some(texts) = object.pointer_mut(&format!("{holder}/metadata/{field}")) {
                    self.leave_out_texts(texts, node);
                }
            }
        }
        if let Some(spec) = object.pointer_mut(&format!("{template}/spec")) {
            self.leave_out_containers(spec);
        }
        Ok(object)
    }
}
