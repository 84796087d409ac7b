//! The containers that a rule's container-level parts are for.

use crate::inventory::Inventory;
use crate::manifest::pod::{Container, ListKey, Workload};
use crate::policy::{ContainerChoice, ContainerList, ContainerMode};

use super::{Base, View, matches_any};

/// Containers that other injectors put into pods; a policy gets them only by naming them.
const OF_OTHER_INJECTORS: &[&str] = &[
    "istio-proxy",
    "linkerd-proxy",
    "vault-agent",
    "datadog-agent",
    "otc-container",
    "opentelemetry-auto-instrumentation",
    "jaeger-agent",
    "daprd",
    "consul-dataplane",
    "cloud-sql-proxy",
];

/// The containers that a rule's container-level parts are for, in pod order.
pub fn choose_containers<'t>(
    choice: &ContainerChoice,
    workload: &Workload<'t>,
    base: &Base,
    inventory: &Inventory,
) -> Vec<Container<'t>> {
    let view = View {
        workload,
        base,
        inventory,
    };
    let containers = workload
        .containers()
        .iter()
        .filter(|container| !base.left_out.contains(&container.node));
    if let Some(names) = choice
        .names_from_annotation
        .as_deref()
        .and_then(|key| view.any_annotation(key))
    {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        return containers
            .filter(|container| names.contains(&container.name))
            .cloned()
            .collect();
    }
    let mut chosen: Vec<Container<'t>> = containers
        .filter(|container| view.is_chosen(choice, container))
        .cloned()
        .collect();
    // "First" means the first app container where both lists are included: init containers end before it starts.
    if choice.mode == ContainerMode::First {
        let at = chosen
            .iter()
            .position(|container| container.list == ListKey::Containers)
            .unwrap_or(0);
        chosen = chosen.into_iter().skip(at).take(1).collect();
    }
    chosen
}

impl View<'_, '_> {
    fn is_chosen(&self, choice: &ContainerChoice, container: &Container<'_>) -> bool {
        let list = match (container.list, container.is_native_sidecar) {
            (ListKey::Containers, _) => ContainerList::Containers,
            (ListKey::InitContainers, false) => ContainerList::InitContainers,
            (ListKey::InitContainers, true) => ContainerList::Sidecars,
        };
        let is_named = choice
            .names
            .iter()
            .any(|glob| glob.glob().glob() == container.name);
        choice.include.contains(&list)
            && (is_named || !OF_OTHER_INJECTORS.contains(&container.name))
            && matches_any(&choice.names, container.name)
            && matches_any(&choice.images, container.image)
            && !choice
                .exclude_names
                .iter()
                .any(|glob| glob.is_match(container.name))
            && !choice
                .exclude_images
                .iter()
                .any(|glob| glob.is_match(container.image))
            && choice
                .with_env
                .iter()
                .all(|name| self.has_env(container, name))
            && !choice
                .without_env
                .iter()
                .any(|name| self.has_env(container, name))
    }

    /// Whether a container states a variable in its `env`; what `envFrom` brings is not looked at.
    fn has_env(&self, container: &Container<'_>, name: &str) -> bool {
        let tree = self.workload.tree;
        let Some(env) = tree.get(container.node, "env") else {
            return false;
        };
        let is_it = |entry| tree.get(entry, "name").and_then(|own| tree.scalar(own)) == Some(name);
        tree.items(env)
            .any(|entry| !self.base.left_out.contains(&entry) && is_it(entry))
    }
}
