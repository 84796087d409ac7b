//! The git repository that podgraft runs in: a patch names files from its root, as git does.

use std::env;
use std::path::{Path, PathBuf};

/// A repository.
#[derive(Debug, Clone)]
pub struct Repository {
    current_folder: PathBuf,
    root: PathBuf,
}

/// The repository of the folder that podgraft runs in. As with git, `GIT_CEILING_DIRECTORIES` ends the search.
pub fn repository() -> Option<Repository> {
    let current_folder = env::current_dir().ok()?;
    let ceilings: Vec<PathBuf> = env::var_os("GIT_CEILING_DIRECTORIES")
        .map(|paths| env::split_paths(&paths).collect())
        .unwrap_or_default();
    let is_open = |folder: &&Path| {
        *folder == current_folder || !ceilings.iter().any(|ceiling| ceiling == folder)
    };
    let root = current_folder
        .ancestors()
        .take_while(is_open)
        .find(|folder| folder.join(".git").exists())?
        .to_path_buf();
    Some(Repository {
        current_folder,
        root,
    })
}

impl Repository {
    /// Whether podgraft runs in a folder of it rather than in its root.
    pub fn is_below_root(&self) -> bool {
        self.current_folder != self.root
    }

    /// The path of a file from the root; none where it is elsewhere.
    pub fn path_of(&self, path: &Path) -> Option<PathBuf> {
        let real = std::fs::canonicalize(self.current_folder.join(path.parent()?)).ok()?;
        let root = std::fs::canonicalize(&self.root).ok()?;
        let folder = real.strip_prefix(root).ok()?;
        Some(folder.join(path.file_name()?))
    }
}
