//! Computes the quality of service class of a pod, by which a node out of memory chooses what to evict (`ComputePodQOS`
//! of Kubernetes).

use crate::policy::quantity;
use crate::yaml::view::View;

use super::planner::Planner;

impl Planner<'_, '_> {
    /// The QoS class of the pod as it is planned so far. `None` if it cannot be read, or if the pod itself states
    /// resources: then those of the containers do not count.
    pub(super) fn qos_class(&self) -> Option<&'static str> {
        let spec = self.pod_spec_part();
        let resources = |part: &_| match self.draft.get(part, "resources") {
            Some(resources) => self.draft.view(&resources),
            None => Some(View::Null),
        };
        if !resources(&spec)?.is_null() {
            return None;
        }
        // Those of the manifest come first: mostly they decide the class.
        let lists = ["containers", "initContainers"].into_iter();
        let containers = lists
            .filter_map(|list| self.draft.get(&spec, list))
            .flat_map(|list| self.draft.items(&list));
        class_of(containers.map(|part| resources(&part)))
    }
}

/// The QoS class of a pod whose containers have these resources. `None` if those of a container cannot be read.
fn class_of<'v>(of_containers: impl Iterator<Item = Option<View<'v>>>) -> Option<&'static str> {
    let (mut has_any, mut are_bounded) = (false, true);
    for resources in of_containers {
        let asked = AskedResources::of(&resources?);
        has_any |= asked.has_any;
        are_bounded &= asked.are_bounded;
        if has_any && !are_bounded {
            return Some("Burstable");
        }
    }
    Some(if has_any { "Guaranteed" } else { "BestEffort" })
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
            let amount = resources.get(of)?.get(resource)?;
            Some(amount).filter(|amount| !amount.is_null())
        };
        let counted = |of: &str, resource: &str| {
            let quantity = quantity::of_view(stated(of, resource)?)?;
            (quantity > 0).then_some(quantity)
        };
        let mut asked = AskedResources {
            has_any: false,
            are_bounded: true,
        };
        for resource in ["cpu", "memory"] {
            let (limit, request) = (counted("limits", resource), counted("requests", resource));
            asked.has_any |= limit.or(request).is_some();
            // A limit without a request is also the request. A request of 0 is one, and does not count.
            let is_request = stated("requests", resource).is_none() || request == limit;
            asked.are_bounded &= limit.is_some() && is_request;
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_pod_is_guaranteed_where_each_container_has_what_it_may_use() {
        let class = |resources: &[Value]| {
            class_of(
                resources
                    .iter()
                    .map(|of_container| Some(View::from(of_container))),
            )
        };
        let both = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
        let same = json!({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}});
        let less = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m"}});
        let none = json!({"requests": {"cpu": "0", "ephemeral-storage": "1Gi"}});
        let zero =
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": 0}});
        assert_eq!(class(&[both.clone(), same.clone()]), Some("Guaranteed"));
        assert_eq!(class(&[both.clone(), less]), Some("Burstable"));
        assert_eq!(class(&[zero]), Some("Burstable"));
        assert_eq!(class(&[same, none.clone()]), Some("Burstable"));
        assert_eq!(class(&[none, json!(null)]), Some("BestEffort"));
    }
}
