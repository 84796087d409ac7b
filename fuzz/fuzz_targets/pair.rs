//! A policy and a manifest, kept apart by a line `=====`, both of them anything.
#![no_main]

#[path = "../../tests/promises/mod.rs"]
mod promises;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Some((policy, manifest)) = text.split_once("\n=====\n") else { return };
    let Ok(policies) = promises::policies(policy) else { return };
    if !policies.is_empty() {
        promises::check(manifest.as_bytes(), &policies);
    }
});
