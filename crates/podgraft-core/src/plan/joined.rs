//! Joins a text to the value of a variable, and finds what is left of a variable without it.

use crate::policy::{EnvChange, EnvOp};
use crate::record::{JoinedText, has_token, without};

use super::draft::{Draft, DraftValue};

/// Joins `addition` to `old` by the entry's operation. Returns `old` if it has the addition already.
pub(super) fn joined(old: &str, addition: &str, change: &EnvChange) -> String {
    // The final line break of a block scalar is not part of the flags: the addition goes before it, without its own.
    let (body, addition) = (old.trim_end_matches('\n'), addition.trim_end_matches('\n'));
    let tail = &old[body.len()..];
    let separator = &change.separator;
    if body.is_empty() {
        return addition.to_owned();
    }
    match change.op {
        EnvOp::MergeKeys => merged(body, addition, separator) + tail,
        _ if has_token(body, addition, separator) => old.to_owned(),
        EnvOp::Prepend => format!("{addition}{separator}{old}"),
        EnvOp::Set | EnvOp::SetIfAbsent | EnvOp::Append | EnvOp::Remove => {
            let between = if body.ends_with(separator.as_str()) {
                ""
            } else {
                separator
            };
            format!("{body}{between}{addition}{tail}")
        }
    }
}

fn key_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(key, _)| key).trim()
}

/// Merges `k=v` pairs; existing keys keep their values.
fn merged(old: &str, addition: &str, separator: &str) -> String {
    let old_keys: Vec<&str> = old.split(separator).map(key_of).collect();
    // Where the text before a pair ends like the separator begins, the split does not show the pair.
    let is_there = |pair: &str| old_keys.contains(&key_of(pair)) || has_token(old, pair, separator);
    let added = addition
        .split(separator)
        .filter(|pair| !pair.is_empty() && !is_there(pair));
    added.fold(old.to_owned(), |text, pair| {
        if text.ends_with(separator) {
            text + pair
        } else {
            text + separator + pair
        }
    })
}

/// What is left of a variable without a joined text.
pub(super) enum JoinRest {
    /// The variable no longer contains the text.
    Changed,
    /// The variable at this index keeps this text.
    Text { index: usize, text: String },
    /// The variable at this index goes; the one at `original` had its name before.
    Nothing {
        index: usize,
        original: Option<usize>,
    },
}

/// Returns what is left of a variable without the joined text. `None` if the variable is gone.
pub(super) fn rest_of(
    draft: &Draft<'_>,
    variables: &DraftValue,
    name: &str,
    joined: &JoinedText,
) -> Option<JoinRest> {
    let items = draft.items(variables);
    let position = |name: &str| {
        let is_named = |item: &DraftValue| draft.string_at(item, "name").as_deref() == Some(name);
        items.iter().rposition(is_named)
    };
    let index = position(name)?;
    let value = draft.string_at(&items[index], "value");
    let Some(text) = value.and_then(|value| without(&value, joined)) else {
        return Some(JoinRest::Changed);
    };
    if let Some(renamed) = &joined.renamed {
        let original = position(renamed).filter(|_| text == format!("$({renamed})"));
        return Some(match original {
            Some(_) => JoinRest::Nothing { index, original },
            None => JoinRest::Changed,
        });
    }
    let has_other_fields = || {
        let item = draft.value(&items[index]);
        item.is_none_or(|item| item.as_object().is_none_or(|fields| fields.len() != 2))
    };
    Some(match joined.new && text.is_empty() && !has_other_fields() {
        true => JoinRest::Nothing {
            index,
            original: None,
        },
        false => JoinRest::Text { index, text },
    })
}
