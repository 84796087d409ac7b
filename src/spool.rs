//! Keeps a text that can be read only once, so that it can be read again when the run has succeeded: in memory, and
//! above a limit in a temporary file. The file has no name, so it is gone when the process ends.

use std::collections::VecDeque;
use std::env;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;

use podgraft_core::diagnostic::{Code, Diagnostic};

/// Bytes of a piece of memory. One growing buffer would be copied, and would need twice its size while it grows.
const PIECE: usize = 1 << 20;

/// Bytes that are written once and then read; see the module.
#[derive(Debug)]
pub struct Spool {
    pieces: Vec<Vec<u8>>,
    length: usize,
    memory_limit: usize,
    file: Option<BufWriter<File>>,
    /// The folder of the temporary file.
    folder: PathBuf,
}

/// Marks an [`io::Error`] as one of the temporary file, not of the input or the output.
#[derive(Debug)]
struct SpoolError {
    folder: PathBuf,
    error: io::Error,
}

impl Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a temporary file in `{}` cannot be written: {}",
            self.folder.display(),
            self.error
        )
    }
}

impl std::error::Error for SpoolError {}

/// The diagnostic for an error: that of the temporary file if the spool failed, else what `otherwise` returns.
pub fn temporary_file_problem_or(
    error: &io::Error,
    otherwise: impl FnOnce() -> Diagnostic,
) -> Diagnostic {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<SpoolError>()) {
        None => otherwise(),
        Some(unheld) => Diagnostic::error(Code::File, unheld.to_string()).help(
            "what goes to stdout is kept there until the run has succeeded: set TMPDIR to a folder with more room than \
             the manifests take, name a file instead of stdin, or use --stream",
        ),
    }
}

impl Spool {
    /// An empty spool; a text of more bytes goes to a file.
    pub fn in_memory_up_to(memory_limit: usize) -> Self {
        // In WebAssembly there is no folder for temporary files.
        let (most, folder) = if cfg!(target_family = "wasm") {
            (usize::MAX, PathBuf::new())
        } else {
            (memory_limit, env::temp_dir())
        };
        Spool {
            pieces: Vec::new(),
            length: 0,
            memory_limit: most,
            file: None,
            folder,
        }
    }

    /// Ends writing and reads the text from its start.
    ///
    /// # Errors
    /// Errors of the temporary file.
    pub fn reader(mut self) -> io::Result<SpoolReader> {
        match self.file.take() {
            Some(file) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error);
                let file = file.and_then(|mut file| file.rewind().map(|()| file));
                let file = file.map_err(|error| self.temporary_file_error(error))?;
                Ok(SpoolReader::InFile(BufReader::with_capacity(PIECE, file)))
            }
            None => Ok(SpoolReader::InMemory {
                pieces: self.pieces.into(),
                at: 0,
            }),
        }
    }

    /// The text as one buffer, or as `Err` the file that it is in.
    ///
    /// # Errors
    /// Errors of the temporary file.
    pub fn finish(mut self) -> io::Result<Result<Vec<u8>, File>> {
        if let Some(file) = self.file.take() {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error);
            return file
                .map(Err)
                .map_err(|error| self.temporary_file_error(error));
        }
        let mut text = Vec::with_capacity(self.length);
        for piece in self.pieces {
            text.extend(piece);
        }
        Ok(Ok(text))
    }

    fn temporary_file_error(&self, error: io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            SpoolError {
                folder: self.folder.clone(),
                error,
            },
        )
    }

    fn spill(&mut self) -> io::Result<BufWriter<File>> {
        let mut file = BufWriter::with_capacity(PIECE, tempfile::tempfile_in(&self.folder)?);
        for piece in self.pieces.drain(..) {
            file.write_all(&piece)?;
        }
        Ok(file)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file
                .write(bytes)
                .map_err(|error| self.temporary_file_error(error));
        }
        if self.length + bytes.len() > self.memory_limit {
            let spilled = self
                .spill()
                .and_then(|mut file| file.write_all(bytes).map(|()| file));
            self.file = Some(spilled.map_err(|error| self.temporary_file_error(error))?);
            return Ok(bytes.len());
        }
        let room = self
            .pieces
            .last()
            .map_or(0, |piece| piece.capacity() - piece.len());
        if room == 0 {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let piece = self
            .pieces
            .last_mut()
            .expect("one was made where there was none");
        let taken = bytes.len().min(piece.capacity() - piece.len());
        piece.extend_from_slice(&bytes[..taken]);
        self.length += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a spool from its start.
pub enum SpoolReader {
    /// All of it is in a file.
    InFile(BufReader<File>),
    /// All of it is in memory; the first piece is read up to `at`.
    InMemory {
        pieces: VecDeque<Vec<u8>>,
        at: usize,
    },
}

impl BufRead for SpoolReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            SpoolReader::InFile(file) => file.fill_buf(),
            SpoolReader::InMemory { pieces, at } => {
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
            SpoolReader::InFile(file) => file.consume(length),
            SpoolReader::InMemory { at, .. } => *at += length,
        }
    }
}

impl Read for SpoolReader {
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
    fn a_temporary_file_that_cannot_be_is_named_with_its_folder() {
        let mut hold = Spool {
            folder: "/nowhere/at/all".into(),
            ..Spool::in_memory_up_to(10)
        };
        let error = hold.write_all(b"more than ten bytes").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let problem =
            temporary_file_problem_or(&error, || unreachable!("it is that of the temporary file"));
        assert!(
            problem
                .message
                .starts_with("a temporary file in `/nowhere/at/all` cannot be written: ")
        );
        assert!(problem.help.is_some_and(|help| help.contains("TMPDIR")));
        let other = temporary_file_problem_or(&io::Error::other("x"), || {
            Diagnostic::error(Code::File, "another")
        });
        assert_eq!(other.message, "another");
    }

    #[test]
    fn what_is_held_comes_out_as_it_went_in_from_memory_and_from_a_file() {
        let most = 5 * PIECE;
        for length in [0, 10, 3 * PIECE + 5, most + 5] {
            let mut hold = Spool::in_memory_up_to(most);
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
            assert!(
                out.iter()
                    .zip(line.iter().cycle())
                    .all(|(found, wanted)| found == wanted)
            );
        }
    }
}
