//! The commands for those who write policies.

use clap::{Args, ValueEnum};
use podgraft::dangers::Danger;
use podgraft::policy::schema::{did_you_mean, nearest};

use podgraft::policy::params::ParamSetting;
use std::path::PathBuf;

use super::{Color, Policies};

/// Of `podgraft policy schema`.
pub const SCHEMA_EXAMPLES: &str = "\
Example:
  podgraft policy schema > injectionpolicy.schema.json

and as the first line of a policy, for editors with yaml-language-server:
  # yaml-language-server: $schema=injectionpolicy.schema.json";

/// Of `podgraft policy crd`.
pub const CRD_EXAMPLES: &str = "\
Example:
  podgraft policy crd | kubectl apply --server-side -f -";

/// Of `podgraft policy convert`.
pub const CONVERT_EXAMPLES: &str = "\
Examples:
  podgraft policy convert -p rookout.yaml > policy.yaml
  kubectl get prometheusjmxexporters -o yaml | podgraft policy convert --param image=jmx-agent:1.6.0 -p -

The policy does what the resource does; what it cannot say stands in a comment.";

/// Of `podgraft policy lint`.
pub const LINT_EXAMPLES: &str = "\
Examples:
  podgraft policy lint -p agents.yaml
  podgraft policy lint -p agents/ -o json | jq '.policies[].images'

Exit status: 0 nothing to look at; 1 warnings; 2 a policy is refused.";

/// Of `podgraft policy images`.
pub const IMAGES_EXAMPLES: &str = "\
Example:
  podgraft policy images -p agents.yaml | xargs -I{} skopeo copy docker://{} docker://mirror.example.com/{}";

/// `podgraft policy lint`.
#[derive(Debug, Args)]
pub struct Lint {
    /// The policies.
    #[command(flatten)]
    pub policies: Policies,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = LintFormat::Text, value_name = "FORMAT")]
    pub output: LintFormat,
    /// Fail on notes, too
    #[arg(long)]
    pub strict: bool,
    /// Colours; auto honours NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
}

/// The forms of what `lint` finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// For people: needs on stdout, findings on stderr
    Text,
    /// One object with both, on stdout
    Json,
}

/// `podgraft policy images`.
#[derive(Debug, Args)]
pub struct Images {
    /// The policies.
    #[command(flatten)]
    pub policies: Policies,
}

/// Of `podgraft policy suggest`.
pub const SUGGEST_EXAMPLES: &str = "\
Examples:
  podgraft policy suggest manifests/
  helm template shop chart/ | podgraft policy suggest -

Exit status: 0 said, also where nothing is asked for; 2 something cannot be read.";

/// `podgraft policy suggest`.
#[derive(Debug, Args)]
pub struct Suggest {
    /// Manifests: files, folders (recursive: .yaml .yml .json), `-` for stdin
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}

/// Of `podgraft policy test`.
pub const TEST_EXAMPLES: &str = "\
Examples:
  podgraft policy test policies/tests
  podgraft policy test -o junit policies/tests > policy-tests.xml

Exit status: 0 all pass; 1 some fail; 2 a test cannot be run.";

/// `podgraft policy test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Tests (kind PolicyTest): files and folders
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = TestFormat::Table, value_name = "FORMAT")]
    pub output: TestFormat,
    /// Colours; auto honours NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
}

/// The forms of the result of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// For people
    Table,
    /// XML for CI systems
    Junit,
}

/// `[POLICY:]NAME=VALUE`, as `--param` takes it.
pub fn parse_setting(text: &str) -> Result<ParamSetting, String> {
    super::parse_param(text)
}

/// One word of `--forbid`.
pub fn parse_danger(text: &str) -> Result<Danger, String> {
    Danger::find(text).ok_or_else(|| match nearest(text, Danger::names()) {
        Some(near) => did_you_mean(near),
        None => format!(
            "the words are {}",
            Danger::names().collect::<Vec<_>>().join(", ")
        ),
    })
}

/// `podgraft policy schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// The kind: InjectionPolicy, Config, PodgraftFunction, PolicyTest, Instrumentation
    #[arg(default_value = "InjectionPolicy")]
    pub kind: String,
}

/// `podgraft policy crd`.
#[derive(Debug, Args)]
pub struct Crd {
    /// Whether policies belong to a namespace there
    #[arg(long, value_enum, default_value_t = CrdScope::Namespaced, value_name = "SCOPE")]
    pub scope: CrdScope,
}

/// Whether policies belong to a namespace in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CrdScope {
    /// Each touches its own namespace
    #[value(name = "Namespaced", alias = "namespaced")]
    Namespaced,
    /// Each touches all namespaces
    #[value(name = "Cluster", alias = "cluster")]
    Cluster,
}
