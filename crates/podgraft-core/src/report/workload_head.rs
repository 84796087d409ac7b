//! The identity of a workload, as all JSON formats write it.

use serde::Serialize;

use crate::outcome::WorkloadReport;

/// A workload's name and place.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Head"))]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkloadHeader<'a> {
    /// As in the manifest.
    api_version: &'a str,
    /// As in the manifest.
    kind: &'a str,
    /// As stated in the manifest or given for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    /// As in the manifest.
    name: &'a str,
    /// 1-based line on which the object begins.
    line: usize,
}

impl<'a> WorkloadHeader<'a> {
    pub(super) fn of(workload: &'a WorkloadReport) -> Self {
        WorkloadHeader {
            api_version: &workload.api_version,
            kind: &workload.kind,
            namespace: workload.namespace.as_deref(),
            name: &workload.name,
            line: workload.line,
        }
    }
}
