//! Removes whole generated objects: the edits of their texts, their description in the report, and what cannot be removed.

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, RemoveOperation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::change::{Change, ChangeTarget, Operation, RecordCause};
use crate::diagnostic::{Code, Diagnostic};
use crate::edit::{TextCache, lower};
use crate::manifest::object::{ListMembership, Object};
use crate::options::Options;
use crate::outcome::{
    EarlierVersion, FileReport, GeneratedObject, GeneratedRecord, Outcome, PolicyReport,
    WorkloadReport,
};
use crate::plan::draft::Draft;
use crate::record::MARKER;
use crate::record::words::forced_undo_command;
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, Tree};

use super::prune::RunFile;

/// Returns the length of the first line, with its line end, if it is a bare `---` line. Otherwise 0.
pub(super) fn separator_of(text: &[u8]) -> usize {
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
    match text[..end].trim_ascii() {
        b"---" => end,
        _ => 0,
    }
}

/// Sorts removals and merges those that overlap.
pub(super) fn merge_overlapping(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| edit.at.start);
    let mut merged: Vec<Edit> = Vec::new();
    for edit in edits {
        match merged.last_mut() {
            Some(last) if edit.at.start < last.at.end => {
                last.at.end = last.at.end.max(edit.at.end);
            }
            _ => merged.push(edit),
        }
    }
    merged
}

/// Returns the edits that remove objects, as whole documents or as list items. `separator` is the length of a bare
/// `---` line after the text. `None` if there is no safe way.
pub(super) fn remove(tree: &Tree<'_>, objects: &[&Object], separator: usize) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    let mut lists: BTreeMap<NodeId, Vec<ListMembership>> = BTreeMap::new();
    for object in objects {
        match object.within {
            Some(within) => lists.entry(within.list).or_default().push(within),
            None => edits.extend(remove_document(tree, object, separator)?),
        }
    }
    for (list, items) in lists {
        edits.extend(remove_items(tree, list, &items)?);
    }
    Some(edits)
}

fn remove_items(tree: &Tree<'_>, list: NodeId, removed: &[ListMembership]) -> Option<Vec<Edit>> {
    let mut draft = Draft::new(tree, list);
    let root = draft.open_root().ok()?;
    let items = draft.open_list(root, "items", &[]).ok()?;
    let nodes: BTreeSet<NodeId> = removed.iter().map(|within| within.item).collect();
    let count = draft.remove_nodes(items, &nodes).ok()?;
    if count != removed.len() {
        return None;
    }
    lower(&draft, list, &mut TextCache::default()).ok()
}

/// Removes a document with its own `---` line. Comments between this line and the object stay. A first document without
/// such a line is removed with the separator after it instead, which is `behind` bytes long.
fn remove_document(tree: &Tree<'_>, object: &Object, behind: usize) -> Option<Vec<Edit>> {
    let (text, span) = (tree.text(), tree.span(object.node));
    let line = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    if span.start != line {
        return None;
    }
    let Some(separator) = separator_above(&text[..line]) else {
        let has_none = !text[..line]
            .lines()
            .any(|text_line| text_line.starts_with("---"));
        return has_none.then(|| vec![Edit::removal(line..text.len() + behind)]);
    };
    let has_line_end = text[..span.end].ends_with('\n');
    let end = if has_line_end {
        span.end
    } else {
        text[span.end..]
            .find('\n')
            .map_or(text.len(), |at| span.end + at + 1)
    };
    let has_comments = text[separator..line].contains('#');
    Some(match has_comments {
        true => {
            let behind = separator + separator_of(&text.as_bytes()[separator..line]);
            vec![Edit::removal(separator..behind), Edit::removal(line..end)]
        }
        false => vec![Edit::removal(separator..end)],
    })
}

/// The start of the bare `---` line that ends a text, but for comments and blank lines.
fn separator_above(text: &str) -> Option<usize> {
    let mut rest = text;
    loop {
        rest = rest.trim_end();
        let start = rest.rfind('\n').map_or(0, |at| at + 1);
        match &rest[start..] {
            "---" => return Some(start),
            line if line.trim_start().starts_with('#') => rest = &rest[..start],
            _ => return None,
        }
    }
}

/// Describes a pruned object, without its position. With `is_replaced`, the file has another version of it now.
pub(super) fn describe(
    object: &Object,
    value: &Value,
    generated: &GeneratedRecord,
    is_replaced: bool,
    options: &Options,
) -> WorkloadReport {
    let text = |key: &str| value["metadata"][key].as_str();
    let target = ChangeTarget::Object(generated.name.clone());
    let outcome = match is_replaced {
        true => Outcome::Injected(vec![Change::new(Operation::Update, target)]),
        false => Outcome::TakenOut(vec![Change::new(Operation::TakeOut, target)]),
    };
    let policy_report = PolicyReport::of(&generated.policy, outcome);
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
        forget_removals(policy, |name| staying.contains(name));
        if policy.outcome == Outcome::Injected(Vec::new()) {
            policy.outcome = Outcome::UpToDate;
        }
    }
}

/// Takes the removal of an object that is not there out of a report. If nothing else changes, the record does.
pub(super) fn forget_missing(report: &mut WorkloadReport, missing: &str) {
    for policy in &mut report.policies {
        if forget_removals(policy, |name| name == missing)
            && let Some(changes) = changes_of(policy)
            && changes.is_empty()
        {
            changes.push(Change::of_record(RecordCause::Other));
        }
    }
}

/// Takes the removal of objects out of a report. Returns whether there was one.
fn forget_removals(policy: &mut PolicyReport, is_meant: impl Fn(&str) -> bool) -> bool {
    let Some(changes) = changes_of(policy) else {
        return false;
    };
    let before = changes.len();
    changes.retain(|change| {
        let is_of_object = matches!(&change.target, ChangeTarget::Object(name) if is_meant(name));
        change.operation != Operation::TakeOut || !is_of_object
    });
    changes.len() < before
}

fn changes_of(policy: &mut PolicyReport) -> Option<&mut Vec<Change>> {
    match &mut policy.outcome {
        Outcome::Injected(changes)
        | Outcome::TakenOut(changes)
        | Outcome::Failed(Some(changes)) => Some(changes),
        Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed(None) => None,
    }
}

/// Whether a [described](describe) object has another version in the file now.
fn is_updated(object: &WorkloadReport) -> bool {
    object.has_outcome(|outcome| matches!(outcome, Outcome::Injected(_)))
}

/// Inserts the pruned objects among the file's workloads, each with its edits.
pub(super) fn add(report: &mut FileReport, removed: Vec<WorkloadReport>) {
    let added = with_edits(report, removed);
    for placed in &mut report.companions {
        placed.workload += added.partition_point(|(at, _)| *at <= placed.workload);
    }
    let mut added = added.into_iter().peekable();
    let workloads = std::mem::take(&mut report.workloads);
    for (index, workload) in workloads.into_iter().enumerate() {
        while let Some((_, object)) = added.next_if(|(at, _)| *at <= index) {
            report.workloads.push(object);
        }
        report.workloads.push(workload);
    }
    let last = added.map(|(_, object)| object);
    report.workloads.extend(last);
}

/// Returns the pruned objects that have edits, each behind the number of workloads that stand before it.
fn with_edits(
    report: &FileReport,
    mut removed: Vec<WorkloadReport>,
) -> Vec<(usize, WorkloadReport)> {
    removed.sort_by_key(|object| object.extent.start);
    let workloads = &report.workloads;
    let (mut at, mut first) = (0, 0);
    let mut found = Vec::new();
    for mut object in removed {
        while at < workloads.len() && workloads[at].extent.start <= object.extent.start {
            first = workloads[at].edits.end.max(first);
            at += 1;
        }
        let changed = workloads[at..].iter().filter(|other| other.is_changed());
        let mut starts = changed.map(|other| other.edits.start);
        let next = starts.find(|&start| start >= first);
        let is_before = |edit: &Edit| edit.at.end <= object.extent.start;
        let from = report.edits.partition_point(is_before).max(first);
        // The last lines of an object's next version may be inserted behind those of the earlier one.
        let end = object.extent.end;
        let may_end_behind = is_updated(&object);
        let is_up_to = |edit: &Edit| {
            edit.at.start < end || may_end_behind && edit.at.is_empty() && edit.at.start == end
        };
        let to = report.edits.partition_point(is_up_to);
        let to = to.min(next.unwrap_or(report.edits.len()));
        if from < to {
            object.edits = from..to;
            first = to;
            found.push((at, object));
        }
    }
    found
}

/// The error that an object to prune is in the part of a stream that was already written.
pub fn not_taken_out(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "the {}, generated by policy `{}`, is no longer needed, but was not removed because \
         --stream reads the input only once",
        generated.name, generated.policy
    );
    Diagnostic::error(Code::TooLate, message).help("run without --stream")
}

/// The error that somebody changed an object to prune.
pub(super) fn changed_since(generated: &GeneratedRecord, file: &str) -> Diagnostic {
    let message = format!(
        "the {} was changed after policy `{}` generated it",
        generated.name, generated.policy
    );
    let help = format!(
        "to remove it anyway: {}, together with the file of its workload if that is a different \
         one",
        forced_undo_command(&generated.policy, file)
    );
    Diagnostic::error(Code::ChangedSince, message).help(help)
}

/// The error that an object cannot be removed safely.
pub(super) fn cannot_remove(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "the {}, generated by policy `{}`, cannot be removed from its place in the file",
        generated.name, generated.policy
    );
    let problem = Diagnostic::error(Code::CannotEdit, message);
    problem.help("write it as a separate document after a `---` line, or remove it by hand")
}

/// The warning that no file contains an object to prune.
pub(super) fn missing_object(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "the {}, generated by policy `{}` and no longer needed, is not in any of these files",
        generated.name, generated.policy
    );
    let problem = Diagnostic::warning(Code::MissingObject, message);
    problem.help("if it is in another file, remove it there")
}

/// The warning that no file contains the version of an object that is to be replaced.
pub(super) fn missing_version(generated: &GeneratedRecord) -> Diagnostic {
    let message = format!(
        "an earlier version of the {}, generated by policy `{}`, is not in any of these files",
        generated.name, generated.policy
    );
    Diagnostic::warning(Code::MissingObject, message).help(
        "the policy now generates a different version; if the earlier one is in another file, \
         remove it there",
    )
}

/// The error that an object is generated anew and its earlier version would stay.
pub(super) fn second_version(companion: &GeneratedObject, earlier: &EarlierVersion) -> Diagnostic {
    let help = format!(
        "remove the earlier version by hand, or run without --workload: a workload that the \
         earlier version was generated for has lost the annotation {MARKER}, or --workload \
         excludes that workload"
    );
    staying_version(companion, earlier).help(help)
}

/// The error that the earlier version of an object would stay in a file of another shard.
pub(super) fn version_of_other_shard(
    companion: &GeneratedObject,
    earlier: &EarlierVersion,
) -> Diagnostic {
    staying_version(companion, earlier)
        .help("run without --shard: the file of the earlier version is in another shard")
}

fn staying_version(companion: &GeneratedObject, earlier: &EarlierVersion) -> Diagnostic {
    let GeneratedObject { name, policy, .. } = companion;
    let message = format!("an earlier version of the {name} would remain next to the new one");
    Diagnostic::error(Code::Conflict, message)
        .at(
            companion.place.clone(),
            format!("policy `{policy}` generates this"),
        )
        .at(earlier.place.clone(), "earlier version")
        .of_policy(&**policy)
}
