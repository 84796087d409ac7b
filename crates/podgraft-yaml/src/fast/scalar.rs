//! Plain and quoted scalars.

use std::num::NonZeroU32;

use super::super::tree::{NodeKind, VERBATIM};
use super::folding::without_trailing_blanks;
use super::{Parser, characters, offset};

/// A scanned scalar. Kept small, and the hot functions that make it are inlined: passing it through memory cost a
/// sixth of the parser's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScannedScalar {
    pub kind: NodeKind,
    pub end: u32,
    /// The `extra` of its node.
    pub extra: u32,
    /// The offset of the `:` after it, if it is a key.
    pub colon: Option<NonZeroU32>,
}

impl Parser<'_> {
    #[inline]
    pub(super) fn push_scalar(&mut self, start: usize, scalar: ScannedScalar) {
        self.push(scalar.kind, start, scalar.end as usize, scalar.extra);
    }

    /// Scans the scalar at `at` in block context, and finds the `:` if it is a key.
    #[inline(always)]
    pub(super) fn scan_scalar(&mut self, at: usize) -> Option<ScannedScalar> {
        let is_plain = match self.bytes[at] {
            byte if begins_plain(byte) => true,
            quote @ (b'"' | b'\'') => {
                let parent = self.open.last().map(|open| open.column);
                let mut scalar = self.scan_quoted(at, quote, parent)?;
                let behind = self.skip_spaces(scalar.end as usize);
                let is_key = self.byte(behind) == b':'
                    && matches!(self.byte(behind + 1), b' ' | b'\n' | b'\r');
                scalar.colon = NonZeroU32::new(offset(behind)).filter(|_| is_key);
                // A key of several lines is an error (YAML 1.2.2, 7.4.2).
                let is_key_on_one_line = !is_key || !self.bytes[at..behind].contains(&b'\n');
                return is_key_on_one_line.then_some(scalar);
            }
            // At the start of a line these may be `---` or `...`.
            b'-' | b'.' if at == 0 || self.bytes[at - 1] == b'\n' => false,
            b'-' | b':' => !matches!(self.byte(at + 1), b' ' | b'\n' | b'\r' | b'\t'),
            byte => can_begin_plain(byte),
        };
        if is_plain { self.scan_plain(at) } else { None }
    }

    /// Scans a plain scalar in block context, whose first byte was looked at. It ends at `: ` and ` #` (YAML 1.2.2,
    /// 7.3.3).
    #[inline(always)]
    fn scan_plain(&self, at: usize) -> Option<ScannedScalar> {
        let mut stop = at;
        let colon = loop {
            stop = characters::find_stop(self.bytes, stop);
            match self.byte(stop) {
                b':' if matches!(self.byte(stop + 1), b' ' | b'\n' | b'\r') => {
                    break NonZeroU32::new(offset(stop));
                }
                b'#' if self.bytes[stop - 1] == b' ' => break None,
                b'\t' => return None,
                b'\n' | b'\r' => break None,
                _ => stop += 1,
            }
        };
        let mut end = stop;
        while matches!(self.bytes[end - 1], b' ' | b'\r') {
            end -= 1;
        }
        Some(ScannedScalar {
            kind: NodeKind::Plain,
            end: offset(end),
            extra: VERBATIM,
            colon,
        })
    }

    /// Scans a quoted scalar. With `parent` it may span several lines, all deeper than that column. Its value is
    /// stored before its node is pushed, so the caller must push it before it scans the next, or give up.
    pub(super) fn scan_quoted(
        &mut self,
        at: usize,
        quote: u8,
        parent: Option<usize>,
    ) -> Option<ScannedScalar> {
        let kind = match quote {
            b'"' => NodeKind::DoubleQuoted,
            _ => NodeKind::SingleQuoted,
        };
        let (mut value, mut from): (Option<String>, usize) = (None, at + 1);
        loop {
            let rest = &self.bytes[from..];
            let found = from
                + match quote {
                    b'"' => memchr::memchr3(b'"', b'\\', b'\n', rest)?,
                    _ => memchr::memchr2(b'\'', b'\n', rest)?,
                };
            let piece = &self.tree.text[from..found];
            match self.bytes[found] {
                b'\n' => {
                    from = self.fold_quoted(from, found, parent?, value.get_or_insert_default())?;
                }
                b'\\' => {
                    let value = value.get_or_insert_default();
                    value.push_str(piece);
                    from = self.unescape_into(found + 1, parent, value)?;
                }
                b'\'' if self.byte(found + 1) == b'\'' => {
                    let value = value.get_or_insert_default();
                    value.push_str(piece);
                    value.push('\'');
                    from = found + 2;
                }
                _ => {
                    let value = value.map(|value| value + piece);
                    return Some(ScannedScalar {
                        kind,
                        end: offset(found + 1),
                        extra: value.map_or(VERBATIM, |value| self.keep(value)),
                        colon: None,
                    });
                }
            }
        }
    }

    /// Folds a line end in quotes into `value`, and returns the offset at which the text continues.
    fn fold_quoted(
        &self,
        from: usize,
        line_feed: usize,
        parent: usize,
        value: &mut String,
    ) -> Option<usize> {
        value.push_str(without_trailing_blanks(&self.tree, from, line_feed));
        let next = self.find_continuation(line_feed, parent)?;
        next.fold_into(value);
        Some(next.at)
    }

    fn unescape_into(&self, at: usize, parent: Option<usize>, value: &mut String) -> Option<usize> {
        let line_feed = if self.byte(at) == b'\r' { at + 1 } else { at };
        if self.bytes.get(line_feed) == Some(&b'\n') {
            // An escaped line end adds nothing. Empty lines after it are left to the complete parser.
            let next = self.find_continuation(line_feed, parent?)?;
            return if next.has_empty_lines() {
                None
            } else {
                Some(next.at)
            };
        }
        let (char, length) = self.unescape(at)?;
        value.push(char);
        Some(at + length)
    }

    /// The character of an escape, and the escape's length without the backslash.
    fn unescape(&self, at: usize) -> Option<(char, usize)> {
        let char = match self.bytes.get(at)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'0' => '\0',
            b'e' => '\u{1b}',
            char @ (b'"' | b'\\' | b'/' | b' ') => char::from(*char),
            b'x' => return self.unescape_digits(at + 1, 2),
            b'u' => return self.unescape_digits(at + 1, 4),
            b'U' => return self.unescape_digits(at + 1, 8),
            _ => return None,
        };
        Some((char, 1))
    }

    fn unescape_digits(&self, at: usize, count: usize) -> Option<(char, usize)> {
        let digits = self.tree.text.get(at..at + count)?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        // Half a surrogate pair is no character, so pairs are left to the complete parser.
        let char = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
        are_digits.then_some((char, 1 + count))
    }
}

/// Whether a byte can begin a plain scalar: all but blanks, line ends and indicators (YAML 1.2.2, 5.3). Some
/// indicators may begin one, but only `-` is supported.
#[inline(always)]
pub(super) fn can_begin_plain(byte: u8) -> bool {
    PLAIN_STARTS[byte as usize] != NO_START
}

/// Whether a byte begins a plain scalar wherever it is. `-` and `.` may begin something else.
#[inline(always)]
pub(super) fn begins_plain(byte: u8) -> bool {
    PLAIN_STARTS[byte as usize] == SURE_START
}

const NO_START: u8 = 0;
const POSSIBLE_START: u8 = 1;
const SURE_START: u8 = 2;

const PLAIN_STARTS: [u8; 256] = {
    let mut starts = [SURE_START; 256];
    let others = b"\t\n\r ?:,[]{}#&*!|>'\"%@`";
    let mut at = 0;
    while at < others.len() {
        starts[others[at] as usize] = NO_START;
        at += 1;
    }
    (starts[b'-' as usize], starts[b'.' as usize]) = (POSSIBLE_START, POSSIBLE_START);
    starts
};
