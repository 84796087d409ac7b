//! Places the objects that policies generate for workloads, and writes those of all files. An object that several
//! workloads need is written once, after the first of them.

use foldhash::HashMap;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::companion::{BLANKS_WITHOUT_END, ObjectPlacement, extended_list};
use crate::edit::{EditResult, LoweringError};
use crate::inventory::written_name;
use crate::manifest::pod::Workload;
use crate::outcome::{
    Author, FileReport, GeneratedObject, ObjectName, ObjectText, PlacedObject, WorkloadReport,
};
use crate::plan::draft::Draft;
use crate::yaml::splice::{Edit, splice};
use crate::yaml::tree::{NodeId, Tree};

use super::layout::DocumentLayout;
use super::pending::PendingWorkload;
use super::recorded::RecordedDocument;

/// A generated object that is not written yet, and its position.
pub(super) struct UnwrittenCompanion {
    pub beside: ObjectPlacement,
    pub placed: PlacedObject,
}

/// The annotations by which orchestrators of KRM functions record the file of an object and its index in it.
/// <https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md>
const FILE: [(&str, &str); 2] = [
    (
        "internal.config.kubernetes.io/path",
        "internal.config.kubernetes.io/index",
    ),
    ("config.kubernetes.io/path", "config.kubernetes.io/index"),
];

/// Gives a companion a file of its own beside the workload's, if an orchestrator annotated the workload with its
/// file. Otherwise all companions would be written at the top of the package.
fn in_folder_of(workload: &Workload<'_>, mut companion: GeneratedObject) -> GeneratedObject {
    let tree = workload.tree;
    let Some(annotations) = workload.metadata().annotations else {
        return companion;
    };
    let text = |key: &str| tree.scalar_at(annotations, key);
    let files = FILE
        .into_iter()
        .filter_map(|(path, index)| Some((path, index, text(path)?)));
    for (path, index, file) in files {
        let folder = file.rfind('/').map_or("", |at| &file[..=at]);
        let ObjectName { kind, name, .. } = &companion.name;
        let file = format!("{folder}{}_{name}.yaml", kind.to_lowercase());
        let metadata = Arc::make_mut(&mut companion.object).get_mut("metadata");
        let annotations = metadata
            .and_then(Value::as_object_mut)
            .and_then(|metadata| {
                let annotations = metadata.entry("annotations");
                let annotations = annotations.or_insert_with(|| Value::Object(Map::new()));
                annotations.as_object_mut()
            });
        if let Some(annotations) = annotations {
            annotations.insert(path.to_owned(), Value::from(file));
            annotations.insert(index.to_owned(), Value::from("0"));
        }
    }
    companion
}

/// Moves a companion's text after the workload's last edit, which may be after trailing blank lines. If the
/// workload's edits end the text with a line end, drops the one that the companion would add.
fn behind_workload_edits(
    mut text: ObjectText,
    workload: &Workload<'_>,
    workload_edits: &[Edit],
) -> EditResult<ObjectText> {
    let whole = workload.tree.text();
    let is_line_end =
        |edit: &Edit| edit.at.start == whole.len() && matches!(&*edit.text, "\n" | "\r\n");
    if text.room.iter().any(is_line_end)
        && splice(whole.as_bytes(), workload_edits).ends_with(b"\n")
    {
        text.room.retain(|edit| !is_line_end(edit));
    }
    let behind = workload_edits.last().map_or(0, |edit| edit.at.end);
    let at = text.edit.at.start;
    if at < whole.len() && !whole.ends_with('\n') && whole[at..].trim_ascii().is_empty() {
        return Err(LoweringError {
            node: workload.object.node,
            reason: BLANKS_WITHOUT_END,
        });
    }
    if behind > at && whole[at..behind].trim_ascii().is_empty() {
        text.edit.at = behind..behind;
    }
    Ok(text)
}

impl<'t> RecordedDocument<'t> {
    /// Places the companions of a workload in the text, behind the workload's own edits.
    pub(super) fn place_companions(
        &self,
        layout: &mut DocumentLayout<'t>,
        pending: &PendingWorkload<'t>,
        edits: &Range<usize>,
    ) {
        let companions = pending.beside.iter();
        let companions = companions.flat_map(|planned| &planned.companions);
        let workload = &pending.workload;
        let first = layout.companions.len();
        for companion in companions {
            let beside = self.beside(workload);
            let companion = in_folder_of(workload, companion.clone());
            let report = &mut layout.report;
            let written = self.refuse_ambiguity(workload).and_then(|()| {
                let written = beside.write(workload.tree, &companion.object, &mut layout.lists);
                let own_edits = &report.edits[edits.clone()];
                written
                    .and_then(|text| behind_workload_edits(text, workload, own_edits))
                    .map_err(|refusal| cannot_write(&companion, workload, &refusal))
            });
            match written {
                Ok(text) => layout.companions.push(UnwrittenCompanion {
                    beside,
                    placed: PlacedObject {
                        workload: report.workloads.len(),
                        edits: edits.clone(),
                        companion,
                        text: Some(text),
                    },
                }),
                Err(problem) => report.diagnostics.push(*problem),
            }
        }
        // One may have to stand behind blank lines, which would be content of its text. The others go there, too.
        let placed = layout.companions[first..].iter_mut();
        let mut texts: Vec<_> = placed.filter_map(|new| new.placed.text.as_mut()).collect();
        if let Some(last) = texts.iter().map(|text| text.edit.at.start).max() {
            texts.iter_mut().for_each(|text| text.edit.at = last..last);
        }
    }

    /// How objects are placed after a workload.
    pub(super) fn beside(&self, workload: &Workload<'_>) -> ObjectPlacement {
        let is_whole = self.start == 0 && self.bytes.len() == self.setting.length;
        ObjectPlacement::of(&workload.object, workload.tree, is_whole)
    }
}

fn cannot_write(
    companion: &GeneratedObject,
    workload: &Workload<'_>,
    refusal: &LoweringError,
) -> Box<Diagnostic> {
    let message = format!(
        "the {} cannot be written after {}: the YAML here {}",
        companion.name,
        workload.title(),
        refusal.reason
    );
    let problem =
        Diagnostic::error(Code::CannotEdit, message).at(workload.place(refusal.node), "here");
    Box::new(problem.help(
        "write it in block style, as `key: value` and `- item` lines that each end with a newline",
    ))
}

/// Returns the document's edits with those of all companions; `None` if there are no companions. Lists that get new
/// items are added to `drafts`.
pub(super) fn with_companions<'t>(
    tree: &'t Tree<'t>,
    edits: &[Edit],
    companions: &[UnwrittenCompanion],
    drafts: &mut Vec<(NodeId, Draft<'t>)>,
) -> Option<Vec<Edit>> {
    if companions.is_empty() {
        return None;
    }
    let mut lists: HashMap<NodeId, HashMap<NodeId, Vec<Arc<Value>>>> = HashMap::default();
    for companion in companions {
        if let ObjectPlacement::InList(within) = companion.beside {
            let behind = lists.entry(within.list).or_default().entry(within.item);
            let object = &companion.placed.companion.object;
            behind.or_default().push(Arc::clone(object));
        }
    }
    for (list, new) in lists {
        // Cannot fail: writing the items opened the list, too.
        let draft = extended_list(tree, list, new);
        debug_assert!(draft.is_ok());
        drafts.extend(draft.ok().map(|draft| (list, draft)));
    }
    drafts.sort_by_key(|(root, _)| *root);
    let placed = companions.iter().map(|companion| &companion.placed);
    Some(merge(edits, 0, placed).0)
}

/// The generated objects of a document and their placements, for the check.
pub(super) fn written_beside(
    companions: &[UnwrittenCompanion],
) -> Vec<(ObjectPlacement, Arc<Value>)> {
    let written = companions.iter().map(|companion| {
        let object = &companion.placed.companion.object;
        (companion.beside, Arc::clone(object))
    });
    written.collect()
}

/// The generated objects that this run has written.
#[derive(Debug, Default)]
pub struct WrittenObjects {
    written: BTreeSet<ObjectName>,
}

impl WrittenObjects {
    /// Marks an object as written, because another run writes it.
    pub fn mark_written(&mut self, name: ObjectName) {
        self.written.insert(name);
    }

    /// Writes the objects that are not written yet, by adding their edits to those of their workloads, and removes
    /// the others from the report. Must be called for the files, or the parts of a file, in order.
    pub fn write_companions(&mut self, report: &mut FileReport) {
        report.companions.retain(|placed| {
            placed.text.is_none() || self.written.insert(placed.companion.name.clone())
        });
        if report.companions.iter().all(|placed| placed.text.is_none()) {
            return;
        }
        report_written(report);
        let (edits, merged) = merge(&report.edits, 0, report.companions.iter());
        report.edits = edits;
        report
            .companions
            .iter_mut()
            .for_each(|placed| placed.text = None);
        let mut merged = merged.iter().peekable();
        let mut before = 0;
        for (index, workload) in report.workloads.iter_mut().enumerate() {
            let start = workload.edits.start + before;
            let mut with_companions = None;
            while let Some(next) = merged.next_if(|next| next.workload <= index) {
                before += next.writers.iter().flatten().count();
                with_companions = Some(next).filter(|next| next.workload == index);
            }
            workload.edits = start..workload.edits.end + before;
            if let Some(merged) = with_companions {
                add_authors(workload, &report.edits, &merged.writers);
            }
        }
    }
}

/// Adds the authors of companions to those of a workload's own edits. `writers` has the policy of each edit that is not
/// the workload's own.
fn add_authors(workload: &mut WorkloadReport, edits: &[Edit], writers: &[Option<Arc<str>>]) {
    let policies = workload.policies.iter().enumerate();
    let changing = policies.filter(|(_, policy)| policy.changes().is_some());
    let changing: Vec<usize> = changing.map(|(place, _)| place).collect();
    if changing.len() < 2 {
        return;
    }
    let mut own = std::mem::take(&mut workload.authors).into_iter();
    let edits = edits[workload.edits.clone()].iter().zip(writers);
    let authors = edits.map(|(edit, writer)| match writer {
        None => own.next().unwrap_or_else(|| whole(edit, &changing)),
        Some(writer) => {
            let mut policies = workload.policies.iter();
            let place = policies.position(|policy| policy.policy == *writer);
            whole(edit, place.as_slice())
        }
    });
    workload.authors = authors.collect();
}

/// The authors of an edit of which every byte is by the same policies.
fn whole(edit: &Edit, policies: &[usize]) -> Vec<Author> {
    let author = |bytes| Author {
        bytes,
        policies: policies.to_vec(),
    };
    let removed = (!edit.at.is_empty()).then(|| author(0..0));
    let written = author(0..edit.text.len());
    removed.into_iter().chain([written]).collect()
}

/// Reports the written objects of policies that were up to date before, because the file that held the object is gone.
fn report_written(report: &mut FileReport) {
    for placed in report
        .companions
        .iter()
        .filter(|placed| placed.text.is_some())
    {
        let companion = &placed.companion;
        let workload = report.workloads.get_mut(placed.workload);
        let policies = workload
            .into_iter()
            .flat_map(|workload| &mut workload.policies);
        let mut policies =
            policies.filter(|policy_report| policy_report.policy == companion.policy);
        if let Some(policy_report) = policies.next() {
            let name_in_record = written_name(&companion.object);
            policy_report.add_object(companion.name.to_string(), name_in_record);
        }
    }
}

/// The edits of a workload, merged with those of its companions.
pub(super) struct MergedWorkload {
    /// The index of the workload.
    workload: usize,
    /// For each of the edits, the policy of the companion that it writes or makes room for. `None` for one of the
    /// workload's own.
    writers: Vec<Option<Arc<str>>>,
}

/// Merges the edits of companions into those of a file, after those of their workloads. `first` is the index in the file
/// of the first edit in `edits`.
pub(super) fn merge<'p>(
    edits: &[Edit],
    first: usize,
    companions: impl Iterator<Item = &'p PlacedObject>,
) -> (Vec<Edit>, Vec<MergedWorkload>) {
    let placed: Vec<(&PlacedObject, &ObjectText)> = companions
        .filter_map(|placed| Some((placed, placed.text.as_ref()?)))
        .collect();
    let (mut merged, mut workloads, mut taken) = (
        Vec::with_capacity(edits.len() + placed.len()),
        Vec::new(),
        0,
    );
    for group in placed.chunk_by(|(left, left_text), (right, right_text)| {
        (left.workload, &left.edits, left_text.edit.at.start)
            == (right.workload, &right.edits, right_text.edit.at.start)
    }) {
        let edit_range = group[0].0.edits.start - first..group[0].0.edits.end - first;
        merged.extend_from_slice(&edits[taken..edit_range.start]);
        taken = edit_range.end;
        let (with_companions, writers): (Vec<Edit>, Vec<_>) =
            write(group, &edits[edit_range]).into_iter().unzip();
        workloads.push(MergedWorkload {
            workload: group[0].0.workload,
            writers,
        });
        merged.extend(with_companions);
    }
    merged.extend_from_slice(&edits[taken..]);
    (merged, workloads)
}

/// Returns the edits of a workload followed by those of its companions, each with the policy of the companion.
fn write(
    companions: &[(&PlacedObject, &ObjectText)],
    own: &[Edit],
) -> Vec<(Edit, Option<Arc<str>>)> {
    let of_workload = own.iter().map(|edit| (edit.clone(), None));
    let mut edits: Vec<(Edit, Option<Arc<str>>)> = of_workload.collect();
    let (Some((first, first_text)), Some((last, _))) = (companions.first(), companions.last())
    else {
        return edits;
    };
    let writer = |placed: &PlacedObject| Some(Arc::clone(&placed.companion.policy));
    for room in &first_text.room {
        // The workload's own edits may have made the same room already.
        if !edits.iter().any(|(edit, _)| edit == room) {
            // At the offset of the companions, the room goes after the workload's own edits.
            let is_at_end = room.at.start == first_text.edit.at.start;
            let is_before = |(edit, _): &(Edit, _)| {
                edit.at.start < room.at.start || is_at_end && edit.at.start == room.at.start
            };
            edits.insert(
                edits.partition_point(is_before),
                (room.clone(), writer(first)),
            );
        }
    }
    for (index, (placed, text)) in companions.iter().enumerate() {
        let between = if index == 0 { "" } else { text.between };
        let Edit { at, text } = &text.edit;
        let edit = Edit {
            at: at.clone(),
            text: [between, text].concat().into(),
        };
        edits.push((edit, writer(placed)));
    }
    edits.extend(first_text.end.clone().map(|end| (end, writer(last))));
    edits
}
