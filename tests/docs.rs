//! The pages of `docs` tell the truth: their examples run, and say what the pages show.
//!
//! A fenced block with a file name (`yaml orders.yaml`) is a file; a `console` block of a page with such files, or with
//! the help of a command, holds commands behind `$`, each with what it prints on stdout and stderr; `[...]` stands for
//! lines that are left out.
//! `BLESS=1 cargo test --test integration docs::` writes what the commands print into the pages, for you to review.

use podgraft_core::policy::builtin::{BUILTINS, Group};
use podgraft_core::policy::stored_schemas::{Definitions, INJECTION_POLICY};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).expect("docs is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            pages.extend(self::pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// A part of a page.
enum Part {
    /// Anything else.
    Text(String),
    /// A fenced block: what stands behind the fence, and the lines.
    Block { info: String, body: String },
}

fn parts(page: &str) -> Vec<Part> {
    let mut parts = vec![Part::Text(String::new())];
    let mut is_block = false;
    for line in page.split_inclusive('\n') {
        match (line.strip_prefix("```"), is_block) {
            (Some(info), false) => parts.push(Part::Block {
                info: info.trim_end().to_owned(),
                body: String::new(),
            }),
            (Some(_), true) => parts.push(Part::Text(String::new())),
            (None, _) => match parts.last_mut() {
                Some(Part::Text(text) | Part::Block { body: text, .. }) => text.push_str(line),
                None => {}
            },
        }
        is_block ^= line.starts_with("```");
    }
    assert!(!is_block, "a fenced block is not closed");
    parts
}

/// The file that a block is.
fn file_name(info: &str) -> Option<&str> {
    let (_, name) = info.split_once(' ')?;
    (!name.is_empty() && !name.contains(['/', ' '])).then_some(name)
}

/// What a command prints, run by a shell where `podgraft` is on the path.
fn run(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_podgraft"))
        .parent()
        .expect("a program is in a folder");
    let path = format!(
        "{}:{}",
        program.display(),
        std::env::var("PATH").expect("there is a PATH")
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env("NO_COLOR", "1");
    let output = shell.stdin(Stdio::null()).output().expect("sh runs");
    assert!(
        matches!(output.status.code(), Some(0..=2)),
        "`{command}` ended with {}",
        output.status
    );
    String::from_utf8(output.stdout).expect("the program prints text")
}

/// The commands of a console block, each with the lines that follow it.
fn commands(body: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in body.split_inclusive('\n') {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.trim_end().to_owned(), String::new())),
            (None, Some((_, shown))) => shown.push_str(line),
            (None, None) => panic!("a console block begins with `{line}`, not with a command"),
        }
    }
    commands
}

/// Whether a console block shows the help of a command, which needs no files.
fn is_help(body: &str) -> bool {
    body.lines()
        .next()
        .is_some_and(|line| line.starts_with("$ podgraft") && line.ends_with("--help"))
}

/// Whether all lines stand in what was printed, in order and without a gap but where one is marked.
fn shows(shown: &str, printed: &str) -> bool {
    let mut rest = printed;
    for (at, piece) in shown.split("[...]\n").enumerate() {
        match (at, rest.find(piece)) {
            (0, Some(0)) => rest = &rest[piece.len()..],
            (0, _) | (_, None) => return false,
            (_, Some(start)) => rest = &rest[start + piece.len()..],
        }
    }
    rest.is_empty() || shown.ends_with("[...]\n")
}

/// Runs a page's commands; what they print now, in the page.
fn run_page(path: &Path, problems: &mut Vec<String>) -> String {
    let page = fs::read_to_string(path).expect("the page is readable");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut has_files = false;
    let mut written = String::new();
    for part in parts(&page) {
        let (info, body) = match part {
            Part::Text(text) => {
                written.push_str(&text);
                continue;
            }
            Part::Block { info, body } => (info, body),
        };
        let mut shown = body.clone();
        if let Some(name) = file_name(&info) {
            fs::write(folder.path().join(name), &body).expect("the folder is writable");
            has_files = true;
        } else if info == "console" && (has_files || is_help(&body)) {
            shown.clear();
            for (command, expected) in commands(&body) {
                let printed = run(&command, folder.path());
                let is_right = shows(&expected, &printed);
                if !is_right {
                    problems.push(format!("{}: `{command}` prints\n{printed}", path.display()));
                }
                shown.push_str(&format!(
                    "$ {command}\n{}",
                    if is_right { &expected } else { &printed }
                ));
            }
        }
        written.push_str(&format!("```{info}\n{shown}```\n"));
    }
    written
}

#[test]
fn examples_print_what_the_pages_show() {
    let mut problems = Vec::new();
    for path in pages(Path::new("docs")) {
        let written = run_page(&path, &mut problems);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, written).expect("the page is writable");
        }
    }
    assert!(
        problems.is_empty() || std::env::var_os("BLESS").is_some(),
        "{}",
        problems.join("\n")
    );
}

#[test]
fn the_page_on_commands_has_each_of_them() {
    let page = fs::read_to_string("docs/commands.md").expect("the page is there");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut groups = vec!["podgraft".to_owned()];
    let mut found = 0;
    while let Some(group) = groups.pop() {
        let help = run(&format!("{group} --help"), folder.path());
        let Some((_, listed)) = help.split_once("\nCommands:\n") else {
            assert!(page.contains(&format!("\n$ {group} --help\n")), "{group}");
            found += 1;
            continue;
        };
        let names = listed.lines().take_while(|line| !line.is_empty());
        let names = names.filter_map(|line| line.split_whitespace().next());
        groups.extend(
            names
                .filter(|name| *name != "help")
                .map(|name| format!("{group} {name}")),
        );
    }
    assert!(found > 20, "only {found} commands were found");
}

#[test]
fn the_page_on_expressions_is_what_the_program_prints() {
    let page = podgraft_core::policy::reference::PAGE;
    if std::env::var_os("BLESS").is_some() {
        fs::write("docs/expressions.md", page).expect("the page is writable");
    }
    let written = fs::read_to_string("docs/expressions.md").expect("the page is there");
    assert_eq!(written, page);
}

#[test]
fn every_format_of_policy_has_a_page_with_an_example() {
    let operators = BUILTINS
        .iter()
        .filter(|builtin| builtin.group == Group::Operators);
    for (_, kind) in operators.filter_map(|builtin| builtin.source) {
        let mut name = String::new();
        for char in kind.chars() {
            if char.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(char.to_ascii_lowercase());
        }
        let page = fs::read_to_string(format!("docs/formats/{name}.md"));
        let page = page.unwrap_or_else(|error| panic!("docs/formats/{name}.md: {error}"));
        assert!(
            page.contains(&format!("kind: {kind}")) && page.contains("\n$ podgraft "),
            "{name}"
        );
    }
}

/// The names of our own fields, those of Kubernetes' types left out.
fn own_fields(definitions: &'static Definitions, found: &mut BTreeSet<String>) {
    let names = definitions
        .names()
        .skip(1)
        .filter(|name| !name.contains('.') && *name != "PartOfPodSpec");
    for name in names {
        let definition = definitions.get(name);
        let is_kubernetes = definition["properties"]
            .get("image")
            .is_some_and(|image| image.is_object());
        let fields = definition["properties"].as_object().into_iter().flatten();
        found.extend(
            fields
                .filter(|_| !is_kubernetes)
                .map(|(field, _)| field.clone()),
        );
    }
}

/// The files among the examples of the page on policies.
fn examples_of_policies() -> Vec<String> {
    let page = fs::read_to_string("docs/policy.md").expect("the page is there");
    let example = |part| match part {
        Part::Block { info, body } if file_name(&info).is_some() => Some(body),
        Part::Block { .. } | Part::Text(_) => None,
    };
    parts(&page).into_iter().filter_map(example).collect()
}

#[test]
fn the_page_on_policies_has_an_example_of_every_field() {
    let examples = examples_of_policies();
    let mut fields = BTreeSet::new();
    own_fields(&INJECTION_POLICY, &mut fields);
    assert!(fields.len() > 60, "{fields:?}");
    let is_key = |field: &str, text: &str| {
        let key = format!("{field}:");
        let mut found = text
            .match_indices(&key)
            .map(|(at, _)| text[..at].chars().next_back());
        found.any(|before| before.is_none_or(|before| !before.is_ascii_alphanumeric()))
    };
    let missing: Vec<&String> = fields
        .iter()
        .filter(|field| !examples.iter().any(|text| is_key(field, text)))
        .collect();
    assert!(
        missing.is_empty(),
        "no example of docs/policy.md has {missing:?}"
    );
}

/// The values of fields that have a list of them.
#[rustfmt::skip]
const WORDS: [&str; 23] = [
    "Set", "SetIfAbsent", "Append", "Prepend", "MergeKeys", "Remove",
    "First", "Last", "before", "after", "Native", "Container", "All", "One",
    "Ignore", "Replace", "Error", "Skip", "Include", "PodTemplate", "references", "ConfigMap", "Secret",
];

#[test]
fn the_page_on_policies_has_an_example_of_every_word() {
    let examples = examples_of_policies();
    let is_shown = |word: &str| {
        examples.iter().any(|text| {
            text.split(|c: char| !c.is_alphanumeric())
                .any(|word_of_page| word_of_page == word)
        })
    };
    let missing: Vec<&str> = WORDS.into_iter().filter(|word| !is_shown(word)).collect();
    assert!(
        missing.is_empty(),
        "no example of docs/policy.md has {missing:?}"
    );
}

#[test]
fn gaps_are_marked() {
    assert!(shows("a\n[...]\nc\n", "a\nb\nc\n") && shows("a\n[...]\n", "a\nb\n") && shows("", ""));
    assert!(!shows("a\nc\n", "a\nb\nc\n") && !shows("b\n", "a\nb\n") && !shows("a\n", "a\nb\n"));
}

/// The name that a heading has in a link: as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ => character.is_alphanumeric().then_some(character),
        })
        .collect()
}

/// The anchors of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    parts(page)
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Block { .. } => None,
        })
        .flat_map(|text| {
            text.lines()
                .filter(|line| line.starts_with('#'))
                .map(anchor)
        })
        .collect()
}

/// The targets of the links of a page, outside fenced blocks.
fn links(page: &str) -> Vec<String> {
    let link = regex_lite::Regex::new(r"\]\(([^)\s]+)\)").expect("the expression is right");
    let mut found = Vec::new();
    for part in parts(page) {
        if let Part::Text(text) = part {
            found.extend(link.captures_iter(&text).map(|link| link[1].to_owned()));
        }
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut checked = 0;
    let top_level = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ]
    .map(PathBuf::from);
    for path in pages(Path::new("docs")).into_iter().chain(top_level) {
        let page = fs::read_to_string(&path).expect("the page is readable");
        for link in links(&page) {
            // What the book does not hold is named by its place in the repository.
            let folders = ["blob", "tree"]
                .map(|kind| format!("https://github.com/podgraft/podgraft/{kind}/main/"));
            if let Some(file) = folders.iter().find_map(|folder| link.strip_prefix(folder)) {
                checked += 1;
                if !Path::new(file).exists() {
                    broken.push(format!("{}: {link}", path.display()));
                }
                continue;
            }
            if link.starts_with("http") || link.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                path.parent().expect("a file is in a folder").join(file)
            };
            let is_there = target.exists()
                && (fragment.is_empty()
                    || fs::read_to_string(&target)
                        .is_ok_and(|page| anchors(&page).contains(fragment)));
            if !is_there {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(checked > 30, "only {checked} links were found");
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn every_page_is_in_the_book() {
    let summary = fs::read_to_string("docs/SUMMARY.md").expect("the book has a table of contents");
    let listed: BTreeSet<PathBuf> = links(&summary)
        .iter()
        .map(|link| Path::new("docs").join(link))
        .collect();
    let existing: BTreeSet<PathBuf> = pages(Path::new("docs"))
        .into_iter()
        .filter(|path| !path.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(
        listed, existing,
        "docs/SUMMARY.md lists other pages than there are"
    );
}
