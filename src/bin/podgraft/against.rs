//! `diff --against-policy`: the manifests as the old policies leave them, compared with what the new ones make of them.

use std::path::PathBuf;
use std::sync::Arc;

use podgraft::diagnostic::Diagnostic;
use podgraft::graft::against::{Versions, against};
use podgraft::policy::params::Declared;
use podgraft::policy::read::declared;
use podgraft::yaml::splice::splice;

use crate::args;
use crate::output::GraftedFile;
use crate::policies::offered_files;
use crate::run::{Grafted, Purpose, Wish, check_usage, graft_given};
use crate::settings::{self, Role};
use crate::texts::{Text, read_texts};
use crate::walk::{Walk, walk};

/// The set that the old policies are of, so that those which are not among the new ones go.
const SET: &str = "against";

/// Reads everything and plans both results; nothing is written.
pub fn graft_against(
    run: &args::Run,
    old: &[PathBuf],
    wish: Wish<'_>,
) -> Result<Grafted, clap::Error> {
    let run = &match settings::complete(run, Role::CommandLine) {
        Ok(run) => run,
        Err(problems) => return Ok(Grafted::refused(run, problems)),
    };
    let filter = check_usage(run, wish.purpose)?;
    let old_run = &match with_policies(run, old) {
        Ok(run) => run,
        Err(problems) => return Ok(refused(run, old, problems)),
    };
    let Walk {
        inputs,
        mut problems,
        ..
    } = walk(&run.paths, &filter);
    let texts = read_texts(inputs, run.output.threads, &mut problems);
    let wish = Wish {
        purpose: &Purpose::Elsewhere,
        ..wish
    };
    let before = graft_given(old_run, copies(&texts), wish, Vec::new());
    if before.problems.iter().any(Diagnostic::is_error) {
        problems.extend(before.problems);
        return Ok(refused(run, old, problems));
    }
    let mut after = graft_given(run, copies(&texts), wish, problems);
    after.reads.add(old);
    if after.problems.iter().any(Diagnostic::is_error) {
        return Ok(after);
    }
    let recorded = graft_given(&recording(old_run), texts, wish, Vec::new());
    let recorded = recorded.files.into_iter().map(|file| {
        let text = splice(&file.text, &file.report.edits);
        (file.input, Arc::new(text))
    });
    let upgrade = graft_given(&recording(run), recorded.collect(), wish, Vec::new());
    Ok(compare(&before.files, after, &upgrade.files))
}

fn refused(run: &args::Run, old: &[PathBuf], problems: Vec<Diagnostic>) -> Grafted {
    let mut refused = Grafted::refused(run, problems);
    refused.reads.add(old);
    refused
}

/// The run with other policies; what is said of parameters and policies that these do not have goes.
fn with_policies(run: &args::Run, given: &[PathBuf]) -> Result<args::Run, Vec<Diagnostic>> {
    let known: Vec<Declared> = declared(&offered_files(given)?);
    let mut run = run.clone();
    let policies = &mut run.policies;
    policies.given = given.to_vec();
    policies.configured.inline.clear();
    let declares = |policy: &Declared, name: &str| policy.names.iter().any(|own| own == name);
    policies
        .params
        .retain(|param| known.iter().any(|policy| declares(policy, &param.name)));
    let is_known = |name: &String| known.iter().any(|policy| policy.identity == *name);
    policies.only.retain(is_known);
    policies.skip.retain(is_known);
    Ok(run)
}

fn recording(run: &args::Run) -> args::Run {
    let mut run = run.clone();
    let policies = &mut run.policies;
    (
        policies.record,
        policies.no_record,
        policies.no_marker,
        policies.prune,
    ) = (true, false, false, true);
    policies.set = Some(SET.to_owned());
    run.output.strict = false;
    run
}

fn copies(texts: &[Text]) -> Vec<Text> {
    texts
        .iter()
        .map(|(input, text)| (input.clone(), text.clone()))
        .collect()
}

/// The old result in the place of each text, and the way to the new one in the place of each report.
fn compare(before: &[GraftedFile], mut after: Grafted, upgrade: &[GraftedFile]) -> Grafted {
    let report_of = |files: &[GraftedFile], file: &GraftedFile| {
        files
            .iter()
            .find(|other| other.input.name == file.input.name)
            .map(|other| other.report.clone())
    };
    let files = std::mem::take(&mut after.files).into_iter().map(|file| {
        let (old, upgrade) = (report_of(before, &file), report_of(upgrade, &file));
        let (old, upgrade) = (old.unwrap_or_default(), upgrade.unwrap_or_default());
        let versions = Versions {
            old: &old,
            new: &file.report,
            upgrade: &upgrade,
        };
        let (text, report) = against(&file.text, versions);
        GraftedFile {
            text: Arc::new(text),
            report,
            ..file
        }
    });
    after.files = files.collect();
    after
}
