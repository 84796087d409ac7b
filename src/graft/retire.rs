//! Objects that an earlier run generated and that no record names any more: taken out of the files they stand in.

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, RemoveOperation};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::{Written, lower};
use crate::inventory::name_of;
use crate::manifest::object::{Found, Object, find_objects};
use crate::manifest::workload::PodKinds;
use crate::options::Options;
use crate::plan::draft::{Draft, Opened, Part};
use crate::record::live::as_created;
use crate::record::{Record, digest};
use crate::report::{Change, Edit, FileReport, Generated, Outcome, PolicyReport, WorkloadReport};
use crate::source::Source;
use crate::yaml::parse::parse;
use crate::yaml::stream::chunks;
use crate::yaml::tree::Tree;
use crate::yaml::value::to_value;

/// Takes the objects out that no workload of the run needs any more. Files come with their names and texts.
pub fn retire(files: &mut [(Arc<str>, &[u8], &mut FileReport)], options: &Options) {
    let needed: BTreeSet<(String, String)> =
        files.iter().flat_map(|(.., report)| &report.needed).map(Generated::key).collect();
    let dropped = files.iter().flat_map(|(.., report)| &report.dropped);
    let dropped: Vec<Generated> = dropped.filter(|one| !needed.contains(&one.key())).cloned().collect();
    // Where a policy failed, what it still needs is not known.
    let is_refused = files.iter().any(|(.., report)| report.diagnostics.iter().any(Diagnostic::is_error));
    if dropped.is_empty() || is_refused {
        return;
    }
    let needed: BTreeSet<String> = needed.into_iter().map(|(name, _)| name).collect();
    let kinds = PodKinds::of(options);
    for (name, text, report) in files {
        let (mut edits, mut gone, mut is_unended) = (Vec::new(), Vec::new(), false);
        for chunk in chunks(text) {
            let Some(tree) = std::str::from_utf8(chunk.text).ok().and_then(|text| parse(text).ok()) else { continue };
            for found in find_objects(&tree, &kinds) {
                let Found::Object(object) = found else { continue };
                let Some(value) = to_value(&tree, object.node).ok() else { continue };
                let own = name_of(&value, options).map(|name| name.to_string()).unwrap_or_default();
                let Some(one) = dropped.iter().find(|one| one.name == own) else { continue };
                let is_as_written = digest(&as_created(&value)) == one.digest;
                // Another with the name of one that is still needed is the user's, or the new one.
                if !is_as_written && needed.contains(&own) {
                    continue;
                }
                if !is_as_written && !options.force {
                    let whole = String::from_utf8_lossy(text);
                    let source = Source::new(Arc::clone(name), &whole);
                    let at = chunk.start + tree.span(object.node).start;
                    report.diagnostics.push(changed(one).at(source.place(at..at), "this object"));
                    continue;
                }
                is_unended |= one.is_unended;
                let own = remove(&tree, &object, chunk.start).unwrap_or_default();
                let numbers = edits.len()..edits.len() + own.len();
                edits.extend(own);
                if options.details {
                    let described = describe(&object, &value, one, options);
                    gone.push(WorkloadReport {
                        edits: numbers,
                        ..placed(described, &object, &tree, chunk.start, text)
                    });
                }
            }
        }
        if is_unended {
            take_line_end(&mut edits, text, &report.edits);
        }
        add(report, edits, gone);
    }
}

/// An object that goes, without its place.
fn describe(object: &Object, value: &Value, one: &Generated, options: &Options) -> WorkloadReport {
    let text = |key: &str| value["metadata"][key].as_str();
    let what = Change::Removed(one.name.clone());
    let met = PolicyReport {
        policy: one.policy.as_str().into(),
        outcome: Outcome::TakenOut(vec![what]),
        rules: Vec::new(),
        is_older: false,
    };
    let whole = RemoveOperation { path: PointerBuf::new() };
    WorkloadReport {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        namespace: text("namespace").or(options.namespace.as_deref()).map(str::to_owned),
        states_namespace: text("namespace").is_some(),
        name: text("name").unwrap_or_default().to_owned(),
        policies: vec![met],
        is_generated: true,
        patch: options.patches.then(|| Patch(vec![PatchOperation::Remove(whole)])),
        ..WorkloadReport::default()
    }
}

/// What is to go stands in a text that is written already.
pub fn not_taken_out(one: &Generated) -> Diagnostic {
    let message = format!(
        "the {}, which policy `{}` generated, is needed no longer, and a stream is read once: it was not taken out",
        one.name, one.policy
    );
    Diagnostic::error(Code::TooLate, message).help("leave out --stream")
}

/// The object with its lines; its document begins at a byte of the file.
fn placed(described: WorkloadReport, object: &Object, tree: &Tree<'_>, start: usize, text: &[u8]) -> WorkloadReport {
    let (document, span) = (start..start + tree.text().len(), tree.span(object.node));
    let extent = match object.within {
        Some(_) => start + span.start..start + span.end,
        None => document.clone(),
    };
    let line = 1 + memchr::memchr_iter(b'\n', &text[..start + span.start]).count();
    WorkloadReport { line, document, extent, ..described }
}

fn changed(one: &Generated) -> Diagnostic {
    let message = format!("the {} was changed since policy `{}` generated it", one.name, one.policy);
    let help = format!("to take it out all the same: podgraft undo --only {} --force", one.policy);
    Diagnostic::error(Code::ChangedSince, message).help(help)
}

/// The edits that take out an object: its document, or its item. `None` where there is no safe way.
fn remove(tree: &Tree<'_>, object: &Object, start: usize) -> Option<Vec<Edit>> {
    let in_file = |edit: Edit| Edit { at: edit.at.start + start..edit.at.end + start, text: edit.text };
    if let Some(within) = object.within {
        let mut draft = Draft::new(tree, within.list);
        let root = draft.open_root().ok()?;
        let items = draft.open_list(root, "items", &[]).ok()?;
        let Opened::List { items: own, .. } = draft.opened(items) else { return None };
        let at = own.iter().position(|item| *item == Part::Node(within.item))?;
        draft.remove(items, at).ok()?;
        let edits = lower(&draft, within.list, &mut Written::default()).ok()?;
        return Some(edits.into_iter().map(in_file).collect());
    }
    let (text, span) = (tree.text(), tree.span(object.node));
    let line = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let separator = text[..line].trim_end().rfind('\n').map_or(0, |at| at + 1);
    if span.start != line || text[separator..line].trim_end() != "---" {
        return None;
    }
    let has_line_end = text[..span.end].ends_with('\n');
    let end =
        if has_line_end { span.end } else { text[span.end..].find('\n').map_or(text.len(), |at| span.end + at + 1) };
    Some(vec![in_file(Edit { at: separator..end, text: "".into() })])
}

/// The line end that was made before the first object, at the end of the text.
fn take_line_end(edits: &mut [Edit], text: &[u8], others: &[Edit]) {
    let mut start = text.len();
    for edit in edits.iter_mut().rev() {
        if edit.at.end != start || edit.at.is_empty() {
            break;
        }
        start = edit.at.start;
    }
    let Some(first) = edits.iter_mut().find(|edit| edit.at.start == start) else { return };
    let is_free = |at: usize| !others.iter().any(|other| other.at.end > at);
    for sign in [b"\n", b"\r"] {
        if text[..first.at.start].ends_with(sign) && is_free(first.at.start - 1) {
            first.at.start -= 1;
        }
    }
}

/// Puts edits that are no workload's among those of the file, and the objects that go among its workloads.
fn add(report: &mut FileReport, edits: Vec<Edit>, gone: Vec<WorkloadReport>) {
    let mut places = Vec::new();
    for edit in edits {
        let at = report.edits.partition_point(|own| own.at.start <= edit.at.start);
        report.edits.insert(at, edit);
        for workload in report.workloads.iter_mut().filter(|workload| workload.edits.start >= at) {
            workload.edits = workload.edits.start + 1..workload.edits.end + 1;
        }
        places.push(at);
    }
    for mut object in gone {
        object.edits = match places.get(object.edits.clone()) {
            Some([first, .., last]) => *first..last + 1,
            Some([only]) => *only..only + 1,
            Some([]) | None => continue,
        };
        let at = report.workloads.partition_point(|workload| workload.line <= object.line);
        report.workloads.insert(at, object);
        report.companions.iter_mut().filter(|placed| placed.workload >= at).for_each(|placed| placed.workload += 1);
    }
}

/// The objects that a record names.
pub(super) fn generated(record: &Record) -> impl Iterator<Item = Generated> + '_ {
    record.policies.iter().flat_map(|policy| {
        policy.generated.iter().map(|(name, digest)| Generated {
            name: name.clone(),
            digest: digest.clone(),
            policy: policy.policy.clone(),
            is_unended: record.unended,
        })
    })
}
