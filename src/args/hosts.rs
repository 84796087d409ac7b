//! The commands that other programs run: kustomize, kpt, Helm, Argo CD.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{ManifestArgs, OutputArgs, PolicyArgs, RunArgs};

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
    #[command(after_help = include_str!("examples/argocd-generate.txt"))]
    Generate(Box<GenerateArgs>),
    /// Print the file that makes the plugin responsible for the current folder, or nothing if it is not
    #[command(after_help = include_str!("examples/argocd-discover.txt"))]
    Discover {
        /// What the plugin renders
        #[arg(value_enum, default_value_t = PluginKind::Plain)]
        kind: PluginKind,
    },
    /// Print the parameters that an Application may set, in the format that Argo CD reads
    #[command(after_help = include_str!("examples/argocd-parameters.txt"))]
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
