//! Reports what changes in a workload whose policies change nothing in it: its record.

use std::sync::Arc;

use crate::change::{Change, RecordCause};
use crate::outcome::{Outcome, PolicyReport};
use crate::record::Record;
use crate::undo::RecordedObject;

use super::pending::PendingWorkload;
use super::recorded::RecordedDocument;

/// Adds a change of the record to the policies that change nothing else, if the text of a recorded workload changes.
pub(super) fn report_record_changes(
    pair: &RecordedDocument<'_>,
    pending: &mut PendingWorkload<'_>,
) {
    let recorded = pair.position(pending.workload.object.node);
    let recorded = recorded.map(|index| &pair.recorded[index]);
    let Some((recorded, beside)) = recorded.zip(pending.beside.as_ref()) else {
        return;
    };
    let Some(after) = &beside.record else {
        return;
    };
    let reports = &mut pending.policies;
    let mut causes = causes(recorded, after);
    // Another order or another name makes another digest, too.
    if causes.is_empty() {
        let older = reports.iter().filter(|report| report.is_older);
        causes.extend(older.map(|report| (report.policy.to_string(), RecordCause::Version)));
    }
    for (policy, cause) in causes {
        note(reports, &policy, cause);
    }
    let is_said = |report: &PolicyReport| {
        matches!(report.outcome, Outcome::Injected(_) | Outcome::TakenOut(_))
    };
    if let Some(first) = after.policies.first()
        && !reports.iter().any(is_said)
    {
        let cause = match recorded.is_annotated && !beside.is_annotated {
            true => RecordCause::IntoLock,
            false => RecordCause::Other,
        };
        note(reports, &first.policy, cause);
    }
}

/// The policies whose record is another for a known cause.
fn causes(recorded: &RecordedObject<'_>, after: &Record) -> Vec<(String, RecordCause)> {
    let before = &recorded.record;
    let mut causes = Vec::new();
    for policy in &after.policies {
        let name = policy.policy.as_str();
        if let Some(old_name) = recorded.renamed.get(name) {
            causes.push((name.to_owned(), RecordCause::Renamed(old_name.clone())));
        } else if !before.policy(name).is_some_and(|was| was.covers(policy)) {
            let (owners, owned) = (after.owners_of(policy), before.owners_of(policy));
            let shared = (!owners.is_empty()).then_some(RecordCause::SharedWith(owners));
            let taken = (!owned.is_empty()).then_some(RecordCause::TakenOver(owned));
            let cause = shared.or(taken);
            causes.extend(cause.map(|cause| (name.to_owned(), cause)));
        }
    }
    let order_before = common_names(before, after);
    let order_after = common_names(after, before);
    let mut moved = order_after.zip(order_before);
    if let Some((name, behind)) = moved.find(|(name, behind)| name != behind) {
        causes.push((name.to_owned(), RecordCause::MovedBefore(behind.to_owned())));
    }
    causes
}

/// The policies of a record that another one names, too, in their order.
fn common_names<'r>(record: &'r Record, other: &Record) -> impl Iterator<Item = &'r str> {
    let names = record.policies.iter().map(|policy| policy.policy.as_str());
    names.filter(|name| other.policy(name).is_some())
}

/// Reports a change of the record for a policy, unless the policy changes something else.
fn note(reports: &mut Vec<PolicyReport>, policy: &str, cause: RecordCause) {
    let outcome = Outcome::Injected(vec![Change::of_record(cause)]);
    match reports.iter_mut().find(|report| *report.policy == *policy) {
        Some(report) if report.outcome == Outcome::UpToDate => report.outcome = outcome,
        Some(_) => {}
        // A policy that is not given in this run.
        None => reports.push(PolicyReport {
            policy: Arc::from(policy),
            outcome,
            rules: Vec::new(),
            is_older: false,
        }),
    }
}
