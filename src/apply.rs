//! `podgraft apply`: prints the manifests with what policies inject, or the injections as patches.

use std::path::Path;

use clap::error::ErrorKind;
use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use podgraft_core::patches::{self, COMPONENT, COMPONENT_HEADER, GENERATED};
use podgraft_core::report::text;

use crate::args::relevant_flags::usage;
use crate::args::{self, ApplyFormat};
use crate::conclude::{conclude, refuse, show_failure};
use crate::diagnostics::Console;
use crate::exit::Exit;
use crate::grafted_file::GraftedFile;
use crate::kustomization;
use crate::output::{OutputTarget, check_target, write_component};
use crate::paths::{is_in_the_way, resolved};
use crate::pipeline::OutputTiming;
use crate::run::{GraftOutcome, Purpose, RunRequest, graft_all};
use crate::stdout::print;

/// `podgraft apply`.
pub fn apply(args: &args::ApplyArgs) -> Result<Exit, clap::Error> {
    check_format(args)?;
    match args.output {
        ApplyFormat::Manifests => manifests(args),
        ApplyFormat::JsonPatch => patched(args, json_patch),
        ApplyFormat::Kustomize => patched(args, component),
    }
}

fn check_format(args: &args::ApplyArgs) -> Result<(), clap::Error> {
    let conflict = |message: &str| Err(usage(ErrorKind::ArgumentConflict, message));
    match (args.output, &args.output_dir) {
        (ApplyFormat::Manifests, _) => Ok(()),
        _ if args.in_place || args.stream => {
            conflict("--in-place and --stream work only with -o manifests")
        }
        (ApplyFormat::Kustomize, _) if args.run.manifests.shard.is_some() => {
            conflict("-o kustomize creates one Component from all files: remove --shard")
        }
        (ApplyFormat::JsonPatch, Some(_)) => {
            conflict("-o json-patch writes to stdout: remove --output-dir")
        }
        (ApplyFormat::Kustomize, None) => Err(usage(
            ErrorKind::MissingRequiredArgument,
            "-o kustomize requires a folder: add --output-dir DIR",
        )),
        (ApplyFormat::Kustomize, Some(folder)) if is_report_in(folder, &args.run.output) => {
            conflict("--report would overwrite a file of the Component: choose a different file")
        }
        (ApplyFormat::JsonPatch, None) | (ApplyFormat::Kustomize, Some(_)) => Ok(()),
    }
}

/// Whether the report would go into a file of the Component in the folder, or into a kustomization beside it.
fn is_report_in(folder: &Path, output: &args::OutputArgs) -> bool {
    let mut names = kustomization::NAMES.into_iter().chain([GENERATED]);
    let report = output.report.as_deref().and_then(resolved);
    report.is_some_and(|report| names.any(|name| is_in_the_way(&report, &folder.join(name))))
}

fn manifests(args: &args::ApplyArgs) -> Result<Exit, clap::Error> {
    let target = OutputTarget {
        in_place: args.in_place,
        output_dir: args.output_dir.as_deref(),
    };
    check_target(target, &args.run.paths)?;
    let purpose = if args.in_place {
        Purpose::InPlace
    } else {
        Purpose::Elsewhere
    };
    let output = &args.run.output;
    let release = if args.stream {
        OutputTiming::Immediately
    } else {
        OutputTiming::AtTheEnd
    };
    let is_for_stdout = !args.in_place && args.output_dir.is_none();
    let pipe = (is_for_stdout && output.report.is_none()).then_some(release);
    let mut request = RunRequest::for_report(&purpose, output);
    request.pipe = pipe;
    request.report_orphans = true;
    request.options.brief = output.quiet && !output.strict && output.report.is_none();
    let grafted = graft_all(&args.run, request)?;
    Ok(conclude(grafted, target))
}

/// Writes the patches of a run in one format.
type PatchWriter = fn(&args::ApplyArgs, &GraftOutcome) -> Diagnosed;

fn patched(args: &args::ApplyArgs, write: PatchWriter) -> Result<Exit, clap::Error> {
    let mut request = RunRequest::for_report(&Purpose::Elsewhere, &args.run.output);
    request.options.patches = true;
    let grafted = graft_all(&args.run, request)?;
    let console = Console::new(&args.run.output);
    if let Some(exit) = refuse(&grafted, console) {
        return Ok(exit);
    }
    if let Err(problems) = write(args, &grafted) {
        show_failure(problems.into(), &grafted, console);
        return Ok(Exit::Refused);
    }
    console.show(&grafted.problems);
    console.inform(&(grafted.named_configuration() + &text::render(&grafted.reported())));
    Ok(Exit::Done)
}

fn json_patch(_: &args::ApplyArgs, grafted: &GraftOutcome) -> Diagnosed {
    print(patches::json_patch(&grafted.reported()).as_bytes()).map_err(|problem| vec![problem])
}

fn component(args: &args::ApplyArgs, grafted: &GraftOutcome) -> Diagnosed {
    let folder = args.output_dir.as_deref().unwrap_or(Path::new("."));
    refuse_own_input(folder, &grafted.files)?;
    refuse_foreign_files(folder)?;
    let component = patches::component(&grafted.reported())?;
    write_component(folder, component, &grafted.originals())
}

/// Refuses inputs in the folder of the Component: objects that an earlier run generated there would count as manifests,
/// and would not be generated again.
fn refuse_own_input(folder: &Path, files: &[GraftedFile]) -> Diagnosed {
    let Ok(folder) = std::fs::canonicalize(folder) else {
        return Ok(());
    };
    let inputs = files
        .iter()
        .filter_map(|file| Some((&file.input.name, file.input.path()?)));
    let inside = inputs.filter(|(_, path)| {
        std::fs::canonicalize(path).is_ok_and(|path| path.starts_with(&folder))
    });
    let problems = inside.map(|(name, _)| {
        let message = format!("`{name}` is read by this run and is in the folder of the Component");
        Diagnostic::error(Code::File, message)
            .help("exclude the folder with --exclude, or choose a different one")
    });
    unless(problems.collect(), ())
}

/// Refuses a folder with a kustomization that somebody else made: a Component would replace it, or stand beside it.
fn refuse_foreign_files(folder: &Path) -> Diagnosed {
    let earlier = std::fs::read_to_string(folder.join(COMPONENT)).unwrap_or_default();
    // Without its end: git may have made it the end of another system.
    if earlier.starts_with(COMPONENT_HEADER.trim_end()) {
        return Ok(());
    }
    let mut names = kustomization::NAMES.into_iter().chain([GENERATED]);
    let Some(name) = names.find(|name| folder.join(name).exists()) else {
        return Ok(());
    };
    let message = format!(
        "`{}` was not created by `podgraft apply -o kustomize`",
        folder.join(name).display()
    );
    Err(vec![Diagnostic::error(Code::File, message).help(
        "use a separate folder for --output-dir, and list that folder under `components` in the \
         kustomization",
    )])
}
