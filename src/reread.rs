//! Reads a text a second time and writes it with its edits. Only the edits are kept between the two passes.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::iter;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::SystemTime;

use podgraft_core::inventory::{SourceText, TextPart, TextParts};
use podgraft_core::yaml::splice::Edit;

use crate::blocks::{DocumentBlocks, fill, set_length};
use crate::edits::SpooledEdits;

/// Bytes of a piece in which a text is read and written: small enough to stay in the cache in between.
pub const PIECE: usize = 256 << 10;

/// Pieces that may be ready before they are written.
const AHEAD: usize = 4;

/// An input file that is read again, with the metadata that shows whether it has changed.
#[derive(Debug)]
pub struct OriginalFile {
    name: Arc<str>,
    /// Its position is shared: every reader seeks first.
    file: Mutex<File>,
    length: u64,
    changed: Option<SystemTime>,
}

impl OriginalFile {
    /// Wraps a regular file. Gives the file back as `Err` if it is not regular and can be read only once.
    pub fn of(name: &Arc<str>, file: File) -> io::Result<Result<Self, File>> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Err(file));
        }
        Ok(Ok(OriginalFile {
            name: Arc::clone(name),
            file: Mutex::new(file),
            length: metadata.len(),
            changed: modified(&metadata),
        }))
    }

    /// The length in bytes when the file was opened.
    pub fn length(&self) -> usize {
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }

    /// Whether the file is as it was when it was opened. `read` is the number of bytes that were read of it.
    pub fn is_unchanged(&self, read: usize) -> io::Result<bool> {
        let metadata = self.file().metadata()?;
        Ok(metadata.len() == self.length
            && read as u64 == self.length
            && modified(&metadata) == self.changed)
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file();
        file.seek(SeekFrom::Start(at))?;
        file.read(buffer)
    }
}

impl SourceText for OriginalFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn parts(&self) -> TextParts<'_> {
        let mut blocks = Some(DocumentBlocks::new(FileReader::of(self)).of_length(self.length()));
        Box::new(iter::from_fn(move || {
            let block = blocks.as_mut()?.next(Vec::new()).transpose()?;
            if block.is_err() {
                blocks = None;
            }
            Some(block.map(|block| TextPart {
                start: block.start,
                first_line: block.first_line,
                text: block.text.into(),
            }))
        }))
    }

    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; range.len()];
        let mut file = self.file();
        file.seek(SeekFrom::Start(range.start as u64))?;
        file.read_exact(&mut bytes).map(|()| bytes)
    }
}

/// Reads a shared file from its start, with a position of its own.
#[derive(Debug)]
pub struct FileReader<O> {
    original: O,
    at: u64,
}

impl<O> FileReader<O> {
    /// A reader at the start of the file.
    pub fn of(original: O) -> Self {
        FileReader { original, at: 0 }
    }
}

impl<O: std::ops::Deref<Target = OriginalFile>> Read for FileReader<O> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.original.read_at(self.at, room)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// From so many bytes without an edit, the file is copied by [`io::copy`], which lets the system do it where it can.
const LONG: usize = 1 << 20;

/// Writes a file with its edits. The long stretches before the first and after the last edit are copied without looking
/// at them.
pub fn write_edited_file(
    original: &OriginalFile,
    edits: SpooledEdits,
    threads: NonZeroUsize,
    out: &mut impl Write,
) -> io::Result<()> {
    let (file, length) = (original.file(), original.length());
    let mut file = &*file;
    file.rewind()?;
    if edits.is_empty() {
        return copy(file, length, out);
    }
    let Range {
        start: from,
        end: to,
    } = edits.extent();
    let from = if from < LONG { 0 } else { from };
    let to = if length - to < LONG { length } else { to };
    copy(file, from, out)?;
    write_edited(
        file.take((to - from) as u64),
        from..to,
        edits.read()?,
        threads,
        out,
    )?;
    file.seek(SeekFrom::Start(to as u64))?;
    copy(file, length - to, out)
}

fn copy(file: &File, length: usize, out: &mut impl Write) -> io::Result<()> {
    let copied = io::copy(&mut file.take(length as u64), out)?;
    if copied == length as u64 {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Writes the range `at` of a text with its edits. `text` begins at the range, while the offsets of the edits are those
/// of the whole text. With more than one thread, a second thread reads ahead.
pub fn write_edited(
    text: impl Read + Send,
    at: Range<usize>,
    edits: impl Iterator<Item = io::Result<Edit>> + Send,
    threads: NonZeroUsize,
    out: &mut impl Write,
) -> io::Result<()> {
    // One byte more than a short text has: a piece that is not full is known to be the last.
    let piece = PIECE.min(at.len() + 1);
    let pieces = PiecewiseSplice::new(text, edits, at.start, piece)?;
    if threads.get() > 1 && piece == PIECE {
        write_read_ahead(pieces, out)
    } else {
        pieces.write(out)
    }
}

fn modified(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}

fn write_read_ahead<R: Read + Send, E: Iterator<Item = io::Result<Edit>> + Send>(
    mut pieces: PiecewiseSplice<R, E>,
    out: &mut impl Write,
) -> io::Result<()> {
    let is_written = thread::scope(|scope| {
        let (sender, receiver) = sync_channel(AHEAD);
        let pieces = &mut pieces;
        let read = move || pieces.read_ahead(&sender);
        if Builder::new().spawn_scoped(scope, read).is_err() {
            return Ok(false);
        }
        for piece in receiver {
            out.write_all(&piece?)?;
        }
        io::Result::Ok(true)
    })?;
    // If the system refuses another thread, this one reads and writes by itself.
    if is_written {
        Ok(())
    } else {
        pieces.write(out)
    }
}

/// Applies edits to a text piece by piece.
struct PiecewiseSplice<R, E> {
    text: R,
    /// The first edit that is not written yet; `edits` has those after it.
    next: Option<Edit>,
    edits: E,
    /// Offset in the whole text up to which it is read.
    at: usize,
    /// Offset up to which the text is written or replaced. It is ahead of `at` if an edit replaces bytes of later
    /// pieces.
    written_to: usize,
    /// The piece as it was read, before its edits.
    raw: Vec<u8>,
    /// The length of a piece in bytes.
    piece: usize,
}

impl<R: Read, E: Iterator<Item = io::Result<Edit>>> PiecewiseSplice<R, E> {
    /// Starts at the offset `at` of the whole text.
    fn new(text: R, mut edits: E, at: usize, piece: usize) -> io::Result<Self> {
        let next = edits.next().transpose()?;
        Ok(PiecewiseSplice {
            text,
            next,
            edits,
            at,
            written_to: at,
            raw: Vec::new(),
            piece,
        })
    }

    fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        let mut piece = Vec::new();
        while self.read_into(&mut piece)? {
            out.write_all(&piece)?;
        }
        out.write_all(&piece)
    }

    /// Reads all pieces and sends them.
    fn read_ahead(&mut self, sender: &SyncSender<io::Result<Vec<u8>>>) {
        loop {
            let mut piece = Vec::new();
            let next = self.read_into(&mut piece);
            let is_last = !matches!(next, Ok(true));
            // The receiver is gone if writing has failed.
            if sender.send(next.map(|_| piece)).is_err() || is_last {
                return;
            }
        }
    }

    /// Replaces the content of `piece` by the next piece with its edits. Returns `false` for the last one.
    fn read_into(&mut self, piece: &mut Vec<u8>) -> io::Result<bool> {
        set_length(piece, self.piece);
        let length = fill(&mut self.text, piece)?;
        piece.truncate(length);
        let (start, end, is_last) = (self.at, self.at + length, length < self.piece);
        self.at = end;
        // An insertion at the end of a piece belongs to the next piece, except at the end of the text.
        let is_in_piece = |edit: &Edit| edit.at.start < end || is_last && edit.at.start == end;
        // Most pieces have no edit: they go out as they were read, without a copy.
        if self.written_to <= start
            && if is_last {
                self.next.is_none()
            } else {
                !self.next.as_ref().is_some_and(is_in_piece)
            }
        {
            return Ok(!is_last);
        }
        std::mem::swap(piece, &mut self.raw);
        piece.clear();
        // Room for the edits, too: a buffer that grows is copied.
        if piece.capacity() < length + length / 2 {
            *piece = Vec::with_capacity(length + length / 2);
        }
        let mut from = self.written_to.max(start);
        while let Some(edit) = self.next.take_if(|edit| is_in_piece(edit)) {
            piece.extend_from_slice(&self.raw[from - start..edit.at.start - start]);
            piece.extend_from_slice(edit.text.as_bytes());
            from = edit.at.end;
            self.next = self.edits.next().transpose()?;
        }
        if from < end {
            piece.extend_from_slice(&self.raw[from - start..]);
        }
        self.written_to = from.max(end);
        if is_last && (from > end || self.next.is_some()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(!is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_with_its_edits_however_much_stands_around_them() {
        let text: Vec<u8> = (0..3 * LONG + 100)
            .map(|at| b'a' + (at % 23) as u8)
            .collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text).unwrap();
        let original = OriginalFile::of(&"a".into(), file).unwrap().unwrap();
        let edit = |start: usize, end: usize| Edit {
            at: start..end,
            text: "new".into(),
        };
        let places = [
            0,
            1,
            PIECE - 1,
            PIECE,
            PIECE + 1,
            LONG,
            2 * LONG,
            2 * LONG + 101,
            text.len() - 1,
            text.len(),
        ];
        let mut sets: Vec<Vec<Edit>> =
            vec![vec![], places.iter().map(|&at| edit(at, at)).collect()];
        for &from in &places {
            for &to in places.iter().filter(|&&to| to >= from) {
                sets.push(vec![edit(from, to)]);
                sets.push(vec![edit(from, to), edit(text.len(), text.len())]);
                if to > from {
                    sets.push(vec![edit(from, from), edit(to, to)]);
                }
            }
        }
        for edits in sets {
            for threads in [1, 2] {
                let (mut wanted, mut written) = (Vec::new(), Vec::new());
                podgraft_core::yaml::splice::write_spliced(&text, &edits, &mut wanted).unwrap();
                let mut kept = SpooledEdits::default();
                kept.add(&edits).unwrap();
                write_edited_file(
                    &original,
                    kept,
                    NonZeroUsize::new(threads).unwrap(),
                    &mut written,
                )
                .unwrap();
                assert!(written == wanted, "{edits:?}");
            }
        }
    }

    #[test]
    fn a_file_that_ends_before_its_edits_do_is_an_error() {
        let edits = [Edit {
            at: 5..9,
            text: "x".into(),
        }];
        let pieces =
            PiecewiseSplice::new(&b"abc"[..], edits.into_iter().map(Ok), 0, PIECE).unwrap();
        assert!(pieces.write(&mut Vec::new()).is_err());
    }
}
