//! The findings as JUnit XML: a test suite for each file, a test case for each workload.
//! Source: the format as its readers accept it, <https://github.com/testmoapp/junitxml>

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{CheckedRun, Finding, Subject, pointer};
use crate::diagnostic::Severity;
use crate::wording::xml as escape;

/// The name of a suite, and of each of its cases with the findings of the case.
type Suite<'f> = (&'f str, Vec<(String, &'f [&'f Finding])>);

/// Renders the whole document.
pub fn render(checked: &CheckedRun<'_>) -> String {
    // Each finding is in one group.
    let mut groups: HashMap<Subject, Vec<&Finding>> = HashMap::new();
    for finding in &checked.findings {
        groups.entry(finding.subject).or_default().push(finding);
    }
    let found = |subject| groups.get(&subject).map(Vec::as_slice);
    let mut suites: Vec<Suite<'_>> = Vec::new();
    for (index, file) in checked.files.iter().enumerate() {
        let workloads = file.report.workloads.iter().enumerate();
        let cases = workloads.map(|(at, workload)| {
            let findings = found(Subject::Workload(index, at));
            (workload.title(), findings.unwrap_or_default())
        });
        let others = found(Subject::OtherObject(index));
        let others = others.map(|others| ("other objects".to_owned(), others));
        suites.push((file.name, cases.chain(others).collect()));
    }
    let unplaced = found(Subject::Run);
    suites.extend(unplaced.map(|unplaced| ("podgraft", vec![("run".to_owned(), unplaced)])));
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"podgraft check\""
            .to_owned();
    add_numbers(suites.iter().flat_map(|(_, cases)| cases), &mut text);
    for (name, cases) in &suites {
        let _ = write!(text, "  <testsuite name=\"{}\"", escape(name));
        add_numbers(cases.iter(), &mut text);
        let cases = cases.iter();
        text.extend(cases.map(|(title, findings)| case(title, name, findings)));
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}

/// Adds the numbers of the cases and of those that failed, and ends the tag.
fn add_numbers<'f>(
    cases: impl Iterator<Item = &'f (String, &'f [&'f Finding])> + Clone,
    text: &mut String,
) {
    let has_failed = |findings: &[&Finding]| findings.iter().any(|finding| is_failure(finding));
    let tests = cases.clone().count();
    let failed = cases.filter(|(_, findings)| has_failed(findings)).count();
    let _ = writeln!(
        text,
        " tests=\"{tests}\" failures=\"{failed}\" errors=\"0\">"
    );
}

fn is_failure(finding: &Finding) -> bool {
    finding.diagnostic.severity == Severity::Error
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
    let place = diagnostic.place().map_or(String::new(), |place| {
        format!("{}:{}: ", place.source, place.line)
    });
    let others = diagnostic.other_places().iter();
    let others: String = others
        .map(|label| format!("\n  {}", pointer(label)))
        .collect();
    let help = diagnostic
        .help
        .as_ref()
        .map_or(String::new(), |help| format!("\n  help: {help}"));
    format!(
        "{place}{}: {}{others}{help}",
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
