//! A diagnostic as miette renders it, with excerpts of its sources.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::sync::Arc;

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use podgraft_core::diagnostic::{Diagnostic, Severity};
use podgraft_core::excerpt::narrowed;
use podgraft_core::source::Place;
use podgraft_core::wording::one_line;

use super::{sentence, without_unsafe};

/// A diagnostic in the form that miette renders.
#[derive(Debug)]
pub(super) struct DiagnosticView<'a> {
    diagnostic: &'a Diagnostic,
    labels: Vec<(Cow<'a, Place>, &'a str)>,
    excerpts: Excerpts,
    pub(super) message: String,
    help: Option<String>,
}

/// The source lines that a diagnostic shows. They may come from several files, and miette takes offsets into one text.
/// So they are laid out one after the other in a virtual text, and each piece knows its file and line.
#[derive(Debug, Default)]
struct Excerpts {
    pieces: Vec<Excerpt>,
}

#[derive(Debug)]
struct Excerpt {
    /// Offset in the virtual text.
    start: usize,
    /// The line with its line end.
    text: String,
    source: Arc<str>,
    line: usize,
    /// Columns cut off the front of a long line.
    cut: usize,
}

impl Excerpt {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

impl<'a> DiagnosticView<'a> {
    pub(super) fn of(diagnostic: &'a Diagnostic) -> Self {
        let mut excerpts = Excerpts::default();
        let labels = diagnostic.labels.iter();
        let labels: Vec<_> = labels
            .map(|label| (narrowed(&label.place), &*label.text))
            .collect();
        for (place, _) in &labels {
            excerpts.add(place);
        }
        let help = diagnostic.help.as_deref().map(sentence);
        DiagnosticView {
            diagnostic,
            labels,
            excerpts,
            message: sentence(&diagnostic.message),
            help,
        }
    }

    fn spans(&self) -> impl Iterator<Item = LabeledSpan> {
        let labels = self.labels.iter().enumerate();
        labels.filter_map(|(index, (place, text))| self.span(index, place, text))
    }

    fn span(&self, index: usize, place: &Place, text: &str) -> Option<LabeledSpan> {
        let piece = self.excerpts.piece_of(place)?;
        let text = (!text.is_empty()).then(|| sentence(text));
        let len = place.end.saturating_sub(place.start);
        let start = piece.start + place.start.min(piece.text.len() - 1);
        Some(match index {
            0 => LabeledSpan::new_primary_with_span(text, (start, len)),
            _ => LabeledSpan::new(text, start, len),
        })
    }
}

impl Excerpts {
    fn piece_of(&self, place: &Place) -> Option<&Excerpt> {
        self.pieces.iter().find(|piece| {
            piece.source == place.source
                && piece.line == place.line
                && piece.text.trim_end_matches('\n') == without_unsafe(&place.excerpt)
        })
    }

    fn add(&mut self, place: &Place) {
        if self.piece_of(place).is_some() {
            return;
        }
        let column = place
            .excerpt
            .get(..place.start)
            .map_or(0, |before| before.chars().count());
        self.pieces.push(Excerpt {
            start: self.pieces.last().map_or(0, Excerpt::end),
            text: without_unsafe(&place.excerpt) + "\n",
            source: Arc::clone(&place.source),
            line: place.line,
            cut: (place.column - 1).saturating_sub(column),
        });
    }
}

impl SourceCode for Excerpts {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        context_before: usize,
        _context_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        // An empty span at the boundary of two pieces belongs to the second.
        let holds = |piece: &&Excerpt| {
            (piece.start..piece.end()).contains(&span.offset())
                && span.offset() + span.len() <= piece.end()
        };
        let piece = self.pieces.iter().find(holds);
        let piece = piece.ok_or(MietteError::OutOfBounds)?;
        // miette reads the primary span without context to print `file:line:column` in the heading. Only there the
        // column counts.
        let before = piece.text.get(..span.offset() - piece.start);
        let column = match context_before {
            0 => piece.cut + before.map_or(0, |before| before.chars().count()),
            _ => 0,
        };
        Ok(Box::new(MietteSpanContents::new_named(
            one_line(&piece.source),
            piece.text.as_bytes(),
            (piece.start, piece.text.len()).into(),
            piece.line - 1,
            column,
            1,
        )))
    }
}

impl Display for DiagnosticView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DiagnosticView<'_> {}

impl miette::Diagnostic for DiagnosticView<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.diagnostic.code.name()))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Note => miette::Severity::Advice,
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.excerpts.pieces.is_empty()).then_some(&self.excerpts as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.spans()))
    }
}
