//! The command line as clap reads it. Nothing is opened or read here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use podgraft::options::{ImageEnv, PodTemplatePath, WorkloadPattern};
use podgraft::policy::read::ParamSetting;

const EXAMPLES: &str = "\
Examples:
  helm template shop ./chart | podgraft apply -p builtin:jmx-exporter > rendered.yaml
  podgraft diff -p agents.yaml manifests/
  podgraft apply -p agents.yaml --in-place manifests/
  podgraft policy list

Exit status: 0 done; 1 diff found differences; 2 refused, failed or wrong usage (nothing was written);
70 an internal check failed, a bug of podgraft (nothing was written).";

const APPLY_EXAMPLES: &str = "\
Examples:
  kustomize build overlays/prod | podgraft apply -p builtin:jmx-exporter | kubectl apply -f -
  podgraft apply -p agents.yaml --in-place manifests/
  podgraft apply -p agents/ -p builtin:jmx-exporter --output-dir out/ manifests/
  podgraft apply -p agents.yaml --param tracing:endpoint=http://collector:4317 deployment.yaml

Bytes that no policy touches are the input's bytes. Nothing is written when anything failed.";

const DIFF_EXAMPLES: &str = "\
Examples:
  podgraft diff -p agents.yaml manifests/
  podgraft diff -p agents.yaml -o summary manifests/
  podgraft diff -p agents.yaml manifests/ | git apply

The unified form is a patch for `patch -p1` and `git apply`; it gives what `apply --in-place` gives.
Exit status: 0 no differences; 1 differences; 2 refused, failed or wrong usage.";

/// Puts agents, sidecars and settings into Kubernetes manifests before any cluster sees them.
#[derive(Debug, Parser)]
#[command(name = "podgraft", version, about, after_help = EXAMPLES, max_term_width = 110)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Inject: patched manifests to stdout, in place, or into a folder
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(Apply),
    /// Show what apply would change
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(Diff),
    /// Print the page of a diagnostic code: what it means, an example, what to do
    #[command(after_help = "Example:\n  podgraft explain --code conflict")]
    Explain(Explain),
    /// List and show the built-in policies
    #[command(subcommand)]
    Policy(Policy),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  podgraft completions bash > /etc/bash_completion.d/podgraft")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    #[command(after_help = "Example:\n  podgraft man | man -l -")]
    Man,
}

/// `podgraft apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: Run,
    /// Replace the files that change, each atomically; an error leaves all as they were
    #[arg(short, long, conflicts_with = "output_dir", help_heading = "Output")]
    pub in_place: bool,
    /// Write all manifests, changed or not, into this folder; named folders are mirrored
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub output_dir: Option<PathBuf>,
}

/// `podgraft diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: Run,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = DiffFormat::Unified, value_name = "FORMAT", help_heading = "Output")]
    pub output: DiffFormat,
}

/// `podgraft explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The code, as problems show it in their first line
    #[arg(long, value_name = "CODE")]
    pub code: String,
}

/// The forms of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// A patch, with a heading for each workload
    Unified,
    /// What each policy adds to each workload
    Summary,
    /// The number of lines that change in each file
    Stat,
}

/// `podgraft policy`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// List the built-in policies
    List,
    /// Print a built-in policy
    Show {
        /// Its name, with or without `builtin:`
        name: String,
    },
}

/// What `apply` and `diff` have in common.
#[derive(Debug, Args)]
pub struct Run {
    /// Manifests: files, folders (recursive: .yaml .yml .json), `-` for stdin [default: stdin]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The policies.
    #[command(flatten)]
    pub policies: Policies,
    /// The manifests.
    #[command(flatten)]
    pub manifests: Manifests,
    /// The output.
    #[command(flatten)]
    pub output: Output,
}

/// Which policies, and with which values.
#[derive(Debug, Args)]
#[command(next_help_heading = "Policies")]
pub struct Policies {
    /// A policy: a file, a folder, builtin:NAME, `-` (stdin) or @input (found among the manifests); repeatable
    #[arg(short = 'p', long = "policy", value_name = "POLICY")]
    pub given: Vec<PathBuf>,
    /// Set a parameter of the policies; repeatable
    #[arg(long = "param", value_name = "[POLICY:]NAME=VALUE", value_parser = parse_param)]
    pub params: Vec<ParamSetting>,
    /// Of the given policies, apply only this one; repeatable
    #[arg(long, value_name = "POLICY")]
    pub only: Vec<String>,
    /// Of the given policies, leave this one out; repeatable
    #[arg(long, value_name = "POLICY")]
    pub skip: Vec<String>,
    /// Do not note the applied policies in the annotation podgraft.dev/applied
    #[arg(long)]
    pub no_marker: bool,
}

/// Which manifests, and how to see them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Manifests")]
pub struct Manifests {
    /// The namespace of objects that state none
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Touch only these workloads, globs such as Deployment/shop/*; repeatable
    #[arg(long = "workload", value_name = "KIND/NAMESPACE/NAME", value_parser = WorkloadPattern::parse)]
    pub workloads: Vec<WorkloadPattern>,
    /// One more kind that holds a pod template, such as argoproj.io/v1alpha1/Rollout=spec.template; repeatable
    #[arg(long = "pod-template", value_name = "[GROUP/]VERSION/KIND=PATH", value_parser = parse_pod_template)]
    pub pod_templates: Vec<PodTemplatePath>,
    /// The version of the cluster that the manifests are for, such as 1.33
    #[arg(long, value_name = "VERSION", value_parser = parse_kube_version)]
    pub kube_version: Option<u32>,
    /// A variable that a container's image sets, such as app:JAVA_TOOL_OPTIONS=-Xmx1g; repeatable
    #[arg(long = "image-env", value_name = "CONTAINER:NAME=VALUE", value_parser = parse_image_env)]
    pub image_env: Vec<ImageEnv>,
    /// In folders, read only files that fit this glob; without a `/` it is compared with the file's name; repeatable
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// In folders, leave out files and folders that fit this glob; repeatable
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Check documents that no policy can concern, too
    #[arg(long)]
    pub parse_all: bool,
}

/// What is said, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Fail on warnings
    #[arg(long)]
    pub strict: bool,
    /// No report and no warnings on stderr, only errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How problems are shown; json: one object a line on stderr and nothing else there
    #[arg(long, value_enum, default_value_t = Diagnostics::Text, value_name = "FORM")]
    pub diagnostics: Diagnostics,
    /// Colours; auto honours NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}

/// `--diagnostics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Diagnostics {
    /// With the source line, for people
    Text,
    /// For machines
    Json,
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// When a terminal is there
    Auto,
    /// In files and pipes, too
    Always,
    /// Not at all
    Never,
}

fn parse_param(text: &str) -> Result<ParamSetting, String> {
    let (target, value) = text.split_once('=').ok_or("wanted [POLICY:]name=value")?;
    let (policy, name) = match target.rsplit_once(':') {
        Some((policy, name)) => (Some(policy.to_owned()), name),
        None => (None, target),
    };
    if name.is_empty() || policy.as_deref() == Some("") {
        return Err("wanted [POLICY:]name=value".to_owned());
    }
    Ok(ParamSetting { policy, name: name.to_owned(), value: value.to_owned() })
}

fn parse_pod_template(text: &str) -> Result<PodTemplatePath, String> {
    const WANTED: &str = "wanted group/version/Kind=path, such as argoproj.io/v1alpha1/Rollout=spec.template";
    let (kind, path) = text.split_once('=').ok_or(WANTED)?;
    let (api_version, kind) = kind.rsplit_once('/').ok_or(WANTED)?;
    // A single dot is the object itself, as with a Pod.
    let keys = path.strip_prefix('.').unwrap_or(path).split('.').map(str::to_owned);
    let path: Vec<String> = if path == "." { Vec::new() } else { keys.collect() };
    let is_version = !api_version.is_empty() && api_version.split('/').all(|part| !part.is_empty());
    if !is_version || api_version.matches('/').count() > 1 || kind.is_empty() || path.iter().any(String::is_empty) {
        return Err(WANTED.to_owned());
    }
    Ok(PodTemplatePath { api_version: api_version.to_owned(), kind: kind.to_owned(), path })
}

fn parse_kube_version(text: &str) -> Result<u32, String> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
    let major = parts.next();
    // Providers write `1.29+` and `v1.33.1-eks-1234`.
    let minor = parts.next().map(|minor| minor.split(['+', '-']).next().unwrap_or(minor));
    match (major, minor.map(str::parse)) {
        (Some("1"), Some(Ok(minor))) => Ok(minor),
        _ => Err("wanted a version such as 1.33".to_owned()),
    }
}

fn parse_image_env(text: &str) -> Result<ImageEnv, String> {
    const WANTED: &str = "wanted CONTAINER:NAME=VALUE";
    let (target, value) = text.split_once('=').ok_or(WANTED)?;
    let (container, name) = target.split_once(':').ok_or(WANTED)?;
    if container.is_empty() || name.is_empty() {
        return Err(WANTED.to_owned());
    }
    Ok(ImageEnv { container: container.to_owned(), name: name.to_owned(), value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_param_may_name_its_policy() {
        let scoped = parse_param("Rookout/shop/java:port=a=b:c").unwrap();
        assert_eq!(
            (scoped.policy.as_deref(), &*scoped.name, &*scoped.value),
            (Some("Rookout/shop/java"), "port", "a=b:c")
        );
        assert_eq!(parse_param("port=1").unwrap().policy, None);
        assert!(parse_param("port").is_err());
        assert!(parse_param(":port=1").is_err());
    }

    #[test]
    fn a_pod_template_of_the_core_group_has_no_group() {
        let rollout = parse_pod_template("argoproj.io/v1alpha1/Rollout=spec.template").unwrap();
        assert_eq!((&*rollout.api_version, &*rollout.kind), ("argoproj.io/v1alpha1", "Rollout"));
        assert_eq!(parse_pod_template("v1/PodTemplate=template").unwrap().api_version, "v1");
        for bad in ["Rollout=spec", "a/b/c/D=x", "v1/X=", "v1/=x", "/X=x", "v1/X"] {
            assert!(parse_pod_template(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_are_read_as_clusters_write_them() {
        for text in ["1.29", "v1.29.3", "1.29+", "v1.29.1-eks-12"] {
            assert_eq!(parse_kube_version(text), Ok(29), "{text}");
        }
        assert!(parse_kube_version("2.0").is_err());
        assert!(parse_kube_version("29").is_err());
    }
}
