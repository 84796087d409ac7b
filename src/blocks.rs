//! Cuts a file or stdin into blocks that end at document boundaries, so that a text of any size needs little memory.

use std::io::{self, Read};

use podgraft_core::yaml::stream::last_boundary;

/// Bytes of a block: long enough that handing it to a thread costs nothing, short enough to stay in the cache and to
/// keep all threads busy.
const LENGTH: usize = 256 << 10;

/// Bytes of the first block. Each later one may be twice as long as the one before, up to [`LENGTH`]: a small file
/// needs little memory.
const FIRST: usize = 16 << 10;

/// Consecutive documents of a text.
#[derive(Debug, Default)]
pub struct DocumentBlock {
    /// The number of the block, from 0.
    pub index: usize,
    /// Its byte offset in the whole text.
    pub start: usize,
    /// The 1-based line of the whole text at which it begins.
    pub first_line: usize,
    /// The bytes of the block.
    pub text: Vec<u8>,
    /// Whether more text follows it.
    pub has_more: bool,
}

/// Cuts the text of a reader into blocks of documents.
#[derive(Debug)]
pub struct DocumentBlocks<R> {
    reader: R,
    /// Bytes that were read after the end of the last block.
    rest: Vec<u8>,
    /// The place of the next block; its text is empty.
    next: DocumentBlock,
    /// The bytes of the whole text, if they are known.
    length: Option<usize>,
}

impl<R: Read> DocumentBlocks<R> {
    /// A cutter at the start of the text.
    pub fn new(reader: R) -> Self {
        let next = DocumentBlock {
            first_line: 1,
            ..DocumentBlock::default()
        };
        DocumentBlocks {
            reader,
            rest: Vec::new(),
            next,
            length: None,
        }
    }

    /// The same for a text of this length, so that no buffer is longer than the text.
    pub fn of_length(self, length: usize) -> Self {
        DocumentBlocks {
            length: Some(length),
            ..self
        }
    }

    /// Returns the next block, in a reused buffer; `None` at the end of the text.
    pub fn next(&mut self, buffer: Vec<u8>) -> io::Result<Option<DocumentBlock>> {
        let mut text = buffer;
        let mut length = self.rest.len();
        let wanted = length.max(LENGTH.min(FIRST << self.next.index.min(16)));
        set_length(&mut text, wanted);
        text[..length].copy_from_slice(&self.rest);
        let end = loop {
            length += fill(&mut self.reader, &mut text[length..])?;
            if length < text.len() {
                break length;
            }
            if let Some(end) = last_boundary(&text) {
                break end;
            }
            // The buffer holds no document boundary: the document is longer, so read more of it. One more byte than the
            // text has shows that it ends.
            let behind = |length: usize| length.saturating_sub(self.next.start);
            let left = self.length.map(|length| behind(length).saturating_add(1));
            let longer = left.filter(|left| *left > length).unwrap_or(usize::MAX);
            lengthen(&mut text, longer.min(length * 2));
        };
        self.rest.clear();
        self.rest.extend_from_slice(&text[end..length]);
        text.truncate(end);
        if text.is_empty() {
            return Ok(None);
        }
        let lines = memchr::memchr_iter(b'\n', &text).count();
        let block = DocumentBlock {
            text,
            has_more: !self.rest.is_empty(),
            ..self.next
        };
        self.next.index += 1;
        self.next.start += end;
        self.next.first_line += lines;
        Ok(Some(block))
    }
}

/// Adds zeros up to a length, and makes no room for more.
fn lengthen(buffer: &mut Vec<u8>, length: usize) {
    buffer.reserve_exact(length - buffer.len());
    buffer.resize(length, 0);
}

/// Gives a buffer a length. Its content is to be overwritten, so a longer buffer is a new one instead of a copy.
pub fn set_length(buffer: &mut Vec<u8>, length: usize) {
    match buffer.capacity() < length {
        true => *buffer = vec![0; length],
        false => buffer.resize(length, 0),
    }
}

/// Reads until the buffer is full or the reader ends. Returns the number of bytes read.
pub fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match reader.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_text_and_begin_where_documents_do() {
        let document = format!("---\na: |\n{}", "  ---\n  x\n".repeat(40_000));
        let text = format!("# first\n{}", document.repeat(6));
        let mut blocks = DocumentBlocks::new(text.as_bytes());
        let (mut joined, mut count) = (Vec::new(), 0);
        while let Some(block) = blocks.next(Vec::new()).unwrap() {
            assert_eq!((block.index, block.start), (count, joined.len()));
            assert_eq!(block.has_more, joined.len() + block.text.len() < text.len());
            assert_eq!(
                block.first_line,
                1 + joined.iter().filter(|&&byte| byte == b'\n').count()
            );
            assert!(count == 0 || block.text.starts_with(b"---\na"));
            joined.extend(block.text);
            count += 1;
        }
        assert_eq!(joined, text.as_bytes());
        assert!(count > 2, "{count}");
    }

    #[test]
    fn a_document_longer_than_a_block_is_one() {
        let text = "a: |\n".to_owned() + &"  x\n".repeat(LENGTH);
        let mut blocks = DocumentBlocks::new(text.as_bytes());
        assert_eq!(
            blocks.next(Vec::new()).unwrap().unwrap().text.len(),
            text.len()
        );
        assert!(blocks.next(Vec::new()).unwrap().is_none());
    }

    #[test]
    fn nothing_has_no_block() {
        assert!(
            DocumentBlocks::new(&b""[..])
                .next(Vec::new())
                .unwrap()
                .is_none()
        );
    }
}
