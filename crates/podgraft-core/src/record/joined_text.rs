//! Finds texts that were joined to a variable, and removes them.

use super::JoinedText;

/// A hint that a policy joined a text to a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinHint {
    /// The record path of the container.
    pub container: String,
    /// The variable's name.
    pub name: String,
    /// The policy's text is put before the variable's.
    pub is_before: bool,
    /// The text between both.
    pub separator: String,
}

/// The prefix for the new name of a manifest's variable whose name is now used by a variable that refers to it.
pub(crate) const ORIGINAL: &str = "PODGRAFT_ORIG_";

/// Whether the text contains `part` as a token between separators, so that it need not be joined again.
pub(crate) fn has_token(text: &str, part: &str, separator: &str) -> bool {
    let is_separator = |char: char| separator == " " && char.is_whitespace();
    let ends = |before: &str| {
        before.is_empty() || before.ends_with(separator) || before.ends_with(is_separator)
    };
    let begins = |behind: &str| {
        behind.is_empty() || behind.starts_with(separator) || behind.starts_with(is_separator)
    };
    let is_token = |at: usize| ends(&text[..at]) && begins(&text[at + part.len()..]);
    text.contains(part) && places_of(text, part).into_iter().any(is_token)
}

impl JoinedText {
    /// Whether the text contains another one.
    pub(super) fn has(&self, other: &JoinedText) -> bool {
        has_token(&self.text, &other.text, other.separator())
    }

    /// Whether a value contains the text, or one that it may be.
    pub(super) fn is_in(&self, value: &str) -> bool {
        match self.candidates.0.is_empty() {
            true => without(value, self).is_some(),
            false => self.candidate_in(value).is_some(),
        }
    }

    /// The text that a value contains, of those that it may be: the oldest. `None` if it contains none, or several of one
    /// generation.
    pub(super) fn candidate_in(&self, value: &str) -> Option<&str> {
        match self.oldest_in(value, &self.candidates.0)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The oldest of some texts that a value contains as this one is joined: those of one generation.
    pub(super) fn oldest_in<'k>(
        &self,
        value: &str,
        known: impl IntoIterator<Item = (&'k String, &'k u64)>,
    ) -> Vec<&'k str> {
        let is_in = |text: &str| remove_token(value, text, self).is_some();
        let mut found: Vec<(&String, &u64)> = known.into_iter().collect();
        found.retain(|(text, _)| is_in(text));
        let oldest = found.iter().map(|(_, generation)| *generation).min();
        found.retain(|(_, generation)| Some(*generation) == oldest);
        found.into_iter().map(|(text, _)| text.as_str()).collect()
    }

    /// The separator between the text and the rest of the value.
    pub(crate) fn separator(&self) -> &str {
        self.separator.as_deref().unwrap_or(" ")
    }
}

/// Returns the offsets of all occurrences of `part`, including overlapping ones, in linear time (Knuth-Morris-Pratt).
pub(super) fn places_of(text: &str, part: &str) -> Vec<usize> {
    let part = part.as_bytes();
    if part.is_empty() {
        return vec![0, text.len()];
    }
    // For each prefix of the part, the length of its longest proper prefix that is also its suffix.
    let mut shorter = vec![0; part.len()];
    for index in 1..part.len() {
        shorter[index] = matched_length(part, &shorter, shorter[index - 1], part[index]);
    }
    let (mut found, mut length) = (Vec::new(), 0);
    for (index, &sign) in text.as_bytes().iter().enumerate() {
        length = matched_length(part, &shorter, length, sign);
        if length == part.len() {
            found.push(index + 1 - length);
        }
    }
    found
}

/// The length of the prefix of `part` that ends at `sign`, where one of `length` ended before.
fn matched_length(part: &[u8], shorter: &[usize], mut length: usize, sign: u8) -> usize {
    while length > 0 && part.get(length) != Some(&sign) {
        length = shorter[length - 1];
    }
    length + usize::from(part[length] == sign)
}

/// Removes the joined text and one separator beside it. `None` if the text is not there as a token.
pub(crate) fn without(value: &str, joined: &JoinedText) -> Option<String> {
    remove_token(value, &joined.text, joined)
}

/// [`without`] for another text that may have been joined.
fn remove_token(value: &str, text: &str, joined: &JoinedText) -> Option<String> {
    let separator = joined.separator();
    let is_end = |text: &str| text.ends_with(separator) || text.ends_with(char::is_whitespace);
    let is_start =
        |text: &str| text.starts_with(separator) || text.starts_with(char::is_whitespace);
    let is_token = |at: &usize| {
        let (before, behind) = (&value[..*at], &value[at + text.len()..]);
        (before.is_empty() || is_end(before)) && (behind.is_empty() || is_start(behind))
    };
    let mut places = places_of(value, text).into_iter().filter(is_token);
    let at = if joined.before || joined.new {
        places.next()
    } else {
        places.next_back()
    }?;
    let (before, behind) = (&value[..at], &value[at + text.len()..]);
    let (before, behind) = match (joined.before || joined.new, separator) {
        (true, _) => (before, behind.strip_prefix(separator).unwrap_or(behind)),
        (false, _) => match before.strip_suffix(separator) {
            Some(before) => (before, behind),
            None => (before, behind.strip_prefix(separator).unwrap_or(behind)),
        },
    };
    Some(format!("{before}{behind}"))
}
