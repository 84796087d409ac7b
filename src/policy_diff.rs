//! `diff --against-policy`: compares the result of the old policies with that of the new ones.

use std::path::PathBuf;
use std::sync::Arc;

use clap::error::ErrorKind;
use podgraft_core::diagnostic::{Diagnosed, Diagnostic};
use podgraft_core::graft::policy_diff::{PolicyVersions, against};
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::params::DeclaredParams;
use podgraft_core::policy::read::declared;
use podgraft_core::yaml::splice::splice;

use crate::args;
use crate::args::relevant_flags::usage;
use crate::grafted_file::GraftedFile;
use crate::policies::{check_policies, offered_files};
use crate::run::{GraftOutcome, Purpose, RunRequest, check_usage, graft_given};
use crate::settings::{self, Caller};
use crate::texts::read_texts;
use crate::walk::walk;

/// The policy set of both recorded runs. `--prune` removes the old policies of the set that are not among the new ones.
const SET: &str = "against";

/// Reads everything and plans both results. Nothing is written.
pub fn graft_against(
    run: &args::RunArgs,
    old: &[PathBuf],
    request: RunRequest<'_>,
) -> Result<GraftOutcome, clap::Error> {
    check_old(old)?;
    let run = &match settings::complete(run, Caller::CommandLine) {
        Ok(run) => run,
        Err(problems) => return Ok(GraftOutcome::refused(run, problems)),
    };
    let filter = check_usage(run, request.purpose)?;
    let old_run = &match with_policies(run, old) {
        Ok(run) => run,
        Err(problems) => return Ok(refused(run, old, problems)),
    };
    let walked = walk(&run.paths, &filter);
    let mut problems = walked.problems;
    let texts = read_texts(walked.inputs, run.output.threads, &mut problems);
    let request = RunRequest {
        purpose: &Purpose::Elsewhere,
        ..request
    };
    let before = graft_given(old_run, texts.clone(), &request, Vec::new());
    if before.problems.iter().any(Diagnostic::is_error) {
        problems.extend(before.problems);
        return Ok(refused(run, old, problems));
    }
    let mut after = graft_given(run, texts.clone(), &request, problems);
    after.more_reads = old.to_vec();
    if after.problems.iter().any(Diagnostic::is_error) {
        return Ok(after);
    }
    // An upgrade is the new policies applied to the recorded result of the old ones.
    let recorded = graft_given(&recording(old_run), texts, &request, Vec::new());
    let recorded = recorded.files.into_iter().map(|file| {
        let text = splice(&file.text, &file.report.edits);
        (file.input, Arc::new(text))
    });
    let upgrade = graft_given(&recording(run), recorded.collect(), &request, Vec::new());
    Ok(compare(&before.files, after, &upgrade.files))
}

/// Refuses `-`, as the old policies are read several times, and `@input`, as the manifests have one version of a policy.
fn check_old(old: &[PathBuf]) -> Result<(), clap::Error> {
    let mut named = old.iter().filter_map(|old| old.to_str());
    match named.find(|old| matches!(*old, "-" | args::INPUT)) {
        None => Ok(()),
        Some(old) => Err(usage(
            ErrorKind::ValueValidation,
            format!("--against-policy accepts a file, a folder, or builtin:NAME, but not `{old}`"),
        )),
    }
}

fn refused(run: &args::RunArgs, old: &[PathBuf], problems: Vec<Diagnostic>) -> GraftOutcome {
    let mut refused = GraftOutcome::refused(run, problems);
    refused.more_reads = old.to_vec();
    refused
}

/// The run with other policies. Parameters, `--only` and `--skip` that these do not know are dropped.
fn with_policies(run: &args::RunArgs, given: &[PathBuf]) -> Diagnosed<args::RunArgs> {
    let files = offered_files(given)?;
    let known: Vec<DeclaredParams> = declared(&files);
    let mut run = run.clone();
    let policies = &mut run.policies;
    policies.given = given.to_vec();
    policies.configured.inline.clear();
    let declares =
        |policy: &DeclaredParams, name: &str| policy.names.iter().any(|declared| declared == name);
    policies
        .params
        .retain(|param| known.iter().any(|policy| declares(policy, &param.name)));
    let is_known = |name: &String| known.iter().any(|policy| policy.identity == *name);
    policies.only.retain(is_known);
    policies.skip.retain(is_known);
    let is_skipped = |policy: &DeclaredParams| policies.skip.contains(&policy.identity);
    // A comparison with nothing: all that the new policies do is new. Files without a policy are refused when they are
    // loaded.
    if !known.is_empty() && known.iter().all(is_skipped) {
        check_policies(&files)?;
        policies.given.clear();
        policies.skip.clear();
    }
    Ok(run)
}

/// The run with records in annotations, as the upgrade needs them to remove what the old policies injected.
fn recording(run: &args::RunArgs) -> args::RunArgs {
    let mut run = run.clone();
    let policies = &mut run.policies;
    policies.record = true;
    policies.no_record = false;
    policies.no_marker = false;
    policies.prune = true;
    policies.set = Some(SET.to_owned());
    run.output.strict = false;
    run
}

/// Replaces each text by the result of the old policies, and each report by the changes from there to the result of the
/// new ones.
fn compare(
    before: &[GraftedFile],
    mut after: GraftOutcome,
    upgrade: &[GraftedFile],
) -> GraftOutcome {
    for file in &mut after.files {
        let versions = PolicyVersions {
            old: &report_of(before, file),
            new: &file.report,
            upgrade: &report_of(upgrade, file),
        };
        let (text, report) = against(&file.text, versions);
        file.text = Arc::new(text);
        file.report = report;
    }
    after
}

/// The report of a file in another run, or an empty one.
fn report_of(files: &[GraftedFile], file: &GraftedFile) -> FileReport {
    let mut files = files.iter();
    let same = files.find(|candidate| candidate.input.name == file.input.name);
    same.map_or_else(FileReport::default, |same| same.report.clone())
}
