//! Reads which files a kustomization names as patches. A patch is a part of a workload, and must not be taken for a
//! whole one.

use std::fs;
use std::path::{Path, PathBuf};

use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::value::to_value;
use serde_json::Value;

/// The file names that kustomize looks for.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The canonical paths of the files that a kustomization names as patches; empty if it cannot be read.
/// Source: <https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/patches/>, and its deprecated fields
/// `patchesStrategicMerge` and `patchesJson6902`.
pub fn patches_of(kustomization: &Path) -> Vec<PathBuf> {
    let Some(value) = read(kustomization) else {
        return Vec::new();
    };
    let list = |key: &str| value[key].as_array().into_iter().flatten();
    let with_path = ["patches", "patchesJson6902"].into_iter().flat_map(list);
    let paths = with_path
        .filter_map(|patch| patch.get("path"))
        .chain(list("patchesStrategicMerge"));
    let folder = kustomization.parent().unwrap_or(Path::new(""));
    paths
        .filter_map(Value::as_str)
        // An entry of `patchesStrategicMerge` may also be an inline patch.
        .filter(|path| !path.contains('\n'))
        .filter_map(|path| fs::canonicalize(folder.join(path)).ok())
        .collect()
}

fn read(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    let tree = parse(&text).ok()?;
    to_value(&tree, *tree.roots().first()?).ok()
}

/// The note for a patch that is not read.
pub fn passed_over(path: &Path) -> Diagnostic {
    let message = format!(
        "`{}` is a patch of a kustomization, not a workload; it is skipped",
        path.display()
    );
    Diagnostic::note(Code::File, message).help(
        "pipe `kustomize build` into podgraft, or run podgraft as a function, so that it sees the \
         complete result",
    )
}
