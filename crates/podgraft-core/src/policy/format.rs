//! The formats of policies.

use super::builtin;
use super::found::GroupKind;
use crate::manifest::workload::group_of;

/// A format of policy.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Group and version. The version `*` matches any.
    pub api_version: &'static str,
    /// The kind of its objects.
    pub kind: &'static str,
    /// What a policy of the format does, for lists.
    pub summary: &'static str,
}

/// The native format.
pub const INJECTION_POLICY: Format = Format {
    api_version: "podgraft.dev/v1alpha1",
    kind: "InjectionPolicy",
    summary: "What its rules say",
};

/// The format of the OpenTelemetry Operator. All its objects are translated together, because the effect of one depends on
/// the others.
pub const INSTRUMENTATION: Format = Format {
    api_version: "opentelemetry.io/*",
    kind: "Instrumentation",
    summary: "Traces, metrics and logs: what the OpenTelemetry Operator does to pods, for all its languages",
};

/// All formats.
pub const FORMATS: [Format; 2] = [INJECTION_POLICY, INSTRUMENTATION];

impl Format {
    /// Whether an object is of the format.
    pub fn has(&self, api_version: &str, kind: &str) -> bool {
        let has_version = match self.api_version.strip_suffix('*') {
            Some(group) => api_version.starts_with(group),
            None => api_version == self.api_version,
        };
        kind == self.kind && has_version
    }
}

/// Whether an object is a policy, or a resource of a built-in policy or of one of the given kinds.
pub fn is_policy(api_version: &str, kind: &str, resource_kinds: &[GroupKind]) -> bool {
    FORMATS.iter().any(|format| format.has(api_version, kind))
        || builtin::for_resources(group_of(api_version), kind).is_some()
        || is_one_of(api_version, kind, resource_kinds)
}

/// Whether an object is of one of the kinds, in any version of its group.
pub fn is_one_of(api_version: &str, kind: &str, kinds: &[GroupKind]) -> bool {
    let group = group_of(api_version);
    let mut kinds = kinds.iter();
    kinds.any(|(of_group, of_kind)| of_group == group && of_kind == kind)
}

/// A list of all formats and of the resources of built-in policies, for messages.
pub(crate) fn understood() -> String {
    let read = FORMATS.iter();
    let formats = read.map(|format| format!("`{} {}`", format.api_version, format.kind));
    let of_builtins = builtin::kinds_of_resources();
    let of_builtins = of_builtins.map(|(group, kind)| format!("`{group}/* {kind}`"));
    formats.chain(of_builtins).collect::<Vec<_>>().join(", ")
}
