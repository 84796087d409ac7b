//! The findings for people: one on each line, in the form that editors and terminals turn into links. The same finding
//! about many workloads is shown once.

use std::fmt::Write as _;

use super::{CheckedRun, pointer};
use crate::diagnostic::{Diagnostic, Severity};
use crate::report::grouping::{and_more_named, group_alike};
use crate::wording::{self, Paint, count, one_line};

/// Renders each finding as `a.yaml:44: error[out-of-date]: ...` with the help below it, and the totals.
pub fn render(checked: &CheckedRun<'_>, paint: Paint) -> String {
    let mut text = String::new();
    let titled = checked.findings.iter().map(|finding| {
        let diagnostic = finding.diagnostic.clone();
        match &finding.workload {
            Some(title) => diagnostic.of_workload(title.as_str()),
            None => diagnostic,
        }
    });
    let titled: Vec<Diagnostic> = titled.collect();
    for (diagnostic, others) in group_alike(&titled.iter().collect::<Vec<_>>()) {
        let place = diagnostic.place();
        let place = place.map_or(String::new(), |place| match place.excerpt.is_empty() {
            true => format!("{}:{}: ", place.source, place.line),
            false => format!("{}: ", place.link()),
        });
        let word = wording::severity(diagnostic.severity);
        let style = match diagnostic.severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        let heading = paint.wrap(style, &format!("{word}[{}]", diagnostic.code.name()));
        let _ = writeln!(
            text,
            "{}{heading}: {}",
            one_line(&place),
            one_line(&wording::brief(&diagnostic.message))
        );
        for label in diagnostic.other_places() {
            let _ = writeln!(text, "    {}", pointer(label));
        }
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(
                text,
                "    {}: {}",
                paint.wrap("36", "help"),
                one_line(&wording::brief(help))
            );
        }
        if !others.is_empty() {
            let _ = writeln!(
                text,
                "    {}",
                and_more_named(diagnostic, &others, "-o json")
            );
        }
    }
    text + &totals(checked)
}

/// The last line: `12 workloads, 10 selected and up to date: 2 errors, 1 warning`.
pub fn totals(checked: &CheckedRun<'_>) -> String {
    let (total, settled) = checked.workloads();
    let found = wording::severities(|severity| checked.number(severity));
    let found = match &*found {
        "" => "nothing to report",
        found => found,
    };
    format!(
        "{}, {settled} selected and up to date: {found}\n",
        count(total, "workload")
    )
}
