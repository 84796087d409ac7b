//! Finds what a diagnostic is about: a workload, or another object of a file.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::diagnostic::Diagnostic;
use crate::outcome::{ReportedFile, WorkloadReport};
use crate::report::lines::LineIndex;
use crate::source::Place;

/// What a finding is about. Workloads of one title are told apart by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// A workload: the index of its file, and its index in the file.
    Workload(usize, usize),
    /// Something else in the file of this index.
    OtherObject(usize),
    /// Nothing in a file of the run.
    Run,
}

/// The files of a run, to look subjects up in.
pub(super) struct Subjects<'a> {
    files: &'a [ReportedFile<'a>],
    by_name: HashMap<&'a str, usize>,
    /// The workloads of each title, in order.
    by_title: OnceCell<HashMap<String, Vec<(usize, usize)>>>,
    lines: Vec<OnceCell<LineIndex<'a>>>,
}

impl<'a> Subjects<'a> {
    pub(super) fn of(files: &'a [ReportedFile<'a>]) -> Self {
        // Of files with one name, the first counts.
        let names = files.iter().enumerate().rev();
        Subjects {
            files,
            by_name: names.map(|(index, file)| (file.name, index)).collect(),
            by_title: OnceCell::new(),
            lines: files.iter().map(|_| OnceCell::new()).collect(),
        }
    }

    /// The index of the file of a place.
    pub(super) fn file(&self, place: &Place) -> Option<usize> {
        self.by_name.get(&*place.source).copied()
    }

    /// The workload of a subject.
    pub(super) fn workload(&self, subject: Subject) -> Option<&'a WorkloadReport> {
        match subject {
            Subject::Workload(file, at) => Some(&self.files[file].report.workloads[at]),
            Subject::OtherObject(_) | Subject::Run => None,
        }
    }

    /// What is at the place of a diagnostic that is about no workload.
    pub(super) fn other(&self, diagnostic: &Diagnostic) -> Subject {
        let file = diagnostic.place().and_then(|place| self.file(place));
        file.map_or(Subject::Run, Subject::OtherObject)
    }

    /// What a diagnostic is about: the workload that it names, or else the one that holds its place.
    pub(super) fn about(&self, diagnostic: &Diagnostic) -> Subject {
        let labels = diagnostic.labels.iter();
        let mut holding = labels.filter_map(|label| self.holding(&label.place));
        let found = match &diagnostic.workload {
            None => holding.next(),
            Some(title) => {
                let is_named = |&(file, at): &(usize, usize)| {
                    self.files[file].report.workloads[at].title() == **title
                };
                let named = holding.find(is_named);
                named.or_else(|| self.titled(title, self.other(diagnostic)))
            }
        };
        found.map_or_else(
            || self.other(diagnostic),
            |(file, at)| Subject::Workload(file, at),
        )
    }

    /// The first workload with a title, in the file of a subject if it is there.
    fn titled(&self, title: &str, near: Subject) -> Option<(usize, usize)> {
        let by_title = self.by_title.get_or_init(|| by_title(self.files));
        let all = by_title.get(title)?;
        let in_file = match near {
            Subject::Workload(file, _) | Subject::OtherObject(file) => {
                let at = all.partition_point(|&(other, _)| other < file);
                all.get(at).filter(|&&(other, _)| other == file)
            }
            Subject::Run => None,
        };
        in_file.or(all.first()).copied()
    }

    /// The workload that holds a place: the last one that begins at or before its line, if it does not end before.
    fn holding(&self, place: &Place) -> Option<(usize, usize)> {
        let index = self.file(place)?;
        let file = &self.files[index];
        let workloads = &file.report.workloads;
        let at = workloads.partition_point(|workload| workload.line <= place.line);
        let at = at.checked_sub(1)?;
        let lines = self.lines[index].get_or_init(|| LineIndex::of(file.text));
        (lines.start(place.line - 1) < workloads[at].extent.end).then_some((index, at))
    }
}

fn by_title(files: &[ReportedFile<'_>]) -> HashMap<String, Vec<(usize, usize)>> {
    let mut by_title: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
    for (index, file) in files.iter().enumerate() {
        for (at, workload) in file.report.workloads.iter().enumerate() {
            let same = by_title.entry(workload.title()).or_default();
            same.push((index, at));
        }
    }
    by_title
}
