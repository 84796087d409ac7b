//! Which documents cannot hold a workload, seen without parsing them.
//!
//! A document is let through only if its root is certainly a block mapping with plain keys in column 0, and at most one
//! of these lines is `kind`, with a bare value that names no kind of interest. Then the root's kind is that value, or
//! there is none: every other spelling of a key (quotes, escapes, `?`, tags, anchors, merge keys, flow style) begins
//! its line with a character that sends the document to the parser.

use super::workload::PodKinds;

/// What a document is without parsing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glance<'a> {
    /// It may hold a workload, or is written in a way that only the parser understands.
    Parse,
    /// No workload of a known kind. `kind` is what it states.
    LetThrough {
        /// The value of the one `kind` line.
        kind: Option<&'a str>,
        /// It has a `kind` and an `apiVersion`.
        is_object: bool,
        /// It has a line that is no comment and no separator.
        has_content: bool,
    },
}

/// Looks at one chunk, which begins with its own `---` line if it has one: at the first byte of every line, and at the
/// rest of those that begin in column 0.
pub fn glance<'a>(chunk: &'a [u8], kinds: &PodKinds) -> Glance<'a> {
    if has_odd_breaks(chunk) {
        return Glance::Parse;
    }
    let Some(first_line) = behind_separator(chunk) else { return Glance::Parse };
    let mut root = Root::default();
    let content = &chunk[first_line..];
    let others = memchr::memchr_iter(b'\n', content).map(|at| at + 1);
    for start in std::iter::once(0).chain(others) {
        match content.get(start) {
            None | Some(b'\n' | b'#') => {}
            Some(b' ') if root.has_content => {}
            Some(_) => {
                if !root.take_line(&content[start..]) {
                    return Glance::Parse;
                }
            }
        }
    }
    root.judge(kinds)
}

/// The start of what follows the chunk's `---` line; `None` where something stands on that line.
fn behind_separator(chunk: &[u8]) -> Option<usize> {
    if !crate::yaml::stream::is_separator(chunk) {
        return Some(0);
    }
    let line_feed = memchr::memchr(b'\n', chunk);
    let rest = chunk[3..line_feed.unwrap_or(chunk.len())].trim_ascii_start();
    let is_bare = rest.is_empty() || rest.starts_with(b"#");
    is_bare.then(|| line_feed.map_or(chunk.len(), |at| at + 1))
}

/// What the lines in column 0 say about the root.
#[derive(Default)]
struct Root<'a> {
    kind: Option<&'a str>,
    api_version: Option<&'a str>,
    api_versions: usize,
    has_content: bool,
}

impl<'a> Root<'a> {
    /// Takes the line at the start of the text. False where only the parser can tell what it is.
    fn take_line(&mut self, text: &'a [u8]) -> bool {
        let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.first() {
            None => return true,
            // Indented before any key: the root may stand anywhere. Blank lines and comments do not matter.
            Some(b' ') if matches!(line.trim_ascii_start().first(), None | Some(b'#')) => return true,
            Some(b'-') if self.has_content && matches!(line.get(1), None | Some(b' ')) => return true,
            Some(_) => {}
        }
        let Some((key, value)) = plain_key(line) else { return false };
        self.has_content = true;
        if key == b"apiVersion" {
            self.api_versions += 1;
            self.api_version = bare_word(value, b"./-");
        }
        if key == b"kind" {
            match (bare_word(value, b""), self.kind) {
                (Some(word), None) if !word.ends_with("List") => self.kind = Some(word),
                _ => return false,
            }
        }
        true
    }

    fn judge(self, kinds: &PodKinds) -> Glance<'a> {
        let is_of_interest = match (self.kind.filter(|kind| kinds.has_kind(kind)), self.api_version) {
            (None, _) => false,
            // Some kinds of interest share their name with others: Knative's Service with the core one.
            (Some(kind), Some(api_version)) if self.api_versions == 1 => kinds.find(api_version, kind).is_some(),
            (Some(_), _) => true,
        };
        if is_of_interest {
            return Glance::Parse;
        }
        let is_object = self.kind.is_some() && self.api_versions > 0;
        Glance::LetThrough { kind: self.kind, is_object, has_content: self.has_content }
    }
}

/// Line breaks that some readers see and a search for `\n` does not: a bare CR, NEL, LS, PS; and a byte order mark.
fn has_odd_breaks(chunk: &[u8]) -> bool {
    let has_bare_return = memchr::memchr_iter(b'\r', chunk).any(|at| chunk.get(at + 1) != Some(&b'\n'));
    let odd: [&[u8]; 4] = ["\u{85}".as_bytes(), "\u{2028}".as_bytes(), "\u{2029}".as_bytes(), "\u{feff}".as_bytes()];
    has_bare_return || (!chunk.is_ascii() && odd.iter().any(|bytes| memchr::memmem::find(chunk, bytes).is_some()))
}

/// `[A-Za-z][A-Za-z0-9_./-]*:` and a blank or the end.
fn plain_key(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if !line.first()?.is_ascii_alphabetic() {
        return None;
    }
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-');
    let length = line.iter().take_while(|byte| is_key(byte)).count();
    let rest = line[length..].strip_prefix(b":")?;
    matches!(rest.first(), None | Some(b' ')).then_some((&line[..length], rest))
}

/// Letters, digits and some more, then nothing or a comment.
fn bare_word<'a>(value: &'a [u8], more: &[u8]) -> Option<&'a str> {
    let value = value.trim_ascii();
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || more.contains(byte);
    let length = value.iter().take_while(|byte| is_of_word(byte)).count();
    let (word, rest) = value.split_at(length);
    let is_alone = rest.is_empty() || (rest.starts_with(b" ") && rest.trim_ascii_start().starts_with(b"#"));
    (length > 0 && is_alone).then(|| std::str::from_utf8(word).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_through(text: &str) -> bool {
        matches!(glance(text.as_bytes(), &PodKinds::with([])), Glance::LetThrough { .. })
    }

    #[test]
    fn plain_documents_of_other_kinds_are_let_through() {
        assert!(is_let_through(
            "---\n# Source: x\napiVersion: v1\nkind: ConfigMap # c\ndata:\n  a: |\n    kind: Pod\n- x\n"
        ));
        assert!(is_let_through("---\n\n# nothing\n"));
        assert!(is_let_through("a: 1\n"));
        assert!(is_let_through("apiVersion: v1\nkind: Service\n"));
        assert!(!is_let_through("apiVersion: serving.knative.dev/v1\nkind: Service\n"));
        assert!(!is_let_through("apiVersion: \"v1\"\nkind: Service\n"));
    }

    #[test]
    fn whatever_may_hide_a_kind_is_parsed() {
        for text in [
            "kind: Pod\n",
            "kind: DeploymentList\n",
            "\"kind\": Pod\n",
            "? kind\n: Pod\n",
            "<<: *x\n",
            "{kind: Pod}\n",
            "kind: *x\n",
            "kind: \"x\"\n",
            "kind: Service\nkind: Pod\n",
            "--- {a: b}\n",
            "  kind: Pod\n",
            "a: 1\r kind: Pod\n",
            "a: x\u{2028}kind: Pod\n",
            "- kind: Pod\n",
            "a: 1\n...\n",
            "kind:\n  Pod\n",
            "%YAML 1.1\n",
            "\u{feff}kind: x\n",
            "kind : Pod\n",
        ] {
            assert!(!is_let_through(text), "{text:?}");
        }
    }
}
