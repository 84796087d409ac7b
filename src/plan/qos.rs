//! Computes the quality of service class of a pod, by which a node out of memory chooses what to evict (`ComputePodQOS`
//! of Kubernetes).

use crate::policy::quantity;
use crate::yaml::view::View;

use super::planner::Planner;

impl Planner<'_, '_> {
    /// The QoS class of the pod as it is planned so far. `None` if it cannot be read, or if the pod itself states
    /// resources.
    pub(super) fn qos_class(&self) -> Option<&'static str> {
        let spec = self.pod_spec_part();
        let resources = |part: &_| match self.draft.get(part, "resources") {
            Some(resources) => self.draft.view(&resources),
            None => Some(View::Null),
        };
        let lists = ["initContainers", "containers"].into_iter();
        let containers = lists
            .filter_map(|list| self.draft.get(&spec, list))
            .flat_map(|list| self.draft.items(&list));
        let of_containers: Option<Vec<View<'_>>> =
            containers.map(|part| resources(&part)).collect();
        class_of(&resources(&spec)?, &of_containers?)
    }
}

/// The QoS class of a pod with these resources of the pod and of its containers. `None` if the pod itself states
/// resources: then those of the containers do not count.
fn class_of(of_pod: &View<'_>, of_containers: &[View<'_>]) -> Option<&'static str> {
    if !of_pod.is_null() {
        return None;
    }
    let asked: Vec<AskedResources> = of_containers.iter().map(AskedResources::of).collect();
    Some(if !asked.iter().any(|container| container.has_any) {
        "BestEffort"
    } else if asked.iter().all(|container| container.are_bounded) {
        "Guaranteed"
    } else {
        "Burstable"
    })
}

/// What a container asks for of CPU and memory.
struct AskedResources {
    /// It states an amount of one of them.
    has_any: bool,
    /// It has a limit of both, and asks for as much.
    are_bounded: bool,
}

impl AskedResources {
    fn of(resources: &View<'_>) -> Self {
        let stated = |of: &str, resource: &str| {
            let quantity = quantity::of_view(resources.get(of)?.get(resource)?)?;
            (quantity > 0).then_some(quantity)
        };
        let amounts = ["cpu", "memory"]
            .map(|resource| (stated("limits", resource), stated("requests", resource)));
        AskedResources {
            has_any: amounts
                .iter()
                .any(|(limit, request)| limit.or(*request).is_some()),
            // A limit without a request is also the request.
            are_bounded: amounts
                .iter()
                .all(|(limit, request)| limit.is_some() && (request.is_none() || request == limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_pod_is_guaranteed_where_each_container_has_what_it_may_use() {
        let class = |resources: &[Value]| {
            let of_containers: Vec<View<'_>> = resources.iter().map(View::from).collect();
            class_of(&View::Null, &of_containers)
        };
        let both = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
        let same = json!({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}});
        let less = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m"}});
        let none = json!({"requests": {"cpu": "0", "ephemeral-storage": "1Gi"}});
        assert_eq!(class(&[both.clone(), same.clone()]), Some("Guaranteed"));
        assert_eq!(class(&[both.clone(), less]), Some("Burstable"));
        assert_eq!(class(&[same, none.clone()]), Some("Burstable"));
        assert_eq!(class(&[none, json!(null)]), Some("BestEffort"));
        assert_eq!(class_of(&View::from(&both), &[View::Null]), None);
    }
}
