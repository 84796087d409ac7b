//! Writes on standard output.

use std::io::{self, BufWriter, Write};

use podgraft_core::diagnostic::{Code, Diagnostic};

/// Bytes of the buffer of stdout.
const BLOCK: usize = 256 << 10;

/// Prints a result on stdout.
pub fn print(result: &[u8]) -> Result<(), Diagnostic> {
    print_with(|stdout| stdout.write_all(result))
}

/// Stdout without a buffer, for writes in large pieces.
#[cfg(unix)]
pub fn unbuffered() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Stdout, for writes in large pieces.
#[cfg(not(unix))]
pub fn unbuffered() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Writes a result on stdout.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Diagnostic> {
    let mut stdout = BufWriter::with_capacity(BLOCK, io::stdout().lock());
    ignore_broken_pipe(write(&mut stdout).and_then(|()| stdout.flush()))
        .map_err(|error| stdout_problem(&error))
}

/// A reader that closes the pipe early (`| head`) is no error.
pub fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The error for a result that cannot be printed.
pub fn stdout_problem(error: &io::Error) -> Diagnostic {
    Diagnostic::error(Code::File, format!("stdout cannot be written: {error}"))
}
