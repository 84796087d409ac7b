//! The end of a run: its result is written, or the problems are shown. Returns the exit status.

use podgraft_core::diagnostic::{Code, Diagnostic, Severity};
use podgraft_core::report::json::RunVerdict;
use podgraft_core::report::{json, text};

use crate::diagnostics::Console;
use crate::exit::Exit;
use crate::output::{OutputTarget, check_apart, write_result};
use crate::paths::from_current_folder;
use crate::pipeline::PipedText;
use crate::problems::not_written;
use crate::run::GraftOutcome;
use crate::threads::number;
use crate::write::{WriteFailure, write_whole};

/// Writes the result and the reports, or shows why there is no result.
pub fn conclude(mut grafted: GraftOutcome, target: OutputTarget<'_>) -> Exit {
    let output = &mut grafted.run.output;
    let console = Console::new(output);
    if let Some(collision) = check_apart(target, output.report.as_deref(), &grafted.files) {
        // A refused run writes its report, too; here it would replace the result of an earlier run.
        output.report = None;
        grafted.problems.push(collision);
    }
    if let Some(exit) = refuse(&grafted, console) {
        return exit;
    }
    let written = match (grafted.piped.take(), grafted.files.first()) {
        (Some(piped), Some(file)) => piped
            .release(&file.input.name, number(grafted.run.output.threads))
            .map(|()| Vec::new())
            .map_err(WriteFailure::midway),
        (Some(_) | None, _) => write_result(target, &grafted),
    };
    let only_recorded = match written {
        Ok(only_recorded) => only_recorded,
        Err(failure) => {
            show_failure(failure, &grafted, console);
            return Exit::Refused;
        }
    };
    console.show(&grafted.problems);
    if !grafted.run.output.quiet {
        console.inform(&(grafted.named_configuration() + &text::render(&grafted.reported())));
        for lock in only_recorded {
            let lock = from_current_folder(&lock);
            console.inform(&format!("wrote {}; no manifest changed\n", lock.display()));
        }
    }
    Exit::Done
}

/// Shows why nothing, or not all, could be written, and says so in the report.
pub fn show_failure(failure: WriteFailure, grafted: &GraftOutcome, console: Console) {
    let problems = failure.problems;
    write_report(grafted, &problems, RunVerdict::Refused)
        .unwrap_or_else(|problem| console.show(&[problem]));
    console.show(&problems);
    let outcome = match failure.nothing_written {
        true => "nothing was written",
        false => "what failed was not written",
    };
    console.conclude(&problems, outcome);
}

/// Ends the run with its problems if one of them is an error, or a warning under `--strict`. Returns `None` if the run
/// may go on.
pub fn refuse(grafted: &GraftOutcome, console: Console) -> Option<Exit> {
    let limit = match grafted.is_strict() {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let mut severities = grafted.problems.iter().map(|problem| problem.severity);
    let is_refused = severities.any(|severity| severity >= limit);
    let verdict = if is_refused {
        RunVerdict::Refused
    } else {
        RunVerdict::Succeeded
    };
    let reported = write_report(grafted, &[], verdict);
    if !is_refused && reported.is_ok() {
        return None;
    }
    let mut problems = grafted.problems.clone();
    problems.extend(reported.err());
    console.show(&problems);
    let is_strict = !problems.iter().any(Diagnostic::is_error);
    let is_gone = grafted.piped.as_ref().is_some_and(PipedText::is_gone);
    console.conclude(
        &problems,
        match (is_gone, is_strict) {
            (true, _) => "the output before the error is on stdout (--stream)",
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
    grafted: &GraftOutcome,
    more: &[Diagnostic],
    verdict: RunVerdict,
) -> Result<(), Diagnostic> {
    let Some(path) = &grafted.run.output.report else {
        return Ok(());
    };
    grafted.originals().check_report(path)?;
    let problems = [grafted.problems.as_slice(), more].concat();
    let report = json::render(&grafted.reported(), &problems, verdict);
    write_whole(path, report.as_bytes()).map_err(|error| not_written(path.display(), error))
}
