//! Makes text of others safe and short enough for people: on a terminal, in a log, in a comment. Manifests, policies
//! and file names may hold anything.

use memchr::memmem::Finder;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;
use textwrap::{WordSeparator, WordSplitter};

use serde::Serialize;
use serde_json::Value;

use crate::diagnostic::Severity;
use crate::yaml::scalar::is_hidden;

/// A word or quotation with more characters is cut to its beginning.
const LONGEST: usize = 300;
/// Characters of a word or quotation that is cut.
const BEGINNING: usize = 100;
/// A sentence with more bytes is cut.
const MOST: usize = 6000;

/// One of them is in each command that a CI system obeys anywhere in a line.
static WORDS_OF_MARKS: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| ["##", "section_"].map(Finder::new));

/// Whether a character must not be shown as it is: terminals obey control characters, and hidden characters mislead
/// readers.
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || is_hidden(c)
}

/// The byte offsets of commands that CI systems obey anywhere in a line of a job's log: `##` and a word before a
/// bracket (`##[` in GitHub's runner, `##vso[` in Azure's agent, `##teamcity[`), and GitLab's section markers.
/// Sources: <https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs>,
/// <https://github.com/microsoft/azure-pipelines-agent/blob/master/src/Agent.Sdk/CommandPlugin.cs>,
/// <https://docs.gitlab.com/ci/jobs/job_logs/#custom-collapsible-sections>
fn marks(text: &str) -> impl Iterator<Item = usize> + '_ {
    let hashes = (0..text.len()).filter(|&at| text.as_bytes()[at..].starts_with(b"##"));
    let hashes = hashes.filter(|at| {
        let rest = text[at + 2..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        rest.starts_with('[')
    });
    let sections = ["section_start:", "section_end:"];
    let colons = sections.into_iter().flat_map(|mark| {
        text.match_indices(mark)
            .map(move |(at, _)| at + mark.len() - 1)
    });
    hashes.chain(colons)
}

/// Disarms commands of CI systems: `escape` rewrites one character of each.
pub(crate) fn without_marks(text: String, escape: impl Fn(char) -> String) -> String {
    let mut words = WORDS_OF_MARKS.iter();
    if !words.any(|word| word.find(text.as_bytes()).is_some()) {
        return text;
    }
    let mut places: Vec<usize> = marks(&text).collect();
    places.sort_unstable();
    let mut escaped = text;
    for at in places.into_iter().rev() {
        let sign = char::from(escaped.as_bytes()[at]);
        escaped.replace_range(at..=at, &escape(sign));
    }
    escaped
}

/// Escapes a text for an element or a quoted attribute. Characters that XML 1.0 does not allow are written as Rust
/// escapes (`\u{1b}`).
pub(crate) fn xml(text: &str) -> String {
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

fn as_escape(sign: char) -> String {
    sign.escape_unicode().to_string()
}

/// Disarms commands of CI systems in the lines of a log. The lines are made of parts that are safe by themselves, but
/// folding may have moved a `::` to the start of a line, which GitHub's runner obeys, also after blanks.
pub fn for_log(text: String) -> String {
    let text = without_marks(text, as_escape);
    let is_command = |line: &str| line.trim_start().starts_with("::");
    if !text.lines().any(is_command) {
        return text;
    }
    let escape_command = |line: &str| match is_command(line) {
        true => line.replacen(':', &as_escape(':'), 1),
        false => line.to_owned(),
    };
    text.split('\n')
        .map(escape_command)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Makes a text safe for one line: unsafe characters, also line ends and tabs, are written as escapes (`\n`,
/// `\u{202e}`).
pub fn one_line(text: &str) -> String {
    escaped(text, is_unsafe)
}

/// Like [`one_line`], but keeps line ends and tabs.
pub fn lines(text: &str) -> String {
    escaped(text, |c| is_unsafe(c) && !matches!(c, '\n' | '\t'))
}

/// Quotes a word for a POSIX shell.
pub fn shell_word(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_=./:,@%+".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", one_line(word).replace('\'', r"'\''"))
}

/// Quotes a path for a POSIX shell, so that no command takes it for a flag.
pub fn shell_path(path: &str) -> String {
    match path.starts_with('-') && path != "-" {
        true => shell_word(&format!("./{path}")),
        false => shell_word(path),
    }
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    let is_printable = |byte: u8| match byte {
        b' '..=b'~' => true,
        _ => byte.is_ascii() && !is_unsafe(char::from(byte)),
    };
    if text.bytes().all(is_printable) || !text.contains(&is_unsafe) {
        return without_marks(text.to_owned(), as_escape);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            escaped.extend(c.escape_default())
        } else {
            escaped.push(c)
        }
    }
    without_marks(escaped, as_escape)
}

/// Data as indented JSON with a line end, safe to show.
pub fn pretty_json(data: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(data);
    json(text.expect("strings, numbers and lists of these are always JSON")) + "\n"
}

/// A JSON object without its fields that are null.
pub(crate) fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// Writes the unsafe characters of a JSON text as escapes (`\u202e`), without changing its meaning.
pub fn json(json: String) -> String {
    // JSON strings escape the control characters below U+0020 already; the ones left, such as line ends, are between
    // the strings.
    let is_unsafe = |c: char| is_unsafe(c) && !c.is_ascii() || c == '\u{7f}';
    let json = without_marks(json, |sign| format!("\\u{:04x}", u32::from(sign)));
    let is_plain = json.is_ascii() && memchr::memchr(0x7f, json.as_bytes()).is_none();
    if is_plain || !json.contains(is_unsafe) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match is_unsafe(c) {
            true => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            false => escaped.push(c),
        }
    }
    escaped
}

/// Options to wrap a text between words, with an indentation for all lines but the first.
pub fn wrap_options(width: usize, indent: &str) -> textwrap::Options<'_> {
    let options = textwrap::Options::new(width)
        .subsequent_indent(indent)
        .break_words(false);
    // Words are split at blanks only, so names and paths stay whole.
    options
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
}

/// Cuts very long words, and quotations in backticks, to their beginning: a value may be as long as a book.
pub fn brief(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    let parts = text
        .split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            0 => part.split(' ').map(beginning).collect::<Vec<_>>().join(" "),
            _ => beginning(part).into_owned(),
        });
    let mut brief = parts.collect::<Vec<_>>().join("`");
    if brief.len() > MOST {
        brief.truncate(brief.floor_char_boundary(MOST));
        brief.push_str("...");
    }
    Cow::Owned(brief)
}

fn beginning(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(BEGINNING) {
        Some((end, _)) if text.chars().nth(LONGEST).is_some() => {
            Cow::Owned(format!("{}...", &text[..end]))
        }
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// Whether text is rendered with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Without colours.
    Plain,
    /// With ANSI colours.
    Colours,
}

impl Paint {
    /// Wraps a text in the ANSI codes of a style (`1`, `32`) if colours are on.
    pub(crate) fn wrap(self, style: &str, text: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Colours => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
        }
    }
}

/// A severity in one word.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The numbers of the diagnostics with each severity, without those of which there are none: `2 errors, 1 warning`.
pub fn severities(number_of: impl Fn(Severity) -> usize) -> String {
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    let numbers = all.map(|of| (number_of(of), severity(of)));
    let found = numbers.into_iter().filter(|(number, _)| *number > 0);
    let found: Vec<String> = found.map(|(number, word)| count(number, word)).collect();
    found.join(", ")
}

/// A number with its noun: `1 workload`, `2 workloads`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str = "\u{1b}\u{7}\u{9b}\u{85}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{200b}\u{2060}\u{ad}\u{e0041}\r";

    #[test]
    fn what_a_terminal_obeys_or_a_reader_is_misled_by_is_an_escape() {
        assert!(ODD.chars().all(is_unsafe));
        assert_eq!(
            one_line("a\n\t\u{9b}31m\u{202e}b"),
            "a\\n\\t\\u{9b}31m\\u{202e}b"
        );
        assert_eq!(lines("a\n\t\u{200f}b"), "a\n\t\\u{200f}b");
        for shown in [one_line(ODD), lines(ODD)] {
            assert!(
                shown.is_ascii() && !shown.contains(char::is_control),
                "{shown:?}"
            );
        }
    }

    #[test]
    fn a_command_to_what_runs_a_step_is_none_any_more() {
        for (text, shown) in [
            ("x ##[error]y", "x \\u{23}#[error]y"),
            ("###[a] ##vso[b]", "#\\u{23}#[a] \\u{23}#vso[b]"),
            ("section_start:1:a", "section_start\\u{3a}1:a"),
            ("## a [b]", "## a [b]"),
        ] {
            assert_eq!(one_line(text), shown);
            let written = json(serde_json::json!(text).to_string());
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
            assert_eq!(marks(&written).count(), 0, "{written}");
        }
        assert_eq!(
            for_log("a\n  ::error::x ##\n[b".to_owned()),
            "a\n  \\u{3a}:error::x ##\n[b"
        );
    }

    #[test]
    fn what_people_write_stays_readable() {
        let text = "Größe 名前 שלום مرحبا 👩\u{200d}💻 नमस्\u{200c}ते e\u{301}";
        assert_eq!(
            (one_line(text), lines(text)),
            (text.to_owned(), text.to_owned())
        );
    }

    #[test]
    fn json_means_the_same() {
        let text = format!("x{ODD}\n\u{7f}é");
        let value = serde_json::json!({ "k": text });
        let written = json(serde_json::to_string_pretty(&value).unwrap());
        assert!(
            !written.contains(|c: char| is_unsafe(c) && c != '\n'),
            "{written:?}"
        );
        assert!(written.contains("\\u202e") && written.contains('é'));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&written).unwrap(),
            value
        );
    }

    #[test]
    fn a_long_value_is_shown_by_its_beginning() {
        let (long, words) = ("ä".repeat(5000), "so many words ".repeat(400));
        let shown = format!("{}...", "ä".repeat(100));
        let text = format!("the value `{long}` does not fit `x`, {long} does");
        assert_eq!(
            brief(&text),
            format!("the value `{shown}` does not fit `x`, {shown} does")
        );
        assert_eq!(
            brief(&format!("`{words}` is long")),
            format!("`{}...` is long", &words[..100])
        );
        assert_eq!(brief(&words), words);
        assert!(brief(&words.repeat(9)).len() < 7000);
    }
}
