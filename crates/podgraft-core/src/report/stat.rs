//! The number of changed lines of each file, in the format of `git diff --stat`.

use super::lines::{LineIndex, changes_of};
use crate::outcome::ReportedFile;
use crate::wording::{Paint, count, one_line};

/// The most `+` and `-` signs in a row.
const MAX_SIGNS: usize = 40;

struct StatRow {
    name: String,
    insertions: usize,
    deletions: usize,
}

/// One line for each changed file, and the totals; empty if nothing changes.
pub fn render(files: &[ReportedFile<'_>], paint: Paint) -> String {
    let rows: Vec<StatRow> = files
        .iter()
        .filter(|file| !file.report.edits.is_empty())
        .map(row)
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let widths = rows.iter().map(|row| row.name.chars().count());
    let name_width = widths.max().unwrap_or(0);
    let numbers = rows.iter().map(|row| row.insertions + row.deletions);
    let most = numbers.max().unwrap_or(0);
    let number_width = most.to_string().len();
    let mut stat = String::new();
    for row in &rows {
        let plus = paint.wrap("32", &"+".repeat(scale(row.insertions, most)));
        let minus = paint.wrap("31", &"-".repeat(scale(row.deletions, most)));
        stat.push_str(&format!(
            " {:name_width$} | {:>number_width$} {plus}{minus}\n",
            row.name,
            row.insertions + row.deletions
        ));
    }
    let insertions = count(rows.iter().map(|row| row.insertions).sum(), "insertion");
    let deletions = count(rows.iter().map(|row| row.deletions).sum(), "deletion");
    stat.push_str(&format!(
        " {} changed, {insertions}(+), {deletions}(-)\n",
        count(rows.len(), "file")
    ));
    stat
}

fn row(file: &ReportedFile<'_>) -> StatRow {
    let lines = LineIndex::of(file.text);
    let changes = changes_of(&file.report.edits, &lines);
    StatRow {
        name: one_line(file.name),
        insertions: changes.iter().map(|change| change.new.len()).sum(),
        deletions: changes.iter().map(|change| change.old.len()).sum(),
    }
}

/// The number of signs for some lines, scaled if the longest row is too wide. At least one sign if there is a line.
fn scale(lines: usize, most: usize) -> usize {
    if most <= MAX_SIGNS || lines == 0 {
        return lines;
    }
    (lines * MAX_SIGNS / most).max(1)
}

#[cfg(test)]
#[test]
fn long_rows_are_scaled() {
    assert_eq!((scale(81, 82), scale(1, 82), scale(3, 4)), (39, 1, 3));
}
