//! The files that a run reads, which none of its outputs may overwrite.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use podgraft::config::FILE_NAME;
use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::report::json::HEADER;

use crate::args;
use crate::path_filter::PathFilter;
use crate::settings::{Caller, find_file};
use crate::walk::walk;
use crate::write::{FileIdentity, identity_of};

/// The input paths of a run as given. They are resolved only when something is to be written.
#[derive(Debug, Clone, Default)]
pub struct RunInputs {
    manifests: Vec<PathBuf>,
    filters: args::ManifestArgs,
    /// Policies, `--context` and configuration.
    others: Vec<PathBuf>,
}

/// The input files by real path and by file identity, so that links are found.
#[derive(Debug, Default)]
pub struct InputFiles {
    paths: BTreeSet<PathBuf>,
    identities: BTreeSet<FileIdentity>,
}

impl RunInputs {
    /// The paths that the run names, and its configuration.
    pub fn of(run: &args::RunArgs) -> Self {
        let policies = &run.policies;
        let configured = policies.configured.file.clone();
        let config = configured.or_else(|| find_file(&policies.configuration, Caller::CommandLine));
        let application = policies
            .configured
            .allows_application_config
            .then(|| PathBuf::from(FILE_NAME));
        let others = policies.given.iter().chain(&run.manifests.context).cloned();
        RunInputs {
            manifests: run.paths.clone(),
            filters: run.manifests.clone(),
            others: others.chain(config).chain(application).collect(),
        }
    }

    /// Adds further files or folders that the run reads.
    pub fn add(&mut self, more: &[PathBuf]) {
        self.others.extend_from_slice(more);
    }

    /// Walks the paths and returns the files that exist now.
    pub fn originals(&self) -> InputFiles {
        let filter = PathFilter::new(&self.filters).unwrap_or_default();
        let mut originals = InputFiles::default();
        for (paths, filter) in [
            (&self.manifests, &filter),
            (&self.others, &PathFilter::default()),
        ] {
            walk(paths, filter)
                .inputs
                .iter()
                .filter_map(|input| input.path())
                .for_each(|path| originals.add(&path));
        }
        originals
    }

    /// Refuses a report that would overwrite a file that the run reads. An earlier report among the inputs may be
    /// overwritten.
    ///
    /// # Errors
    /// If the report would overwrite such a file.
    pub fn check_report(&self, path: &Path) -> Result<(), Diagnostic> {
        if !self.originals().holds(path) || is_report(path) {
            return Ok(());
        }
        Err(overwrites(path).help("give --report another file"))
    }
}

impl InputFiles {
    /// These files, as far as they exist now.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut files = InputFiles::default();
        for path in paths {
            files.add(&path);
        }
        files
    }

    fn add(&mut self, path: &Path) {
        // Writing to a terminal or a pipe loses nothing.
        if let Ok(real) = fs::canonicalize(path)
            && real.is_file()
        {
            self.identities.extend(identity_of(&real));
            self.paths.insert(real);
        }
    }

    /// Whether the path names one of these files, also by a link.
    pub fn holds(&self, path: &Path) -> bool {
        let Ok(real) = fs::canonicalize(path) else {
            return false;
        };
        self.paths.contains(&real)
            || identity_of(&real).is_some_and(|identity| self.identities.contains(&identity))
    }
}

/// The error for an output that would overwrite an input.
pub fn overwrites(path: &Path) -> Diagnostic {
    Diagnostic::error(
        Code::File,
        format!(
            "`{}` is read by this run and would be overwritten",
            path.display()
        ),
    )
}

fn is_report(path: &Path) -> bool {
    let mut start = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(HEADER.len() as u64).read_to_end(&mut start));
    read.is_ok() && start == HEADER.as_bytes()
}
