//! Reads, checks and writes the marker: the annotation with the names of the policies that changed a workload.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::change::{Change, Operation};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport};
use crate::ownership::marked_policies;
use crate::policy::Policy;
use crate::record::{Effects, MARKER, Record, ReplacedValue};

use super::draft::{Draft, OpenId, Refusal};
use super::recording::EarlierRun;
use super::{WorkloadPlan, order};

/// The text of the workload's marker; empty if it has none.
pub(super) fn marked(draft: &Draft<'_>) -> String {
    let annotations = draft.get_in(&draft.root(), &["metadata", "annotations"]);
    annotations
        .and_then(|annotations| draft.text_at(&annotations, MARKER))
        .unwrap_or_default()
        .into_owned()
}

/// Whether the workload is marked as injected by a policy.
pub(super) fn is_marked(draft: &Draft<'_>, policy: &str) -> bool {
    marked_policies(&marked(draft)).any(|name| name == policy)
}

/// The names in the text of a marker, followed by those of `policies` that it does not have.
pub(super) fn with_names<'n>(
    marked: &'n str,
    policies: impl Iterator<Item = &'n str>,
) -> Vec<&'n str> {
    let mut names: Vec<&str> = marked_policies(marked).collect();
    let mut known: BTreeSet<&str> = names.iter().copied().collect();
    names.extend(policies.filter(|policy| known.insert(policy)));
    names
}

/// What podgraft wrote of an object's marker, by its record. Names that the marker had before that record stay, and so do
/// those of which nothing is recorded, because the record was lost: nothing else says that they injected something. What
/// somebody took out does not come back. `renamed` has the names of policies in the marker that differ in the record.
pub(crate) fn written_marker(
    draft: &Draft<'_>,
    record: &Record,
    renamed: &BTreeMap<String, String>,
) -> Effects {
    let marks = marked(draft);
    let mut effects = record.marker.clone();
    let path = record
        .paths()
        .in_object(&["metadata", "annotations", MARKER]);
    let replaced = effects.replaced.remove(&path);
    let before = replaced.as_ref().and_then(|replaced| replaced.was.as_str());
    let before = before.unwrap_or_default();
    let is_recorded = |name: &str| {
        record.policy(name).is_some() || renamed.values().any(|renamed| renamed == name)
    };
    let stays = |name: &&str| marked_policies(before).any(|was| was == *name) || !is_recorded(name);
    let others: Vec<&str> = marked_policies(&marks).filter(stays).collect();
    if !others.is_empty() {
        let was = match marked_policies(before).eq(others.iter().copied()) {
            true => before.to_owned(),
            false => others.join(","),
        };
        let (was, now) = (Value::String(was), String::new());
        effects.replaced.insert(path, ReplacedValue { was, now });
    }
    effects
}

/// Warns of policies in the marker that now do something else or no longer apply, where no record says what an earlier
/// run injected: it stays.
pub(super) fn stale_marks(
    workload: &Workload<'_>,
    policies: &[Policy],
    planned: &WorkloadPlan<'_>,
    earlier: Option<&EarlierRun<'_>>,
) -> Vec<Diagnostic> {
    let before = match earlier {
        Some(earlier) => Draft::new(earlier.current.tree, earlier.current.node),
        None => Draft::new(workload.tree, workload.object.node),
    };
    let marks = marked(&before);
    if marks.is_empty() {
        return Vec::new();
    }
    let has_record =
        |policy: &str| earlier.is_some_and(|earlier| earlier.record.policy(policy).is_some());
    let is_unrecorded = |report: &&PolicyReport| {
        marked_policies(&marks).any(|name| name == &*report.policy) && !has_record(&report.policy)
    };
    let unrecorded = planned.policies.iter().filter(is_unrecorded);
    let stale = unrecorded.filter_map(|report| stale_mark(workload, policies, report));
    stale.collect()
}

fn stale_mark(
    workload: &Workload<'_>,
    policies: &[Policy],
    report: &PolicyReport,
) -> Option<Diagnostic> {
    let sentence_end = match &report.outcome {
        // What takes the place of earlier content leaves nothing of it.
        Outcome::Injected(changes) if changes.iter().all(is_in_place) => return None,
        Outcome::Injected(_) => {
            "now injects something different in addition to what an earlier run injected"
        }
        Outcome::Skipped(_) => "no longer applies to it; what an earlier run injected stays",
        Outcome::UpToDate | Outcome::Failed(_) | Outcome::TakenOut(_) => return None,
    };
    let mut policies = policies.iter();
    let policy = policies.find(|policy| policy.identity == *report.policy)?;
    let message = format!(
        "{} is marked as injected by `{}`, which {sentence_end}",
        workload.title(),
        policy.identity
    );
    let warning = Diagnostic::warning(Code::AppliedBefore, message)
        .at(workload.name_place(), "this workload");
    let help = format!(
        "apply to the original manifest, or remove by hand what is no longer wanted and `{}` from \
         {MARKER}",
        policy.identity
    );
    Some(warning.help(help))
}

fn is_in_place(change: &Change) -> bool {
    matches!(change.operation, Operation::Replace | Operation::Update)
}

/// Adds the policies that changed the workload to its marker, with those in `sharing` that would have.
pub(super) fn mark(
    workload: &Workload<'_>,
    planned: &mut WorkloadPlan<'_>,
    sharing: &BTreeSet<Arc<str>>,
) -> Result<(), Refusal> {
    let marks = marked(&planned.draft);
    let is_injected = |report: &&PolicyReport| matches!(report.outcome, Outcome::Injected(_));
    let is_changed = planned.policies.iter().any(|report| is_injected(&report));
    let is_named = |report: &&PolicyReport| {
        is_injected(report) || is_changed && sharing.contains(&report.policy)
    };
    let named = planned.policies.iter().filter(is_named);
    let names = with_names(&marks, named.map(|report| &*report.policy));
    if names.len() == marked_policies(&marks).count() {
        return Ok(());
    }
    let value = Value::String(names.join(","));
    let annotations = open_annotations(&mut planned.draft, &[])?;
    debug_assert_eq!(
        planned.draft.origin(&planned.draft.root()),
        Some(workload.object.node)
    );
    planned.draft.set(annotations, MARKER, value, &[])
}

/// Opens the annotations of the object at a path: of the workload itself, or of its pod template.
pub(super) fn open_annotations(draft: &mut Draft<'_>, path: &[String]) -> Result<OpenId, Refusal> {
    let holder = draft.open_path(path)?;
    let within = match path.is_empty() {
        true => order::OBJECT,
        false => order::TEMPLATE,
    };
    let metadata = draft.open_mapping(holder, "metadata", within)?;
    draft.open_mapping(metadata, "annotations", order::METADATA)
}
