//! Recognizes the values that an API server sets by default.

use serde_json::Value;

use super::functions::default_pull_policy;
use super::quantity;

/// Defaults of the API server: parent key (empty for any), key, value as JSON.
/// Source: `pkg/apis/core/v1/defaults.go` of Kubernetes.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("", "terminationMessagePath", "\"/dev/termination-log\""),
    ("", "terminationMessagePolicy", "\"File\""),
    ("", "resources", "{}"),
    ("", "securityContext", "{}"),
    ("", "protocol", "\"TCP\""),
    ("", "defaultMode", "420"),
    ("", "divisor", "\"0\""),
    ("", "divisor", "0"),
    ("", "scheme", "\"HTTP\""),
    ("", "timeoutSeconds", "1"),
    ("", "periodSeconds", "10"),
    ("", "successThreshold", "1"),
    ("", "failureThreshold", "3"),
    ("fieldRef", "apiVersion", "\"v1\""),
    ("hostPath", "type", "\"\""),
    ("grpc", "service", "\"\""),
    ("httpGet", "path", "\"/\""),
    ("serviceAccountToken", "expirationSeconds", "3600"),
];

/// Whether the value of a field is the API server's default for it. The field is in the mapping `owner`, which is at
/// key `parent`.
pub(crate) fn is_default(parent: &str, key: &str, value: &Value, owner: &Value) -> bool {
    if key == "imagePullPolicy" {
        return value.as_str()
            == owner
                .get("image")
                .and_then(Value::as_str)
                .map(default_pull_policy);
    }
    // A resource with a limit and no request gets the limit as request.
    if key == "requests" && parent == "resources" {
        let (Some(requests), Some(limits)) = (
            value.as_object(),
            owner.get("limits").and_then(Value::as_object),
        ) else {
            return false;
        };
        return requests.iter().all(|(name, quantity)| {
            let limit = limits.get(name);
            limit.is_some_and(|limit| quantity::is_same(quantity, limit))
        });
    }
    let text = value.to_string();
    DEFAULTS.iter().any(|(within, name, default)| {
        *name == key && (within.is_empty() || *within == parent) && *default == text
    })
}
