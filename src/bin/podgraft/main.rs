//! The program: arguments, files, terminal and exit status around the library.

mod args;
mod blocks;
mod explain;
mod facts;
mod hold;
mod manifests;
mod output;
mod pages;
mod pipeline;
mod policies;
mod publish;
mod run;
mod settings;
mod show;
mod stream;
mod texts;
mod threads;
mod undo;
mod walk;
mod write;

use std::io::Write as _;

use clap::Parser;

use args::{Cli, Command};
use run::Exit;

fn main() {
    std::panic::set_hook(Box::new(|panic| {
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "podgraft: {panic}\nThis is a bug of podgraft, please report it.");
        std::process::exit(Exit::Internal as i32);
    }));
    let ended = match &Cli::parse().command {
        Command::Apply(args) => run::apply(args),
        Command::Diff(args) => run::diff(args),
        Command::Debug(args) => run::debug(args),
        Command::Undo(args) => undo::undo(args),
        Command::Explain(args) => Ok(explain::code(&args.code)),
        Command::Policy(command) => Ok(pages::policy(command)),
        Command::Completions { shell } => Ok(pages::completions(*shell)),
        Command::Man => Ok(pages::man()),
    };
    match ended {
        Ok(exit) => std::process::exit(exit as i32),
        Err(wrong_usage) => wrong_usage.exit(),
    }
}
