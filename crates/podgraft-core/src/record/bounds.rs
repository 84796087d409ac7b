//! Limits of what a record may contain: it must fit into a document.

use serde::Deserialize;
use serde_json::{Deserializer, Value};

use super::{Effects, Record};
use crate::yaml::parse::MAX_DEPTH;

/// Levels of nesting in the record around a stored value.
const AROUND: usize = 8;

/// The most characters of a path that a message shows.
const SHOWN: usize = 60;

impl Record {
    /// Returns why its contents fit in no document: something is nested deeper than [`MAX_DEPTH`]. `None` if they
    /// fit.
    pub(super) fn beyond_documents(&self) -> Option<String> {
        let template = self.paths().template_keys().count();
        if template > MAX_DEPTH {
            return Some(too_deep("its pod template", &self.pod));
        }
        let effects = self
            .policies
            .iter()
            .map(|policy| &policy.effects)
            .chain([&self.marker]);
        let mut paths = effects.flat_map(paths_of);
        let (path, _) = paths.find(|(path, value)| {
            let steps = match path.strip_prefix("pod/") {
                Some(rest) => template + steps_of(rest),
                None => steps_of(path),
            };
            // Only a scalar fits at a path of the greatest length.
            steps > MAX_DEPTH || value.is_some_and(|value| !nests_at_most(value, MAX_DEPTH - steps))
        })?;
        Some(too_deep("its path", path))
    }
}

fn too_deep(subject: &str, text: &str) -> String {
    let text = shown(text);
    format!("{subject} `{text}` is deeper than the limit of {MAX_DEPTH} levels for documents")
}

/// Parses a record's text. Checks the depth itself, since `serde_json`'s recursion limit is half of what documents
/// may nest.
///
/// # Errors
/// In words.
pub(super) fn from_json(text: &str) -> Result<Value, String> {
    // Counts brackets outside of strings: the parser below recurses as deep as they nest.
    let (mut depth, mut in_text, mut bytes) = (0_usize, false, text.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_text = !in_text,
            b'\\' if in_text => drop(bytes.next()),
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH + AROUND {
            return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
        }
    }
    let mut reader = Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| error.to_string())
}

fn steps_of(path: &str) -> usize {
    path.split('/').count()
}

/// Returns every path of a record, with the value that undo restores there, if any.
fn paths_of(effects: &Effects) -> impl Iterator<Item = (&String, Option<&Value>)> {
    let Effects {
        added,
        shared,
        made,
        filled,
        joined,
        replaced,
        removed,
        present,
    } = effects;
    let items = added.keys().chain(shared.keys()).chain(present);
    let alone = items.chain(made).chain(joined.keys());
    let replaced = replaced.iter().map(|(path, found)| (path, &found.was));
    let removed = removed.iter().map(|(path, found)| (path, &found.was));
    let originals = filled.iter().chain(replaced).chain(removed);
    let alone = alone.map(|path| (path, None));
    alone.chain(originals.map(|(path, original)| (path, Some(original))))
}

fn nests_at_most(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Object(fields), Some(levels)) => {
            fields.values().all(|value| nests_at_most(value, levels))
        }
        (Value::Array(items), Some(levels)) => {
            items.iter().all(|value| nests_at_most(value, levels))
        }
        (Value::Object(_) | Value::Array(_), None) => false,
        _ => true,
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
