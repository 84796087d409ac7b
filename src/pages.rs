//! Prints the documentation of the program: built-in policies, schemas, diagnostic codes, completion scripts, the manual
//! page.

use clap_mangen::Man;
use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::edit::emit::document;
use podgraft_core::policy::builtin::{BUILTINS, GROUPS, Group, find, kinds_of_resources};
use podgraft_core::policy::format::{Format, INSTRUMENTATION};
use podgraft_core::policy::reference;
use podgraft_core::policy::schema::{meant, meant_code};
use podgraft_core::publish::crd::{Scope, definition};
use podgraft_core::publish::schema::{KINDS, find as find_schema, of_resources};

use crate::args::tools::CrdScopeArg;
use crate::args::{ColorWhen, ConvertArgs, ExplainArgs, PolicyCommand, relevant_flags};
use crate::diagnostics::Console;
use crate::exit::Exit;
use crate::policies::{offered_files, reading};
use crate::{init, lint, policy_test, suggest};

/// `podgraft policy`.
pub fn policy(command: &PolicyCommand) -> Exit {
    match command {
        PolicyCommand::List => print_page(Ok(list().into_bytes())),
        PolicyCommand::Suggest { paths } => suggest::suggest(paths),
        PolicyCommand::Functions => print_page(Ok(reference::PAGE.into())),
        PolicyCommand::Show { name } => {
            let name = name.strip_prefix("builtin:").unwrap_or(name);
            print_page(find(name).map(|builtin| builtin.text.into()))
        }
        PolicyCommand::New(args) => print_page(init::policy_text(args).map(String::into_bytes)),
        PolicyCommand::Convert(args) => convert(args),
        PolicyCommand::Lint(args) => lint::lint(args),
        PolicyCommand::Images(args) => lint::images(args),
        PolicyCommand::Test(args) => policy_test::test(args),
        PolicyCommand::Schema { kind } => schema(kind),
        PolicyCommand::Crd { scope } => crd(*scope),
    }
}

/// `podgraft policy convert`.
fn convert(args: &ConvertArgs) -> Exit {
    let given = [args.given.as_slice(), &args.files].concat();
    let reading = reading(args.debug_mode, &args.opentelemetry);
    let converted = offered_files(&given)
        .and_then(|files| podgraft_core::convert::convert(files, &args.params, reading));
    let console = Console::plain(ColorWhen::Auto);
    match converted {
        Ok((text, warnings)) => {
            console.show_each(&warnings);
            console.print(text.as_bytes(), Exit::Done)
        }
        Err(problems) => {
            console.show_each(&problems);
            Exit::Refused
        }
    }
}

/// `podgraft policy schema [KIND]`.
fn schema(kind: &str) -> Exit {
    let printed = |schema| format!("{schema:#}\n").into_bytes();
    let schema = find_schema(kind).map(|published| published.schema());
    let schema = schema.or_else(|| of_resources(kind));
    print_page(schema.map(printed).ok_or_else(|| unknown_kind(kind)))
}

fn unknown_kind(kind: &str) -> Diagnostic {
    let published = KINDS.iter().map(|published| published.kind);
    let kinds = published.chain(kinds_of_resources().map(|(_, kind)| kind));
    let message = format!("there is no schema for the kind `{kind}`");
    Diagnostic::error(Code::UnknownKind, message).help(meant(kind, kinds, "valid kinds:"))
}

/// `podgraft policy crd`.
fn crd(scope: CrdScopeArg) -> Exit {
    let scope = match scope {
        CrdScopeArg::Namespaced => Scope::Namespaced,
        CrdScopeArg::Cluster => Scope::Cluster,
    };
    print_page(Ok(document(&definition(scope)).into_bytes()))
}

fn list() -> String {
    let widths = BUILTINS.iter().map(|builtin| builtin.name.len());
    let width = "builtin:".len() + widths.max().unwrap_or(0);
    let groups = GROUPS.iter().map(|(group, _)| group_text(*group, width));
    let groups = groups.collect::<Vec<_>>().join("\n");
    let Format { kind, summary, .. } = INSTRUMENTATION;
    format!("{groups}  {kind:width$}  {summary}\n")
}

/// The policies of a group, below its title.
fn group_text(group: Group, width: usize) -> String {
    let members = BUILTINS.iter().filter(|builtin| builtin.group == group);
    let lines = members.map(|builtin| {
        let name = match (builtin.source, group) {
            (Some((_, kind)), Group::Operators) => kind.to_owned(),
            _ => format!("builtin:{}", builtin.name),
        };
        format!("  {name:width$}  {}\n", builtin.summary())
    });
    format!("{}\n{}", group.title(), lines.collect::<String>())
}

/// `podgraft explain CODE`.
pub fn explain_code(args: &ExplainArgs, name: &str) -> Exit {
    print_page(
        Code::find(name)
            .map(|code| code.page().as_bytes().to_vec())
            .ok_or_else(|| unknown_code(args, name)),
    )
}

fn unknown_code(args: &ExplainArgs, name: &str) -> Diagnostic {
    let message = match args.code {
        Some(_) => format!("there is no diagnostic code `{name}`"),
        None => format!("`{name}` is neither a diagnostic code nor a file"),
    };
    Diagnostic::error(Code::UnknownCode, message).help(meant_code(name))
}

/// `podgraft completions SHELL`.
pub fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut relevant_flags::command(),
        "podgraft",
        &mut script,
    );
    print_page(Ok(script))
}

/// `podgraft man`: one page with a section for each command.
pub fn man() -> Exit {
    let mut command = relevant_flags::command();
    command.build();
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    let _ = Man::new(command.clone()).render(&mut page);
    add_subcommands(&command, &mut page);
    let page = refer_to_sections(&command, String::from_utf8_lossy(&page).into_owned());
    print_page(Ok(page.into_bytes()))
}

/// The lists of subcommands refer to pages such as podgraft-apply(1). Each command is a section of this page instead.
fn refer_to_sections(command: &clap::Command, mut page: String) -> String {
    for part in command.get_subcommands() {
        let full = part.get_bin_name().unwrap_or_default();
        let reference = format!("{}(1)", full.replace([' ', '-'], "\\-"));
        page = page.replace(&reference, &full.replace('-', "\\-"));
        page = refer_to_sections(part, page);
    }
    page
}

fn add_command(command: &clap::Command, page: &mut Vec<u8>) {
    let full = command.get_bin_name().unwrap_or_default().to_owned();
    let man = Man::new(command.clone());
    let mut section = Vec::new();
    let _ = man.render_description_section(&mut section);
    let _ = man.render_synopsis_section(&mut section);
    let _ = man.render_options_section(&mut section);
    if command.has_subcommands() {
        let _ = man.render_subcommands_section(&mut section);
    }
    let _ = man.render_extra_section(&mut section);
    // Sections of a subcommand become subsections of this one.
    let section = String::from_utf8_lossy(&section).replace(".SH ", ".SS ");
    page.extend(format!(".SH \"{}\"\n{section}", full.to_uppercase()).into_bytes());
    add_subcommands(command, page);
}

fn add_subcommands(command: &clap::Command, page: &mut Vec<u8>) {
    let parts = command.get_subcommands();
    for part in parts.filter(|part| part.get_name() != "help") {
        add_command(part, page);
    }
}

/// Prints a page, or shows why there is none.
fn print_page(result: Result<Vec<u8>, Diagnostic>) -> Exit {
    let console = Console::plain(ColorWhen::Auto);
    match result {
        Ok(text) => console.print(&text, Exit::Done),
        Err(problem) => {
            console.show(&[problem]);
            Exit::Refused
        }
    }
}
