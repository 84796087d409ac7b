//! Joins a text to the value of a variable.

use crate::policy::{EnvChange, EnvOp};
use crate::record::has_token;

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
