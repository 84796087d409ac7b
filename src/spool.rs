//! Keeps a text that can be read only once, so that it can be read again when the run has succeeded: in memory, and
//! above a limit in a temporary file. The file has no name, so it is gone when the process ends.

use std::env;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Seek, Write};
use std::path::PathBuf;

use podgraft_core::diagnostic::{Code, Diagnostic};

/// Bytes that are written to the file and read from it at once.
const PIECE: usize = 1 << 20;

/// Bytes that are written once and then read; see the module.
#[derive(Debug)]
pub struct Spool {
    memory: Vec<u8>,
    memory_limit: usize,
    file: Option<BufWriter<File>>,
    /// The folder of the temporary file.
    folder: PathBuf,
}

/// Reads a spool from its start.
pub type SpoolReader = Box<dyn BufRead + Send>;

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
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<SpoolError>())
    {
        None => otherwise(),
        Some(unheld) => Diagnostic::error(Code::File, unheld.to_string()).help(
            "set TMPDIR to a folder with more space than the manifests need, pass a file instead \
             of stdin, or use --stream: the output is kept there until the run succeeds",
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
        let mut memory = Vec::new();
        // A buffer that grows is copied, and needs twice its size meanwhile. Room that is not used takes no memory.
        let _ = memory.try_reserve_exact(most);
        Spool {
            memory,
            memory_limit: most,
            file: None,
            folder,
        }
    }

    /// Ends writing and reads the text from its start.
    ///
    /// # Errors
    /// Errors of the temporary file.
    pub fn reader(self) -> io::Result<SpoolReader> {
        Ok(match self.finish()? {
            Ok(text) => Box::new(Cursor::new(text)),
            Err(file) => Box::new(BufReader::with_capacity(PIECE, file)),
        })
    }

    /// The text as one buffer, or as `Err` the file that it is in, at its start.
    ///
    /// # Errors
    /// Errors of the temporary file.
    pub fn finish(mut self) -> io::Result<Result<Vec<u8>, File>> {
        let Some(file) = self.file.take() else {
            return Ok(Ok(self.memory));
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        let file = file.and_then(|mut file| file.rewind().map(|()| file));
        file.map(Err)
            .map_err(|error| self.temporary_file_error(error))
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
        file.write_all(&std::mem::take(&mut self.memory))?;
        Ok(file)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() && self.memory.len() + bytes.len() <= self.memory_limit {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let written = match &mut self.file {
            Some(file) => file.write(bytes),
            None => self
                .spill()
                .and_then(|file| self.file.insert(file).write(bytes)),
        };
        written.map_err(|error| self.temporary_file_error(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
