//! The proof that undo gives back the bytes, made before anything leaves: of each document, and of all files together
//! where objects are generated beside workloads.

use memchr::memmem;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::Inventory;
use crate::options::{Options, TakeOut};
use crate::outcome::FileReport;
use crate::record::lock::Locks;
use crate::record::{Changed, Leniency, RECORD, Texts};
use crate::source::Source;
use crate::undo::{Obstacle, Recorded, Stripped, objects_of, places_between, read_record, strip};
use crate::yaml::parse::parse_again;
use crate::yaml::splice::{Edit, changes_of, splice, splice_text};
use crate::yaml::tree::NodeId;
use crate::yaml::value::to_value;

use super::record_refusals::changed_since;
use super::recorded::{Pair, Pending, Wanted, flat};
use super::retire::{RunFile, retire, unend};
use super::{Chunk, graft_on_threads};

impl Chunk<'_, '_> {
    /// Undoes the result: `None` when that gives back the bytes, else what the records must say beside.
    pub(super) fn prove(
        &mut self,
        pair: &Pair<'_, '_>,
        pending: &[Pending<'_>],
        edits: &[(NodeId, Vec<Edit>)],
    ) -> Option<Vec<Option<Texts>>> {
        let edits = flat(edits);
        let output = splice_text(pair.source.text, &edits);
        let Ok(tree) = parse_again(pair.tree, &output, &changes_of(&edits)) else {
            self.unproven(pair, pending, "it cannot be parsed");
            return None;
        };
        let own = objects_of(pair.tree, self.setting.kinds);
        let of = |at: usize| {
            pending
                .iter()
                .find(|one| own.get(at) == Some(&one.workload.object.node))
        };
        let mut recorded = Vec::new();
        for (at, node) in objects_of(&tree, self.setting.kinds)
            .into_iter()
            .enumerate()
        {
            let Some(record) = of(at).and_then(|one| one.record.as_ref()) else {
                continue;
            };
            let annotated = read_record(&tree, node).ok().flatten();
            let beside = || {
                Some(Recorded {
                    node,
                    at: node,
                    is_annotated: false,
                    from: None,
                    record: record.clone(),
                    adopted: Vec::new(),
                    value: to_value(&tree, node).ok()?,
                })
            };
            recorded.extend(annotated.or_else(beside));
        }
        let undo = |recorded: &[Recorded]| {
            strip(
                &tree,
                self.setting.kinds,
                recorded,
                self.place.has_more,
                |_| Leniency::Leave,
            )
        };
        let changed = |stripped: &Stripped| -> Vec<Changed> {
            stripped
                .taken
                .iter()
                .flat_map(|taken| taken.changed.iter().cloned())
                .collect()
        };
        let changed_before = changed(pair.stripped);
        let compare = |undone: &Stripped| {
            if let Some(changed) = changed(undone)
                .into_iter()
                .find(|changed| !changed_before.contains(changed))
            {
                return Err(format!(
                    "`{}` of {} would be taken for changed",
                    changed.path, changed.policy
                ));
            }
            places_between(
                &self.unended(&undone.text, pair, pending),
                pair.original,
                self.setting.kinds,
            )
        };
        let matters = |at: usize| {
            of(at).is_some_and(|one| one.record.is_some() || matches!(one.wanted, Wanted::Base(_)))
        };
        let differ =
            |texts: &[Option<Texts>]| (0..texts.len()).any(|at| texts[at].is_some() && matters(at));
        let proven = undo(&recorded).and_then(|undone| compare(&undone).map_err(Obstacle::Wrong));
        match proven {
            Ok(texts) if !differ(&texts) => return None,
            // What an earlier run noted of the text does not hold beside what this one changed: it is noted anew.
            Ok(_) | Err(Obstacle::Forged(_)) => {
                recorded.iter_mut().for_each(|one| one.record.text = None)
            }
            Err(obstacle) => {
                self.unproven(pair, pending, &format!("{obstacle:?}"));
                return None;
            }
        }
        match undo(&recorded).and_then(|undone| compare(&undone).map_err(Obstacle::Wrong)) {
            Ok(texts) => Some(texts),
            Err(obstacle) => {
                self.unproven(pair, pending, &format!("{obstacle:?}"));
                None
            }
        }
    }

    /// What is put right only when what was generated behind the document is gone.
    fn unended(&self, undone: &str, pair: &Pair<'_, '_>, pending: &[Pending<'_>]) -> String {
        let mut rooms = pending
            .iter()
            .filter_map(|one| Some(&one.record.as_ref()?.room));
        match rooms.find(|room| room.unended && !pair.original.ends_with('\n')) {
            Some(room) => splice_text(undone, &unend(undone, room, self.setting.kinds, None)),
            None => undone.to_owned(),
        }
    }

    /// Beside what somebody changed since it was injected this is no wonder; else it is a bug.
    pub(super) fn unproven(&mut self, pair: &Pair<'_, '_>, pending: &[Pending<'_>], what: &str) {
        let before = self.report.diagnostics.len();
        for (recorded, taken) in pair.recorded.iter().zip(&pair.stripped.taken) {
            let workload = pending
                .iter()
                .map(|one| &one.workload)
                .find(|own| own.object.node == recorded.node);
            let changed = taken.changed.iter().zip(workload.into_iter().cycle());
            let problems =
                changed.map(|(changed, own)| changed_since(own, &changed.policy, &changed.path));
            self.report.diagnostics.extend(problems);
        }
        if self.report.diagnostics.len() == before {
            self.report
                .diagnostics
                .push(inexact(what).at(pair.source.place(0..0), "in this document"));
        }
    }
}

/// What a run writes is right all the same: only what undo makes of it is not what stood there.
fn inexact(what: &str) -> Diagnostic {
    let message = format!("undo of what is written here would not give back every byte: {what}");
    Diagnostic::warning(Code::InexactUndo, message)
        .help("commit before the run, so that the history has the bytes; this is a gap in podgraft, please report it")
}

/// Takes out what no workload of the run needs any more, and proves the whole of it.
pub fn retire_proven(
    files: &mut [RunFile<'_>],
    options: &Options,
    locks: &Arc<Locks>,
) -> Option<Diagnostic> {
    retire(files, options);
    prove_companions(files, options, locks)
}

/// Undoes the whole run where it wrote objects beside workloads, or took them out: what comes of it must be what undoing
/// the input comes to. Nothing is wrong where something was refused already, and nothing can be said where a workload
/// has no record, as beside others that an earlier run recorded.
fn prove_companions(
    files: &[RunFile<'_>],
    options: &Options,
    locks: &Arc<Locks>,
) -> Option<Diagnostic> {
    let is_wrong = files
        .iter()
        .any(|(.., report)| report.diagnostics.iter().any(Diagnostic::is_error));
    let has_companions =
        |report: &FileReport| !report.dropped.is_empty() || !report.needed.is_empty();
    let own: Vec<&RunFile<'_>> = files
        .iter()
        .filter(|(.., report)| has_companions(report))
        .collect();
    if is_wrong || own.is_empty() || own.iter().all(|(.., report)| report.edits.is_empty()) {
        return None;
    }
    if own.iter().any(|(.., report)| report.has_unrecorded) {
        return None;
    }
    let inputs = own
        .iter()
        .map(|(name, text, _)| (Arc::clone(name), text.to_vec()));
    let has_record = |(name, text, _): &&RunFile<'_>| {
        memmem::find(text, RECORD.as_bytes()).is_some() || locks.has_file(name)
    };
    let before = match own.iter().any(has_record) {
        true => undone(inputs.collect(), options, Arc::clone(locks)),
        false => Some(inputs.map(|(_, text)| text).collect()),
    };
    // What somebody changed since cannot be undone before the run, either.
    let before = before?;
    let outputs = own
        .iter()
        .map(|(name, text, report)| (Arc::clone(name), splice(text, &report.edits)));
    let mut locks_after = Locks::clone(locks);
    let records = files.iter();
    locks_after.put_all(records.map(|(name, _, report)| (&**name, report.records.as_slice())));
    let after = undone(outputs.collect(), options, Arc::new(locks_after));
    let at = match &after {
        Some(after) => before
            .iter()
            .zip(after)
            .position(|(before, after)| before != after)?,
        None => 0,
    };
    let (name, text, _) = own[at];
    let place = Source::new(Arc::clone(name), &String::from_utf8_lossy(text)).place(0..0);
    Some(
        inexact("the bytes differ beside the objects that are generated").at(place, "in this file"),
    )
}

/// The texts without what their records say; `None` where that is refused.
fn undone(
    texts: Vec<(Arc<str>, Vec<u8>)>,
    options: &Options,
    locks: Arc<Locks>,
) -> Option<Vec<Vec<u8>>> {
    let Options {
        namespace,
        pod_templates,
        parse_all,
        ..
    } = options.clone();
    let options = Options {
        namespace,
        pod_templates,
        parse_all,
        take_out: TakeOut::All,
        details: false,
        ..Options::default()
    };
    let mut inventory = Inventory::default();
    inventory.add_locks(locks);
    let graft = |name, text: &[u8]| {
        graft_on_threads(NonZeroUsize::MIN, name, text, &[], &options, &inventory)
    };
    let mut reports: Vec<FileReport> = texts.iter().map(|(name, text)| graft(name, text)).collect();
    let files = texts.iter().zip(&mut reports);
    retire(
        &mut files
            .map(|((name, text), report)| (Arc::clone(name), text.as_slice(), report))
            .collect::<Vec<_>>(),
        &options,
    );
    let is_refused = reports
        .iter()
        .flat_map(|report| &report.diagnostics)
        .any(Diagnostic::is_error);
    (!is_refused).then(|| {
        texts
            .iter()
            .zip(&reports)
            .map(|((_, text), report)| splice(text, &report.edits))
            .collect()
    })
}
