//! Cuts a stream of YAML documents at its `---` lines, without parsing it.
//!
//! A `---` at the start of a line, followed by a blank or the line's end, begins a document in every YAML reader:
//! inside a block scalar all lines are indented, and inside quotes or brackets it is an error (YAML 1.2.2, 9.2).

use memchr::memmem::{Finder, FinderRev};
use std::sync::LazyLock;

/// Returns the chunks of a text in order; joined, they are the text byte for byte. Each chunk but the first begins
/// with its `---` line. A chunk holds one document, or several where `...` ends one.
pub fn chunks(text: &[u8]) -> Chunks<'_> {
    Chunks { text, start: 0 }
}

/// See [`chunks`].
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    text: &'a [u8],
    start: usize,
}

/// A piece of the text and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Byte offset of the piece in the whole text.
    pub start: usize,
    /// The piece.
    pub text: &'a [u8],
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        self.next_run(1)
    }
}

impl<'a> Chunks<'a> {
    /// The text after the chunks returned so far.
    pub fn rest(&self) -> &'a [u8] {
        &self.text[self.start..]
    }

    /// The byte offset of [`Self::rest`].
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the next chunk, up to the byte offset `end`, which the caller has found already.
    pub fn cut(&mut self, end: usize) -> Chunk<'a> {
        let start = std::mem::replace(&mut self.start, end);
        Chunk {
            start,
            text: &self.text[start..self.start],
        }
    }

    /// Returns several chunks as one piece: the fewest that together have at least `bytes` bytes, but at least one.
    /// If fewer bytes are left, all remaining chunks. `None` at the end of the text.
    pub fn next_run(&mut self, bytes: usize) -> Option<Chunk<'a>> {
        if self.start >= self.text.len() {
            return None;
        }
        let start = self.start;
        let mut end = next_separator(
            self.text,
            start.saturating_add(bytes.max(1)).min(self.text.len()),
        );
        // A `%` directive belongs to the document whose `---` follows it.
        while end < self.text.len() && ends_in_directive(&self.text[start..end]) {
            end = next_separator(self.text, end + 1);
        }
        self.start = end;
        Some(Chunk {
            start,
            text: &self.text[start..end],
        })
    }
}

/// Returns where a text that may continue can be cut: the start of its last separator line, except one at offset 0.
/// Dashes at the very end do not count, because the rest of their line is not known yet.
pub fn last_boundary(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(found) = LAST_SEPARATOR.rfind(&text[..end]) {
        let line = found + 1;
        if line + 3 < text.len() && is_separator(&text[line..]) && !ends_in_directive(&text[..line])
        {
            return Some(line);
        }
        end = found + 3;
    }
    None
}

/// [`SEPARATOR`], searched backwards.
static LAST_SEPARATOR: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(b"\n---"));

/// Built once: preparing a search takes as long as searching a document.
static SEPARATOR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\n---"));

/// Returns the start of the next separator line at or after `from`, or the end of the text.
fn next_separator(bytes: &[u8], from: usize) -> usize {
    let separator = &*SEPARATOR;
    // The pattern includes the line feed before the dashes, which may be the byte before `from`.
    let mut at = from - 1;
    while let Some(found) = separator.find(&bytes[at..]) {
        let line = at + found + 1;
        if is_separator(&bytes[line..]) {
            return line;
        }
        at = line;
    }
    bytes.len()
}

/// Whether a line is a document separator: `---`, then a blank, the end of the line or the end of the text.
pub fn is_separator(line: &[u8]) -> bool {
    line.starts_with(b"---") && matches!(line.get(3), None | Some(b' ' | b'\t' | b'\r' | b'\n'))
}

/// The length of the byte order mark with which a file may begin.
pub fn mark_length(text: &[u8]) -> usize {
    let mark = "\u{feff}".as_bytes();
    match text.starts_with(mark) {
        true => mark.len(),
        false => 0,
    }
}

fn ends_in_directive(chunk: &[u8]) -> bool {
    let lines = chunk.rsplit(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    // Directives stand before the `---` of their document; comments and empty lines may follow them.
    let mut content = lines.skip_while(|line| line.is_empty() || line.starts_with(b"#"));
    content.next().is_some_and(|line| {
        line.strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(line)
            .starts_with(b"%")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        chunks(text.as_bytes())
            .map(|chunk| std::str::from_utf8(chunk.text).unwrap())
            .collect()
    }

    #[test]
    fn a_chunk_keeps_its_own_separator() {
        assert_eq!(
            cut("a: 1\n---\nb: 2\n--- # c\nc: 3"),
            ["a: 1\n", "---\nb: 2\n", "--- # c\nc: 3"]
        );
        assert_eq!(cut("---\na: 1\n---\n"), ["---\na: 1\n", "---\n"]);
        assert_eq!(cut("---"), ["---"]);
        assert!(cut("").is_empty());
    }

    #[test]
    fn lookalikes_are_no_separators() {
        let text = "a: |\n  x\n----\n---x: 1\n-----BEGIN\n ---\n";
        assert_eq!(cut(text), [text]);
    }

    #[test]
    fn a_run_ends_where_a_chunk_ends() {
        let text = b"a: 1\n---\nb: 2\n%YAML 1.1\n---\nc: 3\n---\nd: 4";
        let ends: Vec<usize> = chunks(text)
            .map(|chunk| chunk.start + chunk.text.len())
            .collect();
        for bytes in 0..text.len() + 9 {
            let mut rest = chunks(text);
            let runs: Vec<usize> = std::iter::from_fn(|| rest.next_run(bytes))
                .map(|run| run.start + run.text.len())
                .collect();
            assert!(
                runs.iter().all(|end| ends.contains(end)),
                "{bytes}: {runs:?} of {ends:?}"
            );
            assert_eq!(runs.last(), Some(&text.len()));
        }
    }

    #[test]
    fn the_last_boundary_is_where_a_chunk_begins_whatever_follows() {
        let text = b"a: 1\n---\nb: 2\n%YAML 1.1\n---\nc: |\n  ---\n---x\n--- # d\nd: 4\n---\n";
        let starts: Vec<usize> = chunks(text).map(|chunk| chunk.start).collect();
        for end in 0..=text.len() {
            let known = starts
                .iter()
                .copied()
                .filter(|&start| start > 0 && start + 3 < end)
                .max();
            assert_eq!(last_boundary(&text[..end]), known, "{end}");
        }
    }

    #[test]
    fn a_directive_stays_with_its_document() {
        assert_eq!(
            cut("%YAML 1.1\n# c\n---\na: 1\n---\nb: 1\n"),
            ["%YAML 1.1\n# c\n---\na: 1\n", "---\nb: 1\n"]
        );
    }

    #[test]
    fn carriage_returns_and_tabs_may_follow_the_dashes() {
        assert_eq!(
            cut("a: 1\r\n---\r\nb: 2\r\n---\tx\n"),
            ["a: 1\r\n", "---\r\nb: 2\r\n", "---\tx\n"]
        );
    }
}
