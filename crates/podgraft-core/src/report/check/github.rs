//! The findings as annotations of a GitHub Actions run.
//! Source: <https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>

use super::{CheckedRun, pointer};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::Place;
use crate::wording::{self, one_line};

/// One workflow command for each finding.
pub fn render(checked: &CheckedRun<'_>) -> String {
    checked
        .findings
        .iter()
        .map(|finding| annotation(&finding.diagnostic))
        .collect()
}

fn annotation(diagnostic: &Diagnostic) -> String {
    let command = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    let is_file = |place: &&Place| !place.source.starts_with('<');
    // Text from stdin is no file of the repository.
    if let Some(place) = diagnostic.place().filter(is_file) {
        let file = one_line(place.source.trim_start_matches("./"));
        properties.push(format!("file={}", property(&file)));
        properties.push(format!("line={}", place.line));
        if !place.excerpt.is_empty() {
            properties.push(format!("col={}", place.column));
        }
    }
    let title = format!("podgraft: {}", diagnostic.code.name());
    properties.push(format!("title={}", property(&title)));
    let sentence = |text: &str| one_line(&wording::brief(text));
    let others = diagnostic.other_places().iter();
    let others: String = others
        .map(|label| format!("\n{}", pointer(label)))
        .collect();
    let help = diagnostic
        .help
        .as_ref()
        .map_or(String::new(), |help| format!("\n{}", sentence(help)));
    let message = sentence(&diagnostic.message);
    let message = value(&format!("{message}{others}{help}"));
    format!("::{command} {}::{message}\n", properties.join(","))
}

fn value(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    value(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_command_early_is_escaped() {
        assert_eq!(
            property("a,b: 100%\n::error::x"),
            "a%2Cb%3A 100%25%0A%3A%3Aerror%3A%3Ax"
        );
    }
}
