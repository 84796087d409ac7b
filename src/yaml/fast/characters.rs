//! A first look at all bytes, before anything is read: it makes the characters that YAML forbids, or that readers
//! disagree about, nobody else's concern.

/// Whether a text has no control characters but tabs and line ends, no carriage return alone, no byte order mark, and
/// none of the characters that are line ends for some readers only.
pub(super) fn are_known(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut has_control = false;
    let mut all = 0_u8;
    // Whole blocks without a branch: the compiler makes vector instructions of it.
    for block in bytes.chunks(64) {
        for &byte in block {
            has_control |= (byte < b' ') & (byte != b'\n') | (byte == 0x7f);
            all |= byte;
        }
    }
    (!has_control || are_controls_known(bytes)) && (all < 0x80 || text.chars().all(is_known))
}

fn are_controls_known(bytes: &[u8]) -> bool {
    let is_known = |byte: &u8| *byte >= b' ' && *byte != 0x7f || matches!(byte, b'\t' | b'\n' | b'\r');
    let is_line_end = |at: usize| bytes.get(at + 1) == Some(&b'\n');
    bytes.iter().all(is_known) && memchr::memchr_iter(b'\r', bytes).all(is_line_end)
}

fn is_known(char: char) -> bool {
    !matches!(char, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
