//! The formats of policies, and how each is translated. A new format is one file and one row here.

use super::conversion::{Conversion, ConversionContext, ConvertFn, ReadOptions};
use super::document::Document;
use super::opentelemetry;
use super::{Policy, builtin, native};
use crate::diagnostic::Diagnostic;
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
    /// How its objects become policies.
    pub translator: Translator,
}

/// How a format's objects become policies.
#[derive(Debug, Clone, Copy)]
pub enum Translator {
    /// Each object is an `InjectionPolicy`.
    Native,
    /// All objects of a run are translated together, because the effect of one depends on the others.
    Joint {
        /// Converts one object, as far as an `InjectionPolicy` can express it.
        convert: ConvertFn,
        /// Makes the policies of all objects.
        join: JoinFn,
    },
}

/// A function that converts all resources of a format to policies and diagnostics.
pub type JoinFn = fn(Vec<Document<'_>>, &ReadOptions) -> (Vec<Policy>, Vec<Diagnostic>);

impl Translator {
    /// The names of the parameters that an object declares.
    pub fn declared(&self, document: &Document<'_>) -> Vec<String> {
        match self {
            Translator::Native => native::declared(document),
            Translator::Joint { .. } => Vec::new(),
        }
    }

    /// Converts an object to an `InjectionPolicy`; `None` if it is one already.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn convert(
        &self,
        document: &Document<'_>,
        given: &ConversionContext<'_>,
    ) -> Option<Result<Conversion, Vec<Diagnostic>>> {
        match self {
            Translator::Native => None,
            Translator::Joint { convert, .. } => Some(convert(document, given)),
        }
    }
}

/// All formats. The native one is first.
pub const FORMATS: [Format; 2] = [
    Format {
        api_version: "podgraft.dev/v1alpha1",
        kind: "InjectionPolicy",
        summary: "What its rules say",
        translator: Translator::Native,
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

/// The format of an object; `None` if it is not a policy.
pub fn find(api_version: &str, kind: &str) -> Option<&'static Format> {
    FORMATS
        .iter()
        .find(|format| format.kind == kind && fits(format.api_version, api_version))
}

/// Whether an object is a policy, or a resource of a built-in policy.
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

/// A list of all formats and of the resources of built-in policies, for messages.
pub fn understood() -> String {
    let read = FORMATS.iter();
    let formats = read.map(|format| format!("`{} {}`", format.api_version, format.kind));
    let of_builtins = builtin::kinds_of_resources();
    let of_builtins = of_builtins.map(|(group, kind)| format!("`{group}/* {kind}`"));
    formats.chain(of_builtins).collect::<Vec<_>>().join(", ")
}
