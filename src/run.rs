//! The run that all commands over manifests share: paths and policies in; a result, a report and an exit status out.

mod grafted;
mod request;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::error::ErrorKind;
use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::graft::companions::WrittenObjects;
use podgraft_core::graft::{Options, RunContext, run_notes};
use podgraft_core::inventory::SourceText;
use podgraft_core::manifest::workload::PodKinds;
use podgraft_core::options::PodTemplatePath;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::policy::builtin::list_names;
use podgraft_core::report::merge_repeated;
use podgraft_core::select::kinds::unknown_kinds;

use crate::args::relevant_flags::usage;
use crate::file_identity::identity_of;
use crate::findings::{find_no_object, no_manifest_found, unmet_image_env, unmet_workloads};
use crate::gather_inventory::{FactSources, Writers, gather};
use crate::grafted_file::{GraftedFile, prune_files};
use crate::grafting::Grafting;
use crate::locks::LockFiles;
use crate::path_filter::PathFilter;
use crate::pipeline::{OpenedInput, OutputTiming, PipedText};
use crate::policies::{self, LoadedPolicies, stdin_readers};
use crate::settings::{self, Caller};
use crate::shard::Shard;
use crate::texts::{InputBytes, open_pipe, read_texts, source_text, texts_of};
use crate::walk::{Input, reads_terminal, walk, walk_context};
use crate::{args, charts, hints, progress};

pub use grafted::GraftOutcome;
use request::options_of;
pub use request::{Purpose, RunRequest};

pub fn check_usage(run: &args::RunArgs, purpose: &Purpose) -> Result<PathFilter, clap::Error> {
    let needs_none = matches!(purpose, Purpose::TakeOut { .. } | Purpose::Read);
    if run.policies.prune && run.policies.set.is_none() {
        let message =
            "--prune requires a policy set: add --policy-set NAME, or `set: NAME` in podgraft.yaml";
        return Err(usage(ErrorKind::MissingRequiredArgument, message));
    }
    if run.policies.given.is_empty() && !needs_none {
        let message = format!(
            "no policy is given: add -p FILE, -p FOLDER, or -p builtin:NAME, or list policies in \
             podgraft.yaml\n\nThe built-in policies are {} (see `podgraft policy list`)",
            list_names()
        );
        return Err(usage(ErrorKind::MissingRequiredArgument, message));
    }
    if let Some((_, message)) = PodTemplatePath::contradiction(&run.manifests.pod_templates) {
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    if stdin_readers(&run.policies.given, &run.paths) > 1 {
        let message = "stdin can be read only once: as policy or as manifests";
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    if reads_terminal(&run.paths) {
        let message = "no PATH is given and stdin is a terminal\n\nPass files or folders, or pipe \
                       manifests in: helm template ... | podgraft apply -p POLICY";
        return Err(usage(ErrorKind::MissingRequiredArgument, message));
    }
    PathFilter::new(&run.manifests).map_err(|error| usage(ErrorKind::ValueValidation, error))
}

/// Reads everything and plans the whole result; nothing is written.
pub fn graft_all(
    run: &args::RunArgs,
    request: RunRequest<'_>,
) -> Result<GraftOutcome, clap::Error> {
    let run = &match settings::complete(run, Caller::CommandLine) {
        Ok(run) => run,
        Err(problems) => return Ok(GraftOutcome::refused(run, problems)),
    };
    let filter = check_usage(run, request.purpose)?;
    let walked = walk(&run.paths, &filter);
    let mut problems = walked.problems;
    if request.pipe.is_some() {
        problems.extend(stdout_among(&walked.inputs));
    }
    let (texts, pipe) = texts_of(run, walked.inputs, request.pipe, &mut problems)?;
    let request = RunRequest { pipe, ..request };
    Ok(graft_given(run, texts, &request, problems))
}

/// Grafts for a host (a program that calls podgraft). The settings of `run` are complete: no `podgraft.yaml` is read.
///
/// # Errors
/// If a glob of `--include` or `--exclude` does not compile.
pub fn graft_host(run: &args::RunArgs) -> Result<GraftOutcome, clap::Error> {
    let filter = PathFilter::new(&run.manifests)
        .map_err(|error| usage(ErrorKind::ValueValidation, error))?;
    let walked = walk(&run.paths, &filter);
    let mut problems = walked.problems;
    let texts = read_texts(walked.inputs, run.output.threads, &mut problems);
    let request = RunRequest::for_report(&Purpose::Elsewhere, &run.output);
    Ok(graft_given(run, texts, &request, problems))
}

/// Grafts one text that a host passed in.
pub fn graft_read(
    run: &args::RunArgs,
    request: &RunRequest<'_>,
    input: Input,
    text: Arc<Vec<u8>>,
) -> GraftOutcome {
    graft_given(run, vec![(input, text)], request, Vec::new())
}

/// Grafts the texts and adds what is found to `problems`, the problems that reading them had.
pub fn graft_given(
    run: &args::RunArgs,
    mut texts: Vec<InputBytes>,
    request: &RunRequest<'_>,
    mut problems: Vec<Diagnostic>,
) -> GraftOutcome {
    let mut loaded = match request.purpose {
        Purpose::TakeOut { .. } | Purpose::Read => LoadedPolicies::default(),
        Purpose::Elsewhere | Purpose::InPlace => policies::load(&run.policies, &texts),
    };
    problems.append(&mut loaded.problems);
    // Policies are loaded first: what they look up decides how much of a piped text has to be kept.
    let opened = open_pipe(&mut texts, request.pipe, &loaded.policies).unwrap_or_else(|problem| {
        texts.clear();
        problems.push(problem);
        None
    });
    graft_loaded(run, RunInput { texts, opened }, request, &loaded, problems)
}

/// The input of a run: texts that were read, or one that is piped.
struct RunInput {
    texts: Vec<InputBytes>,
    /// The only text of a run that is piped to stdout, opened but not read into `texts`.
    opened: Option<(OutputTiming, OpenedInput)>,
}

impl RunInput {
    fn is_stream(&self) -> bool {
        matches!(self.opened, Some((OutputTiming::Immediately, _)))
    }

    /// Where the inventory looks for Namespaces, ConfigMaps, Secrets and other objects.
    fn sources<'s>(
        &self,
        run: &'s args::RunArgs,
        loaded: &'s LoadedPolicies,
        lock_files: &'s LockFiles,
    ) -> FactSources<'s> {
        let is_stream = self.is_stream();
        let manifests = match &self.opened {
            _ if is_stream => Vec::new(),
            Some((_, OpenedInput::Original(original))) => {
                vec![Arc::clone(original) as Arc<dyn SourceText>]
            }
            Some((_, OpenedInput::Once(_))) | None => self.texts.iter().map(source_text).collect(),
        };
        FactSources {
            manifests,
            policy_files: &loaded.files,
            context: walk_context(run),
            lock_files,
            is_stream,
        }
    }

    /// Drops the texts of other shards. Objects that those texts generate count as written: the runs over the other
    /// shards write them.
    fn keep_shard(&mut self, shard: Option<Shard>, writers: Writers) -> WrittenObjects {
        let mut written_objects = WrittenObjects::default();
        let Some(shard) = shard else {
            return written_objects;
        };
        for (name, text) in writers {
            if !shard.has(text) {
                written_objects.mark_written(name);
            }
        }
        self.texts = shard.keep(std::mem::take(&mut self.texts));
        written_objects
    }
}

fn graft_loaded(
    run: &args::RunArgs,
    mut work: RunInput,
    request: &RunRequest<'_>,
    loaded: &LoadedPolicies,
    mut problems: Vec<Diagnostic>,
) -> GraftOutcome {
    let mut options = options_of(run, request, loaded);
    if problems.iter().any(Diagnostic::is_error) {
        // A policy that could not be read is not gone.
        options.given = None;
    }
    let lock_files = LockFiles::of(&work.texts).unwrap_or_else(|lock_problems| {
        problems.extend(lock_problems);
        LockFiles::default()
    });
    let facts = gather(
        work.sources(run, loaded, &lock_files),
        &work.texts,
        &loaded.policies,
        &options,
        run.output.threads,
    );
    let inventory = facts.inventory;
    problems.extend(facts.problems);
    let mut written_objects = work.keep_shard(run.manifests.shard, facts.writers);
    problems.extend(unknown_kinds(&loaded.policies, &PodKinds::of(&options)));
    // A file that cannot be read does not stop the planning, so that the problems of the other files are reported too.
    // The run still fails, because its error stays. A stream must stop: its result would already be on stdout.
    let is_stream = work.is_stream();
    let is_in_the_way =
        |problem: &Diagnostic| problem.is_error() && (is_stream || problem.code != Code::File);
    let grafting = Grafting {
        run: RunContext::new(&loaded.policies, &options, &inventory),
        threads: run.output.threads,
        tree: request.tree,
    };
    let (mut files, piped) = match problems.iter().any(is_in_the_way) {
        true => (Vec::new(), None),
        false => graft_work(work, run, grafting).unwrap_or_else(|problem| {
            problems.push(problem);
            (Vec::new(), None)
        }),
    };
    for file in &mut files {
        written_objects.write_companions(&mut file.report);
    }
    let grafted = GraftOutcome {
        given: loaded.given.clone(),
        files,
        piped,
        lock_files,
        ..GraftOutcome::refused(run, problems)
    };
    finish(run, &loaded.policies, &options, grafted)
}

fn graft_work(
    work: RunInput,
    run: &args::RunArgs,
    grafting: Grafting<'_>,
) -> Result<(Vec<GraftedFile>, Option<PipedText>), Diagnostic> {
    let mut texts = work.texts;
    progress::start(texts.iter().map(length).sum(), &run.output);
    let done = match work.opened {
        None => Ok((grafting.graft(&texts), None)),
        Some((release, opened)) => grafting
            .pipe(&mut texts, opened, release)
            .map(|(report, piped)| (vec![report], piped)),
    };
    progress::end();
    let (reports, piped) = done?;
    let files = texts.into_iter().zip(reports);
    let files = files.map(|(text, grafted)| GraftedFile::of(text, grafted));
    Ok((files.collect(), piped))
}

/// Adds what is known only after every workload was planned: generated objects to remove, and findings over the whole
/// run.
fn finish(
    run: &args::RunArgs,
    policies: &[Policy],
    options: &Options,
    mut grafted: GraftOutcome,
) -> GraftOutcome {
    let files = &mut grafted.files;
    let mut problems = std::mem::take(&mut grafted.problems);
    // In a piped text there is nothing to prune beside its workloads, or its result is on stdout already.
    if grafted.piped.is_none() {
        problems.extend(prune_files(files, options, &grafted.lock_files.locks));
    }
    for file in files.iter_mut() {
        problems.append(&mut file.report.diagnostics);
    }
    // `debug` injects nothing, so notes about the effects of an injection do not apply.
    if !options.ephemeral_containers && !problems.iter().any(Diagnostic::is_error) {
        let reports: Vec<&FileReport> = files.iter().map(|file| &file.report).collect();
        problems.extend(run_notes::notes(policies, &reports));
    }
    problems = merge_repeated(problems);
    charts::advise_rendering(&mut problems, &run.paths);
    hints::complete_commands(&mut problems, &run.paths);
    // What this shard lacks, another shard may have.
    let is_whole = run.manifests.shard.is_none();
    if is_whole {
        problems.extend(unmet_workloads(options, files));
        problems.extend(unmet_image_env(options, &problems));
    }
    if !problems.iter().any(Diagnostic::is_error) {
        if is_whole {
            problems.extend(no_manifest_found(files));
        }
        problems.extend(find_no_object(files));
    }
    // Of what was found in a folder, text that is no manifest stays out, but comments alone may be one that is switched off.
    files.retain(|file| {
        !file.parts.is_empty() || !file.input.is_found() || file.report.documents == 0
    });
    grafted.problems = problems;
    grafted
}

/// The error for a result that goes to stdout, where stdout is one of the named files: it would be written over the text
/// while that is read.
fn stdout_among(inputs: &[Input]) -> Option<Diagnostic> {
    let stdout = Path::new("/dev/stdout");
    let identity = stdout.is_file().then(|| identity_of(stdout)).flatten()?;
    let mut named = inputs.iter().filter(|input| !input.is_found());
    let is_stdout = |path: &PathBuf| identity_of(path) == Some(identity);
    let input = named.find(|input| input.path().as_ref().is_some_and(is_stdout))?;
    let message = format!(
        "`{}` is read by this run, but stdout writes to it",
        input.name
    );
    let help = "write to a different file, or replace the file with --in-place";
    Some(Diagnostic::error(Code::File, message).help(help))
}

/// The length of a text in bytes. A text that is not read yet is empty here, so its file is asked.
fn length((input, text): &InputBytes) -> u64 {
    let of_file = || {
        input
            .path()
            .and_then(|path| path.metadata().ok())
            .map_or(0, |metadata| metadata.len())
    };
    if text.is_empty() {
        of_file()
    } else {
        text.len() as u64
    }
}
