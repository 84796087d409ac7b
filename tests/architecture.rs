//! Data flows one way: a module of the library imports only what comes before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules in the order in which data flows. Changing it is a decision: say why in the commit.
const ORDER: &[&str] = &[
    "threads",
    "source",
    "excerpt",
    "glob",
    "diagnostic",
    "yaml",
    "wording",
    "mask",
    "ownership",
    "change",
    "outcome",
    "dangers",
    "options",
    "manifest",
    "policy",
    "config",
    "record",
    "inventory",
    "select",
    "plan",
    "edit",
    "convert",
    "debug",
    "patches",
    "verify",
    "undo",
    "graft",
    "policytest",
    "publish",
    "krm",
    "lint",
    "suggest",
    "report",
];

/// Of a file of the library or the program.
const MAX_LINES: usize = 500;
/// Of a file of tests.
const MAX_TEST_LINES: usize = 800;

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Where the library is.
const LIBRARY: &str = "crates/podgraft-core/src";

fn library_files() -> Vec<PathBuf> {
    let files = rust_files(Path::new(LIBRARY));
    assert!(!files.is_empty());
    files
}

/// Those of `podgraft-yaml`.
fn yaml_files() -> Vec<PathBuf> {
    let files = rust_files(Path::new("crates/podgraft-yaml/src"));
    assert!(!files.is_empty());
    files
}

/// The module of a file in the `src` of a crate.
fn module_of(path: &Path, source: &str) -> String {
    let inside = path
        .strip_prefix(source)
        .expect("it is a file of the crate");
    let first = inside
        .components()
        .next()
        .expect("a path has a component")
        .as_os_str()
        .to_string_lossy()
        .into_owned();
    first.trim_end_matches(".rs").to_owned()
}

fn rank(module: &str) -> usize {
    ORDER
        .iter()
        .position(|known| *known == module)
        .unwrap_or_else(|| panic!("module `{module}` is not in the order"))
}

#[test]
fn a_module_imports_only_what_comes_before_it() {
    let mut wrong = Vec::new();
    for path in library_files()
        .iter()
        .filter(|path| !path.ends_with("lib.rs"))
    {
        let importer = module_of(path, LIBRARY);
        for module in imports_of(path) {
            if rank(&module) > rank(&importer) {
                wrong.push(format!("{} imports {module}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The modules of its own crate that a file names.
fn imports_of(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).expect("the file is readable");
    let names = text.split("crate::").skip(1).map(|rest| {
        let name = rest
            .chars()
            .take_while(|char| char.is_alphanumeric() || *char == '_');
        name.collect()
    });
    names.collect()
}

#[test]
fn the_modules_of_the_program_have_no_cycles() {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in rust_files(Path::new("src")) {
        let module = module_of(&path, "src");
        let mut named = imports_of(&path);
        named.remove(&module);
        imports.entry(module).or_default().extend(named);
    }
    assert!(imports.len() > 40, "{imports:#?}");
    // What imports nothing that is left is in no cycle.
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        imports.retain(|_, named| !named.is_disjoint(&left));
        if imports.len() == left.len() {
            break;
        }
    }
    assert!(imports.is_empty(), "{imports:#?}");
}

#[test]
fn yaml_knows_no_kubernetes_word() {
    for path in yaml_files() {
        let text = fs::read_to_string(&path).expect("the file is readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            for word in ["container", "Deployment", "apiVersion", "metadata"] {
                assert!(!line.contains(word), "{}: {line}", path.display());
            }
        }
    }
}

#[test]
fn the_library_touches_no_file_environment_clock_or_terminal() {
    let words = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::time",
        "println!",
        "eprintln!",
        "print!(",
    ];
    let is_product = |path: &PathBuf| !path.to_string_lossy().ends_with("_tests.rs");
    let files = library_files().into_iter().chain(yaml_files());
    for path in files.filter(is_product) {
        let text = fs::read_to_string(&path).expect("the file is readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in words {
            assert!(!code.contains(word), "{} uses {word}", path.display());
        }
    }
}

#[test]
fn no_file_is_longer_than_can_be_read_at_once() {
    let folders = [
        ("src", MAX_LINES),
        ("crates", MAX_LINES),
        ("tests", MAX_TEST_LINES),
    ];
    for (folder, max) in folders {
        for path in rust_files(Path::new(folder)) {
            let text = fs::read_to_string(&path).expect("the file is readable");
            let lines = text.lines().count();
            assert!(lines <= max, "{} has {lines} lines", path.display());
        }
    }
}
