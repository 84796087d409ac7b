//! Writes the result of a run: to stdout, over the files, or into a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use podgraft_core::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use podgraft_core::patches::{COMPONENT, Component, GENERATED};
use podgraft_core::yaml::splice::write_spliced;

use crate::args::relevant_flags::usage;
use crate::grafted_file::GraftedFile;
use crate::locks::{LockFiles, NewLock};
use crate::paths::{is_in_the_way, resolved};
use crate::problems::collect_all;
use crate::protected_inputs::{InputFiles, inputs_of_all_shards};
use crate::run::GraftOutcome;
use crate::stdout::{print, print_with};
use crate::stream::join;
use crate::walk::{InputPlace, reads_stdin};
use crate::write::{
    FileReplacement, NewFile, WriteFailure, both_written, changed_meanwhile, create, lock_folders,
    remove_leftovers, replace,
};

/// The files or the stream to which the result is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputTarget<'a> {
    /// Replace the files.
    pub in_place: bool,
    /// Write a tree of results into this folder.
    pub output_dir: Option<&'a Path>,
}

/// Refuses `--in-place` together with stdin, which cannot be replaced.
pub fn check_target(target: OutputTarget<'_>, paths: &[PathBuf]) -> Result<(), clap::Error> {
    if target.in_place && reads_stdin(paths) {
        let message = "--in-place needs files or folders: stdin cannot be replaced";
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    Ok(())
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
            let locks = grafted.changed_locks()?;
            write_in_place(files, &grafted.lock_files, &locks)?;
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

/// Replaces the files and their lock files. The lock files are first written with the records of before and after the
/// run, then the manifests, and at the end the lock files with the records of after it. So a kill at any moment loses
/// no record.
fn write_in_place(
    files: &[GraftedFile],
    lock_files: &LockFiles,
    locks: &[NewLock],
) -> Result<(), WriteFailure> {
    remove_leftovers(files.iter().filter_map(|file| file.input.path()));
    let changed: Vec<_> = files.iter().filter_map(replacement).collect();
    if changed.is_empty() && locks.is_empty() {
        return Ok(());
    }
    let targets = changed.iter().map(|file| file.path.clone());
    let targets: Vec<PathBuf> = targets.chain(lock_files.paths()).collect();
    // Lock files are created and removed while the folders are locked, so no run takes away what another needs.
    let targets = targets.iter().map(PathBuf::as_path);
    let _held = lock_folders(targets).map_err(|problem| vec![problem])?;
    // Another run may have written both the manifests and their records since this one read them.
    lock_files.check_unchanged()?;
    check_recorded(files)?;
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

/// Checks that the files which stay as they are, and whose workloads are recorded, are still as the run read them.
fn check_recorded(files: &[GraftedFile]) -> Diagnosed {
    let is_recorded =
        |file: &&GraftedFile| file.report.edits.is_empty() && !file.report.records.is_empty();
    let recorded = files.iter().filter(is_recorded);
    collect_all(recorded.map(|file| match file.input.read()? == *file.text {
        true => Ok(()),
        false => Err(changed_meanwhile(&file.input.name)),
    }))?;
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
fn check_other_shards(folder: &Path, files: &[NewFile<'_>], grafted: &GraftOutcome) -> Diagnosed {
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
    let (folder, report) = (target.output_dir?, resolved(report?)?);
    let is_report =
        |file: &&GraftedFile| is_in_the_way(&report, &folder.join(mirrored(&file.input.place)));
    let file = files.iter().find(is_report)?;
    let message = format!(
        "the report and `{}` would both be written to `{}`",
        file.input.name,
        report.display()
    );
    Some(Diagnostic::error(Code::File, message).help("choose a different file for --report"))
}

/// Writes a kustomize Component into its folder.
pub fn write_component(folder: &Path, component: Component, originals: &InputFiles) -> Diagnosed {
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
