//! A piece of text with its origin: a name, the text, and the line at which it begins.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// The folder part of a file name as the user wrote it, with `/` as separator; empty if there is none.
pub(crate) fn folder_of(file: &str) -> String {
    let file = file.strip_prefix("./").unwrap_or(file);
    let folder = file
        .rsplit_once(['/', '\\'])
        .map_or("", |(folder, _)| folder);
    folder.replace('\\', "/")
}

/// A text with its name, as diagnostics show it. The text may be a part of a file that begins at `first_line`.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// The name for messages: a path as it was typed, `builtin:NAME`, or `<stdin>`.
    pub name: Arc<str>,
    /// The whole text, or a part of the file.
    pub text: &'a str,
    /// The 1-based line of the file at which `text` begins.
    pub first_line: usize,
    /// Where the last place was: the next one is counted from there.
    last: Cell<Option<LastPlace>>,
}

/// An offset whose line and column are known.
#[derive(Debug, Clone, Copy)]
struct LastPlace {
    offset: usize,
    /// The number of line ends before it.
    line: usize,
    /// The number of characters before it in its line.
    column: usize,
    /// The byte range of its line, without the line end.
    line_start: usize,
    line_end: usize,
}

impl<'a> Source<'a> {
    /// The source of a whole file.
    pub fn new(name: impl Into<Arc<str>>, text: &'a str) -> Self {
        Source::from_line(name, text, 1)
    }

    /// The source of a part of a file that begins at a 1-based line.
    pub fn from_line(name: impl Into<Arc<str>>, text: &'a str, first_line: usize) -> Self {
        Source {
            name: name.into(),
            text,
            first_line,
            last: Cell::default(),
        }
    }

    /// Another text in the place of this one.
    pub(crate) fn with_text<'b>(&self, text: &'b str) -> Source<'b> {
        Source::from_line(Arc::clone(&self.name), text, self.first_line)
    }

    /// The place of a byte range of `text`, with its line as excerpt. A range past the end is cut at the end.
    pub fn place(&self, span: Range<usize>) -> Place {
        let start = floor_char(self.text, span.start);
        let end = floor_char(self.text, span.end.max(span.start)).max(start);
        let at = self.find(start);
        self.last.set(Some(at));
        // An excerpt is one line, so a longer span is cut at the end of its first line.
        let (end, in_line) = (end.min(at.line_end), start - at.line_start);
        let (excerpt, cut) = shorten(&self.text[at.line_start..at.line_end], in_line);
        let excerpt = excerpt.trim_end_matches('\r');
        Place {
            source: Arc::clone(&self.name),
            line: self.first_line + at.line,
            column: at.column + 1,
            start: (in_line - cut).min(excerpt.len()),
            end: (end - at.line_start - cut).min(excerpt.len()),
            excerpt: excerpt.to_owned(),
        }
    }

    /// The line and the column of an offset. Only what stands between it and the last one is counted.
    fn find(&self, offset: usize) -> LastPlace {
        let last = self.last.get();
        let chars = |range: Range<usize>| self.text[range].chars().count();
        if let Some(last) = last.filter(|last| (last.line_start..=last.line_end).contains(&offset))
        {
            let column = match offset < last.offset {
                true => last.column - chars(offset..last.offset),
                false => last.column + chars(last.offset..offset),
            };
            return LastPlace {
                offset,
                column,
                ..last
            };
        }
        let mut lines = LineCounter {
            text: self.text.as_bytes(),
            counted: last.map_or(0, |last| last.offset),
            line: last.map_or(0, |last| last.line),
        };
        let (before, behind) = self.text.split_at(offset);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        LastPlace {
            offset,
            line: lines.line_at(offset),
            column: chars(line_start..offset),
            line_start,
            line_end: behind.find('\n').map_or(self.text.len(), |at| offset + at),
        }
    }
}

/// Finds the line of an offset. It counts from the offset that was asked for last, so queries in about ascending order
/// are cheap.
#[derive(Debug)]
pub struct LineCounter<'a> {
    text: &'a [u8],
    counted: usize,
    line: usize,
}

impl<'a> LineCounter<'a> {
    /// A counter over a text whose first line has this 1-based number.
    pub fn new(text: &'a [u8], first_line: usize) -> Self {
        LineCounter {
            text,
            counted: 0,
            line: first_line,
        }
    }

    /// The line number of a byte offset.
    pub(crate) fn line_at(&mut self, offset: usize) -> usize {
        let between = self.counted.min(offset)..self.counted.max(offset);
        let count = memchr::memchr_iter(b'\n', &self.text[between]).count();
        self.line = if offset < self.counted {
            self.line - count
        } else {
            self.line + count
        };
        self.counted = offset;
        self.line
    }
}

/// Finds the offset at which a line begins, in any order of lines. It counts the line ends of whole blocks once.
#[derive(Debug)]
pub(crate) struct LineFinder<'a> {
    text: &'a [u8],
    /// The number of line ends before each block.
    before: Vec<usize>,
}

impl<'a> LineFinder<'a> {
    /// Bytes of a block.
    const BLOCK: usize = 512;

    /// Counts the line ends of a text.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let counts = text.chunks(Self::BLOCK).scan(0, |total, block| {
            let before = *total;
            *total += memchr::memchr_iter(b'\n', block).count();
            Some(before)
        });
        LineFinder {
            text,
            before: counts.collect(),
        }
    }

    /// The offset at which a 1-based line begins; the end of the text if it has fewer lines.
    pub(crate) fn start(&self, line: usize) -> usize {
        let line_ends = line.saturating_sub(1);
        let block = self.before.partition_point(|&before| before < line_ends);
        let Some(block) = block.checked_sub(1) else {
            return 0;
        };
        let start = block * Self::BLOCK;
        let last = line_ends - self.before[block] - 1;
        memchr::memchr_iter(b'\n', &self.text[start..])
            .nth(last)
            .map_or(self.text.len(), |at| start + at + 1)
    }
}

/// A place that outlives its text: file, line, column and the line itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The name of the source.
    pub source: Arc<str>,
    /// 1-based line.
    pub line: usize,
    /// 1-based column, in characters.
    pub column: usize,
    /// The line of the place without its line end. A very long line is cut around the place.
    pub excerpt: String,
    /// Start of the place, as a byte offset in `excerpt`.
    pub start: usize,
    /// End of the place, as a byte offset in `excerpt`.
    pub end: usize,
}

impl Place {
    /// A whole line. Its text is not known, which the empty excerpt shows.
    pub(crate) fn of_line(source: &str, line: usize) -> Self {
        Place {
            source: source.into(),
            line,
            column: 1,
            excerpt: String::new(),
            start: 0,
            end: 0,
        }
    }

    /// `file:line:column`, the form that editors and terminals turn into a link.
    pub fn link(&self) -> String {
        format!("{}:{}:{}", self.source, self.line, self.column)
    }
}

/// Bytes before the place that a cut excerpt keeps.
const EXCERPT_BEFORE: usize = 120;
/// The longest excerpt in bytes.
const EXCERPT_MOST: usize = 400;

/// Cuts a very long line around the byte `at`. Returns the rest and the number of bytes cut off its front.
fn shorten(line: &str, at: usize) -> (&str, usize) {
    if line.len() <= EXCERPT_MOST {
        return (line, 0);
    }
    let from = floor_char(line, at.saturating_sub(EXCERPT_BEFORE));
    let to = floor_char(line, from + EXCERPT_MOST);
    (&line[from..to], from)
}

fn floor_char(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_in_any_order_and_behind_the_last_one_the_end() {
        let text = format!("{}\n\n{}\nshort\n", "x".repeat(511), "y".repeat(1500));
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        let finder = LineFinder::new(text.as_bytes());
        for (at, &start) in starts.iter().enumerate().rev() {
            assert_eq!(finder.start(at + 1), start, "line {}", at + 1);
        }
        assert_eq!(finder.start(0), 0);
        assert_eq!(finder.start(starts.len() + 1), text.len());
        assert_eq!(LineFinder::new(b"").start(3), 0);
    }

    #[test]
    fn a_place_counts_lines_from_the_start_of_the_file_and_columns_in_characters() {
        let source = Source::from_line("a.yaml", "x: 1\nü: value\n", 10);
        let place = source.place(9..14);
        assert_eq!(place.link(), "a.yaml:11:4");
        assert_eq!(&place.excerpt[place.start..place.end], "value");
    }

    #[test]
    fn a_span_over_several_lines_is_shown_from_its_first() {
        let source = Source::new("a", "a: |\n  x\n  y\n");
        let place = source.place(3..12);
        assert_eq!(
            (place.line, place.excerpt.as_str(), place.start, place.end),
            (1, "a: |", 3, 4)
        );
    }

    #[test]
    fn a_place_is_inside_its_excerpt_where_lines_end_with_carriage_returns() {
        let source = Source::new("a", "a: b\r\n  c\r\n");
        let place = source.place(3..9);
        assert_eq!(&place.excerpt[place.start..place.end], "b");
        let place = source.place(4..5);
        assert_eq!(&place.excerpt[place.start..place.end], "");
    }

    #[test]
    fn a_place_at_the_end_of_the_text_is_shown_there() {
        let source = Source::new("a", "a: 1");
        let place = source.place(90..99);
        assert_eq!((place.line, place.column), (1, 5));
    }
}
