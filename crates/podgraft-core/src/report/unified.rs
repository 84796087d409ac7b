//! A unified diff that `patch -p1` and `git apply` accept, made from the old text and the edits.
//!
//! The context of a hunk has no line of a document that does not change, except the `---` between documents. Both
//! programs take a hunk with less context after its changes than before them as one that must be at the end of the
//! file. So if the end of a document cuts the context after, the context before is cut to the same length.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use super::escaped_line;
use super::hunks::policies_of;
use super::lines::{AddedLine, ChangeGroup, GroupLine, LineChange, LineIndex, changes_of, group};
use crate::outcome::{ReportedFile, WorkloadReport};
use crate::wording::{Paint, is_unsafe, one_line, wrap_options};
use crate::yaml::splice::Edit;
use crate::yaml::stream::is_separator;

/// The reader of the diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffAudience {
    /// `patch` and `git apply`: every byte is exact.
    Program,
    /// `git apply`, below the root of a repository: files are named relative to the root, and a `diff --git` line is
    /// added.
    Git,
    /// A person, on a terminal with so many columns. Headings are folded, podgraft's own long records are cut, and
    /// control characters are escaped.
    Person(usize),
}

/// The diff of all changed files; empty if no file changes.
pub fn render(reader: DiffAudience, files: &[ReportedFile<'_>], paint: Paint) -> String {
    let mut diff = DiffWriter {
        reader,
        paint,
        text: String::new(),
    };
    for file in files.iter().filter(|file| !file.report.edits.is_empty()) {
        diff.file(file);
    }
    diff.text
}

/// Writes the diff of one file after another.
struct DiffWriter {
    reader: DiffAudience,
    paint: Paint,
    text: String,
}

impl DiffWriter {
    fn file(&mut self, file: &ReportedFile<'_>) {
        let lines = LineIndex::of(file.text);
        let mut changes = changes_of(&file.report.edits, &lines);
        let mut behind = 0;
        for change in &mut changes {
            put_before_separator(change, behind, &lines);
            behind = change.old.end;
        }
        if changes.is_empty() {
            return;
        }
        for line in heading_lines(file, self.reader) {
            self.push_line("1", &line);
        }
        let documents = ChangedDocuments::of(file, &changes, &lines);
        let mut shift = 0;
        for hunk in documents.hunks(&changes) {
            shift += self.hunk(&hunk, shift, &documents);
        }
    }

    /// Writes a hunk. Returns the number of lines by which it moves the text after it.
    fn hunk(
        &mut self,
        hunk: &ChangeGroup<'_>,
        shift: isize,
        documents: &ChangedDocuments<'_>,
    ) -> isize {
        let insertions: usize = hunk.changes.iter().map(|change| change.new.len()).sum();
        let deletions: usize = hunk.changes.iter().map(|change| change.old.len()).sum();
        let old_len = hunk.old.len();
        let new_len = old_len - deletions + insertions;
        let new_start = hunk.old.start.saturating_add_signed(shift);
        let ranges = format!(
            "@@ -{} +{} @@",
            range(hunk.old.start, old_len),
            range(new_start, new_len)
        );
        let title = one_line(&documents.title_of(hunk));
        let _ = writeln!(self.text, "{} {title}", self.paint.wrap("36", &ranges));
        for line in hunk.lines() {
            match line {
                GroupLine::Context(line) => self.push_body(' ', documents.lines.get(line)),
                GroupLine::Removed(line) => self.push_body('-', documents.lines.get(line)),
                GroupLine::Added(line) => self.push_body('+', &line.text),
            }
        }
        insertions as isize - deletions as isize
    }

    fn push_line(&mut self, style: &str, line: &str) {
        self.text.push_str(&self.paint.wrap(style, line));
        self.text.push('\n');
    }

    fn push_body(&mut self, sign: char, line: &[u8]) {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let text = String::from_utf8_lossy(body);
        let shown = match self.reader {
            DiffAudience::Program | DiffAudience::Git => format!("{sign}{text}"),
            DiffAudience::Person(_) => format!("{sign}{}", escaped_line(&text)),
        };
        match sign {
            '+' => self.text.push_str(&self.paint.wrap("32", &shown)),
            '-' => self.text.push_str(&self.paint.wrap("31", &shown)),
            _ => self.text.push_str(&shown),
        }
        self.text.push('\n');
        if body.len() == line.len() {
            self.text.push_str("\\ No newline at end of file\n");
        }
    }
}

/// The lines before the hunks of a file: its changed workloads as comments, and its names.
fn heading_lines(file: &ReportedFile<'_>, reader: DiffAudience) -> Vec<String> {
    let mut lines = Vec::new();
    let workloads = file.report.workloads.iter();
    for workload in workloads.filter(|workload| workload.is_changed()) {
        let heading = format!("# {}", heading(workload));
        match reader {
            DiffAudience::Program | DiffAudience::Git => lines.push(heading),
            DiffAudience::Person(width) => {
                let folded = textwrap::wrap(&heading, wrap_options(width, "#   "));
                lines.extend(folded.into_iter().map(Cow::into_owned));
            }
        }
    }
    let named = |prefix| header_name(prefix, file.path);
    let (old, new) = (named(b"a/"), named(b"b/"));
    if reader == DiffAudience::Git {
        let line = format!("diff --git {} {}", old.trim_end(), new.trim_end());
        lines.push(line);
    }
    lines.extend([format!("--- {old}"), format!("+++ {new}")]);
    lines
}

/// The heading of a workload: `Deployment shop/orders: rookout-java (init container agent, volume agent); jmx (...)`.
fn heading(workload: &WorkloadReport) -> String {
    let changes = workload.policies.iter();
    let changes: Vec<String> = changes.filter_map(|report| report.words("")).collect();
    one_line(&format!("{}: {}", workload.title(), changes.join("; ")))
}

/// The changed workloads, and the line ranges of their documents.
struct ChangedDocuments<'r> {
    edits: &'r [Edit],
    lines: &'r LineIndex<'r>,
    ranges: Vec<Range<usize>>,
    /// The changed workloads, in the order of their edits.
    workloads: Vec<&'r WorkloadReport>,
}

impl<'r> ChangedDocuments<'r> {
    fn of(file: &ReportedFile<'r>, changes: &[LineChange], lines: &'r LineIndex<'r>) -> Self {
        let workloads = file.report.workloads.iter();
        let mut workloads: Vec<_> = workloads.filter(|workload| workload.is_changed()).collect();
        workloads.sort_by_key(|workload| workload.edits.start);
        let touched = workloads.iter();
        let touched = touched.map(|workload| lines.lines_touched(&workload.document));
        let touched = touched.chain(changes.iter().map(|change| change.old.clone()));
        let documents = documents_of(lines);
        let ranges = touched.flat_map(|lines| with_lines(&documents, &lines).to_vec());
        let mut ranges: Vec<Range<usize>> = ranges.collect();
        ranges.sort_by_key(|range| range.start);
        ranges.dedup();
        ChangedDocuments {
            edits: &file.report.edits,
            lines,
            ranges,
            workloads,
        }
    }

    /// The workloads that have one of these edits.
    fn with_edits(&self, numbers: Range<usize>) -> impl Iterator<Item = &'r WorkloadReport> {
        let first = self
            .workloads
            .partition_point(|workload| workload.edits.end <= numbers.start);
        self.workloads[first..]
            .iter()
            .copied()
            .take_while(move |workload| workload.edits.start < numbers.end)
    }

    /// The lines that may be context of a change: those of the changed documents in which it begins and ends, and the
    /// `---` after it.
    fn context_range(&self, change: &LineChange) -> Range<usize> {
        let first = self.document_with(change.old.start);
        let last = self.document_with(change.old.end);
        let start = first.map_or(change.old.start, |document| document.start);
        let end = last.map_or(change.old.end, |document| document.end);
        let is_plain = end < self.lines.len() && is_plain_separator(self.lines.get(end));
        start..end + usize::from(is_plain)
    }

    /// The changed document in which, or right behind which, a line is.
    fn document_with(&self, line: usize) -> Option<&Range<usize>> {
        let first = self.ranges.partition_point(|range| range.end < line);
        let document = self.ranges.get(first);
        document.filter(|range| range.start <= line)
    }

    fn hunks<'c>(&self, changes: &'c [LineChange]) -> Vec<ChangeGroup<'c>> {
        let around = |change: &LineChange| self.context_range(change);
        // Hunks must not overlap. Hunks that only touch are joined if they are in one document.
        let mut hunks = group(changes, around, |old, around| old.start >= around.start);
        hunks
            .iter_mut()
            .for_each(|hunk| balance(hunk, self.lines.len()));
        hunks
    }

    /// The workloads whose edits the hunk has, each with the policies that made them.
    fn title_of(&self, hunk: &ChangeGroup<'_>) -> String {
        let of_hunk = hunk.changes.iter().map(|change| change.edits.clone());
        let numbers = of_hunk
            .reduce(|range, next| range.start.min(next.start)..range.end.max(next.end))
            .unwrap_or_default();
        let workloads = self.with_edits(numbers).filter(|workload| {
            let changes = changes_in(hunk.changes, workload);
            let mut edits = workload.edits.clone();
            edits.any(|number| self.has_edit(changes, number))
        });
        let titles = workloads.map(|workload| {
            let changes = changes_in(hunk.changes, workload).iter();
            let policies = policies_of(changes, workload, workload.edits.start);
            format!("{}: {}", workload.title(), policies.join(", "))
        });
        titles.collect::<Vec<_>>().join("; ")
    }

    /// Whether an edit of the file, by its number, is in some changes.
    fn has_edit(&self, changes: &[LineChange], number: usize) -> bool {
        let Some(edit) = self.edits.get(number) else {
            return false;
        };
        let mut changes = changes
            .iter()
            .filter(|change| change.edits.contains(&number));
        changes.any(|change| {
            let gone = self.lines.start(change.old.start)..self.lines.start(change.old.end);
            let written = |line: &AddedLine| !line.written_by(&(number..number + 1)).is_empty();
            change.new.iter().any(written) || edit.at.start < gone.end && gone.start < edit.at.end
        })
    }
}

/// The documents of a text, each with the `---` before it.
fn documents_of(lines: &LineIndex<'_>) -> Vec<Range<usize>> {
    let separators = (0..lines.len()).filter(|&line| is_separator(lines.get(line)));
    let mut start = 0;
    let mut documents = Vec::new();
    for separator in separators.chain([lines.len()]) {
        documents.push(start..separator);
        let is_plain = separator < lines.len() && is_plain_separator(lines.get(separator));
        start = separator + usize::from(!is_plain);
    }
    documents.retain(|document| !document.is_empty());
    documents
}

/// Of the documents of a text, those that have some of these lines.
fn with_lines<'d>(documents: &'d [Range<usize>], lines: &Range<usize>) -> &'d [Range<usize>] {
    let first = documents.partition_point(|document| document.end <= lines.start);
    let rest = &documents[first..];
    &rest[..rest.partition_point(|document| document.start < lines.end)]
}

/// Moves a document that is added or removed after a `---`, and ends with its own `---`, before the first one. The
/// resulting text is the same, but the hunk now has a `---` as context after it. `git apply` puts a hunk without
/// context at the end of the file. `behind` is the line after the change before.
fn put_before_separator(change: &mut LineChange, behind: usize, lines: &LineIndex<'_>) {
    let last = match change.new.last() {
        Some(last) if change.old.is_empty() => &last.text[..],
        None => lines.get(change.old.end - 1),
        Some(_) => return,
    };
    let before = change.old.start.checked_sub(1);
    let Some(before) = before.filter(|before| behind <= *before) else {
        return;
    };
    if is_plain_separator(last) && last == lines.get(before) {
        change.old = before..change.old.end - 1;
        if let Some(last) = change.new.pop() {
            change.new.insert(0, last);
        }
    }
}

/// Whether the line is a `---` without content of the next document. A comment is no content.
fn is_plain_separator(line: &[u8]) -> bool {
    let rest = line.get(3..).unwrap_or_default().trim_ascii();
    is_separator(line) && (rest.is_empty() || rest.starts_with(b"#"))
}

/// Cuts the context before the changes to the length of that after them; see the module.
fn balance(hunk: &mut ChangeGroup<'_>, total: usize) {
    let (Some(first), Some(last)) = (hunk.changes.first(), hunk.changes.last()) else {
        return;
    };
    let behind = hunk.old.end - last.old.end;
    let before = first.old.start - hunk.old.start;
    if hunk.old.end < total && behind < before {
        hunk.old.start = first.old.start - behind;
    }
}

/// A range of a hunk header: `12,5`. An empty range names the line before it.
fn range(start: usize, len: usize) -> String {
    match len {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{len}", start + 1),
    }
}

/// The changes with edits of a workload, found by binary search: a hunk may have many short documents in a row.
fn changes_in<'c>(changes: &'c [LineChange], workload: &WorkloadReport) -> &'c [LineChange] {
    let edits = &workload.edits;
    let first = changes.partition_point(|change| change.edits.end <= edits.start);
    let behind = &changes[first..];
    &behind[..behind.partition_point(|change| change.edits.start < edits.end)]
}

/// The name of a file as git writes it: quoted if it has characters that end it early or that are unsafe.
fn header_name(prefix: &[u8], path: &[u8]) -> String {
    let relative = relative(path);
    let named = [prefix, relative].concat();
    match std::str::from_utf8(&named) {
        Ok(name) if !name.contains(|c: char| is_unsafe(c) || c == '"' || c == '\\') => {
            // After a name with a blank, `patch` needs a tab; otherwise it ends the name at the blank.
            let end = if name.contains(' ') { "\t" } else { "" };
            format!("{name}{end}")
        }
        _ => quote(&named),
    }
}

/// The path relative to the folder in which the patch is applied: without `/` and `./` at its start.
fn relative(path: &[u8]) -> &[u8] {
    let mut rest = path;
    loop {
        let shorter = rest.strip_prefix(b"./").or_else(|| rest.strip_prefix(b"/"));
        let Some(shorter) = shorter else { return rest };
        rest = shorter;
    }
}

fn quote(name: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in name {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'\r' => quoted.push_str("\\r"),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[path = "unified_tests.rs"]
mod tests;
