//! Which recorded workloads are gone from the files of a run.

use memchr::{memmem, memrchr};
use std::collections::{HashMap, HashSet};

use super::LockSet;
use crate::ownership::{RecordedWorkload, WorkloadKey};

/// The workloads that a run saw in its files.
#[derive(Debug)]
pub struct SeenWorkloads<'r> {
    /// By the index of the lock file, and the file's path from its folder.
    files: HashMap<(usize, &'r str), SeenFile<'r>>,
}

#[derive(Debug)]
struct SeenFile<'r> {
    text: &'r [u8],
    /// The names of the workloads that the run saw.
    names: HashSet<&'r str>,
}

impl<'r> SeenWorkloads<'r> {
    /// Of files that lock files cover: the name, the text, and what the run did to the workloads.
    pub fn of(
        locks: &'r LockSet,
        files: impl Iterator<Item = (&'r str, &'r [u8], &'r [RecordedWorkload])>,
    ) -> Self {
        let files = files.filter_map(|(name, text, records)| {
            let (lock, path) = locks.files.get(name)?;
            let names = records.iter().map(|record| record.name.as_str());
            let names = names.collect();
            Some(((*lock, path.as_str()), SeenFile { text, names }))
        });
        SeenWorkloads {
            files: files.collect(),
        }
    }

    /// Whether a workload of a lock file is gone from its file: the run did not see it, and nothing in the text has its
    /// name, as a workload has that was passed over. `None` if the file is not of this run.
    pub fn is_gone(&self, lock: usize, key: &WorkloadKey) -> Option<bool> {
        let SeenFile { text, names } = self.files.get(&(lock, key.file.as_str()))?;
        Some(!names.contains(key.name.as_str()) && !may_be_named_in(text, &key.name))
    }
}

/// Whether something in a text may be called this: the name is the value of a field whose key ends with `name`, or no
/// key is on its line, as in a block scalar.
pub fn may_be_named_in(text: &[u8], name: &str) -> bool {
    let is_of_name = |char: &u8| char.is_ascii_alphanumeric() || b"-.".contains(char);
    memmem::find_iter(text, name.as_bytes()).any(|at| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        let is_part =
            before.last().is_some_and(is_of_name) || behind.first().is_some_and(is_of_name);
        let line = memrchr(b'\n', before).map_or(before, |end| &before[end + 1..]);
        !is_part && memrchr(b':', line).is_none_or(|colon| is_value_of_name(line, colon))
    })
}

/// Whether the key before a colon ends with `name`, and only quotes, an anchor or a tag follow the colon.
fn is_value_of_name(line: &[u8], colon: usize) -> bool {
    let (key, value) = line.split_at(colon);
    let (key, value) = (key.trim_ascii_end(), value[1..].trim_ascii());
    let quoted = key.strip_suffix(b"\"").or(key.strip_suffix(b"'"));
    let key = quoted.unwrap_or(key);
    key.to_ascii_lowercase().ends_with(b"name")
        && value.first().is_none_or(|char| b"\"'&!".contains(char))
}
