//! Git repositories. A patch names files relative to the root of that of the current folder, as git does, and so do
//! reports for programs that show them beside the code.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use podgraft_core::diagnostic::Diagnostic;

/// A git repository, and the current folder in it.
#[derive(Debug, Clone)]
pub struct Repository {
    current_folder: PathBuf,
    root: PathBuf,
}

/// Finds the repository of the current folder. As with git, `GIT_CEILING_DIRECTORIES` limits the search.
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
    /// Whether the current folder is below the root.
    pub fn is_below_root(&self) -> bool {
        self.current_folder != self.root
    }

    /// The path of a file relative to the root; `None` if the file is outside.
    pub fn path_of(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(self.current_folder.join(path.parent()?)).ok()?;
        let root = fs::canonicalize(&self.root).ok()?;
        let folder = real.strip_prefix(root).ok()?;
        Some(folder.join(path.file_name()?))
    }

    /// Makes the files that diagnostics name relative to the root. Sources that are no files, as `<stdin>`, stay.
    pub fn name_from_root<'d>(&self, diagnostics: impl IntoIterator<Item = &'d mut Diagnostic>) {
        let mut names: HashMap<Arc<str>, Arc<str>> = HashMap::new();
        let labels = diagnostics
            .into_iter()
            .flat_map(|diagnostic| &mut diagnostic.labels);
        for source in labels.map(|label| &mut label.place.source) {
            let name = names
                .entry(Arc::clone(source))
                .or_insert_with_key(|source| self.name_of(source));
            *source = Arc::clone(name);
        }
    }

    fn name_of(&self, source: &Arc<str>) -> Arc<str> {
        let file = Path::new(&**source);
        let path = file.exists().then(|| self.path_of(file)).flatten();
        path.map_or_else(|| Arc::clone(source), |path| path.to_string_lossy().into())
    }
}

/// The root of the git repository of a folder.
pub fn root_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.join(".git").exists())
}

/// Whether git has checked out only a part of the repository of the folder. `git sparse-checkout` says so in the
/// configuration of the work tree or, in older versions, in that of the repository.
pub fn is_sparse_checkout(folder: &Path) -> bool {
    let Some(root) = root_of(folder) else {
        return false;
    };
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    // In a further work tree `.git` is a file with the path of the folder, which names the folder of the repository.
    let mut git = root.join(".git");
    if let Some(linked) = read(git.clone()).trim().strip_prefix("gitdir: ") {
        git = root.join(linked);
    }
    let common = git.join(read(git.join("commondir")).trim());
    let settings = [
        read(git.join("config.worktree")),
        read(common.join("config")),
    ]
    .concat();
    let mut settings = settings.lines().filter_map(|line| line.split_once('='));
    settings.any(|(key, value)| {
        key.trim().eq_ignore_ascii_case("sparseCheckout") && value.trim() == "true"
    })
}
