//! A file or stdin in blocks that end where a document ends: a text of any size is worked on in little memory.

use std::io::{self, Read};

use podgraft::yaml::stream::last_boundary;

use crate::reread::fill;

/// Long enough that handing it out costs nothing, short enough to stay in the cache and to keep all threads busy.
const LENGTH: usize = 256 << 10;

/// The first block is short, and each may be twice as long as the one before: a small file needs little room.
const FIRST: usize = 16 << 10;

/// Consecutive documents of a text.
#[derive(Debug, Default)]
pub struct DocumentBlock {
    /// Which one, from 0.
    pub index: usize,
    /// Byte offset in the whole text.
    pub start: usize,
    /// The line of the whole text on which it begins, from 1.
    pub first_line: usize,
    /// Its bytes.
    pub text: Vec<u8>,
    /// It is not the end of the whole text.
    pub has_more: bool,
}

/// Cuts the text of a reader into blocks of documents.
#[derive(Debug)]
pub struct DocumentBlocks<R> {
    reader: R,
    /// What was read behind the last block.
    rest: Vec<u8>,
    next: DocumentBlock,
}

impl<R: Read> DocumentBlocks<R> {
    /// Nothing is read yet.
    pub fn new(reader: R) -> Self {
        let next = DocumentBlock {
            first_line: 1,
            ..DocumentBlock::default()
        };
        DocumentBlocks {
            reader,
            rest: Vec::new(),
            next,
        }
    }

    /// The next block, in the room of a buffer that is not needed any more.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn next(&mut self, buffer: Vec<u8>) -> io::Result<Option<DocumentBlock>> {
        let mut text = buffer;
        let mut length = self.rest.len();
        // What stands there from before is read over: only what is new of the room is filled.
        text.resize(length.max(LENGTH.min(FIRST << self.next.index.min(16))), 0);
        text[..length].copy_from_slice(&self.rest);
        let end = loop {
            length += fill(&mut self.reader, &mut text[length..])?;
            if length < text.len() {
                break length;
            }
            if let Some(end) = last_boundary(&text) {
                break end;
            }
            // One document is longer than that.
            text.resize(length * 2, 0);
        };
        self.rest.clear();
        self.rest.extend_from_slice(&text[end..length]);
        text.truncate(end);
        if text.is_empty() {
            return Ok(None);
        }
        let DocumentBlock {
            index,
            start,
            first_line,
            ..
        } = self.next;
        let lines = memchr::memchr_iter(b'\n', &text).count();
        self.next = DocumentBlock {
            index: index + 1,
            start: start + end,
            first_line: first_line + lines,
            ..DocumentBlock::default()
        };
        Ok(Some(DocumentBlock {
            index,
            start,
            first_line,
            text,
            has_more: !self.rest.is_empty(),
        }))
    }
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
