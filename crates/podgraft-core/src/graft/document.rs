//! One document of a run: its position, and the parsing of its text.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::TextCache;
use crate::outcome::FileReport;
use crate::policy::Policy;
use crate::source::{LineCounter, Source};
use crate::yaml::parse::{parse, parse_fast};
use crate::yaml::tree::Tree;

use super::list_parts::ListParts;
use super::objects::API_SERVICE;
use super::refusals::{is_other_json, parse_problem};
use super::{DocumentRun, FileContext, GraftMode, graft_document};

/// A document that is not parsed yet.
#[derive(Clone, Copy)]
pub(super) struct DocumentTask<'a> {
    pub setting: FileContext<'a>,
    /// Byte offset in the run that the document is a part of.
    pub in_run: usize,
    /// Byte offset in the file.
    pub start: usize,
    /// More text of the file follows.
    pub has_more: bool,
    pub bytes: &'a [u8],
}

/// State that a run keeps across documents, so that no line is counted and no text formatted twice.
pub(super) struct DocumentCaches<'a> {
    pub lines: LineCounter<'a>,
    pub written: TextCache,
}

impl<'a> DocumentCaches<'a> {
    /// The state before the first document.
    pub(super) fn of(run: &DocumentRun<'a>) -> Self {
        DocumentCaches {
            lines: LineCounter::new(run.text, run.first_line),
            written: TextCache::default(),
        }
    }
}

/// A document with its tree.
#[derive(Clone, Copy)]
pub(super) struct ParsedDocument<'t> {
    pub task: DocumentTask<'t>,
    pub tree: &'t Tree<'t>,
    pub source: &'t Source<'t>,
}

impl<'t> Deref for ParsedDocument<'t> {
    type Target = DocumentTask<'t>;

    fn deref(&self) -> &Self::Target {
        &self.task
    }
}

impl<'a> DocumentTask<'a> {
    /// The document with a tree: its own, or that of another form of its text.
    pub(super) fn parsed(self, tree: &'a Tree<'a>, source: &'a Source<'a>) -> ParsedDocument<'a> {
        ParsedDocument {
            task: self,
            tree,
            source,
        }
    }

    /// Whether a document without workloads must be parsed, by its apparent kind.
    pub(super) fn is_read_all_the_same(&self, kind: Option<&[u8]>) -> bool {
        let options = self.setting.options;
        options.parse_all || options.lint && kind == Some(API_SERVICE.as_bytes())
    }

    /// Parses and processes a document that may hold a workload.
    pub(super) fn read(self, memory: &mut DocumentCaches<'_>) -> FileReport {
        // A file may have further documents, without objects.
        let is_whole = self.bytes.len() == self.setting.length;
        if let Some(tree) = self.setting.tree.filter(|_| is_whole) {
            let source = self.source_of(tree.text(), memory);
            return self.graft(tree, &source, memory);
        }
        let source = match self.source(memory) {
            Ok(source) => source,
            Err(problem) => return unread(vec![problem]),
        };
        if let Some(report) = self.read_list(source.text, memory) {
            return report;
        }
        match parse(source.text) {
            Ok(tree) => self.graft(&tree, &source, memory),
            Err(error) => unreadable(source.text, vec![parse_problem(&error, &source)]),
        }
    }

    /// The byte range in the file.
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes.len()
    }

    /// Processes a long List in parts. `None` if it is none, or if the result may depend on the whole List, or if there are
    /// problems: those of a whole document are worded best.
    fn read_list(self, text: &str, memory: &mut DocumentCaches<'_>) -> Option<FileReport> {
        let parts = ListParts::of(text)?;
        let generates = |policy: &Policy| !policy.generate.is_empty();
        let is_edited = self.setting.mode == GraftMode::Edit;
        if !is_edited || self.is_traced() || self.setting.policies.iter().any(generates) {
            return None;
        }
        let mut report = FileReport::default();
        for part in parts.lists() {
            let tree = parse_fast(&part.text).filter(|tree| part.is_list(tree))?;
            let lines_before = part.text[..part.items].matches('\n').count();
            let first_line = memory.lines.line_at(self.in_run + part.start) - lines_before;
            let name = Arc::clone(self.setting.name);
            let source = Source::from_line(name, &part.text, first_line);
            let task = DocumentTask {
                setting: self.setting,
                in_run: self.in_run + part.start - part.items,
                start: self.start + part.start - part.items,
                has_more: self.has_more || part.has_more,
                bytes: part.text.as_bytes(),
            };
            let mut read = task.graft(&tree, &source, memory);
            if read.is_refused() || read.documents != 1 {
                return None;
            }
            for workload in &mut read.workloads {
                if workload.extent == workload.document {
                    workload.extent = self.range();
                }
                workload.document = self.range();
            }
            report.append(read);
        }
        report.documents = 1;
        Some(report)
    }

    /// Parses a document that holds no workload, only to report what is in it. Its errors are reported by a linter only:
    /// whether other runs fail does not depend on what they report. `objects` is the number of objects that its lines
    /// show.
    pub(super) fn read_loosely(
        self,
        objects: usize,
        memory: &mut DocumentCaches<'_>,
    ) -> FileReport {
        let report = self.source(memory).ok().and_then(|source| {
            let tree = parse(source.text).ok()?;
            Some(self.graft(&tree, &source, memory))
        });
        let is_reported = |report: &FileReport| self.setting.options.lint || !report.is_refused();
        report.filter(is_reported).unwrap_or_else(|| FileReport {
            objects,
            ..unread(Vec::new())
        })
    }

    fn graft(
        &self,
        tree: &Tree<'_>,
        source: &Source<'_>,
        memory: &mut DocumentCaches<'_>,
    ) -> FileReport {
        let report = graft_document(self.parsed(tree, source), memory);
        FileReport {
            documents: tree.roots().len(),
            ..report.unwrap_or_else(FileReport::of_problems)
        }
    }

    fn source_of<'t>(&self, text: &'t str, memory: &mut DocumentCaches<'_>) -> Source<'t> {
        let first_line = memory.lines.line_at(self.in_run);
        Source::from_line(Arc::clone(self.setting.name), text, first_line)
    }

    fn source(&self, memory: &mut DocumentCaches<'_>) -> Result<Source<'a>, Diagnostic> {
        let mut source = |text| self.source_of(text, memory);
        let until = match std::str::from_utf8(self.bytes) {
            Ok(text) => return Ok(source(text)),
            Err(error) => error.valid_up_to(),
        };
        let before = std::str::from_utf8(&self.bytes[..until]).unwrap_or_default();
        let problem = Diagnostic::error(Code::NotUtf8, "these bytes are not UTF-8");
        Err(problem
            .at(source(before).place(until..until), "starting here")
            .help("save the file as UTF-8"))
    }
}

/// The report of a document that was not read.
pub(super) fn unread(problems: Vec<Diagnostic>) -> FileReport {
    FileReport {
        documents: 1,
        ..FileReport::of_problems(problems)
    }
}

fn unreadable(text: &str, problems: Vec<Diagnostic>) -> FileReport {
    match is_other_json(text) {
        true => unread(Vec::new()),
        false => FileReport {
            objects: 1,
            ..unread(problems)
        },
    }
}
