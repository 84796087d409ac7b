//! Programs that run podgraft: what is the same for kustomize, kpt, Helm and Argo CD. Only what the operator names
//! counts there; the folder that podgraft runs in is an application's.

mod announce;
pub mod argocd;
pub mod function;
mod parameters;

use std::io::Read;

use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::outcome::{Outcome, SkipCause, WorkloadReport};

use crate::args;
use crate::diagnostics::{Console, log_to_file};
use crate::output::{OutputTarget, print};
use crate::run::{Exit, GraftOutcome, conclude, graft_read};
use crate::settings::{self, Caller};
use crate::walk::Input;

/// What a host reads.
const TO_STDOUT: OutputTarget<'_> = OutputTarget {
    in_place: false,
    output_dir: None,
};

/// `podgraft post-render`: Helm's manifests on stdin, the same with the policies applied on stdout.
pub fn post_render(args: &args::HostArgs) -> Exit {
    log_to_file();
    let voice = Console::new(&args.output);
    let input = Input::stdin();
    let text = match input.read() {
        Ok(text) => text,
        Err(problem) => return fail(&[problem], voice),
    };
    // A chart of hooks alone has nothing for a post-renderer, and is not wrong.
    if is_blank(&text) {
        voice.tell("podgraft: there is no manifest to look at\n");
        return print(&text).map_or_else(|problem| fail(&[problem], voice), |()| Exit::Done);
    }
    let run = match complete(&args.run()) {
        Ok(run) => run,
        Err(problems) => return fail(&problems, voice),
    };
    let mut grafted = graft_read(&run, input, text);
    grafted.problems.extend(local_config_warnings(&grafted));
    conclude(grafted, &args.output, TO_STDOUT)
}

/// The settings of flags, environment and the operator's file; there must be a policy.
fn complete(run: &args::RunArgs) -> Result<args::RunArgs, Vec<Diagnostic>> {
    let run = settings::complete(run, Caller::Host)?;
    let policies = &run.policies;
    if policies.given.is_empty() && policies.configured.inline.is_empty() {
        let problem = Diagnostic::error(Code::BadPolicy, "no policy is given");
        let help = "name policies with -p or PODGRAFT_POLICY, or a podgraft.yaml with --config or PODGRAFT_CONFIG";
        return Err(vec![problem.help(help)]);
    }
    Ok(run)
}

fn fail(problems: &[Diagnostic], voice: Console) -> Exit {
    voice.show(problems);
    voice.conclude(problems, "nothing was written");
    Exit::Refused
}

/// Workloads that say they are not for a cluster, in what goes to a cluster all the same: they would evade the policies.
/// kustomize and kpt leave such objects out themselves; Helm and Argo CD do not.
fn local_config_warnings(grafted: &GraftOutcome) -> Vec<Diagnostic> {
    let evades = |workload: &&WorkloadReport| {
        workload
            .policies
            .iter()
            .any(|policy_report| matches!(&policy_report.outcome, Outcome::Skipped(skip) if skip.cause == SkipCause::LocalConfig))
    };
    let reports = grafted.files.iter().map(|file| &file.report);
    let found = reports.flat_map(|report| &report.workloads).filter(evades).map(|workload| {
        let message =
            format!("{} is annotated as no object for a cluster, and would be deployed all the same", workload.title());
        Diagnostic::error(Code::Invalid, message)
            .help("take the annotation `config.kubernetes.io/local-config` off, or the object out of what is rendered")
    });
    found.collect()
}

fn is_blank(text: &[u8]) -> bool {
    let is_nothing =
        |line: &[u8]| line.is_empty() || line.starts_with(b"#") || line == b"---" || line == b"...";
    text.split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .all(is_nothing)
}

/// All of stdin as text.
fn read_stdin() -> Result<String, Diagnostic> {
    let mut text = String::new();
    match std::io::stdin().lock().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Diagnostic::error(
            Code::File,
            format!("stdin cannot be read: {error}"),
        )),
    }
}
