//! The commands that review: what is there, what would change, and why not.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use podgraft_core::config::CoverageRequirement;
use podgraft_core::diagnostic::Code;
use podgraft_core::policy::schema::nearest;

use super::{ManifestArgs, OutputArgs, RunArgs};

/// `podgraft diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = DiffFormat::Unified, value_name = "FORMAT", help_heading = "Output")]
    pub output: DiffFormat,
    /// Show what changes when the given policies replace this one: a file, a folder, or builtin:NAME; repeatable
    #[arg(long, value_name = "OLD", help_heading = "Policies")]
    pub against_policy: Vec<PathBuf>,
    /// Show file names relative to the current folder instead of the repository's root
    #[arg(long, help_heading = "Output")]
    pub relative: bool,
    /// Split the formats json and markdown into parts
    #[arg(long, value_enum, value_name = "BY", help_heading = "Output")]
    pub group_by: Option<GroupByArg>,
}

/// The forms of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// A patch, with a heading for each workload
    Unified,
    /// What each policy adds to each workload
    Summary,
    /// The number of changed lines in each file
    Stat,
    /// JSON, for programs; described by `schemas/diff.schema.json`
    Json,
    /// A comment for a pull request, within GitHub's size limit
    Markdown,
    /// A page for a browser, with search, filters, and pictures of the pods
    Html,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// `--group-by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupByArg {
    /// By the workload's namespace
    Namespace,
    /// By the file's folder
    Dir,
    /// By the file's owner, as in the repository's CODEOWNERS
    Codeowners,
}

/// `podgraft check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = CheckFormat::Text, value_name = "FORMAT", help_heading = "Output")]
    pub output: CheckFormat,
    /// Fail unless this policy applies to this many workloads, or to all whose pod template labels match; repeatable
    #[arg(long, value_name = "POLICY=NUMBER|POLICY:SELECTOR", value_parser = CoverageRequirement::parse, help_heading = "Policies")]
    pub require: Vec<CoverageRequirement>,
}

/// The forms of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Text, for people
    Text,
    /// JSON, for programs
    Json,
    /// JUnit XML with a test case for each workload
    Junit,
    /// Annotations for GitHub Actions
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// `podgraft explain`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ExplainArgs {
    /// Print the page of a diagnostic code instead; the same as `podgraft explain CODE`
    #[arg(long, value_name = "CODE", exclusive = true)]
    pub code: Option<String>,
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text, value_name = "FORMAT", help_heading = "Output")]
    pub output: ExplainFormat,
}

impl ExplainArgs {
    /// The diagnostic code whose page is asked for: a single word that looks like one and is no file.
    pub fn asked_code(&self) -> Option<&str> {
        if self.code.is_some() {
            return self.code.as_deref();
        }
        let [path] = self.run.paths.as_slice() else {
            return None;
        };
        let word = path.to_str()?;
        let names = || Code::ALL.iter().map(|code| code.name());
        let is_of_code = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        let is_meant =
            word.bytes().all(is_of_code) && word != "-" || nearest(word, names()).is_some();
        (self.run.policies.given.is_empty() && is_meant && !path.exists()).then_some(word)
    }
}

/// The forms of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text, for people
    Text,
    /// JSON, for programs
    Json,
}

/// `podgraft inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Manifests: files, folders (searched for .yaml, .yml, and .json), or `-` for stdin [default: stdin]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t = InspectFormat::Table, value_name = "FORMAT", help_heading = "Output")]
    pub format: InspectFormat,
    /// Group by namespace, and add a column for it
    #[arg(short = 'A', long, help_heading = "Output")]
    pub all_namespaces: bool,
    /// The sort order [default: as in the files; with -A, by namespace]
    #[arg(long, value_enum, value_name = "BY", help_heading = "Output")]
    pub sort_by: Option<SortBy>,
    /// Omit the header line
    #[arg(long, help_heading = "Output")]
    pub no_headers: bool,
}

/// The forms of the view of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// A table with a row for each workload
    Table,
    /// The table with images and places
    Wide,
    /// JSON, for programs: containers, mounts, variables, metrics endpoints
    Json,
    /// The same in YAML
    Yaml,
    /// A FarmPodList of farm.example.com/v1alpha
    Farmpods,
}

/// `--sort-by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// By namespace, kind, and name
    Namespace,
    /// By kind and name
    Kind,
    /// By name
    Name,
    /// By number of containers, most first
    Containers,
}

impl InspectArgs {
    /// As the pipeline takes it: without a policy.
    pub fn run(&self) -> RunArgs {
        RunArgs {
            paths: self.paths.clone(),
            manifests: self.manifests.clone(),
            output: self.output.clone(),
            ..RunArgs::default()
        }
    }
}
