//! The files that a run reads, which none of its outputs may overwrite.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use podgraft_core::config::FILE_NAME;
use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::record::lock::LOCK_FILE;
use podgraft_core::report::json::HEADER;

use crate::args;
use crate::file_identity::{FileIdentity, identity_of};
use crate::path_filter::PathFilter;
use crate::paths::real;
use crate::settings::{Caller, find_file};
use crate::walk::{Input, walk};

/// The input files by real path and by file identity, so that links are found.
#[derive(Debug, Default)]
pub struct InputFiles {
    paths: BTreeSet<PathBuf>,
    identities: BTreeSet<FileIdentity>,
}

impl InputFiles {
    /// The files that exist now of those that a run names, of its configuration and of `more` paths that it reads.
    pub fn of_run(run: &args::RunArgs, more: &[PathBuf]) -> Self {
        let policies = &run.policies;
        let configured = policies.configured.file.clone();
        let config = configured.or_else(|| find_file(&policies.configuration, Caller::CommandLine));
        let application = policies.configured.allows_application_config;
        let application = application.then(|| PathBuf::from(FILE_NAME));
        let others = [&policies.given, &run.manifests.context, more].concat();
        let others: Vec<PathBuf> = others
            .into_iter()
            .chain(config)
            .chain(application)
            .collect();
        let manifests = manifests_of(run);
        let others = walk(&others, &PathFilter::default()).inputs;
        InputFiles::of(manifests.iter().chain(&others).filter_map(Input::path))
    }

    /// Refuses a report that would overwrite one of the files, or the records of what was injected. An earlier report
    /// among the files may be overwritten.
    pub fn check_report(&self, path: &Path) -> Result<(), Diagnostic> {
        // A run may read other lock files than this one. Their loss would be as bad.
        let is_lock = real(path).file_name() == Some(OsStr::new(LOCK_FILE));
        if !is_lock && (!self.holds(path) || is_report(path)) {
            return Ok(());
        }
        Err(overwrites(path).help("choose a different file for --report"))
    }

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

/// The inputs of a run that is one of several shards, those of the other shards among them; else none.
pub fn inputs_of_all_shards(run: &args::RunArgs) -> Vec<Input> {
    match run.manifests.shard {
        Some(_) => manifests_of(run),
        None => Vec::new(),
    }
}

/// The manifests of a run, whatever its shard.
fn manifests_of(run: &args::RunArgs) -> Vec<Input> {
    let filter = PathFilter::new(&run.manifests).unwrap_or_default();
    walk(&run.paths, &filter).inputs
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
