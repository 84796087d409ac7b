//! What policies generate beside the workloads of a document: where it is written.

use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::CannotWrite;
use crate::edit::companion::{BLANKS_WITHOUT_END, Beside, extend_list};
use crate::manifest::pod::Workload;
use crate::outcome::{Companion, CompanionText, ObjectName, PlacedCompanion};
use crate::plan;
use crate::plan::draft::Draft;
use crate::source::Source;
use crate::yaml::splice::{Edit, splice};
use crate::yaml::tree::{NodeId, Tree};

use super::check::check;
use super::refusals::refuse_pod;
use super::settle::merge;
use super::{Chunk, Setting};

/// A companion and where it stands.
pub(super) struct Pending {
    pub beside: Beside,
    pub placed: PlacedCompanion,
}

/// By what orchestrators of KRM functions know the file of an object, and its place in there.
/// <https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md>
const FILE: [(&str, &str); 2] = [
    (
        "internal.config.kubernetes.io/path",
        "internal.config.kubernetes.io/index",
    ),
    ("config.kubernetes.io/path", "config.kubernetes.io/index"),
];

/// Where an orchestrator says which file a workload is from, its companions get files of their own beside it. Without
/// that they would all land at the top of the package.
fn in_folder_of(workload: &Workload<'_>, mut companion: Companion) -> Companion {
    let tree = workload.tree;
    let Some(annotations) = workload
        .metadata()
        .and_then(|metadata| tree.get(metadata, "annotations"))
    else {
        return companion;
    };
    let text = |key: &str| {
        tree.get(annotations, key)
            .and_then(|value| tree.scalar(value))
    };
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
        let own = metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()));
        let Some(own) = own.as_object_mut() else {
            continue;
        };
        own.insert(path.to_owned(), Value::from(file));
        own.insert(index.to_owned(), Value::from("0"));
    }
    companion
}

/// Behind the edits of the workload, of which the last may stand behind lines of blanks. Where they give the text a last
/// line end, it needs no further one.
fn behind_own(
    mut text: CompanionText,
    workload: &Workload<'_>,
    own: &[Edit],
) -> Result<CompanionText, CannotWrite> {
    let whole = workload.tree.text();
    let is_line_end =
        |edit: &Edit| edit.at.start == whole.len() && matches!(&*edit.text, "\n" | "\r\n");
    if text.room.iter().any(is_line_end) && splice(whole.as_bytes(), own).ends_with(b"\n") {
        text.room.retain(|edit| !is_line_end(edit));
    }
    let behind = own.last().map_or(0, |edit| edit.at.end);
    let at = text.edit.at.start;
    if at < whole.len() && !whole.ends_with('\n') && whole[at..].trim_ascii().is_empty() {
        return Err(CannotWrite {
            node: workload.object.node,
            why: BLANKS_WITHOUT_END,
        });
    }
    if behind > at && whole[at..behind].trim_ascii().is_empty() {
        text.edit.at = behind..behind;
    }
    Ok(text)
}

impl Chunk<'_, '_> {
    /// Finds a place behind the workload, whose own edits are these, in the file those of this range.
    pub(super) fn place(
        &mut self,
        companions: Vec<Companion>,
        workload: &Workload<'_>,
        (own, edits): (&[Edit], Range<usize>),
    ) {
        if companions.is_empty() {
            return;
        }
        let beside = self.beside(workload);
        for companion in companions {
            let companion = in_folder_of(workload, companion);
            match self.text_of(beside, &companion, (workload, own)) {
                Ok(text) => self.pending.push(Pending {
                    beside,
                    placed: PlacedCompanion {
                        workload: self.report.workloads.len(),
                        edits: edits.clone(),
                        companion,
                        text: Some(text),
                    },
                }),
                Err(problem) => self.report.diagnostics.push(*problem),
            }
        }
    }

    /// Where objects stand that are written behind a workload.
    pub(super) fn beside(&self, workload: &Workload<'_>) -> Beside {
        let is_whole = self.place.start == 0 && self.bytes.len() == self.setting.length;
        Beside::of(&workload.object, workload.tree, is_whole)
    }

    fn text_of(
        &self,
        beside: Beside,
        companion: &Companion,
        (workload, own): (&Workload<'_>, &[Edit]),
    ) -> Result<CompanionText, Box<Diagnostic>> {
        self.refuse_doubt(workload)?;
        let written = beside.write(workload.tree, &companion.object);
        written.and_then(|text| behind_own(text, workload, own)).map_err(|refusal| {
            let message = format!(
                "the {} cannot be written behind {}: what stands here {}",
                companion.name,
                workload.title(),
                refusal.why
            );
            let problem = Diagnostic::error(Code::CannotEdit, message).at(workload.place(refusal.node), "here");
            Box::new(
                problem.help("write it in block style, `key: value` lines and `- item` lines, each with its line end"),
            )
        })
    }

    /// Takes note of what policies generate for a workload, and writes nothing.
    pub(super) fn foresee(&mut self, workload: &Workload<'_>) {
        if self.left_alone(workload).is_some() || refuse_pod(workload).is_some() {
            return;
        }
        let Setting {
            policies,
            options,
            inventory,
            ..
        } = self.setting;
        let companions = plan::foresee(workload, policies, options, inventory);
        let placed = |companion| PlacedCompanion {
            workload: 0,
            edits: 0..0,
            companion,
            text: None,
        };
        self.report
            .companions
            .extend(companions.into_iter().map(placed));
    }

    /// The document's edits, of which the first has this number in the file, with those of all companions, where there
    /// are any; the lists that they are written into become drafts.
    pub(super) fn with_companions<'t>(
        &mut self,
        tree: &'t Tree<'t>,
        (edits, first): (&[Edit], usize),
        drafts: &mut Vec<(NodeId, Draft<'t>)>,
    ) -> Option<Vec<Edit>> {
        if self.pending.is_empty() {
            return None;
        }
        for pending in &self.pending {
            let Beside::InList(within) = pending.beside else {
                continue;
            };
            let at = drafts
                .iter()
                .position(|(list, _)| *list == within.list)
                .unwrap_or_else(|| {
                    drafts.push((within.list, Draft::new(tree, within.list)));
                    drafts.len() - 1
                });
            // That the list can be extended is known from writing the item.
            let extended = extend_list(
                &mut drafts[at].1,
                within,
                std::slice::from_ref(&pending.placed.companion.object),
            );
            debug_assert!(extended.is_ok());
        }
        drafts.sort_by_key(|(root, _)| *root);
        Some(
            merge(
                edits,
                first,
                self.pending.iter().map(|pending| &pending.placed),
            )
            .0,
        )
    }

    /// Checks the document with what is generated beside its workloads; its own edits are in the report, from a number on.
    pub(super) fn check_companions<'t>(
        &mut self,
        tree: &'t Tree<'t>,
        source: &Source<'_>,
        before: usize,
        mut drafts: Vec<(NodeId, Draft<'t>)>,
    ) {
        let start = self.place.start;
        let in_document = |edit: &Edit| Edit {
            at: edit.at.start - start..edit.at.end - start,
            text: edit.text.clone(),
        };
        let own: Vec<Edit> = self.report.edits[before..]
            .iter()
            .map(in_document)
            .collect();
        if let Some(edits) = self.with_companions(tree, (&own, before), &mut drafts) {
            self.report.diagnostics.extend(check(
                tree,
                source,
                &drafts,
                &edits,
                &self.written_beside(),
            ));
        }
    }

    /// What is written beside the objects of the document.
    pub(super) fn written_beside(&self) -> Vec<(Beside, Arc<Value>)> {
        self.pending
            .iter()
            .map(|pending| (pending.beside, Arc::clone(&pending.placed.companion.object)))
            .collect()
    }

    /// The companions at their places in the file.
    pub(super) fn report_companions(&mut self) {
        let start = self.place.start;
        let in_file = |edit: Edit| Edit {
            at: edit.at.start + start..edit.at.end + start,
            text: edit.text,
        };
        let placed = self.pending.drain(..).map(|pending| {
            let text = pending.placed.text.map(|text| CompanionText {
                room: text.room.into_iter().map(in_file).collect(),
                edit: in_file(text.edit),
                between: text.between,
                end: text.end.map(in_file),
            });
            PlacedCompanion {
                text,
                ..pending.placed
            }
        });
        self.report.companions.extend(placed);
    }
}
