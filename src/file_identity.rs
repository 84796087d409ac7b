//! The identity of a file, which all its names share.

use std::fs::{self, Metadata};
use std::path::Path;

/// The device and inode of a file.
#[cfg(unix)]
pub type FileIdentity = (u64, u64);

/// The identity of the file that has this metadata.
#[cfg(unix)]
pub fn identity(metadata: &Metadata) -> FileIdentity {
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
pub fn identity(_metadata: &Metadata) -> FileIdentity {}
