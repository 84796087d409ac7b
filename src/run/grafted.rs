//! The outcome of a run, before anything of it is written.

use std::path::{Path, PathBuf};

use podgraft_core::config::require;
use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic};
use podgraft_core::options::WorkloadPattern;
use podgraft_core::outcome::{Outcome, PolicyReport, ReportedFile};
use podgraft_core::record::lock::Lock;
use podgraft_core::source::Source;
use podgraft_core::wording::one_line;

use crate::args;
use crate::grafted_file::GraftedFile;
use crate::locks::{LockFiles, NewLock};
use crate::paths::from_current_folder;
use crate::pipeline::PipedText;
use crate::protected_inputs::InputFiles;
use crate::repository::Repository;

/// The grafted files of a run, and all its problems.
#[derive(Default)]
pub struct GraftOutcome {
    /// The files, in the order of the result.
    pub files: Vec<GraftedFile>,
    /// Diagnostics of all severities, from all stages.
    pub problems: Vec<Diagnostic>,
    /// The flags, completed by the configuration: what they require of the result.
    pub run: args::RunArgs,
    /// The identities of all given policies.
    pub given: Vec<String>,
    /// Files that were read beside those that `run` names.
    pub more_reads: Vec<PathBuf>,
    /// The result of a run whose single text was piped instead of kept.
    pub piped: Option<PipedText>,
    /// The lock files beside the inputs: what earlier runs injected.
    pub lock_files: LockFiles,
}

impl GraftOutcome {
    /// A run that ends with problems and has no files.
    pub fn refused(run: &args::RunArgs, problems: Vec<Diagnostic>) -> Self {
        GraftOutcome {
            problems,
            run: run.clone(),
            ..GraftOutcome::default()
        }
    }

    /// The files that were read and must not be overwritten, as far as they exist now.
    pub fn originals(&self) -> InputFiles {
        InputFiles::of_run(&self.run, &self.more_reads)
    }

    /// Whether a warning fails the run (`--strict`).
    pub fn is_strict(&self) -> bool {
        self.run.output.strict
    }

    /// Whether all workloads and all policies took part: neither `--workload`, `--shard`, `--only` nor `--skip` left any
    /// out.
    pub fn is_whole(&self) -> bool {
        let (manifests, policies) = (&self.run.manifests, &self.run.policies);
        manifests.workloads.is_empty()
            && manifests.shard.is_none()
            && policies.only.is_empty()
            && policies.skip.is_empty()
    }

    /// Errors for the workloads that miss what the configuration requires. A run over a part of the workloads or policies
    /// cannot tell, and says so.
    pub fn missed(&self, files: &[ReportedFile<'_>]) -> Vec<Diagnostic> {
        let required = &self.run.policies.configured.require;
        if self.is_whole() || required.is_empty() {
            return require::check(required, &self.given, files);
        }
        let message =
            "`require` was not checked: this run covers only part of the workloads or policies";
        let note = Diagnostic::note(Code::NotCovered, message);
        vec![note.help(
            "also run `podgraft check` without `--shard`, `--workload`, `--only`, and `--skip`",
        )]
    }

    /// Returns a note if policies chose workloads but none of them has ephemeral containers.
    pub fn without_ephemeral_containers(&self) -> Option<Diagnostic> {
        let mut workloads = self.files.iter().flat_map(|file| &file.report.workloads);
        // An up-to-date policy counts: it applies to the workload, too.
        let applies = |report: &PolicyReport| {
            matches!(report.outcome, Outcome::Injected(_) | Outcome::UpToDate)
        };
        if !self.outcomes().any(applies)
            || workloads.any(|workload| !workload.ephemeral_containers.is_empty())
        {
            return None;
        }
        let note = Diagnostic::note(
            Code::NothingToWrite,
            "the policies have no ephemeral containers",
        );
        Some(note.help(
            "add them under `inject.ephemeralContainers`; for sidecars, use `podgraft apply`",
        ))
    }

    /// The outcome of every policy with every workload.
    pub fn outcomes(&self) -> impl Iterator<Item = &PolicyReport> {
        let workloads = self.files.iter().flat_map(|file| &file.report.workloads);
        workloads.flat_map(|workload| &workload.policies)
    }

    /// The lock files that the run changes.
    ///
    /// # Errors
    /// See [`LockFiles::changed_locks`].
    pub fn changed_locks(&self) -> Diagnosed<Vec<NewLock>> {
        let selection = &self.run.manifests.workloads;
        self.lock_files.changed_locks(&self.files, selection)
    }

    /// Warnings about lock files that do not say what the manifests have, where these are up to date: a patch of
    /// `podgraft diff` was applied, or a merge lost lines. What they say beyond it, and their form, does no harm. A run
    /// over a part of the workloads or policies tells nothing.
    pub fn stale_locks(&self) -> Vec<Diagnostic> {
        let is_changed = |file: &GraftedFile| !file.report.edits.is_empty();
        if !self.is_whole() || self.files.iter().any(is_changed) {
            return Vec::new();
        }
        let changed = self.changed_locks();
        let changed = changed.unwrap_or_default();
        let is_behind = |lock: &&NewLock| {
            let versions = Lock::read(&lock.old).ok().zip(Lock::read(&lock.new).ok());
            versions.is_some_and(|(old, new)| !old.covers(&new))
        };
        let behind = changed.iter().filter(is_behind);
        let behind = behind.map(|lock| (lock.path.clone(), lock.old.as_str()));
        let mut stale = self.lock_files.without_marked(&self.files);
        stale.extend(behind);
        let stale = stale.iter();
        stale.map(|(path, text)| stale_lock(path, text)).collect()
    }

    /// Keeps only workloads in the report that match a pattern; all of them if there are no patterns.
    pub fn keep_wanted(&mut self, patterns: &[WorkloadPattern]) {
        if patterns.is_empty() {
            return;
        }
        for file in &mut self.files {
            file.report.workloads.retain(|workload| {
                let (kind, namespace) = (&workload.kind, workload.namespace.as_deref());
                let mut patterns = patterns.iter();
                patterns.any(|pattern| pattern.matches(kind, namespace, &workload.name))
            });
        }
    }

    /// Makes the paths of files in patches relative to the root of the repository.
    pub fn name_from(&mut self, repository: &Repository) {
        for file in &mut self.files {
            let path = file.input.path().and_then(|path| repository.path_of(&path));
            if let Some(path) = path {
                file.path = path.into_os_string().into_encoded_bytes();
            }
        }
    }

    /// A line that names the configuration. It is found, not given on the command line, so the report has to say it.
    pub fn named_configuration(&self) -> String {
        let file = self.run.policies.configured.file.as_ref();
        file.map_or_else(String::new, |path| {
            format!("settings of {}\n", one_line(&path.to_string_lossy()))
        })
    }

    /// The files in the form that the renderers of reports take.
    pub fn reported<'f>(&'f self) -> Vec<ReportedFile<'f>> {
        let reported = self.files.iter().map(|file| ReportedFile {
            name: &file.input.name,
            path: &file.path,
            text: &file.text,
            report: &file.report,
        });
        reported.collect()
    }
}

fn stale_lock(path: &Path, text: &str) -> Diagnostic {
    let message = "podgraft.lock does not match the manifests: `undo` may remove too little";
    let source = Source::new(from_current_folder(path).to_string_lossy(), text);
    Diagnostic::warning(Code::OutOfDate, message)
        .at(source.place(0..0), "this file")
        .help("run `podgraft apply --in-place` with the same policies, and commit podgraft.lock")
}
