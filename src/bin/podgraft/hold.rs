//! A text that can be read only once, to be read again when the run has succeeded: in memory, and where that is too much
//! in a temporary file without a name, which is gone with the process.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};

/// Memory is taken in pieces of this size: a growing one would be copied, and be there twice.
const PIECE: usize = 1 << 20;

/// See the module's text.
#[derive(Debug)]
pub struct Hold {
    pieces: Vec<Vec<u8>>,
    length: usize,
    most: usize,
    file: Option<BufWriter<File>>,
}

impl Hold {
    /// Empty; more bytes than these go to a file.
    pub fn in_memory_up_to(most: usize) -> Self {
        Hold { pieces: Vec::new(), length: 0, most, file: None }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn reader(mut self) -> io::Result<Held> {
        match self.file.take() {
            Some(file) => {
                let mut file = file.into_inner()?;
                file.rewind()?;
                Ok(Held::InFile(BufReader::with_capacity(PIECE, file)))
            }
            None => Ok(Held::InMemory { pieces: self.pieces.into(), at: 0 }),
        }
    }

    fn spill(&mut self) -> io::Result<BufWriter<File>> {
        let mut file = BufWriter::with_capacity(PIECE, tempfile::tempfile()?);
        for piece in self.pieces.drain(..) {
            file.write_all(&piece)?;
        }
        Ok(file)
    }
}

impl Write for Hold {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        if self.length + bytes.len() > self.most {
            let mut file = self.spill()?;
            file.write_all(bytes)?;
            self.file = Some(file);
            return Ok(bytes.len());
        }
        let room = self.pieces.last().map_or(0, |piece| piece.capacity() - piece.len());
        if room == 0 {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let piece = self.pieces.last_mut().expect("one was made where there was none");
        let taken = bytes.len().min(piece.capacity() - piece.len());
        piece.extend_from_slice(&bytes[..taken]);
        self.length += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was held, from its start.
pub enum Held {
    /// In a file.
    InFile(BufReader<File>),
    /// The first piece is read up to `at`.
    InMemory { pieces: VecDeque<Vec<u8>>, at: usize },
}

impl BufRead for Held {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Held::InFile(file) => file.fill_buf(),
            Held::InMemory { pieces, at } => {
                while pieces.front().is_some_and(|piece| *at == piece.len()) {
                    pieces.pop_front();
                    *at = 0;
                }
                Ok(pieces.front().map_or(&[], |piece| &piece[*at..]))
            }
        }
    }

    fn consume(&mut self, length: usize) {
        match self {
            Held::InFile(file) => file.consume(length),
            Held::InMemory { at, .. } => *at += length,
        }
    }
}

impl Read for Held {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_out_as_it_went_in_from_memory_and_from_a_file() {
        let most = 5 * PIECE;
        for length in [0, 10, 3 * PIECE + 5, most + 5] {
            let mut hold = Hold::in_memory_up_to(most);
            let line = b"0123456789abcdef-";
            let mut left = length;
            while left > 0 {
                let part = &line[..left.min(line.len())];
                hold.write_all(part).unwrap();
                left -= part.len();
            }
            assert_eq!(hold.file.is_some(), length > most);
            let mut out = Vec::new();
            hold.reader().unwrap().read_to_end(&mut out).unwrap();
            assert_eq!(out.len(), length);
            assert!(out.iter().zip(line.iter().cycle()).all(|(own, wanted)| own == wanted));
        }
    }
}
