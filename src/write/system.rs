//! Owners, modes and identities of files, which each system has in its own way.

use std::fs::{File, Metadata, OpenOptions};

/// Gives a file the owner and group of its target, as far as the system allows it.
#[cfg(unix)]
pub(super) fn keep_owner(file: &File, previous: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let is_same = file
        .metadata()
        .is_ok_and(|metadata| (metadata.uid(), metadata.gid()) == (previous.uid(), previous.gid()));
    // Only root may change the owner of a file. Anybody may change the group to one of their own.
    if !is_same && fchown(file, Some(previous.uid()), Some(previous.gid())).is_err() {
        let _ = fchown(file, None, Some(previous.gid()));
    }
}

/// Other systems have no such owners.
#[cfg(not(unix))]
pub(super) fn keep_owner(_file: &File, _previous: &Metadata) {}

/// A replacement may hold secrets, and its target may be private. So the new file starts with mode 0600, and gets the
/// mode of its target when it is written.
#[cfg(unix)]
pub(super) fn restrict(options: &mut OpenOptions, previous: Option<&Metadata>) {
    use std::os::unix::fs::OpenOptionsExt;
    if previous.is_some() {
        options.mode(0o600);
    }
}

/// Other systems have no such modes.
#[cfg(not(unix))]
pub(super) fn restrict(_options: &mut OpenOptions, _previous: Option<&Metadata>) {}
