//! Stand-in for reading policies; replaced when the branches are merged.

use std::sync::Arc;

use super::{FailurePolicy, Filter, Policy, PolicyText};
use crate::diagnostic::Diagnostic;

/// One file of policies.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    /// As the user calls it.
    pub name: Arc<str>,
    /// The whole file.
    pub text: String,
}

/// `--param [POLICY:]name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamSetting {
    /// The policy's identity, where it is stated.
    pub policy: Option<String>,
    /// The parameter.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Reads policies.
pub fn read(files: Vec<PolicyFile>, _params: &[ParamSetting]) -> (Vec<Policy>, Vec<Diagnostic>) {
    let policies = files.into_iter().filter(|file| file.text.contains("podgraft.dev/")).map(|file| {
        let name =
            file.text.split("name: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or("nameless").to_owned();
        Policy {
            identity: name,
            namespace: None,
            description: None,
            weight: 0,
            suspend: false,
            failure_policy: FailurePolicy::Fail,
            selects: Filter::default(),
            excludes: Vec::new(),
            rules: Vec::new(),
            text: Arc::new(PolicyText { name: file.name, text: file.text }),
        }
    });
    (policies.collect(), Vec::new())
}
