//! Describes pruned objects for the report.

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, RemoveOperation};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::change::{Change, ChangeTarget, Operation};
use crate::manifest::object::Object;
use crate::options::Options;
use crate::outcome::{FileReport, GeneratedRecord, Outcome, PolicyReport, WorkloadReport};
use crate::yaml::splice::Edit;
use crate::yaml::stream::chunks;

use super::prune::RunFile;

/// Describes a pruned object, without its position.
pub(super) fn describe(
    object: &Object,
    value: &Value,
    generated: &GeneratedRecord,
    options: &Options,
) -> WorkloadReport {
    let text = |key: &str| value["metadata"][key].as_str();
    let removal = Change::new(
        Operation::TakeOut,
        ChangeTarget::Object(generated.name.clone()),
    );
    let policy_report = PolicyReport {
        policy: generated.policy.as_str().into(),
        outcome: Outcome::TakenOut(vec![removal]),
        rules: Vec::new(),
        is_older: false,
    };
    let remove_whole = RemoveOperation {
        path: PointerBuf::new(),
    };
    WorkloadReport {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        namespace: text("namespace")
            .or(options.namespace.as_deref())
            .map(str::to_owned),
        states_namespace: text("namespace").is_some(),
        name: text("name").unwrap_or_default().to_owned(),
        policies: vec![policy_report],
        is_generated: true,
        patch: options
            .patches
            .then(|| Patch(vec![PatchOperation::Remove(remove_whole)])),
        ..WorkloadReport::default()
    }
}

/// Takes the removal of objects that stay, because others need them, out of what the reports say.
pub(super) fn leave_out_needed(files: &mut [RunFile<'_>], needed: &BTreeSet<(String, String)>) {
    let dropped = files.iter().flat_map(|(.., report)| &report.dropped);
    let staying: BTreeSet<String> = dropped
        .filter(|generated| needed.contains(&generated.key()))
        .map(|generated| generated.name.clone())
        .collect();
    if staying.is_empty() {
        return;
    }

    let workloads = files
        .iter_mut()
        .flat_map(|(.., report)| &mut report.workloads);
    for policy in workloads.flat_map(|workload| &mut workload.policies) {
        if let Outcome::Injected(changes) | Outcome::TakenOut(changes) = &mut policy.outcome {
            changes.retain(|change| {
                let is_staying =
                    matches!(&change.target, ChangeTarget::Object(name) if staying.contains(name));
                !is_staying || change.operation != Operation::TakeOut
            });
        }
        if policy.outcome == Outcome::Injected(Vec::new()) {
            policy.outcome = Outcome::UpToDate;
        }
    }
}

/// Adds the object's line and byte ranges in the file.
pub(super) fn placed(
    described: WorkloadReport,
    object: &Object,
    span: Range<usize>,
    text: &[u8],
) -> WorkloadReport {
    let document = chunks(text).map(|chunk| chunk.start..chunk.start + chunk.text.len());
    let document = document
        .take_while(|document| document.start <= span.start)
        .last()
        .unwrap_or(0..text.len());
    let line = 1 + memchr::memchr_iter(b'\n', &text[..span.start]).count();
    let extent = if object.within.is_some() {
        span
    } else {
        document.clone()
    };
    WorkloadReport {
        line,
        document,
        extent,
        ..described
    }
}

/// Inserts the pruned objects among the file's workloads, each with its edits.
pub(super) fn add(report: &mut FileReport, removed: Vec<WorkloadReport>) {
    for mut object in removed {
        let at = report
            .workloads
            .partition_point(|workload| workload.line <= object.line);
        let first = report.workloads[..at]
            .iter()
            .map(|workload| workload.edits.end)
            .max()
            .unwrap_or_default();
        let next = report.workloads[at..]
            .iter()
            .map(|workload| workload.edits.start)
            .find(|&start| start >= first);
        let is_before = |edit: &Edit| edit.at.end <= object.extent.start;
        let from = report.edits.partition_point(is_before).max(first);
        let to = report
            .edits
            .partition_point(|edit| edit.at.start < object.extent.end);
        let to = to.min(next.unwrap_or(report.edits.len()));
        if from >= to {
            continue;
        }
        object.edits = from..to;
        report.workloads.insert(at, object);
        report
            .companions
            .iter_mut()
            .filter(|placed| placed.workload >= at)
            .for_each(|placed| placed.workload += 1);
    }
}
