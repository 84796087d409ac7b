//! The exit statuses of the program.

/// The exit status of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded, and `diff` found no differences.
    Done = 0,
    /// `diff` found differences, or `check`, `policy lint` or `policy test` has findings.
    Differences = 1,
    /// Refused or failed; nothing was written.
    Refused = 2,
    /// A bug of podgraft; nothing was written.
    Internal = 70,
}
