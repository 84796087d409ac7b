//! Finds the metrics port of a planned workload in the annotations that scrape configurations look for.

use crate::manifest::pod::Workload;
use crate::outcome::view::{SCRAPE, SCRAPE_PORT, scraped_port};

use super::draft::Draft;

/// The port at which the pods serve metrics. The PrometheusJmxExporter operator finds the endpoints of its status in
/// the same way.
pub(crate) fn metrics_port(workload: &Workload<'_>, draft: &Draft<'_>) -> Option<u16> {
    let template = workload.pod_kind.path.iter().map(String::as_str);
    let path: Vec<&str> = template.chain(["metadata", "annotations"]).collect();
    let annotations = draft.get_in(&draft.root(), &path)?;
    let text = |key: &str| draft.text_at(&annotations, key);
    scraped_port(text(SCRAPE).as_deref(), text(SCRAPE_PORT).as_deref())
}
