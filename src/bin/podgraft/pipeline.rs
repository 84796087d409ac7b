//! One text of any size from its reader to stdout: read in blocks, grafted on several threads, put together in order.
//!
//! A named file is read a second time when the run has succeeded, so only its edits are kept in between. What can be
//! read only once is kept in a [`Hold`] beside them, or with `--stream` goes to stdout as it comes. What comes of either
//! is [`Piped`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Stdout, Write};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};

use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::graft::Run;
use podgraft::graft::settle::Settling;
use podgraft::outcome::FileReport;
use podgraft::yaml::splice::Edit;

use crate::blocks::{Block, Blocks};
use crate::edits::KeptEdits;
use crate::hold::{Hold, unless_unheld};
use crate::output::unbuffered;
use crate::progress;
use crate::reread::{FromStart, Original, PIECE, write_edited, write_edited_file};
use crate::walk::{Input, unreadable};

/// As the main thread has it: parsing goes as deep as the text nests.
const STACK: usize = 8 << 20;

/// So much of a text that can be read only once is kept in memory.
pub const IN_MEMORY: usize = 256 << 20;

/// So many finished blocks may wait for one before them.
const MOST_WAITING: usize = 16;

/// How the result gets to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// When the run has succeeded.
    AtTheEnd,
    /// As it comes.
    Immediately,
}

/// A text that went through.
#[derive(Debug)]
pub struct Piped {
    /// Its bytes.
    pub length: usize,
    text: Kept,
    edits: KeptEdits,
}

/// Where a text is, to be read again.
#[derive(Debug)]
enum Kept {
    /// In its file.
    InFile(Arc<Original>),
    /// Here.
    Held(Hold),
    /// Nowhere: its result is on stdout.
    Gone,
}

/// Reads and grafts a whole text.
///
/// # Errors
/// When it cannot be read, or its result cannot be kept.
pub fn pipe(
    input: &Input,
    opened: Opened,
    threads: NonZeroUsize,
    release: Release,
    graft: impl Fn(Run<'_>) -> FileReport + Sync,
) -> Result<(FileReport, Piped), Diagnostic> {
    let (source, original) = match opened {
        Opened::Original(original) => (
            Box::new(FromStart::of(Arc::clone(&original))) as Source,
            Some(original),
        ),
        Opened::Once(source) => (source, None),
    };
    let sink = match (release, original) {
        (Release::Immediately, _) => Sink::Stdout(BufWriter::with_capacity(PIECE, io::stdout())),
        (Release::AtTheEnd, Some(original)) => Sink::Original(original),
        (Release::AtTheEnd, None) => Sink::Hold(Hold::in_memory_up_to(IN_MEMORY)),
    };
    let line = Line {
        blocks: Mutex::new(Blocks::new(source)),
        order: Mutex::new(Order::new(sink)),
        has_moved: Condvar::new(),
        buffers: Mutex::new(Vec::new()),
        graft,
    };
    thread::scope(|scope| {
        // Where the system gives no more threads, those that run do the work.
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

type Source = Box<dyn Read + Send>;

/// An input that can be read.
pub enum Opened {
    /// As often as is asked.
    Original(Arc<Original>),
    /// Once.
    Once(Source),
}

/// Opens an input.
///
/// # Errors
/// When it cannot be read.
pub fn open(input: &Input) -> Result<Opened, Diagnostic> {
    let Some(path) = input.path() else {
        return Ok(Opened::Once(Box::new(io::stdin())));
    };
    let original = File::open(path).and_then(|file| Original::of(&input.name, file));
    match original.map_err(|error| unreadable(&input.name, &error))? {
        Ok(original) => Ok(Opened::Original(Arc::new(original))),
        Err(file) => Ok(Opened::Once(Box::new(file))),
    }
}

impl Piped {
    /// Whether the result is on stdout already.
    pub fn is_gone(&self) -> bool {
        matches!(self.text, Kept::Gone)
    }

    /// The whole text as it was read; none that is on stdout already.
    ///
    /// # Errors
    /// When the input's file is another by now, or cannot be read again.
    pub fn read_again(self, name: &str) -> Result<Vec<u8>, Diagnostic> {
        let mut text = Vec::with_capacity(self.length);
        let read = match self.text {
            Kept::Gone => Ok(0),
            Kept::Held(hold) => hold
                .reader()
                .and_then(|mut held| held.read_to_end(&mut text)),
            Kept::InFile(original) => {
                check_unchanged(&original, self.length, name)?;
                FromStart::of(original).read_to_end(&mut text)
            }
        };
        read.map_err(|error| unless_unheld(&error, || unreadable(name, &error)))?;
        Ok(text)
    }

    /// Writes the result to stdout.
    ///
    /// # Errors
    /// When the input's file is another by now, or stdout takes nothing.
    pub fn release(self, name: &str, threads: NonZeroUsize) -> Result<(), Diagnostic> {
        let mut stdout = unbuffered().map_err(|error| not_written(&error))?;
        let length = self.length;
        let written = match self.text {
            Kept::Gone => Ok(()),
            Kept::Held(hold) => {
                let read = self
                    .edits
                    .read()
                    .and_then(|edits| Ok((hold.reader()?, edits)));
                read.and_then(|(held, edits)| {
                    write_edited(held, 0..length, edits, threads, &mut stdout)
                })
            }
            Kept::InFile(original) => {
                check_unchanged(&original, self.length, name)?;
                write_edited_file(&original, self.edits, threads, &mut stdout)
            }
        };
        unless_closed(written).map_err(|error| not_written(&error))
    }
}

fn check_unchanged(original: &Original, length: usize, name: &str) -> Result<(), Diagnostic> {
    match original.is_unchanged(length) {
        Ok(true) => Ok(()),
        Ok(false) => Err(changed_meanwhile(name)),
        Err(error) => Err(unreadable(name, &error)),
    }
}

fn changed_meanwhile(name: &str) -> Diagnostic {
    Diagnostic::error(
        Code::File,
        format!("`{name}` was changed by somebody else during the run"),
    )
    .help("run podgraft again")
}

fn not_written(error: &io::Error) -> Diagnostic {
    unless_unheld(error, || {
        Diagnostic::error(Code::File, format!("stdout cannot be written: {error}"))
    })
}

/// That nobody reads stdout to its end is no error.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// What all threads share.
struct Line<G> {
    blocks: Mutex<Blocks<Source>>,
    order: Mutex<Order>,
    has_moved: Condvar,
    /// Rooms of blocks that are done.
    buffers: Mutex<Vec<Vec<u8>>>,
    graft: G,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<G: Fn(Run<'_>) -> FileReport> Line<G> {
    /// Takes blocks until there are no more.
    fn work(&self) {
        loop {
            let buffer = lock(&self.buffers).pop().unwrap_or_default();
            let block = match lock(&self.blocks).next(buffer) {
                Ok(Some(block)) => block,
                Ok(None) => return,
                Err(error) => {
                    lock(&self.order).stop(Fault::Read(error));
                    return self.has_moved.notify_all();
                }
            };
            let Block {
                start,
                first_line,
                has_more,
                ..
            } = block;
            let part = Run {
                start,
                first_line,
                has_more,
                text: &block.text,
            };
            let report = (self.graft)(part);
            let mut order = lock(&self.order);
            order.put(block, report, |buffer| lock(&self.buffers).push(buffer));
            self.has_moved.notify_all();
            // Whoever holds the next block puts it there without waiting.
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

/// Why a text did not get to its end.
#[derive(Debug)]
enum Fault {
    Read(io::Error),
    Write(io::Error),
    /// With `--stream` nothing goes out behind an error.
    Refused,
}

/// Puts what comes of the blocks together, in their order.
struct Order {
    next: usize,
    waiting: BTreeMap<usize, (Block, FileReport)>,
    sink: Sink,
    report: FileReport,
    edits: KeptEdits,
    settling: Settling,
    length: usize,
    has_errors: bool,
    fault: Option<Fault>,
}

enum Sink {
    Original(Arc<Original>),
    Hold(Hold),
    Stdout(BufWriter<Stdout>),
}

impl Order {
    fn new(sink: Sink) -> Self {
        Order {
            next: 0,
            waiting: BTreeMap::new(),
            sink,
            report: FileReport::default(),
            edits: KeptEdits::default(),
            settling: Settling::default(),
            length: 0,
            has_errors: false,
            fault: None,
        }
    }

    fn stop(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    fn put(&mut self, block: Block, report: FileReport, recycle: impl Fn(Vec<u8>)) {
        self.waiting.insert(block.index, (block, report));
        while self.fault.is_none()
            && let Some((block, report)) = self.waiting.remove(&self.next)
        {
            self.next += 1;
            self.add(&block, report);
            recycle(block.text);
        }
    }

    fn add(&mut self, block: &Block, mut report: FileReport) {
        self.length += block.text.len();
        progress::add(block.text.len());
        self.settling.settle(&mut report);
        self.has_errors |= report.diagnostics.iter().any(Diagnostic::is_error);
        let edits = std::mem::take(&mut report.edits);
        let written = match &mut self.sink {
            Sink::Original(_) => self.edits.add(&edits),
            Sink::Stdout(_) if self.has_errors => {
                self.fault = Some(Fault::Refused);
                Ok(())
            }
            Sink::Hold(hold) => hold
                .write_all(&block.text)
                .and_then(|()| self.edits.add(&edits)),
            Sink::Stdout(out) => write_spliced(block, edits, out),
        };
        self.report.append(report);
        self.report.shorten();
        if let Err(error) = written {
            self.stop(Fault::Write(error));
        }
    }

    fn finish(self, name: &str) -> Result<(FileReport, Piped), Diagnostic> {
        match self.fault {
            Some(Fault::Read(error)) => return Err(unreadable(name, &error)),
            Some(Fault::Write(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(not_written(&error));
            }
            Some(Fault::Write(_) | Fault::Refused) | None => {}
        }
        let text = match self.sink {
            Sink::Original(original) => Kept::InFile(original),
            Sink::Hold(hold) => Kept::Held(hold),
            Sink::Stdout(mut stdout) => {
                unless_closed(stdout.flush()).map_err(|error| not_written(&error))?;
                Kept::Gone
            }
        };
        Ok((
            self.report,
            Piped {
                length: self.length,
                text,
                edits: self.edits,
            },
        ))
    }
}

/// Writes a block with its edits, whose places are the whole text's.
fn write_spliced(block: &Block, mut edits: Vec<Edit>, out: &mut impl Write) -> io::Result<()> {
    for edit in &mut edits {
        edit.at = edit.at.start - block.start..edit.at.end - block.start;
    }
    podgraft::yaml::splice::write_spliced(&block.text, &edits, out)
}
