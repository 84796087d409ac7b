//! Prints diagnostics on stderr: for people (drawn by miette), as short lines, or as JSON.

mod excerpts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::sync::OnceLock;

use miette::{GraphicalReportHandler, GraphicalTheme};
use podgraft_core::diagnostic::{Code, Diagnostic, Severity};
use podgraft_core::report::grouping::{self, group_alike};
use podgraft_core::report::json::render_diagnostic;
use podgraft_core::wording::{
    Paint, brief, for_log, is_unsafe, lines, one_line, severities, severity, wrap_options,
};
use textwrap::{WordSeparator, WordSplitter};

use crate::args;
use crate::exit::Exit;
use crate::stdout::print;
use excerpts::DiagnosticView;

/// The most diagnostics of one code that are shown to people; the others are counted.
const MOST_OF_A_CODE: usize = 100;
const WIDTH: usize = 110;

/// The width of the terminal of a stream, at least 40; `None` if it is no terminal.
#[cfg(not(target_family = "wasm"))]
macro_rules! columns_of {
    ($stream:expr) => {
        terminal_size::terminal_size_of($stream).map(|(columns, _)| usize::from(columns.0).max(40))
    };
}

/// WebAssembly has no terminals.
#[cfg(target_family = "wasm")]
macro_rules! columns_of {
    ($stream:expr) => {
        None::<usize>
    };
}

/// The width of the terminal that stdout goes to, at least 40; `None` where it goes elsewhere.
pub fn stdout_columns() -> Option<usize> {
    columns_of!(io::stdout())
}

/// The width of the terminal that stderr goes to, at least 40; `None` where it goes elsewhere.
fn stderr_columns() -> Option<usize> {
    columns_of!(io::stderr())
}

/// The width of diagnostics in columns: [`WIDTH`], or that of the terminal if it is narrower.
fn width() -> usize {
    stderr_columns().map_or(WIDTH, |columns| WIDTH.min(columns))
}

/// Folds long lines between words, as a terminal would break them inside words.
fn wrapped(text: &str) -> String {
    let Some(width) = stderr_columns() else {
        return text.to_owned();
    };
    let fold = |line: &str| textwrap::fill(line, wrap_options(width, "    ")) + "\n";
    text.lines().map(fold).collect()
}

/// Prints messages on stderr and stdout.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    color: args::ColorWhen,
    diagnostics: args::DiagnosticsFormat,
    is_quiet: bool,
}

impl Console {
    /// A console with the settings of the flags.
    pub fn new(output: &args::OutputArgs) -> Self {
        Console {
            color: output.color,
            diagnostics: output.diagnostics.unwrap_or(args::DiagnosticsFormat::Text),
            is_quiet: output.quiet,
        }
    }

    /// A console for commands whose only output flag is `--color`, or that have none.
    pub fn plain(color: args::ColorWhen) -> Self {
        Console::new(&args::OutputArgs {
            color,
            ..args::OutputArgs::default()
        })
    }

    /// Prints a result on stdout. Returns `exit`, or shows why it cannot be printed.
    pub fn print(self, result: &[u8], exit: Exit) -> Exit {
        match print(result) {
            Ok(()) => exit,
            Err(problem) => {
                self.show(&[problem]);
                Exit::Refused
            }
        }
    }

    /// Whether to colour what goes to stdout.
    pub fn stdout_paint(self) -> Paint {
        self.paint(&io::stdout())
    }

    /// Sources: <https://no-color.org>, <https://bixense.com/clicolors/>.
    fn paint(self, stream: &impl IsTerminal) -> Paint {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let is_dumb = set("TERM").is_some_and(|term| term == "dumb");
        let has_colours = match self.color {
            args::ColorWhen::Always => true,
            args::ColorWhen::Never => false,
            args::ColorWhen::Auto => {
                set("NO_COLOR").is_none() && (is_forced || stream.is_terminal() && !is_dumb)
            }
        };
        if has_colours {
            Paint::Colours
        } else {
            Paint::Plain
        }
    }

    /// Shows diagnostics sorted by severity, the errors last; a severity keeps the order of files and lines.
    pub fn show(self, diagnostics: &[Diagnostic]) {
        let is_wanted = |diagnostic: &&Diagnostic| diagnostic.is_error() || !self.is_quiet;
        let mut sorted: Vec<&Diagnostic> = diagnostics.iter().filter(is_wanted).collect();
        sorted.sort_by_key(|diagnostic| diagnostic.severity);
        let shown = match self.diagnostics {
            args::DiagnosticsFormat::Json => sorted
                .iter()
                .map(|diagnostic| render_diagnostic(&with_short_quotes(diagnostic)) + "\n")
                .collect(),
            args::DiagnosticsFormat::Text => render_text(&sorted, &self.renderer()),
            args::DiagnosticsFormat::Short => {
                for_log(sorted.iter().copied().map(render_short).collect())
            }
        };
        write_stderr(&shown);
    }

    /// Shows diagnostics one by one, in their order.
    pub fn show_each(self, diagnostics: &[Diagnostic]) {
        diagnostics
            .chunks(1)
            .for_each(|diagnostic| self.show(diagnostic));
    }

    /// Prints a message for people; nothing under `--quiet` or `--diagnostics json`.
    pub fn inform(self, text: &str) {
        if !self.is_quiet && self.diagnostics != args::DiagnosticsFormat::Json {
            write_stderr(&for_log(wrapped(&lines(text))));
        }
    }

    /// Prints the last line of a run: `podgraft: 2 errors, 1 warning; nothing was written`.
    pub fn conclude(self, diagnostics: &[Diagnostic], outcome: &str) {
        let of = |severity| {
            diagnostics
                .iter()
                .filter(move |found| found.severity == severity)
        };
        let counts = severities(|severity| match severity {
            Severity::Note => 0,
            Severity::Warning | Severity::Error => of(severity).count(),
        });
        if self.diagnostics != args::DiagnosticsFormat::Json {
            write_stderr(&format!("podgraft: {counts}; {outcome}\n"));
        }
    }

    fn renderer(self) -> GraphicalReportHandler {
        let theme = match (supports_unicode(), self.paint(&io::stderr())) {
            (true, Paint::Colours) => GraphicalTheme::unicode(),
            (true, Paint::Plain) => GraphicalTheme::unicode_nocolor(),
            (false, Paint::Colours) => GraphicalTheme::ascii(),
            (false, Paint::Plain) => GraphicalTheme::none(),
        };
        GraphicalReportHandler::new_themed(theme)
            .with_width(width())
            .with_break_words(false)
            .with_word_separator(WordSeparator::AsciiSpace)
            .with_word_splitter(WordSplitter::NoHyphenation)
            .with_links(false)
    }
}

/// Prints a message for people, for commands without output flags.
pub fn inform(text: &str) {
    write_stderr(&lines(text));
}

/// Whether the locale is UTF-8. The first of the variables that is set decides, as POSIX says.
fn supports_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    let locale = locale
        .map(|value| value.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    cfg!(windows) || locale.contains("utf-8") || locale.contains("utf8")
}

/// A copy of all that goes to stderr: some programs that run podgraft do not show its stderr.
static LOG: OnceLock<File> = OnceLock::new();

/// Opens the file of `PODGRAFT_LOG_FILE` and appends all later messages to it.
pub fn log_to_file() {
    let Some(path) = std::env::var_os("PODGRAFT_LOG_FILE").filter(|path| !path.is_empty()) else {
        return;
    };
    match File::options().append(true).create(true).open(&path) {
        Ok(file) => {
            let _ = LOG.set(file);
        }
        Err(error) => write_stderr(&format!(
            "podgraft: PODGRAFT_LOG_FILE `{}` cannot be written: {error}\n",
            path.display()
        )),
    }
}

/// The diagnostic with very long quoted values shortened.
fn with_short_quotes(diagnostic: &Diagnostic) -> Diagnostic {
    let mut shortened = diagnostic.clone();
    shortened.message = brief(&shortened.message).into_owned();
    shortened.help = shortened.help.map(|help| brief(&help).into_owned());
    shortened
        .labels
        .iter_mut()
        .for_each(|label| label.text = brief(&label.text).into_owned());
    shortened
}

/// A diagnostic in plain lines, without an excerpt of its source: manifests may hold secrets.
fn render_short(diagnostic: &Diagnostic) -> String {
    let (severity, code) = (severity(diagnostic.severity), diagnostic.code.name());
    let mut shown = format!("{severity}[{code}]: {}\n", sentence(&diagnostic.message));
    for label in &diagnostic.labels {
        let link = one_line(&label.place.link());
        let _ = writeln!(shown, "  at {link}: {}", sentence(&label.text));
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(shown, "  help: {}", sentence(help));
    }
    let _ = writeln!(shown, "  more: podgraft explain {code}");
    shown
}

fn write_stderr(text: &str) {
    if let Some(mut log) = LOG.get() {
        let _ = log.write_all(text.as_bytes());
    }
    // A closed stderr leaves no way to report this.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn render_text(diagnostics: &[&Diagnostic], renderer: &GraphicalReportHandler) -> String {
    let mut shown = String::new();
    let mut counts: BTreeMap<Code, usize> = BTreeMap::new();
    for (diagnostic, others) in group_alike(diagnostics) {
        let number = counts.entry(diagnostic.code).or_default();
        *number += 1;
        if *number <= MOST_OF_A_CODE {
            render_one(diagnostic, &others, renderer, &mut shown);
        }
    }
    for (code, number) in counts {
        if number > MOST_OF_A_CODE {
            let (more, code) = (number - MOST_OF_A_CODE, code.name());
            let _ = writeln!(
                shown,
                "... and {more} more of `{code}`; --diagnostics json lists all\n"
            );
        }
    }
    shown
}

fn render_one(
    diagnostic: &Diagnostic,
    others: &[&Diagnostic],
    renderer: &GraphicalReportHandler,
    shown: &mut String,
) {
    let (view, code) = (DiagnosticView::of(diagnostic), diagnostic.code.name());
    let mut rendered = String::new();
    if renderer.render_report(&mut rendered, &view).is_err() {
        rendered = format!("{code}: {}\n", view.message);
    }
    shown.push_str(&for_log(rendered));
    if !others.is_empty() {
        let more = grouping::and_more_named(diagnostic, others, "--diagnostics json");
        let _ = writeln!(shown, "  {more}");
    }
    let _ = writeln!(shown, "  more: podgraft explain {code}\n");
}

/// A text on one line, with long values shortened and unsafe characters escaped.
fn sentence(text: &str) -> String {
    one_line(&brief(text))
}

/// Replaces unsafe characters, such as control characters, by `?`, one for each byte: byte offsets stay right.
fn without_unsafe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match is_unsafe(char) && char != '\t' {
            true => shown.push_str(&"?".repeat(char.len_utf8())),
            false => shown.push(char),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use podgraft_core::source::Source;

    fn shown(diagnostics: &[Diagnostic]) -> String {
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_links(false);
        render_text(&diagnostics.iter().collect::<Vec<_>>(), &handler)
    }

    #[test]
    fn an_empty_line_and_the_end_of_a_line_can_be_shown() {
        let source = Source::new("a.yaml", "");
        assert!(
            shown(&[Diagnostic::error(Code::NoManifests, "empty").at(source.place(0..0), "here")])
                .contains("a.yaml:1:1")
        );
        let source = Source::new("b.yaml", "a: 1\n");
        assert!(
            shown(&[Diagnostic::error(Code::NotYaml, "x").at(source.place(4..4), "here")])
                .contains("b.yaml:1:5")
        );
    }

    #[test]
    fn a_flood_of_one_code_is_cut_and_counted() {
        let many: Vec<Diagnostic> = (0..103)
            .map(|number| Diagnostic::error(Code::Conflict, format!("n{number};")))
            .collect();
        let text = shown(&many);
        assert!(text.contains("n99;") && !text.contains("n100;"));
        assert!(text.contains("and 3 more of `conflict`"));
    }
}
