//! `podgraft policy suggest`: manifests in, the policies that they ask for out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use podgraft::diagnostic::Diagnostic;
use podgraft::policy::builtin::{Builtin, Group, find};
use podgraft::policy::conversion::Reading;
use podgraft::policy::format::FORMATS;
use podgraft::policy::read::read_as;
use podgraft::suggest::{Wish, read};
use podgraft::wording::lines;

use crate::args::tools::Suggest;
use crate::output::print;
use crate::run::Exit;
use crate::show::show_plainly;
use crate::walk::{PathFilter, walk};

/// Objects that are named of each policy.
const SHOWN: usize = 3;

/// `podgraft policy suggest`.
pub fn suggest(args: &Suggest) -> Exit {
    let found = walk(&args.paths, &PathFilter::default());
    let (mut problems, mut wishes) = (found.problems, BTreeMap::<_, Vec<Wish>>::new());
    for input in &found.inputs {
        match input.read() {
            Ok(text) => {
                for wish in read(&input.name, &text) {
                    wishes.entry(wish.policy).or_default().push(wish);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    let mut text: String = wishes
        .iter()
        .filter_map(|(policy, wishes)| paragraph(policy, wishes))
        .collect();
    if text.is_empty() {
        text = "nothing asks for a policy; `podgraft policy list` shows them\n".into();
    }
    if let Err(problem) = print(lines(&text).as_bytes()) {
        problems.push(problem);
    }
    problems.iter().for_each(show_plainly);
    match problems.iter().any(Diagnostic::is_error) {
        true => Exit::Refused,
        false => Exit::Done,
    }
}

fn paragraph(policy: &str, wishes: &[Wish]) -> Option<String> {
    let (title, how) = match (find(policy), FORMATS.iter().find(|one| one.kind == policy)) {
        (Ok(builtin), _) if builtin.group == Group::Operators => {
            let (_, kind) = builtin.source()?;
            let title = format!("{kind}  {}", builtin.summary());
            (title, with_resource(kind, wishes))
        }
        (Ok(builtin), _) => (
            format!("builtin:{}  {}", builtin.name, builtin.summary()),
            match builtin.source() {
                Some((_, kind)) => with_resource(kind, wishes),
                None => format!(
                    "podgraft diff -p builtin:{}{} ...",
                    builtin.name,
                    params(builtin)
                ),
            },
        ),
        (Err(_), Some(format)) => (
            format!("{}  {}", format.kind, format.summary),
            with_resource(format.kind, wishes),
        ),
        (Err(_), None) => return None,
    };
    let mut text = format!("{title}\n");
    for wish in wishes.iter().take(SHOWN) {
        let asks = match wish.key {
            Some(key) => format!("has {key}"),
            None => "asks for it".to_owned(),
        };
        let place = format!("{}:{}", wish.place.source, wish.place.line);
        // Writing to memory cannot fail.
        let _ = writeln!(text, "  {} {asks} ({place})", wish.object);
    }
    if wishes.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", wishes.len() - SHOWN);
    }
    let _ = writeln!(text, "  {how}\n");
    Some(text)
}

/// The files that hold resources of a kind are given themselves; where there is none, a cluster has them.
fn with_resource(kind: &str, wishes: &[Wish]) -> String {
    let files: BTreeSet<&str> = wishes
        .iter()
        .filter(|wish| wish.key.is_none())
        .map(|wish| &*wish.place.source)
        .collect();
    let kind = kind.to_lowercase();
    if files.is_empty() {
        return format!(
            "kubectl get {kind} --all-namespaces -o yaml > {kind}.yaml\n  podgraft diff -p {kind}.yaml ..."
        );
    }
    let given: Vec<String> = files.iter().map(|file| format!("-p {file}")).collect();
    format!(
        "podgraft diff {} ...",
        given[..given.len().min(SHOWN)].join(" ")
    )
}

/// The parameters that have to be given.
fn params(builtin: &Builtin) -> String {
    let looking = Reading {
        params_stay_open: true,
        ..Reading::default()
    };
    let (policies, _) = read_as(vec![builtin.file()], &[], looking);
    policies
        .iter()
        .flat_map(|policy| &policy.open_params)
        .map(|name| format!(" --param {}:{name}=...", builtin.name))
        .collect()
}
