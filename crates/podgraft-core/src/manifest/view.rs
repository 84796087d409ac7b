//! Reads the parts of a workload for reports. What is malformed is shown as far as it can be read.

use crate::mask;
use crate::outcome::view::{
    ContainerView, EnvView, MetricsEndpoint, MountView, PortView, SCRAPE, SCRAPE_PORT, VolumeView,
    WorkloadView, scraped_port,
};
use crate::ownership::{MARKER, marked_policies};
use crate::yaml::tree::{NodeId, Tree};

use super::pod::{Container, ContainerListKey, Workload};

/// Common names of metrics ports: those of the operator of the Prometheus JMX exporter, of Prometheus' own examples and
/// of the OpenTelemetry Operator.
const METRICS_PORTS: &[&str] = &["jmx-metrics", "metrics", "http-metrics", "prometheus"];

/// Returns the parts of a workload.
pub(crate) fn view_of(workload: &Workload<'_>) -> WorkloadView {
    let tree = workload.tree;
    let workload_annotations = pairs(tree, workload.metadata().annotations);
    let marker = workload_annotations
        .iter()
        .find(|(key, _)| key == MARKER)
        .map_or("", |(_, value)| value.as_str());
    let policies = marked_policies(marker).map(str::to_owned).collect();
    let mut view = WorkloadView {
        api_version: workload.object.api_version.clone(),
        kind: workload.object.kind.clone(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        containers: container_views(workload, |container| {
            container.list == ContainerListKey::Containers
        }),
        init_containers: container_views(workload, |container| {
            container.list == ContainerListKey::InitContainers && !container.is_native_sidecar
        }),
        sidecars: container_views(workload, |container| container.is_native_sidecar),
        volumes: volumes(workload),
        pod_annotations: pairs(tree, workload.pod_metadata().annotations),
        pod_labels: pairs(tree, workload.pod_metadata().labels),
        policies,
        metrics_endpoints: Vec::new(),
    };
    view.metrics_endpoints = metrics_endpoints(&view);
    view
}

/// The text under a key; empty if there is none.
fn text(tree: &Tree<'_>, mapping: NodeId, key: &str) -> String {
    let value = tree.get(mapping, key);
    value
        .and_then(|value| tree.string(value))
        .unwrap_or_default()
        .to_owned()
}

/// Reads the items of a list that are mappings.
fn list<T>(
    tree: &Tree<'_>,
    mapping: NodeId,
    key: &str,
    read: fn(&Tree<'_>, NodeId) -> T,
) -> Vec<T> {
    let list = tree
        .get(mapping, key)
        .filter(|&list| tree.kind(list).is_sequence());
    let items = list.into_iter().flat_map(|list| tree.items(list));
    items
        .filter(|&item| tree.kind(item).is_mapping())
        .map(|item| read(tree, item))
        .collect()
}

fn container_views(
    workload: &Workload<'_>,
    is_wanted: impl Fn(&Container<'_>) -> bool,
) -> Vec<ContainerView> {
    let containers = workload.containers().iter();
    let wanted = containers.filter(|container| is_wanted(container));
    wanted
        .map(|container| container_view(workload.tree, container))
        .collect()
}

fn container_view(tree: &Tree<'_>, container: &Container<'_>) -> ContainerView {
    let node = container.node;
    ContainerView {
        name: container.name.to_owned(),
        image: container.image.to_owned(),
        ports: list(tree, node, "ports", port),
        env: list(tree, node, "env", env),
        env_from: list(tree, node, "envFrom", env_from),
        volume_mounts: list(tree, node, "volumeMounts", mount),
    }
}

fn mount(tree: &Tree<'_>, item: NodeId) -> MountView {
    MountView {
        name: text(tree, item, "name"),
        mount_path: text(tree, item, "mountPath"),
        read_only: text(tree, item, "readOnly") == "true",
    }
}

fn port(tree: &Tree<'_>, item: NodeId) -> PortView {
    let protocol = Some(text(tree, item, "protocol")).filter(|protocol| !protocol.is_empty());
    PortView {
        name: text(tree, item, "name"),
        container_port: text(tree, item, "containerPort"),
        protocol: protocol.unwrap_or_else(|| "TCP".to_owned()),
    }
}

fn env(tree: &Tree<'_>, item: NodeId) -> EnvView {
    let name = text(tree, item, "name");
    let value_from = tree
        .get(item, "valueFrom")
        .filter(|&source| tree.kind(source).is_mapping());
    let source = value_from.and_then(|source| tree.entries(source).next());
    let value = tree
        .get(item, "value")
        .map(|_| mask::value(&name, &text(tree, item, "value")).into_owned());
    EnvView {
        value,
        value_from: source
            .and_then(|(key, _)| tree.scalar(key))
            .map(str::to_owned),
        name,
    }
}

fn env_from(tree: &Tree<'_>, item: NodeId) -> String {
    for (key, kind) in [("configMapRef", "configMap"), ("secretRef", "secret")] {
        if let Some(reference) = tree.get(item, key) {
            return format!("{kind}/{}", text(tree, reference, "name"));
        }
    }
    String::new()
}

fn volumes(workload: &Workload<'_>) -> Vec<VolumeView> {
    let tree = workload.tree;
    let mut volumes = list(tree, workload.pod_spec, "volumes", volume);
    let spec = tree.get(workload.object.node, "spec");
    if let Some(spec) = spec.filter(|_| workload.object.kind == "StatefulSet") {
        volumes.extend(list(tree, spec, "volumeClaimTemplates", volume_claim));
    }
    volumes
}

fn volume(tree: &Tree<'_>, item: NodeId) -> VolumeView {
    let mut keys = tree.entries(item).filter_map(|(key, _)| tree.scalar(key));
    let source = keys.find(|key| *key != "name").unwrap_or("emptyDir");
    VolumeView {
        name: text(tree, item, "name"),
        source: source.to_owned(),
    }
}

fn volume_claim(tree: &Tree<'_>, item: NodeId) -> VolumeView {
    let metadata = tree.get(item, "metadata");
    let name = metadata.map(|metadata| text(tree, metadata, "name"));
    VolumeView {
        name: name.unwrap_or_default(),
        source: "volumeClaimTemplate".to_owned(),
    }
}

fn pairs(tree: &Tree<'_>, mapping: Option<NodeId>) -> Vec<(String, String)> {
    let entries = mapping
        .into_iter()
        .flat_map(|mapping| tree.entries(mapping));
    let pairs = entries.filter_map(|(key, value)| {
        let (key, value) = (tree.scalar(key)?, tree.string(value).unwrap_or_default());
        let value = mask::value(key, value).into_owned();
        Some((key.to_owned(), value))
    });
    pairs.collect()
}

fn metrics_endpoints(view: &WorkloadView) -> Vec<MetricsEndpoint> {
    let annotation = |key: &str| {
        let pair = view.pod_annotations.iter().find(|(known, _)| known == key);
        pair.map(|(_, value)| value.as_str())
    };
    let annotated =
        scraped_port(annotation(SCRAPE), annotation(SCRAPE_PORT)).map(|port| port.to_string());
    let ports = view.all_containers().flat_map(|container| &container.ports);
    let named = ports.filter(|port| METRICS_PORTS.contains(&port.name.as_str()));
    let mut ports: Vec<String> = annotated
        .into_iter()
        .chain(named.map(|port| port.container_port.clone()))
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
        .into_iter()
        .map(|port| MetricsEndpoint::of(&view.kind, view.namespace.as_deref(), &view.name, port))
        .collect()
}
