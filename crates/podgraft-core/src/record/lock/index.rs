//! What is found out about the lines of a lock file when it is first asked for.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Lock;
use crate::ownership::WorkloadKey;

/// A value that is made when it is first asked for. It says nothing that the lines do not say: a copy of a lock file may
/// get other ones, and makes it again.
#[derive(Debug)]
pub(super) struct LazyIndex<T>(OnceLock<T>);

impl<T> LazyIndex<T> {
    pub(super) fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}

impl<T> Default for LazyIndex<T> {
    fn default() -> Self {
        LazyIndex(OnceLock::new())
    }
}

impl<T> Clone for LazyIndex<T> {
    fn clone(&self) -> Self {
        LazyIndex::default()
    }
}

impl<T> PartialEq for LazyIndex<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for LazyIndex<T> {}

/// The files that have a workload, by its kind, namespace and name.
pub(super) type FilesByName = HashMap<[String; 3], Vec<String>>;

impl Lock {
    /// The recorded workloads of other files with the kind, namespace and name of this one.
    pub(super) fn namesakes(&self, key: &WorkloadKey) -> impl Iterator<Item = WorkloadKey> {
        let files = self.files_by_name.get(|| {
            let mut files = FilesByName::new();
            for key in self.workloads.keys() {
                files
                    .entry(name_of(key))
                    .or_default()
                    .push(key.file.clone());
            }
            files
        });
        let files = files.get(&name_of(key)).into_iter().flatten();
        let others = files.filter(|file| **file != key.file);
        others.map(|file| WorkloadKey {
            file: file.clone(),
            ..key.clone()
        })
    }

    /// The recorded workloads of a file.
    pub(crate) fn workloads_of(&self, file: &str) -> impl Iterator<Item = &WorkloadKey> {
        let first = WorkloadKey {
            file: file.to_owned(),
            ..WorkloadKey::default()
        };
        let workloads = self.workloads.range(first..).map(|(key, _)| key);
        workloads.take_while(move |key| key.file == file)
    }
}

fn name_of(key: &WorkloadKey) -> [String; 3] {
    [&key.kind, &key.namespace, &key.name].map(String::clone)
}
