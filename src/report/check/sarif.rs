//! The findings as SARIF, for code scanning.

use super::{Checked, Finding};
use crate::diagnostic::Severity;
use crate::report::sarif::{Level, Location, Log, Result, Rule};

/// The whole log.
pub fn render(checked: &Checked<'_>) -> String {
    let mut log = Log::default();
    for finding in &checked.findings {
        log.push(rule(finding), result(finding));
    }
    log.render()
}

/// A code is a rule; its page says what it means and what to do.
fn rule(finding: &Finding) -> Rule {
    let code = finding.diagnostic.code;
    let page = code.page();
    let body = page.split_once("\n\n").map_or(page, |(_, body)| body);
    let first = body
        .split("\n\n")
        .next()
        .unwrap_or_default()
        .replace('\n', " ");
    let short = first
        .split(". ")
        .next()
        .unwrap_or_default()
        .trim_end_matches('.');
    Rule {
        id: code.name().to_owned(),
        short: format!("{short}."),
        full: first,
        markdown: Some(body.to_owned()),
    }
}

fn result(finding: &Finding) -> Result {
    let diagnostic = &finding.diagnostic;
    let help = diagnostic.help.as_ref().map_or(String::new(), |help| {
        format!(" Help: {}.", help.trim_end_matches('.'))
    });
    let help = help.replace("?.", "?");
    let location = |label: &crate::diagnostic::Label| {
        let place = &label.place;
        Location {
            file: place.source.to_string(),
            line: place.line,
            column: (!place.excerpt.is_empty()).then_some(place.column),
        }
    };
    Result {
        level: match diagnostic.severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warning,
            Severity::Note => Level::Note,
        },
        message: format!("{}.{help}", diagnostic.message),
        location: diagnostic.labels.first().map(location),
        workload: finding.workload.clone(),
        replacements: Vec::new(),
    }
}
