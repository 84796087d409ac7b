//! The commands that review: what is there, what would change, and why not.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use podgraft::config::CoverageRequirement;
use podgraft::diagnostic::Code;
use podgraft::policy::schema::nearest;

use super::{ManifestArgs, OutputArgs, PolicyArgs, RunArgs};

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  podgraft check -p agents.yaml manifests/
  podgraft check -p agents.yaml -o junit manifests/ > podgraft.xml
  kubectl get deploy,sts,ds -A -o yaml | podgraft check -p agents.yaml -

Found is what the policies would still change, what an older policy injected, workloads that opt in or nearly fit and
are not selected, conflicts, and all that apply warns of. Exit status: 0 no errors (with --strict: and no warnings);
1 errors were found; 2 the input or a policy cannot be used.";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  podgraft explain -p agents.yaml manifests/
  podgraft explain -p agents.yaml --workload deployment/shop/orders manifests/
  podgraft explain conflict";

pub(super) const INSPECT_EXAMPLES: &str = "\
Examples:
  podgraft inspect manifests/
  podgraft inspect -A -o wide manifests/
  kubectl get deploy -A -o yaml | podgraft inspect -A --sort-by containers -";

/// `podgraft diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = DiffFormat::Unified, value_name = "FORMAT", help_heading = "Output")]
    pub output: DiffFormat,
    /// Show what changes when the policies take the place of this one: from the manifests with the old policies to those
    /// with the new; a file, a folder or builtin:NAME; repeatable
    #[arg(long, value_name = "OLD", help_heading = "Policies")]
    pub against_policy: Vec<PathBuf>,
    /// Name files from this folder instead of from the repository's root
    #[arg(long, help_heading = "Output")]
    pub relative: bool,
    /// Split json and markdown into parts
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
    /// The number of lines that change in each file
    Stat,
    /// For machines; `schemas/diff.schema.json` describes it
    Json,
    /// A comment on a pull request, within the size that GitHub takes
    Markdown,
    /// One page for a browser: search, filters, pictures of the pods
    Html,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// `--group-by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupByArg {
    /// The workload's namespace
    Namespace,
    /// The file's folder
    Dir,
    /// Who owns the file: CODEOWNERS of the repository
    Codeowners,
}

/// `podgraft check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = CheckFormat::Text, value_name = "FORMAT", help_heading = "Output")]
    pub output: CheckFormat,
    /// Fail unless this policy is for so many workloads, or for all whose pod template has such labels; repeatable
    #[arg(long, value_name = "POLICY=NUMBER|POLICY:SELECTOR", value_parser = CoverageRequirement::parse, help_heading = "Policies")]
    pub require: Vec<CoverageRequirement>,
}

/// The forms of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// One finding a line, for people
    Text,
    /// For machines
    Json,
    /// JUnit XML, a test case a workload
    Junit,
    /// Annotations of a GitHub Actions run
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// `podgraft explain`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ExplainArgs {
    /// Print the page of a diagnostic code instead; `podgraft explain CODE` is the same
    #[arg(long, value_name = "CODE", exclusive = true)]
    pub code: Option<String>,
    /// What is common to the commands that inject.
    #[command(flatten)]
    pub run: RunArgs,
    /// The form of the result
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
    /// For people
    Text,
    /// For machines
    Json,
}

/// `podgraft inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Manifests: files, folders (recursive: .yaml .yml .json), `-` for stdin [default: stdin]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The form of the result
    #[arg(short = 'o', long = "output", value_enum, default_value_t = InspectFormat::Table, value_name = "FORMAT", help_heading = "Output")]
    pub format: InspectFormat,
    /// Group by namespace, with a column for it
    #[arg(short = 'A', long, help_heading = "Output")]
    pub all_namespaces: bool,
    /// The order [default: that of the files; with -A by namespace]
    #[arg(long, value_enum, value_name = "BY", help_heading = "Output")]
    pub sort_by: Option<SortByArg>,
    /// No line of headings
    #[arg(long, help_heading = "Output")]
    pub no_headers: bool,
}

/// The forms of the view of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// One row a workload
    Table,
    /// With images and places
    Wide,
    /// For machines: containers, mounts, variables, metrics endpoints
    Json,
    /// The same as YAML
    Yaml,
    /// A FarmPodList of farm.example.com/v1alpha
    Farmpods,
}

/// `--sort-by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortByArg {
    /// Namespace, kind, name
    Namespace,
    /// Kind, name
    Kind,
    /// Name
    Name,
    /// The most containers first
    Containers,
}

impl InspectArgs {
    /// As the pipeline takes it: without a policy.
    pub fn run(&self) -> RunArgs {
        RunArgs {
            paths: self.paths.clone(),
            policies: PolicyArgs::default(),
            manifests: self.manifests.clone(),
            output: self.output.clone(),
            ephemeral_containers: false,
        }
    }
}
