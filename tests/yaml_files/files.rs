//! Manifests to read: those of this repository, and the sets that lie beside a working copy where they are there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// `testdata` of this repository: always there.
    Own,
    Torture,
    Corpus,
}

fn path(folder: Folder) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    match folder {
        Folder::Own => root.join("testdata"),
        Folder::Torture => root.join("../shared/torture"),
        Folder::Corpus => root.join("../shared/corpus"),
    }
}

/// Name and bytes of each file, sorted; `None` where there is no such folder.
pub fn read(folder: Folder) -> Option<Vec<(String, Vec<u8>)>> {
    let root = path(folder);
    if !root.is_dir() {
        println!("skipped: there is no {}", root.display());
        return None;
    }
    let is_manifest = |path: &Path| {
        path.extension()
            .is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
    };
    let mut files: Vec<_> = walkdir::WalkDir::new(&root)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file() && is_manifest(entry.path()))
        .map(|entry| {
            let name = entry
                .path()
                .strip_prefix(&root)
                .unwrap()
                .display()
                .to_string();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    Some(files)
}

/// Calls `see` with every chunk that is UTF-8; says whether there were files at all.
pub fn each_chunk(folders: &[Folder], mut see: impl FnMut(&str, &str)) -> bool {
    let mut has_files = false;
    for (name, bytes) in folders.iter().filter_map(|&folder| read(folder)).flatten() {
        has_files = true;
        for chunk in podgraft_core::yaml::stream::chunks(&bytes) {
            if let Ok(text) = std::str::from_utf8(chunk.text) {
                see(&format!("{name} at byte {}", chunk.start), text);
            }
        }
    }
    has_files
}

/// File name to class, from the table in `TORTURE.md`.
pub fn torture_table() -> BTreeMap<String, String> {
    let text = fs::read_to_string(path(Folder::Torture).join("TORTURE.md"))
        .expect("the set has its table");
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        Some((cells.next()?.to_owned(), cells.next()?.to_owned()))
    };
    text.lines().filter_map(row).collect()
}
