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
    let stated = |resources: &View<'_>, of: &str, resource: &str| {
        let quantity = quantity::of_view(resources.get(of)?.get(resource)?)?;
        (quantity > 0).then_some(quantity)
    };
    // A limit without a request is also the request.
    let is_bounded = |resources: &View<'_>, resource: &str| {
        let limit = stated(resources, "limits", resource);
        limit.is_some()
            && stated(resources, "requests", resource).is_none_or(|request| Some(request) == limit)
    };
    let asks = |resources: &View<'_>| {
        let fields = ["requests", "limits"].into_iter();
        fields
            .flat_map(|of| ["cpu", "memory"].map(|resource| stated(resources, of, resource)))
            .any(|amount| amount.is_some())
    };
    Some(match () {
        () if !of_containers.iter().any(asks) => "BestEffort",
        () if of_containers
            .iter()
            .all(|resources| is_bounded(resources, "cpu") && is_bounded(resources, "memory")) =>
        {
            "Guaranteed"
        }
        () => "Burstable",
    })
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
