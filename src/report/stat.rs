//! The number of changed lines of each file, in the format of `git diff --stat`.

use super::lines::{LineIndex, changes};
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
    let name_width = rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0);
    let most = rows
        .iter()
        .map(|row| row.insertions + row.deletions)
        .max()
        .unwrap_or(0);
    let number_width = most.to_string().len();
    let mut stat = String::new();
    for row in &rows {
        let pad = " ".repeat(name_width - row.name.chars().count());
        let plus = paint.wrap("32", &"+".repeat(scale(row.insertions, most)));
        let minus = paint.wrap("31", &"-".repeat(scale(row.deletions, most)));
        stat.push_str(&format!(
            " {}{pad} | {:>number_width$} {plus}{minus}\n",
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
    let changes = changes(file, &lines);
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
mod tests {
    use super::*;
    use crate::outcome::FileReport;
    use crate::yaml::splice::Edit;

    #[test]
    fn lines_are_counted_and_long_rows_scaled() {
        let report = FileReport {
            edits: vec![
                Edit {
                    at: 2..2,
                    text: "x\n".repeat(80).into(),
                },
                Edit {
                    at: 2..3,
                    text: "c".into(),
                },
            ],
            ..FileReport::default()
        };
        let file = ReportedFile {
            name: "dir/a.yaml",
            path: b"dir/a.yaml",
            text: b"a\nb\n",
            report: &report,
        };
        let stat = render(&[file], Paint::Plain);
        let expected = format!(
            " dir/a.yaml | 82 {}-\n 1 file changed, 81 insertions(+), 1 deletion(-)\n",
            "+".repeat(39)
        );
        assert_eq!(stat, expected);
    }

    #[test]
    fn nothing_changed_is_nothing_shown() {
        let report = FileReport::default();
        let file = ReportedFile {
            name: "a",
            path: b"a",
            text: b"a\n",
            report: &report,
        };
        assert_eq!(render(&[file], Paint::Plain), "");
    }
}
