//! Texts of manifests that are read part by part, on several threads.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::{fmt, io, iter};

use crate::source::LineCounter;
use crate::threads::map_in_order;
use crate::yaml::stream::chunks;

/// The bytes of a part of a text in memory.
const PART: usize = 256 << 10;

/// A text of manifests that can be read repeatedly.
pub trait SourceText: fmt::Debug + Send + Sync {
    /// The name of the text in places.
    fn name(&self) -> &Arc<str>;

    /// Returns the consecutive parts of the whole text. It ends after an error.
    fn parts(&self) -> TextParts<'_>;

    /// Returns the bytes of a range.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>>;
}

/// The parts of a text in their order.
pub type TextParts<'t> = Box<dyn Iterator<Item = io::Result<TextPart<'t>>> + Send + 't>;

/// Consecutive documents of a text.
#[derive(Debug, Clone)]
pub struct TextPart<'t> {
    /// The byte offset in the text.
    pub start: usize,
    /// The line of the text on which the part begins, from 1.
    pub first_line: usize,
    /// Its bytes.
    pub text: Cow<'t, [u8]>,
}

/// A text in memory.
#[derive(Debug)]
pub struct InMemoryText {
    /// The name of the text in places.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<Vec<u8>>,
}

impl SourceText for InMemoryText {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn parts(&self) -> TextParts<'_> {
        let mut lines = LineCounter::new(&self.text, 1);
        let mut chunks = chunks(&self.text);
        let runs = iter::from_fn(move || chunks.next_run(PART));
        Box::new(runs.map(move |run| {
            Ok(TextPart {
                start: run.start,
                first_line: lines.line_at(run.start),
                text: Cow::Borrowed(run.text),
            })
        }))
    }

    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        Ok(self.text[range].to_vec())
    }
}

/// Maps each part of the texts, on up to `threads` threads. `map` gets the index of the text and the part. The results
/// are in the order of the parts, each with the index of its text.
pub fn map_parts<R: Send>(
    texts: &[Arc<dyn SourceText>],
    threads: NonZeroUsize,
    map: impl Fn(usize, TextPart<'_>) -> R + Sync,
) -> Vec<(usize, io::Result<R>)> {
    let mut parts = texts.iter().enumerate().flat_map(|(index, text)| {
        let parts = text.parts();
        parts.map(move |part| (index, part))
    });
    let first: Vec<_> = parts.by_ref().take(2).collect();
    // A single part needs no further thread.
    let threads = if first.len() < 2 { 1 } else { threads.get() };
    let parts = first.into_iter().chain(parts);
    let results = map_in_order(threads, parts, |(index, part)| {
        (index, part.map(|part| map(index, part)))
    });
    results.collect()
}
