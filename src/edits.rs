//! The edits of a text of any size, encoded one after the other in a [`Spool`], so that memory does not grow with their
//! number.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

use foldhash::fast::RandomState;
use podgraft_core::yaml::splice::Edit;

use crate::spool::{Spool, SpoolReader};

/// Bytes of encoded edits that are kept in memory.
const IN_MEMORY: usize = 64 << 20;

/// The most inserted texts that are numbered. Many workloads get the same text, which is then stored once.
const MOST_NUMBERED: usize = 4096;

/// Longer texts in bytes are not numbered, so all numbered ones take at most 16 MiB.
const MOST_OF_NUMBERED: usize = 4 << 10;

/// Encoded edits; see the module. They are added in order and do not overlap.
#[derive(Debug)]
pub struct SpooledEdits {
    tape: Spool,
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, usize, RandomState>,
    count: usize,
    /// Start of the first edit.
    from: usize,
    /// End of the last edit.
    to: usize,
}

impl Default for SpooledEdits {
    fn default() -> Self {
        SpooledEdits {
            tape: Spool::in_memory_up_to(IN_MEMORY),
            texts: Vec::new(),
            numbers: HashMap::default(),
            count: 0,
            from: 0,
            to: 0,
        }
    }
}

impl SpooledEdits {
    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The byte range from the first edit to the end of the last, in the text before the edits.
    pub fn extent(&self) -> std::ops::Range<usize> {
        self.from..self.to
    }

    /// Appends edits. They must come after those that are there.
    pub fn add(&mut self, edits: &[Edit]) -> io::Result<()> {
        edits.iter().try_for_each(|edit| self.add_one(edit))
    }

    fn add_one(&mut self, edit: &Edit) -> io::Result<()> {
        if self.is_empty() {
            (self.from, self.to) = (edit.at.start, edit.at.start);
        }
        self.count += 1;
        self.write_number(edit.at.start - self.to)?;
        self.write_number(edit.at.len())?;
        self.to = edit.at.end;
        // An even number is twice the index of a numbered text; an odd one is twice the length of the text that
        // follows, plus 1.
        match self.number_of(&edit.text) {
            Some(number) => self.write_number(2 * number),
            None => {
                self.write_number(2 * edit.text.len() + 1)?;
                self.tape.write_all(edit.text.as_bytes())
            }
        }
    }

    fn number_of(&mut self, text: &Arc<str>) -> Option<usize> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        if text.len() > MOST_OF_NUMBERED || self.texts.len() == MOST_NUMBERED {
            return None;
        }
        self.texts.push(Arc::clone(text));
        self.numbers.insert(Arc::clone(text), self.texts.len() - 1);
        Some(self.texts.len() - 1)
    }

    /// Writes a number as LEB128: seven bits a byte, the lowest first, and the high bit set on all bytes but the last.
    fn write_number(&mut self, number: usize) -> io::Result<()> {
        let (mut bytes, mut length, mut rest) = ([0_u8; 10], 0, number);
        loop {
            let low_bits = u8::try_from(rest & 0x7f).expect("seven bits");
            rest >>= 7;
            bytes[length] = if rest == 0 { low_bits } else { low_bits | 0x80 };
            length += 1;
            if rest == 0 {
                return self.tape.write_all(&bytes[..length]);
            }
        }
    }

    /// Ends adding and reads the edits in their order.
    pub fn read(self) -> io::Result<SpooledEditReader> {
        Ok(SpooledEditReader {
            tape: self.tape.reader()?,
            texts: self.texts,
            left: self.count,
            at: self.from,
        })
    }
}

/// Decodes the edits of [`SpooledEdits::read`].
pub struct SpooledEditReader {
    tape: SpoolReader,
    texts: Vec<Arc<str>>,
    left: usize,
    at: usize,
}

impl SpooledEditReader {
    fn read_one(&mut self) -> io::Result<Edit> {
        let start = self.at + self.read_number()?;
        self.at = start + self.read_number()?;
        let number = self.read_number()?;
        let text = if number.is_multiple_of(2) {
            let known = self.texts.get(number / 2);
            Arc::clone(known.ok_or(io::ErrorKind::InvalidData)?)
        } else {
            let mut text = vec![0; number / 2];
            self.tape.read_exact(&mut text)?;
            String::from_utf8(text)
                .map_err(|_| io::ErrorKind::InvalidData)?
                .into()
        };
        Ok(Edit {
            at: start..self.at,
            text,
        })
    }

    fn read_number(&mut self) -> io::Result<usize> {
        let (mut number, mut bits) = (0, 0);
        loop {
            let mut byte = [0];
            self.tape.read_exact(&mut byte)?;
            let [byte] = byte;
            number |= usize::from(byte & 0x7f) << bits;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            bits += 7;
        }
    }
}

impl Iterator for SpooledEditReader {
    type Item = io::Result<Edit>;

    fn next(&mut self) -> Option<io::Result<Edit>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.read_one())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edits: &[Edit]) {
        let mut kept = SpooledEdits::default();
        edits.chunks(100).for_each(|part| kept.add(part).unwrap());
        assert_eq!(kept.is_empty(), edits.is_empty());
        if let [first, .., last] = edits {
            assert_eq!(kept.extent(), first.at.start..last.at.end);
        }
        assert_eq!(
            kept.read()
                .unwrap()
                .collect::<io::Result<Vec<_>>>()
                .unwrap(),
            edits
        );
    }

    #[test]
    fn edits_come_out_as_they_went_in() {
        check(&[]);
        let places = [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            1 << 21,
            1 << 35,
            usize::MAX >> 1,
        ];
        check(
            &places
                .windows(2)
                .map(|at| Edit {
                    at: at[0]..at[1],
                    text: "".into(),
                })
                .collect::<Vec<_>>(),
        );
        let texts = |at: usize| match at % 3 {
            0 => "the same".to_owned(),
            1 => at.to_string(),
            _ => "é".repeat(at % 7 * 1000),
        };
        let many = (0..3 * MOST_NUMBERED).map(|at| Edit {
            at: 300 * at + at % 200..300 * at + 200,
            text: texts(at).into(),
        });
        check(&many.collect::<Vec<_>>());
    }
}
