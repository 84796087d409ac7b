//! The pipeline: one file's text and the policies in, edits and a report out.

pub mod across;
mod adopt;
pub mod against;
mod authors;
mod check;
mod companions;
mod detail;
mod left_alone;
mod lint;
mod loose_mounts;
mod marked;
mod orphans;
mod outlined;
pub mod passing;
pub mod prove;
mod read_records;
mod record_refusals;
mod recorded;
mod refusals;
mod repeats;
pub mod retire;
mod runs;
mod said;
pub mod settle;
mod words;

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::{Written, lower};
use crate::inventory::{self, DataIndex, InMemory, Inventory, Needs, Standing};
use crate::manifest::object::{
    Found, Object, find_objects, find_pod_template, find_template_braces,
};
use crate::manifest::pod::{NoTemplate, Workload};
use crate::manifest::prefilter::{Glance, Glanced};
use crate::manifest::workload::PodKinds;
pub use crate::options::{ImageEnv, Options, PodTemplatePath};
use crate::outcome::{Companion, FileReport, Outcome, Skip, SkipCause, WorkloadReport};
use crate::plan::draft::Draft;
use crate::plan::patch::patch_of;
use crate::plan::{self, Planned, plan};
use crate::policy::Policy;
use crate::source::{Lines, Source};
use crate::yaml::doubt::{Doubt, Place, find_doubt, find_doubt_in_tree};
use crate::yaml::parse::parse;
use crate::yaml::splice::Edit;
use crate::yaml::stream::chunks;
use crate::yaml::tree::{NodeId, Tree};

use authors::authors;
use check::check;
use companions::Pending;
use marked::MarkedWorkloads;
use outlined::Outlines;
pub use refusals::RENDER_FIRST;
use refusals::{is_other_json, not_rendered, parse_problem, refuse_encoding, refuse_root, untyped};
pub use runs::Run;
use runs::on_threads;
use said::Said;
use settle::Settling;
use words::PodWords;

/// Plans and edits one file that is a run by itself. Nothing is changed where a diagnostic of the report is an error.
pub fn graft(name: &Arc<str>, text: &[u8], policies: &[Policy], options: &Options) -> FileReport {
    let mut needs = Needs::of(policies);
    let index = std::mem::take(&mut needs.data).then(|| {
        let text = InMemory {
            name: Arc::clone(name),
            text: Arc::new(text.to_vec()),
        };
        DataIndex::of(vec![Arc::new(text)], options)
    });
    let (mut inventory, problems) =
        inventory::read(name, text, Standing::Manifest, &needs, options);
    inventory.index = index.into();
    for companion in foresee(NonZeroUsize::MIN, name, text, policies, options, &inventory) {
        inventory.add_companion(companion);
    }
    let mut report = graft_on_threads(NonZeroUsize::MIN, name, text, policies, options, &inventory);
    Settling::default().settle(&mut report);
    let unproven = prove::retire_proven(
        &mut [(Arc::clone(name), text, &mut report)],
        options,
        inventory.locks(),
    );
    report
        .diagnostics
        .extend(unproven.into_iter().chain(problems));
    report
}

/// What policies generate beside the workloads of one file of a run, to be added to the inventory of all files.
pub fn foresee(
    threads: NonZeroUsize,
    name: &Arc<str>,
    text: &[u8],
    policies: &[Policy],
    options: &Options,
    inventory: &Inventory,
) -> Vec<Companion> {
    if policies.iter().all(|policy| policy.generate.is_empty()) {
        return Vec::new();
    }
    let (length, kinds) = (text.len(), &PodKinds::of(options));
    let setting = Setting {
        name,
        length,
        marked: None,
        policies,
        options,
        inventory,
        kinds,
        aim: Aim::Foresee,
    };
    let report = work(threads, text, setting);
    report
        .companions
        .into_iter()
        .map(|placed| placed.companion)
        .collect()
}

/// Plans and edits one file of a run, on as many threads. What comes of it does not depend on their number. The
/// inventory is that of all files, and what policies generate is written by [`settle`] when all files are planned.
pub fn graft_on_threads(
    threads: NonZeroUsize,
    name: &Arc<str>,
    text: &[u8],
    policies: &[Policy],
    options: &Options,
    inventory: &Inventory,
) -> FileReport {
    let mut report = FileReport::default();
    if let Some(problem) = refuse_encoding(name, text) {
        report.diagnostics.push(problem);
        report.documents = 1;
        return report;
    }
    let (length, kinds) = (text.len(), &PodKinds::of(options));
    let marked = Some(&MarkedWorkloads::of(text, kinds));
    work(
        threads,
        text,
        Setting {
            name,
            length,
            marked,
            policies,
            options,
            inventory,
            kinds,
            aim: Aim::Edit,
        },
    )
}

fn work(threads: NonZeroUsize, text: &[u8], setting: Setting<'_>) -> FileReport {
    let graft_run = |run: Run<'_>| graft_run(run, setting);
    match threads.get() {
        1 => graft_run(Run {
            start: 0,
            text,
            first_line: 1,
            has_more: false,
        }),
        _ => on_threads(threads, chunks(text), graft_run),
    }
}

/// What is the same for all documents of a file.
#[derive(Clone, Copy)]
struct Setting<'s> {
    name: &'s Arc<str>,
    /// Bytes of the file; more where that is not known.
    length: usize,
    /// Where the whole file is at hand.
    marked: Option<&'s MarkedWorkloads<'s>>,
    policies: &'s [Policy],
    options: &'s Options,
    inventory: &'s Inventory,
    kinds: &'s PodKinds,
    aim: Aim,
}

/// What is done with workloads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// They are planned and edited.
    Edit,
    /// Only what policies generate beside them is reported.
    Foresee,
}

/// Plans and edits a part of a file, with places and lines of the whole.
pub fn graft_part(
    name: &Arc<str>,
    part: Run<'_>,
    policies: &[Policy],
    options: &Options,
    inventory: &Inventory,
) -> FileReport {
    if part.start == 0
        && let Some(problem) = refuse_encoding(name, part.text)
    {
        return FileReport {
            diagnostics: vec![problem],
            documents: 1,
            ..FileReport::default()
        };
    }
    // Whether it is the whole file is not known.
    let (length, kinds) = (usize::MAX, &PodKinds::of(options));
    graft_run(
        part,
        Setting {
            name,
            length,
            marked: None,
            policies,
            options,
            inventory,
            kinds,
            aim: Aim::Edit,
        },
    )
}

fn graft_run(run: Run<'_>, setting: Setting<'_>) -> FileReport {
    let mut report = FileReport::default();
    let mut lines = Lines::new(run.text, run.first_line);
    let mut written = Written::default();
    let mut outlines = Outlines::default();
    let mut pods = PodWords::of(run.text);
    let mut glanced = Glanced::of(run.text, setting.kinds);
    while let Some((chunk, glance)) = glanced.next() {
        let has_more = run.has_more || glanced.has_more();
        let place = ChunkPlace {
            in_run: chunk.start,
            start: run.start + chunk.start,
            has_more,
        };
        let may_hold_pods = setting.options.details
            && matches!(glance, Glance::LetThrough { kind: Some(_), .. })
            && pods.stand_in(&chunk);
        let first_problem = report.diagnostics.len();
        let (lines, written, outlines, report) =
            (&mut lines, &mut written, &mut outlines, &mut report);
        let doubt = OnceCell::new();
        let (pending, said) = (Vec::new(), Said::default());
        Chunk {
            place,
            bytes: chunk.text,
            setting,
            lines,
            written,
            outlines,
            report,
            first_problem,
            said,
            doubt,
            pending,
        }
        .run(glance, may_hold_pods);
    }
    report
}

struct ChunkPlace {
    /// In the run that it was cut from.
    in_run: usize,
    /// In the file.
    start: usize,
    /// It is not the file's end.
    has_more: bool,
}

struct Chunk<'a, 'l> {
    place: ChunkPlace,
    bytes: &'a [u8],
    setting: Setting<'a>,
    lines: &'l mut Lines<'a>,
    written: &'l mut Written,
    outlines: &'l mut Outlines,
    report: &'l mut FileReport,
    /// The number of problems that stand in the report before this chunk's.
    first_problem: usize,
    /// What of them was said already.
    said: Said,
    /// What keeps the whole chunk from being edited, once it was looked for.
    doubt: OnceCell<Option<Doubt>>,
    /// What policies generate beside its workloads.
    pending: Vec<Pending>,
}

impl<'a> Chunk<'a, '_> {
    fn run(&mut self, glance: Glance<'_>, may_hold_pods: bool) {
        if let Glance::LetThrough {
            kind,
            is_object,
            has_content,
        } = glance
        {
            let is_linted = self.setting.options.lint && kind == Some(lint::API_SERVICE.as_bytes());
            if !self.setting.options.parse_all && !may_hold_pods && !is_linted {
                self.report.documents += usize::from(has_content);
                self.report.objects += usize::from(is_object);
                return;
            }
            // Nothing here can be edited; only `--parse-all` asks whether it is right.
            self.read(self.setting.options.parse_all);
            return;
        }
        self.read(true);
    }

    fn read(&mut self, is_strict: bool) {
        let (text, error) = match std::str::from_utf8(self.bytes) {
            Ok(text) => (text, None),
            Err(error) => (
                std::str::from_utf8(&self.bytes[..error.valid_up_to()]).unwrap_or_default(),
                Some(error),
            ),
        };
        let first_line = self.lines.line_at(self.place.in_run);
        let source = Source {
            name: Arc::clone(self.setting.name),
            text,
            first_line,
        };
        if let Some(error) = error {
            self.report.documents += 1;
            if is_strict {
                let at = error.valid_up_to();
                let problem = Diagnostic::error(Code::NotUtf8, "these bytes are not UTF-8");
                self.report.diagnostics.push(
                    problem
                        .at(source.place(at..at), "from here on")
                        .help("save the file as UTF-8"),
                );
            }
            return;
        }
        let Some(parsed) = (if is_strict {
            self.parse(&source)
        } else {
            Some(parse(text))
        }) else {
            return;
        };
        match parsed {
            Ok(tree) => {
                self.report.documents += tree.roots().len();
                self.objects(&tree, &source);
            }
            Err(_) if is_strict && self.is_right_in_outline(&source) => {}
            Err(_) if is_other_json(text) => self.report.documents += 1,
            Err(error) => {
                self.report.documents += 1;
                self.report.objects += 1;
                if is_strict {
                    self.report.diagnostics.push(parse_problem(&error, &source));
                }
            }
        }
    }

    fn objects<'t>(&mut self, tree: &'t Tree<'t>, source: &'t Source<'t>)
    where
        'a: 't,
    {
        let mut drafts: Vec<(NodeId, Draft<'t>)> = Vec::new();
        let mut edits: Vec<Edit> = Vec::new();
        if let Some(problem) = refuse_root(tree, source) {
            self.report.objects += 1;
            self.report.diagnostics.push(problem);
            return;
        }
        if self.setting.options.views && self.report.list_metadata.is_none() {
            self.report.list_metadata = detail::list_metadata(tree);
        }
        if self.setting.aim == Aim::Edit && self.has_records() {
            return self.objects_with_records(tree, source);
        }
        for found in find_objects(tree, self.setting.kinds) {
            self.report.objects += 1;
            match found {
                Found::Untyped { list_kind, node } => self
                    .report
                    .diagnostics
                    .push(untyped(&list_kind, source.place(tree.span(node)))),
                Found::Object(object) => self.object(object, tree, source, &mut drafts, &mut edits),
            }
        }
        let is_refused = self.report.diagnostics[self.first_problem..]
            .iter()
            .any(Diagnostic::is_error);
        if !(drafts.is_empty() && self.pending.is_empty() || is_refused) {
            let merged = self.with_companions(tree, (&edits, self.report.edits.len()), &mut drafts);
            let edits = merged.as_deref().unwrap_or(&edits);
            self.report.diagnostics.extend(check(
                tree,
                source,
                &drafts,
                edits,
                &self.written_beside(),
            ));
            if self.setting.options.views {
                self.add_views(source.text, edits);
            }
        }
        self.report_companions();
        self.report.has_unrecorded |= !edits.is_empty();
        let start = self.place.start;
        let in_file = |edit: Edit| Edit {
            at: edit.at.start + start..edit.at.end + start,
            text: edit.text,
        };
        self.report.edits.extend(edits.into_iter().map(in_file));
    }

    fn object<'t>(
        &mut self,
        object: Object,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        drafts: &mut Vec<(NodeId, Draft<'t>)>,
        edits: &mut Vec<Edit>,
    ) where
        'a: 't,
    {
        if let Some(workload) = self.workload_of(object, tree, source) {
            self.workload(&workload, drafts, edits);
        }
    }

    /// The workload that an object is; what is none is reported.
    fn workload_of<'t>(
        &mut self,
        object: Object,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
    ) -> Option<Workload<'t>>
    where
        'a: 't,
    {
        let kinds = self.setting.kinds;
        if self.setting.options.lint {
            self.report
                .diagnostics
                .extend(lint::api_service(&object, tree, source));
        }
        let Some(pod_kind) = kinds.find(&object.api_version, &object.kind) else {
            self.unknown_kind(&object, tree, source);
            return None;
        };
        if let Some(node) = find_template_braces(tree, object.node) {
            self.report
                .diagnostics
                .push(not_rendered(source.place(tree.span(node))));
            return None;
        }
        match Workload::read(
            tree,
            source,
            object.clone(),
            pod_kind,
            self.setting.options.namespace_in(self.setting.name),
        ) {
            Ok(workload) => return Some(workload),
            Err(NoTemplate::Absent) => self.without_template(&object, tree),
            Err(NoTemplate::WrongShape(node)) => {
                let message = format!(
                    "this {} has something else where its pod template should be",
                    object.kind
                );
                let problem = Diagnostic::error(Code::Invalid, message);
                self.report
                    .diagnostics
                    .push(problem.at(source.place(tree.span(node)), "not a mapping"));
            }
        }
        None
    }

    fn workload<'t>(
        &mut self,
        workload: &Workload<'t>,
        drafts: &mut Vec<(NodeId, Draft<'t>)>,
        edits: &mut Vec<Edit>,
    ) {
        let first = self.report.edits.len() + edits.len();
        let (mut metrics_port, mut ephemeral, mut companions) = (None, Vec::new(), Vec::new());
        let mut wrote = Vec::new();
        if self.setting.aim == Aim::Foresee {
            return self.foresee(workload);
        }
        let mut policies = self.left_alone(workload).unwrap_or_else(|| {
            let setting = self.setting;
            let planned = plan(
                workload,
                setting.policies,
                setting.options,
                setting.inventory,
                None,
            );
            if let Some(refused) = self.refused_pod(workload, &planned.policies) {
                return refused;
            }
            let Planned {
                draft,
                policies,
                diagnostics,
                needs,
                ephemeral_containers,
                companions: generated,
                steps,
                ..
            } = planned;
            self.report.needs.append(needs);
            companions = generated;
            if setting.options.details {
                metrics_port = plan::metrics::metrics_port(workload, &draft);
            }
            ephemeral = ephemeral_containers;
            self.add_diagnostics(diagnostics, workload);
            if draft.is_changed() {
                match self.write(&draft, workload) {
                    Ok(own) => {
                        let repeats = self.repeats(workload, &draft, &policies);
                        self.add_diagnostics(repeats, workload);
                        wrote = authors(workload.source.text, workload.object.node, &steps, &own);
                        edits.extend(own);
                    }
                    Err(problem) => self.report.diagnostics.push(*problem),
                }
                drafts.push((workload.object.node, draft));
            }
            policies
        });
        let last = self.report.edits.len() + edits.len();
        let own = first - self.report.edits.len();
        self.place(companions, workload, (&edits[own..], first..last));
        if !self.setting.options.details {
            return;
        }
        if self.setting.options.places {
            self.add_places(workload, &mut policies);
        }
        let mut described = self.describe(workload, policies, first..last);
        let draft = drafts
            .last()
            .filter(|(node, _)| *node == workload.object.node && self.setting.options.patches);
        described.patch = draft.map(|(_, draft)| patch_of(draft));
        described.metrics_port = metrics_port;
        described.authors = wrote;
        described.ephemeral_containers =
            ephemeral.iter().map(|item| (*item.value).clone()).collect();
        self.report.workloads.push(described);
    }

    /// Each problem once; a warning about an image once a file, not once a workload.
    fn add_diagnostics(&mut self, diagnostics: Vec<Diagnostic>, workload: &Workload<'_>) {
        let acknowledged = &self.setting.options.acknowledged;
        for mut diagnostic in diagnostics {
            diagnostic
                .workload
                .get_or_insert_with(|| workload.title().into());
            let is_accepted =
                !diagnostic.is_error() && acknowledged.iter().any(|one| one.covers(&diagnostic));
            if is_accepted {
                continue;
            }
            let said = &self.report.diagnostics;
            let is_said = match diagnostic.is_said_once() {
                true => said.iter().any(|other| other.message == diagnostic.message),
                // All others speak of a place in their document.
                false => self.said.has(&diagnostic, &said[self.first_problem..]),
            };
            if !is_said {
                self.report.diagnostics.push(diagnostic);
            }
        }
    }

    fn line_of(&mut self, tree: &Tree<'_>, node: NodeId) -> usize {
        self.lines.line_at(self.place.in_run + tree.start(node))
    }

    fn without_template(&mut self, object: &Object, tree: &Tree<'_>) {
        let name = tree
            .get(object.node, "metadata")
            .and_then(|metadata| tree.scalar(tree.get(metadata, "name")?));
        let skip = Skip::because(SkipCause::NoPodTemplate, "it has no pod template");
        let edits = self.report.edits.len()..self.report.edits.len();
        let line = self.line_of(tree, object.node);
        self.report.workloads.push(WorkloadReport {
            api_version: object.api_version.clone(),
            kind: object.kind.clone(),
            namespace: None,
            name: name.unwrap_or_default().to_owned(),
            line,
            document: self.place.start..self.place.start + self.bytes.len(),
            extent: self.place.start..self.place.start + self.bytes.len(),
            edits,
            policies: self.all(|| Outcome::Skipped(skip.clone())),
            ..WorkloadReport::default()
        });
    }

    fn unknown_kind(&mut self, object: &Object, tree: &Tree<'_>, source: &Source<'_>) {
        let Some(path) = find_pod_template(tree, object.node) else {
            return;
        };
        let path = if path.is_empty() {
            ".".to_owned()
        } else {
            path.join(".")
        };
        let message = format!(
            "a {} of {} holds something like a pod template, and podgraft does not know this kind",
            object.kind, object.api_version
        );
        let note = Diagnostic::note(Code::UnknownKind, message)
            .at(source.place(tree.span(object.node)), "left as it is")
            .help(format!(
                "to inject into it: --pod-template {}/{}={path}",
                object.api_version, object.kind
            ));
        self.report.diagnostics.push(note);
    }

    /// The edits of one workload. Text on which readers of YAML disagree is not edited.
    fn write(
        &mut self,
        draft: &Draft<'_>,
        workload: &Workload<'_>,
    ) -> Result<Vec<Edit>, Box<Diagnostic>> {
        self.refuse_doubt(workload)?;
        if plan::are_annotations_too_long(draft, self.bytes) {
            let message = format!(
                "{} would have more than 262144 bytes of annotations together with those that podgraft writes",
                workload.title()
            );
            let problem = Diagnostic::error(Code::Invalid, message);
            return Err(Box::new(problem.at(workload.own_place(), "this workload").help(
                "`--no-marker` leaves out the mark; `apply --in-place` keeps its records in podgraft.lock",
            )));
        }
        lower(draft, workload.object.node, self.written).map_err(|refusal| {
            let message = format!(
                "{} cannot be edited: what stands here {}",
                workload.title(),
                refusal.why
            );
            let problem = Diagnostic::error(Code::CannotEdit, message)
                .at(workload.place(refusal.node), "here");
            Box::new(problem.help("write it in block style, `key: value` lines and `- item` lines"))
        })
    }

    fn refuse_doubt(&self, workload: &Workload<'_>) -> Result<(), Box<Diagnostic>> {
        let Some(doubt) = self
            .doubt
            .get_or_init(|| doubt_of(workload.source, workload.tree))
        else {
            return Ok(());
        };
        let message = format!(
            "{} cannot be edited safely: {}",
            workload.title(),
            doubt.what
        );
        let problem = Diagnostic::error(Code::CannotEdit, message);
        let problem = problem.at(workload.source.place(doubt.at.clone()), "here");
        let is_mark = workload.source.text[doubt.at.clone()].starts_with('\u{feff}');
        Err(Box::new(match is_mark {
            true => problem.help(
                "take it out: it belongs to the beginning of a file, and comes here where files are put together",
            ),
            false => problem,
        }))
    }
}

/// The first place of a document on which readers disagree.
fn doubt_of(source: &Source<'_>, tree: &Tree<'_>) -> Option<Doubt> {
    if tree.is_plain() {
        return None;
    }
    let place = if source.first_line == 1 {
        Place::Start
    } else {
        Place::Inside
    };
    find_doubt(source.text, place).or_else(|| find_doubt_in_tree(tree))
}
