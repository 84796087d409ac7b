//! Computes what changes when new policies replace old ones: the text with the old ones applied, and a report whose
//! edits turn it into the text with the new ones.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp};

use crate::outcome::view::WorkloadView;
use crate::outcome::{Author, FileReport, Outcome, PolicyReport, WorkloadReport};
use crate::yaml::splice::{Edit, splice, splice_part, written_in};

/// The reports of one file with the old and with the new policies, and of the new policies applied to a file with
/// records of the old ones.
#[derive(Debug, Clone, Copy)]
pub struct PolicyVersions<'r> {
    /// With the old policies.
    pub old: &'r FileReport,
    /// With the new ones.
    pub new: &'r FileReport,
    /// With the new policies, on the recorded result of the old ones.
    pub upgrade: &'r FileReport,
}

/// Returns the text with the old policies applied, and the report that leads from there to the text with the new
/// ones.
pub fn against(text: &[u8], versions: PolicyVersions<'_>) -> (Vec<u8>, FileReport) {
    let PolicyVersions { old, new, upgrade } = versions;
    let old_text = splice(text, &old.edits);
    let mut report = FileReport {
        documents: new.documents,
        objects: new.objects,
        has_empty_list: new.has_empty_list,
        list_metadata: new.list_metadata.clone(),
        is_hypothetical: true,
        ..FileReport::default()
    };
    let old_at = OffsetShifts::by(&old.edits);
    let upgraded: Vec<&WorkloadReport> = upgrade.input_workloads().collect();
    let (mut number, mut pieces) = (0, Vec::<(usize, ChangedPiece<'_>)>::new());
    for (before, after) in pairs(old, new) {
        let Some(workload) = after.or(before) else {
            continue;
        };
        let is_same_workload =
            |upgraded: &&&WorkloadReport| upgraded.name == workload.name && !workload.is_generated;
        let upgrade = upgraded.get(number).filter(is_same_workload).copied();
        let policies = policies(before, workload, upgrade);
        number += usize::from(!workload.is_generated);
        if let Some(piece) = ChangedPiece::of([(old, before), (new, after)]) {
            match pieces.last_mut() {
                Some((_, last)) if piece.range.start < last.range.end => last.join(piece),
                _ => pieces.push((report.workloads.len(), piece)),
            }
        }
        let moved = |range: &Range<usize>| {
            old_at.output_offset(range.start)..old_at.output_offset(range.end)
        };
        report.workloads.push(WorkloadReport {
            document: moved(&workload.document),
            extent: moved(&workload.extent),
            edits: 0..0,
            authors: Vec::new(),
            view: before.and_then(last_view),
            view_after: last_view(workload),
            patch: None,
            policies,
            ..workload.clone()
        });
    }
    add_edits(&mut report, pieces, text, &old_at);
    (old_text, report)
}

/// Gives the workloads of a report the edits of their pieces, in order.
fn add_edits(
    report: &mut FileReport,
    pieces: Vec<(usize, ChangedPiece<'_>)>,
    text: &[u8],
    old_at: &OffsetShifts,
) {
    let mut old_edits = 0;
    for (index, piece) in pieces {
        let workload = &mut report.workloads[index];
        let from = old_at.output_offset_before(piece.range.start, old_edits);
        let (edits, authors) = piece.edits(text, &workload.policies);
        workload.edits = report.edits.len()..report.edits.len() + edits.len();
        workload.authors = authors;
        let edits = edits.into_iter().map(|edit| edit.shifted(from));
        report.edits.extend(edits);
        if let Some(last) = piece.old.last() {
            old_edits = last.workload.edits.start + last.index + 1;
        }
    }
}

/// The view of a workload at the end of a run.
fn last_view(workload: &WorkloadReport) -> Option<Box<WorkloadView>> {
    let view = workload.view_after.as_ref().or(workload.view.as_ref());
    view.cloned()
}

type WorkloadPair<'r> = (Option<&'r WorkloadReport>, Option<&'r WorkloadReport>);

/// Pairs the workloads of both reports by their position in the file and their names.
fn pairs<'r>(old: &'r FileReport, new: &'r FileReport) -> Vec<WorkloadPair<'r>> {
    let mut pairs: BTreeMap<(usize, bool, &str), WorkloadPair<'r>> = BTreeMap::new();
    for workload in &old.workloads {
        pairs.entry(identity_of(workload)).or_default().0 = Some(workload);
    }
    for workload in &new.workloads {
        pairs.entry(identity_of(workload)).or_default().1 = Some(workload);
    }
    pairs.into_values().collect()
}

fn identity_of(workload: &WorkloadReport) -> (usize, bool, &str) {
    let start = workload.extent.start;
    (start, workload.is_generated, &workload.name)
}

/// Returns what each policy does on the way. Taken from the upgrade if the old policies injected something into the
/// workload.
fn policies(
    old: Option<&WorkloadReport>,
    new: &WorkloadReport,
    upgrade: Option<&WorkloadReport>,
) -> Vec<PolicyReport> {
    let is_injected = |outcome: &Outcome| matches!(outcome, Outcome::Injected(_));
    match upgrade {
        Some(upgrade) if old.is_some_and(|old| old.has_outcome(is_injected)) => {
            upgrade.policies.clone()
        }
        Some(_) | None => new.policies.clone(),
    }
}

/// By how many bytes edits shift the text after them: for each edit, the end of its range and the sum of the shifts
/// so far.
struct OffsetShifts(Vec<(usize, isize)>);

impl OffsetShifts {
    fn by(edits: &[Edit]) -> Self {
        let mut moved = 0;
        let steps = edits.iter().map(|edit| {
            moved += edit.text.len() as isize - edit.at.len() as isize;
            (edit.at.end, moved)
        });
        OffsetShifts(steps.collect())
    }

    /// Returns the output offset of a byte that no edit touches. It is after anything inserted at this offset.
    fn output_offset(&self, at: usize) -> usize {
        self.moved(at, self.0.partition_point(|(end, _)| *end <= at))
    }

    /// Returns the output offset of a byte, before anything that is inserted at this offset but by the first
    /// `edits_before` edits.
    fn output_offset_before(&self, at: usize, edits_before: usize) -> usize {
        let before = self.0.partition_point(|(end, _)| *end < at);
        self.moved(at, before.max(edits_before))
    }

    /// The output offset of a byte after this number of edits.
    fn moved(&self, at: usize, edits_before: usize) -> usize {
        let last = edits_before.checked_sub(1).map(|last| &self.0[last]);
        at.saturating_add_signed(last.map_or(0, |(_, moved)| *moved))
    }
}

/// An edit, the workload that it is of, and its index among the edits of the workload.
#[derive(Clone, Copy)]
struct WorkloadEdit<'r> {
    edit: &'r Edit,
    workload: &'r WorkloadReport,
    index: usize,
}

impl Borrow<Edit> for WorkloadEdit<'_> {
    fn borrow(&self) -> &Edit {
        self.edit
    }
}

fn edits_of<'r>(
    report: &'r FileReport,
    workload: Option<&'r WorkloadReport>,
) -> Vec<WorkloadEdit<'r>> {
    let of_workload = |workload: &'r WorkloadReport| {
        let edits = report.edits.get(workload.edits.clone());
        let edits = edits.unwrap_or_default().iter().enumerate();
        edits.map(move |(index, edit)| WorkloadEdit {
            edit,
            workload,
            index,
        })
    };
    workload.into_iter().flat_map(of_workload).collect()
}

/// Returns the policies that wrote some of `bytes`, a range in the spliced piece. If an edit has no author, all
/// policies that injected something.
fn authors_of<'r>(
    edits: &[WorkloadEdit<'r>],
    piece: &Range<usize>,
    bytes: &Range<usize>,
) -> Vec<&'r str> {
    let mut authors = Vec::new();
    for (index, written) in written_in(edits, piece.start, bytes) {
        let WorkloadEdit {
            workload, index, ..
        } = edits[index];
        let edit_authors = workload.authors.get(index).into_iter().flatten();
        let edit_authors = edit_authors
            .filter(|author| author.bytes.start < written.end && written.start < author.bytes.end);
        let policies = edit_authors.flat_map(|author| &author.policies);
        let named: Vec<&str> = policies
            .filter_map(|&policy| Some(&*workload.policies.get(policy)?.policy))
            .collect();
        authors.extend(match named.is_empty() {
            true => injected(workload),
            false => named,
        });
    }
    authors
}

fn injected(workload: &WorkloadReport) -> Vec<&str> {
    let is_injected =
        |policy_report: &&PolicyReport| matches!(policy_report.outcome, Outcome::Injected(_));
    workload
        .policies
        .iter()
        .filter(is_injected)
        .map(|policy_report| &*policy_report.policy)
        .collect()
}

/// The part of the text that either version edits for a workload. Where the end of a workload goes with the generated
/// object behind it, it is that of both.
struct ChangedPiece<'r> {
    range: Range<usize>,
    old: Vec<WorkloadEdit<'r>>,
    new: Vec<WorkloadEdit<'r>>,
}

impl<'r> ChangedPiece<'r> {
    /// `None` if no version edits the workload.
    fn of(versions: [(&'r FileReport, Option<&'r WorkloadReport>); 2]) -> Option<Self> {
        let [old, new] = versions.map(|(report, workload)| edits_of(report, workload));
        let edits = || old.iter().chain(&new).map(|edit| &edit.edit.at);
        let start = edits().map(|at| at.start).min()?;
        let end = edits().map(|at| at.end).max()?;
        Some(ChangedPiece {
            range: start..end,
            old,
            new,
        })
    }

    /// Adds the piece of the next workload, which overlaps with this one.
    fn join(&mut self, next: Self) {
        self.range.start = self.range.start.min(next.range.start);
        self.range.end = self.range.end.max(next.range.end);
        self.old.extend(next.old);
        self.new.extend(next.new);
        for edits in [&mut self.old, &mut self.new] {
            edits.sort_by_key(|edit| (edit.edit.at.start, !edit.edit.at.is_empty()));
        }
    }

    /// Returns the edits that turn the old text of the piece into the new one, and the authors of each by their place
    /// among the policies. They are a line diff.
    fn edits(&self, text: &[u8], policies: &[PolicyReport]) -> (Vec<Edit>, Vec<Vec<Author>>) {
        let piece = &self.range;
        let (old, new) = (
            splice_part(text, piece, &self.old),
            splice_part(text, piece, &self.new),
        );
        let (mut edits, mut authors) = (Vec::new(), Vec::new());
        for (removed, inserted) in differing_lines(&old, &new) {
            let Ok(text) = std::str::from_utf8(&new[inserted.clone()]) else {
                continue;
            };
            edits.push(Edit {
                at: removed.clone(),
                text: text.into(),
            });
            let removers = places(policies, authors_of(&self.old, piece, &removed));
            let remover = (!removed.is_empty()).then_some(Author {
                bytes: 0..0,
                policies: removers,
            });
            let writers = lines(text.as_bytes()).into_iter().map(|line| {
                let in_new = inserted.start + line.start..inserted.start + line.end;
                Author {
                    bytes: line,
                    policies: places(policies, authors_of(&self.new, piece, &in_new)),
                }
            });
            authors.push(remover.into_iter().chain(writers).collect());
        }
        (edits, authors)
    }
}

fn places(policies: &[PolicyReport], names: Vec<&str>) -> Vec<usize> {
    let place_of = |name: &str| {
        let mut policies = policies.iter();
        policies.position(|report| *report.policy == *name)
    };
    let mut places: Vec<usize> = names.into_iter().filter_map(place_of).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// The lines in which two texts differ: each time the byte range in the old one, and in the new one.
pub(super) fn differing_lines(old: &[u8], new: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
    let (old_lines, new_lines) = (lines(old), lines(new));
    let of_old: Vec<&[u8]> = old_lines.iter().map(|line| &old[line.clone()]).collect();
    let of_new: Vec<&[u8]> = new_lines.iter().map(|line| &new[line.clone()]).collect();
    let ops = similar::capture_diff_slices(Algorithm::Myers, &of_old, &of_new);
    let ops = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let ranges = ops.map(|op| {
        let removed = bytes_of(&old_lines, op.old_range(), old.len());
        (removed, bytes_of(&new_lines, op.new_range(), new.len()))
    });
    ranges.collect()
}

fn lines(text: &[u8]) -> Vec<Range<usize>> {
    let mut start = 0;
    let lines = text.split_inclusive(|&byte| byte == b'\n').map(|line| {
        start += line.len();
        start - line.len()..start
    });
    lines.collect()
}

/// Returns the byte range of these lines of a text. For no lines, the empty range at which they would be.
fn bytes_of(lines: &[Range<usize>], range: Range<usize>, end: usize) -> Range<usize> {
    let start_of = |line: usize| lines.get(line).map_or(end, |line| line.start);
    start_of(range.start)..start_of(range.end)
}
