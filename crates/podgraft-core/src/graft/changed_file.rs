//! A file whose output is edited further, and where in the file stands what is found in its output.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use crate::manifest::object::Object;
use crate::outcome::WorkloadReport;
use crate::source::{LineCounter, Place, Source};
use crate::yaml::splice::Edit;
use crate::yaml::stream::chunks;

/// A file and its output so far. Objects are pruned from the output, since the text around them may change, too.
pub(super) struct ChangedFile<'f> {
    pub name: &'f Arc<str>,
    pub output: &'f [u8],
    text: &'f [u8],
    offsets: InputOffsets,
    /// The byte ranges of the documents of `text`.
    documents: Vec<Range<usize>>,
    lines: RefCell<LineCounter<'f>>,
}

/// Where in the file an object stands.
pub(super) struct ObjectRanges {
    /// Its first byte.
    start: usize,
    /// Its list item, or its document.
    pub extent: Range<usize>,
    /// Its document.
    document: Range<usize>,
}

impl<'f> ChangedFile<'f> {
    pub(super) fn new(
        name: &'f Arc<str>,
        text: &'f [u8],
        edits: &[Edit],
        output: &'f [u8],
    ) -> Self {
        let documents = chunks(text).map(|chunk| chunk.start..chunk.start + chunk.text.len());
        ChangedFile {
            name,
            output,
            text,
            offsets: InputOffsets::of(edits),
            documents: documents.collect(),
            lines: RefCell::new(LineCounter::new(text, 1)),
        }
    }

    /// The place in the file of an offset in the output.
    pub(super) fn place(&self, at: usize) -> Place {
        let at = self.offsets.before(at);
        let whole = String::from_utf8_lossy(self.text);
        Source::new(Arc::clone(self.name), &whole).place(at..at)
    }

    /// Where in the file an object stands whose byte range in the output is given.
    pub(super) fn ranges(&self, object: &Object, in_output: &Range<usize>) -> ObjectRanges {
        let span = self.offsets.before(in_output.start)..self.offsets.before(in_output.end);
        let behind = self
            .documents
            .partition_point(|document| document.start <= span.start);
        let document = behind
            .checked_sub(1)
            .map_or(0..self.text.len(), |at| self.documents[at].clone());
        ObjectRanges {
            start: span.start,
            extent: match object.within {
                Some(_) => span,
                None => document.clone(),
            },
            document,
        }
    }

    /// Adds the line and the byte ranges of an object to its description.
    pub(super) fn placed(&self, described: WorkloadReport, ranges: ObjectRanges) -> WorkloadReport {
        WorkloadReport {
            line: self.lines.borrow_mut().line_at(ranges.start),
            extent: ranges.extent,
            document: ranges.document,
            ..described
        }
    }
}

/// Maps the offsets of an output to those of its input.
pub(super) struct InputOffsets {
    /// For each edit, the range of its text in the output, and the end of the range that it replaced in the input.
    edits: Vec<(Range<usize>, usize)>,
}

impl InputOffsets {
    pub(super) fn of(edits: &[Edit]) -> Self {
        let (mut in_output, mut in_input) = (0, 0);
        let edits = edits.iter().map(|edit| {
            let start = in_output + edit.at.start - in_input;
            (in_output, in_input) = (start + edit.text.len(), edit.at.end);
            (start..in_output, in_input)
        });
        InputOffsets {
            edits: edits.collect(),
        }
    }

    /// The input offset of an output offset. One in inserted text becomes the end of the range that it replaced.
    pub(super) fn before(&self, at: usize) -> usize {
        let behind = self.edits.partition_point(|(text, _)| text.start <= at);
        let (output_end, input_end) = match behind.checked_sub(1) {
            Some(last) => (self.edits[last].0.end, self.edits[last].1),
            None => (0, 0),
        };
        input_end + at.saturating_sub(output_end)
    }
}
