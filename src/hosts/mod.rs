//! Shared parts of the commands for hosts, the programs that run podgraft: kustomize, kpt, Helm and Argo CD. There,
//! only settings that the operator names count: the current folder is an application's.

mod announce;
pub mod argocd;
pub mod function;
mod parameters;

use std::sync::Arc;

use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic};
use podgraft_core::outcome::{Outcome, SkipCause, WorkloadReport};

use crate::args;
use crate::conclude::conclude;
use crate::diagnostics::{Console, log_to_file};
use crate::exit::Exit;
use crate::manifests::is_blank;
use crate::output::OutputTarget;
use crate::run::{GraftOutcome, Purpose, RunRequest, graft_read};
use crate::settings::{self, Caller};
use crate::stdout::print;
use crate::walk::Input;

/// `podgraft post-render`: reads Helm's manifests from stdin and prints them with the policies applied.
pub fn post_render(args: &args::HostArgs) -> Exit {
    log_to_file();
    let console = Console::new(&args.output);
    rendered(args, console).unwrap_or_else(|problems| fail(&problems, console))
}

fn rendered(args: &args::HostArgs, console: Console) -> Diagnosed<Exit> {
    let input = Input::stdin();
    let text = input.read().map_err(|problem| vec![problem])?;
    // A chart that has only hooks gives the post-renderer empty input, which is no error.
    if is_blank(&text) {
        console.inform("podgraft: there are no manifests in the input\n");
        print(&text).map_err(|problem| vec![problem])?;
        return Ok(Exit::Done);
    }
    let run = complete_with_policy(&args.run(), no_policy_given())?;
    let request = RunRequest::for_report(&Purpose::Elsewhere, &run.output);
    let mut grafted = graft_read(&run, &request, input, Arc::new(text));
    let evasions = local_config_errors(&grafted);
    grafted.problems.extend(evasions);
    Ok(conclude(grafted, OutputTarget::default()))
}

/// Completes the flags by the environment and the operator's configuration. Without a policy, this is the given error.
fn complete_with_policy(
    run: &args::RunArgs,
    without_policy: Diagnostic,
) -> Diagnosed<args::RunArgs> {
    let run = settings::complete(run, Caller::Host)?;
    let policies = &run.policies;
    if policies.given.is_empty() && policies.configured.inline.is_empty() {
        return Err(vec![without_policy]);
    }
    Ok(run)
}

fn no_policy_given() -> Diagnostic {
    Diagnostic::error(Code::BadPolicy, "no policy is given").help(
        "set policies with -p or PODGRAFT_POLICY, or a podgraft.yaml with --config or \
         PODGRAFT_CONFIG",
    )
}

fn fail(problems: &[Diagnostic], console: Console) -> Exit {
    console.show(problems);
    console.conclude(problems, "nothing was written");
    Exit::Refused
}

/// Errors for workloads annotated `config.kubernetes.io/local-config`. Policies skip these, so they would be deployed
/// without injection. kustomize and kpt leave such objects out of their output; Helm and Argo CD do not.
fn local_config_errors(grafted: &GraftOutcome) -> Vec<Diagnostic> {
    let is_evasion = |outcome: &Outcome| matches!(outcome, Outcome::Skipped(skip) if skip.cause == SkipCause::LocalConfig);
    let reports = grafted.files.iter().map(|file| &file.report);
    let workloads = reports.flat_map(|report| &report.workloads);
    let evading = workloads.filter(|workload| workload.has_outcome(is_evasion));
    evading.map(local_config_error).collect()
}

fn local_config_error(workload: &WorkloadReport) -> Diagnostic {
    let message = format!(
        "{} is annotated as local configuration, but would be deployed anyway",
        workload.title()
    );
    Diagnostic::error(Code::Invalid, message).help(
        "remove the annotation `config.kubernetes.io/local-config`, or do not render the object",
    )
}
