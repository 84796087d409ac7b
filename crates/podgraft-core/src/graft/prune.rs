//! Removes objects that an earlier run generated and that no record needs any more, from all files of a run.

use memchr::memmem;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::edit::companion::unwrap_list;
use crate::inventory::written_name;
use crate::manifest::object::{DocumentContent, Object, find_objects, objects_in};
use crate::manifest::workload::PodKinds;
use crate::options::Options;
use crate::outcome::{FileReport, GeneratedRecord, ObjectName, WorkloadReport};
use crate::ownership::TextAdjustment;
use crate::plan::companions::{MANAGED_BY, is_managed};
use crate::record::live::as_created;
use crate::record::lock::{self, LockSet};
use crate::record::{RECORD, Record, digest};
use crate::source::Source;
use crate::undo::{compose, compose_traced, read_record};
use crate::yaml::parse::parse;
use crate::yaml::splice::{Edit, splice};
use crate::yaml::stream::{Chunk, chunks};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

use super::changed_file::ChangedFile;
use super::check_pruned::{is_rest_of, pruned_too_much};
use super::record_refusals::unreadable;
pub use super::removed_objects::not_taken_out;
use super::removed_objects::{
    add, cannot_remove, changed_since, describe, forget_missing, leave_out_needed,
    merge_overlapping, missing_object, missing_version, remove, second_version, separator_of,
    version_of_other_shard,
};
use super::updated_objects::only_differing_lines;

/// A file of a run: its name, its text and its report.
pub type RunFile<'f> = (Arc<str>, &'f [u8], &'f mut FileReport);

/// Removes the generated objects that no workload needs any more, by adding edits to the reports. Those that the lock
/// files name for workloads of other files stay.
pub fn prune(files: &mut [RunFile<'_>], options: &Options, locks: &LockSet) {
    let mut needed: BTreeSet<(String, String)> = files
        .iter()
        .flat_map(|(.., report)| &report.needed)
        .map(GeneratedRecord::key)
        .collect();
    let elsewhere = locks.generated_elsewhere(files.iter().map(|(name, ..)| &**name));
    let mut names: BTreeSet<String> = needed.iter().map(|(name, _)| name.clone()).collect();
    names.extend(names_in_records(files, options));
    // Where this run writes a new version of an object that others have, the old one goes.
    let (replaced, elsewhere): (Vec<GeneratedRecord>, Vec<GeneratedRecord>) = elsewhere
        .into_iter()
        .partition(|object| names.contains(&object.name));
    needed.extend(elsewhere.iter().map(GeneratedRecord::key));
    // An object that others need may stay, but in another place than the room that was made for it. Then that room is
    // still undone.
    let has_room = options.take_out.is_undo()
        && files
            .iter()
            .any(|(.., report)| report.rooms.iter().any(|(_, room)| room.unended));
    // If nothing is to be pruned, this saves the search of all texts.
    if is_to_prune(files, &dropped(files, &replaced, &needed), has_room) {
        let kinds = PodKinds::of(options);
        for (name, text, report) in files.iter_mut() {
            match needed_by_others(name, text, &kinds) {
                Ok(more) => needed.extend(more.iter().map(GeneratedRecord::key)),
                Err(problem) => report.diagnostics.push(problem),
            }
        }
    }
    leave_out_needed(files, &needed);
    let dropped = dropped(files, &replaced, &needed);
    refuse_second_versions(files, &dropped);
    if !is_to_prune(files, &dropped, has_room) {
        return;
    }
    let pruner = Pruner {
        dropped,
        needed: needed.into_iter().map(|(name, _)| name).collect(),
        kinds: PodKinds::of(options),
        options,
    };
    pruner.files(files);
}

/// Returns the names that records may have for the objects that this run writes: an earlier version may state its
/// namespace or be in that of the run.
fn names_in_records(files: &[RunFile<'_>], options: &Options) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (file, _, report) in files {
        let written = report.companions.iter();
        let written = written.map(|placed| &placed.companion.name);
        let namespace = options.namespace_in(file);
        for name in written.filter(|name| name.namespace.as_deref() == namespace) {
            let unstated = ObjectName {
                namespace: None,
                ..name.clone()
            };
            names.extend([name, &unstated].map(ObjectName::to_string));
        }
    }
    names
}

/// Whether there is anything to prune. If a policy failed, it is unknown which objects it still needs.
fn is_to_prune(
    files: &[RunFile<'_>],
    dropped: &BTreeMap<String, Vec<GeneratedRecord>>,
    has_room: bool,
) -> bool {
    let is_refused = files.iter().any(|(.., report)| report.is_refused());
    !is_refused && (has_room || !dropped.is_empty())
}

/// Refuses a new version of an object if the earlier one would stay beside it.
fn refuse_second_versions(
    files: &mut [RunFile<'_>],
    dropped: &BTreeMap<String, Vec<GeneratedRecord>>,
) {
    let dropped = dropped.values().flatten();
    let keys: BTreeSet<_> = dropped.map(GeneratedRecord::key).collect();
    let names: BTreeSet<&str> = files.iter().map(|(name, ..)| &**name).collect();
    let companions = files.iter().flat_map(|(.., report)| &report.companions);
    let problems = companions.filter_map(|placed| {
        let earlier = placed.companion.replaces.as_ref()?;
        if !names.contains(&*earlier.place.source) {
            return Some(version_of_other_shard(&placed.companion, earlier));
        }
        (!keys.contains(&earlier.key)).then(|| second_version(&placed.companion, earlier))
    });
    let problems: Vec<Diagnostic> = problems.collect();
    if let Some((.., report)) = files.first_mut() {
        report.diagnostics.extend(problems);
    }
}

/// Returns the generated objects that the records of the input name, or that are `replaced`, and that nothing needs, by
/// object name.
fn dropped(
    files: &[RunFile<'_>],
    replaced: &[GeneratedRecord],
    needed: &BTreeSet<(String, String)>,
) -> BTreeMap<String, Vec<GeneratedRecord>> {
    let mut dropped: BTreeMap<String, Vec<GeneratedRecord>> = BTreeMap::new();
    let of_files = files.iter().flat_map(|(.., report)| &report.dropped);
    let all = of_files.chain(replaced);
    for generated in all.filter(|generated| !needed.contains(&generated.key())) {
        let alike = dropped.entry(generated.name.clone()).or_default();
        alike.push(generated.clone());
    }
    dropped
}

/// The documents of a text that contain a word, without those that cannot be parsed.
pub(super) fn documents_with<'t>(
    word: &'t str,
    text: &'t [u8],
) -> impl Iterator<Item = (Chunk<'t>, Tree<'t>)> {
    let finder = memmem::Finder::new(word);
    let chunks = chunks(text).filter(move |chunk| finder.find(chunk.text).is_some());
    chunks.filter_map(|chunk| {
        let tree = parse(std::str::from_utf8(chunk.text).ok()?).ok()?;
        Some((chunk, tree))
    })
}

/// Returns the generated objects that records on objects of unknown kinds name. An earlier run knew these kinds
/// (`--pod-template`), and this run does not parse their documents.
fn needed_by_others(
    name: &Arc<str>,
    text: &[u8],
    kinds: &PodKinds,
) -> Result<Vec<GeneratedRecord>, Diagnostic> {
    let mut needed = Vec::new();
    for (chunk, tree) in documents_with(RECORD, text) {
        for object in objects_in(&tree, kinds) {
            if kinds.find(&object.api_version, &object.kind).is_some() {
                continue;
            }
            match read_record(&tree, object.node) {
                Ok(recorded) => {
                    let records = recorded.iter().map(|recorded| &recorded.record);
                    needed.extend(records.flat_map(generated));
                }
                Err((node, error)) => {
                    let span = tree.span(node);
                    let decoded = String::from_utf8_lossy(text);
                    let source = Source::new(Arc::clone(name), &decoded);
                    let span = chunk.start + span.start..chunk.start + span.end;
                    return Err(unreadable(&error, source.place(span)));
                }
            }
        }
    }
    Ok(needed)
}

/// A generated object to prune, its value, and its record.
type PrunedObject<'r> = (Object, Value, &'r GeneratedRecord);

struct Pruner<'r> {
    /// By object name.
    dropped: BTreeMap<String, Vec<GeneratedRecord>>,
    /// The names of the objects that stay.
    needed: BTreeSet<String>,
    kinds: PodKinds,
    options: &'r Options,
}

/// What is pruned from a file.
#[derive(Default)]
struct PrunedText {
    /// The names of the objects that this run writes into the file.
    written: BTreeSet<String>,
    /// The names of all objects found, pruned or not.
    names: Vec<String>,
    problems: Vec<Diagnostic>,
    described: Vec<WorkloadReport>,
    /// The extents in the file of the objects of which this run writes the next version: the end of each, by its start.
    replaced: BTreeMap<usize, usize>,
    /// Byte ranges are those of the file's output.
    edits: Vec<Edit>,
    /// The offsets in the output of the objects that the edits remove.
    gone: BTreeSet<usize>,
}

impl Pruner<'_> {
    fn files(&self, files: &mut [RunFile<'_>]) {
        let mut found = BTreeSet::new();
        for (name, text, report) in files.iter_mut() {
            found.extend(self.prune_file(name, text, report));
        }
        let of_files = files.iter().flat_map(|(.., report)| &report.dropped);
        let names: BTreeSet<String> = of_files.map(|object| object.name.clone()).collect();
        let reports = files.iter().map(|(.., report)| report);
        let written: BTreeSet<String> = reports.flat_map(|report| written_names(report)).collect();
        let is_missing = |name: &String| names.contains(name) && !found.contains(name);
        let missing = self.dropped.iter().filter(|(name, _)| is_missing(name));
        let mut warnings = Vec::new();
        for (name, same) in missing {
            let Some(generated) = same.first() else {
                continue;
            };
            if !self.needed.contains(name) {
                warnings.push(missing_object(generated));
                let reports = files.iter_mut();
                let reports = reports.flat_map(|(.., report)| &mut report.workloads);
                reports.for_each(|report| forget_missing(report, name));
            } else if written.contains(name) {
                warnings.push(missing_version(generated));
            }
            // Else the object stands among the files as it is wanted now.
        }
        if let Some((.., report)) = files.first_mut() {
            report.diagnostics.extend(warnings);
        }
    }

    /// Prunes objects from a file. Returns the names of those found in it.
    fn prune_file(&self, name: &Arc<str>, text: &[u8], report: &mut FileReport) -> Vec<String> {
        let output = splice(text, &report.edits);
        let file = ChangedFile::new(name, text, &report.edits, &output);
        let mut pruned = PrunedText {
            written: written_names(report).collect(),
            ..PrunedText::default()
        };
        for (chunk, tree) in documents_with(MANAGED_BY.1, &output) {
            self.document(&file, &chunk, &tree, &mut pruned);
        }
        report.diagnostics.extend(pruned.problems);
        if pruned.edits.is_empty() && report.rooms.is_empty() {
            return pruned.names;
        }
        let removals = merge_overlapping(pruned.edits);
        let room = self.rooms(report, &splice(&output, &removals), &removals);
        let removals = compose(output.len(), &removals, &room);
        let left = splice(&output, &removals);
        if !is_rest_of(&left, &output, &pruned.gone, &self.kinds) {
            report.diagnostics.push(pruned_too_much(file.place(0)));
            return pruned.names;
        }
        let edits = compose_traced(text.len(), &report.edits, &removals);
        report.set_edits(only_differing_lines(text, edits, &pruned.replaced));
        add(report, pruned.described);
        report.assign_edits_between();
        pruned.names
    }

    /// Adds what is pruned from a document to `pruned`.
    fn document(
        &self,
        file: &ChangedFile<'_>,
        chunk: &Chunk<'_>,
        tree: &Tree<'_>,
        pruned: &mut PrunedText,
    ) {
        let (gone, changed) = self.prunable_objects(tree);
        for (node, generated) in changed {
            pruned.names.push(generated.name.clone());
            let place = file.place(chunk.start + tree.span(node).start);
            let problem = changed_since(generated, file.name);
            pruned.problems.push(problem.at(place, "this object"));
        }
        for (object, value, generated) in &gone {
            let span = tree.span(object.node);
            let ranges = file.ranges(object, &(chunk.start + span.start..chunk.start + span.end));
            let is_replaced = pruned.written.contains(&generated.name);
            if is_replaced {
                let Range { start, end } = ranges.extent;
                pruned.replaced.insert(start, end);
            }
            if !self.options.brief {
                let described = describe(object, value, generated, is_replaced, self.options);
                pruned.described.push(file.placed(described, ranges));
            }
        }
        let objects: Vec<&Object> = gone.iter().map(|(object, ..)| object).collect();
        let rest = &file.output[chunk.start + chunk.text.len()..];
        match remove(tree, &objects, separator_of(rest)) {
            Some(edits) => {
                let edits = edits.into_iter().map(|edit| edit.shifted(chunk.start));
                pruned.edits.extend(edits);
                let starts = objects.iter().map(|object| tree.span(object.node).start);
                pruned.gone.extend(starts.map(|start| chunk.start + start));
            }
            None => {
                let staying = gone.iter().map(|(.., generated)| cannot_remove(generated));
                pruned.problems.extend(staying);
            }
        }
        let names = gone
            .into_iter()
            .map(|(.., generated)| generated.name.clone());
        pruned.names.extend(names);
    }

    /// Returns the edits of the remaining text that undo the room made for pruned objects.
    fn rooms(&self, report: &FileReport, left: &[u8], gone: &[Edit]) -> Vec<Edit> {
        let rooms = report.rooms.iter().filter_map(|(at, room)| {
            // The offset of the workload in the remaining text.
            let at = offset_in_output(gone, offset_in_output(&report.edits, *at));
            self.undo_room(left, at, room)
        });
        let mut room: Vec<Edit> = rooms.flatten().collect();
        room.sort_by_key(|edit| edit.at.start);
        room
    }

    /// Returns the objects of a document to prune, and those that stay because somebody changed them.
    fn prunable_objects(
        &self,
        tree: &Tree<'_>,
    ) -> (Vec<PrunedObject<'_>>, Vec<(NodeId, &GeneratedRecord)>) {
        let (mut prunable, mut changed) = (Vec::new(), Vec::new());
        for object in objects_in(tree, &self.kinds) {
            let Some(value) = to_value(tree, object.node).ok() else {
                continue;
            };
            let name = written_name(&value);
            let Some(dropped) = self.dropped.get(&name) else {
                continue;
            };
            let is_as_written = dropped
                .iter()
                .any(|generated| digest(&as_created(&value)) == generated.digest);
            // An object of this name is still needed, and this is not the old one: it is the new one, or the user's.
            if !is_as_written && self.needed.contains(&name) {
                continue;
            }
            // A record could be forged: only objects with podgraft's managed-by label are removed.
            match is_managed(&value) && (is_as_written || self.options.force) {
                true => prunable.push((object.clone(), value, &dropped[0])),
                false => changed.push((object.node, &dropped[0])),
            }
        }
        (prunable, changed)
    }

    /// Undoes the room that was made for pruned objects, in the document of the workload at `at`.
    fn undo_room(&self, output: &[u8], at: usize, room: &TextAdjustment) -> Option<Vec<Edit>> {
        let document = chunks(output)
            .take_while(|chunk| chunk.start <= at)
            .last()?;
        if room.list
            && let Some(edits) = unwrap_list(&parse(std::str::from_utf8(document.text).ok()?).ok()?)
        {
            return Some(edits.map(|edit| edit.shifted(document.start)).to_vec());
        }
        // If another document follows, the end of this one is not the end of the text.
        let is_last = document.start + document.text.len() == output.len();
        let text = std::str::from_utf8(document.text)
            .ok()
            .filter(|_| is_last)?;
        let edits = restore_end(text, room, &self.kinds, Some(at - document.start));
        let edits = edits.into_iter();
        Some(edits.map(|edit| edit.shifted(document.start)).collect())
    }
}

/// The names of the generated objects that a run writes into a file.
fn written_names(report: &FileReport) -> impl Iterator<Item = String> {
    let companions = report.companions.iter();
    companions.map(|placed| placed.companion.name.to_string())
}

/// Removes the last line end of a text if it was added so that an object could follow the last workload. `at` is the
/// offset of that workload, if known.
pub(super) fn restore_end(
    text: &str,
    room: &TextAdjustment,
    kinds: &PodKinds,
    at: Option<usize>,
) -> Vec<Edit> {
    let Some(unended) = room.unended.then(|| unended(text)).flatten() else {
        return Vec::new();
    };
    let Some(last) = chunks(unended.as_bytes()).last() else {
        return Vec::new();
    };
    let Some(tree) = parse(&unended[last.start..]).ok() else {
        return Vec::new();
    };
    // After anything but a workload, podgraft did not add the line end.
    let mut found = find_objects(&tree, kinds);
    let last_object = found.pop();
    let is_workload = last_object
        .as_ref()
        .and_then(DocumentContent::as_object)
        .is_some_and(|object| kinds.find(&object.api_version, &object.kind).is_some());
    // Lines above its first key may be gone, so it may begin behind the offset.
    let before = found.last().and_then(DocumentContent::as_object);
    let before = before.map_or(0, |object| last.start + tree.span(object.node).end);
    if !is_workload || at.is_some_and(|at| at < before.max(last.start)) {
        return Vec::new();
    }
    vec![Edit::removal(unended.len()..text.len())]
}

/// A text without its last line end. `None` if it has none, or if that is a part of the last value (`|+`).
pub(super) fn unended(text: &str) -> Option<&str> {
    let unended = text.strip_suffix('\n')?;
    let unended = unended.strip_suffix('\r').unwrap_or(unended);
    let start = chunks(unended.as_bytes()).last()?.start;
    let last_value = |text: &str| {
        let tree = parse(&text[start..]).ok()?;
        let last = tree.ids().last()?;
        Some(tree.scalar(last).map(str::to_owned))
    };
    (last_value(text)? == last_value(unended)?).then_some(unended)
}

/// Returns the output offset of an input offset that no edit touches.
fn offset_in_output(edits: &[Edit], at: usize) -> usize {
    let before = edits.iter().take_while(|edit| edit.at.end <= at);
    before.fold(at, |at, edit| at + edit.text.len() - edit.at.len())
}

/// The generated objects that a record names.
pub(super) fn generated(record: &Record) -> impl Iterator<Item = GeneratedRecord> + '_ {
    let policies = record.policies.iter();
    policies
        .flat_map(|policy| lock::generated(&policy.policy, policy.set.as_ref(), &policy.generated))
}
