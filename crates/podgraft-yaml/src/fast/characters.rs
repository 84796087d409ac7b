//! Checks all characters before parsing, so that the rest of the parser need not care about those that YAML forbids
//! or readers disagree about. Also searches for the few bytes that have a meaning, eight at a time: lines are too
//! short for a vector search to pay.

/// Whether a text has only characters that all readers agree on: no control characters but tabs and line ends, no
/// lone carriage return, no byte order mark, and no character that is a line end only for some readers.
pub(super) fn are_known(text: &str) -> bool {
    let bytes = text.as_bytes();
    // The least and the greatest byte at each place of a block: the compiler uses vector instructions for these.
    let mut least = [u8::MAX; BLOCK];
    let mut greatest = [0; BLOCK];
    let mut note = |block: &[u8]| {
        for ((&byte, least), greatest) in block.iter().zip(&mut least).zip(&mut greatest) {
            *least = (*least).min(if byte == b'\n' { b' ' } else { byte });
            *greatest = (*greatest).max(byte);
        }
    };
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    blocks.iter().for_each(|block| note(block));
    note(rest);
    let are_printable = least.iter().all(|&byte| byte >= b' ');
    let are_ascii = greatest.iter().all(|&byte| byte < 0x7f);
    are_printable && are_ascii
        || are_controls_known(bytes) && (text.is_ascii() || text.chars().all(is_known))
}

/// The bytes that are looked at together.
const BLOCK: usize = 32;

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

/// Returns a word with the high bit set in each byte of `word` that equals `byte`. Only the lowest set bit is
/// certain, because a borrow may set higher ones.
#[inline]
fn matches(word: u64, byte: u8) -> u64 {
    let zeroed = word ^ (LOW_BITS * u64::from(byte));
    zeroed.wrapping_sub(LOW_BITS) & !zeroed & HIGH_BITS
}

#[inline]
fn first_of(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

/// Returns the offset of the first byte at or after `at` that is not a space, or the end.
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

/// Returns the offset of the first `:`, `#`, tab or line end byte at or after `at`, or the end. The text has no other
/// control characters.
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
