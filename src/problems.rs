//! Problems that many parts of the program meet: files that cannot be read or written, and lists of problems.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::{fs, io};

use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use podgraft_core::policy::schema::{did_you_mean, nearest};

use crate::paths::is_manifest_name;

/// The error for a file that cannot be read.
pub fn not_read(name: impl Display, reason: impl Display) -> Diagnostic {
    Diagnostic::error(Code::File, format!("`{name}` cannot be read: {reason}"))
}

/// The error for a file that cannot be written.
pub fn not_written(name: impl Display, reason: impl Display) -> Diagnostic {
    Diagnostic::error(Code::File, format!("`{name}` cannot be written: {reason}"))
}

/// The error for a file that cannot be taken for a text.
pub fn not_utf8(name: impl Display) -> Diagnostic {
    Diagnostic::error(Code::NotUtf8, format!("`{name}` is not UTF-8"))
        .help("convert it to UTF-8 first")
}

/// Collects all values, or all problems: unlike `Result::from_iter`, it does not stop at the first one.
pub fn collect_all<T>(
    results: impl IntoIterator<Item = Result<T, Diagnostic>>,
) -> Diagnosed<Vec<T>> {
    let mut problems = Vec::new();
    let values = results.into_iter();
    let values = values.filter_map(|result| result.map_err(|problem| problems.push(problem)).ok());
    let values = values.collect();
    unless(problems, values)
}

/// The error for a file that cannot be read. If it is not there, a file or folder beside it with a similar name is
/// proposed.
pub fn unreadable(name: &str, error: &io::Error) -> Diagnostic {
    let problem = not_read(name, error);
    if error.kind() != io::ErrorKind::NotFound {
        return problem;
    }
    if Path::new(name).is_symlink() {
        return not_read(name, "it is a symbolic link whose target does not exist");
    }
    match similar_path(Path::new(name)) {
        Some(path) => problem.help(did_you_mean(&path.to_string_lossy())),
        None => problem,
    }
}

/// The folder, or the file with the name of a manifest, whose name is most like that of a path which is not there.
fn similar_path(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let entries = fs::read_dir(Path::new(".").join(folder)).ok()?.flatten();
    let mut names: Vec<PathBuf> = entries
        .filter(|entry| entry.path().is_dir() || is_manifest_name(&entry.path()))
        .map(|entry| PathBuf::from(entry.file_name()))
        .collect();
    names.sort();
    let stem = |path: &Path| Some(path.file_stem()?.to_string_lossy().into_owned());
    let stems: Vec<String> = names.iter().filter_map(|name| stem(name)).collect();
    let near = nearest(&stem(path)?, stems.iter().map(String::as_str))?;
    let index = stems.iter().position(|stem| stem == near)?;
    Some(folder.join(&names[index]))
}
