//! Plain and quoted scalars on one line.

use super::super::tree::{Kind, VERBATIM};
use super::Parser;

/// A scalar that has been looked at, and the `:` behind it if it is a key.
#[derive(Debug)]
pub(super) struct Scanned {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    /// The value, where it is not the text between the quotes.
    pub value: Option<String>,
    pub colon: Option<usize>,
}

impl Parser<'_> {
    pub(super) fn push_scalar(&mut self, scalar: Scanned) {
        match scalar.value {
            Some(value) => self.push_decoded(scalar.kind, scalar.start, scalar.end, value),
            None => {
                self.push(scalar.kind, scalar.start, scalar.end, VERBATIM);
            }
        }
    }

    /// The scalar at `at` in block context. Behind it stands nothing, a comment, or the `:` of a key.
    pub(super) fn scan_scalar(&self, at: usize, line_end: usize) -> Option<Scanned> {
        match self.bytes[at] {
            quote @ (b'"' | b'\'') => {
                let mut scalar = self.scan_quoted(at, quote)?;
                let behind = self.skip_spaces(scalar.end);
                if self.byte(behind) == b':' && matches!(self.byte(behind + 1), b' ' | b'\n' | b'\r') {
                    scalar.colon = Some(behind);
                } else {
                    self.check_rest(scalar.end, line_end)?;
                }
                Some(scalar)
            }
            // At the start of a line these may be `---` or `...`.
            b'-' | b'.' if at == 0 || self.bytes[at - 1] == b'\n' => None,
            _ => self.scan_plain(at, line_end),
        }
    }

    /// A plain scalar in block context ends at `: ` and ` #` (YAML 1.2.2, 7.3.3).
    fn scan_plain(&self, at: usize, line_end: usize) -> Option<Scanned> {
        if !can_begin_plain(self.bytes[at]) || self.is_dash(at) {
            return None;
        }
        let mut end = line_end;
        let mut colon = None;
        let mut from = at;
        while let Some(length) = self.bytes[from..line_end].iter().position(|&byte| MAY_END_PLAIN[usize::from(byte)]) {
            let found = from + length;
            match self.bytes[found] {
                b':' if found + 1 == line_end || self.bytes[found + 1] == b' ' => {
                    colon = Some(found);
                    end = found;
                    break;
                }
                b'#' if self.bytes[found - 1] == b' ' => {
                    end = found;
                    break;
                }
                b'\t' => return None,
                _ => from = found + 1,
            }
        }
        while self.bytes[end - 1] == b' ' {
            end -= 1;
        }
        Some(Scanned { kind: Kind::Plain, start: at, end, value: None, colon })
    }

    /// A quoted scalar that ends on its line.
    pub(super) fn scan_quoted(&self, at: usize, quote: u8) -> Option<Scanned> {
        let (kind, end, value) = if quote == b'"' {
            let (end, value) = self.scan_double_quoted(at)?;
            (Kind::DoubleQuoted, end, value)
        } else {
            let (end, value) = self.scan_single_quoted(at)?;
            (Kind::SingleQuoted, end, value)
        };
        Some(Scanned { kind, start: at, end, value, colon: None })
    }

    fn scan_single_quoted(&self, at: usize) -> Option<(usize, Option<String>)> {
        let mut from = at + 1;
        let mut has_escape = false;
        loop {
            let end = from + memchr::memchr2(b'\'', b'\n', &self.bytes[from..])?;
            if self.bytes[end] == b'\n' {
                return None;
            }
            if self.byte(end + 1) != b'\'' {
                let value = has_escape.then(|| self.tree.text[at + 1..end].replace("''", "'"));
                return Some((end + 1, value));
            }
            has_escape = true;
            from = end + 2;
        }
    }

    fn scan_double_quoted(&self, at: usize) -> Option<(usize, Option<String>)> {
        let mut value: Option<String> = None;
        let mut from = at + 1;
        loop {
            let found = from + memchr::memchr3(b'"', b'\\', b'\n', &self.bytes[from..])?;
            let piece = &self.tree.text[from..found];
            match self.bytes[found] {
                b'"' => {
                    if let Some(value) = &mut value {
                        value.push_str(piece);
                    }
                    return Some((found + 1, value));
                }
                b'\\' => {
                    let (char, length) = self.unescape(found + 1)?;
                    let value = value.get_or_insert_default();
                    value.push_str(piece);
                    value.push(char);
                    from = found + 1 + length;
                }
                _ => return None,
            }
        }
    }

    /// The character that an escape stands for, and the escape's length without the backslash.
    fn unescape(&self, at: usize) -> Option<(char, usize)> {
        let digits = |count: usize| {
            let digits = self.tree.text.get(at + 1..at + 1 + count)?;
            let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            // Half a surrogate pair is no character, so a pair goes to the complete parser.
            let char = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            are_digits.then_some((char, 1 + count))
        };
        let char = match self.bytes.get(at)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'0' => '\0',
            b'e' => '\u{1b}',
            char @ (b'"' | b'\\' | b'/' | b' ') => char::from(*char),
            b'x' => return digits(2),
            b'u' => return digits(4),
            b'U' => return digits(8),
            _ => return None,
        };
        Some((char, 1))
    }
}

/// The bytes in a plain scalar that need another look.
static MAY_END_PLAIN: [bool; 256] = {
    let mut may_end = [false; 256];
    may_end[b':' as usize] = true;
    may_end[b'#' as usize] = true;
    may_end[b'\t' as usize] = true;
    may_end
};

/// All but blanks, line ends and YAML's indicators (1.2.2, 5.3), which may or may not begin a plain scalar; a `-` may.
pub(super) fn can_begin_plain(byte: u8) -> bool {
    !matches!(
        byte,
        b'\t'
            | b'\n'
            | b'\r'
            | b' '
            | b'?'
            | b':'
            | b','
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'#'
            | b'&'
            | b'*'
            | b'!'
            | b'|'
            | b'>'
            | b'\''
            | b'"'
            | b'%'
            | b'@'
            | b'`'
    )
}
