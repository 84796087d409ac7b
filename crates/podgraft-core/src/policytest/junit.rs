//! Renders test results as JUnit XML for CI systems: each test is a test suite, each expectation a test case.

use std::fmt::Write as _;

use super::TestResult;
use crate::wording::xml as escape;

/// The XML document for all tests.
pub fn render(judged: &[TestResult]) -> String {
    let verdicts = judged.iter().map(|judged_test| judged_test.verdicts.len());
    let (tests, failed): (usize, usize) = (
        verdicts.sum(),
        judged.iter().map(TestResult::failures).sum(),
    );
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();

    let _ = writeln!(
        text,
        "<testsuites name=\"podgraft\" tests=\"{tests}\" failures=\"{failed}\">"
    );
    for judged_test in judged {
        let (name, file) = (
            escape(&judged_test.test.name),
            escape(&judged_test.test.file),
        );
        let (tests, failed) = (judged_test.verdicts.len(), judged_test.failures());
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" file=\"{file}\" tests=\"{tests}\" failures=\"{failed}\">"
        );
        for verdict in &judged_test.verdicts {
            let expectation = escape(&verdict.expectation);
            let _ = match &verdict.failure {
                None => writeln!(
                    text,
                    "    <testcase classname=\"{name}\" name=\"{expectation}\"/>"
                ),
                Some(failure) => writeln!(
                    text,
                    "    <testcase classname=\"{name}\" name=\"{expectation}\">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                    escape(failure.lines().next().unwrap_or_default()),
                    escape(failure),
                ),
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}
