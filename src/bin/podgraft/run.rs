//! `apply` and `diff`: paths and policies in; a result, a report and an exit status out.

use std::path::PathBuf;
use std::sync::Arc;

use clap::error::ErrorKind;
use podgraft::config::Requirement;
use podgraft::debug;
use podgraft::diagnostic::{Code, Diagnostic, Severity};
use podgraft::graft::prove::retire_proven;
use podgraft::graft::settle::Settling;
use podgraft::graft::{Options, across};
use podgraft::inventory::SourceText;
use podgraft::manifest::workload::PodKinds;
use podgraft::options::{Acknowledgement, TakeOut, WorkloadPattern};
use podgraft::outcome::{FileReport, Outcome, PolicyReport, ReportedFile, WorkloadReport};
use podgraft::policy::Policy;
use podgraft::report::json::Verdict;
use podgraft::report::{json, say_once, text};
use podgraft::select::kinds::unknown_kinds;
use podgraft::wording::one_line;

use crate::args::{self, DebugFormat, fit};
use crate::facts::{Facts, Sources, gather};
use crate::findings::{find_no_object, find_nothing, unmet_image_env, unmet_workloads};
use crate::grafting::{graft_texts, pipe_text};
use crate::locks::LockFiles;
use crate::output::{GraftedFile, Target, check_apart, print, release_piped, write_result};
use crate::pipeline::{Opened, Piped, Release};
use crate::policies::{self, Loaded, builtin_names, stdin_readers};
use crate::reads::Reads;
use crate::repository::Repository;
use crate::settings::{self, Role};
use crate::show::Voice;
use crate::texts::{Text, named, open_pipe, read_texts, source_text, texts_of};
use crate::threads::number;
use crate::walk::{Input, PathFilter, Walk, walk, would_wait_for_typing};
use crate::write::write_whole;
use crate::{charts, progress};

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and nothing to report.
    Done = 0,
    /// `diff` found differences.
    Differences = 1,
    /// Refused or failed; nothing was written.
    Refused = 2,
    /// A bug of podgraft; nothing was written.
    Internal = 70,
}

/// All files and everything that is wrong.
pub struct Grafted {
    /// In the order of the result.
    pub files: Vec<GraftedFile>,
    /// Of all severities.
    pub problems: Vec<Diagnostic>,
    /// The `podgraft.yaml` that was read.
    configuration: Option<PathBuf>,
    /// What it, and flags, demand of the result.
    pub demands: Demands,
    /// What was read, and must not be written over.
    pub reads: Reads,
    /// Where the result is, when the one text was not kept.
    piped: Option<Piped>,
    /// What earlier runs put into the files.
    pub lock_files: LockFiles,
}

/// What is demanded of a result beside that it can be had.
#[derive(Debug, Default, Clone)]
pub struct Demands {
    /// No warnings.
    pub is_strict: bool,
    /// Policies that must be for certain workloads.
    pub require: Vec<Requirement>,
    /// Findings that are accepted.
    pub acknowledged: Vec<Acknowledgement>,
    /// All workloads of the place were looked at, by all its policies.
    pub is_whole: bool,
}

impl Demands {
    fn of(run: &args::Run) -> Self {
        let (policies, configured) = (&run.policies, &run.policies.configured);
        Demands {
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

/// What a command wants of the run.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'p> {
    /// What the result is for.
    pub purpose: &'p Purpose,
    /// Every workload with words about it.
    pub details: bool,
    /// The result goes to stdout, so one text need not be kept.
    pub pipe: Option<Release>,
    /// What is to be known beside.
    pub ask: fn(&mut Options),
    /// Workloads that were injected by policies which are not given are named.
    pub orphans: bool,
}

impl<'p> Wish<'p> {
    /// Everything about every workload.
    pub fn of(purpose: &'p Purpose) -> Self {
        Wish {
            purpose,
            details: true,
            pipe: None,
            ask: |_| {},
            orphans: false,
        }
    }

    /// With what the report for people says, unless nobody is told.
    pub fn told(purpose: &'p Purpose, output: &args::Output) -> Self {
        let ask = if output.quiet {
            |_: &mut Options| {}
        } else {
            |options: &mut Options| options.needs = true
        };
        Wish {
            ask,
            ..Wish::of(purpose)
        }
    }
}

/// What the result is for.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// A stream or other files: the source stays as it is.
    Elsewhere,
    /// It takes the place of the files, or shows what would.
    InPlace,
    /// Only to be looked at: no policy is asked.
    Read,
    /// Nothing is injected, and what an earlier run injected goes.
    TakeOut {
        /// Only these policies; all when it is empty.
        only: Vec<String>,
        /// What somebody changed, too.
        force: bool,
        /// The result takes the place of the files.
        in_place: bool,
    },
}

/// Only files can be replaced.
pub fn check_target(target: Target<'_>, paths: &[PathBuf]) -> Result<(), clap::Error> {
    let reads_stdin = reads_stdin(paths);
    if target.in_place && reads_stdin {
        return Err(usage(
            ErrorKind::ArgumentConflict,
            "--in-place needs files or folders: stdin cannot be replaced",
        ));
    }
    Ok(())
}

pub fn reads_stdin(paths: &[PathBuf]) -> bool {
    paths.is_empty() || paths.iter().any(|path| path.as_os_str() == "-")
}

/// Writes the result, or says why there is none.
pub fn conclude(mut grafted: Grafted, output: &args::Output, target: Target<'_>) -> Exit {
    let voice = Voice::new(output);
    grafted.problems.extend(check_apart(
        target,
        output.report.as_deref(),
        &grafted.files,
    ));
    if let Some(exit) = refuse(&grafted, output, voice) {
        return exit;
    }
    let written = match grafted.piped.take() {
        Some(piped) => release_piped(piped, &grafted.files, number(output.threads)),
        None => write_result(target, &grafted),
    };
    if let Err(problems) = written {
        write_report(output, &grafted, &problems, Verdict::Refused)
            .unwrap_or_else(|problem| voice.show(&[problem]));
        voice.show(&problems);
        voice.conclude(&problems, "what failed is not written");
        return Exit::Refused;
    }
    voice.show(&grafted.problems);
    if !output.quiet {
        voice.tell(
            &[
                grafted.named_configuration(),
                text::render(&grafted.reported()),
            ]
            .concat(),
        );
    }
    Exit::Done
}

/// `podgraft debug`.
pub fn debug(args: &args::Debug) -> Result<Exit, clap::Error> {
    let run = args::Run {
        ephemeral_containers: true,
        ..args.run.clone()
    };
    let mut grafted = graft_all(&run, Wish::of(&Purpose::Elsewhere))?;
    grafted
        .problems
        .extend(grafted.without_ephemeral_containers());
    let voice = Voice::new(&run.output);
    if let Some(exit) = refuse(&grafted, &run.output, voice) {
        return Ok(exit);
    }
    let reports: Vec<&FileReport> = grafted.files.iter().map(|file| &file.report).collect();
    let shown = match args.output {
        DebugFormat::Yaml => debug::yaml(&reports),
        DebugFormat::Json => debug::json(&reports),
        DebugFormat::Kubectl => debug::kubectl(&reports),
    };
    if let Err(problem) = print(shown.as_bytes()) {
        voice.show(&[problem]);
        return Ok(Exit::Refused);
    }
    voice.show(&grafted.problems);
    voice.tell(
        &[
            grafted.named_configuration(),
            text::skipped(&grafted.reported()),
        ]
        .concat(),
    );
    Ok(Exit::Done)
}

/// Wrong usage of the command that runs.
pub fn usage(kind: ErrorKind, message: impl std::fmt::Display) -> clap::Error {
    fit::running().error(kind, message)
}

pub fn check_usage(run: &args::Run, purpose: &Purpose) -> Result<PathFilter, clap::Error> {
    let needs_none = matches!(purpose, Purpose::TakeOut { .. } | Purpose::Read);
    if run.policies.prune && run.policies.set.is_none() {
        let message =
            "--prune needs the set: add --policy-set NAME, or `set: NAME` in podgraft.yaml";
        return Err(usage(ErrorKind::MissingRequiredArgument, message));
    }
    if run.policies.given.is_empty() && !needs_none {
        let message = format!(
            "no policy is given: add -p FILE, -p FOLDER or -p builtin:NAME, or name them in podgraft.yaml\n\nThe built-in policies are {} \
             (see `podgraft policy list`)",
            builtin_names()
        );
        return Err(usage(ErrorKind::MissingRequiredArgument, message));
    }
    if stdin_readers(&run.policies.given, &run.paths) > 1 {
        return Err(usage(
            ErrorKind::ArgumentConflict,
            "stdin can be read only once: as policy or as manifests",
        ));
    }
    if would_wait_for_typing(&run.paths) {
        let message = "no PATH is given and stdin is a terminal\n\n\
                       Name files or folders, or pipe manifests in: helm template ... | podgraft apply -p POLICY";
        return Err(usage(ErrorKind::MissingRequiredArgument, message));
    }
    PathFilter::new(&run.manifests).map_err(|error| usage(ErrorKind::ValueValidation, error))
}

/// Reads everything and plans the whole result; nothing is written.
pub fn graft_all(run: &args::Run, wish: Wish<'_>) -> Result<Grafted, clap::Error> {
    let run = &match settings::complete(run, Role::CommandLine) {
        Ok(run) => run,
        Err(problems) => return Ok(Grafted::refused(run, problems)),
    };
    let filter = check_usage(run, wish.purpose)?;
    let Walk {
        inputs,
        mut problems,
        ..
    } = walk(&run.paths, &filter);
    let (texts, pipe) = texts_of(run, inputs, wish.pipe, &mut problems)?;
    Ok(graft_given(run, texts, Wish { pipe, ..wish }, problems))
}

/// A run of a host, with its settings.
///
/// # Errors
/// A glob that cannot be read.
pub fn graft_host(run: &args::Run) -> Result<Grafted, clap::Error> {
    let filter = PathFilter::new(&run.manifests)
        .map_err(|error| usage(ErrorKind::ValueValidation, error))?;
    let Walk {
        inputs,
        mut problems,
        ..
    } = walk(&run.paths, &filter);
    let texts = read_texts(inputs, run.output.threads, &mut problems);
    Ok(graft_given(
        run,
        texts,
        Wish::told(&Purpose::Elsewhere, &run.output),
        problems,
    ))
}

/// Grafts a text that a host gave.
pub fn graft_read(run: &args::Run, input: Input, text: Vec<u8>) -> Grafted {
    graft_given(
        run,
        vec![(input, Arc::new(text))],
        Wish::told(&Purpose::Elsewhere, &run.output),
        Vec::new(),
    )
}

/// Grafts texts, beside the problems that reading them had.
pub fn graft_given(
    run: &args::Run,
    mut texts: Vec<Text>,
    wish: Wish<'_>,
    mut problems: Vec<Diagnostic>,
) -> Grafted {
    let mut loaded = match wish.purpose {
        Purpose::TakeOut { .. } | Purpose::Read => Loaded::default(),
        Purpose::Elsewhere | Purpose::InPlace => policies::load(&run.policies, &named(&texts)),
    };
    problems.append(&mut loaded.problems);
    let opened = open_pipe(&mut texts, wish.pipe, &loaded.policies).unwrap_or_else(|problem| {
        texts.clear();
        problems.push(problem);
        None
    });
    graft_loaded(run, (texts, opened), wish, &loaded, problems)
}

fn graft_loaded(
    run: &args::Run,
    (texts, opened): (Vec<Text>, Option<(Release, Opened)>),
    wish: Wish<'_>,
    loaded: &Loaded,
    mut problems: Vec<Diagnostic>,
) -> Grafted {
    let threads = run.output.threads;
    let Loaded {
        policies,
        given,
        files,
        ..
    } = loaded;
    let mut options = Options {
        details: wish.details,
        ..options(run, wish.purpose, given.clone())
    };
    (wish.ask)(&mut options);
    // Which generated objects are needed is known from what is recorded of all workloads.
    options.preview &= policies.iter().all(|policy| policy.generate.is_empty());
    let lock_files = LockFiles::of(&texts).unwrap_or_else(|wrong| {
        problems.extend(wrong);
        LockFiles::default()
    });
    options.given = wish.orphans.then(|| given.clone());
    let is_stream = matches!(opened, Some((Release::Immediately, _)));
    let sources = Sources {
        manifests: match &opened {
            _ if is_stream => Vec::new(),
            Some((_, Opened::Original(original))) => {
                vec![Arc::clone(original) as Arc<dyn SourceText>]
            }
            Some((_, Opened::Once(_))) | None => texts.iter().map(source_text).collect(),
        },
        texts: &named(&texts),
        policy_files: files,
        context: &run.manifests.context,
        is_stream,
    };
    let Facts {
        mut inventory,
        writers,
        problems: fact_problems,
    } = gather(sources, policies, &options, threads);
    inventory.add_locks(Arc::clone(&lock_files.locks));
    problems.extend(fact_problems);
    let shard = run.manifests.shard;
    let mut settling = Settling::default();
    for (name, text) in writers {
        if shard.is_some_and(|shard| !shard.has(text)) {
            settling.leave_to_others(name);
        }
    }
    let mut texts = if let Some(shard) = shard {
        shard.keep(texts)
    } else {
        texts
    };
    problems.extend(unknown_kinds(policies, &PodKinds::of(&options)));
    // A file that is missing keeps no problem of the others back, but lets nothing out.
    let may_graft = !problems
        .iter()
        .any(|problem| problem.is_error() && (is_stream || problem.code != Code::File));
    progress::start(texts.iter().map(length).sum(), &run.output);
    let (reports, piped) = match opened {
        _ if !may_graft => (Vec::new(), None),
        None => (
            graft_texts(&texts, threads, policies, &options, &inventory),
            None,
        ),
        Some((release, opened)) => {
            let through = pipe_text(
                &mut texts, opened, threads, release, policies, &options, &inventory,
            );
            match through {
                Ok((report, piped)) => (vec![report], piped),
                Err(problem) => {
                    problems.push(problem);
                    (Vec::new(), None)
                }
            }
        }
    };
    progress::end();
    let mut files: Vec<GraftedFile> = texts
        .into_iter()
        .zip(reports)
        .map(|((input, text), (report, parts))| GraftedFile {
            path: patch_path(&input),
            input,
            text,
            report,
            parts,
        })
        .collect();
    files
        .iter_mut()
        .for_each(|file| settling.settle(&mut file.report));
    finish(run, policies, &options, files, piped, lock_files, problems)
}

/// What is known only after every workload was planned: generated objects that go, findings over the whole run.
fn finish(
    run: &args::Run,
    policies: &[Policy],
    options: &Options,
    mut files: Vec<GraftedFile>,
    piped: Option<Piped>,
    lock_files: LockFiles,
    mut problems: Vec<Diagnostic>,
) -> Grafted {
    let parts = files.iter_mut().map(|file| {
        (
            file.input.name.clone(),
            file.text.as_slice(),
            &mut file.report,
        )
    });
    // A text that is piped has nothing beside its workloads that would go, or is on stdout already.
    problems.extend(if piped.is_none() {
        retire_proven(&mut parts.collect::<Vec<_>>(), options, &lock_files.locks)
    } else {
        None
    });
    problems.extend(
        files
            .iter_mut()
            .flat_map(|file| std::mem::take(&mut file.report.diagnostics)),
    );
    // What an injection does is of no matter where nothing is injected.
    if !run.ephemeral_containers && !problems.iter().any(Diagnostic::is_error) {
        let reports: Vec<&FileReport> = files.iter().map(|file| &file.report).collect();
        problems.extend(across::notes(policies, &reports));
    }
    problems = say_once(problems);
    charts::advise(&mut problems, &run.paths);
    if run.manifests.shard.is_none() {
        problems.extend(unmet_workloads(options, &files));
        problems.extend(unmet_image_env(options, &problems));
    }
    if !problems.iter().any(Diagnostic::is_error) {
        // What one shard has nothing of, another may have.
        problems.extend(if run.manifests.shard.is_none() {
            find_nothing(&files)
        } else {
            Vec::new()
        });
        problems.extend(find_no_object(&files));
    }
    files.retain(|file| !file.parts.is_empty() || !file.input.is_found());
    Grafted {
        files,
        problems,
        configuration: run.policies.configured.file.clone(),
        demands: Demands::of(run),
        reads: Reads::of(run),
        piped,
        lock_files,
    }
}

/// Bytes of a text, which may not be read yet.
fn length((input, text): &Text) -> u64 {
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

fn options(run: &args::Run, purpose: &Purpose, given: Vec<String>) -> Options {
    let flags = &run.policies;
    let take_out = match purpose {
        Purpose::TakeOut { only, .. } if only.is_empty() => TakeOut::All,
        Purpose::TakeOut { only, .. } => TakeOut::Only(only.clone()),
        Purpose::Read => TakeOut::Nothing,
        Purpose::Elsewhere | Purpose::InPlace if flags.prune => TakeOut::NotGiven(given),
        Purpose::Elsewhere | Purpose::InPlace => TakeOut::Nothing,
    };
    let is_in_place = matches!(
        purpose,
        Purpose::InPlace | Purpose::TakeOut { in_place: true, .. }
    );
    Options {
        record: flags.record,
        lock: is_in_place && !flags.record && !flags.no_record,
        set: flags.set.clone(),
        take_out,
        force: matches!(purpose, Purpose::TakeOut { force: true, .. }),
        namespace: run.manifests.namespace.clone(),
        pod_templates: run.manifests.pod_templates.clone(),
        kube_minor: run.manifests.kube_version,
        marker: !run.policies.no_marker,
        ephemeral_containers: run.ephemeral_containers,
        parse_all: run.manifests.parse_all,
        workloads: run.manifests.workloads.clone(),
        image_env: run.manifests.image_env.clone(),
        namespaces: run.policies.configured.namespaces.clone(),
        acknowledged: run.policies.configured.acknowledged.clone(),
        labels: !run.policies.configured.require.is_empty(),
        details: true,
        needs: run.output.report.is_some(),
        forbid: run.policies.forbid.clone(),
        ..Options::default()
    }
}

/// The bytes by which a patch names the file.
fn patch_path(input: &Input) -> Vec<u8> {
    input.path().map_or_else(
        || b"stdin".to_vec(),
        |path| path.as_os_str().as_encoded_bytes().to_vec(),
    )
}

impl Grafted {
    /// Nothing but problems.
    pub fn refused(run: &args::Run, problems: Vec<Diagnostic>) -> Self {
        Grafted {
            files: Vec::new(),
            problems,
            configuration: None,
            demands: Demands::of(run),
            reads: Reads::of(run),
            piped: None,
            lock_files: LockFiles::default(),
        }
    }

    /// The policies are for some workload, and have nothing for its pods.
    fn without_ephemeral_containers(&self) -> Option<Diagnostic> {
        let mut workloads = self.files.iter().flat_map(|file| &file.report.workloads);
        let is_met =
            |outcome: &Outcome| matches!(outcome, Outcome::Injected(_) | Outcome::UpToDate);
        let is_met = workloads
            .clone()
            .any(|workload| workload.policies.iter().any(|met| is_met(&met.outcome)));
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

/// Shows the problems and ends the run, where there are any that do not let it go on.
pub fn refuse(grafted: &Grafted, output: &args::Output, voice: Voice) -> Option<Exit> {
    let worst = grafted
        .problems
        .iter()
        .map(|problem| problem.severity)
        .max();
    let is_refused = worst == Some(Severity::Error)
        || (output.strict || grafted.demands.is_strict) && worst == Some(Severity::Warning);
    let verdict = if is_refused {
        Verdict::Refused
    } else {
        Verdict::Succeeded
    };
    let reported = write_report(output, grafted, &[], verdict);
    if !is_refused && reported.is_ok() {
        return None;
    }
    let mut problems = grafted.problems.clone();
    problems.extend(reported.err());
    voice.show(&problems);
    let is_strict = !problems.iter().any(Diagnostic::is_error);
    let is_gone = grafted.piped.as_ref().is_some_and(Piped::is_gone);
    voice.conclude(
        &problems,
        match (is_gone, is_strict) {
            (true, _) => "what came before it is on stdout (--stream)",
            (false, true) => "nothing was written (--strict)",
            (false, false) => "nothing was written",
        },
    );
    let is_bug = problems
        .iter()
        .any(|problem| problem.code == Code::Internal && problem.is_error());
    Some(if is_bug {
        Exit::Internal
    } else {
        Exit::Refused
    })
}

fn write_report(
    output: &args::Output,
    grafted: &Grafted,
    more: &[Diagnostic],
    verdict: Verdict,
) -> Result<(), Diagnostic> {
    let Some(path) = &output.report else {
        return Ok(());
    };
    grafted.reads.check_report(path)?;
    let problems = [grafted.problems.as_slice(), more].concat();
    let report = json::render(&grafted.reported(), &problems, verdict);
    write_whole(path, report.as_bytes()).map_err(|error| {
        Diagnostic::error(
            Code::File,
            format!("`{}` cannot be written: {error}", path.display()),
        )
    })
}
