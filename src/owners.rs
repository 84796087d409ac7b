//! Finds and reads the CODEOWNERS file of the repository.

use std::path::Path;
use std::{env, fs};

use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::report::codeowners::Codeowners;

use crate::repository::root_of;

/// The places of the file; the first one that exists counts.
/// Source: <https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners#codeowners-file-location>
const PLACES: [&str; 4] = [
    ".github/CODEOWNERS",
    ".gitlab/CODEOWNERS",
    "CODEOWNERS",
    "docs/CODEOWNERS",
];

/// Reads the CODEOWNERS file of the repository of the current folder; outside of a repository, of that folder.
pub fn read() -> Result<Codeowners, Diagnostic> {
    let current_folder = env::current_dir()
        .map_err(|error| problem(format!("the current folder cannot be determined: {error}")))?;
    let root = root_of(&current_folder).unwrap_or(&current_folder);
    let prefix = current_folder.strip_prefix(root).unwrap_or(Path::new(""));
    let mut paths = PLACES.iter().map(|place| root.join(place));
    let Some(file) = paths.find(|path| path.is_file()) else {
        let (root, places) = (root.display(), PLACES.join(", "));
        return Err(problem(format!(
            "there is no CODEOWNERS file in `{root}` ({places})"
        )));
    };
    let text = fs::read_to_string(&file)
        .map_err(|error| problem(format!("`{}` cannot be read: {error}", file.display())))?;
    Ok(Codeowners::read(&text, &prefix.to_string_lossy()))
}

fn problem(message: String) -> Diagnostic {
    Diagnostic::error(Code::File, message)
        .help("add one, or use --group-by namespace or --group-by dir")
}
