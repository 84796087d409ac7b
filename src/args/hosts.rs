//! The commands that other programs run: kustomize, kpt, Helm, Argo CD.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{ManifestArgs, OutputArgs, PolicyArgs, RunArgs};

pub(super) const FUNCTION_EXAMPLES: &str = "\
Examples:
  kpt fn eval apps/ --exec 'podgraft fn' --fn-config agents.yaml
  kpt fn eval apps/ --exec 'podgraft fn' -- policy=builtin:prometheus-scrape port=9090
  kustomize build --enable-alpha-plugins --enable-exec overlays/prod     # with an entry under `transformers:`

The functionConfig is an InjectionPolicy, a PodgraftFunction (spec.policies, spec.params, ... as in podgraft.yaml), or
kpt's ConfigMap, whose key `policy` is a list of policies separated by commas, and whose other keys are parameters.
A podgraft.yaml is read only if --config or PODGRAFT_CONFIG names it. Errors are reported in the results of the
ResourceList, on stderr, and by the exit status.";

pub(super) const POST_RENDER_EXAMPLES: &str = "\
Examples:
  PODGRAFT_POLICY=agents.yaml helm upgrade --install shop ./chart --post-renderer podgraft --post-renderer-args post-render
  helm upgrade --install shop ./chart --post-renderer podgraft     # Helm 4, with the plugin of hosts/helm

The policies come from -p, else from PODGRAFT_POLICY, else from the file that --config or PODGRAFT_CONFIG names.
If PODGRAFT_LOG_FILE names a file, what goes to stderr is also written there: Helm 4 does not show a plugin's stderr.";

pub(super) const GENERATE_EXAMPLES: &str = "\
Examples, in a plugin's plugin.yaml:
  generate: {command: [podgraft, argocd, generate]}
  generate: {command: [sh, -ec], args: ['rendered=$(kustomize build .); echo \"$rendered\" | podgraft argocd generate -']}

Paths must be within the working directory. The defaults of --namespace and --kube-version are $ARGOCD_APP_NAMESPACE and
$KUBE_VERSION. $ARGOCD_APP_PARAMETERS sets the parameters that `podgraft argocd parameters` announces.";

/// A command that reads stdin and writes stdout for another program.
#[derive(Debug, Args)]
pub struct HostArgs {
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

impl HostArgs {
    /// As a run over stdin.
    pub fn run(&self) -> RunArgs {
        RunArgs {
            paths: Vec::new(),
            policies: self.policies.clone(),
            manifests: self.manifests.clone(),
            output: self.output.clone(),
        }
    }
}

/// `podgraft argocd`.
#[derive(Debug, Subcommand)]
pub enum ArgocdCommand {
    /// Print the application's manifests with the policies applied
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(Box<GenerateArgs>),
    /// Print the file that makes the plugin responsible for the current folder, or nothing if it is not
    #[command(
        after_help = "Example, in a plugin's plugin.yaml:\n  discover: {find: {command: [podgraft, argocd, discover, helm]}}"
    )]
    Discover {
        /// What the plugin renders
        #[arg(value_enum, default_value_t = PluginKind::Plain)]
        kind: PluginKind,
    },
    /// Print the parameters that an Application may set, in the format that Argo CD reads
    #[command(
        after_help = "Example, in a plugin's plugin.yaml:\n  parameters: {dynamic: {command: [podgraft, argocd, parameters]}}"
    )]
    Parameters(Box<ParametersArgs>),
}

/// `podgraft argocd generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// A policy that an Application may choose with its parameter `policies`; accepts the same values as -p; repeatable
    #[arg(long = "offer", value_name = "POLICY", help_heading = "Argo CD")]
    pub offered: Vec<PathBuf>,
    /// An Application parameter that another program of the plugin uses; repeatable
    #[arg(long, value_name = "NAME", help_heading = "Argo CD")]
    pub other_parameter: Vec<String>,
}

/// `podgraft argocd parameters`.
#[derive(Debug, Args)]
pub struct ParametersArgs {
    /// The policies.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// A policy that an Application may choose with its parameter `policies`; accepts the same values as -p; repeatable
    #[arg(long = "offer", value_name = "POLICY", help_heading = "Argo CD")]
    pub offered: Vec<PathBuf>,
}

/// What a plugin renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PluginKind {
    /// Plain manifests
    Plain,
    /// A kustomization
    Kustomize,
    /// A Helm chart
    Helm,
}
