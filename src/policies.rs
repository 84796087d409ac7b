//! Loads the policies that `-p`, `--param`, `--only` and `--skip` name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use podgraft_core::config::{ConfigParam, PolicySource, PolicyUse, choose};
use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use podgraft_core::policy::Policy;
use podgraft_core::policy::builtin::find;
use podgraft_core::policy::conversion::{DebugMode, ReadOptions};
use podgraft_core::policy::read::{
    GroupKind, ParamSetting, PolicyFile, declared, find_with_resources, read_as,
};
use podgraft_core::policy::schema::meant;
use podgraft_core::source::Place;

use crate::args;
use crate::manifests::policies_in;
use crate::path_filter::PathFilter;
use crate::paths::is_same_path;
use crate::problems::{collect_all, not_utf8};
use crate::settings::at_entry;
use crate::texts::InputBytes;
use crate::walk::{Input, InputPlace, walk};

/// The policies on stdin. They are read for their parameters, too, and for each version that `--against-policy` compares.
static STDIN: OnceLock<Result<Vec<u8>, Diagnostic>> = OnceLock::new();

/// The policies that were loaded for a run.
#[derive(Default)]
pub struct LoadedPolicies {
    /// In the order in which they apply.
    pub policies: Vec<Policy>,
    /// The identities of all policies that were given, also of those that `--only` and `--skip` left out.
    pub given: Vec<String>,
    /// The files of the policies. Other objects in them are context. Files that are also manifests are left out.
    pub files: Vec<PolicyFile>,
    /// Errors and warnings of reading them.
    pub problems: Vec<Diagnostic>,
}

/// Reads and checks the policies, and keeps those that `--only` and `--skip` choose.
pub fn load(args: &args::PolicyArgs, inputs: &[InputBytes]) -> LoadedPolicies {
    load_as(args, inputs, reading(args.debug_mode, &args.opentelemetry))
}

/// Like [`load`], for commands that look at policies and do not apply them: parameters without a value are no error.
pub fn load_to_look_at(args: &args::PolicyArgs) -> LoadedPolicies {
    let mut reading = reading(args.debug_mode, &args.opentelemetry);
    reading.params_stay_open = true;
    load_as(args, &[], reading)
}

fn load_as(args: &args::PolicyArgs, inputs: &[InputBytes], reading: ReadOptions) -> LoadedPolicies {
    if args.given.is_empty() && args.configured.inline.is_empty() {
        return LoadedPolicies::default();
    }
    let (mut files, mut problems) = given_files(args, inputs);
    let uses = args.configured.uses.iter();
    let of_uses = uses.flat_map(|(given, policy_use)| params_of(given, policy_use, inputs));
    let of_uses: Vec<(PolicySource, ConfigParam)> = of_uses.collect();
    let names: Vec<Arc<str>> = files.iter().map(|file| Arc::clone(&file.name)).collect();
    let (settings, misplaced) = settings(args, of_uses, &files);
    let is_looking = reading.params_stay_open;
    let (policies, diagnostics) = read_as(files.clone(), &settings, reading);
    // A file that cannot be read hides the parameters it declares. A setting for one of them is not a second mistake.
    if !diagnostics.iter().any(Diagnostic::is_error) && problems.is_empty() {
        problems.extend(misplaced);
    }
    // Files of the input are read for facts as manifests, and must not count twice.
    files.retain(|file| !inputs.iter().any(|(input, _)| input.name == file.name));
    problems.extend(diagnostics);
    let mirrors = args.configured.image_mirrors.as_slice().into();
    let policies = policies.into_iter();
    let policies = policies.map(|policy| policy.with_image_mirrors(&mirrors));
    let policies: Vec<Policy> = policies.collect();
    if policies.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        match declared(&files).first() {
            Some(_) if is_looking => {}
            Some(policy) => problems.push(no_resource(&policy.identity)),
            None => problems.push(no_policy(&names)),
        }
    }
    let given = policies.iter().map(|policy| policy.identity.clone());
    LoadedPolicies {
        given: given.collect(),
        policies: pick(policies, args, &mut problems),
        files,
        problems,
    }
}

/// The policy files that are named, without those among the manifests and those that cannot be read.
pub fn named_files(args: &args::PolicyArgs) -> Vec<PolicyFile> {
    let named = args
        .given
        .iter()
        .filter(|given| given.as_os_str() != args::INPUT);
    let files = named.flat_map(|given| files_of(given, &[], &[]).unwrap_or_default());
    files
        .chain(args.configured.inline.iter().cloned())
        .collect()
}

/// The files of all policies, and what is wrong with those that cannot be read.
fn given_files(
    args: &args::PolicyArgs,
    inputs: &[InputBytes],
) -> (Vec<PolicyFile>, Vec<Diagnostic>) {
    let (mut files, mut problems) = (Vec::<PolicyFile>::new(), Vec::new());
    let mut uses: Vec<_> = args.configured.uses.iter().collect();
    // For each file, the entry of the configuration that names it.
    let mut entries: Vec<Option<&Place>> = Vec::new();
    let others = match args.reads_input() {
        true => named_files(args),
        false => Vec::new(),
    };
    for given in &args.given {
        let at = uses.iter().position(|(path, _)| path == given);
        let policy_use = at.map(|at| &uses.remove(at).1);
        let entry = policy_use.and_then(|policy_use| policy_use.at.as_ref());
        // Changed as the entry says.
        let found = files_of(given, inputs, &others).and_then(|files| match policy_use {
            Some(policy_use) => policy_use.of_files(files).map_err(|problem| vec![problem]),
            None => Ok(files),
        });
        match found {
            Ok(found) => {
                let is_again = |known: &PolicyFile| {
                    found.iter().any(|new| is_same_path(&new.name, &known.name))
                };
                if let Some(first) = files.iter().position(is_again) {
                    problems.push(given_twice(&files[first].name, entries[first], entry));
                    continue;
                }
                entries.resize(entries.len() + found.len(), entry);
                files.extend(found);
            }
            Err(found) => {
                problems.extend(found.into_iter().map(|problem| at_entry(problem, entry)))
            }
        }
    }
    files.extend(args.configured.inline.iter().cloned());
    (files, problems)
}

fn given_twice(name: &str, first: Option<&Place>, again: Option<&Place>) -> Diagnostic {
    let message = format!("the policy file `{name}` is given twice");
    let mut problem = Diagnostic::error(Code::DuplicatePolicy, message);
    for (place, text) in [(again, "again here"), (first, "first here")] {
        if let Some(place) = place {
            problem = problem.at(place.clone(), text);
        }
    }
    problem.help("pass it only once")
}

/// The parameters that an entry of the configuration sets for its policy. They apply to that policy only.
fn params_of(
    given: &Path,
    policy_use: &PolicyUse,
    inputs: &[InputBytes],
) -> Vec<(PolicySource, ConfigParam)> {
    if policy_use.params.is_empty() {
        return Vec::new();
    }
    let files = files_of(given, inputs, &[]).unwrap_or_default();
    let Some(owner) = declared(&files).into_iter().next() else {
        return Vec::new();
    };
    let params = policy_use.params.iter().cloned().map(|mut param| {
        param.setting.policy = Some(owner.identity.clone());
        (PolicySource::WithParams, param)
    });
    params.collect()
}

/// The parameter settings of the configuration, followed by those of the flags: of two settings the last one wins.
fn settings(
    args: &args::PolicyArgs,
    of_uses: Vec<(PolicySource, ConfigParam)>,
    files: &[PolicyFile],
) -> (Vec<ParamSetting>, Vec<Diagnostic>) {
    let configured = &args.configured;
    let operator = [configured.params.clone(), of_uses].concat();
    if operator.is_empty() && configured.application_params.is_empty() {
        return (args.params.clone(), Vec::new());
    }
    let declared = declared(files);
    let (mut settings, misplaced) = choose(&operator, &configured.application_params, &declared);
    settings.extend(args.params.iter().cloned());
    (settings, misplaced)
}

/// The settings of the flags for reading resources of other operators.
pub fn reading(
    debug_mode: args::DebugModeArg,
    opentelemetry: &args::OpenTelemetryArgs,
) -> ReadOptions {
    let debug_mode = match debug_mode {
        args::DebugModeArg::Ephemeral => DebugMode::Ephemeral,
        args::DebugModeArg::Sidecar => DebugMode::Sidecar,
    };
    ReadOptions {
        debug_mode,
        opentelemetry: opentelemetry.settings(),
        ..ReadOptions::default()
    }
}

/// The files of several `-p` values.
pub fn offered_files(given: &[PathBuf]) -> Diagnosed<Vec<PolicyFile>> {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for given in given {
        match files_of(given, &[], &[]) {
            Ok(found) => files.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    unless(problems, files)
}

/// The files of the policies that an operator offers to Applications.
///
/// # Errors
/// The files that cannot be read, and what is wrong with their policies: an offer is checked before somebody chooses it.
pub fn checked_offers(offers: &[PathBuf]) -> Diagnosed<Vec<PolicyFile>> {
    let files = offered_files(offers)?;
    check_policies(&files)?;
    Ok(files)
}

/// Checks policies that this run does not apply.
///
/// # Errors
/// What is wrong with them. A parameter without a value is no error.
pub fn check_policies(files: &[PolicyFile]) -> Diagnosed {
    let reading = ReadOptions {
        params_stay_open: true,
        ..ReadOptions::default()
    };
    let (_, mut problems) = read_as(files.to_vec(), &[], reading);
    problems.retain(Diagnostic::is_error);
    unless(problems, ())
}

/// The policies of offered files that can be chosen: of those with `source`, their resources are.
pub fn choices(offered: &[PolicyFile]) -> impl Iterator<Item = String> {
    let declared = declared(offered).into_iter();
    let choices = declared.filter(|policy| !policy.is_for_resources);
    choices.map(|policy| policy.identity)
}

/// The policies that an Argo CD Application has chosen among those that the operator offers.
#[derive(Default)]
pub struct OfferedPolicies {
    /// Files with a chosen policy, in the form that `-p` takes.
    pub files: Vec<PathBuf>,
    /// The other policies of these files.
    pub not_chosen: Vec<String>,
}

/// Finds the chosen policies among the offered ones. A file without a chosen policy is left out.
///
/// # Errors
/// Chosen policies that are not offered, and what is wrong with the offered ones.
pub fn choose_offered(offers: &[PathBuf], chosen: &[String]) -> Diagnosed<OfferedPolicies> {
    let mut offered = OfferedPolicies::default();
    checked_offers(offers)?;
    let mut known: Vec<String> = Vec::new();
    for offer in offers {
        let files = offered_files(std::slice::from_ref(offer))?;
        let (chosen_names, other_names): (Vec<String>, Vec<String>) =
            choices(&files).partition(|name| chosen.contains(name));
        known.extend(chosen_names.iter().chain(&other_names).cloned());
        if !chosen_names.is_empty() {
            offered.files.push(offer.clone());
            offered.not_chosen.extend(other_names);
        }
    }
    let unknown = chosen.iter().filter(|name| !known.contains(name));
    let problems = unknown.map(|name| not_offered(name, &known));
    unless(problems.collect(), offered)
}

fn not_offered(name: &str, known: &[String]) -> Diagnostic {
    let message =
        format!("the Application chooses the policy `{name}`, which the operator does not offer");
    let help = match known {
        [] => "the operator offers none: only the policies of the plugin's configuration apply"
            .to_owned(),
        known => format!("the operator offers {}", known.join(", ")),
    };
    Diagnostic::error(Code::UnknownPolicy, message).help(help)
}

/// The error for a run whose files hold no policy; without names, for `@input`.
pub fn no_policy(names: &[Arc<str>]) -> Diagnostic {
    let message = match names {
        [] => "there is no policy among the manifests".to_owned(),
        [name] => format!("there is no policy in `{name}`"),
        names => format!(
            "there is no policy in any of the {} files of `-p`",
            names.len()
        ),
    };
    Diagnostic::error(Code::BadPolicy, message)
        .help("a policy is an object such as `apiVersion: podgraft.dev/v1alpha1`, `kind: InjectionPolicy`")
}

/// The error for a policy that needs a resource of its operator when none is given.
fn no_resource(policy: &str) -> Diagnostic {
    let message = format!("the policy `{policy}` requires a resource, and none is given");
    Diagnostic::error(Code::BadPolicy, message).help(format!(
        "pass the resource with `-p` as well; `podgraft policy show {policy}` shows its kind"
    ))
}

/// The error for a folder of `-p` without YAML or JSON files.
fn no_policy_in_folder(folder: &Path) -> Diagnostic {
    let message = format!("there is no policy in the folder `{}`", folder.display());
    Diagnostic::error(Code::NoMatch, message).help(
        "policies are objects such as `kind: InjectionPolicy` in .yaml, .yml, and .json files; \
         `podgraft policy list` lists the built-in ones",
    )
}

/// The files that a `-p` value names: `builtin:NAME`, `@input`, `-`, a file or a folder. `@input` finds the resources
/// of policies in `others`, too.
pub fn files_of(
    given: &Path,
    inputs: &[InputBytes],
    others: &[PolicyFile],
) -> Diagnosed<Vec<PolicyFile>> {
    let text = given.to_string_lossy();
    if let Some(name) = text.strip_prefix("builtin:") {
        let builtin = find(name).map_err(|problem| vec![problem])?;
        return Ok(vec![builtin.file()]);
    }
    if text == args::INPUT {
        return Ok(find_with_resources(others, |kinds| {
            policies_among(inputs, kinds)
        }));
    }
    let walked = walk(&[given.to_path_buf()], &PathFilter::default());
    let of_policies = |problem: Diagnostic| match problem.code {
        Code::NoManifests => no_policy_in_folder(given),
        _ => problem,
    };
    let problems = walked.problems.into_iter().map(of_policies);
    let mut problems: Vec<Diagnostic> = problems
        .map(|problem| hint_at_builtin(problem, &text))
        .collect();
    let files = collect_all(walked.inputs.iter().map(read_file));
    let files = files
        .map_err(|unread| problems.extend(unread))
        .unwrap_or_default();
    match problems.iter().any(Diagnostic::is_error) {
        true => Err(problems),
        false => Ok(files),
    }
}

/// The policies among the manifests, and the resources of these kinds.
fn policies_among(inputs: &[InputBytes], resource_kinds: &[GroupKind]) -> Vec<PolicyFile> {
    let found = inputs.iter().filter_map(|(input, text)| {
        policies_in(text, resource_kinds).map(|text| PolicyFile {
            name: Arc::clone(&input.name),
            text,
        })
    });
    found.collect()
}

/// Adds help if the path is the name of a built-in policy: `-p jmx-exporter` was probably meant as `-p
/// builtin:jmx-exporter`.
fn hint_at_builtin(problem: Diagnostic, given: &str) -> Diagnostic {
    match find(given) {
        Ok(_) => problem.help(format!(
            "to use the built-in policy with this name, pass `-p builtin:{given}`"
        )),
        Err(_) => problem,
    }
}

fn read_file(input: &Input) -> Result<PolicyFile, Diagnostic> {
    let bytes = match input.place {
        InputPlace::Stdin => STDIN.get_or_init(|| input.read()).clone()?,
        InputPlace::Named(_) | InputPlace::Found { .. } => input.read()?,
    };
    let text = String::from_utf8(bytes).map_err(|_| not_utf8(&input.name))?;
    Ok(PolicyFile {
        name: Arc::clone(&input.name),
        text,
    })
}

/// Applies `--only` and `--skip`.
fn pick(
    policies: Vec<Policy>,
    args: &args::PolicyArgs,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Policy> {
    // A name that is missing may be that of a policy that could not be read.
    if !problems.iter().any(Diagnostic::is_error) {
        let only = args.only.iter().map(|name| ("--only", name));
        let flags = only.chain(args.skip.iter().map(|name| ("--skip", name)));
        let unknown =
            flags.filter(|(_, name)| !policies.iter().any(|policy| policy.identity == **name));
        problems.extend(unknown.map(|(flag, name)| unknown_policy(flag, name, &policies)));
    }
    let is_chosen = |policy: &Policy| {
        (args.only.is_empty() || args.only.contains(&policy.identity))
            && !args.skip.contains(&policy.identity)
    };
    let (chosen, others): (Vec<Policy>, Vec<Policy>) = policies.into_iter().partition(is_chosen);
    if chosen.is_empty() && !others.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        problems.push(none_left(args, &others));
    }
    chosen
}

/// The error for `--only` and `--skip` that leave out every policy: `check` would pass whatever the manifests are.
fn none_left(args: &args::PolicyArgs, policies: &[Policy]) -> Diagnostic {
    let message = match args.only.is_empty() {
        true => "`--skip` excludes all given policies",
        false => "`--only` and `--skip` exclude all given policies",
    };
    let identities = policies.iter().map(|policy| policy.identity.as_str());
    let names = identities.collect::<Vec<_>>().join(", ");
    Diagnostic::error(Code::NoMatch, message)
        .help(format!("keep at least one of the given policies: {names}"))
}

fn unknown_policy(flag: &str, name: &str, policies: &[Policy]) -> Diagnostic {
    let identities = policies.iter().map(|policy| policy.identity.as_str());
    let message = format!("`{flag} {name}` matches none of the given policies");
    Diagnostic::error(Code::UnknownPolicy, message).help(meant(name, identities, "given policies:"))
}

/// Counts the readers of stdin: each `-p -`, and the manifests if no path or `-` is given.
pub fn stdin_readers(policies: &[PathBuf], paths: &[PathBuf]) -> usize {
    let dashes = |paths: &[PathBuf]| paths.iter().filter(|path| path.as_os_str() == "-").count();
    dashes(policies) + usize::from(paths.is_empty() || dashes(paths) > 0)
}
