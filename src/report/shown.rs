//! Text that others wrote, made fit for people: on a terminal, in a log, in a comment. Manifests, policies and file names may
//! hold anything.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A longer word or quotation is shown by its beginning.
const LONGEST: usize = 300;
const BEGINNING: usize = 100;
/// A longer sentence is cut.
const MOST: usize = 6000;

/// Whether people must not get the character as it is: a terminal obeys control characters, direction marks change what a
/// line seems to say, and some programs end a line at a separator that others do not see. Joiners are none of these: words
/// and emoji need them.
/// Source: <https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters>
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text that is to stand in one line: what is unsafe, a line end and a tab too, is written as an escape (`\n`, `\u{202e}`).
pub fn one_line(text: &str) -> String {
    escaped(text, is_unsafe)
}

/// The same for text that has line ends and tabs of its own.
pub fn lines(text: &str) -> String {
    escaped(text, |c| is_unsafe(c) && !matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    if !text.contains(&is_unsafe) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            escaped.extend(c.escape_default())
        } else {
            escaped.push(c)
        }
    }
    escaped
}

/// JSON that means the same, with what is unsafe in its strings as `\u202e`.
pub fn json(json: String) -> String {
    // Other control characters stand in no string of JSON, but between them.
    let is_unsafe = |c: char| is_unsafe(c) && !c.is_ascii() || c == '\u{7f}';
    if !json.contains(is_unsafe) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match is_unsafe(c) {
            true => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            false => escaped.push(c),
        }
    }
    escaped
}

/// A sentence in which very long words and quotations in backticks are shown by their beginning: a value may be a book.
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

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str = "\u{1b}\u{7}\u{9b}\u{85}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\r";

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
