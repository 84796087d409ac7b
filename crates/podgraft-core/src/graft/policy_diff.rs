//! Computes what changes when new policies replace old ones: the text with the old ones applied, and a report whose
//! edits turn it into the text with the new ones.

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
    let mut number = 0;
    for (before, after) in pairs(old, new) {
        let Some(workload) = after.or(before) else {
            continue;
        };
        let is_same_workload =
            |upgraded: &&&WorkloadReport| upgraded.name == workload.name && !workload.is_generated;
        let upgrade = upgraded.get(number).filter(is_same_workload).copied();
        let policies = policies(before, workload, upgrade);
        number += usize::from(!workload.is_generated);
        let sides = WorkloadVersions {
            text,
            old: WorkloadVersion::of(old, before),
            new: WorkloadVersion::of(new, after),
            policies: &policies,
        };
        let first = report.edits.len();
        let (edits, authors) = sides.edits(&old_at);
        report.edits.extend(edits);
        let moved = |range: &Range<usize>| {
            old_at.output_offset(range.start)..old_at.output_offset(range.end)
        };
        report.workloads.push(WorkloadReport {
            document: moved(&workload.document),
            extent: moved(&workload.extent),
            edits: first..report.edits.len(),
            authors,
            view: before.and_then(last_view),
            view_after: last_view(workload),
            patch: None,
            policies,
            ..workload.clone()
        });
    }
    (old_text, report)
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

    /// Returns the output offset of a byte, before anything that is inserted at this offset.
    fn output_offset_before(&self, at: usize) -> usize {
        self.moved(at, self.0.partition_point(|(end, _)| *end < at))
    }

    /// The output offset of a byte after this number of edits.
    fn moved(&self, at: usize, edits_before: usize) -> usize {
        let last = edits_before.checked_sub(1).map(|last| &self.0[last]);
        at.saturating_add_signed(last.map_or(0, |(_, moved)| *moved))
    }
}

/// The edits of a workload in one version.
struct WorkloadVersion<'r> {
    edits: &'r [Edit],
    workload: Option<&'r WorkloadReport>,
}

impl<'r> WorkloadVersion<'r> {
    fn of(report: &'r FileReport, workload: Option<&'r WorkloadReport>) -> Self {
        let edits = workload
            .and_then(|workload| report.edits.get(workload.edits.clone()))
            .unwrap_or_default();
        WorkloadVersion { edits, workload }
    }

    /// Returns the policies that wrote some of `bytes`, a range in the spliced piece. If an edit has no author, all
    /// policies that injected something.
    fn authors(&self, piece: &Range<usize>, bytes: &Range<usize>) -> Vec<&'r str> {
        let Some(workload) = self.workload else {
            return Vec::new();
        };
        let mut authors = Vec::new();
        for (index, written) in written_in(self.edits, piece.start, bytes) {
            let edit_authors = workload.authors.get(index).into_iter().flatten();
            let edit_authors = edit_authors.filter(|author| {
                author.bytes.start < written.end && written.start < author.bytes.end
            });
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

/// A workload in both versions of the policies.
struct WorkloadVersions<'r> {
    text: &'r [u8],
    old: WorkloadVersion<'r>,
    new: WorkloadVersion<'r>,
    policies: &'r [PolicyReport],
}

impl WorkloadVersions<'_> {
    /// Returns the edits that turn the old text into the new one, and the authors of each. They are a line diff of
    /// the part of the text that either version edits.
    fn edits(&self, old_at: &OffsetShifts) -> (Vec<Edit>, Vec<Vec<Author>>) {
        let edits = || self.old.edits.iter().chain(self.new.edits);
        let (Some(start), Some(end)) = (
            edits().map(|edit| edit.at.start).min(),
            edits().map(|edit| edit.at.end).max(),
        ) else {
            return (Vec::new(), Vec::new());
        };
        let piece = start..end;
        let (old, new) = (
            splice_part(self.text, &piece, self.old.edits),
            splice_part(self.text, &piece, self.new.edits),
        );
        let (old_lines, new_lines) = (lines(&old), lines(&new));
        let of_old: Vec<&[u8]> = old_lines.iter().map(|line| &old[line.clone()]).collect();
        let of_new: Vec<&[u8]> = new_lines.iter().map(|line| &new[line.clone()]).collect();
        let ops = similar::capture_diff_slices(Algorithm::Myers, &of_old, &of_new);
        let (mut edits, mut authors) = (Vec::new(), Vec::new());
        for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
            let removed = bytes_of(&old_lines, op.old_range(), old.len());
            let inserted = bytes_of(&new_lines, op.new_range(), new.len());
            let Ok(text) = std::str::from_utf8(&new[inserted.clone()]) else {
                continue;
            };
            let from = old_at.output_offset_before(start);
            edits.push(Edit {
                at: from + removed.start..from + removed.end,
                text: text.into(),
            });
            let removers = self.places(self.old.authors(&piece, &removed));
            let remover = (!removed.is_empty()).then_some(Author {
                bytes: 0..0,
                policies: removers,
            });
            let writers = new_lines[op.new_range()].iter().map(|line| Author {
                bytes: line.start - inserted.start..line.end - inserted.start,
                policies: self.places(self.new.authors(&piece, line)),
            });
            authors.push(remover.into_iter().chain(writers).collect());
        }
        (edits, authors)
    }

    fn places(&self, names: Vec<&str>) -> Vec<usize> {
        let place_of = |name: &str| {
            let mut policies = self.policies.iter();
            policies.position(|report| *report.policy == *name)
        };
        let mut places: Vec<usize> = names.into_iter().filter_map(place_of).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
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
