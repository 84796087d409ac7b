//! Which objects are policies, and who translates them: a new format is one file and one row.

use super::document::Document;
use super::params::ParamSetting;
use super::{Policy, native};
use crate::diagnostic::Diagnostic;

/// A format of policy.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Group and version, or with `*` as version any.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// What reads it; `None`: known, and not read by this version.
    pub translator: Option<Translator>,
}

/// The two questions to a format.
#[derive(Debug, Clone, Copy)]
pub struct Translator {
    /// The names of the parameters.
    pub declared: fn(&Document<'_>) -> Vec<String>,
    /// The policy.
    pub translate: fn(Document<'_>, &[&ParamSetting]) -> Result<Policy, Vec<Diagnostic>>,
}

/// Every format.
pub const FORMATS: [Format; 6] = [
    Format {
        api_version: "podgraft.dev/v1alpha1",
        kind: "InjectionPolicy",
        translator: Some(Translator { declared: native::declared, translate: native::translate }),
    },
    Format { api_version: "rookout.rookout.com/*", kind: "Rookout", translator: None },
    Format { api_version: "banzaicloud.com/*", kind: "PrometheusJmxExporter", translator: None },
    Format { api_version: "ualter.com/*", kind: "Podbuggertool", translator: None },
    Format { api_version: "magalix.com/*", kind: "ConfigMonitor", translator: None },
    Format { api_version: "opentelemetry.io/*", kind: "Instrumentation", translator: None },
];

/// The format of an object, if it is a policy.
pub fn find(api_version: &str, kind: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.kind == kind && fits(format.api_version, api_version))
}

fn fits(pattern: &str, api_version: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(group) => api_version.starts_with(group),
        None => api_version == pattern,
    }
}

/// The formats that this version reads, for messages.
pub fn understood() -> String {
    let read = FORMATS.iter().filter(|format| format.translator.is_some());
    read.map(|format| format!("`{} {}`", format.api_version, format.kind)).collect::<Vec<_>>().join(", ")
}
