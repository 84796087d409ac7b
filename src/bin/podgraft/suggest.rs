//! `podgraft policy suggest`: manifests in, the built-in policies that they ask for out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use podgraft::diagnostic::Diagnostic;
use podgraft::policy::builtin::{Builtin, find};
use podgraft::policy::conversion::Reading;
use podgraft::policy::read::read_as;
use podgraft::report::shown::lines;
use podgraft::suggest::{Wish, read};

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
        .filter_map(|(policy, wishes)| Some(paragraph(find(policy).ok()?, wishes)))
        .collect();
    if text.is_empty() {
        text = "nothing asks for a built-in policy; `podgraft policy list` shows them\n".into();
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

fn paragraph(builtin: &Builtin, wishes: &[Wish]) -> String {
    let mut text = format!("builtin:{}  {}\n", builtin.name, builtin.summary());
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
    let looking = Reading {
        params_stay_open: true,
        ..Reading::default()
    };
    let (policies, _) = read_as(vec![builtin.file()], &[], looking);
    let params: String = policies
        .iter()
        .flat_map(|policy| &policy.open_params)
        .map(|name| format!(" --param {}:{name}=...", builtin.name))
        .collect();
    let _ = writeln!(
        text,
        "  podgraft diff -p builtin:{}{params} ...\n",
        builtin.name
    );
    text
}
