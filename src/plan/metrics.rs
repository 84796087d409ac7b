//! Where the pods of a planned workload serve metrics, by the annotations that scrape configurations look for.

use crate::manifest::pod::Workload;

use super::draft::Draft;

/// Says that the pods are to be scraped.
const SCRAPE: &str = "prometheus.io/scrape";
/// Says at which port.
const PORT: &str = "prometheus.io/port";

/// The port at which the pods serve metrics. The PrometheusJmxExporter operator finds the endpoints of its status in the
/// same way.
pub fn metrics_port(workload: &Workload<'_>, draft: &Draft<'_>) -> Option<u16> {
    let path = workload.pod_kind.path.iter().map(String::as_str).chain(["metadata", "annotations"]);
    let mut annotations = draft.root();
    for key in path {
        annotations = draft.get(&annotations, key)?;
    }
    if draft.text_at(&annotations, SCRAPE)? != "true" {
        return None;
    }
    draft.text_at(&annotations, PORT)?.parse().ok().filter(|port| *port > 0)
}
