//! Renders test results as a table for people, followed by the failures.

use std::fmt::Write as _;

use super::TestResult;
use crate::wording::{Paint, count, lines, one_line};

/// The table of all tests, with one line for each expectation.
pub fn render(judged: &[TestResult], paint: Paint) -> String {
    let rows = judged.iter().flat_map(|judged_test| {
        let verdicts = judged_test.verdicts.iter();
        verdicts.map(move |verdict| (judged_test, verdict))
    });
    let names = judged
        .iter()
        .map(|judged_test| name(judged_test).chars().count());
    let name_width = names.fold("TEST".len(), usize::max);
    let expectations = rows
        .clone()
        .map(|(_, verdict)| verdict.expectation.chars().count());
    let expectation_width = expectations.fold("EXPECTED".len(), usize::max);
    let mut text = format!(
        "{:name_width$}  {:expectation_width$}  RESULT\n",
        "TEST", "EXPECTED"
    );
    for (judged_test, verdict) in rows.clone() {
        let result = match verdict.failure {
            None => paint.wrap("32", "pass"),
            Some(_) => paint.wrap("31", "FAIL"),
        };
        let _ = writeln!(
            text,
            "{:name_width$}  {:expectation_width$}  {result}",
            name(judged_test),
            verdict.expectation
        );
    }
    for (judged_test, verdict) in rows {
        if let Some(failure) = &verdict.failure {
            let _ = write!(
                text,
                "\n{} ({}): {}\n{}",
                name(judged_test),
                one_line(&judged_test.test.file),
                verdict.expectation,
                indented(failure)
            );
        }
    }
    text.push('\n');
    text + &totals(judged)
}

fn name(judged_test: &TestResult) -> String {
    one_line(&judged_test.test.name)
}

/// Indents a failure. A diff is not indented, so that it can be copied and applied.
fn indented(failure: &str) -> String {
    if failure.starts_with("--- ") {
        return failure.to_owned();
    }
    lines(failure)
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect()
}

fn totals(judged: &[TestResult]) -> String {
    let fails = |judged_test: &&TestResult| judged_test.failures() > 0;
    let failed = judged.iter().filter(fails).count();
    let tests = count(judged.len(), "test");
    format!(
        "{tests}: {} passed, {failed} failed\n",
        judged.len() - failed
    )
}
