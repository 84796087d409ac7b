//! The findings as JUnit XML: a test suite for each file, a test case for each workload.
//! Source: the format as its readers accept it, <https://github.com/testmoapp/junitxml>

use std::fmt::Write as _;

use super::{CheckedRun, Finding};
use crate::diagnostic::Severity;
use crate::outcome::ReportedFile;
use crate::wording::{is_unsafe, without_marks};

/// Renders the whole document.
pub fn render(checked: &CheckedRun<'_>) -> String {
    let mut suites = String::new();
    let (mut tests, mut failures) = (0, 0);
    for file in checked.files {
        let (suite, (cases, failed)) = suite(file, checked);
        suites.push_str(&suite);
        tests += cases;
        failures += failed;
    }
    let is_elsewhere = |finding: &&Finding| !checked.files.iter().any(|file| is_of(finding, file));
    let unplaced: Vec<&Finding> = checked.findings.iter().filter(is_elsewhere).collect();
    if !unplaced.is_empty() {
        let failed = usize::from(unplaced.iter().any(|finding| is_failure(finding)));
        let case = case("run", "podgraft", &unplaced);
        let _ = write!(
            suites,
            "  <testsuite name=\"podgraft\" tests=\"1\" failures=\"{failed}\" errors=\"0\">\n{case}  </testsuite>\n"
        );
        tests += 1;
        failures += failed;
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"podgraft check\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"0\">\n{suites}</testsuites>\n"
    )
}

fn is_of(finding: &Finding, file: &ReportedFile<'_>) -> bool {
    finding
        .place()
        .is_some_and(|place| *place.source == *file.name)
}

fn is_failure(finding: &Finding) -> bool {
    finding.diagnostic.severity == Severity::Error
}

fn about<'f>(findings: &[&'f Finding], workload: Option<&String>) -> Vec<&'f Finding> {
    let findings = findings.iter().copied();
    let same = findings.filter(|finding| finding.workload.as_ref() == workload);
    same.collect()
}

/// The suite of a file, with the number of its cases and of its failed cases.
fn suite(file: &ReportedFile<'_>, checked: &CheckedRun<'_>) -> (String, (usize, usize)) {
    let findings: Vec<&Finding> = checked
        .findings
        .iter()
        .filter(|finding| is_of(finding, file))
        .collect();
    let mut groups: Vec<(String, Vec<&Finding>)> = Vec::new();
    for workload in &file.report.workloads {
        let title = workload.title();
        let of_workload = about(&findings, Some(&title));
        groups.push((title, of_workload));
    }
    let rest = about(&findings, None);
    if !rest.is_empty() {
        groups.push(("other objects".to_owned(), rest));
    }
    let cases = groups
        .iter()
        .map(|(name, findings)| case(name, file.name, findings));
    let cases: String = cases.collect();
    let has_failed = |findings: &[&Finding]| findings.iter().any(|finding| is_failure(finding));
    let failed = groups
        .iter()
        .filter(|(_, findings)| has_failed(findings))
        .count();
    let (name, number) = (escape(file.name), groups.len());
    let suite = format!(
        "  <testsuite name=\"{name}\" tests=\"{number}\" failures=\"{failed}\" errors=\"0\">\n{cases}  </testsuite>\n"
    );
    (suite, (number, failed))
}

/// A test case with its findings. Readers accept one failure for each case, so all errors of a workload are one;
/// warnings and notes are output.
fn case(name: &str, class: &str, findings: &[&Finding]) -> String {
    let head = format!(
        "    <testcase name=\"{}\" classname=\"{}\"",
        escape(name),
        escape(class)
    );
    if findings.is_empty() {
        return format!("{head}/>\n");
    }
    let (failures, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| is_failure(finding));
    let mut case = format!("{head}>\n");
    if let Some(first) = failures.first() {
        let text: Vec<String> = failures.iter().map(|finding| describe(finding)).collect();
        let message = escape(&first.diagnostic.message);
        let kind = first.diagnostic.code.name();
        let text = escape(&text.join("\n"));
        let _ = writeln!(
            case,
            "      <failure message=\"{message}\" type=\"{kind}\">{text}</failure>"
        );
    }
    if !others.is_empty() {
        let text: Vec<String> = others.iter().map(|finding| describe(finding)).collect();
        let _ = writeln!(
            case,
            "      <system-out>{}</system-out>",
            escape(&text.join("\n"))
        );
    }
    case + "    </testcase>\n"
}

fn describe(finding: &Finding) -> String {
    let diagnostic = &finding.diagnostic;
    let place = finding.place().map_or(String::new(), |place| {
        format!("{}:{}: ", place.source, place.line)
    });
    let help = diagnostic
        .help
        .as_ref()
        .map_or(String::new(), |help| format!("\n  help: {help}"));
    format!(
        "{place}{}: {}{help}",
        diagnostic.code.name(),
        diagnostic.message
    )
}

/// Escapes a text for an element or a quoted attribute. Characters that XML 1.0 does not allow are written as Rust
/// escapes (`\u{1b}`).
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            c if is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.extend(c.escape_default())
            }
            c => escaped.push(c),
        }
    }
    without_marks(escaped, |sign| format!("&#{};", u32::from(sign)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_written_as_its_code() {
        assert_eq!(escape("a<\"&\u{1b}[m"), "a&lt;&quot;&amp;\\u{1b}[m");
    }
}
