//! The CustomResourceDefinition of InjectionPolicy, for clusters that store policies.

use serde_json::{Value, json};

use super::schema::policy_types;
use super::structural::structural;
pub use crate::policy::native::types::Scope;

/// The CustomResourceDefinition as JSON.
pub fn definition(scope: Scope) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "injectionpolicies.podgraft.dev"},
        "spec": {
            "group": "podgraft.dev",
            "names": {
                "kind": "InjectionPolicy",
                "listKind": "InjectionPolicyList",
                "plural": "injectionpolicies",
                "singular": "injectionpolicy",
            },
            "scope": match scope { Scope::Namespaced => "Namespaced", Scope::Cluster => "Cluster" },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    {"name": "Description", "type": "string", "jsonPath": ".spec.description"},
                    {"name": "Weight", "type": "integer", "jsonPath": ".spec.weight"},
                    {"name": "Suspended", "type": "boolean", "jsonPath": ".spec.suspend"},
                ],
                "schema": {"openAPIV3Schema": structural(&policy_types())},
            }],
        },
    })
}
