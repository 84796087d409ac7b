//! Equality of an existing value and the one that a policy wants. The existing one may also have fields that an API
//! server fills in, so that manifests dumped from a cluster are up to date instead of full of conflicts.

use serde_json::{Map, Value};

use crate::policy::defaults::is_default;
use crate::policy::quantity;

/// Whether two values of a pod are the same to an API server: what one of them does not state is a default in the other
/// one.
pub(super) fn is_same(existing: &Value, wanted: &Value) -> bool {
    compare(existing, wanted, "", states_nothing)
}

/// Whether a field of an object of any kind has every leaf of `wanted`, and beyond these only defaults. What is a default in
/// a pod need not be one there, so `wanted` must be stated.
pub(super) fn is_stated(key: &str, existing: &Value, wanted: &Value) -> bool {
    compare(existing, wanted, key, |_, _, value, _| value.is_null())
}

/// Whether a field is as if it were not there. Takes the parent's key, the key, the value, and the mapping that has it.
type IsNothing = fn(&str, &str, &Value, &Value) -> bool;

/// `is_nothing` is asked about the fields that only `wanted` has.
fn compare(existing: &Value, wanted: &Value, key: &str, is_nothing: IsNothing) -> bool {
    let compare = |found: &Value, value: &Value, key: &str| compare(found, value, key, is_nothing);
    match (existing, wanted) {
        (Value::Object(fields), Value::Object(wanted_fields)) => {
            let has_ours = wanted_fields
                .iter()
                .all(|(name, value)| match stated(fields, name) {
                    Some(Value::Object(requests)) if key == "resources" && name == "requests" => {
                        let own = without_copied(requests, value, fields.get("limits"));
                        compare(&own, value, name)
                    }
                    Some(found) if is_of_quantities(key) => compare(found, value, QUANTITY),
                    Some(found) if FREE_MAPPINGS.contains(&key) => compare(found, value, ""),
                    Some(found) => compare(found, value, name),
                    None => is_nothing(key, name, value, wanted),
                });
            has_ours
                && fields.iter().all(|(name, value)| {
                    wanted_fields.contains_key(name) || states_nothing(key, name, value, existing)
                })
        }
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len()
                && items
                    .iter()
                    .zip(wanted)
                    .all(|(found, value)| compare(found, value, key))
        }
        _ if existing == wanted => true,
        // `0.5` and `500m` are the same quantity.
        _ if matches!(key, QUANTITY | "sizeLimit" | "divisor") => {
            quantity::is_same(existing, wanted)
        }
        _ if matches!(key, "containerPort" | "hostPort" | "port") => {
            as_number(existing).is_some() && as_number(existing) == as_number(wanted)
        }
        _ => false,
    }
}

/// A field of a mapping, unless it is null, which is as if it were not there.
fn stated<'f>(fields: &'f Map<String, Value>, name: &str) -> Option<&'f Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// Returns the requests without those that a server copied from a limit, unless they are wanted.
fn without_copied(requests: &Map<String, Value>, wanted: &Value, limits: Option<&Value>) -> Value {
    let is_copied = |name: &str, request: &Value| {
        let limit = limits.and_then(|limits| limits.get(name));
        let limit = limit.filter(|_| wanted.get(name).is_none());
        limit.is_some_and(|limit| quantity::is_same(request, limit))
    };
    let own = requests
        .iter()
        .filter(|(name, request)| !is_copied(name, request));
    own.map(|(name, request)| (name.clone(), request.clone()))
        .collect()
}

/// Mappings whose keys anybody may choose. Nothing in them is a default.
const FREE_MAPPINGS: [&str; 8] = [
    "annotations",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "options",
    "stringData",
    "volumeAttributes",
];

/// Whether a field is null, a default, or what an API server does not store.
fn states_nothing(parent: &str, key: &str, value: &Value, owner: &Value) -> bool {
    let is_not_stored = match key {
        "readOnly" => *value == Value::Bool(false),
        "value" => value == "",
        // A volume without a source is one.
        "emptyDir" => value.as_object().is_some_and(Map::is_empty),
        _ => false,
    };
    let is_default = || is_not_stored || is_default(parent, key, value, owner);
    value.is_null() || !FREE_MAPPINGS.contains(&parent) && is_default()
}

/// Stands for the keys of `limits` and `requests`: they are names of resources, and all their values are quantities.
const QUANTITY: &str = "<quantity>";

fn is_of_quantities(key: &str) -> bool {
    matches!(key, "limits" | "requests")
}

fn as_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_api_server_fills_in_makes_no_difference() {
        let ours = json!({"name": "a", "image": "x:1", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "0.5"}}});
        let live = json!({
            "name": "a", "image": "x:1", "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}},
        });
        assert!(is_same(&live, &ours) && is_same(&ours, &live));
        assert!(is_stated("spec", &live, &ours) && !is_stated("spec", &ours, &live));
        let mut other = live.clone();
        other["imagePullPolicy"] = json!("Always");
        assert!(!is_same(&other, &ours));
        let [partly, copied] = [
            json!({"cpu": "0.5"}),
            json!({"cpu": "500m", "memory": "1Gi"}),
        ];
        let resources = |requests: &Value| {
            let limits = json!({"cpu": 1, "memory": "1Gi"});
            json!({"resources": {"limits": limits, "requests": requests}})
        };
        assert!(is_same(&resources(&copied), &resources(&partly)));
        assert!(!is_same(
            &resources(&json!({"memory": "1Gi"})),
            &resources(&partly)
        ));
        let mut more = live;
        more["ports"] = json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]);
        assert!(!is_same(&more, &ours));
        let [free, empty] = [
            json!({"csi": {"volumeAttributes": {"protocol": "TCP", "value": ""}}}),
            json!({"csi": {"volumeAttributes": {}}}),
        ];
        assert!(!is_same(&free, &empty) && !is_same(&empty, &free));
        let data = json!({"protocol": "TCP"});
        assert!(!is_stated("data", &data, &json!({})) && !is_stated("data", &json!({}), &data));
    }
}
