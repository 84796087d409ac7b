//! `diff`, `explain`, `inspect`, `check` and `debug`: print what the pipeline found in the requested format.

use std::cmp::Reverse;
use std::path::PathBuf;

use clap::error::ErrorKind;
use podgraft_core::diagnostic::{Code, Diagnostic, Severity};
use podgraft_core::edit::yaml_document;
use podgraft_core::outcome::{FileReport, ReportedFile};
use podgraft_core::report::check::CheckedRun;
use podgraft_core::report::inspect::{self, Columns, InspectedWorkload};
use podgraft_core::report::review::GroupBy;
use podgraft_core::report::unified::DiffAudience;
use podgraft_core::report::{
    check, diff_json, diff_sarif, explain, html, markdown, stat, summary, text, unified,
};
use podgraft_core::wording::Paint;
use podgraft_core::{config, debug, wording};
use serde_json::Value;

use crate::args::relevant_flags::usage;
use crate::args::{
    self, CheckFormat, DebugFormat, DiffFormat, ExplainFormat, InspectFormat, SortBy,
};
use crate::conclude::refuse;
use crate::diagnostics::{Console, stdout_columns};
use crate::exit::Exit;
use crate::hints::complete_commands;
use crate::owners;
use crate::policy_diff::graft_against;
use crate::repository::repository;
use crate::run::{GraftOutcome, Purpose, RunRequest, graft_all};
use crate::stdout::print;
use crate::walk::reads_stdin;

/// What `apply --in-place` does to files: there, records go into lock files and not into annotations.
fn purpose(args: &args::DiffArgs) -> &'static Purpose {
    match reads_stdin(&args.run.paths) {
        true => &Purpose::Elsewhere,
        false => &Purpose::InPlace,
    }
}

/// Moves the findings about workloads out of the problems. The errors that stay end the run. Where no file was looked at,
/// they are about the policies or the configuration, and all stay.
fn take_findings(grafted: &mut GraftOutcome) -> Vec<Diagnostic> {
    let problems = std::mem::take(&mut grafted.problems);
    let has_files = !grafted.files.is_empty();
    let (findings, problems) = problems
        .into_iter()
        .partition(|problem| !problem.is_error() || has_files && problem.code.is_finding());
    grafted.problems = problems;
    findings
}

/// `podgraft diff`.
pub fn diff(args: &args::DiffArgs) -> Result<Exit, clap::Error> {
    let is_splittable = matches!(args.output, DiffFormat::Json | DiffFormat::Markdown);
    if args.group_by.is_some() && !is_splittable {
        let message = "--group-by works only with -o json and -o markdown";
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    let mut request = RunRequest::of(purpose(args));
    request.report_orphans = args.against_policy.is_empty();
    request.options.authors = true;
    request.options.preview = true;
    request.options.lint = true;
    request.options.views = args.output == DiffFormat::Html;
    let mut grafted = match args.against_policy.as_slice() {
        [] => graft_all(&args.run, request)?,
        old => graft_against(&args.run, old, request)?,
    };
    let console = Console::new(&args.run.output);
    if let Some(exit) = refuse(&grafted, console) {
        return Ok(exit);
    }
    let repository = (!args.relative).then(repository).flatten();
    if let Some(repository) = &repository {
        grafted.name_from(repository);
    }
    let program = match repository.is_some_and(|repository| repository.is_below_root()) {
        true => DiffAudience::Git,
        false => DiffAudience::Program,
    };
    let reported = grafted.reported();
    let paint = console.stdout_paint();
    let shown = render_diff(args, &reported, &grafted.problems, program, paint);
    if let Err(problem) = shown.and_then(|shown| print(shown.as_bytes())) {
        console.show(&[problem]);
        return Ok(Exit::Refused);
    }
    console.show(&grafted.problems);
    let summary = [
        grafted.named_configuration(),
        text::skipped(&reported),
        text::totals(&reported, text::ReportMode::Shown),
    ];
    console.inform(&summary.concat());
    let is_changed = reported.iter().any(|file| !file.report.edits.is_empty());
    Ok(if is_changed {
        Exit::Differences
    } else {
        Exit::Done
    })
}

fn render_diff(
    args: &args::DiffArgs,
    files: &[ReportedFile<'_>],
    problems: &[Diagnostic],
    program: DiffAudience,
    paint: Paint,
) -> Result<String, Diagnostic> {
    let owners;
    let group_by = match args.group_by {
        None => GroupBy::Nothing,
        Some(args::GroupByArg::Namespace) => GroupBy::Namespace,
        Some(args::GroupByArg::Dir) => GroupBy::Dir,
        Some(args::GroupByArg::Codeowners) => {
            owners = owners::read()?;
            GroupBy::Owners(&owners)
        }
    };
    Ok(match args.output {
        DiffFormat::Unified => unified::render(reader(program), files, paint),
        DiffFormat::Summary => summary::render(files, paint),
        DiffFormat::Stat => stat::render(files, paint),
        DiffFormat::Json => diff_json::render(files, group_by),
        DiffFormat::Markdown => markdown::render(files, group_by, problems),
        DiffFormat::Html => html::render(files, problems),
        DiffFormat::Sarif => diff_sarif::render(files),
    })
}

/// Who reads the diff: a person if stdout is a terminal, else the program that applies it.
fn reader(program: DiffAudience) -> DiffAudience {
    stdout_columns().map_or(program, DiffAudience::Person)
}

/// `podgraft explain -p POLICY`.
pub fn explain(args: &args::ExplainArgs) -> Result<Exit, clap::Error> {
    let code = |path: &PathBuf| Code::find(path.to_str()?).filter(|_| !path.exists());
    if let Some(code) = args.run.paths.iter().find_map(code) {
        let name = code.name();
        let message = format!(
            "`{name}` is a diagnostic code, not a file: to print its page, run `podgraft explain \
             {name}` without other arguments"
        );
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    let mut request = RunRequest::of(&Purpose::Elsewhere);
    request.options.places = true;
    let mut grafted = graft_all(&args.run, request)?;
    let console = Console::new(&args.run.output);
    let findings = take_findings(&mut grafted);
    if let Some(exit) = refuse(&grafted, console) {
        return Ok(exit);
    }
    grafted.keep_wanted(&args.run.manifests.workloads);
    let reported = grafted.reported();
    let shown = match args.output {
        ExplainFormat::Text => explain::render(&reported, console.stdout_paint()),
        ExplainFormat::Json => explain::render_json(&reported),
    };
    // The explanation covers warnings. Errors carry more than fits a line.
    let errors: Vec<Diagnostic> = findings.into_iter().filter(Diagnostic::is_error).collect();
    console.show(&errors);
    console.inform(&grafted.named_configuration());
    Ok(console.print(shown.as_bytes(), Exit::Done))
}

/// `podgraft check`.
pub fn check(args: &args::CheckArgs) -> Result<Exit, clap::Error> {
    let mut run = args.run.clone();
    run.policies
        .configured
        .require
        .extend(args.require.iter().cloned());
    require_of_all(args)?;
    let mut request = RunRequest::of(&Purpose::Elsewhere);
    request.report_orphans = true;
    request.options.places = true;
    request.options.lint = true;
    let mut grafted = graft_all(&run, request)?;
    let console = Console::new(&args.run.output);
    let mut findings = take_findings(&mut grafted);
    if let Some(exit) = refuse(&grafted, console) {
        // A page that shows the reports of a job shows why, too: an empty one would look like no findings. A program that
        // reads JSON looks at the exit status.
        if matches!(args.output, CheckFormat::Text | CheckFormat::Json) {
            return Ok(exit);
        }
        name_for(args, grafted.problems.iter_mut());
        let refused = CheckedRun::new(&[], &grafted.problems);
        let shown = render_check(args.output, &refused, console);
        return Ok(console.print(shown.as_bytes(), exit));
    }
    if !findings.iter().any(Diagnostic::is_error) {
        findings.extend(grafted.stale_locks());
    }
    grafted.keep_wanted(&args.run.manifests.workloads);
    let reported = grafted.reported();
    findings.extend(grafted.missed(&reported));
    // A run over a part of the workloads or policies, or one that failed, tells nothing about acknowledgements without a
    // finding.
    let mut checked = CheckedRun::new(&reported, &findings);
    let acknowledged = &grafted.run.policies.configured.acknowledged;
    checked.accept(|found| acknowledged.iter().any(|entry| entry.covers(found)));
    if grafted.is_whole() && !checked.is_partial() {
        checked.add(&config::unused(acknowledged));
    }
    if grafted.is_strict() {
        checked.fail_on_warnings();
    }
    let findings = checked.findings.iter_mut();
    name_for(args, findings.map(|finding| &mut finding.diagnostic));
    let shown = render_check(args.output, &checked, console);
    console.inform(&grafted.named_configuration());
    if args.output != CheckFormat::Text {
        console.inform(&check::text::totals(&checked));
    }
    let exit = match checked.number(Severity::Error) {
        0 => Exit::Done,
        _ => Exit::Differences,
    };
    Ok(console.print(shown.as_bytes(), exit))
}

/// What `--require` asks for is not checked in a part of the workloads or policies: the run would look like a success.
fn require_of_all(args: &args::CheckArgs) -> Result<(), clap::Error> {
    let (manifests, policies) = (&args.run.manifests, &args.run.policies);
    let parts = [
        ("--shard", manifests.shard.is_some(), "workloads"),
        ("--workload", !manifests.workloads.is_empty(), "workloads"),
        ("--only", !policies.only.is_empty(), "policies"),
        ("--skip", !policies.skip.is_empty(), "policies"),
    ];
    let mut given = parts.into_iter().filter(|(_, is_given, _)| *is_given);
    match given.next() {
        Some((flag, _, all)) if !args.require.is_empty() => {
            let message = format!("--require needs all {all}, but {flag} excludes some of them");
            Err(usage(ErrorKind::ArgumentConflict, message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Completes the commands in help, and names in formats that other programs show beside the code the files from the root
/// of the repository.
fn name_for<'d>(args: &args::CheckArgs, diagnostics: impl Iterator<Item = &'d mut Diagnostic>) {
    let is_beside_code = match args.output {
        CheckFormat::Github | CheckFormat::Sarif => true,
        CheckFormat::Text | CheckFormat::Json | CheckFormat::Junit => false,
    };
    let mut diagnostics: Vec<&mut Diagnostic> = diagnostics.collect();
    complete_commands(
        diagnostics.iter_mut().map(|diagnostic| &mut **diagnostic),
        &args.run.paths,
    );
    if let Some(repository) = is_beside_code.then(repository).flatten() {
        repository.name_from_root(diagnostics);
    }
}

fn render_check(format: CheckFormat, checked: &CheckedRun<'_>, console: Console) -> String {
    match format {
        CheckFormat::Text => check::text::render(checked, console.stdout_paint()),
        CheckFormat::Json => check::json::render(checked),
        CheckFormat::Junit => check::junit::render(checked),
        CheckFormat::Github => check::github::render(checked),
        CheckFormat::Sarif => check::sarif::render(checked),
    }
}

/// `podgraft inspect`.
pub fn inspect(args: &args::InspectArgs) -> Result<Exit, clap::Error> {
    let mut request = RunRequest::of(&Purpose::Read);
    request.options.views = true;
    let mut grafted = graft_all(&args.run(), request)?;
    // `strict: true` of podgraft.yaml is for what is written or judged.
    grafted.run.output.strict = false;
    let console = Console::new(&args.output);
    if let Some(exit) = refuse(&grafted, console) {
        return Ok(exit);
    }
    grafted.keep_wanted(&args.manifests.workloads);
    let reported = grafted.reported();
    let mut workloads = inspect::workloads(&reported);
    sort(&mut workloads, args);
    if workloads.is_empty() && matches!(args.format, InspectFormat::Table | InspectFormat::Wide) {
        console.inform("No workloads found\n");
        return Ok(Exit::Done);
    }
    let has_namespaces = args.all_namespaces
        || workloads
            .iter()
            .any(|workload| workload.view.namespace != workloads[0].view.namespace);
    let columns = Columns {
        namespace: has_namespaces,
        wide: args.format == InspectFormat::Wide,
        headings: !args.no_headers,
    };
    let shown = match args.format {
        InspectFormat::Table | InspectFormat::Wide => inspect::table(&workloads, columns),
        InspectFormat::Json => wording::pretty_json(&inspect::value(&workloads)),
        InspectFormat::Yaml => yaml_document(&inspect::value(&workloads)),
        InspectFormat::Farmpods => {
            yaml_document(&inspect::farm_pods(&workloads, list_metadata(&reported)))
        }
    };
    console.show(&grafted.problems);
    Ok(console.print(shown.as_bytes(), Exit::Done))
}

/// Sorts the workloads as the flags say. Equal ones stay in the order of files and lines.
fn sort(workloads: &mut [InspectedWorkload<'_>], args: &args::InspectArgs) {
    let by_namespace = args.all_namespaces.then_some(SortBy::Namespace);
    let Some(order) = args.sort_by.or(by_namespace) else {
        return;
    };
    match order {
        SortBy::Namespace => workloads.sort_by_key(|found| {
            let view = found.view;
            (&view.namespace, &view.kind, &view.name)
        }),
        SortBy::Kind => workloads.sort_by_key(|found| (&found.view.kind, &found.view.name)),
        SortBy::Name => workloads.sort_by_key(|found| &found.view.name),
        SortBy::Containers => {
            workloads.sort_by_key(|found| Reverse(found.view.all_containers().count()))
        }
    }
}

/// The metadata of the first list among the inputs.
fn list_metadata<'f>(files: &[ReportedFile<'f>]) -> Option<&'f Value> {
    let metadata_of = |report: &'f FileReport| report.list_metadata.as_ref();
    files.iter().find_map(|file| metadata_of(file.report))
}

/// `podgraft debug`.
pub fn debug(args: &args::DebugArgs) -> Result<Exit, clap::Error> {
    let mut request = RunRequest::of(&Purpose::Elsewhere);
    request.options.ephemeral_containers = true;
    let mut grafted = graft_all(&args.run, request)?;
    let missing = grafted.without_ephemeral_containers();
    grafted.problems.extend(missing);
    let console = Console::new(&args.run.output);
    if let Some(exit) = refuse(&grafted, console) {
        return Ok(exit);
    }
    let reports: Vec<&FileReport> = grafted.files.iter().map(|file| &file.report).collect();
    let shown = match args.output {
        DebugFormat::Yaml => debug::yaml(&reports),
        DebugFormat::Json => debug::json(&reports),
        DebugFormat::Kubectl => debug::kubectl(&reports),
    };
    let exit = console.print(shown.as_bytes(), Exit::Done);
    if exit == Exit::Done {
        console.show(&grafted.problems);
        console.inform(&(grafted.named_configuration() + &text::skipped(&grafted.reported())));
    }
    Ok(exit)
}
