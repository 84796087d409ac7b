//! The findings as SARIF, for code scanning.

use super::{CheckedRun, Finding};
use crate::diagnostic::Label;
use crate::report::sarif::{SarifLocation, SarifLog, SarifResult, SarifRule};
use crate::source::Place;

/// Renders the whole log.
pub fn render(checked: &CheckedRun<'_>) -> String {
    let mut log = SarifLog::default();
    for finding in &checked.findings {
        log.push(rule(finding), result(finding));
    }
    log.render()
}

/// A diagnostic code as a rule. The texts are those of its page: the first sentence, the first paragraph, and all of
/// it.
fn rule(finding: &Finding) -> SarifRule {
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
    SarifRule {
        id: code.name().to_owned(),
        short: format!("{short}."),
        full: first,
        markdown: Some(body.to_owned()),
    }
}

fn result(finding: &Finding) -> SarifResult {
    let diagnostic = &finding.diagnostic;
    let help = diagnostic.help.as_ref().map_or(String::new(), |help| {
        format!(" Help: {}.", help.trim_end_matches('.'))
    });
    let help = help.replace("?.", "?");
    SarifResult {
        level: diagnostic.severity,
        message: format!("{}.", diagnostic.message),
        help,
        location: diagnostic.place().map(location),
        related: diagnostic.other_places().iter().map(related).collect(),
        workload: finding.workload.clone(),
        replacements: Vec::new(),
    }
}

fn location(place: &Place) -> SarifLocation {
    SarifLocation {
        file: place.source.to_string(),
        line: place.line,
        column: (!place.excerpt.is_empty()).then_some(place.column),
    }
}

fn related(label: &Label) -> (SarifLocation, String) {
    (location(&label.place), label.text.clone())
}
