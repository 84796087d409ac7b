//! The lock files of a run: found from the folder of each input upward, read before the run, and written with its
//! results.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use memchr::memmem;
use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use podgraft_core::options::WorkloadPattern;
use podgraft_core::outcome::{Outcome, WorkloadReport};
use podgraft_core::ownership::{RecordedWorkload, WorkloadKey};
use podgraft_core::record::lock::{
    LATER_VERSION, LOCK_FILE, Lock, LockSet, SeenWorkloads, may_be_named_in,
};
use podgraft_core::record::{MARKER, RECORD};

use walkdir::{DirEntry, WalkDir};

use crate::file_identity::{FileIdentity, identity_of};
use crate::grafted_file::GraftedFile;
use crate::lock_location::{
    canonical_folder, lock_folder_of, path_in_lock, records_above, walked_folders, without_link,
};
use crate::paths::is_manifest_name;
use crate::problems::{not_read, not_written};
use crate::repository::{is_sparse_checkout, root_of};
use crate::texts::InputBytes;
use crate::walk::{Input, InputPlace};
use crate::write::{FileReplacement, changed_meanwhile};

/// The lock files of a run.
#[derive(Debug, Default)]
pub struct LockFiles {
    files: Vec<LockFile>,
    /// Their content, and which lock each input belongs to.
    pub locks: Arc<LockSet>,
    /// The files that are not of this run and whose workloads need generated objects. They have their names in messages
    /// from the folder from which the inputs have theirs.
    pub other_files: Vec<Input>,
}

#[derive(Debug)]
struct LockFile {
    folder: PathBuf,
    /// Git has checked out a part of the repository (`git sparse-checkout`); known once a file is missed.
    is_sparse: OnceLock<bool>,
    /// Its text; `None` if it does not exist yet.
    text: Option<String>,
}

/// A lock file that the run changes.
#[derive(Debug)]
pub struct NewLock {
    /// The file.
    pub path: PathBuf,
    name: String,
    /// The text before the run; empty if there is no file.
    pub old: String,
    /// The records of before and after the run together. It is right at every moment while the manifests are replaced.
    pub merged: String,
    /// The text after the run; empty if nothing is recorded.
    pub new: String,
}

impl LockFiles {
    /// Finds and reads the lock files of the inputs.
    pub fn of(texts: &[InputBytes]) -> Diagnosed<Self> {
        let mut found = LockFiles::default();
        let (mut locks, mut problems) = (LockSet::default(), Vec::new());
        let walked = walked_folders(texts);
        let mut folders: HashMap<PathBuf, Option<(PathBuf, usize)>> = HashMap::new();
        for (input, _) in texts {
            let Some(path) = input.path().map(without_link) else {
                continue;
            };
            let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
            let known = folders.entry(folder).or_insert_with_key(|folder| {
                let folder = canonical_folder(folder)?;
                let above = walked.iter().find(|walked| folder.starts_with(walked));
                let home = lock_folder_of(&folder, above.map(PathBuf::as_path));
                problems.extend(records_above(&folder, &home));
                let index = found.index_in(&home, &mut locks, &mut problems);
                Some((folder.strip_prefix(&home).ok()?.to_path_buf(), index))
            });
            if let (Some((folder, index)), Some(name)) = (known, path.file_name()) {
                let file = path_in_lock(&folder.join(name));
                locks.files.insert(Arc::clone(&input.name), (*index, file));
            }
        }
        // A walked folder may have no file left, and the lock file still has what moved elsewhere.
        for walked in &walked {
            let home = lock_folder_of(walked, Some(walked));
            if home.join(LOCK_FILE).is_file() {
                found.index_in(&home, &mut locks, &mut problems);
            }
        }
        let elsewhere = locks.files_elsewhere().into_iter();
        locks.gone = elsewhere
            .filter(|(index, file)| found.files[*index].is_gone(file))
            .collect();
        for (index, file) in locks.files_with_generated() {
            let path = found.files[index].folder.join(&file);
            if path.is_file() && is_below(&file) {
                let name = name_beside(texts, &locks, index, &file);
                let place = InputPlace::Named(path);
                found.other_files.push(Input { place, name });
            }
        }
        found.other_files.sort_by_cached_key(Input::path);
        found.locks = Arc::new(locks);
        unless(problems, found)
    }

    /// The index of the lock file of a folder, which is read when it is met for the first time.
    fn index_in(
        &mut self,
        home: &Path,
        locks: &mut LockSet,
        problems: &mut Vec<Diagnostic>,
    ) -> usize {
        if let Some(index) = self.files.iter().position(|file| file.folder == home) {
            return index;
        }
        let (lock, text) = read(&home.join(LOCK_FILE)).unwrap_or_else(|problem| {
            problems.push(problem);
            (Lock::default(), None)
        });
        locks.locks.push(lock);
        self.files.push(LockFile {
            folder: home.to_path_buf(),
            is_sparse: OnceLock::new(),
            text,
        });
        self.files.len() - 1
    }

    /// The lock files that lack a workload which is marked and has what a policy of theirs wants, with their texts.
    pub fn without_marked(&self, files: &[GraftedFile]) -> BTreeMap<PathBuf, &str> {
        let mut found = BTreeMap::new();
        for file in files {
            let Some((index, path)) = self.locks.files.get(&file.input.name) else {
                continue;
            };
            let (lock, lock_file) = (&self.locks.locks[*index], &self.files[*index]);
            if let Some(text) = &lock_file.text
                && unrecorded(file).any(|policy| lock.knows(policy, path))
            {
                found.insert(lock_file.path(), text.as_str());
            }
        }
        found
    }

    /// The lock files that the run changes. `selection` has the patterns of `--workload`.
    ///
    /// # Errors
    /// For workloads of one name in one file whose records differ: a lock file has one for them all.
    pub fn changed_locks(
        &self,
        files: &[GraftedFile],
        selection: &[WorkloadPattern],
    ) -> Diagnosed<Vec<NewLock>> {
        unless(files.iter().flat_map(indistinct_records).collect(), ())?;
        let mut locks = LockSet::clone(&self.locks);
        // A run over some of the workloads does not know where the others are.
        locks.keeps_all_lines = !selection.is_empty();
        let of_run = files.iter().map(|file| {
            let records = file.report.records.as_slice();
            (&*file.input.name, file.text.as_slice(), records)
        });
        let seen = SeenWorkloads::of(&self.locks, of_run);
        for (index, lock) in locks.locks.iter_mut().enumerate() {
            // In a file that is not of this run, a record goes if the file is gone.
            let is_gone = |key: &&WorkloadKey| {
                let is_file_gone = || self.locks.gone.contains(&(index, key.file.clone()));
                seen.is_gone(index, key).unwrap_or_else(is_file_gone)
            };
            let mut gone: BTreeSet<WorkloadKey> =
                lock.workloads().filter(is_gone).cloned().collect();
            if !gone.is_empty() && selection.is_empty() {
                self.keep_moved(index, &mut gone, files);
                lock.retain(|key| !gone.contains(key));
            }
        }
        let records = files.iter();
        locks.put_all(records.map(|file| (&*file.input.name, file.report.records.as_slice())));
        let files = self.files.iter().zip(&locks.locks);
        let changed = files.filter_map(|(file, lock)| new_lock(file, lock));
        Ok(changed.collect())
    }

    /// The paths of the lock files of the run.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(LockFile::path)
    }

    /// Checks that the lock files are still as the run read them.
    pub fn check_unchanged(&self) -> Diagnosed {
        let changed = self.files.iter().filter(|file| {
            let now = fs::read_to_string(file.path()).ok();
            now.unwrap_or_default() != file.text.as_deref().unwrap_or_default()
        });
        let problem = |file: &LockFile| changed_meanwhile(&file.path().to_string_lossy());
        unless(changed.map(problem).collect(), ())
    }

    /// Takes out of the workloads that are gone those that a marked file may have which this run did not look into: they
    /// may have moved there.
    fn keep_moved(&self, index: usize, gone: &mut BTreeSet<WorkloadKey>, files: &[GraftedFile]) {
        let home = self.files[index].folder.as_path();
        let top = root_of(home).unwrap_or(home).to_path_buf();
        let of_run = files.iter().filter_map(|file| {
            let (lock, path) = self.locks.files.get(&file.input.name)?;
            Some(self.files[*lock].folder.join(path))
        });
        let of_run: HashSet<PathBuf> = of_run.collect();
        // Also what a run passes over, such as templates and hidden folders.
        let is_git = |entry: &DirEntry| entry.file_name() == ".git";
        let found = WalkDir::new(top)
            .into_iter()
            .filter_entry(|entry| !is_git(entry));
        let others = found.filter_map(|entry| Some(entry.ok()?.into_path()));
        let others = others.filter(|path| is_manifest_name(path) && !of_run.contains(path));
        for text in others.filter_map(|path| fs::read(path).ok()) {
            if is_marked(&text) {
                gone.retain(|key| !may_be_named_in(&text, &key.name));
            }
        }
    }
}

fn is_marked(text: &[u8]) -> bool {
    memmem::find(text, MARKER.as_bytes()).is_some()
}

/// The policies whose items are in marked workloads of a file that have no record.
fn unrecorded(file: &GraftedFile) -> impl Iterator<Item = &str> {
    let records = file.report.records.iter();
    let recorded: HashSet<RecordKey<'_>> = records.map(key_of_record).collect();
    let workloads = file.report.workloads.iter();
    let marked = workloads.filter(move |workload| {
        let text = &file.text[workload.extent.clone()];
        let has = |annotation: &str| memmem::find(text, annotation.as_bytes()).is_some();
        has(MARKER) && !has(RECORD) && !recorded.contains(&key_in_records(workload))
    });
    let reports = marked.flat_map(|workload| &workload.policies);
    let settled = reports.filter(|report| report.outcome == Outcome::UpToDate);
    settled.map(|report| &*report.policy)
}

/// Kind, namespace and name of a workload, as records have them.
type RecordKey<'a> = (&'a str, &'a str, &'a str);

fn key_of_record(record: &RecordedWorkload) -> RecordKey<'_> {
    (&record.kind, &record.namespace, &record.name)
}

fn key_in_records(workload: &WorkloadReport) -> RecordKey<'_> {
    let namespace = workload.namespace.as_deref();
    let namespace = namespace.filter(|_| workload.states_namespace);
    (
        &workload.kind,
        namespace.unwrap_or_default(),
        &workload.name,
    )
}

/// Whether a path leads to a file below its folder. A line that somebody wrote into a lock file may lead elsewhere.
fn is_below(file: &str) -> bool {
    let mut steps = Path::new(file).components();
    steps.all(|step| matches!(step, Component::Normal(_)))
}

/// Returns the name of a file of a lock file, as an input of the same lock file would have it.
fn name_beside(texts: &[InputBytes], locks: &LockSet, index: usize, file: &str) -> Arc<str> {
    let of_lock = |(input, _): &InputBytes| {
        let (lock, input_file) = locks.files.get(&input.name)?;
        (*lock == index).then(|| (input.path(), input_file))
    };
    let Some((Some(path), input_file)) = texts.iter().find_map(of_lock) else {
        return file.into();
    };
    // What the path and the lock file's path of the input have in common at their ends is below both folders.
    let (mut folder, mut below) = (path.as_path(), Path::new(input_file));
    while let (Some(name), Some(step)) = (folder.file_name(), below.file_name())
        && name == step
    {
        folder = folder.parent().unwrap_or(Path::new(""));
        below = below.parent().unwrap_or(Path::new(""));
    }
    let mut name = folder.to_path_buf();
    match Path::new(file).strip_prefix(below) {
        Ok(rest) => name.push(rest),
        Err(_) => {
            name.extend(below.iter().map(|_| ".."));
            name.push(file);
        }
    }
    name.to_string_lossy().into()
}

/// Errors about the workloads of a file that have the same name and different records.
fn indistinct_records(file: &GraftedFile) -> Vec<Diagnostic> {
    let (mut records, mut problems) = (BTreeMap::new(), Vec::new());
    for workload in &file.report.records {
        let Some(record) = &workload.record else {
            continue;
        };
        if *records.entry(key_of_record(workload)).or_insert(record) != record {
            problems.push(indistinct(workload, &file.input.name));
        }
    }
    problems
}

fn indistinct(workload: &RecordedWorkload, file: &str) -> Diagnostic {
    let RecordedWorkload { kind, name, .. } = workload;
    let message = format!(
        "{kind} `{name}` appears more than once in `{file}`, with different injections: \
         podgraft.lock cannot tell them apart"
    );
    Diagnostic::error(Code::NoRecord, message).help(
        "give them different names or namespaces, put them into different files, or keep the records in the manifests \
         (--record)",
    )
}

/// The lock file as the run leaves it; `None` if it stays as it is.
fn new_lock(file: &LockFile, lock: &Lock) -> Option<NewLock> {
    let (old, new) = (file.text.clone().unwrap_or_default(), lock.render());
    let merged = match (&*old, &*new) {
        _ if old == new => return None,
        ("", text) | (text, "") => text.to_owned(),
        // A lock file may have the lines of two versions, as after a merge in Git. So both texts together are a valid
        // one.
        _ => Lock::read(&[&old, "\n", &new].concat())
            .map_or_else(|_| new.clone(), |merged| merged.render()),
    };
    let path = file.path();
    Some(NewLock {
        name: path.to_string_lossy().into_owned(),
        path,
        old,
        merged,
        new,
    })
}

impl LockFile {
    fn path(&self) -> PathBuf {
        self.folder.join(LOCK_FILE)
    }

    /// Whether a file that the lock file names is gone. In a sparse checkout, one that is not there may not be.
    fn is_gone(&self, file: &str) -> bool {
        let is_sparse = || {
            *self
                .is_sparse
                .get_or_init(|| is_sparse_checkout(&self.folder))
        };
        // A name with such a character may stand for one that is not UTF-8.
        let is_known = !file.contains(char::REPLACEMENT_CHARACTER);
        is_known && !self.folder.join(file).is_file() && !is_sparse()
    }
}

impl NewLock {
    /// Creates an empty file if there is none, as only existing files can be replaced. `None` if there is one.
    pub fn create_empty(&self) -> Result<Option<EmptyLock<'_>>, Diagnostic> {
        match File::create_new(&self.path) {
            Ok(_) => Ok(Some(EmptyLock {
                path: &self.path,
                identity: identity_of(&self.path),
            })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(not_written(&self.name, error)),
        }
    }

    /// The replacement of the file's text `old` by `new`.
    pub fn replacement<'l>(&'l self, old: &'l str, new: &str) -> FileReplacement<'l> {
        FileReplacement {
            name: &self.name,
            path: self.path.clone(),
            old: old.as_bytes(),
            new: new.as_bytes().to_vec(),
        }
    }

    /// Removes the file, which records nothing any more.
    pub fn remove(&self) -> Result<(), Diagnostic> {
        fs::remove_file(&self.path).map_err(|error| not_written(&self.name, error))
    }
}

/// An empty file that this run created. It goes when this is dropped, unless records have replaced it.
#[derive(Debug)]
pub struct EmptyLock<'l> {
    path: &'l Path,
    /// Another run may have put a file of its own in its place.
    identity: Option<FileIdentity>,
}

impl Drop for EmptyLock<'_> {
    fn drop(&mut self) {
        let is_empty = fs::metadata(self.path).is_ok_and(|metadata| metadata.len() == 0);
        if is_empty && identity_of(self.path) == self.identity {
            // If this fails, an empty lock file stays, which records nothing.
            let _ = fs::remove_file(self.path);
        }
    }
}

fn read(path: &Path) -> Result<(Lock, Option<String>), Diagnostic> {
    let name = path.to_string_lossy();
    // A link may lead anywhere, and the file is replaced.
    if path.is_symlink() {
        let message = format!("`{name}` is a symbolic link, which podgraft does not follow");
        let help = "replace the link with the file, or remove the link";
        return Err(Diagnostic::error(Code::File, message).help(help));
    }
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Lock::default(), None)),
        Err(error) => return Err(not_read(name, error)),
    };
    match Lock::read(&text) {
        Ok(lock) => Ok((lock, Some(text))),
        Err((line, reason)) => {
            let message = format!("line {line} of `{name}` cannot be read: {reason}");
            let help = match &*reason {
                LATER_VERSION => "upgrade podgraft",
                _ => {
                    "restore the file from its history; after a merge, keep the lines of both sides"
                }
            };
            Err(Diagnostic::error(Code::BadRecord, message).help(help))
        }
    }
}
