//! The command that injects.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::RunArgs;

/// `podgraft apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = ApplyFormat::Manifests, value_name = "FORMAT", help_heading = "Output")]
    pub output: ApplyFormat,
    /// Replace changed files, each atomically; if anything fails, no file is changed
    #[arg(short, long, conflicts_with = "output_dir", help_heading = "Output")]
    pub in_place: bool,
    /// Write all manifests, changed or not, into this folder, with the structure of the given folders
    ///
    /// Other files, such as a kustomization.yaml and its patches, are not copied.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub output_dir: Option<PathBuf>,
    /// Write the result as it is produced, for input larger than memory; an error then truncates the result
    #[arg(long, conflicts_with_all = ["in_place", "output_dir", "report"], help_heading = "Output")]
    pub stream: bool,
}

/// The forms of what is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApplyFormat {
    /// The injected manifests
    Manifests,
    /// A list of RFC 6902 patches with their targets
    JsonPatch,
    /// A kustomize Component in --output-dir, for pipelines without podgraft
    Kustomize,
}
