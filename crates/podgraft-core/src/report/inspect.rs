//! The view of the workloads: a table as `kubectl get` prints it, JSON, and the FarmPods of the farm API.

use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

use crate::outcome::ReportedFile;
use crate::outcome::view::{ContainerView, MetricsEndpoint, WorkloadView};
use crate::wording::one_line;

/// The optional columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// The namespace, as the first column.
    pub namespace: bool,
    /// Images and places, as the last columns.
    pub wide: bool,
    /// The line of headings.
    pub headings: bool,
}

/// A workload with its place.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct InspectedWorkload<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The 1-based line at which the object begins.
    pub line: usize,
    /// Its containers, volumes, ports and policies.
    #[serde(flatten)]
    pub view: &'a WorkloadView,
}

/// The workloads of all files that have a view, in the order of files and lines. Files read without views have none.
pub fn workloads<'a>(files: &[ReportedFile<'a>]) -> Vec<InspectedWorkload<'a>> {
    let mut inspected: Vec<InspectedWorkload<'a>> = Vec::new();
    for file in files {
        let workloads = file.report.workloads.iter();
        inspected.extend(workloads.filter_map(|workload| {
            Some(InspectedWorkload {
                file: file.name,
                line: workload.line,
                view: workload.view.as_deref()?,
            })
        }));
    }
    inspected
}

/// Renders the table. Columns are three blanks apart, as kubectl's.
pub fn table(workloads: &[InspectedWorkload<'_>], columns: Columns) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if columns.headings {
        let mut headings = vec![
            "KIND",
            "NAME",
            "CONTAINERS",
            "INIT",
            "SIDECARS",
            "VOLUMES",
            "PORTS",
            "POLICIES",
            "METRICS",
        ];
        if columns.namespace {
            headings.insert(0, "NAMESPACE");
        }
        if columns.wide {
            headings.extend(["IMAGES", "FILE"]);
        }
        rows.push(headings.into_iter().map(str::to_owned).collect());
    }
    rows.extend(workloads.iter().map(|workload| row(workload, columns)));
    align(&rows)
}

fn row(workload: &InspectedWorkload<'_>, columns: Columns) -> Vec<String> {
    let view = workload.view;
    let names = |containers: &[ContainerView]| {
        or_none(containers.iter().map(|container| container.name.clone()))
    };
    let ports = view.all_containers().flat_map(|container| &container.ports);
    let ports = ports.map(|port| match &*port.protocol {
        "TCP" => port.container_port.to_string(),
        protocol => format!("{}/{protocol}", port.container_port),
    });
    let endpoints = view.metrics_endpoints.iter();
    let mut row = vec![
        view.kind.clone(),
        view.name.clone(),
        names(&view.containers),
        names(&view.init_containers),
        names(&view.sidecars),
        view.volumes.len().to_string(),
        or_none(ports),
        or_none(view.policies.iter().cloned()),
        or_none(endpoints.map(|endpoint| endpoint.port.clone())),
    ];
    if columns.namespace {
        row.insert(
            0,
            view.namespace
                .clone()
                .unwrap_or_else(|| "<none>".to_owned()),
        );
    }
    if columns.wide {
        row.push(or_none(
            view.all_containers()
                .map(|container| container.image.clone()),
        ));
        row.push(format!("{}:{}", workload.file, workload.line));
    }
    row.iter().map(|cell| one_line(cell)).collect()
}

fn or_none(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        "<none>".to_owned()
    } else {
        words.join(",")
    }
}

fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths = (0..columns).map(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let mut table = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}   ");
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

/// The workloads as `kind: WorkloadViewList`, with the metrics endpoints of all.
pub fn value(workloads: &[InspectedWorkload<'_>]) -> Value {
    let endpoints: Vec<&MetricsEndpoint> = workloads
        .iter()
        .flat_map(|workload| &workload.view.metrics_endpoints)
        .collect();
    json!({
        "apiVersion": "podgraft.dev/v1alpha1",
        "kind": "WorkloadViewList",
        "metricsEndpoints": endpoints,
        "items": workloads,
    })
}

/// The workloads as the farm API shows pods: each with the name `farm-NAME` and the number of its containers. By the
/// conventions of the Kubernetes API, the kind of a list is that of its items and `List`.
pub fn farm_pods(workloads: &[InspectedWorkload<'_>], list_metadata: Option<&Value>) -> Value {
    const API_VERSION: &str = "farm.example.com/v1alpha";
    let items = workloads.iter().map(|workload| {
        let mut metadata = json!({"name": format!("farm-{}", workload.view.name)});
        if let Some(namespace) = &workload.view.namespace {
            metadata["namespace"] = json!(namespace);
        }
        let spec = json!({"containers": workload.view.containers.len()});
        json!({"apiVersion": API_VERSION, "kind": "FarmPod", "metadata": metadata, "spec": spec})
    });
    json!({
        "apiVersion": API_VERSION,
        "kind": "FarmPodList",
        "metadata": list_metadata.cloned().unwrap_or_else(|| json!({})),
        "items": items.collect::<Vec<_>>(),
    })
}
