//! What comes out is what a cluster takes. Nothing that the Kubernetes API refuses may be in an output that was not in
//! its input.

mod pairs;
pub mod server;
mod types;

use std::fs;
use std::path::{Path, PathBuf};

/// Inputs with their outputs: the golden cases, and the built-in policies'.
fn pairs() -> Vec<(PathBuf, PathBuf)> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("testdata is readable");
        entries
            .map(|entry| entry.expect("the entry is readable").path())
            .collect()
    };
    let cases = entries(Path::new("testdata/cases"))
        .iter()
        .flat_map(|area| entries(area))
        .collect::<Vec<_>>();
    let case = |folder: &PathBuf| {
        ["yaml", "json"].map(|end| {
            (
                folder.join(format!("input.{end}")),
                folder.join(format!("expected.{end}")),
            )
        })
    };
    let mut pairs: Vec<_> = cases.iter().flat_map(case).collect();
    let builtins = entries(Path::new("testdata/builtins")).into_iter();
    let outputs = builtins.filter(|path| path.to_string_lossy().contains(".expected."));
    pairs.extend(outputs.map(|output| (PathBuf::from("testdata/builtins/input.yaml"), output)));
    pairs.retain(|(_, output)| output.exists());
    pairs.sort();
    pairs
}
