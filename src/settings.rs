//! Completes the flags from the environment and from `podgraft.yaml`. Flags win over the environment, and the
//! environment over the file.

use std::path::{Path, PathBuf};
use std::{env, fs};

use globset::GlobMatcher;
use podgraft_core::config::{
    Config, ConfigParam, FILE_NAME, PolicySource, RecordMode, read, read_application,
};
use podgraft_core::diagnostic::{Diagnosed, Diagnostic};
use podgraft_core::options::{FolderNamespaces, PodTemplatePath};
use podgraft_core::policy::read::PolicyFile;
use podgraft_core::source::Place;

use crate::args;
use crate::paths::real;
use crate::problems::{not_utf8, unreadable};
use crate::repository::root_of;

/// Names the configuration file; how operators set one for hosts.
const CONFIG: &str = "PODGRAFT_CONFIG";
/// Names policies, separated by commas or line ends; how operators set them for hosts.
const POLICY: &str = "PODGRAFT_POLICY";

/// The caller of podgraft, which decides which settings count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A person or a pipeline: the nearest `podgraft.yaml` is their own.
    CommandLine,
    /// Another program, which runs podgraft in a folder that may be an application's: only files that the operator
    /// names count.
    Host,
}

/// Returns the flags completed by the environment and the configuration.
pub fn complete(run: &args::RunArgs, role: Caller) -> Diagnosed<args::RunArgs> {
    let mut run = run.clone();
    if !has_policy(&run.policies) {
        run.policies.given = policies_of_environment();
    }
    let Some(file) = find_file(&run.policies.configuration, role) else {
        return Ok(run);
    };
    let config = read(read_text(&file)?)?;
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    add(&mut run, config, &folder);
    if role == Caller::Host && run.policies.configured.allows_application_config {
        run.policies
            .configured
            .application_params
            .extend(application_params(&file)?);
    }
    run.policies.configured.file = Some(file);
    Ok(run)
}

/// Adds the settings of a configuration. Settings that are there win. Relative paths are resolved against `folder`.
pub fn add(run: &mut args::RunArgs, mut config: Config, folder: &Path) {
    let given = match has_policy(&run.policies) {
        true => PolicySource::Elsewhere,
        false => PolicySource::WithParams,
    };
    let policies = &mut run.policies;
    if given == PolicySource::WithParams {
        for policy_use in std::mem::take(&mut config.policies) {
            let path = from_folder(folder, &policy_use.given);
            policies.given.push(path.clone());
            policies.configured.uses.push((path, policy_use));
        }
    }
    policies.set = policies.set.take().or(config.set.take());
    if !policies.record && !policies.no_record && !policies.no_marker {
        policies.record = config.record == Some(RecordMode::Always);
        policies.no_record = config.record == Some(RecordMode::Never);
    }
    let opentelemetry = &mut policies.opentelemetry.configured;
    opentelemetry.complete(&config.opentelemetry);
    policies.forbid.append(&mut config.forbid);
    run.output.strict |= config.strict;
    let configured = &mut policies.configured;
    // Of two values for a parameter the last one counts, so those of the configuration go first.
    let params = config.params.drain(..).map(|param| (given, param));
    configured.params.splice(0..0, params);
    configured.image_mirrors.append(&mut config.image_mirrors);
    configured.require.append(&mut config.require);
    configured.acknowledged.append(&mut config.acknowledged);
    configured.allows_application_config |= config.allow_application_config;
    if run.manifests.namespace.is_none() {
        let namespaces = std::mem::take(&mut config.namespaces);
        configured.namespaces = folder_namespaces(namespaces, folder);
    }
    for (path, at) in config.context.drain(..) {
        let path = folder.join(path);
        run.manifests.context.push(path.clone());
        configured.context.push((path, at));
    }
    add_manifests(&mut run.manifests, config, folder);
}

/// Adds the place of the entry in a configuration that names the file, unless the problem has a place in the file.
pub fn at_entry(problem: Diagnostic, entry: Option<&Place>) -> Diagnostic {
    match entry {
        Some(at) if problem.labels.is_empty() => problem.at(at.clone(), "listed here"),
        _ => problem,
    }
}

/// Adds the settings of a configuration about manifests.
fn add_manifests(manifests: &mut args::ManifestArgs, config: Config, folder: &Path) {
    for (flags, root, words) in [
        (
            &mut manifests.include,
            &mut manifests.include_root,
            config.include,
        ),
        (
            &mut manifests.exclude,
            &mut manifests.exclude_root,
            config.exclude,
        ),
    ] {
        if flags.is_empty() {
            *flags = words;
            *root = Some(folder.to_path_buf());
        }
    }
    manifests.namespace = manifests.namespace.take().or(config.namespace);
    manifests.image_env.splice(0..0, config.image_env);
    let flags = &manifests.pod_templates;
    let is_free = |path: &PodTemplatePath| !flags.iter().any(|flag| flag.has_kind_of(path));
    let configured: Vec<_> = config.pod_templates.into_iter().filter(is_free).collect();
    manifests.pod_templates.extend(configured);
    manifests.kube_version = manifests.kube_version.or(config.kube_minor);
}

/// The globs match paths relative to the folder of the configuration.
fn folder_namespaces(globs: Vec<(GlobMatcher, String)>, folder: &Path) -> Option<FolderNamespaces> {
    if globs.is_empty() {
        return None;
    }
    let current_folder = env::current_dir().unwrap_or_default();
    let root = real(&current_folder.join(folder));
    Some(FolderNamespaces {
        current_folder,
        root,
        real_folder: real,
        globs,
    })
}

fn has_policy(policies: &args::PolicyArgs) -> bool {
    !policies.given.is_empty() || !policies.configured.inline.is_empty()
}

fn policies_of_environment() -> Vec<PathBuf> {
    policies_in_list(&env::var(POLICY).unwrap_or_default())
}

/// The policies of a list, separated by commas or line ends.
pub fn policies_in_list(list: &str) -> Vec<PathBuf> {
    let policies = list.split([',', '\n']).map(str::trim);
    let policies = policies.filter(|policy| !policy.is_empty());
    policies.map(PathBuf::from).collect()
}

/// Resolves a path against the folder; `builtin:NAME`, `@input` and `-` are no paths.
pub fn from_folder(folder: &Path, policy: &str) -> PathBuf {
    let is_path = !policy.starts_with("builtin:") && policy != args::INPUT && policy != "-";
    if is_path {
        folder.join(policy)
    } else {
        PathBuf::from(policy)
    }
}

/// The path of the configuration: that of the flags, of the environment, or the nearest `podgraft.yaml`.
pub fn find_file(flags: &args::ConfigArgs, role: Caller) -> Option<PathBuf> {
    if flags.no_config {
        return None;
    }
    let named = env::var_os(CONFIG).filter(|path| !path.is_empty());
    let nearest = || match role {
        Caller::CommandLine => find_nearest(&env::current_dir().ok()?),
        Caller::Host => None,
    };
    let given = flags.config.clone().or(named.map(PathBuf::from));
    given.or_else(nearest)
}

/// Searches upward to the root of the repository. Outside of a repository, only the current folder is searched, as what
/// lies above may be anybody's.
fn find_nearest(start: &Path) -> Option<PathBuf> {
    let below_root = root_of(start).and_then(|root| start.strip_prefix(root).ok());
    let depth = below_root.map_or(0, |folders| folders.components().count());
    let mut paths = (0..=depth).map(|steps| {
        let folder: PathBuf = std::iter::repeat_n("..", steps).collect();
        folder.join(FILE_NAME)
    });
    // Also a folder, or a link to nothing: reading it fails, where passing it over would lose its settings.
    paths.find(|path| path.symlink_metadata().is_ok())
}

/// Reads the parameters of the application's `podgraft.yaml` in the current folder, unless that file is the operator's
/// own.
fn application_params(operator: &Path) -> Diagnosed<Vec<ConfigParam>> {
    let path = Path::new(FILE_NAME);
    let is_operators = fs::canonicalize(path).ok() == fs::canonicalize(operator).ok();
    // A symbolic link could lead out of the application's folder, so it is not followed.
    let is_file = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file());
    if !is_file || is_operators {
        Ok(Vec::new())
    } else {
        read_application(read_text(path)?)
    }
}

fn read_text(path: &Path) -> Diagnosed<PolicyFile> {
    let name = path.to_string_lossy();
    let bytes = fs::read(path).map_err(|error| vec![unreadable(&name, &error)])?;
    let text = String::from_utf8(bytes).map_err(|_| vec![not_utf8(&name)])?;
    Ok(PolicyFile {
        name: name.as_ref().into(),
        text,
    })
}
