//! Finds documents that cannot hold a workload without parsing them.
//!
//! A document is let through only if its root is certainly a block mapping with plain keys in column 0, and at most one
//! of its lines is `kind`, with a plain value that is no kind of interest. Then that value is the root's kind, or it
//! has none: every other way to write a key (quotes, escapes, `?`, tags, anchors, merge keys, flow style) begins its
//! line with a character for which the document is parsed.

use super::root_lines::RootLines;
use super::workload::PodKinds;
use crate::yaml::stream::{Chunk, Chunks, chunks, is_separator, mark_length};

/// The result of a scan of a document that is not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentScan<'a> {
    /// It may hold workloads, or it is written in a way that only the parser understands.
    Parse,
    /// Its root has a known kind of workload. The rest is not scanned.
    Workload {
        /// The kind.
        kind: &'a [u8],
    },
    /// It holds no workload of a known kind.
    LetThrough {
        /// The value of the one `kind` line.
        kind: Option<&'a [u8]>,
        /// Whether it has a `kind` and an `apiVersion`.
        is_object: bool,
        /// Whether it has a line that is neither a comment nor a separator.
        has_content: bool,
    },
}

/// Scans one chunk, which begins with its own `---` line if it has one. Of each line the first byte is read, and the
/// rest only of those that begin in column 0.
pub fn classify<'a>(chunk: &'a [u8], kinds: &PodKinds) -> DocumentScan<'a> {
    if has_odd_breaks(chunk) {
        return DocumentScan::Parse;
    }
    match DocumentScanner::of(chunk).classify_at(0, kinds) {
        Ok((class, end)) if end == chunk.len() => class,
        Ok(_) => DocumentScan::Parse,
        Err(class) => class,
    }
}

/// Scans the chunks of a text without [odd breaks](has_odd_breaks) one after another.
#[derive(Debug)]
pub struct DocumentScanner<'a> {
    text: &'a [u8],
    lines: RootLines<'a>,
}

impl<'a> DocumentScanner<'a> {
    /// Returns a scanner at the start of a text.
    pub fn of(text: &'a [u8]) -> Self {
        DocumentScanner {
            text,
            lines: RootLines::of(text),
        }
    }

    /// Like [`classify`], for the chunk that starts here. Returns its end, too.
    ///
    /// # Errors
    /// The class, if it is clear before the end: a workload, or only the parser can tell.
    pub(crate) fn classify_at(
        &mut self,
        start: usize,
        kinds: &PodKinds,
    ) -> Result<(DocumentScan<'a>, usize), DocumentScan<'a>> {
        let text = self.text;
        let mut root = RootFields::default();
        let start = match start {
            0 => mark_length(text),
            start => start,
        };
        let mut at = start + behind_separator(&text[start..]).ok_or(DocumentScan::Parse)?;
        loop {
            match text.get(at) {
                None => return Ok((root.classify(), text.len())),
                Some(b'\n' | b'#') => {}
                Some(b'-') if is_separator(&text[at..]) => return Ok((root.classify(), at)),
                Some(_) => {
                    let line = root.take_line(&text[at..], kinds);
                    line.ok_or_else(|| root.class_so_far(kinds))?;
                }
            }
            at = match root.has_content {
                true => self.lines.next_after(at),
                // Before the first key, an indented line could begin the root, so no line may be skipped.
                false => at + (line_of(&text[at..]).len() + 1).min(text.len() - at),
            };
        }
    }
}

/// The offset behind the chunk's `---` line. `None` if that line has content.
fn behind_separator(chunk: &[u8]) -> Option<usize> {
    if chunk.starts_with(b"---\n") {
        return Some(4);
    }
    if !is_separator(chunk) {
        return Some(0);
    }
    let line_feed = memchr::memchr(b'\n', chunk);
    let rest = chunk[3..line_feed.unwrap_or(chunk.len())].trim_ascii_start();
    let is_bare = rest.is_empty() || rest.starts_with(b"#");
    is_bare.then(|| line_feed.map_or(chunk.len(), |at| at + 1))
}

/// What is known of the root mapping from its lines in column 0.
#[derive(Default)]
struct RootFields<'a> {
    kind: Option<&'a [u8]>,
    /// Whether `kind` is the name of a kind of interest, in some API group.
    is_known: bool,
    /// The text behind the colon of the first `apiVersion`.
    api_version: Option<&'a [u8]>,
    api_versions: usize,
    has_content: bool,
}

impl<'a> RootFields<'a> {
    /// Reads the line at the start of the text. `None` if the document must be parsed.
    #[inline]
    fn take_line(&mut self, text: &'a [u8], kinds: &PodKinds) -> Option<()> {
        let key = match text[0] {
            b' ' | b'\r' => return is_blank_or_comment(line_of(text)).then_some(()),
            // An item of the list under the last key: YAML allows its dash in the column of the key.
            b'-' if self.has_content
                && matches!(text.get(1), None | Some(b' ' | b'\n' | b'\r')) =>
            {
                return Some(());
            }
            // A shortcut for the keys of nearly all documents.
            b'a' if text.starts_with(b"apiVersion:") => "apiVersion".len(),
            b'd' if text.starts_with(b"data:") => "data".len(),
            b'k' if text.starts_with(b"kind:") => "kind".len(),
            b'm' if text.starts_with(b"metadata:") => "metadata".len(),
            b's' if text.starts_with(b"spec:") => "spec".len(),
            _ => plain_key(text)?,
        };
        let value = &text[key + 1..];
        if !matches!(value.first(), None | Some(b' ' | b'\n' | b'\r')) {
            return None;
        }
        self.has_content = true;
        match (text[0], key) {
            (b'a', 10) if text.starts_with(b"apiVersion") => self.take_api_version(value, kinds),
            (b'k', 4) if text.starts_with(b"kind") => self.take_kind(value, kinds),
            _ => Some(()),
        }
    }

    fn take_api_version(&mut self, value: &'a [u8], kinds: &PodKinds) -> Option<()> {
        self.api_versions += 1;
        self.api_version.get_or_insert(value);
        (!self.is_of_interest(kinds)).then_some(())
    }

    fn take_kind(&mut self, value: &'a [u8], kinds: &PodKinds) -> Option<()> {
        let kind = bare_word(value, ALPHANUMERIC)?;
        // A second `kind`, a List, which may hold workloads, and a value of several lines need the parser.
        if self.kind.is_some() || kind.ends_with(b"List") || continues(value) {
            return None;
        }
        (self.kind, self.is_known) = (Some(kind), kinds.has_kind(kind));
        // It is clear that the document must be parsed, so the rest need not be scanned.
        (self.api_versions == 0 || !self.is_of_interest(kinds)).then_some(())
    }

    fn is_of_interest(&self, kinds: &PodKinds) -> bool {
        let Some(kind) = self.kind.filter(|_| self.is_known) else {
            return false;
        };
        let api_version = self.api_version.filter(|_| self.api_versions == 1);
        match api_version.and_then(|value| bare_word(value, OF_VERSION)) {
            // A kind of interest may share its name with others, as Knative's Service with that of the core group.
            Some(api_version) => kinds.has(api_version, kind),
            None => true,
        }
    }

    /// The class of a document whose rest is not scanned.
    fn class_so_far(&self, kinds: &PodKinds) -> DocumentScan<'a> {
        match self.kind {
            Some(kind) if self.api_versions == 1 && self.is_of_interest(kinds) => {
                DocumentScan::Workload { kind }
            }
            _ => DocumentScan::Parse,
        }
    }

    /// The class of a document whose lines were all taken.
    fn classify(self) -> DocumentScan<'a> {
        // With an `apiVersion`, the document is of no interest: the lines would not all have been taken.
        if self.is_known && self.api_versions == 0 {
            return DocumentScan::Parse;
        }
        let is_object = self.kind.is_some() && self.api_versions > 0;
        DocumentScan::LetThrough {
            kind: self.kind,
            is_object,
            has_content: self.has_content,
        }
    }
}

/// The chunks of a text, each with its scan.
#[derive(Debug)]
pub struct ScannedDocuments<'a, 'k> {
    chunks: Chunks<'a>,
    /// `None` if the text has odd breaks, so that each chunk is scanned on its own.
    classifier: Option<DocumentScanner<'a>>,
    kinds: &'k PodKinds,
}

impl<'a, 'k> ScannedDocuments<'a, 'k> {
    /// Returns the chunks of a text.
    pub fn of(text: &'a [u8], kinds: &'k PodKinds) -> Self {
        let is_odd = has_odd_breaks(&text[mark_length(text)..]);
        let classifier = (!is_odd).then(|| DocumentScanner::of(text));
        ScannedDocuments {
            chunks: chunks(text),
            classifier,
            kinds,
        }
    }

    /// Whether there are more chunks.
    pub fn has_more(&self) -> bool {
        !self.chunks.rest().is_empty()
    }
}

impl<'a> Iterator for ScannedDocuments<'a, '_> {
    type Item = (Chunk<'a>, DocumentScan<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.has_more() {
            return None;
        }
        let Some(classifier) = &mut self.classifier else {
            let chunk = self.chunks.next()?;
            return Some((chunk, classify(chunk.text, self.kinds)));
        };
        Some(
            match classifier.classify_at(self.chunks.start(), self.kinds) {
                Ok((class, end)) => (self.chunks.cut(end), class),
                Err(class) => (self.chunks.next()?, class),
            },
        )
    }
}

fn line_of(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())]
}

fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// Whether the value may continue on the next line that is not blank: that line is indented and no comment.
fn continues(value: &[u8]) -> bool {
    let below = &value[line_of(value).len()..];
    let start = below.iter().position(|byte| !byte.is_ascii_whitespace());
    start.is_some_and(|at| below[at - 1] != b'\n' && below[at] != b'#')
}

/// Whether there are line breaks that some readers see and a search for `\n` does not (a bare CR, NEL, LS, PS), or a
/// byte order mark.
pub fn has_odd_breaks(chunk: &[u8]) -> bool {
    let has_bare_return =
        memchr::memchr_iter(b'\r', chunk).any(|at| chunk.get(at + 1) != Some(&b'\n'));
    let odd: [&[u8]; 4] = [
        "\u{85}".as_bytes(),
        "\u{2028}".as_bytes(),
        "\u{2029}".as_bytes(),
        "\u{feff}".as_bytes(),
    ];
    has_bare_return
        || (!chunk.is_ascii()
            && odd
                .iter()
                .any(|bytes| memchr::memmem::find(chunk, bytes).is_some()))
}

const ALPHANUMERIC: u8 = 1;
/// A byte of an apiVersion.
const OF_VERSION: u8 = 2;
/// A byte of a plain key.
const OF_KEY: u8 = 4;

/// For each byte, the classes that it belongs to.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'_' => OF_KEY,
            b'.' | b'/' | b'-' => OF_KEY | OF_VERSION,
            letter if letter.is_ascii_alphanumeric() => OF_KEY | OF_VERSION | ALPHANUMERIC,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// The number of bytes of a class at the start of a text.
fn length_of(text: &[u8], class: u8) -> usize {
    text.iter()
        .position(|&byte| CLASSES[byte as usize] & class == 0)
        .unwrap_or(text.len())
}

/// The length of a key `[A-Za-z][A-Za-z0-9_./-]*` at the start of a text. `None` if no colon follows.
fn plain_key(text: &[u8]) -> Option<usize> {
    let length = length_of(text, OF_KEY);
    let is_key = text[0].is_ascii_alphabetic() && text.get(length) == Some(&b':');
    is_key.then_some(length)
}

/// The value of a line, if it is a single word of a class, with nothing or a comment behind it.
fn bare_word(value: &[u8], class: u8) -> Option<&[u8]> {
    let start = value.iter().position(|byte| *byte != b' ')?;
    let value = &value[start..];
    let (word, rest) = value.split_at(length_of(value, class));
    let is_alone = match rest {
        [] | [b'\n', ..] => true,
        [b' ' | b'\r', ..] => is_blank_or_comment(line_of(rest)),
        _ => false,
    };
    (!word.is_empty() && is_alone).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_through(text: &str) -> bool {
        matches!(
            classify(text.as_bytes(), &PodKinds::with([])),
            DocumentScan::LetThrough { .. }
        )
    }

    #[test]
    fn plain_documents_of_other_kinds_are_let_through() {
        assert!(is_let_through(
            "---\n# Source: x\napiVersion: v1\nkind: ConfigMap # c\ndata:\n  a: |\n    kind: Pod\n- x\n"
        ));
        assert!(is_let_through("---\n\n# nothing\n"));
        assert!(is_let_through("a: 1\n"));
        assert!(is_let_through("apiVersion: v1\nkind: Service\n"));
        assert!(is_let_through("kind: ConfigMap\n\n  # c\nmetadata: {}\n"));
        assert!(!is_let_through(
            "apiVersion: serving.knative.dev/v1\nkind: Service\n"
        ));
        assert!(!is_let_through("apiVersion: \"v1\"\nkind: Service\n"));
    }

    #[test]
    fn a_look_at_a_chunk_ends_where_the_chunk_does() {
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
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text += pieces[(seed >> 33) as usize % pieces.len()];
            }
            let mut scanner = DocumentScanner::of(text.as_bytes());
            for chunk in crate::yaml::stream::chunks(text.as_bytes()) {
                if let Ok((scan, end)) = scanner.classify_at(chunk.start, &kinds) {
                    assert_eq!(end, chunk.start + chunk.text.len(), "{text:?}");
                    assert_eq!(scan, super::classify(chunk.text, &kinds), "{text:?}");
                }
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
            "kind: od\n c\n List\n",
            "kind: od\n\n  \n List",
        ] {
            assert!(!is_let_through(text), "{text:?}");
        }
    }
}
