//! The findings for people: one on each line, in the form that editors and terminals turn into links. The same finding
//! about many workloads is shown once, and help that several findings of a code have is shown below the last of them.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{CheckedRun, pointer};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::report::grouping::{and_more_named, group_alike};
use crate::wording::{self, Paint, count, one_line};

/// Renders each finding as `a.yaml:44: error[out-of-date]: ...`, with its help, and the totals.
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
    let grouped = group_alike(&titled.iter().collect::<Vec<_>>());
    let helps = grouped
        .iter()
        .enumerate()
        .filter_map(|(index, (found, _))| {
            let help = found.help.as_deref()?;
            Some(((found.code, help), index))
        });
    let last_with: HashMap<(Code, &str), usize> = helps.collect();
    for (index, (diagnostic, others)) in grouped.into_iter().enumerate() {
        text += &without_help(diagnostic, paint);
        if let Some(help) = &diagnostic.help
            && last_with[&(diagnostic.code, &**help)] == index
        {
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

fn without_help(diagnostic: &Diagnostic, paint: Paint) -> String {
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
    let mut text = format!(
        "{}{heading}: {}\n",
        one_line(&place),
        one_line(&wording::brief(&diagnostic.message))
    );
    for label in diagnostic.other_places() {
        let _ = writeln!(text, "    {}", pointer(label));
    }
    text
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
