//! Keeps a text that can be read only once, so that it can be read again when the run has succeeded: in memory, and
//! above a limit in a temporary file. The file has no name, so it is gone when the process ends.

use std::env;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, IntoInnerError, Seek, Write};
use std::path::PathBuf;

use podgraft::diagnostic::{Code, Diagnostic};
use tempfile::{SpooledData, SpooledTempFile};

/// Bytes that are written once and then read; see the module.
#[derive(Debug)]
pub struct Spool {
    file: BufWriter<SpooledTempFile>,
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
            file: BufWriter::new(SpooledTempFile::new_in(most, &folder)),
            folder,
        }
    }

    /// Ends writing and reads the text from its start.
    pub fn reader(self) -> io::Result<SpoolReader> {
        Ok(match self.finish()? {
            Ok(text) => Box::new(Cursor::new(text)),
            Err(file) => Box::new(BufReader::new(file)),
        })
    }

    /// The text as one buffer, or as `Err` the file that it is in.
    pub fn finish(self) -> io::Result<Result<Vec<u8>, File>> {
        let Spool { file, folder } = self;
        let file = file.into_inner().map_err(IntoInnerError::into_error);
        let finished = file.and_then(|file| match file.into_inner() {
            SpooledData::InMemory(text) => Ok(Ok(text.into_inner())),
            SpooledData::OnDisk(mut file) => file.rewind().map(|()| Err(file)),
        });
        finished.map_err(|error| of_temporary_file(folder, error))
    }
}

fn of_temporary_file(folder: PathBuf, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), SpoolError { folder, error })
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        written.map_err(|error| of_temporary_file(self.folder.clone(), error))
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
            file: BufWriter::new(SpooledTempFile::new_in(10, "/nowhere/at/all")),
            folder: "/nowhere/at/all".into(),
        };
        hold.write_all(b"more than ten bytes").unwrap();
        let error = hold.finish().unwrap_err();
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
        let text = "0123456789abcdef-".repeat(10_000);
        for length in [0, 10, 100_000, text.len()] {
            let hold = || {
                let mut hold = Spool::in_memory_up_to(150_000);
                let parts = text.as_bytes()[..length].chunks(17);
                parts.for_each(|part| hold.write_all(part).unwrap());
                hold
            };
            assert_eq!(hold().finish().unwrap().is_err(), length > 150_000);
            let mut out = String::new();
            hold().reader().unwrap().read_to_string(&mut out).unwrap();
            assert!(out == text[..length]);
        }
    }
}
