//! A first look at all bytes, before anything is read: it makes the characters that YAML forbids, or that readers
//! disagree about, nobody else's concern. And the search for the few bytes that mean something, eight at a time: lines
//! are too short for a vector search to pay.

/// Whether a text has no control characters but tabs and line ends, no carriage return alone, no byte order mark, and
/// none of the characters that are line ends for some readers only.
pub(super) fn are_known(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut has_control = false;
    let mut combined = 0_u8;
    // Whole blocks without a branch: the compiler makes vector instructions of it.
    for block in bytes.chunks(64) {
        for &byte in block {
            has_control |= (byte < b' ') & (byte != b'\n') | (byte == 0x7f);
            combined |= byte;
        }
    }
    (!has_control || are_controls_known(bytes)) && (combined < 0x80 || text.chars().all(is_known))
}

fn are_controls_known(bytes: &[u8]) -> bool {
    let is_known =
        |byte: &u8| *byte >= b' ' && *byte != 0x7f || matches!(byte, b'\t' | b'\n' | b'\r');
    let is_line_end = |at: usize| bytes.get(at + 1) == Some(&b'\n');
    bytes.iter().all(is_known) && memchr::memchr_iter(b'\r', bytes).all(is_line_end)
}

fn is_known(char: char) -> bool {
    !matches!(
        char,
        '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(
        word.try_into().expect("eight bytes were taken"),
    ))
}

/// The high bit of every byte of `word` that is `byte`; above the lowest of them there may be others.
#[inline]
fn matches(word: u64, byte: u8) -> u64 {
    let zeroed = word ^ (LOW_BITS * u64::from(byte));
    zeroed.wrapping_sub(LOW_BITS) & !zeroed & HIGH_BITS
}

#[inline]
fn first_of(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

/// Whether there are so many spaces at `at`.
#[inline]
pub(super) fn begins_with_spaces(bytes: &[u8], at: usize, count: usize) -> bool {
    match word(bytes, at) {
        Some(word) if count < 8 => {
            (word ^ (LOW_BITS * u64::from(b' '))) & ((1 << (8 * count)) - 1) == 0
        }
        _ => bytes[at..].iter().take(count).all(|&byte| byte == b' '),
    }
}

/// The first byte at or behind `at` that is not a space.
#[inline]
pub(super) fn skip_indentation(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word(bytes, at) {
        let difference = word ^ (LOW_BITS * u64::from(b' '));
        if difference != 0 {
            return at + first_of(difference);
        }
        at += 8;
    }
    bytes[at..]
        .iter()
        .position(|&byte| byte != b' ')
        .map_or(bytes.len(), |length| at + length)
}

/// The first `:`, `#`, tab or part of a line end at or behind `at`, or the end. There are no other control characters.
#[inline]
pub(super) fn find_stop(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word(bytes, at) {
        let controls = word.wrapping_sub(LOW_BITS * u64::from(b' ')) & !word & HIGH_BITS;
        let stops = matches(word, b':') | matches(word, b'#') | controls;
        if stops != 0 {
            return at + first_of(stops);
        }
        at += 8;
    }
    let is_stop = |&byte: &u8| matches!(byte, b':' | b'#' | b'\t' | b'\n' | b'\r');
    bytes[at..]
        .iter()
        .position(is_stop)
        .map_or(bytes.len(), |length| at + length)
}
