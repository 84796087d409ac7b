//! Writes the result of a run: to stdout, over the files, or into a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use podgraft_core::diagnostic::{Code, Diagnostic, unless};
use podgraft_core::outcome::FileReport;
use podgraft_core::patches::{COMPONENT, Component, GENERATED};
use podgraft_core::yaml::splice::{Edit, splice, splice_part, write_spliced};

use crate::locks::NewLock;
use crate::protected_inputs::{InputFiles, inputs_of_all_shards};
use crate::run::GraftOutcome;
use crate::stream::join;
use crate::walk::{Input, InputPlace};
use crate::write::{
    FileReplacement, NewFile, WriteFailure, both_written, create, lock_folders, remove_leftovers,
    replace,
};

/// Bytes of the buffer of stdout.
const BLOCK: usize = 256 << 10;

/// One file with its result.
pub struct GraftedFile {
    /// Where the file was found.
    pub input: Input,
    /// Its name in a patch, as bytes: a path need not be UTF-8.
    pub path: Vec<u8>,
    /// The text as it was read.
    pub text: Arc<Vec<u8>>,
    /// The edits, and what was done to each workload.
    pub report: FileReport,
    /// The byte ranges of its manifests, which go into a stream of documents. A file that was named is one range; in a
    /// file found in a folder, other documents are left out.
    pub parts: Vec<Range<usize>>,
}

/// The files or the stream to which the result is written.
#[derive(Debug, Clone, Copy)]
pub struct OutputTarget<'a> {
    /// Replace the files.
    pub in_place: bool,
    /// Write a tree of results into this folder.
    pub output_dir: Option<&'a Path>,
}

/// Prints a result on stdout.
pub fn print(result: &[u8]) -> Result<(), Diagnostic> {
    print_with(|stdout| stdout.write_all(result))
}

/// Stdout without a buffer, for writes in large pieces.
#[cfg(unix)]
pub fn unbuffered() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Stdout, for writes in large pieces.
#[cfg(not(unix))]
pub fn unbuffered() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Diagnostic> {
    let mut stdout = BufWriter::with_capacity(BLOCK, io::stdout().lock());
    ignore_broken_pipe(write(&mut stdout).and_then(|()| stdout.flush()))
        .map_err(|error| stdout_problem(&error))
}

/// A reader that closes the pipe early (`| head`) is no error.
pub fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The error for a result that cannot be printed.
pub fn stdout_problem(error: &io::Error) -> Diagnostic {
    Diagnostic::error(Code::File, format!("stdout cannot be written: {error}"))
}

/// Writes the results to the target. Writes no file if a problem shows before the first rename. Returns the lock files
/// that were written although no manifest changed.
pub fn write_result(
    target: OutputTarget<'_>,
    grafted: &GraftOutcome,
) -> Result<Vec<PathBuf>, WriteFailure> {
    let files = grafted.files.as_slice();
    match target.output_dir {
        Some(folder) => write_tree(folder, grafted)?,
        None if target.in_place => {
            let locks = grafted.lock_files.changed_locks(files)?;
            write_in_place(files, &locks)?;
            if files.iter().all(|file| file.report.edits.is_empty()) {
                return Ok(locks.into_iter().map(|lock| lock.path).collect());
            }
        }
        None => print_stream(files).map_err(WriteFailure::midway)?,
    }
    Ok(Vec::new())
}

fn print_stream(files: &[GraftedFile]) -> Result<(), Diagnostic> {
    match files {
        // A single text needs no join, so it goes out without a copy of the whole result in memory.
        [only] if only.is_whole() => {
            print_with(|stdout| write_spliced(&only.text, &only.report.edits, stdout))
        }
        _ => print(&join(files.iter().map(GraftedFile::stream_text).collect())),
    }
}

impl GraftedFile {
    /// Whether the whole text goes into a stream.
    fn is_whole(&self) -> bool {
        matches!(&self.parts[..], [only] if *only == (0..self.text.len()))
    }

    fn spliced(&self) -> Vec<u8> {
        splice(&self.text, &self.report.edits)
    }

    /// The manifests of the text with their edits applied.
    fn stream_text(&self) -> Vec<u8> {
        if self.is_whole() {
            return self.spliced();
        }
        let mut stream = Vec::new();
        for part in &self.parts {
            let edits = self.report.edits.iter();
            let edits: Vec<&Edit> = edits.filter(|edit| is_inside(edit, part)).collect();
            stream.extend(splice_part(&self.text, part, &edits));
        }
        stream
    }
}

/// Whether the edit belongs to the part. An insertion at the boundary of two documents belongs to the first: nothing is
/// inserted before a `---` line.
fn is_inside(edit: &Edit, part: &Range<usize>) -> bool {
    match edit.at.start {
        start if !edit.at.is_empty() || start == 0 => part.contains(&start),
        start => part.start < start && start <= part.end,
    }
}

/// Replaces the files and their lock files. The lock files are first written with the records of before and after the
/// run, then the manifests, and at the end the lock files with the records of after it. So a kill at any moment loses
/// no record.
fn write_in_place(files: &[GraftedFile], locks: &[NewLock]) -> Result<(), WriteFailure> {
    remove_leftovers(files.iter().filter_map(|file| file.input.path()));
    let changed: Vec<_> = files.iter().filter_map(replacement).collect();
    let targets = changed.iter().map(|file| &file.path);
    let targets = targets.chain(locks.iter().map(|lock| &lock.path));
    // Lock files are created and removed while the folders are locked, so no run takes away what another needs.
    let _held = lock_folders(targets.map(PathBuf::as_path)).map_err(|problem| vec![problem])?;
    let created: Result<Vec<_>, _> = locks.iter().map(NewLock::create_empty).collect();
    let _created = created.map_err(|problem| vec![problem])?;
    let during = locks
        .iter()
        .map(|lock| lock.replacement(&lock.old, &lock.merged));
    replace(&during.chain(changed).collect::<Vec<_>>())?;
    let after = locks.iter().filter(|lock| lock.new != lock.merged);
    let after: Vec<_> = after
        .map(|lock| lock.replacement(&lock.merged, &lock.new))
        .collect();
    replace(&after).map_err(|failure| WriteFailure {
        nothing_written: false,
        ..failure
    })?;
    for lock in locks.iter().filter(|lock| lock.new.is_empty()) {
        lock.remove().map_err(WriteFailure::midway)?;
    }
    Ok(())
}

/// The file with its edits; `None` if it has none.
fn replacement(file: &GraftedFile) -> Option<FileReplacement<'_>> {
    if file.report.edits.is_empty() {
        return None;
    }
    Some(FileReplacement {
        name: &file.input.name,
        path: file.input.path()?,
        old: &file.text,
        new: file.spliced(),
    })
}

fn write_tree(folder: &Path, grafted: &GraftOutcome) -> Result<(), WriteFailure> {
    let new = grafted.files.iter().map(|file| NewFile {
        name: &file.input.name,
        path: folder.join(mirrored(&file.input.place)),
        text: file.spliced(),
    });
    let new: Vec<_> = new.collect();
    check_other_shards(folder, &new, grafted)?;
    create(folder, &new, &grafted.originals())
}

/// Refuses results that another shard would overwrite.
fn check_other_shards(
    folder: &Path,
    files: &[NewFile<'_>],
    grafted: &GraftOutcome,
) -> Result<(), Vec<Diagnostic>> {
    let names = files.iter().map(|file| (file.path.as_path(), file.name));
    let names: BTreeMap<&Path, &str> = names.collect();
    let mut problems = Vec::new();
    for input in inputs_of_all_shards(&grafted.run) {
        let path = folder.join(mirrored(&input.place));
        if let Some(name) = names.get(path.as_path())
            && **name != *input.name
        {
            problems.push(both_written(name, &input.name, &path));
        }
    }
    unless(problems, ())
}

/// Returns an error if `--report` names the file of a result in the output folder: one of the two would be lost.
pub fn check_apart(
    target: OutputTarget<'_>,
    report: Option<&Path>,
    files: &[GraftedFile],
) -> Option<Diagnostic> {
    let (folder, report) = (target.output_dir?, absolute(report?)?);
    let is_report = |file: &&GraftedFile| {
        absolute(&folder.join(mirrored(&file.input.place))).as_ref() == Some(&report)
    };
    let file = files.iter().find(is_report)?;
    let message = format!(
        "the report and `{}` would both be written to `{}`",
        file.input.name,
        report.display()
    );
    Some(Diagnostic::error(Code::File, message).help("give --report another file"))
}

/// The path with its folder resolved: canonical if the folder exists, else absolute.
pub fn absolute(path: &Path) -> Option<PathBuf> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder)
        .or_else(|_| std::path::absolute(folder))
        .ok()?;
    Some(folder.join(path.file_name()?))
}

/// Writes a kustomize Component into its folder.
pub fn write_component(
    folder: &Path,
    component: Component,
    originals: &InputFiles,
) -> Result<(), Vec<Diagnostic>> {
    let new = |name, text: String| {
        let (path, text) = (folder.join(name), text.into_bytes());
        NewFile { name, path, text }
    };
    let mut files = vec![new(COMPONENT, component.kustomization)];
    files.extend(component.generated.map(|text| new(GENERATED, text)));
    create(folder, &files, originals).map_err(|failure| failure.problems)
}

/// The path of a result below the output folder.
fn mirrored(place: &InputPlace) -> PathBuf {
    match place {
        InputPlace::Stdin => PathBuf::from("stdin.yaml"),
        InputPlace::Named(path) => path.file_name().map_or_else(|| path.clone(), PathBuf::from),
        InputPlace::Found { relative, .. } => relative.clone(),
    }
}
