//! Diagnostics about records that cannot be used or undone.

use crate::change::{Change, ChangeTarget};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::edit::LoweringError;
use crate::manifest::pod::Workload;
use crate::options::{Options, RemovalSelection};
use crate::outcome::{Outcome, PolicyReport};
use crate::ownership::{WorkloadKey, marked_policies};
use crate::plan::draft_paths::RecordedPlaces;
use crate::plan::explain_refusal;
use crate::plan::removal::{Drift, DriftHandling};
use crate::record::lock::LockedRecordError;
use crate::record::words::{forced_undo_command, words_of};
use crate::record::{MARKER, RecordError, RecordPaths};
use crate::source::{Place, Source};
use crate::undo::{RecordedObject, RemovalObstacle};
use crate::yaml::parse::MAX_DEPTH;
use crate::yaml::tree::Tree;

use super::document::ParsedDocument;

impl ParsedDocument<'_> {
    /// Returns problems about values that somebody changed since they were injected: errors if their policy is to be
    /// removed, otherwise warnings that the change stays.
    pub(super) fn changed_since(
        &self,
        workload: &Workload<'_>,
        policies: &[PolicyReport],
        changed: &[Drift],
    ) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let places = places_of(workload);
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
            let problem = changed_since(workload, &places, drift);
            let stays = match is_gone {
                _ if drift.handling == DriftHandling::Refuse => {
                    problems.push(problem);
                    continue;
                }
                true if !self.setting.options.force => {
                    problems.push(problem);
                    continue;
                }
                true => drift.handling != DriftHandling::Force,
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
                    (true, _) => "the changed value stays and is no longer recorded",
                    (false, true) => "the policy sets its own value again",
                    (false, false) => "the changed value stays",
                }));
            }
        }
        problems
    }
}

/// The places of a workload, for the paths of its record.
pub(super) fn places_of<'t>(workload: &Workload<'t>) -> RecordedPlaces<'t> {
    let paths = RecordPaths::of(&workload.pod_kind.path);
    RecordedPlaces::of(workload.tree, workload.object.node, paths)
}

pub(super) fn changed_since(
    workload: &Workload<'_>,
    places: &RecordedPlaces<'_>,
    drift: &Drift,
) -> Diagnostic {
    let Drift { policy, path, .. } = drift;
    let message = format!(
        "{} of {} was changed after policy `{policy}` injected it",
        words_of(path),
        workload.title()
    );
    let changed = places.node(path);
    let problem = Diagnostic::error(Code::ChangedSince, message);
    let problem = match changed {
        Some(node) => problem.at(workload.place(node), "changed here"),
        None => problem.at(workload.name_place(), "this workload"),
    };
    let command = forced_undo_command(policy, &workload.source.name);
    problem.help(match drift.handling {
        DriftHandling::Keep => {
            format!("to undo the rest, and leave this value as it is: {command}")
        }
        DriftHandling::Leave | DriftHandling::Refuse | DriftHandling::Force => {
            format!("to remove it anyway: {command}")
        }
    })
}

/// The note that undo may not restore every byte: the object was changed since it was recorded, so the recorded
/// places in its text may have moved. `has_left`: values that somebody changed stay.
pub(super) fn changed_form(has_left: bool) -> Diagnostic {
    let extent = match has_left {
        true => "does not restore every byte here",
        false => "restores every value here, but not every byte",
    };
    let message =
        format!("undo {extent}: the object was changed, and the recorded text is no longer in it");
    Diagnostic::note(Code::InexactUndo, message).help(
        "check the result: quotes, key order, and the positions of comments may differ from the \
         original",
    )
}

/// What to do where a workload is not in podgraft.lock under its name.
const AFTER_A_RENAME: &str = "after a rename, change the name in the lines of podgraft.lock; after \
                              a copy, add lines with the new name; to keep the values as they are, \
                              remove the annotation podgraft.dev/applied, or run `podgraft adopt \
                              --in-place` with the same policies";

pub(super) fn unreadable(error: &RecordError, place: Place) -> Diagnostic {
    let label = match error {
        RecordError::Locked(_) => "injected by these policies",
        RecordError::Ambiguous | RecordError::Containers(..) => "for this workload",
        _ => "the record",
    };
    let (message, help) = match error {
        RecordError::Ambiguous => (
            "the injected content cannot be determined: YAML readers disagree about a value in the \
             workload"
                .to_owned(),
            "remove the duplicate key, or the tag that Kubernetes does not know",
        ),
        RecordError::Damaged(defect) => (
            format!("this record cannot be read: {defect}"),
            "restore the annotation from the file's history, or remove it together with the \
             injected content",
        ),
        RecordError::Version(version) => (
            format!("this record has version {version}, which a newer podgraft wrote"),
            "upgrade podgraft",
        ),
        RecordError::Containers(name, others) => (
            format!(
                "the container `{name}` has recorded injections but is gone; it may have been \
                 renamed to any of: {}",
                others.join(", ")
            ),
            "rename one container at a time, and run `apply --in-place` after each; to keep the \
             values as they are, remove the annotation podgraft.dev/applied, or run `podgraft \
             adopt --in-place` with the same policies",
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
                "podgraft.lock does not say which of several texts was joined to {}: {}",
                words_of(path),
                texts
                    .iter()
                    .map(|text| format!("`{text}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            "add `\"text\": \"THE TEXT\"` to the entry of the variable in the workload's line of \
             podgraft.lock",
        ),
        LockedRecordError::MissingContent { path } => (
            format!(
                "podgraft.lock no longer says what was injected at {}",
                words_of(path)
            ),
            "restore the `item` and `text` lines of both sides of the merge from the history of \
             podgraft.lock, or run `podgraft adopt --in-place` with the same policies, which \
             records the current content",
        ),
        LockedRecordError::Workloads(names) => (
            format!(
                "podgraft.lock does not list this workload, which may have been any of: {}",
                some_of(names)
            ),
            AFTER_A_RENAME,
        ),
    }
}

/// Warns of a workload that is not in the lock file and has the record of another one.
pub(super) fn copied_originals(from: &WorkloadKey) -> Diagnostic {
    let message = format!(
        "podgraft.lock does not list this workload; its original values are taken from {}",
        from.title()
    );
    Diagnostic::warning(Code::NoRecord, message).help(
        "`podgraft undo` restores these values; if the workload is not a copy of that one and its \
         line was lost, restore podgraft.lock from its history",
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
        "{} is marked as injected but has no record, so it is not undone",
        workload.title()
    );
    let problem = Diagnostic::warning(Code::NoRecord, message)
        .at(workload.place(marker), "injected by these policies");
    Some(problem.help(
        "restore the file from its history, or run `apply --in-place` with the policies that \
         injected it, which records everything that matches them",
    ))
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
            "write it in block style, as `key: value` and `- item` lines",
        ),
        RemovalObstacle::Forged(at) | RemovalObstacle::TooDeep(at) => (
            *at,
            Code::BadRecord,
            "the record was changed: restore it from the file's history, or remove it together \
             with the injected content",
        ),
        RemovalObstacle::Wrong(_) => {
            let node = recorded
                .first()
                .map_or_else(|| tree.roots()[0], |recorded_object| recorded_object.node);
            (
                node,
                Code::Internal,
                "this is a bug in podgraft, and nothing was written; report it with the document",
            )
        }
    };
    let reason = reason_of(obstacle);
    let message = format!("the injected content cannot be removed here: {reason}");
    Diagnostic::error(code, message)
        .at(source.place(tree.span(node)), "here")
        .help(help)
}

/// Why what was injected cannot be taken out, as a clause.
pub(super) fn reason_of(obstacle: &RemovalObstacle) -> String {
    match obstacle {
        RemovalObstacle::Refused(refusal) => explain_refusal(refusal.reason).1.to_owned(),
        RemovalObstacle::CannotWrite(LoweringError { reason, .. }) => format!("it {reason}"),
        RemovalObstacle::Forged(_) => "the record lists different values".to_owned(),
        RemovalObstacle::TooDeep(_) => format!(
            "with the recorded values, the document would nest deeper than {MAX_DEPTH} levels"
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
