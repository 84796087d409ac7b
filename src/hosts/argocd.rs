//! `podgraft argocd`: the commands that a config management plugin of Argo CD runs in the folder of an application
//! (<https://argo-cd.readthedocs.io/en/stable/operator-manual/config-management-plugins/>).

use std::path::{Path, PathBuf};
use std::{env, fs};

use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use podgraft_core::options::parse_kube_version;
use podgraft_core::outcome::FileReport;

use super::announce::announce;
use super::function::unplaced;
use super::parameters::ApplicationParameters;
use super::{complete_with_policy, fail, local_config_errors, no_policy_given};
use crate::args::{self, ArgocdCommand, ColorWhen, DiagnosticsFormat, PluginKind};
use crate::conclude::conclude;
use crate::diagnostics::{Console, log_to_file};
use crate::exit::Exit;
use crate::kustomization;
use crate::manifests::manifests_of;
use crate::output::OutputTarget;
use crate::path_filter::PathFilter;
use crate::policies::choose_offered;
use crate::problems::not_read;
use crate::run::graft_host;
use crate::settings::{Caller, complete};
use crate::walk::walk;

/// `podgraft argocd ...`.
pub fn argocd(command: &ArgocdCommand) -> Exit {
    log_to_file();
    match command {
        ArgocdCommand::Generate(args) => generate(args),
        ArgocdCommand::Discover { kind } => discover(*kind),
        ArgocdCommand::Parameters(args) => announce(args),
    }
}

fn generate(args: &args::GenerateArgs) -> Exit {
    let mut run = args.run.clone();
    // Argo CD shows stderr to everybody who sees the Application, so no lines of manifests may be in it.
    run.output.diagnostics = run.output.diagnostics.or(Some(DiagnosticsFormat::Short));
    let run = match prepare(args, &mut run) {
        Ok(prepared) => prepared,
        Err(problems) => return fail(&problems, Console::new(&run.output)),
    };
    let mut grafted = match graft_host(&run) {
        Ok(grafted) => grafted,
        Err(usage) => {
            let _ = usage.print();
            return Exit::Refused;
        }
    };
    grafted.problems.extend(local_config_errors(&grafted));
    if grafted.files.iter().all(|file| file.report.objects == 0)
        && !grafted.problems.iter().any(Diagnostic::is_error)
    {
        // With pruning, an empty result would delete the application.
        let problem = Diagnostic::error(
            Code::NoManifests,
            "there is no Kubernetes object to pass to Argo CD",
        );
        grafted
            .problems
            .push(problem.help("check the folder, or the command before the pipe"));
    }
    conclude(grafted, OutputTarget::default())
}

/// The settings of the operator, and of the Application as far as the operator allows them.
fn prepare(args: &args::GenerateArgs, run: &mut args::RunArgs) -> Diagnosed<args::RunArgs> {
    let parameters = ApplicationParameters::read(
        env::var("ARGOCD_APP_PARAMETERS").ok().as_deref(),
        &args.other_parameter,
    )?;
    if run.paths.is_empty() {
        run.paths.push(PathBuf::from("."));
    }
    check_within_folder(&run.paths)?;
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let namespace = &mut run.manifests.namespace;
    *namespace = namespace.take().or_else(|| set("ARGOCD_APP_NAMESPACE"));
    if run.manifests.kube_version.is_none()
        && let Some(version) = set("KUBE_VERSION")
    {
        let minor = parse_kube_version(&version).map_err(|reason| {
            let message = format!("invalid KUBE_VERSION `{version}`: {reason}");
            vec![Diagnostic::error(Code::WrongType, message)]
        })?;
        run.manifests.kube_version = Some(minor);
    }
    run.output.strict |= parameters.strict;
    let offered = choose_offered(&args.offered, &parameters.policies)?;
    let mut run = match args.offered.is_empty() {
        true => complete_with_policy(run, no_policy_given())?,
        // An operator who offers policies need not prescribe one, so none may be chosen.
        false => complete(run, Caller::Host)?,
    };
    run.policies.given.extend(offered.files);
    run.policies.skip.extend(offered.not_chosen);
    add_params(&mut run, parameters)?;
    Ok(run)
}

fn add_params(run: &mut args::RunArgs, parameters: ApplicationParameters) -> Diagnosed {
    let configured = &mut run.policies.configured;
    if parameters.params.is_empty() {
        return Ok(());
    }
    if !configured.allows_application_config {
        let problem = Diagnostic::error(
            Code::BadParam,
            "the Application sets `params`, which the operator's configuration does not allow",
        );
        let help = "to allow it for parameters that a policy marks `overridable`, set \
                    `allowApplicationConfig: true` in the file of PODGRAFT_CONFIG";
        return Err(vec![problem.help(help)]);
    }
    let params = parameters.params.into_iter();
    let params = params.map(|(key, value)| {
        let (policy, name) = args::policy_and_name(&key);
        unplaced(policy, name, value, "ARGOCD_APP_PARAMETERS")
    });
    configured.application_params.extend(params);
    Ok(())
}

/// Refuses paths outside of the application's folder: what lies elsewhere is not its own.
fn check_within_folder(paths: &[PathBuf]) -> Diagnosed {
    let current_folder = fs::canonicalize(".").map_err(|error| vec![not_read(".", error)])?;
    let is_outside = |path: &&PathBuf| {
        path.as_os_str() != "-"
            && fs::canonicalize(path).is_ok_and(|real| !real.starts_with(&current_folder))
    };
    let outside = paths.iter().filter(is_outside).map(|path| {
        let path = path.display();
        let message = format!("`{path}` is outside the application's folder");
        Diagnostic::error(Code::File, message)
            .help("use paths inside the folder, or pipe manifests in and pass `-`")
    });
    unless(outside.collect(), ())
}

/// The first file in the current folder that holds a Kubernetes object.
fn first_manifest() -> Option<String> {
    let inputs = walk(&[PathBuf::from(".")], &PathFilter::default()).inputs;
    let with_object = inputs.iter().find(|input| {
        let text = input.read();
        text.is_ok_and(|text| !manifests_of(&text, &FileReport::default()).is_empty())
    });
    with_object.map(|input| input.name.to_string())
}

fn first_existing(names: &[&str]) -> Option<String> {
    let mut names = names.iter();
    let found = names.find(|name| Path::new(name).is_file())?;
    Some((*found).to_owned())
}

/// Prints a file name if the plugin is for this folder, otherwise nothing: Argo CD takes any output for a yes.
fn discover(kind: PluginKind) -> Exit {
    let kustomization = || first_existing(&kustomization::NAMES);
    let chart = || first_existing(&["Chart.yaml"]);
    let found = match kind {
        PluginKind::Kustomize => kustomization(),
        PluginKind::Helm => chart(),
        PluginKind::Plain if kustomization().or_else(chart).is_some() => None,
        PluginKind::Plain => first_manifest(),
    };
    let found = found.map_or_else(String::new, |name| format!("{name}\n"));
    Console::plain(ColorWhen::Auto).print(found.as_bytes(), Exit::Done)
}
