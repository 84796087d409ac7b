//! Why the record of a workload changes where nothing else does.

use std::fmt;

/// Why the record of a policy changes although the policy injects what it did before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordCause {
    /// The policy had this name before.
    Renamed(String),
    /// These policies inject the same.
    SharedWith(Vec<String>),
    /// These policies injected it before.
    TakenOver(Vec<String>),
    /// It applies before this policy now.
    MovedBefore(String),
    /// It is of another version of the policy, with the same result.
    Version,
    /// It goes from an annotation into the lock file.
    IntoLock,
    /// What somebody changed since is left, and no longer recorded.
    Left,
    /// Not known.
    Other,
}

impl fmt::Display for RecordCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordCause::Renamed(before) => write!(f, ": renamed from {before}"),
            RecordCause::SharedWith(others) => {
                let verb = if others.len() == 1 {
                    "injects"
                } else {
                    "inject"
                };
                write!(f, ": {} {verb} the same", others.join(", "))
            }
            RecordCause::TakenOver(others) => write!(f, ": taken over from {}", others.join(", ")),
            RecordCause::MovedBefore(other) => write!(f, ": now applies before {other}"),
            RecordCause::Version => f.write_str(": different version, same result"),
            RecordCause::IntoLock => f.write_str(": moved to podgraft.lock"),
            RecordCause::Left => f.write_str(": changed values stay"),
            RecordCause::Other => Ok(()),
        }
    }
}
