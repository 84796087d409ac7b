//! Diagnostics about records that cannot be used or undone.

use crate::change::{Change, ChangeTarget};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::edit::LoweringError;
use crate::manifest::pod::Workload;
use crate::options::{Options, RemovalSelection};
use crate::outcome::{Outcome, PolicyReport};
use crate::ownership::{WorkloadKey, marked_policies};
use crate::plan::explain_refusal;
use crate::plan::removal::{Drift, DriftHandling};
use crate::record::lock::LockedRecordError;
use crate::record::words::{forced_undo_command, words_of};
use crate::record::{MARKER, RecordError};
use crate::source::{Place, Source};
use crate::undo::{RecordedObject, RemovalObstacle};
use crate::yaml::parse::MAX_DEPTH;
use crate::yaml::tree::Tree;

use super::document::DocumentTask;

impl DocumentTask<'_> {
    /// Returns problems about values that somebody changed since they were injected: errors if their policy is to be
    /// removed, otherwise warnings that the change stays.
    pub(super) fn changed_since(
        &self,
        workload: &Workload<'_>,
        policies: &[PolicyReport],
        changed: &[Drift],
    ) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for drift in changed {
            let reports = policies.iter();
            let reports = reports.filter(|report| *report.policy == *drift.policy);
            let outcomes: Vec<&Outcome> = reports.map(|report| &report.outcome).collect();
            let is_gone = outcomes
                .iter()
                .any(|outcome| matches!(outcome, Outcome::TakenOut(_)));
            let has_failed = outcomes
                .iter()
                .any(|outcome| matches!(outcome, Outcome::Failed(_)));
            let problem = changed_since(workload, &drift.policy, &drift.path);
            let stays = match is_gone {
                true if !self.setting.options.force => {
                    problems.push(problem);
                    continue;
                }
                true => drift.handling == DriftHandling::Leave,
                // After a failure, the conflict is already reported as an error.
                false => self.is_given(&drift.policy) && !has_failed,
            };
            if stays {
                let warning = problem.with_severity(Severity::Warning);
                let target = ChangeTarget::from_path(&drift.path);
                let is_target = |change: &Change| change.target == target;
                let is_put_back = outcomes.iter().any(|outcome| {
                    matches!(outcome, Outcome::Injected(changes) if changes.iter().any(is_target))
                });
                problems.push(warning.help(match (is_gone, is_put_back) {
                    (true, _) => "what it was changed to stays, and is no longer recorded",
                    (false, true) => "the policy puts its own value there again",
                    (false, false) => "what it was changed to stays",
                }));
            }
        }
        problems
    }
}

pub(super) fn changed_since(workload: &Workload<'_>, policy: &str, path: &str) -> Diagnostic {
    let message = format!(
        "{} of {} was changed since policy `{policy}` put it there",
        words_of(path),
        workload.title()
    );
    let problem =
        Diagnostic::error(Code::ChangedSince, message).at(workload.name_place(), "this workload");
    problem.help(format!(
        "to take it out all the same: {}",
        forced_undo_command(policy, &workload.source.name)
    ))
}

/// The note that undo may not restore every byte: the object was changed since it was recorded, so the recorded
/// places in its text may have moved. `has_left`: values that somebody changed stay.
pub(super) fn changed_form(has_left: bool) -> Diagnostic {
    let extent = match has_left {
        true => "does not give back every byte here",
        false => "gives back every value here and not every byte",
    };
    let message = format!(
        "undo {extent}: somebody changed the object since, and what podgraft noted of its text is not found again"
    );
    Diagnostic::note(Code::InexactUndo, message)
        .help("the quotes, the order of keys or the place of a comment may be others than before the injection")
}

/// What to do where a workload is not in podgraft.lock under its name.
const AFTER_A_RENAME: &str = "after a rename, write the new name into the lines of podgraft.lock; after a copy, add lines \
                              with it; to keep the values as they are, take off the annotation podgraft.dev/applied, or \
                              run `podgraft adopt --in-place` with the same policies";

pub(super) fn unreadable(error: &RecordError, place: Place) -> Diagnostic {
    let label = match error {
        RecordError::Locked(_) => "injected by these",
        RecordError::Ambiguous | RecordError::Containers(..) => "for this workload",
        _ => "the record",
    };
    let (message, help) = match error {
        RecordError::Ambiguous => (
            "what was injected cannot be told: readers disagree about some value in the workload"
                .to_owned(),
            "take out the key that stands twice, or the tag that Kubernetes does not know",
        ),
        RecordError::Damaged(defect) => (
            format!("this record cannot be read: {defect}"),
            "restore the annotation from the file's history, or take it off together with what was injected",
        ),
        RecordError::Version(version) => (
            format!("this record is of version {version}, which a later podgraft wrote"),
            "use that podgraft",
        ),
        RecordError::Containers(name, others) => (
            format!(
                "the container `{name}` was injected into and is gone, and it may be any of these now: {}",
                others.join(", ")
            ),
            "rename one container at a time, with a run in place between; to keep the values as they are, take off the \
             annotation podgraft.dev/applied, or run `podgraft adopt --in-place` with the same policies",
        ),
        RecordError::Locked(error) => explain_lock(error),
    };
    Diagnostic::error(Code::BadRecord, message)
        .at(place, label)
        .help(help)
}

/// The message and the help for a record of the lock file that cannot be used.
fn explain_lock(error: &LockedRecordError) -> (String, &'static str) {
    match error {
        LockedRecordError::Texts { path, texts } => (
            format!(
                "podgraft.lock does not say which text was joined to {}, which contains several that it may be: {}",
                words_of(path),
                texts
                    .iter()
                    .map(|text| format!("`{text}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            "write `\"text\": \"THE TEXT\"` into the entry of the variable in the workload's line of podgraft.lock",
        ),
        LockedRecordError::MissingContent { path } => (
            format!(
                "podgraft.lock does not say any more what was put at {}",
                words_of(path)
            ),
            "after a merge, keep the `item` and `text` lines of both sides of podgraft.lock: take them from its \
             history. Or run `podgraft adopt --in-place` with the same policies, which records what is there",
        ),
        LockedRecordError::Workloads(names) => (
            format!(
                "podgraft.lock does not name this workload, and it may have been any of these: {}",
                some_of(names)
            ),
            AFTER_A_RENAME,
        ),
    }
}

/// Warns of a workload that is not in the lock file and has the record of another one.
pub(super) fn copied_originals(from: &WorkloadKey) -> Diagnostic {
    let message = format!(
        "podgraft.lock does not name this workload; what stood there before is taken from {}",
        from.title()
    );
    Diagnostic::warning(Code::NoRecord, message).help(
        "`podgraft undo` gives these values back. If the workload is no copy of that one, and its line was lost, \
         restore podgraft.lock from its history",
    )
}

/// Warns in an undo of a marked workload that has no record, or refuses one whose record cannot be looked up.
/// `may_be_locked`: whether the lock file may have one.
pub(super) fn without_record(workload: &Workload<'_>, options: &Options) -> Option<Diagnostic> {
    let marker = workload.workload_annotation(MARKER)?;
    let mut names = marked_policies(workload.tree.scalar(marker)?);
    let is_meant = match &options.take_out {
        RemovalSelection::Only(wanted) => names.any(|name| wanted.iter().any(|only| only == name)),
        _ => true,
    };
    if !is_meant {
        return None;
    }
    let message = format!(
        "{} is marked as injected and has no record of it, so it is not undone",
        workload.title()
    );
    let problem = Diagnostic::warning(Code::NoRecord, message)
        .at(workload.place(marker), "injected by these");
    Some(
        problem.help("restore the file from its history, or run `apply --in-place` with the policies that injected it: it records what is as they want it"),
    )
}

/// Explains why what was injected cannot be taken out of a document.
pub(super) fn explain(
    obstacle: &RemovalObstacle,
    tree: &Tree<'_>,
    source: &Source<'_>,
    recorded: &[RecordedObject<'_>],
) -> Diagnostic {
    let (node, code, help) = match obstacle {
        RemovalObstacle::Refused(refusal) => {
            let (code, _, help) = explain_refusal(refusal.reason);
            (refusal.node, code, help)
        }
        RemovalObstacle::CannotWrite(LoweringError { node, .. }) => (
            *node,
            Code::CannotEdit,
            "write it in block style, `key: value` lines and `- item` lines",
        ),
        RemovalObstacle::Forged(at) | RemovalObstacle::TooDeep(at) => (
            *at,
            Code::BadRecord,
            "somebody changed the record: restore it from the file's history, or take it off together with what was injected",
        ),
        RemovalObstacle::Wrong(_) => {
            let node = recorded
                .first()
                .map_or_else(|| tree.roots()[0], |recorded_object| recorded_object.node);
            (
                node,
                Code::Internal,
                "this is a bug of podgraft; nothing was written. Please report it with the document",
            )
        }
    };
    let reason = reason_of(obstacle);
    let message = format!("what was injected cannot be taken out here: {reason}");
    Diagnostic::error(code, message)
        .at(source.place(tree.span(node)), "here")
        .help(help)
}

/// Why what was injected cannot be taken out, as a clause.
pub(super) fn reason_of(obstacle: &RemovalObstacle) -> String {
    match obstacle {
        RemovalObstacle::Refused(refusal) => explain_refusal(refusal.reason).1.to_owned(),
        RemovalObstacle::CannotWrite(LoweringError { reason, .. }) => format!("it {reason}"),
        RemovalObstacle::Forged(_) => "the record says that other values stood there".to_owned(),
        RemovalObstacle::TooDeep(_) => format!(
            "with what the record says the document would nest deeper than {MAX_DEPTH} levels"
        ),
        RemovalObstacle::Wrong(difference) => difference.clone(),
    }
}

/// The names, or the first ones of many.
fn some_of(names: &[String]) -> String {
    match names {
        [first @ .., _, _] if first.len() > 5 => {
            let hidden = names.len() - 5;
            format!("{}, and {hidden} others", names[..5].join(", "))
        }
        _ => names.join(", "),
    }
}
