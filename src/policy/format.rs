//! Which objects are policies, and who translates them: a new format is one file and one row.

use super::conversion::{self, Conversion, Convert, Given, Reading, Translated};
use super::document::Document;
use super::opentelemetry;
use super::{Policy, builtin, config_monitor, jmx_exporter, native, podbuggertool, rookout};
use crate::diagnostic::Diagnostic;
use crate::manifest::workload::group_of;

/// A format of policy.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Group and version, or with `*` as version any.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// What a policy of this kind does.
    pub summary: &'static str,
    /// What reads it.
    pub translator: Translator,
}

/// How a format's objects become policies.
#[derive(Debug, Clone, Copy)]
pub enum Translator {
    /// They are policies.
    Native,
    /// By way of an `InjectionPolicy`.
    Converting {
        /// The names of the parameters.
        params: &'static [&'static str],
        /// What a resource becomes.
        convert: Convert,
    },
    /// All of a run at once, since what one does depends on the others.
    Joint {
        /// What a resource becomes, as far as an `InjectionPolicy` can say it.
        convert: Convert,
        /// The policies that they are.
        join: Join,
    },
}

/// From all resources of a format to the policies that they are, and what is wrong with them.
pub type Join = fn(Vec<Document<'_>>, &Reading) -> (Vec<Policy>, Vec<Diagnostic>);

impl Translator {
    /// The names of the parameters of an object.
    pub fn declared(&self, document: &Document<'_>) -> Vec<String> {
        match self {
            Translator::Native => native::declared(document),
            Translator::Converting { params, .. } => {
                params.iter().map(|&name| name.to_owned()).collect()
            }
            Translator::Joint { .. } => Vec::new(),
        }
    }

    /// What an object becomes; `None` for what is a policy already.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn convert(
        &self,
        document: &Document<'_>,
        given: &Given<'_>,
    ) -> Option<Result<Conversion, Vec<Diagnostic>>> {
        match self {
            Translator::Native => None,
            Translator::Converting { convert, .. } | Translator::Joint { convert, .. } => {
                Some(convert(document, given))
            }
        }
    }

    /// The policy that an object is; `None` for a policy for resources, which is one for each of them.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn translate(
        &self,
        document: Document<'_>,
        given: &Given<'_>,
    ) -> Result<Option<Translated>, Vec<Diagnostic>> {
        match self {
            Translator::Native => {
                let (policy, warnings) = native::translate(document, given, None)?;
                Ok(policy.map(|policy| Translated { policy, warnings }))
            }
            Translator::Converting { convert, .. } | Translator::Joint { convert, .. } => {
                conversion::translate(document, given, *convert).map(Some)
            }
        }
    }
}

/// Every format.
pub const FORMATS: [Format; 6] = [
    Format {
        api_version: "podgraft.dev/v1alpha1",
        kind: "InjectionPolicy",
        summary: "What its rules say",
        translator: Translator::Native,
    },
    Format {
        api_version: "rookout.rookout.com/*",
        kind: "Rookout",
        summary: "Live debugging of Java applications: what the Rookout operator does to Deployments",
        translator: Translator::Converting {
            params: &[],
            convert: rookout::convert,
        },
    },
    Format {
        api_version: "banzaicloud.com/*",
        kind: "PrometheusJmxExporter",
        summary: "JVM metrics for Prometheus: what the JMX exporter's operator does to pods",
        translator: Translator::Converting {
            params: jmx_exporter::PARAMS,
            convert: jmx_exporter::convert,
        },
    },
    Format {
        api_version: "ualter.com/*",
        kind: "Podbuggertool",
        summary: "A shell beside the application: what the Podbuggertool operator does to pods",
        translator: Translator::Converting {
            params: &[],
            convert: podbuggertool::convert,
        },
    },
    Format {
        api_version: "magalix.com/*",
        kind: "ConfigMonitor",
        summary: "Pods roll when a ConfigMap changes: what Magalix' operator does to pods",
        translator: Translator::Converting {
            params: config_monitor::PARAMS,
            convert: config_monitor::convert,
        },
    },
    Format {
        api_version: "opentelemetry.io/*",
        kind: "Instrumentation",
        summary: "Traces, metrics and logs: what the OpenTelemetry Operator does to pods, for all its languages",
        translator: Translator::Joint {
            convert: opentelemetry::convert,
            join: opentelemetry::join,
        },
    },
];

/// The format of an object, if it is a policy.
pub fn find(api_version: &str, kind: &str) -> Option<&'static Format> {
    FORMATS
        .iter()
        .find(|format| format.kind == kind && fits(format.api_version, api_version))
}

/// Whether an object is a policy, or a resource that a built-in policy is for.
pub fn is_policy(api_version: &str, kind: &str) -> bool {
    find(api_version, kind).is_some()
        || builtin::for_resources(group_of(api_version), kind).is_some()
}

fn fits(pattern: &str, api_version: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(group) => api_version.starts_with(group),
        None => api_version == pattern,
    }
}

/// The formats that this version reads, for messages.
pub fn understood() -> String {
    let read = FORMATS.iter();
    read.map(|format| format!("`{} {}`", format.api_version, format.kind))
        .collect::<Vec<_>>()
        .join(", ")
}
