//! Parses block scalars, `|` and `>`, without an indentation indicator.

use super::super::tree::NodeKind;
use super::Parser;

/// What happens to the line ends after the last content line (YAML 1.2.2, 8.1.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Clip,
    Strip,
    Keep,
}

/// The value of a block scalar, built line by line.
struct BlockScalarValue {
    value: String,
    is_folded: bool,
    /// Empty lines since the last content line.
    empty_lines: usize,
    /// The last content line has a line end. Folding decides later what it becomes.
    has_line_end: bool,
    begins_with_blank: bool,
}

impl BlockScalarValue {
    fn add_line(&mut self, line: &str, has_line_end: bool) {
        let begins_with_blank = line.starts_with([' ', '\t']);
        // Folding joins lines, except those that begin with a blank (YAML 1.2.2, 8.1.3).
        let is_joined =
            self.is_folded && self.has_line_end && !self.begins_with_blank && !begins_with_blank;
        if is_joined && self.empty_lines == 0 {
            self.value.push(' ');
        } else if self.has_line_end && !is_joined {
            self.value.push('\n');
        }
        self.add_empty_lines();
        self.value.push_str(line);
        self.has_line_end = has_line_end;
        self.begins_with_blank = begins_with_blank;
    }

    fn add_empty_lines(&mut self) {
        self.value
            .extend(std::iter::repeat_n('\n', self.empty_lines));
        self.empty_lines = 0;
    }
}

impl Parser<'_> {
    /// Reads a block scalar, up to the start of the first line after it.
    pub(super) fn read_block_scalar(&mut self, at: usize) -> Option<()> {
        let (kind, is_folded) = if self.bytes[at] == b'|' {
            (NodeKind::Literal, false)
        } else {
            (NodeKind::Folded, true)
        };
        let (chomping, header_end) = match self.byte(at + 1) {
            b'-' => (Chomping::Strip, at + 2),
            b'+' => (Chomping::Keep, at + 2),
            _ => (Chomping::Clip, at + 1),
        };
        self.end_line(header_end)?;
        let parent = self.open.last()?.column;
        let (indent, empty_lines) = self.find_indent()?;
        if indent <= parent {
            // The scalar is empty. With keep chomping the blank lines before this line belong to it: give up.
            let extra = self.keep(String::new());
            self.push(kind, at, header_end, extra);
            return (chomping != Chomping::Keep).then_some(());
        }
        let mut content = BlockScalarValue {
            // A few lines.
            value: String::with_capacity(128),
            is_folded,
            empty_lines,
            has_line_end: false,
            begins_with_blank: false,
        };
        let last_line_end = self.read_content(indent, &mut content);
        // The end of the text counts as a line end: kubectl's document reader adds one.
        if chomping != Chomping::Strip {
            content.value.push('\n');
        }
        let mut end = last_line_end;
        if chomping == Chomping::Keep {
            // A last line of blanks without a line end is left to the complete parser.
            if self.next < self.bytes.len() && self.line_end(self.next) == self.bytes.len() {
                return None;
            }
            content.add_empty_lines();
            end = if content.has_line_end { self.next } else { end };
        }
        let extra = self.keep(content.value);
        self.push(kind, at, end, extra);
        Some(())
    }

    /// Returns the indentation of the first line that is not empty, and the number of empty lines before it, and
    /// moves `next` to that line. Empty lines with more blanks than that are an error (YAML 1.2.2, 8.1.1.1).
    fn find_indent(&mut self) -> Option<(usize, usize)> {
        let mut most_blanks = 0;
        let mut empty_lines = 0;
        while self.next < self.bytes.len() {
            let at = self.skip_spaces(self.next);
            let indent = at - self.next;
            match self.byte(at) {
                b'\n' | b'\r' if self.line_end(at) < self.bytes.len() => {
                    most_blanks = most_blanks.max(indent);
                    empty_lines += 1;
                    self.next = self.line_end(at) + 1;
                }
                b'\n' | b'\r' | b'\t' => return None,
                _ => return (most_blanks <= indent).then_some((indent, empty_lines)),
            }
        }
        None
    }

    /// Reads content lines and empty lines. Returns the end of the last content line.
    fn read_content(&mut self, indent: usize, content: &mut BlockScalarValue) -> usize {
        let mut last = self.next;
        while self.next < self.bytes.len() {
            let start = self.next;
            let blanks = self.bytes[start..]
                .iter()
                .take(indent)
                .take_while(|&&byte| byte == b' ')
                .count();
            let at = start + blanks;
            let line_feed = self.line_end(at);
            let has_line_end = line_feed < self.bytes.len();
            let end = line_feed - usize::from(line_feed > at && self.bytes[line_feed - 1] == b'\r');
            if at == end {
                if !has_line_end {
                    break;
                }
                content.empty_lines += 1;
            } else if blanks < indent {
                break;
            } else {
                content.add_line(&self.tree.text[at..end], has_line_end);
                last = end;
            }
            self.next = (line_feed + 1).min(self.bytes.len());
        }
        last
    }
}
