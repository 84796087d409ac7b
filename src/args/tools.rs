//! The commands for those who write policies.

use clap::{ArgGroup, Args, ValueEnum};
use podgraft_core::dangers::Danger;
use podgraft_core::policy::schema::meant;

use std::path::PathBuf;

use super::{ColorWhen, PolicyArgs};

/// `podgraft policy lint`.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// Policies: files, folders, or builtin:NAME; the same as -p
    #[arg(value_name = "POLICY")]
    pub files: Vec<PathBuf>,
    /// The policies.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = LintFormat::Text, value_name = "FORMAT")]
    pub output: LintFormat,
    /// Also fail on notes
    #[arg(long)]
    pub strict: bool,
    /// When to use colors; auto honors NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub color: ColorWhen,
}

/// The forms of what `lint` finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// Text, for people: needs on stdout, findings on stderr
    Text,
    /// JSON, for programs: one object with both, on stdout
    Json,
}

/// `podgraft policy images`.
#[derive(Debug, Args)]
pub struct ImagesArgs {
    /// Policies: files, folders, or builtin:NAME; the same as -p
    #[arg(value_name = "POLICY")]
    pub files: Vec<PathBuf>,
    /// The policies.
    #[command(flatten)]
    pub policies: PolicyArgs,
}

/// `podgraft policy test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Tests (kind PolicyTest): files and folders
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Write the actual output to the files of `expect.output`, for you to review, instead of comparing it
    #[arg(long)]
    pub update: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = TestFormat::Table, value_name = "FORMAT")]
    pub output: TestFormat,
    /// When to use colors; auto honors NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub color: ColorWhen,
}

/// The forms of the result of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// A table, for people
    Table,
    /// JUnit XML, for CI systems
    Junit,
}

/// What a first policy is to be.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The policy")]
pub struct StarterPolicyArgs {
    /// Create a policy for an agent with this name: an init container copies it into a volume, and a variable loads it
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub agent: Option<String>,
    /// Create a policy for a sidecar with this name
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub sidecar: Option<String>,
    /// Create a policy with this name that adds scrape annotations for Prometheus
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub scrape: Option<String>,
    /// The image of the agent or the sidecar
    #[arg(long, value_name = "IMAGE", conflicts_with = "scrape")]
    pub image: Option<String>,
    /// The port to scrape
    #[arg(long, value_name = "PORT", requires = "scrape", conflicts_with_all = ["agent", "sidecar"], value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// The pod template label that selects workloads [default: runtime=java, logs=ship, or metrics=scrape]
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_label)]
    pub label: Option<(String, String)>,
}

/// A name that an object may have.
fn parse_name(text: &str) -> Result<String, String> {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| is_inner(*byte) && *byte != b'-');
    let bytes = text.as_bytes();
    let is_name = bytes.len() <= 63
        && bytes.iter().all(|byte| is_inner(*byte))
        && is_end(bytes.first())
        && is_end(bytes.last());
    let message =
        "expected a name such as java-agent: at most 63 lowercase letters, digits, and `-`";
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| message.to_owned())
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let is_word = |text: &str| {
        let is_inner = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
        !text.is_empty() && text.chars().all(is_inner)
    };
    match text.split_once('=') {
        Some((key, value)) if is_word(key) && is_word(value) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("expected a label such as runtime=java".to_owned()),
    }
}

/// `podgraft init`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("kind").required(true).args(["agent", "sidecar", "scrape", "used"]))]
pub struct InitArgs {
    /// What the first policy is to be.
    #[command(flatten)]
    pub answers: StarterPolicyArgs,
    /// Use an existing policy: a file, a folder, or builtin:NAME
    #[arg(long = "use", id = "used", value_name = "POLICY", conflicts_with_all = ["image", "label"], help_heading = "The policy")]
    pub used: Option<String>,
    /// The folder to write into
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
}

/// One word of `--forbid`.
pub fn parse_danger(text: &str) -> Result<Danger, String> {
    Danger::find(text).ok_or_else(|| meant(text, Danger::names(), "valid words:"))
}

/// Whether policies belong to a namespace in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CrdScopeArg {
    /// Each policy affects its own namespace
    #[value(name = "Namespaced", alias = "namespaced")]
    Namespaced,
    /// Each policy affects all namespaces
    #[value(name = "Cluster", alias = "cluster")]
    Cluster,
}
