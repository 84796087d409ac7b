//! The lock files of a run, and which of them covers which file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::moved::{FoundRecord, MarkedWorkload, SearchResult};
use super::{Lock, LockedRecordError, NewRecord};
use crate::outcome::GeneratedRecord;
use crate::ownership::{RecordedWorkload, WorkloadKey};
use crate::record::renamed::RecordedShare;

/// The lock files of a run. Each covers the files below its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockSet {
    /// The lock files, one per folder that has one.
    pub locks: Vec<Lock>,
    /// By the name of a file in this run: the index of its lock file, and its path from that lock file's folder.
    pub files: HashMap<Arc<str>, (usize, String)>,
    /// Files that the lock files name and that are gone: the index of the lock file, and their path from its folder.
    pub gone: HashSet<(usize, String)>,
    /// Whether a workload's line stays if another one is found to be the same, or a copy: the run looks at some of the
    /// workloads only.
    pub keeps_all_lines: bool,
}

impl LockSet {
    /// The lock file that covers a file of this run, and the file's path from its folder.
    pub fn of_file(&self, file: &str) -> Option<(&Lock, &str)> {
        let (lock, file) = self.files.get(file)?;
        Some((&self.locks[*lock], file))
    }

    /// Returns the generated objects that the lock files name.
    pub fn generated(&self) -> impl Iterator<Item = GeneratedRecord> {
        let objects = self.locks.iter().flat_map(Lock::generated);
        objects.map(|(_, object)| object)
    }

    /// Whether a file that the lock file of `file` names is gone.
    pub(crate) fn is_gone_beside(&self, file: &str, other: &str) -> bool {
        let lock = self.files.get(file).map(|(lock, _)| *lock);
        lock.is_some_and(|lock| self.gone.contains(&(lock, other.to_owned())))
    }

    /// Returns the record of a workload that was moved here from below another lock file, alone or with its file.
    ///
    /// # Errors
    /// If several records may be meant.
    pub(crate) fn record_elsewhere(
        &self,
        workload: &MarkedWorkload<'_>,
        file: &str,
    ) -> SearchResult {
        let own = self.files.get(file).map(|(lock, _)| *lock);
        let anywhere = WorkloadKey {
            file: String::new(),
            ..workload.key.clone()
        };
        let others = self.locks.iter().enumerate();
        let others = others.filter(|(at, _)| Some(*at) != own);
        let namesakes = others.flat_map(|(at, lock)| {
            let keys = lock.namesakes(&anywhere);
            keys.map(move |key| (at, lock, key))
        });
        let is_gone = |(at, _, key): &(usize, &Lock, WorkloadKey)| {
            self.gone.contains(&(*at, key.file.clone()))
        };
        let (gone, present): (Vec<_>, Vec<_>) = namesakes.partition(is_gone);
        match (gone.as_slice(), present.as_slice()) {
            ([(_, lock, key)], _) => lock.record_at(key, workload),
            // The workload was moved or copied to another file, and its old file is still there.
            ([], [(_, lock, key)]) => {
                let found = lock.record_at(key, workload)?;
                let is_here = |found: &FoundRecord| {
                    let share = found.record.share_in_place(workload.lookup);
                    share.as_ref().is_some_and(RecordedShare::is_most)
                };
                let found = found.filter(is_here);
                Ok(found.map(|found| FoundRecord {
                    is_copied: true,
                    ..found
                }))
            }
            ([], _) => Ok(None),
            (several, _) => {
                let titles = several.iter().map(|(.., key)| key.title());
                Err(LockedRecordError::Workloads(titles.collect()))
            }
        }
    }

    /// Returns the recorded files that are not of this run, each with the index of its lock file.
    pub fn files_elsewhere(&self) -> BTreeSet<(usize, String)> {
        self.elsewhere(|lock| lock.workloads.keys().map(|key| &*key.file))
    }

    /// Returns those of the files elsewhere whose workloads need generated objects.
    pub fn files_with_generated(&self) -> BTreeSet<(usize, String)> {
        self.elsewhere(|lock| lock.generated().map(|(key, _)| &*key.file))
    }

    fn elsewhere<'l, F: Iterator<Item = &'l str>>(
        &'l self,
        files_of: impl Fn(&'l Lock) -> F,
    ) -> BTreeSet<(usize, String)> {
        let of_run = borrowed(self.files.values());
        let mut elsewhere = BTreeSet::new();
        for (at, lock) in self.locks.iter().enumerate() {
            let files = files_of(lock).filter(|file| !of_run.contains(&(at, *file)));
            elsewhere.extend(files.map(|file| (at, file.to_owned())));
        }
        elsewhere
    }

    /// Returns the generated objects that workloads of other files need than those named here. Files that are gone
    /// need nothing.
    pub(crate) fn generated_elsewhere<'n>(
        &self,
        files: impl Iterator<Item = &'n str>,
    ) -> Vec<GeneratedRecord> {
        let of_run = borrowed(files.filter_map(|name| self.files.get(name)));
        let locks = self.locks.iter().enumerate();
        let objects = locks.flat_map(|(at, lock)| {
            let objects = lock.generated();
            objects.map(move |(key, object)| ((at, &*key.file), object))
        });
        objects
            .filter(|((lock, file), _)| {
                !of_run.contains(&(*lock, *file))
                    && !self.gone.contains(&(*lock, (*file).to_owned()))
            })
            .map(|(_, object)| object)
            .collect()
    }

    /// Whether a workload of the file may have a record, under its name and file or those that it had before.
    pub(crate) fn may_have_record_in(&self, file: &str) -> bool {
        self.files.contains_key(file) && self.locks.iter().any(|lock| !lock.workloads.is_empty())
    }

    /// Whether a workload of the file is recorded.
    pub(crate) fn has_file(&self, file: &str) -> bool {
        let Some((lock, file)) = self.of_file(file) else {
            return false;
        };
        lock.workloads.keys().any(|key| key.file == file)
    }

    /// Records what a run did to the workloads of its files.
    pub fn put_all<'r>(
        &mut self,
        files: impl IntoIterator<Item = (&'r str, &'r [RecordedWorkload])>,
    ) {
        let mut records: Vec<Vec<NewRecord<'_>>> = Vec::new();
        records.resize_with(self.locks.len(), Vec::new);
        let mut moved = vec![Vec::new(); self.locks.len()];
        let of_run = borrowed(self.files.values());
        for (name, workloads) in files {
            let Some((lock, file)) = self.files.get(name) else {
                continue;
            };
            // A moved workload is gone from its old place. If the old file is there and not part of this run, the workload
            // may have been copied and still be there.
            let from = workloads
                .iter()
                .filter_map(|workload| workload.from.as_ref());
            let gone = from.filter(|_| !self.keeps_all_lines);
            let gone = gone.filter(|from| {
                of_run.contains(&(*lock, from.file.as_str()))
                    || self.gone.contains(&(*lock, from.file.clone()))
            });
            moved[*lock].extend(gone);
            records[*lock].extend(workloads.iter().map(|workload| {
                let key = WorkloadKey {
                    file: file.clone(),
                    kind: workload.kind.clone(),
                    namespace: workload.namespace.clone(),
                    name: workload.name.clone(),
                };
                NewRecord { key, workload }
            }));
        }
        for ((lock, records), moved) in self.locks.iter_mut().zip(records).zip(moved) {
            lock.put_all(records, moved);
        }
    }
}

/// Files, each as the index of its lock file and its path.
fn borrowed<'f>(files: impl Iterator<Item = &'f (usize, String)>) -> HashSet<(usize, &'f str)> {
    files.map(|(lock, file)| (*lock, file.as_str())).collect()
}
