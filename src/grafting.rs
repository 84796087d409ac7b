//! Grafts the texts of a run: small ones in parallel, a large one on all threads, and one that need not be kept through
//! a pipe.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::graft::prune::not_taken_out;
use podgraft_core::graft::streaming::StreamingGraft;
use podgraft_core::graft::{RunContext, graft_on_threads, graft_parsed, graft_part};
use podgraft_core::outcome::FileReport;
use podgraft_core::yaml::tree::Tree;

use crate::manifests::manifests_of;
use crate::pipeline::{OpenedInput, OutputTiming, PipedText, pipe};
use crate::progress;
use crate::texts::InputBytes;
use crate::threads::{map_in_order, number};
use crate::walk::Input;

/// A text of more bytes is split among all threads.
const LARGE: usize = 4 << 20;

/// What all texts of a run are grafted with.
#[derive(Clone, Copy)]
pub struct Grafting<'r> {
    /// The policies, the options, and what the policies look up.
    pub run: RunContext<'r>,
    /// The number of threads, if it is stated.
    pub threads: Option<NonZeroUsize>,
    /// The tree of the only text, if it is parsed already.
    pub tree: Option<&'r Tree<'r>>,
}

/// The report of a text, and the byte ranges of it that go into a stream.
pub type GraftedText = (FileReport, Vec<Range<usize>>);

impl Grafting<'_> {
    /// Grafts one text through a pipe. If generated objects have to be removed, the text is read again as a whole.
    pub fn pipe(
        self,
        texts: &mut [InputBytes],
        opened: OpenedInput,
        release: OutputTiming,
    ) -> Result<(GraftedText, Option<PipedText>), Diagnostic> {
        let [(input, text)] = texts else {
            unreachable!("a pipe has one text")
        };
        let passing = (release == OutputTiming::Immediately)
            .then(|| StreamingGraft::new(&input.name, self.run));
        let (mut report, piped) = match passing.flatten().map(Mutex::new) {
            Some(passing) => pipe(input, opened, NonZeroUsize::MIN, release, |run| {
                let mut passing = passing.lock().unwrap_or_else(PoisonError::into_inner);
                passing.graft(run)
            })?,
            None => pipe(input, opened, number(self.threads), release, |part| {
                graft_part(&input.name, part, self.run)
            })?,
        };
        if let Some(object) = report.prunable().first() {
            if !piped.is_gone() {
                *text = Arc::new(piped.read_again(&input.name)?);
                let grafted = self.graft(texts).pop();
                return Ok((grafted.expect("one text went in"), None));
            }
            let problem = not_taken_out(object);
            report.diagnostics.push(problem);
        }
        let whole_range = std::iter::once(0..piped.length).collect();
        Ok(((report, whole_range), Some(piped)))
    }

    /// Grafts the small texts in parallel, then each large one on all threads.
    pub fn graft(self, texts: &[InputBytes]) -> Vec<GraftedText> {
        let is_large = |text: &[u8]| text.len() > LARGE;
        let small = map_in_order(texts, self.threads, |text| {
            (!is_large(&text.1)).then(|| self.graft_text(text, NonZeroUsize::MIN))
        });
        let threads = number(self.threads);
        let reports = small.into_iter().zip(texts);
        reports
            .map(|(report, text)| report.unwrap_or_else(|| self.graft_text(text, threads)))
            .collect()
    }

    fn graft_text(self, (input, text): &InputBytes, threads: NonZeroUsize) -> GraftedText {
        let report = match self.tree {
            Some(tree) => graft_parsed(tree, &input.name, text, self.run),
            None => graft_on_threads(threads, &input.name, text, self.run),
        };
        let parts = parts_of(input, text, &report);
        progress::add(text.len());
        (report, parts)
    }
}

fn parts_of(input: &Input, text: &[u8], report: &FileReport) -> Vec<Range<usize>> {
    match (input.is_found(), report.objects) {
        (true, 0) => Vec::new(),
        (true, _) => manifests_of(text, report),
        (false, _) => std::iter::once(0..text.len()).collect(),
    }
}
