//! `podgraft fn`: a KRM function for kustomize and kpt. It prints the ResourceList as it came, with the changes of the
//! policies in its items and with its `results`.

use std::path::Path;
use std::sync::Arc;

use podgraft_core::config::{ConfigParam, FunctionMode, read_function};
use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic};
use podgraft_core::krm::{FunctionConfig, ResourceList, of_diagnostic, of_workloads};
use podgraft_core::outcome::WorkloadReport;
use podgraft_core::policy::read::ParamSetting;
use podgraft_core::policy::schema::{did_you_mean, nearest};
use podgraft_core::source::Place;
use podgraft_core::yaml::splice::Edit;

use super::{complete_with_policy, fail, no_policy_given};
use crate::args;
use crate::conclude::refuse;
use crate::diagnostics::{Console, log_to_file};
use crate::exit::Exit;
use crate::policies::{named_files, no_policy};
use crate::run::{GraftOutcome, Purpose, RunRequest, graft_read};
use crate::settings::{add, policies_in_list};
use crate::stdout::print;
use crate::walk::Input;

/// What runs a function rarely passes flags on.
const IMAGE_ENV: &str = "list it under `imageEnv` in the podgraft.yaml that PODGRAFT_CONFIG names:";

/// `podgraft fn`.
pub fn function(args: &args::HostArgs) -> Exit {
    log_to_file();
    let console = Console::new(&args.output);
    applied(args, console).unwrap_or_else(|problem| fail(&[problem], console))
}

fn applied(args: &args::HostArgs, console: Console) -> Result<Exit, Diagnostic> {
    let input = Input::stdin();
    let bytes = Arc::new(input.read()?);
    let text = as_text(&bytes)?;
    let list = ResourceList::read(Arc::clone(&input.name), text)?;
    let mut grafted = match configure(args.run(), &list) {
        Ok((run, mode)) => {
            let mut request = RunRequest::for_report(&Purpose::Elsewhere, &run.output);
            request.options.image_env_words = Some(IMAGE_ENV);
            request.tree = Some(list.tree());
            let mut grafted = graft_read(&run, &request, input, Arc::clone(&bytes));
            if mode == FunctionMode::Check {
                grafted.problems.extend(out_of_date(&grafted, &list));
            }
            grafted
        }
        Err(problems) => GraftOutcome::refused(&args.run(), problems),
    };
    // A ResourceList without items is no error.
    grafted
        .problems
        .retain(|problem| problem.code != Code::NoManifests);
    print_list(&grafted, &list, console)
}

fn as_text(bytes: &[u8]) -> Result<&str, Diagnostic> {
    std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("stdin is not UTF-8: {error}");
        Diagnostic::error(Code::NotUtf8, message).help("save the files as UTF-8")
    })
}

/// Completes the flags by the functionConfig, then by the environment and the operator's configuration.
fn configure(
    mut run: args::RunArgs,
    list: &ResourceList<'_>,
) -> Diagnosed<(args::RunArgs, FunctionMode)> {
    let mut mode = FunctionMode::default();
    let mut resources = Vec::new();
    let mut without_policy = no_policy_given();
    match list.function_config().map_err(|problem| vec![problem])? {
        FunctionConfig::Absent => {}
        FunctionConfig::Policy(file) => {
            resources = list.resources_of(&file);
            run.policies.configured.inline.push(file);
        }
        FunctionConfig::Function(file) => {
            let (config, wanted) = read_function(file)?;
            add(&mut run, config, Path::new(""));
            mode = wanted;
        }
        FunctionConfig::Values(values) => without_policy = add_values(&mut run, values),
    }
    let mut run = complete_with_policy(&run, without_policy)?;
    // `@input` means the items of the list. The list itself is no policy file, so its policies are read here.
    if run.policies.reads_input() {
        run.policies
            .given
            .retain(|given| given.as_os_str() != args::INPUT);
        // `-p @input` may be the only policy given, so the check for a policy in `complete_with_policy` comes before this.
        let found = list.policies(&named_files(&run.policies));
        run.policies.configured.inline.extend(found);
        if run.policies.given.is_empty() && run.policies.configured.inline.is_empty() {
            return Err(vec![no_policy(&[])]);
        }
    } else {
        run.policies.configured.inline.extend(resources);
    }
    Ok((run, mode))
}

/// `mode: Check`: an error for each workload that the policies would change.
fn out_of_date(grafted: &GraftOutcome, list: &ResourceList<'_>) -> Vec<Diagnostic> {
    let workloads = grafted.files.iter().flat_map(|file| &file.report.workloads);
    let found = workloads
        .filter(|workload| workload.is_changed())
        .map(|workload| not_up_to_date(list, workload));
    found.collect()
}

fn not_up_to_date(list: &ResourceList<'_>, workload: &WorkloadReport) -> Diagnostic {
    let message = format!(
        "{} is not up to date: the policies would change it",
        workload.title()
    );
    Diagnostic::error(Code::OutOfDate, message)
        .at(list.place_of_line(workload.line), "this workload")
        .help(
            "apply the policies before this check: make sure that their function runs, and runs \
             earlier",
        )
}

/// The key of kpt's `-- key=value` that names policies.
const POLICY_KEY: &str = "policy";

/// Adds the values of kpt's `-- key=value`: `policy` is a list of policies, any other key a parameter. Returns the error
/// for a run without a policy, at a key that was probably meant as `policy`.
fn add_values(run: &mut args::RunArgs, values: Vec<(String, String, Place)>) -> Diagnostic {
    let mut without_policy = no_policy_given().help(format!(
        "list policies in the `data` of the ConfigMap, under the key `{POLICY_KEY}`: builtin:NAME, \
         or a file"
    ));
    for (key, value, at) in values {
        let is_key = key == POLICY_KEY;
        if !is_key && nearest(&key, [POLICY_KEY].into_iter()).is_some() {
            let message = format!("no policy is given, and `{key}` is treated as a parameter");
            let problem = Diagnostic::error(Code::BadPolicy, message).at(at.clone(), "here");
            without_policy = problem.help(did_you_mean(POLICY_KEY));
        }
        if is_key {
            run.policies.given.extend(policies_in_list(&value));
        } else {
            let (policy, name) = args::policy_and_name(&key);
            let setting = ParamSetting {
                policy,
                name,
                value,
                at: Some(at),
            };
            // Before the flags: of two values for a parameter the last one wins.
            run.policies.params.insert(0, setting);
        }
    }
    without_policy
}

/// Prints the list with its results. On failure the items are unchanged, but the list is printed all the same:
/// orchestrators show the results of a function that failed.
fn print_list(
    grafted: &GraftOutcome,
    list: &ResourceList<'_>,
    console: Console,
) -> Result<Exit, Diagnostic> {
    let refused = refuse(grafted, console);
    let problems = grafted.problems.iter();
    let mut results: Vec<_> = problems
        .map(|problem| of_diagnostic(list, problem))
        .collect();
    let report = grafted.files.first().map(|file| &file.report);
    let report = report.filter(|_| refused.is_none());
    let workloads = report.map_or(&[][..], |report| &report.workloads);
    results.extend(of_workloads(list, workloads));
    let edits: Vec<Edit> = report.map_or_else(Vec::new, |report| report.edits.clone());
    print(&list.with_results(edits, &results)?)?;
    if refused.is_none() {
        console.show(&grafted.problems);
        console.inform(&podgraft_core::report::text::render(&grafted.reported()));
    }
    Ok(refused.unwrap_or(Exit::Done))
}

/// A parameter as a configuration sets it, with `origin` as its place.
pub fn unplaced(policy: Option<String>, name: String, value: String, origin: &str) -> ConfigParam {
    let text = format!("{name}={value}");
    let at = podgraft_core::source::Source::new(origin, &text).place(0..name.len());
    ConfigParam {
        setting: ParamSetting {
            policy,
            name,
            value,
            at: Some(at.clone()),
        },
        at,
        policy_at: None,
    }
}
