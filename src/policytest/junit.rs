//! Verdicts as JUnit XML, which CI systems show: a test suite a test, a test case an expectation.

use std::fmt::Write as _;

use super::Judged;
use crate::wording::is_unsafe;

/// All tests.
pub fn render(judged: &[Judged]) -> String {
    let count = |of: &dyn Fn(&Judged) -> usize| judged.iter().map(of).sum::<usize>();
    let failures = |one: &Judged| {
        one.verdicts
            .iter()
            .filter(|verdict| verdict.failure.is_some())
            .count()
    };
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let (tests, failed) = (count(&|one| one.verdicts.len()), count(&failures));
    let _ = writeln!(
        text,
        "<testsuites name=\"podgraft\" tests=\"{tests}\" failures=\"{failed}\">"
    );
    for one in judged {
        let (name, file) = (escape(&one.test.name), escape(&one.test.file));
        let (tests, failed) = (one.verdicts.len(), failures(one));
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" file=\"{file}\" tests=\"{tests}\" failures=\"{failed}\">"
        );
        for verdict in &one.verdicts {
            let what = escape(&verdict.what);
            let _ = match &verdict.failure {
                None => writeln!(text, "    <testcase classname=\"{name}\" name=\"{what}\"/>"),
                Some(failure) => writeln!(
                    text,
                    "    <testcase classname=\"{name}\" name=\"{what}\">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                    escape(failure.lines().next().unwrap_or_default()),
                    escape(failure),
                ),
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}

/// Text of XML; characters that XML cannot hold, or people must not get, are left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(char),
            other if is_unsafe(other) || matches!(other, '\u{fffe}' | '\u{ffff}') => {}
            other => escaped.push(other),
        }
    }
    escaped
}
