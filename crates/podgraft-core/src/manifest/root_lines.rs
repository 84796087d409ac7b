//! Finds lines that begin in column 0, 64 bytes at a time. About half of all lines are indented, which no branch
//! predictor can guess, so the code does not branch on single lines.

/// The number of bytes that are scanned at once.
const WINDOW: usize = 64;

/// The starts of the lines of a text that do not begin with a space, except the first line.
#[derive(Debug, Clone)]
pub(super) struct RootLines<'a> {
    text: &'a [u8],
    /// The offset of the window whose lines are in `found`.
    window: usize,
    /// Bit `n` is set if a line starts `n + 1` bytes behind the start of the window.
    found: u64,
}

impl<'a> RootLines<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        RootLines {
            text,
            window: 0,
            found: starts(text),
        }
    }

    /// The first start behind `at`, or the end of the text. Quick if the calls come in ascending order.
    #[inline]
    pub(super) fn next_after(&mut self, at: usize) -> usize {
        if at < self.window || at >= self.window + WINDOW {
            self.scan_window(at);
        }
        let passed = at - self.window;
        let mut left = self.found >> passed << passed;
        while left == 0 {
            if self.window + WINDOW >= self.text.len() {
                return self.text.len();
            }
            self.scan_window(self.window + WINDOW);
            left = self.found;
        }
        self.window + left.trailing_zeros() as usize + 1
    }

    fn scan_window(&mut self, window: usize) {
        self.window = window;
        self.found = starts(self.text.get(window..).unwrap_or_default());
    }
}

/// Bit `n` is set if byte `n` is a line feed, and neither a space nor the end of the text follows it.
#[inline]
fn starts(text: &[u8]) -> u64 {
    if let Some(window) = text.first_chunk() {
        return starts_in(window);
    }
    let mut window = [b' '; WINDOW + 1];
    let length = text.len().min(WINDOW);
    window[..length].copy_from_slice(&text[..length]);
    starts_in(&window)
}

#[inline]
fn starts_in(window: &[u8; WINDOW + 1]) -> u64 {
    let mut is_start = [0_u8; WINDOW];
    // Without a branch, so that the compiler can vectorize the loop.
    for (index, is_start) in is_start.iter_mut().enumerate() {
        *is_start = u8::from(window[index] == b'\n') & u8::from(window[index + 1] != b' ');
    }
    let mut found = 0;
    for (index, eight) in is_start.as_chunks().0.iter().enumerate() {
        // The multiplication gathers the lowest bits of the eight bytes in the highest byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        found |= bits << (8 * index);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_those_that_a_look_at_every_byte_finds() {
        let mut seed = 7_u64;
        for length in (0..400).chain([1000, 5000]) {
            let text: Vec<u8> = (0..length)
                .map(|_| {
                    seed = seed
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    b"\n\n  a-#\r"[(seed >> 33) as usize % 8]
                })
                .collect();
            let is_start = |&at: &usize| text[at - 1] == b'\n' && text[at] != b' ';
            let wanted: Vec<usize> = (1..length).filter(is_start).collect();
            for from in [0, 1, 63, 64, 65, length / 2] {
                let mut lines = RootLines::of(&text);
                let (mut at, mut found) = (from.min(length), Vec::new());
                loop {
                    at = lines.next_after(at);
                    if at >= length {
                        break;
                    }
                    found.push(at);
                }
                assert_eq!(
                    found,
                    wanted
                        .iter()
                        .copied()
                        .filter(|&start| start > from)
                        .collect::<Vec<_>>(),
                    "{length}"
                );
            }
        }
    }
}
