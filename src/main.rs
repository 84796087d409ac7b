//! The program: arguments, files, terminal and exit status around the library.

mod adopt;
mod apply;
mod args;
mod blocks;
mod charts;
mod conclude;
mod diagnostics;
mod edits;
mod exit;
mod file_identity;
mod findings;
mod gather_inventory;
mod grafted_file;
mod grafting;
mod hints;
mod hosts;
mod init;
mod kustomization;
mod lint;
mod lock_location;
mod locks;
mod manifests;
mod output;
mod owners;
mod pages;
mod path_filter;
mod paths;
mod pipeline;
mod policies;
mod policy_diff;
mod policy_test;
mod problems;
#[cfg_attr(target_family = "wasm", path = "progress_disabled.rs")]
mod progress;
mod protected_inputs;
mod repository;
mod reread;
mod review;
mod run;
mod settings;
mod shard;
mod spool;
mod stdout;
mod stream;
mod suggest;
mod texts;
mod threads;
mod undo;
mod walk;
mod write;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use args::Command;
use exit::Exit;

/// Grafting a document of a few kilobytes makes hundreds of small, short-lived allocations. The allocator of the C
/// library spent a tenth of the run time on them.
#[cfg(not(target_family = "wasm"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Names of links to the program, each with the command it runs. Some callers start a program without arguments, for
/// example kustomize up to 5.6.
const NAMES: [(&str, &str); 2] = [
    ("podgraft-fn", "fn"),
    ("podgraft-post-render", "post-render"),
];

/// Returns the arguments, with the command inserted that the name of the program stands for (see [`NAMES`]).
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments
        .first()
        .and_then(|program| Path::new(program).file_stem());
    if let Some((_, command)) = NAMES
        .iter()
        .find(|(known, _)| name.is_some_and(|name| name == *known))
    {
        arguments.insert(1, command.into());
    }
    arguments
}

fn main() {
    // The hook exits instead of unwinding, so a panic of a worker thread ends the program too, before anything is
    // written.
    std::panic::set_hook(Box::new(|panic| {
        let mut stderr = std::io::stderr();
        let _ = writeln!(
            stderr,
            "podgraft: {panic}\nThis is a bug in podgraft; report it."
        );
        std::process::exit(Exit::Internal as i32);
    }));
    let ended = match &args::relevant_flags::parse(arguments()).command {
        Command::Apply(args) => apply::apply(args),
        Command::Diff(args) => review::diff(args),
        Command::Debug(args) => review::debug(args),
        Command::Undo(args) => undo::undo(args),
        Command::Adopt(args) => adopt::adopt(args),
        Command::Fn(args) => Ok(hosts::function::function(args)),
        Command::PostRender(args) => Ok(hosts::post_render(args)),
        Command::Argocd(command) => Ok(hosts::argocd::argocd(command)),
        Command::Check(args) => review::check(args),
        Command::Explain(args) => match args.asked_code() {
            Some(code) => Ok(pages::explain_code(args, code)),
            None => review::explain(args),
        },
        Command::Inspect(args) => review::inspect(args),
        Command::Policy(command) => Ok(pages::policy(command)),
        Command::Init(args) => Ok(init::init(args)),
        Command::Completions { shell } => Ok(pages::completions(*shell)),
        Command::Man => Ok(pages::man()),
    };
    match ended {
        Ok(exit) => std::process::exit(exit as i32),
        Err(wrong_usage) => wrong_usage.exit(),
    }
}
