//! The view of the workloads: a table as `kubectl get` prints it, JSON, and the FarmPods of the farm API.

use serde::Serialize;
use serde_json::{Value, json};

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

/// The sort order of the workloads. Equal ones stay in the order of files and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// The order of files and lines.
    File,
    /// By namespace, kind and name.
    Namespace,
    /// By kind and name.
    Kind,
    /// By name.
    Name,
    /// By the number of containers of all lists, the most first.
    Containers,
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

/// The workloads of all files that have a view, sorted. Files read without views have none.
pub fn workloads<'a>(files: &[ReportedFile<'a>], sort_by: SortBy) -> Vec<InspectedWorkload<'a>> {
    let mut inspected: Vec<InspectedWorkload<'a>> = Vec::new();
    for file in files {
        let found = file.report.workloads.iter().filter_map(|workload| {
            Some(InspectedWorkload {
                file: file.name,
                line: workload.line,
                view: workload.view.as_deref()?,
            })
        });
        inspected.extend(found);
    }
    match sort_by {
        SortBy::File => {}
        SortBy::Namespace => inspected.sort_by_key(|workload| {
            (
                &workload.view.namespace,
                &workload.view.kind,
                &workload.view.name,
            )
        }),
        SortBy::Kind => {
            inspected.sort_by_key(|workload| (&workload.view.kind, &workload.view.name))
        }
        SortBy::Name => inspected.sort_by_key(|workload| &workload.view.name),
        SortBy::Containers => inspected
            .sort_by_key(|workload| std::cmp::Reverse(workload.view.all_containers().count())),
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
    let ports = view
        .all_containers()
        .flat_map(|container| &container.ports)
        .map(|port| {
            let protocol = if port.protocol == "TCP" {
                String::new()
            } else {
                format!("/{}", port.protocol)
            };
            format!("{}{protocol}", port.container_port)
        });
    let mut row = vec![
        view.kind.clone(),
        view.name.clone(),
        names(&view.containers),
        names(&view.init_containers),
        names(&view.sidecars),
        view.volumes.len().to_string(),
        or_none(ports),
        or_none(view.policies.iter().cloned()),
        or_none(
            view.metrics_endpoints
                .iter()
                .map(|endpoint| endpoint.port.clone()),
        ),
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
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 3));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let view = WorkloadView {
            kind: "Deployment".to_owned(),
            name: "orders".to_owned(),
            containers: vec![ContainerView {
                name: "app".to_owned(),
                ..ContainerView::default()
            }],
            ..WorkloadView::default()
        };
        let workload = InspectedWorkload {
            file: "a.yaml",
            line: 3,
            view: &view,
        };
        let table = table(
            &[workload],
            Columns {
                namespace: true,
                wide: false,
                headings: true,
            },
        );
        let expected = "\
NAMESPACE   KIND         NAME     CONTAINERS   INIT     SIDECARS   VOLUMES   PORTS    POLICIES   METRICS
<none>      Deployment   orders   app          <none>   <none>     0         <none>   <none>     <none>
";
        assert_eq!(table, expected);
    }
}
