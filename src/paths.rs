//! Paths: as the file system has them, and what their names say.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::{env, fs};

use crate::kustomization;

/// Files that kustomize, kpt and Helm keep beside manifests.
const HOST_FILES: &[&str] = &["Kptfile", "Chart.yaml", "values.yaml"];
const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];

/// The path without links. The path itself where there is none, as for a file that was removed meanwhile.
pub fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// A path as text. A byte that is not UTF-8 becomes U+FFFD with its hexadecimal digits, so different paths have different
/// texts.
pub fn text_of(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "{}{byte:02x}", char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// The path as the current folder shows it, if it is below.
pub fn from_current_folder(path: &Path) -> PathBuf {
    let current_folder = real(&env::current_dir().unwrap_or_default());
    let below = path.strip_prefix(current_folder);
    below.unwrap_or(path).to_path_buf()
}

/// Whether a file, of which the [`resolved`] path is given, would replace another one, or stand where a folder of the
/// other one has to be.
pub fn is_in_the_way(file: &Path, other: &Path) -> bool {
    resolved(other).is_some_and(|other| other.starts_with(file))
}

/// The path as the system resolves it, as far as it exists.
pub fn resolved(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok().or_else(|| {
        let name = path.file_name()?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Some(resolved(folder)?.join(name))
    })
}

/// Whether two names are one path, perhaps with `./` in front of it.
pub fn is_same_path(name: &str, other: &str) -> bool {
    let is_named = |part: &Component<'_>| *part != Component::CurDir;
    let (parts, others) = (Path::new(name).components(), Path::new(other).components());
    parts.filter(is_named).eq(others.filter(is_named))
}

/// Whether a file in a folder may hold manifests.
pub fn is_manifest_name(path: &Path) -> bool {
    let is_in = |word: Option<&OsStr>, list: &[&str]| {
        let word = word.and_then(OsStr::to_str);
        word.is_some_and(|word| list.contains(&word))
    };
    is_in(path.extension(), EXTENSIONS)
        && !is_in(path.file_name(), HOST_FILES)
        && !is_kustomization(path)
}

/// Whether it is the name of a kustomization.
pub fn is_kustomization(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| kustomization::NAMES.contains(&name))
}
