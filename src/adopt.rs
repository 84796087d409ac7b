//! `podgraft adopt`: records what stands in the manifests just as a policy would inject it, as injected by that policy.

use clap::error::ErrorKind;
use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::outcome::Outcome;
use podgraft_core::report::text;

use crate::args;
use crate::args::relevant_flags::usage;
use crate::conclude::{conclude, refuse};
use crate::diagnostics::Console;
use crate::exit::Exit;
use crate::hints::command;
use crate::output::OutputTarget;
use crate::run::{Purpose, RunRequest, graft_all};
use crate::walk::reads_stdin;

/// `podgraft adopt`.
pub fn adopt(args: &args::AdoptArgs) -> Result<Exit, clap::Error> {
    let target = OutputTarget {
        in_place: true,
        output_dir: None,
    };
    if reads_stdin(&args.run.paths) {
        let message = "adopt needs files or folders: stdin cannot be recorded";
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    let mut request = RunRequest::of(&Purpose::InPlace);
    request.options.adopt = true;
    let mut grafted = graft_all(&args.run, request)?;
    let is_refused = grafted.problems.iter().any(Diagnostic::is_error);
    let is_given = |policy: &str| grafted.given.iter().any(|given| given == policy);
    let is_known = grafted.outcomes().any(|policy_report| {
        // Of a given policy that is recorded already, only the record may change.
        let is_recorded = match policy_report.outcome {
            Outcome::Injected(_) => is_given(&policy_report.policy),
            _ => policy_report.outcome == Outcome::UpToDate,
        };
        policy_report.is_adopted() || is_recorded
    });
    if !is_refused && !is_known {
        let message = "nothing to adopt: no workload contains everything that a policy injects";
        let problem = Diagnostic::error(Code::NoRecord, message);
        let [explain, diff] = ["explain", "diff"].map(|name| command(name, &args.run.paths));
        grafted.problems.push(problem.help(format!(
            "{explain} shows which policies apply, and {diff} shows what they would add"
        )));
    }
    if args.in_place {
        return Ok(conclude(grafted, target));
    }
    let console = Console::new(&args.run.output);
    if let Some(exit) = refuse(&grafted, console) {
        return Ok(exit);
    }
    console.show(&grafted.problems);
    let summary = text::render(&grafted.reported());
    console.inform(&format!(
        "{summary}nothing was written: add --in-place to write the record\n"
    ));
    Ok(Exit::Done)
}
