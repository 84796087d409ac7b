//! `--include` and `--exclude`, and the same settings of `podgraft.yaml`.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use podgraft_core::diagnostic::{Code, Diagnostic, Severity};
use podgraft_core::glob::{self, GlobSubject};

use crate::args;
use crate::paths::real;

/// `--include` and `--exclude`.
#[derive(Debug, Default)]
pub struct PathFilter {
    include: PathGlobs,
    exclude: PathGlobs,
}

/// The globs of a flag, or those of the configuration.
#[derive(Debug, Default)]
struct PathGlobs {
    globs: Vec<PathGlob>,
    /// The real path of the configuration's folder if the globs are written there.
    root: Option<PathBuf>,
}

/// A glob of `--include` or `--exclude`. With a `/` it is matched against a path, otherwise against the file name.
#[derive(Debug)]
struct PathGlob {
    text: String,
    matcher: GlobMatcher,
    is_path: bool,
    /// Whether a file that was found matches it.
    is_met: Cell<bool>,
}

impl PathFilter {
    /// Compiles the globs.
    pub fn new(manifests: &args::ManifestArgs) -> Result<Self, String> {
        Ok(PathFilter {
            include: PathGlobs::new(&manifests.include, manifests.include_root.as_deref())?,
            exclude: PathGlobs::new(&manifests.exclude, manifests.exclude_root.as_deref())?,
        })
    }

    /// Diagnostics for the `--include` globs that match no file of the folders. A glob of the configuration is for more
    /// than the folders of this run, so one that matches no file is no mistake.
    pub fn unmet(&self) -> Vec<Diagnostic> {
        if self.include.root.is_some() {
            return Vec::new();
        }
        // A folder may have files for other globs only, so a single unmatched glob is a warning. It is an error if no
        // glob matches.
        let globs = &self.include.globs;
        let is_all = globs.iter().all(|glob| !glob.is_met.get());
        let severity = match is_all {
            true => Severity::Error,
            false => Severity::Warning,
        };
        let unmet = globs.iter().filter(|glob| !glob.is_met.get());
        unmet
            .map(|glob| glob.unmet().with_severity(severity))
            .collect()
    }

    /// Whether the file or folder of this path, relative to the folder of a real path, is left out.
    pub fn excludes(&self, folder: &Path, relative: &Path) -> bool {
        let exclude = &self.exclude;
        let path = exclude.subject(folder, relative);
        // Folders above the one that is named are not walked, and are excluded like those below it.
        let above: Vec<&Path> = match &exclude.root {
            Some(_) => path.ancestors().skip(1).collect(),
            None => Vec::new(),
        };
        exclude.globs.iter().any(|glob| {
            glob.fits(relative, &path)
                || glob.is_path && above.iter().any(|path| glob.matcher.is_match(path))
        })
    }

    /// Whether the file of this path, relative to the folder of a real path, is wanted.
    pub fn includes(&self, folder: &Path, relative: &Path) -> bool {
        let include = &self.include;
        let path = include.subject(folder, relative);
        let globs = include.globs.iter();
        // `count` and not `any`: every glob has to see the file, because a glob that matches none is reported.
        include.globs.is_empty() || globs.filter(|glob| glob.fits(relative, &path)).count() > 0
    }
}

impl PathGlobs {
    fn new(globs: &[String], root: Option<&Path>) -> Result<Self, String> {
        Ok(PathGlobs {
            globs: globs
                .iter()
                .map(|glob| PathGlob::new(glob))
                .collect::<Result<_, _>>()?,
            root: root.map(|root| match root.as_os_str().is_empty() {
                true => real(Path::new(".")),
                false => real(root),
            }),
        })
    }

    /// The path that globs with a `/` are matched against: from the configuration's folder if they are written there
    /// and the file is in it, else from the folder that is named.
    fn subject<'p>(&self, folder: &Path, relative: &'p Path) -> Cow<'p, Path> {
        let from_root = self.root.as_ref().and_then(|root| {
            let path = folder.join(relative);
            path.strip_prefix(root).map(Path::to_path_buf).ok()
        });
        from_root.map_or(Cow::Borrowed(relative), Cow::Owned)
    }
}

impl PathGlob {
    fn new(text: &str) -> Result<Self, String> {
        let plain = text
            .strip_prefix("./")
            .unwrap_or(text)
            .trim_end_matches('/');
        Ok(PathGlob {
            text: text.to_owned(),
            is_met: Cell::default(),
            matcher: glob::compile(plain, GlobSubject::Path)?,
            is_path: plain.contains('/'),
        })
    }

    fn unmet(&self) -> Diagnostic {
        let message = format!("`--include {}` matches no file in the folders", self.text);
        Diagnostic::warning(Code::NoMatch, message).help(
            "a glob without a `/` is matched against the file name, and a glob with a `/` against \
             the path below the given folder; `**` matches any folders",
        )
    }

    fn fits(&self, relative: &Path, path: &Path) -> bool {
        let fits = match relative.file_name() {
            Some(name) if !self.is_path => self.matcher.is_match(name),
            _ => self.matcher.is_match(path),
        };
        self.is_met.set(self.is_met.get() || fits);
        fits
    }
}
