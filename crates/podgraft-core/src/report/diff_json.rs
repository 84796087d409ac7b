//! The diff as JSON: `kind: DiffReport`. Its schema is generated from these types (`schemas/diff.schema.json`).

use serde::Serialize;
use std::ops::Range;

use super::hunks::{Hunk, HunkLine, LineSign};
use super::review::{GroupBy, ReviewedWorkload, groups, reviewed, total_lines};
use super::statuses;
use super::workload_head::WorkloadHeader;
use crate::change::{Change, ChangeKind};
use crate::outcome::{ReportedFile, WorkloadStatus};
use crate::wording;

/// What `podgraft apply` would change.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, schemars(title = "podgraft DiffReport"))]
struct DiffReport<'a> {
    /// `podgraft.dev/v1alpha1`. Fields may be added within a version; none is renamed or taken away.
    api_version: &'static str,
    /// `DiffReport`.
    kind: &'static str,
    /// Counts of the whole run.
    totals: DiffTotals,
    /// The workloads that change, by file and line. With `--group-by` they stand in `groups`.
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads: Option<Vec<WorkloadDiff<'a>>>,
    /// With `--group-by`: the groups, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<DiffGroup<'a>>>,
}

/// Counts.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Totals"))]
#[serde(rename_all = "camelCase")]
struct DiffTotals {
    /// All workloads that were seen.
    workloads: usize,
    /// Those that change.
    changed: usize,
    /// Those that are selected and have everything already.
    unchanged: usize,
    /// Those that no policy selects.
    not_selected: usize,
    /// Those that a policy could not change and leaves alone.
    left_alone: usize,
    /// Lines that come.
    insertions: usize,
    /// Lines that go.
    deletions: usize,
}

/// Workloads that belong together.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Group"))]
#[serde(rename_all = "camelCase")]
struct DiffGroup<'a> {
    /// The namespace, the folder, or the owners separated by blanks.
    name: &'a str,
    /// The workloads that change.
    workloads: Vec<WorkloadDiff<'a>>,
}

/// A workload that changes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Workload"))]
#[serde(rename_all = "camelCase")]
struct WorkloadDiff<'a> {
    /// Which it is.
    #[serde(flatten)]
    head: WorkloadHeader<'a>,
    /// As the run was given it.
    file: &'a str,
    /// Lines that come.
    insertions: usize,
    /// Lines that go.
    deletions: usize,
    /// Who changes it, in the order in which they apply.
    policies: Vec<PolicyDiff<'a>>,
    /// The changes to the text.
    hunks: Vec<HunkJson<'a>>,
}

/// A policy that changes a workload.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Policy"))]
#[serde(rename_all = "camelCase")]
struct PolicyDiff<'a> {
    /// Its identity.
    policy: &'a str,
    /// What it does, in words.
    changes: Vec<ChangeJson>,
}

/// One thing that a policy does.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Done"))]
#[serde(rename_all = "camelCase")]
pub(super) enum ChangeJson {
    /// It was not there.
    Added(String),
    /// It was there and is another now.
    Changed(String),
    /// It was there, put there by an earlier run, and goes.
    Removed(String),
    /// It was there as the policy wants it, and is the policy's own from now on.
    Adopted(String),
    /// An object that comes with it.
    Generated(String),
}

/// Changes that are shown together.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Hunk"))]
#[serde(rename_all = "camelCase")]
struct HunkJson<'a> {
    /// 1-based first line in the file as it is; the line before where there is none.
    old_start: usize,
    /// Lines of the file as it is.
    old_lines: usize,
    /// 1-based first line in the file as it will be.
    new_start: usize,
    /// Lines of the file as it will be.
    new_lines: usize,
    /// Who makes this change.
    policies: Vec<&'a str>,
    /// The lines, with those around them that stay. None is of another document.
    lines: Vec<LineJson<'a>>,
}

/// A line of a hunk.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Line"))]
#[serde(rename_all = "camelCase")]
struct LineJson<'a> {
    /// Whether the line stays, comes or goes.
    sign: LineSign,
    /// Without its line end. Secrets are masked.
    text: &'a str,
    /// For a line that comes, who wrote it, where that is not the whole hunk's.
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<&'a [&'a str]>,
    /// A secret is masked in it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, schemars(default))]
    masked: bool,
}

/// The whole report, indented, with a line end.
pub fn render(files: &[ReportedFile<'_>], group_by: GroupBy<'_>) -> String {
    let reviews = reviewed(files, group_by);
    let is_grouped = !matches!(group_by, GroupBy::Nothing);
    let mut in_groups = Vec::new();
    for (name, members) in groups(&reviews) {
        in_groups.push(DiffGroup {
            name,
            workloads: members.into_iter().map(workload).collect(),
        });
    }
    let report = DiffReport {
        api_version: "podgraft.dev/v1alpha1",
        kind: "DiffReport",
        totals: totals(files, &reviews),
        workloads: (!is_grouped).then(|| reviews.iter().map(workload).collect()),
        groups: is_grouped.then_some(in_groups),
    };
    wording::pretty_json(&report)
}

fn totals(files: &[ReportedFile<'_>], reviews: &[ReviewedWorkload<'_>]) -> DiffTotals {
    let statuses = statuses(files);
    let with = |wanted: WorkloadStatus| statuses.iter().filter(|&&status| status == wanted).count();
    let (insertions, deletions) = total_lines(reviews);
    DiffTotals {
        workloads: statuses.len(),
        changed: statuses.iter().filter(|status| status.is_change()).count(),
        unchanged: with(WorkloadStatus::Unchanged),
        not_selected: with(WorkloadStatus::NotSelected),
        left_alone: with(WorkloadStatus::Failed),
        insertions,
        deletions,
    }
}

fn workload<'a>(review: &'a ReviewedWorkload<'a>) -> WorkloadDiff<'a> {
    WorkloadDiff {
        head: WorkloadHeader::of(review.workload),
        file: review.file,
        insertions: review.insertions,
        deletions: review.deletions,
        policies: review
            .changes_by_policy()
            .map(|(policy, changes)| PolicyDiff {
                policy,
                changes: changes.iter().map(done).collect(),
            })
            .collect(),
        hunks: review.hunks.iter().map(hunk).collect(),
    }
}

pub(super) fn done(change: &Change) -> ChangeJson {
    let words = change.to_string();
    match change.kind() {
        ChangeKind::Add if change.is_generated() => ChangeJson::Generated(words),
        ChangeKind::Add => ChangeJson::Added(words),
        ChangeKind::Change => ChangeJson::Changed(words),
        ChangeKind::TakeOut => ChangeJson::Removed(words),
        ChangeKind::Adopt => ChangeJson::Adopted(words),
    }
}

fn hunk<'a>(hunk: &'a Hunk<'a>) -> HunkJson<'a> {
    let start = |lines: &Range<usize>| lines.start + usize::from(!lines.is_empty());
    HunkJson {
        old_start: start(&hunk.old),
        old_lines: hunk.old.len(),
        new_start: start(&hunk.new),
        new_lines: hunk.new.len(),
        policies: hunk.policies.clone(),
        lines: hunk.lines.iter().map(line).collect(),
    }
}

fn line<'a>(line: &'a HunkLine<'a>) -> LineJson<'a> {
    LineJson {
        sign: line.sign,
        text: &line.text,
        policies: line.policies.as_deref(),
        masked: line.is_masked,
    }
}

#[cfg(test)]
#[test]
fn the_schema_in_the_repository_is_that_of_the_types() {
    let schema = schemars::schema_for!(DiffReport<'_>);
    let schema = serde_json::to_string_pretty(&schema).expect("a schema is always JSON") + "\n";
    let path = "../../schemas/diff.schema.json";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &schema).expect("the file can be written");
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        schema,
        "BLESS=1 writes it"
    );
}
