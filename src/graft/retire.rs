//! Objects that an earlier run generated and that no record names any more: taken out of the files they stand in.

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, RemoveOperation};
use memchr::memmem;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::change::{Change, Operation, Target};
use crate::diagnostic::{Code, Diagnostic};
use crate::edit::companion::unwrap_list;
use crate::edit::{Written, lower};
use crate::inventory::written_name;
use crate::manifest::object::{Found, Object, Within, find_objects};
use crate::manifest::workload::PodKinds;
use crate::options::Options;
use crate::outcome::{FileReport, Generated, Outcome, PolicyReport, WorkloadReport};
use crate::ownership::Room;
use crate::plan::companions::MANAGED_BY;
use crate::plan::draft::{Draft, Opened, Part};
use crate::record::live::as_created;
use crate::record::words::undo_command;
use crate::record::{RECORD, Record, digest};
use crate::source::Source;
use crate::undo::{compose, read_record};
use crate::yaml::parse::parse;
use crate::yaml::splice::{Edit, splice};
use crate::yaml::stream::chunks;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

use super::record_refusals::unreadable;

/// A file of a run: its name, its text, and what came of it.
pub type RunFile<'f> = (Arc<str>, &'f [u8], &'f mut FileReport);

/// Takes the objects out that no workload of the run needs any more. All that the run does beside is in the reports.
pub fn retire(files: &mut [RunFile<'_>], options: &Options) {
    let is_refused = |files: &[RunFile<'_>]| {
        files
            .iter()
            .any(|(.., report)| report.diagnostics.iter().any(Diagnostic::is_error))
    };
    let mut needed: BTreeSet<(String, String)> = files
        .iter()
        .flat_map(|(.., report)| &report.needed)
        .map(Generated::key)
        .collect();
    let all_dropped = |files: &[RunFile<'_>], needed: &BTreeSet<_>| {
        let mut dropped: BTreeMap<String, Vec<Generated>> = BTreeMap::new();
        for one in files
            .iter()
            .flat_map(|(.., report)| &report.dropped)
            .filter(|one| !needed.contains(&one.key()))
        {
            dropped
                .entry(one.name.clone())
                .or_default()
                .push(one.clone());
        }
        dropped
    };
    // Where an object stays because others need it, it may stand elsewhere than where room was made for it.
    let has_room = options.take_out.is_undo()
        && files
            .iter()
            .any(|(.., report)| report.rooms.iter().any(|(_, room)| room.unended));
    // Where a policy failed, what it still needs is not known.
    if is_refused(files) || all_dropped(files, &needed).is_empty() && !has_room {
        return;
    }
    let kinds = PodKinds::of(options);
    for (name, text, report) in files.iter_mut() {
        match needed_by_others(name, text, &kinds) {
            Ok(more) => needed.extend(more.iter().map(Generated::key)),
            Err(problem) => report.diagnostics.push(problem),
        }
    }
    let dropped = all_dropped(files, &needed);
    if is_refused(files) || dropped.is_empty() && !has_room {
        return;
    }
    let names = needed.into_iter().map(|(name, _)| name).collect();
    let retiring = Retiring {
        dropped,
        needed: names,
        kinds,
        options,
    };
    let mut found = BTreeSet::new();
    for (name, text, report) in files.iter_mut() {
        retiring.file(name, text, report, &mut found);
    }
    let is_missing = |one: &&Generated| !found.contains(&one.name);
    let missing = retiring.dropped.values().filter_map(|ones| ones.first());
    if let Some((.., report)) = files.first_mut() {
        let warnings = missing.filter(is_missing).map(is_nowhere);
        report.diagnostics.extend(warnings);
    }
}

/// What objects of kinds that podgraft does not know have from an earlier run, which did: their documents are let through
/// unread.
fn needed_by_others(
    name: &Arc<str>,
    text: &[u8],
    kinds: &PodKinds,
) -> Result<Vec<Generated>, Diagnostic> {
    let mut needed = Vec::new();
    for chunk in chunks(text).filter(|chunk| memmem::find(chunk.text, RECORD.as_bytes()).is_some())
    {
        let Some(tree) = std::str::from_utf8(chunk.text)
            .ok()
            .and_then(|text| parse(text).ok())
        else {
            continue;
        };
        for found in find_objects(&tree, kinds) {
            let Found::Object(object) = found else {
                continue;
            };
            if kinds.find(&object.api_version, &object.kind).is_some() {
                continue;
            }
            match read_record(&tree, object.node) {
                Ok(one) => needed.extend(one.iter().flat_map(|one| generated(&one.record))),
                Err((node, why)) => {
                    let span = tree.span(node);
                    let whole = String::from_utf8_lossy(text);
                    let source = Source::new(Arc::clone(name), &whole);
                    return Err(unreadable(
                        &why,
                        source.place(chunk.start + span.start..chunk.start + span.end),
                    ));
                }
            }
        }
    }
    Ok(needed)
}

/// An object that goes, its value, and what a record says of it.
type Gone<'r> = (Object, Value, &'r Generated);

struct Retiring<'r> {
    /// By name.
    dropped: BTreeMap<String, Vec<Generated>>,
    /// The names of what stays.
    needed: BTreeSet<String>,
    kinds: PodKinds,
    options: &'r Options,
}

impl Retiring<'_> {
    fn file(
        &self,
        name: &Arc<str>,
        text: &[u8],
        report: &mut FileReport,
        found: &mut BTreeSet<String>,
    ) {
        // What stands beside the objects may change, too, so they are taken out of the result.
        let output = splice(text, &report.edits);
        let (mut gone, mut described) = (Vec::new(), Vec::new());
        for chunk in chunks(&output)
            .filter(|chunk| memmem::find(chunk.text, MANAGED_BY.1.as_bytes()).is_some())
        {
            let Some(tree) = std::str::from_utf8(chunk.text)
                .ok()
                .and_then(|text| parse(text).ok())
            else {
                continue;
            };
            let (objects, changed) = self.gone(&tree);
            for (node, one) in changed {
                found.insert(one.name.clone());
                let at = offset_before(&report.edits, chunk.start + tree.span(node).start);
                let whole = String::from_utf8_lossy(text);
                let place = Source::new(Arc::clone(name), &whole).place(at..at);
                report
                    .diagnostics
                    .push(changed_since(one, name).at(place, "this object"));
            }
            if self.options.details {
                described.extend(objects.iter().map(|(object, value, one)| {
                    let span = tree.span(object.node);
                    let before = |at| offset_before(&report.edits, chunk.start + at);
                    placed(
                        describe(object, value, one, self.options),
                        object,
                        before(span.start)..before(span.end),
                        text,
                    )
                }));
            }
            let (nodes, ones): (Vec<&Object>, Vec<&Generated>) = objects
                .iter()
                .map(|(object, _, one)| (object, *one))
                .unzip();
            let behind = &output[chunk.start + chunk.text.len()..];
            match remove(&tree, &nodes, separator_of(behind)) {
                Some(edits) => {
                    gone.extend(
                        edits
                            .into_iter()
                            .map(|edit| self::behind(chunk.start, edit)),
                    );
                }
                None => report.diagnostics.extend(ones.into_iter().map(stays)),
            }
            found.extend(objects.into_iter().map(|(.., one)| one.name.clone()));
        }
        if gone.is_empty() && report.rooms.is_empty() {
            return;
        }
        let gone = joined(gone);
        let left = splice(&output, &gone);
        let rooms = report.rooms.iter().filter_map(|(at, room)| {
            // Where the workload stands in what is left.
            let at = offset_behind(&gone, offset_behind(&report.edits, *at));
            self.take_room(&left, at, room)
        });
        let mut room: Vec<Edit> = rooms.flatten().collect();
        room.sort_by_key(|edit| edit.at.start);
        let gone = compose(output.len(), &gone, &room);
        report.set_edits(compose(text.len(), &report.edits, &gone));
        add(report, described);
    }

    /// The objects of a document that go, and those that would if nobody had changed them.
    fn gone(&self, tree: &Tree<'_>) -> (Vec<Gone<'_>>, Vec<(NodeId, &Generated)>) {
        let (mut gone, mut changed) = (Vec::new(), Vec::new());
        for found in find_objects(tree, &self.kinds) {
            let Found::Object(object) = found else {
                continue;
            };
            let Some(value) = to_value(tree, object.node).ok() else {
                continue;
            };
            let own = written_name(&value);
            let Some(ones) = self.dropped.get(&own) else {
                continue;
            };
            let is_as_written = ones
                .iter()
                .any(|one| digest(&as_created(&value)) == one.digest);
            // Another with the name of one that is still needed is the user's, or the new one.
            if !is_as_written && self.needed.contains(&own) {
                continue;
            }
            // Whoever wrote the record: what does not say that podgraft manages it stays.
            match is_ours(&value) && (is_as_written || self.options.force) {
                true => gone.push((object, value, &ones[0])),
                false => changed.push((object.node, &ones[0])),
            }
        }
        (gone, changed)
    }

    /// What was done to make room for objects that are gone is undone, in the document of the workload at `at`.
    fn take_room(&self, left: &[u8], at: usize, room: &Room) -> Option<Vec<Edit>> {
        let document = chunks(left).take_while(|chunk| chunk.start <= at).last()?;
        if room.list
            && let Some(edits) = unwrap_list(&parse(std::str::from_utf8(document.text).ok()?).ok()?)
        {
            return Some(edits.map(|edit| behind(document.start, edit)).to_vec());
        }
        // Behind another document the end is not the workload's.
        let is_last = document.start + document.text.len() == left.len();
        let text = std::str::from_utf8(document.text)
            .ok()
            .filter(|_| is_last)?;
        let edits = unend(text, room, &self.kinds, Some(at - document.start));
        Some(
            edits
                .into_iter()
                .map(|edit| behind(document.start, edit))
                .collect(),
        )
    }
}

/// What gives a text back the end that it had before something was written behind its last workload, the one at `at` where
/// that is known.
pub(super) fn unend(text: &str, room: &Room, kinds: &PodKinds, at: Option<usize>) -> Vec<Edit> {
    let Some(unended) = text.strip_suffix('\n').filter(|_| room.unended) else {
        return Vec::new();
    };
    let unended = unended.strip_suffix('\r').unwrap_or(unended);
    let Some(last) = chunks(unended.as_bytes()).last() else {
        return Vec::new();
    };
    let Some(tree) = parse(&unended[last.start..]).ok() else {
        return Vec::new();
    };
    // Behind anything else the line end is somebody's.
    let is_workload = find_objects(&tree, kinds)
        .pop()
        .is_some_and(|found| match found {
            Found::Object(object) => {
                let is_it = at.is_none_or(|at| last.start + tree.span(object.node).start <= at);
                is_it && kinds.find(&object.api_version, &object.kind).is_some()
            }
            Found::Untyped { .. } => false,
        });
    if !is_workload {
        return Vec::new();
    }
    vec![Edit {
        at: unended.len()..text.len(),
        text: "".into(),
    }]
}

fn is_ours(object: &Value) -> bool {
    let (key, value) = MANAGED_BY;
    object
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(key)?.as_str())
        == Some(value)
}

/// The edit of a text that is part of another.
fn behind(start: usize, edit: Edit) -> Edit {
    Edit {
        at: edit.at.start + start..edit.at.end + start,
        ..edit
    }
}

/// Where in the result something of the text stands that no edit touches.
fn offset_behind(edits: &[Edit], at: usize) -> usize {
    let before = edits.iter().take_while(|edit| edit.at.end <= at);
    before.fold(at, |at, edit| at + edit.text.len() - edit.at.len())
}

/// Where in the text something of its result stands.
fn offset_before(edits: &[Edit], at: usize) -> usize {
    let (mut here, mut there) = (0, 0);
    for edit in edits {
        let kept = edit.at.start - there;
        if at < here + kept {
            break;
        }
        here += kept + edit.text.len();
        there = edit.at.end;
    }
    there + at.saturating_sub(here)
}

/// What is to go stands in a text that is written already.
pub fn not_taken_out(one: &Generated) -> Diagnostic {
    let message = format!(
        "the {}, which policy `{}` generated, is needed no longer, and a stream is read once: it was not taken out",
        one.name, one.policy
    );
    Diagnostic::error(Code::TooLate, message).help("leave out --stream")
}

fn changed_since(one: &Generated, file: &str) -> Diagnostic {
    let message = format!(
        "the {} was changed since policy `{}` generated it",
        one.name, one.policy
    );
    let help = format!(
        "to take it out all the same: {}, with the file of its workload if that is another",
        undo_command(&one.policy, file, true)
    );
    Diagnostic::error(Code::ChangedSince, message).help(help)
}

/// There is no safe way to take it out.
fn stays(one: &Generated) -> Diagnostic {
    let message = format!(
        "the {}, which policy `{}` generated, cannot be taken out of where it stands",
        one.name, one.policy
    );
    let problem = Diagnostic::error(Code::CannotEdit, message);
    problem.help("write it as a document of its own, behind a line `---`, or take it out by hand")
}

/// Nothing of this name is among the files.
fn is_nowhere(one: &Generated) -> Diagnostic {
    let message = format!(
        "the {}, which policy `{}` generated and nothing needs any more, is in none of these files",
        one.name, one.policy
    );
    let problem = Diagnostic::warning(Code::MissingObject, message);
    problem.help("if it stands in another file, take it out there")
}

/// The length of a line that separates documents and says nothing else, at the beginning of a text.
fn separator_of(text: &[u8]) -> usize {
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
    match text[..end].trim_ascii() {
        b"---" => end,
        _ => 0,
    }
}

/// Edits in order, those that take out the same text made one.
fn joined(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| edit.at.start);
    let mut all: Vec<Edit> = Vec::new();
    for edit in edits {
        match all.last_mut() {
            Some(last) if edit.at.start < last.at.end => {
                last.at.end = last.at.end.max(edit.at.end);
            }
            _ => all.push(edit),
        }
    }
    all
}

/// The edits that take out objects: their documents, or their items. `None` where there is no safe way.
fn remove(tree: &Tree<'_>, objects: &[&Object], separator: usize) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    let mut lists: BTreeMap<NodeId, Vec<Within>> = BTreeMap::new();
    for object in objects {
        match object.within {
            Some(within) => lists.entry(within.list).or_default().push(within),
            None => edits.push(remove_document(tree, object, separator)?),
        }
    }
    for (list, items) in lists {
        edits.extend(remove_items(tree, list, &items)?);
    }
    Some(edits)
}

fn remove_items(tree: &Tree<'_>, list: NodeId, gone: &[Within]) -> Option<Vec<Edit>> {
    let mut draft = Draft::new(tree, list);
    let root = draft.open_root().ok()?;
    let items = draft.open_list(root, "items", &[]).ok()?;
    for within in gone {
        let Opened::List { items: own, .. } = draft.opened(items) else {
            return None;
        };
        let at = own
            .iter()
            .position(|item| *item == Part::Node(within.item))?;
        draft.remove(items, at).ok()?;
    }
    lower(&draft, list, &mut Written::default()).ok()
}

/// The first document goes with the separator behind it, of as many bytes; others go with their own.
fn remove_document(tree: &Tree<'_>, object: &Object, behind: usize) -> Option<Edit> {
    let (text, span) = (tree.text(), tree.span(object.node));
    let line = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let separator = text[..line].trim_end().rfind('\n').map_or(0, |at| at + 1);
    if span.start != line {
        return None;
    }
    if text[separator..line].trim_end() != "---" {
        let has_none = !text[..line].lines().any(|own| own.starts_with("---"));
        return has_none.then(|| Edit {
            at: line..text.len() + behind,
            text: "".into(),
        });
    }
    let has_line_end = text[..span.end].ends_with('\n');
    let end = if has_line_end {
        span.end
    } else {
        text[span.end..]
            .find('\n')
            .map_or(text.len(), |at| span.end + at + 1)
    };
    Some(Edit {
        at: separator..end,
        text: "".into(),
    })
}

/// An object that goes, without its place.
fn describe(object: &Object, value: &Value, one: &Generated, options: &Options) -> WorkloadReport {
    let text = |key: &str| value["metadata"][key].as_str();
    let what = Change::new(Operation::TakeOut, Target::Object(one.name.clone()));
    let met = PolicyReport {
        policy: one.policy.as_str().into(),
        outcome: Outcome::TakenOut(vec![what]),
        rules: Vec::new(),
        is_older: false,
    };
    let whole = RemoveOperation {
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
        policies: vec![met],
        is_generated: true,
        patch: options
            .patches
            .then(|| Patch(vec![PatchOperation::Remove(whole)])),
        ..WorkloadReport::default()
    }
}

/// The object with its lines, and its bytes of the file.
fn placed(
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

/// Puts the objects that go among the file's workloads, each with its edits.
fn add(report: &mut FileReport, gone: Vec<WorkloadReport>) {
    for mut object in gone {
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

/// The objects that a record names.
pub(super) fn generated(record: &Record) -> impl Iterator<Item = Generated> + '_ {
    record.policies.iter().flat_map(|policy| {
        policy.generated.iter().map(|(name, digest)| Generated {
            name: name.clone(),
            digest: digest.clone(),
            policy: policy.policy.clone(),
        })
    })
}
