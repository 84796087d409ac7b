//! The command line as clap reads it. Nothing is opened or read here.

mod apply;
mod hosts;
mod opentelemetry;
mod output;
pub mod relevant_flags;
mod review;
pub mod tools;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use podgraft_core::config::{
    ConfigParam, CoverageRequirement, PolicySource, PolicyUse, parse_namespace,
};
use podgraft_core::dangers::Danger;
use podgraft_core::options::{
    Acknowledgement, FolderNamespaces, ImageEnv, PodTemplatePath, WorkloadPattern,
    parse_kube_version,
};
use podgraft_core::policy::images::ImageMirror;
use podgraft_core::policy::read::{ParamSetting, PolicyFile};
use podgraft_core::source::Place;

use crate::shard::Shard;
pub use apply::{ApplyArgs, ApplyFormat};
pub use hosts::{ArgocdCommand, GenerateArgs, HostArgs, ParametersArgs, PluginKind};
pub use opentelemetry::OpenTelemetryArgs;
pub use output::{ColorWhen, DebugModeArg, DiagnosticsFormat, OutputArgs};
pub use review::{
    CheckArgs, CheckFormat, DiffArgs, DiffFormat, ExplainArgs, ExplainFormat, GroupByArg,
    InspectArgs, InspectFormat, SortBy,
};

/// Puts agents, sidecars and settings into Kubernetes manifests before any cluster sees them.
#[derive(Debug, Parser)]
#[command(name = "podgraft", version, about, after_help = include_str!("args/examples/podgraft.txt"))]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply policies to manifests: to stdout, in place, or into a folder
    #[command(after_help = include_str!("args/examples/apply.txt"))]
    Apply(ApplyArgs),
    /// Show what apply would change
    #[command(after_help = include_str!("args/examples/diff.txt"))]
    Diff(DiffArgs),
    /// Check that manifests are up to date and free of problems, as a CI gate
    #[command(after_help = include_str!("args/examples/check.txt"))]
    Check(CheckArgs),
    /// Explain why policies do or do not apply to workloads, or explain a diagnostic code
    #[command(after_help = include_str!("args/examples/explain.txt"))]
    Explain(ExplainArgs),
    /// Print ephemeral containers for running pods: patch bodies or kubectl debug commands
    #[command(after_help = include_str!("args/examples/debug.txt"))]
    Debug(DebugArgs),
    /// Remove injections
    #[command(after_help = include_str!("args/examples/undo.txt"))]
    Undo(UndoArgs),
    /// Record existing injections in manifests as if podgraft had made them
    #[command(after_help = include_str!("args/examples/adopt.txt"))]
    Adopt(AdoptArgs),
    /// For kustomize and kpt: apply policies to a ResourceList, from stdin to stdout
    #[command(name = "fn", after_help = include_str!("args/examples/fn.txt"))]
    Fn(HostArgs),
    /// For Helm: apply policies to rendered manifests, from stdin to stdout
    #[command(after_help = include_str!("args/examples/post-render.txt"))]
    PostRender(HostArgs),
    /// For Argo CD: commands for a config management plugin
    #[command(subcommand)]
    Argocd(ArgocdCommand),
    /// Show the workloads and their containers
    #[command(after_help = include_str!("args/examples/inspect.txt"))]
    Inspect(InspectArgs),
    /// List and show the built-in policies; write, lint, test, and convert your own
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Write a commented podgraft.yaml and a starter policy into a folder
    #[command(after_help = include_str!("args/examples/init.txt"))]
    Init(tools::InitArgs),
    /// Print a completion script for a shell
    #[command(after_help = include_str!("args/examples/completions.txt"))]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    #[command(after_help = include_str!("args/examples/man.txt"))]
    Man,
}

/// `podgraft debug`.
#[derive(Debug, Args)]
pub struct DebugArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = DebugFormat::Yaml, value_name = "FORMAT", help_heading = "Output")]
    pub output: DebugFormat,
}

/// The forms of ephemeral containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DebugFormat {
    /// A patch body for each workload, with the kubectl debug command as a comment
    Yaml,
    /// A list of workloads, each with its patch body and command
    Json,
    /// The kubectl debug commands
    Kubectl,
}

/// `podgraft adopt`.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// Write the record to podgraft.lock and mark the workloads; without this flag, only report what would be adopted
    #[arg(short, long, help_heading = "Output")]
    pub in_place: bool,
}

/// `podgraft undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Manifests: files, folders (searched for .yaml, .yml, and .json), or `-` for stdin [default: stdin]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Remove only this policy, and keep the others; repeatable
    #[arg(long, value_name = "POLICY")]
    pub only: Vec<String>,
    /// Also remove content that was changed after it was injected
    #[arg(long)]
    pub force: bool,
    /// Replace changed files, each atomically; if anything fails, no file is changed
    #[arg(short, long, conflicts_with = "output_dir", help_heading = "Output")]
    pub in_place: bool,
    /// Write all manifests, changed or not, into this folder, with the structure of the given folders
    ///
    /// Other files, such as a kustomization.yaml and its patches, are not copied.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub output_dir: Option<PathBuf>,
    /// The configuration.
    #[command(flatten)]
    pub configuration: ConfigArgs,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `podgraft policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the built-in policies
    List,
    /// Suggest built-in policies for the annotations, labels, and resources in manifests
    #[command(after_help = include_str!("args/examples/policy-suggest.txt"))]
    Suggest {
        /// Manifests: files, folders (searched for .yaml, .yml, and .json), or `-` for stdin
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,
    },
    /// Print a built-in policy
    Show {
        /// The name of the policy, with or without `builtin:`
        name: String,
    },
    /// Print a starter policy to adapt
    #[command(after_help = include_str!("args/examples/policy-new.txt"), group = ArgGroup::new("kind").required(true).args(["agent", "sidecar", "scrape"]))]
    New(tools::StarterPolicyArgs),
    /// Convert resources of other operators to InjectionPolicies
    #[command(after_help = include_str!("args/examples/policy-convert.txt"))]
    Convert(ConvertArgs),
    /// Report mistakes and risks in policies, and what they need from a cluster; does not read manifests
    #[command(after_help = include_str!("args/examples/policy-lint.txt"))]
    Lint(tools::LintArgs),
    /// List the images that policies inject, for mirroring
    #[command(after_help = include_str!("args/examples/policy-images.txt"))]
    Images(tools::ImagesArgs),
    /// Run policy tests, which state what policies do to manifests
    #[command(after_help = include_str!("args/examples/policy-test.txt"))]
    Test(tools::TestArgs),
    /// Print the JSON Schema of a kind, for editors
    #[command(after_help = include_str!("args/examples/policy-schema.txt"))]
    Schema {
        /// The kind: InjectionPolicy, Config, PodgraftFunction, PolicyTest, or Instrumentation
        #[arg(default_value = "InjectionPolicy")]
        kind: String,
    },
    /// List all names and functions of expressions, with an example of each function
    Functions,
    /// Print the CustomResourceDefinition of InjectionPolicy, for clusters that store policies
    #[command(after_help = include_str!("args/examples/policy-crd.txt"))]
    Crd {
        /// Whether the policies in the cluster are namespaced
        #[arg(long, value_enum, default_value_t = tools::CrdScopeArg::Namespaced, value_name = "SCOPE")]
        scope: tools::CrdScopeArg,
    },
}

/// `podgraft policy convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Resources: files, folders, or `-` for stdin
    #[arg(value_name = "FILE", required_unless_present = "given")]
    pub files: Vec<PathBuf>,
    /// The same as FILE; repeatable
    #[arg(short = 'p', long = "policy", value_name = "FILE")]
    pub given: Vec<PathBuf>,
    /// Set a policy parameter; repeatable
    #[arg(long = "param", value_name = "[POLICY:]NAME=VALUE", value_parser = parse_param)]
    pub params: Vec<ParamSetting>,
    /// How to apply a Podbuggertool: as ephemeral containers for `podgraft debug`, or as a sidecar
    #[arg(long, value_enum, default_value_t = DebugModeArg::Ephemeral, value_name = "MODE")]
    pub debug_mode: DebugModeArg,
    /// The OpenTelemetry Operator.
    #[command(flatten)]
    pub opentelemetry: OpenTelemetryArgs,
}

/// What the commands that inject or compare have in common.
#[derive(Debug, Default, Clone, Args)]
pub struct RunArgs {
    /// Manifests: files, folders (searched for .yaml, .yml, and .json), or `-` for stdin [default: stdin]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The policies.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The `-p` value for the policies among the manifests.
pub const INPUT: &str = "@input";

/// Which policies, and with which values.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Policies")]
pub struct PolicyArgs {
    /// A policy: a file, a folder, builtin:NAME, `-` (stdin), or @input (policies among the manifests); repeatable
    #[arg(short = 'p', long = "policy", value_name = "POLICY")]
    pub given: Vec<PathBuf>,
    /// Set a policy parameter; repeatable
    #[arg(long = "param", value_name = "[POLICY:]NAME=VALUE", value_parser = parse_param)]
    pub params: Vec<ParamSetting>,
    /// Apply only this policy; repeatable
    #[arg(long, value_name = "POLICY")]
    pub only: Vec<String>,
    /// Skip this policy; repeatable
    #[arg(long, value_name = "POLICY")]
    pub skip: Vec<String>,
    /// How to apply a Podbuggertool: as ephemeral containers for `podgraft debug`, or as a sidecar
    #[arg(long, value_enum, default_value_t = DebugModeArg::Ephemeral, value_name = "MODE")]
    pub debug_mode: DebugModeArg,
    /// The OpenTelemetry Operator.
    #[command(flatten)]
    pub opentelemetry: OpenTelemetryArgs,
    /// Write neither the annotation podgraft.dev/applied nor a record
    #[arg(long)]
    pub no_marker: bool,
    /// Record injections in the annotation podgraft.dev/record, for undo; by default, --in-place records them in
    /// podgraft.lock
    #[arg(long, overrides_with = "no_record", conflicts_with = "no_marker")]
    pub record: bool,
    /// Do not write a record; an existing record is kept up to date
    #[arg(long, overrides_with = "record")]
    pub no_record: bool,
    /// The name of this set of policies, stored in the record; for --prune
    #[arg(long = "policy-set", alias = "set", value_name = "NAME", value_parser = parse_set)]
    pub set: Option<String>,
    /// Remove the injections of policies that an earlier run with this --policy-set applied and that are no longer
    /// given
    #[arg(long)]
    pub prune: bool,
    /// Refuse policies that inject any of these: privileged, host-path, latest-tag, ...; separated by commas
    #[arg(long, value_name = "DANGER,...", value_delimiter = ',', value_parser = tools::parse_danger)]
    pub forbid: Vec<Danger>,
    /// Where the settings of the place are.
    #[command(flatten)]
    pub configuration: ConfigArgs,
    /// What they say, once they are read.
    #[arg(skip)]
    pub configured: ResolvedConfig,
}

impl PolicyArgs {
    /// Whether the policies among the manifests are given.
    pub fn reads_input(&self) -> bool {
        self.given.iter().any(|given| given.as_os_str() == INPUT)
    }
}

/// `podgraft.yaml`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Read this podgraft.yaml [default: $PODGRAFT_CONFIG, else the nearest one up to the repository's root]
    #[arg(long, value_name = "FILE", help_heading = "Policies")]
    pub config: Option<PathBuf>,
    /// Do not read a podgraft.yaml
    #[arg(long, conflicts_with = "config", help_heading = "Policies")]
    pub no_config: bool,
}

/// The settings of a configuration or a host that have no flags.
#[derive(Debug, Clone, Default)]
pub struct ResolvedConfig {
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Parameters that the operator sets, and whether their policies are those of the same configuration.
    pub params: Vec<(PolicySource, ConfigParam)>,
    /// Parameters that an application's own folder sets.
    pub application_params: Vec<ConfigParam>,
    /// Policies that stand in no file.
    pub inline: Vec<PolicyFile>,
    /// The entries of the configuration's policies, with their paths from here.
    pub uses: Vec<(PathBuf, PolicyUse)>,
    /// The configuration's paths of `context`, and their places.
    pub context: Vec<(PathBuf, Place)>,
    /// Namespaces by folder.
    pub namespaces: Option<FolderNamespaces>,
    /// What must be true of all workloads together.
    pub require: Vec<CoverageRequirement>,
    /// Findings that are accepted.
    pub acknowledged: Vec<Acknowledgement>,
    /// Other places for the images that are injected.
    pub image_mirrors: Vec<ImageMirror>,
    /// An application's own folder may set parameters.
    pub allows_application_config: bool,
}

/// Which manifests, and how to see them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Manifests")]
pub struct ManifestArgs {
    /// The namespace of objects that do not specify one
    #[arg(short, long, value_name = "NAMESPACE", value_parser = parse_namespace)]
    pub namespace: Option<String>,
    /// Change only workloads that match this glob, such as deploy/orders or sts/shop/*; repeatable
    #[arg(long = "workload", value_name = "KIND/[NAMESPACE/]NAME", value_parser = WorkloadPattern::parse)]
    pub workloads: Vec<WorkloadPattern>,
    /// An additional kind with a pod template, such as argoproj.io/v1alpha1/Rollout=spec.template; repeatable
    #[arg(long = "pod-template", value_name = "[GROUP/]VERSION/KIND=PATH", value_parser = PodTemplatePath::parse)]
    pub pod_templates: Vec<PodTemplatePath>,
    /// The Kubernetes version of the target cluster, such as 1.33
    #[arg(long, value_name = "VERSION", value_parser = parse_kube_version)]
    pub kube_version: Option<u32>,
    /// A variable that a container's image sets, such as app:JAVA_TOOL_OPTIONS=-Xmx1g; repeatable
    #[arg(long = "image-env", value_name = "CONTAINER:NAME=VALUE", value_parser = ImageEnv::parse)]
    pub image_env: Vec<ImageEnv>,
    /// More manifests in which policies look up Namespaces, ConfigMaps, and other objects; never written; repeatable
    #[arg(long, value_name = "PATH")]
    pub context: Vec<PathBuf>,
    /// In folders, read only files that match this glob; a glob without a `/` is matched against the file name;
    /// repeatable
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// The folder of the configuration that the globs of `include` are from.
    #[arg(skip)]
    pub include_root: Option<PathBuf>,
    /// In folders, skip files and folders that match this glob; repeatable
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// The folder of the configuration that the globs of `exclude` are from.
    #[arg(skip)]
    pub exclude_root: Option<PathBuf>,
    /// Also parse documents that no policy can change, to find errors in them
    #[arg(long)]
    pub parse_all: bool,
    /// Process only every Nth file, starting with the Ith; lookups still use all files
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
}

/// `[POLICY:]NAME=VALUE`, as `--param` takes it.
pub fn parse_param(text: &str) -> Result<ParamSetting, String> {
    let (target, value) = text.split_once('=').ok_or("expected [POLICY:]NAME=VALUE")?;
    let (policy, name) = policy_and_name(target);
    if name.is_empty() || policy.as_deref() == Some("") {
        return Err("expected [POLICY:]NAME=VALUE".to_owned());
    }
    Ok(ParamSetting {
        policy,
        name,
        value: value.to_owned(),
        at: None,
    })
}

/// What the name of a parameter says: `NAME`, or `POLICY:NAME`.
pub fn policy_and_name(key: &str) -> (Option<String>, String) {
    match key.rsplit_once(':') {
        Some((policy, name)) => (Some(policy.to_owned()), name.to_owned()),
        None => (None, key.to_owned()),
    }
}

/// Helm's `--set NAME=VALUE` sets a value; a set of policies is a name.
fn parse_set(text: &str) -> Result<String, String> {
    if text.contains('=') {
        return Err(format!(
            "the name of a policy set cannot contain `=`; to set a parameter, use --param {text}"
        ));
    }
    if text.is_empty() {
        return Err("the name cannot be empty".to_owned());
    }
    Ok(text.to_owned())
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
}
