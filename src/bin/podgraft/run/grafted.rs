//! What a run comes to, before anything of it is written.

use std::path::PathBuf;

use podgraft::config::CoverageRequirement;
use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::options::{Acknowledgement, WorkloadPattern};
use podgraft::outcome::{Outcome, PolicyReport, ReportedFile, WorkloadReport};
use podgraft::wording::one_line;

use crate::args;
use crate::locks::LockFiles;
use crate::output::GraftedFile;
use crate::pipeline::PipedText;
use crate::protected_inputs::RunInputs;
use crate::repository::Repository;

/// The grafted files of a run, and all its problems.
pub struct GraftOutcome {
    /// In the order of the result.
    pub files: Vec<GraftedFile>,
    /// Of all severities.
    pub problems: Vec<Diagnostic>,
    /// The `podgraft.yaml` that was read.
    pub(super) configuration: Option<PathBuf>,
    /// What it, and flags, demand of the result.
    pub demands: RunRequirements,
    /// What was read, and must not be written over.
    pub reads: RunInputs,
    /// Where the result is, when the one text was not kept.
    pub(super) piped: Option<PipedText>,
    /// What earlier runs put into the files.
    pub lock_files: LockFiles,
}

/// Requirements that a run must meet beyond producing a result.
#[derive(Debug, Default, Clone)]
pub struct RunRequirements {
    /// No warnings.
    pub is_strict: bool,
    /// Policies that must be for certain workloads.
    pub require: Vec<CoverageRequirement>,
    /// Findings that are accepted.
    pub acknowledged: Vec<Acknowledgement>,
    /// All workloads of the place were looked at, by all its policies.
    pub is_whole: bool,
}

impl RunRequirements {
    pub(super) fn of(run: &args::RunArgs) -> Self {
        let (policies, configured) = (&run.policies, &run.policies.configured);
        RunRequirements {
            is_strict: run.output.strict,
            require: configured.require.clone(),
            acknowledged: configured.acknowledged.clone(),
            is_whole: run.manifests.workloads.is_empty()
                && run.manifests.shard.is_none()
                && policies.only.is_empty()
                && policies.skip.is_empty(),
        }
    }
}

impl GraftOutcome {
    /// Nothing but problems.
    pub fn refused(run: &args::RunArgs, problems: Vec<Diagnostic>) -> Self {
        GraftOutcome {
            files: Vec::new(),
            problems,
            configuration: None,
            demands: RunRequirements::of(run),
            reads: RunInputs::of(run),
            piped: None,
            lock_files: LockFiles::default(),
        }
    }

    /// The policies are for some workload, and have nothing for its pods.
    pub(super) fn without_ephemeral_containers(&self) -> Option<Diagnostic> {
        let mut workloads = self.files.iter().flat_map(|file| &file.report.workloads);
        let is_met =
            |outcome: &Outcome| matches!(outcome, Outcome::Injected(_) | Outcome::UpToDate);
        let is_met = workloads.clone().any(|workload| {
            workload
                .policies
                .iter()
                .any(|policy_report| is_met(&policy_report.outcome))
        });
        if !is_met || workloads.any(|workload| !workload.ephemeral_containers.is_empty()) {
            return None;
        }
        let note = Diagnostic::note(
            Code::NothingToWrite,
            "the policies have no ephemeral containers",
        );
        Some(
            note.help("they stand under `inject.ephemeralContainers`; sidecars go into the workload: `podgraft apply`"),
        )
    }

    /// What every policy came to with every workload.
    pub fn outcomes(&self) -> impl Iterator<Item = &PolicyReport> {
        let workloads = self.files.iter().flat_map(|file| &file.report.workloads);
        workloads.flat_map(|workload| &workload.policies)
    }

    /// Leaves the other workloads out of what is reported.
    pub fn keep_wanted(&mut self, patterns: &[WorkloadPattern]) {
        if patterns.is_empty() {
            return;
        }
        let is_wanted = |workload: &WorkloadReport| {
            let (kind, namespace) = (&workload.kind, workload.namespace.as_deref());
            patterns
                .iter()
                .any(|pattern| pattern.matches(kind, namespace, &workload.name))
        };
        self.files
            .iter_mut()
            .for_each(|file| file.report.workloads.retain(is_wanted));
    }

    /// Names files in patches from the root of a repository.
    pub fn name_from(&mut self, repository: &Repository) {
        for file in &mut self.files {
            let path = file.input.path().and_then(|path| repository.path_of(&path));
            if let Some(path) = path {
                file.path = path.into_os_string().into_encoded_bytes();
            }
        }
    }

    /// Nobody named it, so the report does.
    pub fn named_configuration(&self) -> String {
        self.configuration
            .as_ref()
            .map_or_else(String::new, |path| {
                format!("settings of {}\n", one_line(&path.to_string_lossy()))
            })
    }

    /// As the renderers take it.
    pub fn reported<'f>(&'f self) -> Vec<ReportedFile<'f>> {
        let reported = |file: &'f GraftedFile| ReportedFile {
            name: &file.input.name,
            path: &file.path,
            text: &file.text,
            report: &file.report,
        };
        self.files.iter().map(reported).collect()
    }
}
