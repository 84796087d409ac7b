//! What is refused about records, in words.

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::CannotWrite;
use crate::manifest::pod::Workload;
use crate::options::{Options, TakeOut};
use crate::plan::explain_refusal;
use crate::record::words::{undo_command, words_of};
use crate::record::{MARKER, Unreadable};
use crate::source::{Place, Source};
use crate::undo::{Obstacle, Recorded};
use crate::yaml::parse::MAX_DEPTH;
use crate::yaml::tree::Tree;

pub(super) fn changed_since(workload: &Workload<'_>, policy: &str, path: &str) -> Diagnostic {
    let message = format!(
        "{} of {} was changed since policy `{policy}` put it there",
        words_of(path),
        workload.title()
    );
    let problem =
        Diagnostic::error(Code::ChangedSince, message).at(workload.own_place(), "this workload");
    problem.help(format!(
        "to take it out all the same: {}",
        undo_command(policy, &workload.source.name, true)
    ))
}

/// Where an object was changed since its record was written, the record's places in its text may be others.
pub(super) fn changed_form() -> Diagnostic {
    let message = "undo gives back every value here and not every byte: somebody changed the object since, and what podgraft noted \
                   of its text is not found again";
    Diagnostic::note(Code::InexactUndo, message)
        .help("the quotes, the order of keys or the place of a comment may be others than before the injection")
}

pub(super) fn unreadable(why: &Unreadable, place: Place) -> Diagnostic {
    let label = match why {
        Unreadable::Several(_) => "injected by these",
        _ => "the record",
    };
    let (message, help) = match why {
        Unreadable::Ambiguous => (
            "this record cannot be read: readers disagree about some value in the object"
                .to_owned(),
            "take out the key that stands twice, or the tag that Kubernetes does not know",
        ),
        Unreadable::Damaged(what) => (
            format!("this record cannot be read: {what}"),
            "restore the annotation from the file's history, or take it off together with what was injected",
        ),
        Unreadable::Version(version) => (
            format!("this record is of version {version}, which a later podgraft wrote"),
            "use that podgraft",
        ),
        Unreadable::Several(several) => (
            format!(
                "podgraft.lock does not name this workload, and it may have been any of these: {}",
                several.names.join(", ")
            ),
            "after a rename, write the new name into the lines of podgraft.lock; to keep the values that are there as \
             they are, take off the annotation podgraft.dev/applied, or run `podgraft adopt`",
        ),
    };
    Diagnostic::error(Code::BadRecord, message)
        .at(place, label)
        .help(help)
}

pub(super) fn without_record(workload: &Workload<'_>, options: &Options) -> Option<Diagnostic> {
    let marker = workload.own_annotation(MARKER)?;
    let names: Vec<&str> = workload
        .tree
        .scalar(marker)?
        .split(',')
        .map(str::trim)
        .collect();
    let is_meant = match &options.take_out {
        TakeOut::Only(wanted) => names
            .iter()
            .any(|name| wanted.iter().any(|own| own == name)),
        _ => true,
    };
    let message = format!(
        "{} is marked as injected and has no record of it, so it is not undone",
        workload.title()
    );
    let problem = Diagnostic::warning(Code::NoRecord, message)
        .at(workload.place(marker), "injected by these");
    is_meant.then(|| {
        problem.help("restore the file from its history, or run `apply --in-place` with the policies that injected it: it records what is as they want it")
    })
}

pub(super) fn explain(
    obstacle: Obstacle,
    tree: &Tree<'_>,
    source: &Source<'_>,
    recorded: &[Recorded],
) -> Diagnostic {
    let (node, code, why, help) = match obstacle {
        Obstacle::Refused(refusal) => {
            let (code, why, help) = explain_refusal(refusal.why);
            (refusal.node, code, why.to_owned(), help)
        }
        Obstacle::CannotWrite(CannotWrite { node, why }) => (
            node,
            Code::CannotEdit,
            format!("it {why}"),
            "write it in block style, `key: value` lines and `- item` lines",
        ),
        Obstacle::Forged(at) => (
            at,
            Code::BadRecord,
            "the record says that other values stood there".to_owned(),
            "somebody changed the record: restore it from the file's history, or take it off together with what was injected",
        ),
        Obstacle::TooDeep(at) => (
            at,
            Code::BadRecord,
            format!(
                "with what the record says the document would nest deeper than {MAX_DEPTH} levels"
            ),
            "somebody changed the record: restore it from the file's history, or take it off together with what was injected",
        ),
        Obstacle::Wrong(what) => {
            let node = recorded
                .first()
                .map_or_else(|| tree.roots()[0], |one| one.node);
            (
                node,
                Code::Internal,
                what,
                "this is a bug of podgraft; nothing was written. Please report it with the document",
            )
        }
    };
    let message = format!("what was injected cannot be taken out here: {why}");
    Diagnostic::error(code, message)
        .at(source.place(tree.span(node)), "here")
        .help(help)
}
