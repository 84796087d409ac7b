//! Whatever a policy file holds is read or refused; what is read is applied without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podgraft_core::diagnostic::Code;
use podgraft_core::graft::{Options, graft};
use podgraft_core::policy::read::{PolicyFile, read};
use std::sync::Arc;

const MANIFEST: &[u8] = include_bytes!("../../testdata/builtins/input.yaml");

fuzz_target!(|text: &str| {
    let file = PolicyFile { name: "policy.yaml".into(), text: text.to_owned() };
    let (policies, problems) = read(vec![file], &[]);
    assert!(problems.iter().all(|problem| problem.code != Code::Internal), "{problems:?}");
    if policies.is_empty() {
        return;
    }
    let report = graft(&Arc::from("input.yaml"), MANIFEST, &policies, &Options::default());
    let bugs: Vec<_> = report.diagnostics.iter().filter(|problem| problem.code == Code::Internal).collect();
    assert!(bugs.is_empty(), "{bugs:?}");
});
