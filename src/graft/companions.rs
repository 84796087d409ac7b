//! Places the objects that policies generate for the workloads of a document.

use serde_json::{Map, Value};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::LoweringError;
use crate::edit::companion::{BLANKS_WITHOUT_END, ListLayouts, ObjectPlacement, extend_list};
use crate::manifest::pod::Workload;
use crate::outcome::{GeneratedObject, ObjectName, ObjectText, PlacedObject};
use crate::plan::draft::Draft;
use crate::yaml::splice::{Edit, splice};
use crate::yaml::tree::{NodeId, Tree};

use super::companion_writer::merge;
use super::document::DocumentTask;
use super::pending::PendingWorkload;
use super::recorded::RecordedDocument;
use super::write::refuse_ambiguity;

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
    let Some(annotations) = workload
        .metadata()
        .and_then(|metadata| tree.get(metadata, "annotations"))
    else {
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
        let metadata = Arc::make_mut(&mut companion.object)
            .get_mut("metadata")
            .and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { continue };
        let annotations = metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()));
        let Some(annotations) = annotations.as_object_mut() else {
            continue;
        };
        annotations.insert(path.to_owned(), Value::from(file));
        annotations.insert(index.to_owned(), Value::from("0"));
    }
    companion
}

/// Moves a companion's text after the workload's last edit, which may be after trailing blank lines. If the
/// workload's edits end the text with a line end, drops the one that the companion would add.
fn behind_workload_edits(
    mut text: ObjectText,
    workload: &Workload<'_>,
    workload_edits: &[Edit],
) -> Result<ObjectText, LoweringError> {
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

impl DocumentTask<'_> {
    /// Returns the companions of a workload with their places in the text. `workload_edits` are the workload's own
    /// edits.
    pub(super) fn place_companions(
        &self,
        pair: &RecordedDocument<'_>,
        pending: &PendingWorkload<'_>,
        workload_edits: &[Edit],
        layouts: &mut ListLayouts,
    ) -> (Vec<UnwrittenCompanion>, Vec<Diagnostic>) {
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        let companions = pending
            .beside
            .iter()
            .flat_map(|planned| &planned.companions);
        let workload = &pending.workload;
        for companion in companions {
            let beside = self.beside(workload);
            let companion = in_folder_of(workload, companion.clone());
            let written = refuse_ambiguity(pair, workload).and_then(|()| {
                let written = beside.write(workload.tree, &companion.object, layouts);
                written
                    .and_then(|text| behind_workload_edits(text, workload, workload_edits))
                    .map_err(|refusal| cannot_write(&companion, workload, &refusal))
            });
            match written {
                Ok(text) => found.push(UnwrittenCompanion {
                    beside,
                    placed: PlacedObject {
                        workload: 0,
                        edits: 0..workload_edits.len(),
                        companion,
                        text: Some(text),
                    },
                }),
                Err(problem) => problems.push(*problem),
            }
        }
        (found, problems)
    }

    /// How objects are placed after a workload.
    pub(super) fn beside(&self, workload: &Workload<'_>) -> ObjectPlacement {
        let is_whole = self.place.start == 0 && self.bytes.len() == self.setting.length;
        ObjectPlacement::of(&workload.object, workload.tree, is_whole)
    }
}

fn cannot_write(
    companion: &GeneratedObject,
    workload: &Workload<'_>,
    refusal: &LoweringError,
) -> Box<Diagnostic> {
    let message = format!(
        "the {} cannot be written behind {}: what stands here {}",
        companion.name,
        workload.title(),
        refusal.reason
    );
    let problem =
        Diagnostic::error(Code::CannotEdit, message).at(workload.place(refusal.node), "here");
    Box::new(problem.help(
        "write it in block style, `key: value` lines and `- item` lines, each with its line end",
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
    for companion in companions {
        let ObjectPlacement::InList(within) = companion.beside else {
            continue;
        };
        // From the end: the objects of a List mostly come in a row.
        let index = drafts
            .iter()
            .rposition(|(list, _)| *list == within.list)
            .unwrap_or_else(|| {
                drafts.push((within.list, Draft::new(tree, within.list)));
                drafts.len() - 1
            });
        // Cannot fail: writing the item already extended the list.
        let object = &companion.placed.companion.object;
        let extended = extend_list(&mut drafts[index].1, within, object);
        debug_assert!(extended.is_ok());
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
