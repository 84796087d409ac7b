//! Owners, modes and identities of files, which each system has in its own way.

use std::fs::{self, File, Metadata, OpenOptions};
use std::path::Path;

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

/// The device and inode of a file.
#[cfg(unix)]
pub type FileIdentity = (u64, u64);

/// The identity of the file that has this metadata.
#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> FileIdentity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Other systems offer no such numbers, so only the path counts.
#[cfg(not(unix))]
pub type FileIdentity = ();

/// The identity of the file at a path, the same for all its hard links. `None` if there is no file, or the system has
/// no identities.
pub fn identity_of(path: &Path) -> Option<FileIdentity> {
    cfg!(unix)
        .then(|| fs::metadata(path).ok().map(|metadata| identity(&metadata)))
        .flatten()
}

/// See [`FileIdentity`].
#[cfg(not(unix))]
pub(super) fn identity(_metadata: &Metadata) -> FileIdentity {}
