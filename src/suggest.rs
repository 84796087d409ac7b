//! `podgraft policy suggest`: lists the policies that annotations and resources of the manifests ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::policy::builtin::{Builtin, Group, find};
use podgraft_core::policy::conversion::ReadOptions;
use podgraft_core::policy::format::FORMATS;
use podgraft_core::policy::read::read_as;
use podgraft_core::suggest::{Suggestion, read};
use podgraft_core::wording::{lines, shell_path};

use crate::args::ColorWhen;
use crate::diagnostics::Console;
use crate::exit::Exit;
use crate::hints::words_of;
use crate::path_filter::PathFilter;
use crate::stdout::print;
use crate::walk::{Input, walk};

/// The most objects, or files, that are named for each policy.
const SHOWN: usize = 3;

/// `podgraft policy suggest`.
pub fn suggest(paths: &[PathBuf]) -> Exit {
    let found = walk(paths, &PathFilter::default());
    let (mut problems, mut suggestions) = (found.problems, BTreeMap::<_, Vec<Suggestion>>::new());
    for input in &found.inputs {
        match input.read() {
            Ok(text) => {
                for suggestion in read(&input.name, &text) {
                    suggestions
                        .entry(suggestion.policy)
                        .or_default()
                        .push(suggestion);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    let paths = words_of(paths);
    let mut text: String = suggestions
        .iter()
        .filter_map(|(policy, suggestions)| paragraph(policy, suggestions, &paths))
        .collect();
    if text.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        text = "nothing in the manifests asks for a policy; `podgraft policy list` shows all \
                policies\n"
            .into();
    }
    if let Err(problem) = print(lines(&text).as_bytes()) {
        problems.push(problem);
    }
    Console::plain(ColorWhen::Auto).show_each(&problems);
    match problems.iter().any(Diagnostic::is_error) {
        true => Exit::Refused,
        false => Exit::Done,
    }
}

/// What asks for a policy, and the command that shows what the policy does to the given paths.
fn paragraph(policy: &str, suggestions: &[Suggestion], paths: &str) -> Option<String> {
    let for_kind = |kind| with_resource(kind, suggestions, paths);
    let (name, summary, instructions) = match find(policy) {
        Ok(builtin) => {
            let name = format!("builtin:{}", builtin.name);
            match builtin.source {
                Some((_, kind)) if builtin.group == Group::Operators => {
                    (kind.to_owned(), builtin.summary(), for_kind(kind))
                }
                Some((_, kind)) => (name, builtin.summary(), for_kind(kind)),
                None => {
                    let command = format!("podgraft diff -p {name}{} {paths}", params(builtin));
                    (name, builtin.summary(), command)
                }
            }
        }
        Err(_) => {
            let format = FORMATS.iter().find(|format| format.kind == policy)?;
            let instructions = for_kind(format.kind);
            (format.kind.to_owned(), format.summary, instructions)
        }
    };
    let mut text = format!("{name}  {summary}\n");
    for suggestion in suggestions.iter().take(SHOWN) {
        let asks = match suggestion.key {
            Some(key) => format!("has {key}"),
            None => "asks for it".to_owned(),
        };
        let place = format!("{}:{}", suggestion.place.source, suggestion.place.line);
        // Writing to memory cannot fail.
        let _ = writeln!(text, "  {} {asks} ({place})", suggestion.object);
    }
    if suggestions.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", suggestions.len() - SHOWN);
    }
    let _ = writeln!(text, "  {instructions}\n");
    Some(text)
}

/// The command for a policy that is a resource: with the files that hold such resources, or with those of the cluster
/// if there are none.
fn with_resource(kind: &str, suggestions: &[Suggestion], paths: &str) -> String {
    let files: BTreeSet<&str> = suggestions
        .iter()
        .filter(|suggestion| suggestion.key.is_none())
        .map(|suggestion| &*suggestion.place.source)
        .collect();
    let kind = kind.to_lowercase();
    if files.is_empty() {
        return format!(
            "kubectl get {kind} --all-namespaces -o yaml > {kind}.yaml\n  podgraft diff -p {kind}.yaml {paths}"
        );
    }
    // All of them are among the manifests. Stdin has no other name, and a long list is hard to read.
    if files.len() > SHOWN || files.contains(&*Input::stdin().name) {
        return format!("podgraft diff -p @input {paths}");
    }
    let given = files.into_iter();
    let given = given.map(|file| format!("-p {} ", shell_path(file)));
    format!("podgraft diff {}{paths}", given.collect::<String>())
}

/// Flags for the parameters of a policy that have no default.
fn params(builtin: &Builtin) -> String {
    // Parameters without a value are what is looked for, not errors.
    let looking = ReadOptions {
        params_stay_open: true,
        ..ReadOptions::default()
    };
    let (policies, _) = read_as(vec![builtin.file()], &[], looking);
    policies
        .iter()
        .flat_map(|policy| &policy.open_params)
        .map(|name| format!(" --param {}:{name}=...", builtin.name))
        .collect()
}
