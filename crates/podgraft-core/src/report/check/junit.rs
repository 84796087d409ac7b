//! The findings as JUnit XML: a test suite for each file, a test case for each workload.
//! Source: the format as its readers accept it, <https://github.com/testmoapp/junitxml>

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{CheckedRun, Finding, Subject};
use crate::diagnostic::Severity;
use crate::outcome::ReportedFile;
use crate::wording::xml as escape;

/// The findings by what they are about. Each finding is in one group.
type Groups<'f> = HashMap<Subject, Vec<&'f Finding>>;

/// Renders the whole document.
pub fn render(checked: &CheckedRun<'_>) -> String {
    let mut groups: Groups<'_> = HashMap::new();
    for finding in &checked.findings {
        groups.entry(finding.subject).or_default().push(finding);
    }
    let mut suites = String::new();
    let (mut tests, mut failures) = (0, 0);
    for (index, file) in checked.files.iter().enumerate() {
        let (suite, (cases, failed)) = suite(file, index, &groups);
        suites.push_str(&suite);
        tests += cases;
        failures += failed;
    }
    if let Some(unplaced) = groups.get(&Subject::Run) {
        let failed = usize::from(has_failed(unplaced));
        let case = case("run", "podgraft", unplaced);
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

fn is_failure(finding: &Finding) -> bool {
    finding.diagnostic.severity == Severity::Error
}

fn has_failed(findings: &[&Finding]) -> bool {
    findings.iter().any(|finding| is_failure(finding))
}

/// The suite of a file, with the number of its cases and of its failed cases.
fn suite(file: &ReportedFile<'_>, index: usize, groups: &Groups<'_>) -> (String, (usize, usize)) {
    let (mut cases, mut number, mut failed) = (String::new(), 0, 0);
    let mut add = |name: &str, findings: &[&Finding]| {
        cases += &case(name, file.name, findings);
        number += 1;
        failed += usize::from(has_failed(findings));
    };
    for (at, workload) in file.report.workloads.iter().enumerate() {
        let findings = groups.get(&Subject::Workload(index, at));
        add(&workload.title(), findings.map_or(&[], Vec::as_slice));
    }
    if let Some(rest) = groups.get(&Subject::OtherObject(index)) {
        add("other objects", rest);
    }
    let name = escape(file.name);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_written_as_its_code() {
        assert_eq!(escape("a<\"&\u{1b}[m"), "a&lt;&quot;&amp;\\u{1b}[m");
    }
}
