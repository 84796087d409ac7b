//! The flags about what is said, and how.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What is said, and how.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Print only errors to stderr, without the report and warnings
    #[arg(short, long)]
    pub quiet: bool,
    /// Also write the report to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How to print diagnostics; with json, stderr has one object per line and nothing else [default: text]
    #[arg(long, value_enum, value_name = "FORM")]
    pub diagnostics: Option<DiagnosticsFormat>,
    /// When to use colors; auto honors NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub color: ColorWhen,
    /// The number of threads [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<NonZeroUsize>,
}

/// More than any machine has cores for; a run makes them all before it begins.
const MAX_THREADS: usize = 1024;

fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse::<NonZeroUsize>().ok();
    let number = number.filter(|number| number.get() <= MAX_THREADS);
    number.ok_or_else(|| format!("expected a number from 1 to {MAX_THREADS}"))
}

/// `--debug-mode`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DebugModeArg {
    /// For running pods; the workload stays unchanged
    #[default]
    Ephemeral,
    /// A container of the workload
    Sidecar,
}

/// `--diagnostics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiagnosticsFormat {
    /// With source lines, for people
    Text,
    /// Without source lines, for logs that other people can read
    Short,
    /// JSON, for programs
    Json,
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    #[default]
    /// In a terminal
    Auto,
    /// Also in files and pipes
    Always,
    /// Never
    Never,
}
