//! `podgraft init` and `podgraft policy new`: write a commented first policy and configuration from the user's answers.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use podgraft_core::config::FILE_NAME;
use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::edit::emit::plain_or_quoted;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::wording::{shell_path, shell_word};

use crate::args::tools::{InitArgs, StarterPolicyArgs};
use crate::args::{ColorWhen, INPUT, PolicyArgs};
use crate::diagnostics::{Console, inform};
use crate::exit::Exit;
use crate::paths::real;
use crate::policies::load_to_look_at;
use crate::problems::not_written;
use crate::settings::from_folder;

/// The folder that `init` creates for a policy.
const FOLDER: &str = "podgraft";

/// `podgraft init`.
pub fn init(args: &InitArgs) -> Exit {
    match write_all(args) {
        Ok(()) => Exit::Done,
        Err(problem) => {
            Console::plain(ColorWhen::Auto).show(&[problem]);
            Exit::Refused
        }
    }
}

fn write_all(args: &InitArgs) -> Result<(), Diagnostic> {
    let config = args.folder.join(FILE_NAME);
    if config.exists() {
        return Err(already_exists(&config));
    }
    let used = match &args.used {
        Some(used) => {
            check_usable(used, &args.folder)?;
            used.clone()
        }
        None => {
            let file = format!("{FOLDER}/{}.yaml", name_of(&args.answers));
            let text = policy(&args.answers, &file)?;
            write_new(&args.folder.join(&file), &text)?;
            file
        }
    };
    let used = plain_or_quoted(&used);
    write_new(&config, &filled(CONFIGURATION, &[("USED", &used)]))?;
    let flag = match real(&args.folder) == real(Path::new(".")) {
        true => String::new(),
        false => format!("--config {} ", shell_path(&config.to_string_lossy())),
    };
    inform(&format!(
        "next: podgraft diff {flag}PATH, with the folder of your rendered manifests as PATH\n"
    ));
    Ok(())
}

/// Checks that the policy can be read. Those of stdin and of the manifests are there only in a run.
fn check_usable(used: &str, folder: &Path) -> Result<(), Diagnostic> {
    if matches!(used, "-" | INPUT) {
        return Ok(());
    }
    let policies = PolicyArgs {
        given: vec![from_folder(folder, used)],
        ..PolicyArgs::default()
    };
    first_error(load_to_look_at(&policies).problems).map_or(Ok(()), Err)
}

fn first_error(problems: Vec<Diagnostic>) -> Option<Diagnostic> {
    problems.into_iter().find(Diagnostic::is_error)
}

fn already_exists(path: &Path) -> Diagnostic {
    let message = format!("`{}` already exists", path.display());
    Diagnostic::error(Code::File, message).help("edit it, or remove it first")
}

fn write_new(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let problem = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(path),
        _ => not_written(path.display(), error),
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(problem)?;
    }
    let mut file = File::create_new(path).map_err(problem)?;
    file.write_all(text.as_bytes()).map_err(problem)?;
    let shown = path.strip_prefix(".").unwrap_or(path);
    inform(&format!("wrote {}\n", shown.display()));
    Ok(())
}

/// A commented configuration. `USED` is a placeholder.
const CONFIGURATION: &str = include_str!("init/configuration.yaml");

fn name_of(answers: &StarterPolicyArgs) -> &str {
    let names = [&answers.agent, &answers.sidecar, &answers.scrape];
    let name = names.into_iter().flatten().next();
    name.map_or("policy", String::as_str)
}

/// The commented text of a first policy, for a file of its name in the current folder.
///
/// # Errors
/// If an answer is missing, or makes a policy that would be refused.
pub fn policy_text(answers: &StarterPolicyArgs) -> Result<String, Diagnostic> {
    policy(answers, &format!("{}.yaml", name_of(answers)))
}

fn policy(answers: &StarterPolicyArgs, file: &str) -> Result<String, Diagnostic> {
    let (description, label, inject) = if answers.scrape.is_some() {
        let description = "Scrape annotations for Prometheus.";
        (description, ("metrics", "scrape"), SCRAPE)
    } else if answers.image.is_none() {
        let message = "the image is missing: add --image IMAGE";
        return Err(Diagnostic::error(Code::BadPolicy, message).help(
            "with a version, or better with a digest: --image registry.example.com/NAME:1.2.3",
        ));
    } else if answers.agent.is_some() {
        let description =
            "An agent that an init container copies into a volume and a variable loads.";
        (description, ("runtime", "java"), AGENT)
    } else {
        let description = "A sidecar next to the application's containers.";
        (description, ("logs", "ship"), SIDECAR)
    };
    let given = answers.label.as_ref();
    let (key, value) = given.map_or(label, |(key, value)| (key, value));
    let label = format!("{}: {}", plain_or_quoted(key), plain_or_quoted(value));
    let name = plain_or_quoted(name_of(answers));
    let image = plain_or_quoted(answers.image.as_deref().unwrap_or_default());
    let port = answers.port.unwrap_or(9090).to_string();
    let inject = filled(
        inject,
        &[("NAME", &name), ("IMAGE", &image), ("PORT", &port)],
    );
    let answers = [
        ("WHAT", description),
        ("LABEL", &label),
        ("INJECT", inject.trim_end()),
        ("NAME", &name),
        ("FILE", &shell_word(file)),
    ];
    accepted(file, filled(HEAD, &answers))
}

/// The policy's text, if podgraft takes it.
fn accepted(file: &str, text: String) -> Result<String, Diagnostic> {
    let policy = PolicyFile {
        name: file.into(),
        text: text.clone(),
    };
    let (_, problems) = read(vec![policy], &[]);
    first_error(problems).map_or(Ok(text), Err)
}

/// Returns a text with answers in the place of words. What an answer says is not looked at again: it may hold such a word.
fn filled(text: &str, answers: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let answer = answers.iter().find(|(word, _)| rest.starts_with(word));
        let length = answer.map_or(character.len_utf8(), |(word, _)| word.len());
        filled.push_str(answer.map_or(&rest[..length], |(_, answer)| answer));
        rest = &rest[length..];
    }
    filled
}

/// The text of a policy, and what it may inject. The words in capitals are placeholders.
const HEAD: &str = include_str!("init/policy.yaml");
const AGENT: &str = include_str!("init/agent.yaml");
const SIDECAR: &str = include_str!("init/sidecar.yaml");
const SCRAPE: &str = include_str!("init/scrape.yaml");
