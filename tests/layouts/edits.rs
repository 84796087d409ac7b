//! What people do to a file between two runs, without touching what was injected.

use serde_json::Value;

use crate::worlds::values;
use crate::yaml_files::mutants::Random;

const NOTE: &str = "# a note of somebody";
const APPENDED: &str = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: appended}\n";

/// One edit of a text, and the same of the text that undo is to give back.
#[derive(Debug, Clone, Copy)]
pub enum HandEdit {
    LineEnds,
    LastLineEnd,
    Append,
    Comment,
    CommentAbove,
    Swap,
}

impl HandEdit {
    pub fn pick(random: &mut Random) -> Self {
        use HandEdit::{Append, Comment, CommentAbove, LastLineEnd, LineEnds, Swap};
        let edits = [
            LineEnds,
            LastLineEnd,
            Append,
            Comment,
            Comment,
            CommentAbove,
            Swap,
        ];
        edits[random.below(edits.len())]
    }

    /// The text after the edit. `original` is the text that undo is to give back.
    pub fn of(self, text: &str, original: &str, random: &mut Random) -> String {
        let edited = match self {
            HandEdit::LineEnds if text.contains('\r') => text.replace("\r\n", "\n"),
            HandEdit::LineEnds => text.replace('\n', "\r\n"),
            HandEdit::LastLineEnd if text.ends_with('\n') => text.trim_end().to_owned(),
            HandEdit::LastLineEnd => format!("{text}\n"),
            HandEdit::Append => format!("{}\n{APPENDED}", text.trim_end()),
            HandEdit::Comment => with_note(text, original, random),
            HandEdit::CommentAbove => with_notes_above(text),
            HandEdit::Swap => swapped(text),
        };
        let is_same = match self {
            HandEdit::Append => values(&edited).starts_with(&values(text)),
            HandEdit::Swap => sorted(values(&edited)) == sorted(values(text)),
            _ => values(&edited) == values(text),
        };
        if is_same { edited } else { text.to_owned() }
    }

    /// What is lost of a text that was edited like this, where undo gave back another one.
    pub fn lost(edited: &str, undone: &str, original: &str) -> Option<&'static str> {
        let mut wanted = values(original);
        if edited.contains(APPENDED) || edited.contains(&APPENDED.replace('\n', "\r\n")) {
            wanted.push(values(APPENDED).remove(0));
        }
        let is_complete = sorted(values(undone)) == sorted(wanted);
        let has_notes = undone.matches(NOTE).count() == edited.matches(NOTE).count();
        match (is_complete, has_notes) {
            (true, true) => None,
            (false, _) => Some("values"),
            (_, false) => Some("a comment"),
        }
    }
}

/// Documents and their fields in an order that does not depend on that of the text.
fn sorted(mut documents: Vec<Value>) -> Vec<String> {
    documents.iter_mut().for_each(Value::sort_all_objects);
    let mut texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    texts.retain(|text| text != "null");
    texts.sort();
    texts
}

/// A comment in the middle of four lines that stand together in the original, too.
fn with_note(text: &str, original: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = random.below(lines.len());
    let mut places = (0..lines.len()).map(|at| (first + at) % lines.len());
    let is_original = |&at: &usize| {
        let around = lines.get(at.wrapping_sub(2)..at + 2);
        // What is injected may have the lines of something that people wrote.
        let around = around.map(<[&str]>::concat);
        let times = |around: &str| [text, original].map(|text| text.matches(around).count());
        around
            .map(|around| times(&around))
            .is_some_and(|[now, before]| now == before)
    };
    let Some(at) = places.find(is_original) else {
        return text.to_owned();
    };
    let pad = &lines[at][..lines[at].len() - lines[at].trim_start_matches(' ').len()];
    let end = if text.contains('\r') { "\r\n" } else { "\n" };
    let note = format!("{pad}{NOTE}{end}");
    [&lines[..at].concat(), &note, &lines[at..].concat()]
        .map(String::as_str)
        .concat()
}

/// A comment at the beginning of each document but the first.
fn with_notes_above(text: &str) -> String {
    let end = if text.contains('\r') { "\r\n" } else { "\n" };
    let separator = format!("{end}---{end}");
    text.replace(&separator, &format!("{separator}{NOTE}{end}"))
}

/// The first document behind the others.
fn swapped(text: &str) -> String {
    match text.find("\n---\n") {
        Some(at) if text.ends_with('\n') => {
            format!("{}---\n{}\n", &text[at + 5..], &text[..at])
        }
        _ => text.to_owned(),
    }
}
