//! Help for templates of Helm charts: the command that renders them first.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::graft::RENDER_FIRST;
use podgraft_core::wording::{shell_path, shell_word};

use crate::args::relevant_flags::{command, innermost};

/// Rewrites the help of problems with unrendered templates: it names the chart and the whole command to run.
pub fn advise_rendering(problems: &mut [Diagnostic], paths: &[PathBuf]) {
    for problem in problems {
        if problem.help.as_deref() != Some(RENDER_FIRST) {
            continue;
        }
        let template = problem.place().map(|place| &*place.source);
        let chart = template.and_then(|file| {
            let mut folders = Path::new(file).ancestors().skip(1);
            folders.find(|folder| folder.join("Chart.yaml").is_file())
        });
        problem.help = Some(match command_with_chart(chart, paths) {
            Some(command) => {
                format!("render it first, and pass the result to podgraft: {command}")
            }
            None => {
                "podgraft injects nothing into templates: leave them out with --exclude".to_owned()
            }
        });
    }
}

/// The command line of this run with rendered manifests instead of its paths: `helm template orders charts/orders |
/// podgraft diff -p policies -`. `None` for `undo`: what is rendered anew has no injection.
pub fn command_with_chart(chart: Option<&Path>, paths: &[PathBuf]) -> Option<String> {
    if std::env::args_os().nth(1).as_deref() == Some(OsStr::new("undo")) {
        return None;
    }
    let (release, folder) = match chart {
        Some(chart) => {
            let folder = match chart.as_os_str().is_empty() {
                true => Path::new("."),
                false => chart,
            };
            let absolute = folder.canonicalize().unwrap_or_default();
            let name = absolute.file_name().unwrap_or_default().to_string_lossy();
            (shell_word(&name), shell_path(&folder.to_string_lossy()))
        }
        None => ("RELEASE".to_owned(), "CHART".to_owned()),
    };
    let mut words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .filter(|word| word != "-i" && word != "--in-place")
        .collect();
    for path in paths {
        if let Some(index) = index_of_path(&words, &path.to_string_lossy()) {
            words.remove(index);
        }
    }
    let mut words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    // Without paths the command reads stdin anyway, and that of a host takes no path.
    if !paths.is_empty() {
        words.push("-".to_owned());
    }
    let words = words.join(" ");
    Some(format!(
        "helm template {release} {folder} | podgraft {words}"
    ))
}

/// Where a path stands on a command line. An equal word may be the value of a flag.
fn index_of_path(words: &[String], path: &str) -> Option<usize> {
    let given = paths_among(words);
    let is_path = |index: &usize| {
        let mut others = words.to_vec();
        others[*index] = "-".to_owned();
        words[*index] == path && paths_among(&others).is_some_and(|paths| Some(paths) != given)
    };
    (0..words.len()).find(is_path)
}

/// The paths that a command line names; `None` where it is none.
fn paths_among(words: &[String]) -> Option<Vec<OsString>> {
    let words = words.iter().map(String::as_str);
    let matches = command().try_get_matches_from(["podgraft"].into_iter().chain(words));
    let matches = matches.ok()?;
    let (_, inner) = innermost(&matches);
    let paths = inner.try_get_raw("paths").ok()??;
    Some(paths.map(OsStr::to_owned).collect())
}
