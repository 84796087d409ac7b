//! `podgraft undo`: removes what earlier runs injected.

use std::collections::BTreeSet;

use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::outcome::Outcome;
use podgraft_core::policy::schema::{did_you_mean, nearest};

use crate::args;
use crate::conclude::conclude;
use crate::exit::Exit;
use crate::output::{OutputTarget, check_target};
use crate::run::{GraftOutcome, Purpose, RunRequest, graft_all};

/// `podgraft undo`.
pub fn undo(args: &args::UndoArgs) -> Result<Exit, clap::Error> {
    let target = OutputTarget {
        in_place: args.in_place,
        output_dir: args.output_dir.as_deref(),
    };
    check_target(target, &args.paths)?;
    let run = args::RunArgs {
        paths: args.paths.clone(),
        policies: args::PolicyArgs {
            configuration: args.configuration.clone(),
            ..args::PolicyArgs::default()
        },
        manifests: args.manifests.clone(),
        output: args.output.clone(),
    };
    let purpose = Purpose::TakeOut {
        only: args.only.clone(),
        force: args.force,
        in_place: args.in_place,
    };
    let mut grafted = graft_all(&run, RunRequest::of(&purpose))?;
    if !grafted.problems.iter().any(Diagnostic::is_error) {
        let problems = nothing_to_undo(&grafted, &args.only);
        grafted.problems.extend(problems);
    }
    Ok(conclude(grafted, target))
}

/// Errors if no workload has a record, or none of a policy that `--only` names.
fn nothing_to_undo(grafted: &GraftOutcome, only: &[String]) -> Vec<Diagnostic> {
    let outcomes = grafted.outcomes();
    let taken_out = outcomes.filter(|report| matches!(report.outcome, Outcome::TakenOut(_)));
    let taken_out: BTreeSet<&str> = taken_out.map(|report| &*report.policy).collect();
    if only.is_empty() && taken_out.is_empty() {
        return vec![no_record("nothing to undo")];
    }
    let missing = only
        .iter()
        .filter(|name| !taken_out.contains(name.as_str()));
    let records = grafted.files.iter().flat_map(|file| &file.report.records);
    let records = records.filter_map(|workload| workload.record.as_ref());
    let policies = records.flat_map(|record| &record.policies);
    let known: BTreeSet<&str> = policies.map(|policy| policy.policy.as_str()).collect();
    let problem = |name: &String| {
        let problem = no_record(&format!("nothing to undo for policy `{name}`"));
        match nearest(name, known.iter().copied()) {
            Some(near) => problem.help(did_you_mean(near)),
            None => problem,
        }
    };
    missing.map(problem).collect()
}

fn no_record(subject: &str) -> Diagnostic {
    let message = format!("{subject}: no workload has a record of it");
    Diagnostic::error(Code::NoRecord, message).help(
        "undo needs podgraft.lock, which `apply --in-place` writes, or the annotation \
         podgraft.dev/record, which `apply --record` writes",
    )
}
