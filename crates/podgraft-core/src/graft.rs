//! The pipeline: the text of one file and the policies in, edits and a report out.

mod adopt;
mod adopt_changed;
mod blame;
mod changed_file;
mod check;
mod check_pruned;
pub mod companions;
mod dangling_mounts;
mod detail;
mod document;
mod idempotence;
mod ignored;
mod layout;
mod left_alone;
mod list_parts;
mod lost_text;
mod objects;
mod orphaned_objects;
mod pending;
pub mod policy_diff;
pub mod prune;
mod record_refusals;
mod recorded;
mod records;
mod refusals;
mod removed_objects;
pub mod run_notes;
mod runs;
pub mod streaming;
mod unselected;
mod updated_objects;
pub mod verify_undo;
mod words;
mod write;

use std::cell::LazyCell;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::Arc;

use crate::diagnostic::Diagnosed;
use crate::inventory::{self, DataIndex, InMemoryText, InventoryNeeds, SourceRole};
use crate::manifest::object::{find_objects, has_empty_list};
use crate::manifest::prefilter::{DocumentScan, ScannedDocuments};
use crate::manifest::workload::PodKinds;
pub use crate::options::{ImageEnv, Options, PodTemplatePath};
use crate::outcome::{FileReport, GeneratedObject, ObjectName};
pub use crate::plan::RunContext;
use crate::policy::Policy;
use crate::record::lock::LockSet;
use crate::yaml::stream::chunks;
use crate::yaml::tree::Tree;

use companions::WrittenObjects;
use document::{DocumentCaches, DocumentTask, ParsedDocument, unread};
use records::MarkedWorkloads;
pub use refusals::RENDER_FIRST;
use refusals::{refuse_encoding, refuse_root};
pub use runs::DocumentRun;
use runs::on_threads;
use words::PodKeywordSearch;

/// Plans and edits a single file as a complete run. If the report has an error, its edits must not be applied.
pub fn graft(name: &Arc<str>, text: &[u8], policies: &[Policy], options: &Options) -> FileReport {
    graft_with_locks(name, text, policies, options, Arc::default())
}

/// [`graft`] with the lock files that record what earlier runs did to the file. What this run does to it is in
/// [`FileReport::records`], if the options ask for that.
pub fn graft_with_locks(
    name: &Arc<str>,
    text: &[u8],
    policies: &[Policy],
    options: &Options,
    locks: Arc<LockSet>,
) -> FileReport {
    let mut needs = InventoryNeeds::of(policies);
    let index = std::mem::take(&mut needs.data).then(|| {
        let text = InMemoryText {
            name: Arc::clone(name),
            text: Arc::new(text.to_vec()),
        };
        DataIndex::of(vec![Arc::new(text)], NonZeroUsize::MIN, options)
    });
    // A policy may look up objects anywhere in the run, also generated ones, so the inventory is complete before the
    // first workload is planned.
    let (mut inventory, problems) =
        inventory::read_part(name, text, 1, SourceRole::Manifest, &needs, options);
    inventory.index = index.map(Arc::new);
    inventory.add_locks(locks);
    let run = RunContext::new(policies, options, &inventory);
    let generated = generated_companions(name, text, run);
    for companion in generated.missing {
        inventory.add_companion(companion);
    }
    inventory.set_removed_aside(policies, options, &generated.present);
    let run = RunContext::new(policies, options, &inventory);
    let mut report = graft_on_threads(NonZeroUsize::MIN, name, text, run);
    WrittenObjects::default().write_companions(&mut report);
    let unproven = verify_undo::prune_proven(
        &mut [(Arc::clone(name), text, &mut report)],
        options,
        inventory.locks(),
    );
    report
        .diagnostics
        .extend(unproven.into_iter().chain(problems));
    report
}

/// The objects that policies generate for the workloads of one file.
#[derive(Debug, Default)]
pub struct GeneratedObjects {
    /// Those that are to be written.
    pub missing: Vec<GeneratedObject>,
    /// The names of those that are among the manifests already.
    pub present: Vec<ObjectName>,
}

/// Returns the objects that policies generate for the workloads of one file. The caller adds those of all files to
/// the inventory before any file is edited.
pub fn generated_companions(name: &Arc<str>, text: &[u8], run: RunContext<'_>) -> GeneratedObjects {
    if run.policies.iter().all(|policy| policy.generate.is_empty()) {
        return GeneratedObjects::default();
    }
    let kinds = &PodKinds::of(run.options);
    let setting = FileContext {
        length: text.len(),
        mode: GraftMode::ListGenerated,
        ..FileContext::of_part(name, run, kinds)
    };
    let report = work(NonZeroUsize::MIN, text, setting);
    let missing = report.companions.into_iter();
    GeneratedObjects {
        missing: missing.map(|placed| placed.companion).collect(),
        present: report.present,
    }
}

/// Plans and edits one file of a run on several threads; the result does not depend on their number. `inventory` is
/// that of all files. Generated objects are only placed here: [`WrittenObjects::write_companions`] writes them when
/// all files are planned.
pub fn graft_on_threads(
    threads: NonZeroUsize,
    name: &Arc<str>,
    text: &[u8],
    run: RunContext<'_>,
) -> FileReport {
    // UTF-16 bytes would pass the prefilter as a text without workloads.
    if let Some(problem) = refuse_encoding(name, text) {
        return unread(vec![problem]);
    }
    let kinds = &PodKinds::of(run.options);
    let setting = FileContext::of_part(name, run, kinds);
    graft_whole(threads, text, setting)
}

/// [`graft_on_threads`], on one thread, for a text that is parsed already.
pub fn graft_parsed(
    tree: &Tree<'_>,
    name: &Arc<str>,
    text: &[u8],
    run: RunContext<'_>,
) -> FileReport {
    let kinds = &PodKinds::of(run.options);
    let setting = FileContext {
        tree: Some(tree),
        ..FileContext::of_part(name, run, kinds)
    };
    graft_whole(NonZeroUsize::MIN, text, setting)
}

/// Completes a context by what the text of the whole file tells.
fn graft_whole(threads: NonZeroUsize, text: &[u8], setting: FileContext<'_>) -> FileReport {
    let setting = FileContext {
        length: text.len(),
        marked: Some(&MarkedWorkloads::of(text, setting.kinds)),
        ..setting
    };
    work(threads, text, setting)
}

fn work(threads: NonZeroUsize, text: &[u8], setting: FileContext<'_>) -> FileReport {
    let graft_run = |run: DocumentRun<'_>| graft_run(run, setting);
    match threads.get() {
        1 => graft_run(DocumentRun {
            start: 0,
            text,
            first_line: 1,
            has_more: false,
        }),
        _ => on_threads(threads, chunks(text), graft_run),
    }
}

/// The context that all documents of a file share.
#[derive(Clone, Copy)]
struct FileContext<'s> {
    name: &'s Arc<str>,
    /// Length of the file in bytes; `usize::MAX` if unknown.
    length: usize,
    /// The tree of the file's text, if it is parsed already.
    tree: Option<&'s Tree<'s>>,
    /// The file's marked workloads. `None` if the whole file is not at hand.
    marked: Option<&'s MarkedWorkloads<'s>>,
    run: RunContext<'s>,
    kinds: &'s PodKinds,
    mode: GraftMode,
}

impl<'s> Deref for FileContext<'s> {
    type Target = RunContext<'s>;

    fn deref(&self) -> &Self::Target {
        &self.run
    }
}

impl<'s> FileContext<'s> {
    /// The context of a part of a file that is edited. Nothing is known of the whole file.
    fn of_part(name: &'s Arc<str>, run: RunContext<'s>, kinds: &'s PodKinds) -> Self {
        FileContext {
            name,
            length: usize::MAX,
            tree: None,
            marked: None,
            run,
            kinds,
            mode: GraftMode::Edit,
        }
    }
}

/// What a run does with the workloads of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GraftMode {
    /// Plans and edits them.
    Edit,
    /// Only reports the objects that policies generate for them.
    ListGenerated,
}

/// Plans and edits a part of a file. Offsets and lines in the report are those of the whole file.
pub fn graft_part(name: &Arc<str>, part: DocumentRun<'_>, run: RunContext<'_>) -> FileReport {
    if part.start == 0
        && let Some(problem) = refuse_encoding(name, part.text)
    {
        return unread(vec![problem]);
    }
    let kinds = &PodKinds::of(run.options);
    let setting = FileContext::of_part(name, run, kinds);
    graft_run(part, setting)
}

/// Processes the documents of a run in order.
fn graft_run(run: DocumentRun<'_>, setting: FileContext<'_>) -> FileReport {
    let mut report = FileReport::default();
    let mut memory = DocumentCaches::of(&run);
    let mut pods = PodKeywordSearch::of(run.text);
    let required = LazyCell::new(|| unselected::required_texts(setting));
    let mut chunks = ScannedDocuments::of(run.text, setting.kinds);
    while let Some((chunk, class)) = chunks.next() {
        let may_hold_pods = !setting.options.brief
            && matches!(class, DocumentScan::LetThrough { kind: Some(_), .. })
            && pods.is_in(&chunk);
        let document = DocumentTask {
            setting,
            in_run: chunk.start,
            start: run.start + chunk.start,
            has_more: run.has_more || chunks.has_more(),
            bytes: chunk.text,
        };
        let is_workload = matches!(class, DocumentScan::Workload { .. });
        let is_unselected = || is_workload && document.is_unselected(required.as_ref());
        match class {
            DocumentScan::LetThrough {
                kind,
                is_object,
                has_content,
            } if !may_hold_pods && !document.is_read_all_the_same(kind) => {
                report.count_unread(usize::from(has_content), usize::from(is_object));
            }
            // These documents have nothing to edit, so their errors are only reported with `--parse-all`.
            DocumentScan::LetThrough { is_object, .. } if !setting.options.parse_all => {
                report.append(document.read_loosely(usize::from(is_object), &mut memory));
            }
            _ if setting.options.brief && is_unselected() => report.count_unread(1, 1),
            _ => {
                let read = document.read(&mut memory);
                // Whether a run fails does not depend on what it reports.
                match read.is_refused() && is_unselected() {
                    true => report.count_unselected(),
                    false => report.append(read),
                }
            }
        }
    }
    report
}

/// Runs all stages on a document, from its tree to its report. Without records of an earlier run, the document
/// without its recorded changes is the document itself.
///
/// # Errors
/// If the records cannot be read, or what they name cannot be taken out.
fn graft_document(
    document: ParsedDocument<'_>,
    memory: &mut DocumentCaches<'_>,
) -> Diagnosed<FileReport> {
    let (tree, source) = (document.tree, document.source);
    if let Some(problem) = refuse_root(tree, source) {
        return Ok(FileReport {
            objects: 1,
            ..FileReport::of_problems(vec![problem])
        });
    }
    let found = find_objects(tree, document.setting.kinds);
    let records = document.read_records(&found)?;
    let pair = document.take_out(records.recorded, &found)?;
    let stripped = pair.parse_stripped()?;
    if document.setting.mode == GraftMode::ListGenerated {
        return Ok(pair.list_generated(stripped.as_ref(), found));
    }
    let mut plan = pair.plan_all(stripped.as_ref(), found);
    pair.write_all(&mut plan, &mut memory.written);
    pair.prove_all(&mut plan, &mut memory.written);
    let mut layout = pair.lay_out(plan, &mut memory.lines);
    layout.check(tree, source);
    let mut report = layout.into_report(document);
    report.list_metadata = document.list_metadata();
    report.has_empty_list = has_empty_list(tree);
    report.dropped = records.dropped;
    report.rooms = records.rooms;
    report.needed.extend(records.needed);
    Ok(report)
}
