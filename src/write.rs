//! Writes results to files. Each result is written beside its target under a hidden name, and renamed to the target
//! when all results of the run are written. A run that is killed leaves each target with its old or its new content,
//! and at most hidden files, which the next run removes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic};

use crate::file_identity::{FileIdentity, identity};
use crate::paths::real;
use crate::problems::{collect_all, not_written};
use crate::protected_inputs::{InputFiles, overwrites};
use failure::collect_by_cause;
use system::{keep_owner, restrict};

pub use failure::WriteFailure;

mod failure;
mod system;

const TEMPORARY_END: &str = ".podgraft-tmp";
/// The longest file name in bytes (`NAME_MAX` of most file systems).
const LONGEST_NAME: usize = 255;

/// A file that gets new content.
#[derive(Debug)]
pub struct FileReplacement<'a> {
    /// The path as the user wrote it, for messages.
    pub name: &'a str,
    /// The file. If it is a symbolic link, its target is replaced and the link stays.
    pub path: PathBuf,
    /// The content that the run has read.
    pub old: &'a [u8],
    /// The new content.
    pub new: Vec<u8>,
}

/// A file to create, or to overwrite as a whole.
#[derive(Debug)]
pub struct NewFile<'a> {
    /// The input that it comes from, as the user wrote it.
    pub name: &'a str,
    /// The path to write to.
    pub path: PathBuf,
    /// Its content.
    pub text: Vec<u8>,
}

/// A result under its hidden name, ready to be renamed. The file is not kept open: a run may replace more files than a
/// process may have open.
struct StagedFile {
    temporary: PathBuf,
    target: PathBuf,
    /// Identifies the file that this run created, as another run may replace it by a file of the same name.
    identity: FileIdentity,
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // After the rename the hidden name does not exist. If it does, the run has failed and must not leave it behind.
        if self.is_in_place() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

impl StagedFile {
    /// Whether the hidden file still exists and is the one that this run created.
    fn is_in_place(&self) -> bool {
        fs::symlink_metadata(&self.temporary)
            .is_ok_and(|metadata| identity(&metadata) == self.identity)
    }
}

/// Replaces all files, or none of them if a problem shows before the first rename. The caller holds the locks of their
/// folders ([`lock_folders`]).
pub fn replace(files: &[FileReplacement<'_>]) -> Result<(), WriteFailure> {
    // Whatever is likely to fail comes before the first rename: checks, writing the new content, and a second look at
    // the old. The renames together are not atomic.
    let targets = collect_all(files.iter().map(check_target))?;
    let mut seen = BTreeSet::new();
    let chosen: Vec<_> = files
        .iter()
        .zip(targets)
        // A file that is named twice, as by a link, is replaced once.
        .filter(|(_, (real, _))| seen.insert(real.clone()))
        .collect();
    let staged = collect_by_cause(chosen.iter().map(|(file, (real, metadata))| {
        stage(real, &file.new, Some(metadata), Durability::Yes)
            .map_err(|error| (file.name.to_owned(), error))
    }))?;
    let files = chosen.iter();
    let checked = collect_all(files.map(|(file, (real, _))| check_unchanged(file, real)))?;
    for (written, ((staged, (file, (real, _))), state)) in
        staged.iter().zip(&chosen).zip(checked).enumerate()
    {
        let placed = check_state(real, &state).and_then(|()| commit(staged));
        placed.map_err(|error| stopped_midway(file.name, &error, written, chosen.len()))?;
    }
    sync_folders(staged.iter().map(|staged| staged.target.as_path()));
    Ok(())
}

/// Removes the hidden files that a killed run left beside these files.
pub fn remove_leftovers(paths: impl Iterator<Item = PathBuf>) {
    for path in paths {
        let Ok(real) = fs::canonicalize(&path) else {
            continue;
        };
        let Ok(temporary) = temporary_name(&real) else {
            continue;
        };
        let metadata = temporary.symlink_metadata();
        // The lock fails if another run is writing in this folder: the hidden file may be that run's.
        if metadata.is_ok_and(|metadata| metadata.is_file())
            && let Ok(_lock) = lock_folder(real.parent().unwrap_or(Path::new(".")))
        {
            let _ = fs::remove_file(&temporary);
        }
    }
}

/// The most folders to lock at a time. Each lock is an open file, and a process may have 1024, on some systems 256.
const MOST_LOCKS: usize = 128;

/// Locks the folders of the files until the returned files are dropped. Two runs that replace files of one folder would
/// use the same hidden names, so the second run is refused. Locks are taken in the order of paths, so a second run over
/// the same tree fails at the first folders, and the cut at [`MOST_LOCKS`] is harmless.
///
/// # Errors
/// If another run holds one of the locks.
pub fn lock_folders<'a>(files: impl Iterator<Item = &'a Path>) -> Result<Vec<File>, Diagnostic> {
    let folders = files.filter_map(|file| real(file).parent().map(Path::to_path_buf));
    let folders: BTreeSet<PathBuf> = folders.collect();
    let locks = folders.iter().take(MOST_LOCKS);
    locks
        .filter_map(|folder| lock_folder(folder).transpose())
        .collect()
}

/// Locks a folder until the returned file is dropped or the process ends. `None` if the system cannot lock folders.
fn lock_folder(folder: &Path) -> Result<Option<File>, Diagnostic> {
    let Ok(opened) = File::open(folder) else {
        return Ok(None);
    };
    match opened.try_lock() {
        Ok(()) => Ok(Some(opened)),
        Err(TryLockError::Error(_)) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let folder = folder.display();
            let message = format!("another podgraft process is writing to the folder `{folder}`");
            Err(Diagnostic::error(Code::File, message)
                .help("run podgraft again when the other process has finished"))
        }
    }
}

/// Writes whole files below `root` and creates missing folders. Writes none of them if a problem shows before the first
/// rename.
pub fn create(
    root: &Path,
    files: &[NewFile<'_>],
    originals: &InputFiles,
) -> Result<(), WriteFailure> {
    check_distinct(files)?;
    collect_all(files.iter().map(|file| {
        check_not_an_input(file, originals).and_then(|()| check_target_free(root, &file.path))
    }))?;
    let staged = collect_by_cause(files.iter().map(stage_new))?;
    for (written, staged_file) in staged.iter().enumerate() {
        let name = staged_file.target.to_string_lossy();
        commit(staged_file)
            .map_err(|error| stopped_midway(&name, &error, written, staged.len()))?;
    }
    Ok(())
}

/// Checks that no folder is in the way of the target, no file in the way of its folders, and that no symbolic link
/// leads out of `root`.
fn check_target_free(root: &Path, target: &Path) -> Result<(), Diagnostic> {
    let real_root = fs::canonicalize(root);
    let above = target.ancestors().skip(1);
    let below: Vec<&Path> = above
        .take_while(|folder| folder.starts_with(root))
        .collect();
    for folder in below.into_iter().rev() {
        let Ok(metadata) = fs::metadata(folder) else {
            return match folder.is_symlink() {
                true => Err(obstruction(
                    folder,
                    "is a symbolic link whose target does not exist",
                )),
                false => Ok(()),
            };
        };
        if !metadata.is_dir() {
            return Err(obstruction(folder, "is not a folder"));
        }
        let leads_out = || match (fs::canonicalize(folder), &real_root) {
            (Ok(real), Ok(root)) => !real.starts_with(root),
            _ => false,
        };
        if folder != root && leads_out() {
            return Err(obstruction(
                folder,
                "is a symbolic link that points outside the output folder",
            ));
        }
    }
    let problem = "is a folder, but a file would be written there";
    match fs::symlink_metadata(target) {
        Ok(metadata) if metadata.is_dir() => Err(obstruction(target, problem)),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn obstruction(path: &Path, problem: &str) -> Diagnostic {
    Diagnostic::error(Code::File, format!("`{}` {problem}", path.display()))
        .help("move it, or choose a different folder for --output-dir")
}

/// Writes one file atomically: a reader, also after a kill, finds the old text or the new one. What is no regular file
/// (`/dev/stdout`, a pipe) is written to directly.
pub fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    // A symbolic link stays a link; its target gets the text.
    let real = real(path);
    let previous = fs::metadata(&real).ok();
    if let Some(metadata) = &previous {
        if !metadata.is_file() {
            return fs::write(&real, text);
        }
        // A rename succeeds even if the target is not writable, so its permission is checked here.
        OpenOptions::new().write(true).open(&real)?;
    }
    commit(&stage(&real, text, previous.as_ref(), Durability::No)?)
}

/// Resolves the path and checks that its file may be replaced. Returns the resolved path and its metadata.
fn check_target(file: &FileReplacement<'_>) -> Result<(PathBuf, Metadata), Diagnostic> {
    let fail = |error: io::Error| not_written(file.name, error);
    let real = fs::canonicalize(&file.path).map_err(fail)?;
    let metadata = fs::metadata(&real).map_err(fail)?;
    if !metadata.is_file() {
        let message = format!(
            "`{}` is not a regular file and cannot be replaced",
            file.name
        );
        return Err(Diagnostic::error(Code::File, message)
            .help("run without --in-place to write the result to stdout"));
    }
    if metadata.permissions().readonly() {
        let message = format!("`{}` is read-only", file.name);
        return Err(Diagnostic::error(Code::File, message)
            .help("make it writable, or write to a different folder with --output-dir"));
    }
    OpenOptions::new().write(true).open(&real).map_err(fail)?;
    Ok((real, metadata))
}

/// Checks that the file still has the content that was read, as it may have been edited during the run. Returns its
/// metadata for a later [`check_state`].
fn check_unchanged(file: &FileReplacement<'_>, real: &Path) -> Result<Metadata, Diagnostic> {
    let fail = |error: io::Error| not_written(file.name, error);
    let state = fs::metadata(real).map_err(fail)?;
    match fs::read(real).map_err(fail)? == file.old {
        true => Ok(state),
        false => Err(changed_meanwhile(file.name)),
    }
}

/// The error for a file that is no longer as it was when the run read it.
pub fn changed_meanwhile(name: &str) -> Diagnostic {
    let message = format!("`{name}` was changed during the run");
    Diagnostic::error(Code::File, message).help("run podgraft again")
}

/// Checks by metadata alone that the file is as [`check_unchanged`] found it. In between, many other files are read and
/// renamed.
fn check_state(real: &Path, before: &Metadata) -> io::Result<()> {
    let metadata = fs::metadata(real)?;
    let is_same = identity(&metadata) == identity(before)
        && metadata.len() == before.len()
        && metadata.modified().ok() == before.modified().ok();
    match is_same {
        true => Ok(()),
        false => Err(io::Error::other("it was changed during the run")),
    }
}

/// Whether a result is synced to disk before the rename, so that it survives a power failure.
#[derive(PartialEq, Eq)]
enum Durability {
    Yes,
    No,
}

/// Writes the content under the hidden name, with the mode and owner of the file that it is to replace.
fn stage(
    target: &Path,
    content: &[u8],
    previous: Option<&Metadata>,
    durable: Durability,
) -> io::Result<StagedFile> {
    let temporary = temporary_name(target)?;
    let mut file = create_fresh(&temporary, previous)?;
    let staged = StagedFile {
        identity: identity(&file.metadata()?),
        temporary,
        target: target.to_path_buf(),
    };
    file.write_all(content)?;
    if let Some(previous) = previous {
        keep_owner(&file, previous);
        file.set_permissions(previous.permissions())?;
    }
    if durable == Durability::Yes {
        file.sync_all()?;
    }
    Ok(staged)
}

/// Creates the hidden file. It never opens an existing one, which may be a link to another place, or a pipe without a
/// reader.
fn create_fresh(temporary: &Path, previous: Option<&Metadata>) -> io::Result<File> {
    if fs::symlink_metadata(temporary).is_ok() {
        fs::remove_file(temporary)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    restrict(&mut options, previous);
    options.open(temporary)
}

fn commit(staged: &StagedFile) -> io::Result<()> {
    if !staged.is_in_place() {
        return Err(io::Error::other("another podgraft process is writing it"));
    }
    fs::rename(&staged.temporary, &staged.target)
}

/// `.NAME.podgraft-tmp` in the target's folder.
fn temporary_name(target: &Path) -> io::Result<PathBuf> {
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::other("the path has no file name"))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(TEMPORARY_END);
    if hidden.len() > LONGEST_NAME {
        return Err(io::Error::other(format!(
            "its name is over {} bytes long",
            LONGEST_NAME - 1 - TEMPORARY_END.len()
        )));
    }
    Ok(target.with_file_name(hidden))
}

/// Stages a file and creates its folder. The error names the path that it is about.
fn stage_new(file: &NewFile<'_>) -> Result<StagedFile, (String, io::Error)> {
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let named = |path: &Path, error| (path.to_string_lossy().into_owned(), error);
    fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
    let previous = fs::symlink_metadata(&file.path).ok();
    let previous = previous.filter(Metadata::is_file);
    stage(&file.path, &file.text, previous.as_ref(), Durability::No)
        .map_err(|error| named(&file.path, error))
}

fn check_distinct(files: &[NewFile<'_>]) -> Diagnosed {
    let targets: BTreeSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
    collect_all(
        files
            .iter()
            .map(|file| check_no_file_above(&file.path, &targets)),
    )?;
    let mut sources: BTreeMap<&OsStr, &str> = BTreeMap::new();
    let distinct = files.iter().map(|file| {
        let first = sources.insert(file.path.as_os_str(), file.name);
        first.map_or(Ok(()), |first| {
            Err(both_written(first, file.name, &file.path))
        })
    });
    collect_all(distinct).map(|_| ())
}

/// Checks that no folder of a path is itself a file to write.
fn check_no_file_above(path: &Path, targets: &BTreeSet<&Path>) -> Result<(), Diagnostic> {
    let mut folders = path.ancestors().skip(1);
    let Some(folder) = folders.find(|folder| targets.contains(folder)) else {
        return Ok(());
    };
    let folder = folder.display();
    Err(indistinct(format!(
        "`{folder}` would be both a file and a folder in the output"
    )))
}

/// The error for two inputs whose results have the same path.
pub fn both_written(first: &str, second: &str, path: &Path) -> Diagnostic {
    let path = path.display();
    indistinct(format!(
        "`{first}` and `{second}` would both be written to `{path}`"
    ))
}

fn indistinct(message: String) -> Diagnostic {
    Diagnostic::error(Code::File, message)
        .help("pass a folder that contains both, so that the output keeps its structure")
}

fn check_not_an_input(file: &NewFile<'_>, originals: &InputFiles) -> Result<(), Diagnostic> {
    match originals.holds(&file.path) {
        true => Err(overwrites(&file.path).help(
            "choose a different folder for --output-dir, exclude this one with --exclude, or use \
             --in-place",
        )),
        false => Ok(()),
    }
}

fn stopped_midway(name: &str, error: &io::Error, written: usize, total: usize) -> WriteFailure {
    let help = match written {
        0 => "no file was changed".to_owned(),
        _ => {
            format!(
                "run podgraft again to write the others: {written} of {total} files were written"
            )
        }
    };
    WriteFailure {
        nothing_written: written == 0,
        ..WriteFailure::midway(not_written(name, error).help(help))
    }
}

/// Syncs the folders: a rename survives a power failure only when its folder is on disk.
fn sync_folders<'a>(targets: impl Iterator<Item = &'a Path>) {
    let folders: BTreeSet<&Path> = targets.filter_map(Path::parent).collect();
    for folder in folders {
        // Some file systems cannot sync a folder. The content of the files is on disk already.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}
