//! Verdicts as a table for people, with what is otherwise below it.

use std::fmt::Write as _;

use super::Judged;
use crate::wording::{Paint, lines, one_line};

/// All tests, one expectation a line.
pub fn render(judged: &[Judged], paint: Paint) -> String {
    let rows = || {
        judged
            .iter()
            .flat_map(|one| one.verdicts.iter().map(move |verdict| (one, verdict)))
    };
    let name_width = judged
        .iter()
        .map(|one| name(one).chars().count())
        .max()
        .unwrap_or(0)
        .max("TEST".len());
    let what_width = rows()
        .map(|(_, verdict)| verdict.what.chars().count())
        .max()
        .unwrap_or(0)
        .max("EXPECTED".len());
    let mut text = format!(
        "{:name_width$}  {:what_width$}  RESULT\n",
        "TEST", "EXPECTED"
    );
    for (one, verdict) in rows() {
        let result = match verdict.failure {
            None => paint.wrap("32", "pass"),
            Some(_) => paint.wrap("31", "FAIL"),
        };
        let _ = writeln!(
            text,
            "{:name_width$}  {:what_width$}  {result}",
            name(one),
            verdict.what
        );
    }
    for (one, verdict) in rows() {
        if let Some(failure) = &verdict.failure {
            let _ = write!(
                text,
                "\n{} ({}): {}\n{}",
                name(one),
                one_line(&one.test.file),
                verdict.what,
                indented(failure)
            );
        }
    }
    text.push('\n');
    text + &totals(judged)
}

fn name(one: &Judged) -> String {
    one_line(&one.test.name)
}

/// A diff stands as it is, so that it can be cut out.
fn indented(failure: &str) -> String {
    if failure.starts_with("--- ") {
        return failure.to_owned();
    }
    lines(failure)
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect()
}

fn totals(judged: &[Judged]) -> String {
    let fails = |one: &&Judged| {
        let mut verdicts = one.verdicts.iter();
        verdicts.any(|verdict| verdict.failure.is_some())
    };
    let failed = judged.iter().filter(fails).count();
    let plural = if judged.len() == 1 { "" } else { "s" };
    format!(
        "{} test{plural}: {} passed, {failed} failed\n",
        judged.len(),
        judged.len() - failed
    )
}
