//! Narrows the excerpt of a place where JSON stands on one line. Such a line may hold a whole file, with Secrets beside
//! the place.

use std::borrow::Cow;
use std::ops::Range;

use crate::source::Place;

/// Stands for text that is left out.
pub(crate) const GAP: &str = "…";

/// The place with the part of its line to show. Of JSON on one line, that is the innermost object or list around the
/// place, without what is nested in it beside the place. Other lines stay as they are.
pub fn narrowed(place: &Place) -> Cow<'_, Place> {
    let line = place.excerpt.as_str();
    let Some(before) = line.get(..place.start) else {
        return Cow::Borrowed(place);
    };
    let is_cut = before.chars().count() + 1 < place.column;
    if !may_hold_objects(line, is_cut) {
        return Cow::Borrowed(place);
    }
    let from = match line[place.start..].starts_with(['{', '[']) {
        true => place.start,
        false => start_of_innermost(before, is_cut),
    };
    let gap = match line[..from].trim() {
        "" if !is_cut => &line[..from],
        _ => GAP,
    };
    let (shown, span) = show_level(
        &line[from..],
        place.start - from..place.end.max(from) - from,
    );
    Cow::Owned(Place {
        source: place.source.clone(),
        start: gap.len() + span.start,
        end: gap.len() + span.end,
        excerpt: format!("{gap}{shown}"),
        ..*place
    })
}

/// The text up to the end of its first object or list, without what is nested in it, and where a span is in the result.
/// A text that begins within an object goes up to the end of that.
fn show_level(text: &str, span: Range<usize>) -> (String, Range<usize>) {
    let shown_depth = usize::from(text.starts_with(['{', '[']));
    let (mut shown, mut depth, mut brackets) = (String::new(), 0, Brackets::default());
    let (mut start, mut end) = (None, None);
    for (at, char) in text.char_indices() {
        if at == span.start {
            start = Some(shown.len());
        }
        if at == span.end {
            end = Some(shown.len());
        }
        let bracket = brackets.next(char);
        let is_end = bracket == Some(Bracket::Close) && depth <= shown_depth;
        depth -= usize::from(bracket == Some(Bracket::Close) && depth > 0);
        if depth <= shown_depth && !(is_end && shown_depth == 0) {
            shown.push(char);
        }
        if bracket == Some(Bracket::Open) {
            if depth == shown_depth {
                shown.push_str(GAP);
            }
            depth += 1;
        }
        if is_end {
            end = end.or((span.end <= at + 1).then_some(shown.len()));
            shown.push_str(match text[at + 1..].trim() {
                "" | "," if shown_depth > 0 => &text[at + 1..],
                _ => GAP,
            });
            break;
        }
    }
    let end = end.unwrap_or(shown.len());
    (shown, start.unwrap_or(end)..end)
}

/// Whether the line looks like JSON that may hold several objects, or holds a Secret. `{{` begins a template.
fn may_hold_objects(line: &str, is_cut: bool) -> bool {
    let text = line.trim_start();
    let is_json = text.starts_with(['{', '[']) && !text.starts_with("{{");
    let has_secret = ["\"Secret\"", "kind: Secret"]
        .iter()
        .any(|kind| line.contains(kind));
    is_json || has_secret || is_cut && line.contains("\":")
}

/// The offset of the innermost bracket that is open at the end of a text. If there is none, the offset behind the last
/// object that ends in the text.
fn start_of_innermost(before: &str, is_cut: bool) -> usize {
    let mut brackets = Brackets::default();
    // A cut text may begin in quotes. A place does not.
    if is_cut && before.matches('"').count() % 2 == 1 {
        brackets.quote = Some('"');
    }
    let (mut open, mut behind) = (Vec::new(), 0);
    for (at, char) in before.char_indices() {
        match brackets.next(char) {
            Some(Bracket::Open) => open.push(at),
            Some(Bracket::Close) if open.pop().is_none() => behind = at + 1,
            Some(Bracket::Close) | None => {}
        }
    }
    open.pop().unwrap_or(behind)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Open,
    Close,
}

/// Whether each bracket of a line has its counterpart there. The others belong to a collection of several lines, of which
/// the line is only a part.
pub(crate) fn is_balanced(line: &str) -> bool {
    let (mut depth, mut brackets) = (0_usize, Brackets::default());
    let mut chars = line.chars();
    let is_closed = chars.all(|char| match brackets.next(char) {
        Some(Bracket::Open) => {
            depth += 1;
            true
        }
        Some(Bracket::Close) => depth.checked_sub(1).map(|rest| depth = rest).is_some(),
        None => true,
    });
    is_closed && depth == 0
}

/// Finds the brackets of a flow collection that stand outside of quotes.
#[derive(Debug, Default)]
struct Brackets {
    quote: Option<char>,
    is_escaped: bool,
    /// The last character that is no blank.
    last: char,
}

impl Brackets {
    /// Takes the next character.
    fn next(&mut self, char: char) -> Option<Bracket> {
        if let Some(quote) = self.quote {
            if char == quote && !self.is_escaped {
                self.quote = None;
                self.last = char;
            }
            self.is_escaped = quote == '"' && char == '\\' && !self.is_escaped;
            return None;
        }
        // A quote within a plain scalar of YAML is a character like any other.
        let begins_value = matches!(self.last, '\0' | '{' | '[' | ',' | ':' | '-');
        if !char.is_whitespace() {
            self.last = char;
        }
        match char {
            '"' | '\'' if begins_value => self.quote = Some(char),
            '{' | '[' => return Some(Bracket::Open),
            '}' | ']' => return Some(Bracket::Close),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    /// What is shown of a line where `label` stands, with the label in brackets.
    fn shown(line: &str, label: &str) -> String {
        let at = line.find(label).expect("the label is in the line");
        let place = Source::new("a.json", line).place(at..at + label.len());
        let place = narrowed(&place);
        let (before, rest) = place.excerpt.split_at(place.start);
        let (label, behind) = rest.split_at(place.end - place.start);
        format!("{before}<{label}>{behind}")
    }

    const SECRET: &str = r#"{"kind":"Secret","metadata":{"name":"s"},"data":{"k":"leak}\""}}"#;
    const WORKLOAD: &str =
        r#"{"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"app"}]}}"#;

    #[test]
    fn of_a_document_on_one_line_the_innermost_object_is_shown() {
        let list = format!(r#"{{"kind":"List","items":[{SECRET},{WORKLOAD}]}}"#);
        for (label, wanted) in [
            (r#""app""#, r#"…{"name":<"app">}…"#),
            (
                r#""Pod""#,
                r#"…{"kind":<"Pod">,"metadata":{…},"spec":{…}}…"#,
            ),
            (r#""List""#, r#"{"kind":<"List">,"items":[…]}"#),
            (WORKLOAD, r#"…<{"kind":"Pod","metadata":{…},"spec":{…}}>…"#),
        ] {
            assert_eq!(shown(&list, label), wanted);
        }
    }

    #[test]
    fn a_line_that_is_cut_shows_nothing_of_what_it_cuts() {
        let secret = SECRET.replace("leak", &"leak".repeat(200));
        let list = format!("[{secret},{WORKLOAD},{secret}]");
        assert_eq!(
            shown(&list, r#""Pod""#),
            r#"…{"kind":<"Pod">,"metadata":{…},"spec":{…}}…"#
        );
        let behind = format!(
            r#"{{"data":{{"k":"{}"}},"kind":"Secret"}}"#,
            "leak".repeat(50)
        );
        assert_eq!(
            shown(&behind, r#""Secret""#),
            r#"{"data":{…},"kind":<"Secret">}"#
        );
        let behind = behind.replace("leak", "leakleakleak");
        assert_eq!(shown(&behind, r#""Secret""#), r#"…,"kind":<"Secret">…"#);
    }

    #[test]
    fn yaml_and_json_of_many_lines_are_shown_as_they_are() {
        for line in [
            r#"  {"name": "a", "value": "b"},"#,
            "  - {name: a, env: [{name: b}]}",
            "metadata: {name: it's}",
            "    imagePullSecrets: [{name: a}]",
            "    {{ include }}",
            "x: [",
        ] {
            let place = Source::new("a.yaml", line).place(5..6);
            assert_eq!(*narrowed(&place), place);
        }
    }
}
