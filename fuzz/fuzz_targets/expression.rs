//! A CEL expression, as a condition, as a variable and as a value: an error or a result, soon, and never a panic.
#![no_main]

#[path = "../../tests/promises/mod.rs"]
mod promises;

use libfuzzer_sys::fuzz_target;
use serde_json::json;

const MANIFEST: &[u8] = include_bytes!("../../testdata/builtins/input.yaml");

fuzz_target!(|text: &str| {
    let policy = json!({
        "apiVersion": "podgraft.dev/v1alpha1",
        "kind": "InjectionPolicy",
        "metadata": {"name": "fuzz"},
        "spec": {
            "params": [{"name": "p", "default": "9400"}],
            "variables": [{"name": "v", "expression": text}],
            "matchConditions": [{"name": "c", "expression": format!("dyn({text}) == dyn({text})")}],
            "inject": {"podAnnotations": {"a": "x${string(variables.v)}", "b": "${variables.v}"}},
        },
    });
    let Ok(policies) = promises::policies(&policy.to_string()) else { return };
    promises::run(MANIFEST, &policies);
});
