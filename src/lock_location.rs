//! Which lock file is that of a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use podgraft_core::config::FILE_NAME;
use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::record::lock::LOCK_FILE;

use crate::paths::{real, text_of};
use crate::repository::root_of;
use crate::texts::InputBytes;
use crate::walk::InputPlace;

/// The folders in which inputs were found, those above others first: all inputs of a folder have one lock file.
pub fn walked_folders(texts: &[InputBytes]) -> Vec<PathBuf> {
    let places = texts.iter().map(|(input, _)| &input.place);
    let walked = places.filter_map(|place| match place {
        InputPlace::Found { folder, .. } => Some(folder),
        InputPlace::Named(_) | InputPlace::Stdin => None,
    });
    let walked: BTreeSet<&PathBuf> = walked.collect();
    let mut walked: Vec<PathBuf> = walked
        .into_iter()
        .filter_map(|path| canonical_folder(path))
        .collect();
    walked.sort();
    walked
}

/// The path of a file, which may be named by a symbolic link: what is written is the file that the link leads to.
pub fn without_link(path: PathBuf) -> PathBuf {
    match path.is_symlink() {
        true => real(&path),
        false => path,
    }
}

/// The canonical path of the folder. An empty path is the current folder: it is the parent of `file.yaml`.
pub fn canonical_folder(folder: &Path) -> Option<PathBuf> {
    // `.` stands for nothing behind another folder.
    fs::canonicalize(folder.join(".")).ok()
}

/// The folder of the lock file for the files of `folder`. It is the nearest one upward with a lock file; else the
/// nearest with a `podgraft.yaml`, the root of the repository, the folder that was walked, or `folder` itself. Outside
/// of a repository, the search stops at the current or the walked folder, as what lies above may be anybody's.
pub fn lock_folder_of(folder: &Path, walked: Option<&Path>) -> PathBuf {
    let current_folder = env::current_dir().and_then(fs::canonicalize).ok();
    let root = root_of(folder);
    let current_folder = current_folder.as_deref();
    let current_folder = current_folder.filter(|current_folder| folder.starts_with(current_folder));
    let top = root.or(current_folder).or(walked).unwrap_or(folder);
    let with = |name: &str| {
        let mut upward = folder
            .ancestors()
            .take_while(|above| above.starts_with(top));
        upward.find(|above| above.join(name).is_file())
    };
    let home = with(LOCK_FILE)
        .or_else(|| with(FILE_NAME))
        .or(root)
        .or(walked)
        .unwrap_or(folder);
    home.to_path_buf()
}

/// Refuses a run outside of a repository whose folder has no lock file while one further up records its files: a second
/// one would hide it.
pub fn records_above(folder: &Path, home: &Path) -> Option<Diagnostic> {
    if root_of(folder).is_some() || home.join(LOCK_FILE).is_file() {
        return None;
    }
    let has_files_of = |above: &&Path| {
        let below = folder.strip_prefix(above).map(path_in_lock);
        let prefix = format!("\"{}/", below.unwrap_or_default());
        fs::read_to_string(above.join(LOCK_FILE)).is_ok_and(|text| text.contains(&prefix))
    };
    let above = home.ancestors().skip(1).find(has_files_of)?;
    let message = format!(
        "`{}` has records of files in `{}`, but this run would not read it",
        above.join(LOCK_FILE).display(),
        folder.display()
    );
    Some(Diagnostic::error(Code::NoRecord, message).help(format!(
        "run podgraft in `{}`: outside a Git repository, it looks for lock files only up to the \
         current folder",
        above.display()
    )))
}

/// A path as lock files write it.
pub fn path_in_lock(path: &Path) -> String {
    let steps = path.iter().map(|step| text_of(Path::new(step)));
    steps.collect::<Vec<_>>().join("/")
}
