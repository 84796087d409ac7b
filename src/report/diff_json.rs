//! The diff for machines: `kind: DiffReport`. Its schema is made from these types (`schemas/diff.schema.json`).

use serde::Serialize;

use super::head::Head;
use super::hunks::{Hunk, Line, Sign};
use super::reviewed::{GroupBy, Reviewed, groups, reviewed};
use crate::change::{Change, Verb};
use crate::outcome::{ReportedFile, Status, WorkloadReport};
use crate::wording;

/// What `podgraft apply` would change.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(title = "podgraft DiffReport"))]
struct DiffReport<'a> {
    /// `podgraft.dev/v1alpha1`. Fields may be added within a version; none is renamed or taken away.
    api_version: &'static str,
    /// `DiffReport`.
    kind: &'static str,
    /// Counts of the whole run.
    totals: Totals,
    /// The workloads that change, by file and line. With `--group-by` they stand in `groups`.
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads: Option<Vec<Workload<'a>>>,
    /// With `--group-by`: the groups, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Group<'a>>>,
}

/// Counts.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Totals {
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
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Group<'a> {
    /// The namespace, the folder, or the owners separated by blanks.
    name: &'a str,
    /// The workloads that change.
    workloads: Vec<Workload<'a>>,
}

/// A workload that changes.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Workload<'a> {
    /// Which it is.
    #[serde(flatten)]
    head: Head<'a>,
    /// As the run was given it.
    file: &'a str,
    /// Lines that come.
    insertions: usize,
    /// Lines that go.
    deletions: usize,
    /// Who changes it, in the order in which they apply.
    policies: Vec<Policy<'a>>,
    /// The changes to the text.
    hunks: Vec<HunkView<'a>>,
}

/// A policy that changes a workload.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Policy<'a> {
    /// Its identity.
    policy: &'a str,
    /// What it does, in words.
    changes: Vec<Done>,
}

/// One thing that a policy does.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) enum Done {
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
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(rename = "Hunk"))]
struct HunkView<'a> {
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
    lines: Vec<LineView<'a>>,
}

/// A line of a hunk.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(rename = "Line"))]
struct LineView<'a> {
    /// Whether the line stays, comes or goes.
    sign: SignView,
    /// Without its line end. Secrets are masked.
    text: &'a str,
    /// For a line that comes, who wrote it, where that is not the whole hunk's.
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<&'a [&'a str]>,
    /// A secret is masked in it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schemas", schemars(default))]
    masked: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(rename = "Sign"))]
enum SignView {
    Context,
    Added,
    Removed,
}

/// The whole report, indented, with a line end.
pub fn render(files: &[ReportedFile<'_>], group_by: GroupBy<'_>) -> String {
    let all = reviewed(files, group_by);
    let is_grouped = !matches!(group_by, GroupBy::Nothing);
    let mut in_groups = Vec::new();
    for (name, members) in groups(&all) {
        in_groups.push(Group {
            name,
            workloads: members.into_iter().map(workload).collect(),
        });
    }
    let report = DiffReport {
        api_version: "podgraft.dev/v1alpha1",
        kind: "DiffReport",
        totals: totals(files, &all),
        workloads: (!is_grouped).then(|| all.iter().map(workload).collect()),
        groups: is_grouped.then_some(in_groups),
    };
    let text = serde_json::to_string_pretty(&report)
        .expect("strings, numbers and lists of these are always JSON");
    wording::json(text) + "\n"
}

fn totals(files: &[ReportedFile<'_>], all: &[Reviewed<'_>]) -> Totals {
    let statuses: Vec<Status> = files
        .iter()
        .flat_map(|file| file.report.own_workloads())
        .map(WorkloadReport::status)
        .collect();
    let with = |wanted: Status| statuses.iter().filter(|&&status| status == wanted).count();
    Totals {
        workloads: statuses.len(),
        changed: with(Status::Injected) + with(Status::TakenOut),
        unchanged: with(Status::Unchanged),
        not_selected: with(Status::NotSelected),
        left_alone: with(Status::Failed),
        insertions: all.iter().map(|one| one.come).sum(),
        deletions: all.iter().map(|one| one.go).sum(),
    }
}

fn workload<'a>(one: &'a Reviewed<'a>) -> Workload<'a> {
    Workload {
        head: Head::of(one.workload),
        file: one.file,
        insertions: one.come,
        deletions: one.go,
        policies: one
            .changes_by_policy()
            .map(|(policy, changes)| Policy {
                policy,
                changes: changes.iter().map(done).collect(),
            })
            .collect(),
        hunks: one.hunks.iter().map(hunk).collect(),
    }
}

pub(super) fn done(change: &Change) -> Done {
    let words = change.to_string();
    match change.verb() {
        Verb::Add if change.is_generated() => Done::Generated(words),
        Verb::Add => Done::Added(words),
        Verb::Change => Done::Changed(words),
        Verb::TakeOut => Done::Removed(words),
        Verb::Adopt => Done::Adopted(words),
    }
}

fn hunk<'a>(hunk: &'a Hunk<'a>) -> HunkView<'a> {
    let start = |lines: &std::ops::Range<usize>| {
        if lines.is_empty() {
            lines.start
        } else {
            lines.start + 1
        }
    };
    HunkView {
        old_start: start(&hunk.old),
        old_lines: hunk.old.len(),
        new_start: start(&hunk.new),
        new_lines: hunk.new.len(),
        policies: hunk.policies.clone(),
        lines: hunk.lines.iter().map(|own| line(own, hunk)).collect(),
    }
}

fn line<'a>(line: &'a Line<'a>, hunk: &'a Hunk<'a>) -> LineView<'a> {
    let is_told = line.sign != Sign::Added || line.policies == hunk.policies;
    LineView {
        sign: match line.sign {
            Sign::Context => SignView::Context,
            Sign::Added => SignView::Added,
            Sign::Removed => SignView::Removed,
        },
        text: &line.text,
        policies: (!is_told).then_some(line.policies.as_slice()),
        masked: line.is_masked,
    }
}

#[cfg(test)]
#[cfg(feature = "schemas")]
#[test]
fn the_schema_in_the_repository_is_that_of_the_types() {
    let schema = schemars::schema_for!(DiffReport<'_>);
    let schema = serde_json::to_string_pretty(&schema).expect("a schema is always JSON") + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write("schemas/diff.schema.json", &schema).expect("the file can be written");
    }
    assert_eq!(
        include_str!("../../schemas/diff.schema.json"),
        schema,
        "BLESS=1 writes it"
    );
}
