//! Grafts one text of any size from its reader to stdout. The text is read in blocks, the blocks are grafted on several
//! threads, and the results are put together in the order of the text.
//!
//! A named file is read a second time when the run has succeeded, so only its edits are kept in between. Stdin and
//! pipes can be read only once: their text is kept in a [`Spool`] beside the edits, or with `--stream` its result is
//! written to stdout at once. The end of a pipeline is a [`PipedText`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Stdout, Write};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::graft::DocumentRun;
use podgraft_core::graft::companions::WrittenObjects;
use podgraft_core::outcome::FileReport;
use podgraft_core::yaml::splice::write_spliced_part;

use crate::blocks::{DocumentBlock, DocumentBlocks};
use crate::edits::SpooledEdits;
use crate::problems::unreadable;
use crate::progress;
use crate::reread::{FileReader, OriginalFile, PIECE, write_edited, write_edited_file};
use crate::spool::{Spool, temporary_file_problem_or};
use crate::stdout::{ignore_broken_pipe, stdout_problem, unbuffered};
use crate::walk::Input;
use crate::write::changed_meanwhile;

/// Stack size of a worker in bytes, that of the main thread on most systems: the parser recurses as deep as the text
/// nests.
const STACK: usize = 8 << 20;

/// Bytes of a read-once text that are kept in memory; more go to a temporary file.
pub const IN_MEMORY: usize = 256 << 20;

/// Finished blocks that may wait for an earlier one. A worker that finishes more waits too, so memory stays bounded.
const MOST_WAITING: usize = 16;

/// When the result is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputTiming {
    /// Only when the whole run has succeeded: all or nothing.
    AtTheEnd,
    /// Block by block (`--stream`), even if a later block fails.
    Immediately,
}

/// A text that the pipeline has processed.
#[derive(Debug)]
pub struct PipedText {
    /// The length of the input in bytes.
    pub length: usize,
    text: TextKeeper,
    edits: SpooledEdits,
}

/// Where a text can be read again when the run has succeeded.
#[derive(Debug)]
enum TextKeeper {
    /// In the input file.
    Original(Arc<OriginalFile>),
    /// In the spool.
    Hold(Spool),
    /// Nowhere: its result goes to stdout at once.
    Stdout(BufWriter<Stdout>),
}

/// Reads a whole text and grafts it with `graft`, on this thread and `threads - 1` others.
pub fn pipe(
    input: &Input,
    opened: OpenedInput,
    threads: NonZeroUsize,
    release: OutputTiming,
    graft: impl Fn(DocumentRun<'_>) -> FileReport + Sync,
) -> Result<(FileReport, PipedText), Diagnostic> {
    let (source, original) = match opened {
        OpenedInput::Original(original) => (
            Box::new(FileReader::of(Arc::clone(&original))) as InputStream,
            Some(original),
        ),
        OpenedInput::Once(source) => (source, None),
    };
    let blocks = match &original {
        Some(original) => DocumentBlocks::new(source).of_length(original.length()),
        None => DocumentBlocks::new(source),
    };
    let text = match (release, original) {
        (OutputTiming::Immediately, _) => {
            TextKeeper::Stdout(BufWriter::with_capacity(PIECE, io::stdout()))
        }
        (OutputTiming::AtTheEnd, Some(original)) => TextKeeper::Original(original),
        (OutputTiming::AtTheEnd, None) => TextKeeper::Hold(Spool::in_memory_up_to(IN_MEMORY)),
    };
    let line = Pipeline {
        blocks: Mutex::new(blocks),
        order: Mutex::new(OrderedOutput::new(text)),
        has_moved: Condvar::new(),
        buffers: Mutex::new(Vec::new()),
        graft,
    };
    thread::scope(|scope| {
        // If the system refuses another thread, the threads that run do all the work.
        for _ in 1..threads.get() {
            let _ = Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, || line.work());
        }
        line.work();
    });
    line.order
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .finish(&input.name)
}

type InputStream = Box<dyn Read + Send>;

/// An input that can be read.
pub enum OpenedInput {
    /// A regular file, which can be read any number of times.
    Original(Arc<OriginalFile>),
    /// Stdin or a pipe, which can be read once.
    Once(InputStream),
}

/// Opens an input without reading its text.
pub fn open(input: &Input) -> Result<OpenedInput, Diagnostic> {
    let Some(path) = input.path() else {
        return Ok(OpenedInput::Once(Box::new(io::stdin())));
    };
    let original = File::open(path).and_then(|file| OriginalFile::of(&input.name, file));
    match original.map_err(|error| unreadable(&input.name, &error))? {
        Ok(original) => Ok(OpenedInput::Original(Arc::new(original))),
        Err(file) => Ok(OpenedInput::Once(Box::new(file))),
    }
}

impl PipedText {
    /// Whether the result is on stdout already.
    pub fn is_gone(&self) -> bool {
        matches!(self.text, TextKeeper::Stdout(_))
    }

    /// Returns the whole input text; empty if the result is on stdout already.
    ///
    /// # Errors
    /// If the input file has changed since it was read, or cannot be read again.
    pub fn read_again(self, name: &str) -> Result<Vec<u8>, Diagnostic> {
        let mut text = Vec::with_capacity(self.length);
        let read = match self.text {
            TextKeeper::Stdout(_) => Ok(0),
            TextKeeper::Hold(hold) => match hold.finish() {
                Ok(Ok(held)) => return Ok(held),
                Ok(Err(mut file)) => file.read_to_end(&mut text),
                Err(error) => Err(error),
            },
            TextKeeper::Original(original) => {
                check_unchanged(&original, self.length, name)?;
                FileReader::of(original).read_to_end(&mut text)
            }
        };
        read.map_err(|error| temporary_file_problem_or(&error, || unreadable(name, &error)))?;
        Ok(text)
    }

    /// Writes the result to stdout.
    ///
    /// # Errors
    /// If the input file has changed since it was read, or stdout cannot be written.
    pub fn release(self, name: &str, threads: NonZeroUsize) -> Result<(), Diagnostic> {
        let mut stdout = unbuffered().map_err(|error| not_written(&error))?;
        let length = self.length;
        let written = match self.text {
            TextKeeper::Stdout(_) => Ok(()),
            TextKeeper::Hold(hold) => hold.reader().and_then(|held| {
                write_edited(held, 0..length, self.edits.read()?, threads, &mut stdout)
            }),
            TextKeeper::Original(original) => {
                check_unchanged(&original, self.length, name)?;
                write_edited_file(&original, self.edits, threads, &mut stdout)
            }
        };
        ignore_broken_pipe(written).map_err(|error| not_written(&error))
    }
}

fn check_unchanged(original: &OriginalFile, length: usize, name: &str) -> Result<(), Diagnostic> {
    match original.is_unchanged(length) {
        Ok(true) => Ok(()),
        Ok(false) => Err(changed_meanwhile(name)),
        Err(error) => Err(unreadable(name, &error)),
    }
}

fn not_written(error: &io::Error) -> Diagnostic {
    temporary_file_problem_or(error, || stdout_problem(error))
}

/// The state that all worker threads share.
struct Pipeline<G> {
    blocks: Mutex<DocumentBlocks<InputStream>>,
    order: Mutex<OrderedOutput>,
    /// Signals that a block was put in order, or that the pipeline stopped.
    has_moved: Condvar,
    /// Buffers of finished blocks, to be reused.
    buffers: Mutex<Vec<Vec<u8>>>,
    graft: G,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<G: Fn(DocumentRun<'_>) -> FileReport> Pipeline<G> {
    /// The loop of a worker: grafts blocks until there are no more, or one of them fails.
    fn work(&self) {
        loop {
            let buffer = lock(&self.buffers).pop().unwrap_or_default();
            let block = match lock(&self.blocks).next(buffer) {
                Ok(Some(block)) => block,
                Ok(None) => return,
                Err(error) => {
                    lock(&self.order).stop(PipelineError::Read(error));
                    return self.has_moved.notify_all();
                }
            };
            let report = (self.graft)(DocumentRun {
                start: block.start,
                first_line: block.first_line,
                has_more: block.has_more,
                text: &block.text,
            });
            let mut order = lock(&self.order);
            order.put(block, report, |buffer| lock(&self.buffers).push(buffer));
            self.has_moved.notify_all();
            // No deadlock: the worker that holds the next block in order puts it before it waits, and that shortens the
            // queue.
            while order.waiting.len() > MOST_WAITING && order.fault.is_none() {
                order = self
                    .has_moved
                    .wait(order)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if order.fault.is_some() {
                self.has_moved.notify_all();
                return;
            }
        }
    }
}

/// Why the pipeline stopped before the end of a text.
#[derive(Debug)]
enum PipelineError {
    Read(io::Error),
    Write(io::Error),
    /// With `--stream`, nothing is written after a block with an error.
    Refused,
}

/// Collects the results of the blocks in their order.
struct OrderedOutput {
    /// The index of the block that comes next in the text.
    next: usize,
    /// Finished blocks whose predecessors are not finished, by index.
    waiting: BTreeMap<usize, (DocumentBlock, FileReport)>,
    text: TextKeeper,
    report: FileReport,
    edits: SpooledEdits,
    written_objects: WrittenObjects,
    length: usize,
    has_errors: bool,
    fault: Option<PipelineError>,
}

impl OrderedOutput {
    fn new(text: TextKeeper) -> Self {
        OrderedOutput {
            next: 0,
            waiting: BTreeMap::new(),
            text,
            report: FileReport::default(),
            edits: SpooledEdits::default(),
            written_objects: WrittenObjects::default(),
            length: 0,
            has_errors: false,
            fault: None,
        }
    }

    fn stop(&mut self, fault: PipelineError) {
        self.fault.get_or_insert(fault);
    }

    fn put(&mut self, block: DocumentBlock, report: FileReport, recycle: impl Fn(Vec<u8>)) {
        self.waiting.insert(block.index, (block, report));
        while self.fault.is_none()
            && let Some((block, report)) = self.waiting.remove(&self.next)
        {
            self.next += 1;
            self.add(&block, report);
            recycle(block.text);
        }
    }

    fn add(&mut self, block: &DocumentBlock, mut report: FileReport) {
        self.length += block.text.len();
        progress::add(block.text.len());
        self.written_objects.write_companions(&mut report);
        self.has_errors |= report.diagnostics.iter().any(Diagnostic::is_error);
        let edits = std::mem::take(&mut report.edits);
        let written = match &mut self.text {
            TextKeeper::Original(_) => self.edits.add(&edits),
            TextKeeper::Stdout(_) if self.has_errors => {
                self.fault = Some(PipelineError::Refused);
                Ok(())
            }
            TextKeeper::Hold(hold) => hold
                .write_all(&block.text)
                .and_then(|()| self.edits.add(&edits)),
            TextKeeper::Stdout(out) => write_spliced_part(&block.text, block.start, &edits, out),
        };
        self.report.append(report);
        self.report.limit_listed();
        if let Err(error) = written {
            self.stop(PipelineError::Write(error));
        }
    }

    fn finish(mut self, name: &str) -> Result<(FileReport, PipedText), Diagnostic> {
        match self.fault {
            Some(PipelineError::Read(error)) => return Err(unreadable(name, &error)),
            Some(PipelineError::Write(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(not_written(&error));
            }
            Some(PipelineError::Write(_) | PipelineError::Refused) | None => {}
        }
        if let TextKeeper::Stdout(stdout) = &mut self.text {
            ignore_broken_pipe(stdout.flush()).map_err(|error| not_written(&error))?;
        }
        let piped = PipedText {
            length: self.length,
            text: self.text,
            edits: self.edits,
        };
        Ok((self.report, piped))
    }
}
