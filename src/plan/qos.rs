//! Computes the quality of service class of a pod, by which a node out of memory chooses what to evict (`ComputePodQOS`
//! of Kubernetes).

use serde_json::Value;

use crate::policy::quantity;

/// The QoS class of a pod. `None` if the pod itself states resources: then those of the containers do not count.
pub(super) fn class_of(spec: &Value) -> Option<&'static str> {
    if spec
        .get("resources")
        .is_some_and(|resources| !resources.is_null())
    {
        return None;
    }
    let lists = ["initContainers", "containers"].into_iter();
    let containers = || {
        lists
            .clone()
            .filter_map(|list| spec.get(list)?.as_array())
            .flatten()
    };
    let stated = |container: &Value, of: &str, resource: &str| {
        let quantity = quantity::parse(container.get("resources")?.get(of)?.get(resource)?)?;
        (quantity > 0).then_some(quantity)
    };
    // A limit without a request is also the request.
    let is_bounded = |container: &Value, resource: &str| {
        let limit = stated(container, "limits", resource);
        limit.is_some()
            && stated(container, "requests", resource).is_none_or(|request| Some(request) == limit)
    };
    let asks = |container: &Value| {
        let fields = ["requests", "limits"].into_iter();
        fields
            .flat_map(|of| ["cpu", "memory"].map(|resource| stated(container, of, resource)))
            .any(|amount| amount.is_some())
    };
    Some(match () {
        () if !containers().any(asks) => "BestEffort",
        () if containers()
            .all(|container| is_bounded(container, "cpu") && is_bounded(container, "memory")) =>
        {
            "Guaranteed"
        }
        () => "Burstable",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_guaranteed_where_each_container_has_what_it_may_use() {
        let class = |resources: &[Value]| {
            let containers: Vec<Value> = resources
                .iter()
                .map(|own| json!({"resources": own}))
                .collect();
            class_of(&json!({ "containers": containers }))
        };
        let both = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
        let same = json!({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}});
        let less = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m"}});
        let none = json!({"requests": {"cpu": "0", "ephemeral-storage": "1Gi"}});
        assert_eq!(class(&[both.clone(), same.clone()]), Some("Guaranteed"));
        assert_eq!(class(&[both.clone(), less]), Some("Burstable"));
        assert_eq!(class(&[same, none.clone()]), Some("Burstable"));
        assert_eq!(class(&[none, json!(null)]), Some("BestEffort"));
        assert_eq!(
            class_of(&json!({"resources": both, "containers": [{}]})),
            None
        );
    }
}
