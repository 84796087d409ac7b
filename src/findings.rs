//! Findings over a whole run: filters that match nothing, and texts without manifests.

use std::path::Path;

use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::options::{ImageEnv, Options, WorkloadPattern};
use podgraft_core::outcome::WorkloadReport;
use podgraft_core::policy::schema::nearest;

use crate::grafted_file::GraftedFile;
use crate::walk::{InputPlace, no_manifest};

/// Errors for the `--workload` patterns that match nothing: a misspelt name must not look like success.
pub fn unmet_workloads(options: &Options, files: &[GraftedFile]) -> Vec<Diagnostic> {
    let unmet = options.workloads.iter().filter(|pattern| !pattern.is_met());
    let unmet: Vec<&WorkloadPattern> = unmet.collect();
    // A document that could not be read may hold the workload.
    let is_unread = |file: &GraftedFile| file.report.diagnostics.iter().any(Diagnostic::is_error);
    if unmet.is_empty() || files.iter().any(is_unread) {
        return Vec::new();
    }
    let workloads = files.iter().flat_map(|file| &file.report.workloads);
    let mut titles: Vec<String> = workloads.map(WorkloadReport::title).collect();
    titles.sort_by_cached_key(|title| title.to_lowercase());
    titles.dedup();
    let unmet = unmet.iter();
    unmet
        .map(|pattern| fits_nothing(pattern, &titles))
        .collect()
}

fn fits_nothing(pattern: &WorkloadPattern, titles: &[String]) -> Diagnostic {
    let wanted = pattern.text.replacen('/', " ", 1).to_lowercase();
    let lower: Vec<String> = titles.iter().map(|title| title.to_lowercase()).collect();
    let near = nearest(&wanted, lower.iter().map(String::as_str))
        .and_then(|near| lower.iter().position(|title| title == near));
    let help = match near {
        Some(index) => format!("did you mean `--workload '{}'`?", titles[index]),
        None => "write kinds as in kubectl; `podgraft inspect -A` lists the workloads".to_owned(),
    };
    let text = &pattern.text;
    let message = format!("`--workload {text}` matches no workload in the manifests");
    Diagnostic::error(Code::NoMatch, message).help(help)
}

/// Warnings for each `--image-env` whose container is in no workload that a policy looked at.
pub fn unmet_image_env(options: &Options, problems: &[Diagnostic]) -> Vec<Diagnostic> {
    if problems.iter().any(Diagnostic::is_error) {
        return Vec::new();
    }
    let flags = options.image_env.iter();
    let unmet = flags.filter(|env| !env.is_configured && !env.is_met());
    unmet.map(fits_no_container).collect()
}

fn fits_no_container(env: &ImageEnv) -> Diagnostic {
    let message = format!(
        "`--image-env {}:{}=...` matches no container of a workload that a policy is for",
        env.container, env.name
    );
    Diagnostic::warning(Code::NoMatch, message).help(
        "`podgraft inspect -o yaml` shows the names of all containers, including init containers \
         and sidecars",
    )
}

/// A warning if the input has text but no Kubernetes object. Such text passes unchanged, and that is rarely what was
/// meant.
pub fn find_no_object(files: &[GraftedFile]) -> Option<Diagnostic> {
    let has_text = files.iter().any(|file| file.report.documents > 0);
    let has_object = |file: &GraftedFile| file.report.objects > 0 || file.report.has_empty_list;
    if !has_text || files.iter().any(has_object) {
        return None;
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.input.name).collect();
    let message = format!(
        "no Kubernetes object in {}: nothing has an apiVersion and a kind",
        names.join(", ")
    );
    Some(
        Diagnostic::warning(Code::NoManifests, message)
            .help("check the command before the pipe: the input may be an error message"),
    )
}

/// Errors for folders, or for a whole input, without a manifest: a pipeline must not go on with nothing.
pub fn no_manifest_found(files: &[GraftedFile]) -> Vec<Diagnostic> {
    let mut folders: Vec<(&Path, bool)> = Vec::new();
    for file in files {
        let InputPlace::Found { folder, .. } = &file.input.place else {
            continue;
        };
        match folders.iter_mut().find(|(known, _)| known == folder) {
            Some((_, has_manifest)) => *has_manifest |= !file.parts.is_empty(),
            None => folders.push((folder, !file.parts.is_empty())),
        }
    }
    let empty: Vec<Diagnostic> = folders
        .iter()
        .filter(|(_, has_manifest)| !has_manifest)
        .map(|(folder, _)| no_manifest(folder))
        .collect();
    if !empty.is_empty() || files.iter().any(|file| file.report.documents > 0) {
        return empty;
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.input.name).collect();
    let message = format!(
        "no manifest in {}: only blank lines and comments",
        names.join(", ")
    );
    let problem = Diagnostic::error(Code::NoManifests, message);
    vec![problem.help("check the command before the pipe, or the path")]
}
