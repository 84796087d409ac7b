//! The flags about what is said, and how.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What is said, and how.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Fail on warnings
    #[arg(long)]
    pub strict: bool,
    /// No report and no warnings on stderr, only errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How problems are shown; json: one object a line on stderr and nothing else there [default: text]
    #[arg(long, value_enum, value_name = "FORM")]
    pub diagnostics: Option<DiagnosticsFormat>,
    /// Colours; auto honours NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub color: ColorWhen,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<NonZeroUsize>,
}

fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "wanted a number from 1 on".to_owned())
}

/// `--debug-mode`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DebugModeArg {
    /// For pods that run; the workload stays as it is
    #[default]
    Ephemeral,
    /// A container of the workload
    Sidecar,
}

/// `--diagnostics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiagnosticsFormat {
    /// With the source line, for people
    Text,
    /// Without source lines, for logs that others read
    Short,
    /// For machines
    Json,
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    #[default]
    /// When a terminal is there
    Auto,
    /// In files and pipes, too
    Always,
    /// Not at all
    Never,
}
