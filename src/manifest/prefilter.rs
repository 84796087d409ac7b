//! Which documents cannot hold a workload, seen without parsing them.
//!
//! A document is let through only if its root is certainly a block mapping with plain keys in column 0, and at most one
//! of these lines is `kind`, with a bare value that names no kind of interest. Then the root's kind is that value, or
//! there is none: every other spelling of a key (quotes, escapes, `?`, tags, anchors, merge keys, flow style) begins
//! its line with a character that sends the document to the parser.

use super::workload::PodKinds;
use crate::yaml::stream::is_separator;

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
    match glance_first(chunk, kinds) {
        Some((glance, end)) if end == chunk.len() => glance,
        _ => Glance::Parse,
    }
}

/// [`glance`] at the first chunk of a text without [odd breaks](has_odd_breaks), and where the chunk ends; `None` where
/// only the parser can tell.
pub fn glance_first<'a>(text: &'a [u8], kinds: &PodKinds) -> Option<(Glance<'a>, usize)> {
    let mut root = Root::default();
    let mut at = behind_separator(text)?;
    // Before the first key a line that is indented is none of the root's.
    while !root.has_content {
        match text.get(at) {
            None => return Some((root.judge(kinds), text.len())),
            Some(b'\n' | b'#') => {}
            Some(b'-') if is_separator(&text[at..]) => return Some((root.judge(kinds), at)),
            Some(_) => root.take_line(&text[at..], kinds)?,
        }
        if !root.has_content {
            at += memchr::memchr(b'\n', &text[at..]).map_or(text.len() - at, |length| length + 1);
        }
    }
    loop {
        at = next_root_line(text, at);
        match text.get(at) {
            None => return Some((root.judge(kinds), text.len())),
            Some(b'\n' | b'#') => {}
            Some(b'-') if is_separator(&text[at..]) => return Some((root.judge(kinds), at)),
            Some(_) => root.take_line(&text[at..], kinds)?,
        }
    }
}

/// The start of the next line behind `at` that does not begin with a space, or the text's end. Eight bytes at a time:
/// half of all lines begin with a space, and whether one does cannot be foretold.
fn next_root_line(text: &[u8], mut at: usize) -> usize {
    while let Some(words) = text.get(at..at + 9) {
        let (this, next) = (words.first_chunk().map(word), words.last_chunk().map(word));
        let (Some(this), Some(next)) = (this, next) else { break };
        let (line_feeds, spaces) = (this ^ LINE_FEEDS, next ^ SPACES);
        // The high bit of each byte that is zero, and of each that is not: exact, since both are used together.
        let is_line_feed = !(((line_feeds & LOW) + LOW) | line_feeds | LOW);
        let is_no_space = ((spaces & LOW) + LOW) | spaces;
        let found = is_line_feed & is_no_space;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize + 1;
        }
        at += 8;
    }
    let rest = &text[at.min(text.len())..];
    let begins = |&place: &usize| rest[place] == b'\n' && rest.get(place + 1) != Some(&b' ');
    (0..rest.len()).find(begins).map_or(text.len(), |place| at + place + 1)
}

const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const LINE_FEEDS: u64 = 0x0a0a_0a0a_0a0a_0a0a;
const SPACES: u64 = 0x2020_2020_2020_2020;

fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// The start of what follows the chunk's `---` line; `None` where something stands on that line.
fn behind_separator(chunk: &[u8]) -> Option<usize> {
    if !is_separator(chunk) {
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
    /// Takes the line at the start of the text. `None` where only the parser can tell what it is.
    fn take_line(&mut self, text: &'a [u8], kinds: &PodKinds) -> Option<()> {
        match text[0] {
            b' ' | b'\r' => return is_blank_or_comment(line_of(text)).then_some(()),
            b'-' if self.has_content && matches!(text.get(1), None | Some(b' ' | b'\n' | b'\r')) => return Some(()),
            _ => {}
        }
        let (key, value) = plain_key(text)?;
        self.has_content = true;
        match key {
            b"apiVersion" => {
                self.api_versions += 1;
                self.api_version = bare_word(line_of(value), b"./-");
                return (!self.is_of_interest(kinds)).then_some(());
            }
            b"kind" => match (bare_word(line_of(value), b""), self.kind) {
                (Some(word), None) if !word.ends_with("List") => {
                    self.kind = Some(word);
                    // What will be parsed need not be looked at to its end.
                    return (self.api_versions == 0 || !self.is_of_interest(kinds)).then_some(());
                }
                _ => return None,
            },
            _ => {}
        }
        Some(())
    }

    fn is_of_interest(&self, kinds: &PodKinds) -> bool {
        match (self.kind.filter(|kind| kinds.has_kind(kind)), self.api_version) {
            (None, _) => false,
            // Some kinds of interest share their name with others: Knative's Service with the core one.
            (Some(kind), Some(api_version)) if self.api_versions == 1 => kinds.find(api_version, kind).is_some(),
            (Some(_), _) => true,
        }
    }

    fn judge(self, kinds: &PodKinds) -> Glance<'a> {
        if self.is_of_interest(kinds) {
            return Glance::Parse;
        }
        let is_object = self.kind.is_some() && self.api_versions > 0;
        Glance::LetThrough { kind: self.kind, is_object, has_content: self.has_content }
    }
}

fn line_of(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())]
}

fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// Line breaks that some readers see and a search for `\n` does not: a bare CR, NEL, LS, PS; and a byte order mark.
pub fn has_odd_breaks(chunk: &[u8]) -> bool {
    let has_bare_return = memchr::memchr_iter(b'\r', chunk).any(|at| chunk.get(at + 1) != Some(&b'\n'));
    let odd: [&[u8]; 4] = ["\u{85}".as_bytes(), "\u{2028}".as_bytes(), "\u{2029}".as_bytes(), "\u{feff}".as_bytes()];
    has_bare_return || (!chunk.is_ascii() && odd.iter().any(|bytes| memchr::memmem::find(chunk, bytes).is_some()))
}

/// Which bytes a plain key is made of.
const IS_KEY: [bool; 256] = {
    let mut is_key = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let is_sign = matches!(byte as u8, b'_' | b'.' | b'/' | b'-');
        is_key[byte] = is_sign || (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    is_key
};

/// `[A-Za-z][A-Za-z0-9_./-]*:` and a blank or the line's end: the key, and what follows the colon.
fn plain_key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if !text.first()?.is_ascii_alphabetic() {
        return None;
    }
    let length = text.iter().position(|&byte| !IS_KEY[byte as usize])?;
    let rest = text[length..].strip_prefix(b":")?;
    matches!(rest.first(), None | Some(b' ' | b'\n' | b'\r')).then_some((&text[..length], rest))
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
    fn a_look_at_a_text_ends_where_its_first_chunk_does() {
        let kinds = PodKinds::with([]);
        let pieces = [
            "---\n",
            "--- # c\n",
            "---x\n",
            "----\n",
            "# c\n",
            "\n",
            "  # c\n",
            "a: 1\n",
            "a:\n",
            "  b: 2\n",
            "- c\n",
            "kind: A\n",
            "kind: Pod\n",
            " ---\n",
            "%YAML 1.1\n",
            "d: |\n",
            "    ---  text that goes on for a while\n",
            "e: 1\r\n",
            "\r\n",
            "f",
            "...\n",
        ];
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..8 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text += pieces[(seed >> 33) as usize % pieces.len()];
            }
            let first = crate::yaml::stream::chunks(text.as_bytes()).next().map(|chunk| chunk.text);
            if let Some((glance, end)) = glance_first(text.as_bytes(), &kinds) {
                let whole = first.unwrap_or_default();
                assert_eq!(end, whole.len(), "{text:?}");
                assert_eq!(glance, super::glance(whole, &kinds), "{text:?}");
            }
        }
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
