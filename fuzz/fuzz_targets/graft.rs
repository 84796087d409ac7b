//! The whole way of a manifest, held to every promise of `tests/promises`.
#![no_main]

#[path = "../../tests/promises/mod.rs"]
mod promises;

use libfuzzer_sys::fuzz_target;
use podgraft_core::policy::Policy;
use std::sync::LazyLock;

static POLICIES: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    promises::policies(include_str!("../../testdata/mutation/policy.yaml")).expect("the policy is right")
});

fuzz_target!(|text: &[u8]| {
    promises::check(text, &POLICIES);
});
