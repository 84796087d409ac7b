//! Finds the namespace of objects that state none, by the folder of their file.

use std::path::{Component, Path, PathBuf};

use globset::GlobMatcher;

/// Globs of folders, each with a namespace.
#[derive(Debug, Clone)]
pub struct FolderNamespaces {
    /// The folder that relative file names are resolved against.
    pub current_folder: PathBuf,
    /// The folder that the globs are relative to, without symbolic links.
    pub root: PathBuf,
    /// Resolves the symbolic links of a folder. It is asked for files that are not below `root` by their names: an
    /// absolute path may lead there through a link.
    pub real_folder: fn(&Path) -> PathBuf,
    /// The first glob that matches the file's folder, or one of its parents, decides.
    pub globs: Vec<(GlobMatcher, String)>,
}

impl FolderNamespaces {
    /// The namespace for a file; `None` if no glob matches.
    pub fn find(&self, file: &str) -> Option<&str> {
        let path = normal(&self.current_folder.join(file));
        let (folder, root) = (path.parent()?, normal(&self.root));
        let below = |folder: &Path| folder.strip_prefix(&root).map(Path::to_owned).ok();
        let folder = below(folder).or_else(|| below(&(self.real_folder)(folder)))?;
        let fits = |glob: &GlobMatcher| folder.ancestors().any(|above| glob.is_match(above));
        let found = self.globs.iter().find(|(glob, _)| fits(glob));
        found.map(|(_, namespace)| namespace.as_str())
    }
}

/// Removes `.` and `..` lexically, without reading the file system.
fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glob::{GlobSubject, compile};

    #[test]
    fn the_first_glob_that_fits_a_folder_or_one_above_it_counts() {
        let glob = |text: &str| compile(text, GlobSubject::Path).expect("it is a glob");
        let folders = FolderNamespaces {
            current_folder: "/repo/apps".into(),
            root: "/repo/.".into(),
            real_folder: |folder| match folder.strip_prefix("/link") {
                Ok(rest) => Path::new("/repo").join(rest),
                Err(_) => folder.to_owned(),
            },
            globs: vec![
                (glob("apps/shop/prod"), "prod".to_owned()),
                (glob("apps/*"), "dev".to_owned()),
            ],
        };
        assert_eq!(folders.find("shop/prod/x/a.yaml"), Some("prod"));
        assert_eq!(folders.find("shop/a.yaml"), Some("dev"));
        assert_eq!(folders.find("../apps/./web/a.yaml"), Some("dev"));
        assert_eq!(folders.find("a.yaml"), None);
        assert_eq!(folders.find("/elsewhere/apps/web/a.yaml"), None);
        assert_eq!(folders.find("/link/apps/shop/prod/a.yaml"), Some("prod"));
    }
}
