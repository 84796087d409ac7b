//! Masks secrets in reports: a value is replaced by dots if its name says that it is a secret. The unified diff is not
//! masked, because it is a patch.

use regex_lite::{Captures, Regex};
use std::borrow::Cow;
use std::iter;
use std::ops::Range;
use std::str::Chars;
use std::sync::LazyLock;

use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};

/// The text shown in place of a secret.
pub(crate) const MASK: &str = "••••••";

/// Names of variables, annotations and labels that hold secrets. `AUTH` is not among the words: it would also match
/// `OAUTH_URL` and `AUTHOR`. `PWD` alone is the working directory.
static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    let words = "TOKEN|PASSW(OR)?D|PASSPHRASE|SECRET|(API|PRIVATE|ACCESS|ACCOUNT|LICENSE)[_.-]?KEY|CREDENTIALS?|DSN";
    let pattern =
        format!(r"(?i)(^|[_.-])((\w*({words}))|PASS)($|[_.-]|\d)|[_.-](PASS|PWD|PAT)($|[_.-]|\d)");
    Regex::new(&pattern).expect("the pattern is constant")
});

/// The words that a flag or a setting with a secret ends in.
const SECRET_WORDS: &str =
    "token|passw(?:or)?d|passphrase|pwd|secret|(?:api|private|access|account)[_.-]?key";

/// A secret in a flag or a setting: `-Dtoken=abc`, `password="abc"`.
static SECRET_FLAG: LazyLock<Regex> = LazyLock::new(|| {
    let held = r#"\\?"[^"]*"?|'[^']*'?|[^\s,;&"']+"#;
    Regex::new(&format!(r"(?i)([\w.-]*(?:{SECRET_WORDS})=)({held})"))
        .expect("the pattern is constant")
});

/// A secret behind a flag in the same text: `--token abc`. A variable of the shell, `$TOKEN`, is none.
static SECRET_BEHIND_FLAG: LazyLock<Regex> = LazyLock::new(|| {
    let held = r#"\\?"[^"$][^"]*"?|'[^']*'?|(?:\\[^\s"'$]|[^\s,;&"'$\\-])[^\s,;&"']*"#;
    let flag = format!(r#"(?:^|[\s"'\[(])--?[\w.-]*(?:{SECRET_WORDS})[ \t]+"#);
    Regex::new(&format!("(?i)({flag})({held})")).expect("the pattern is constant")
});

/// A flag whose secret is the next argument: `--token`.
static FLAG_BEFORE_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"(?i)^--?[\w.-]*(?:{SECRET_WORDS})$")).expect("the pattern is constant")
});

/// A secret in JSON: `"password": "abc"`.
static SECRET_IN_JSON: LazyLock<Regex> = LazyLock::new(|| {
    let json = format!(r#"["'](?:[\w.-]+/)?[\w.-]*(?:{SECRET_WORDS})\\?["']\s*:\s*"#);
    let held = r#"\\?"[^"]*"?|'[^']*'?"#;
    Regex::new(&format!(r"(?i)({json})({held})")).expect("the pattern is constant")
});

/// A token behind `Bearer`.
static BEARER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(\bbearer\s+)([\w.~+/=-]{4,})").expect("the pattern is constant")
});

/// A password in a URL: `https://user:abc@host`. It may hold `/` and `@`.
static SECRET_IN_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(://[^/\s:@]*:)([^\s"']+)@"#).expect("the pattern is constant"));

/// A token in place of a user: `https://abc@host`.
static TOKEN_IN_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)(https?://)([^/\s:@]+)@").expect("the pattern is constant"));

/// Whether a variable, an annotation or a label of this name holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    // The prefix of an annotation says whose it is, not what it is.
    let last = name.rsplit('/').next().unwrap_or(name);
    let words = [
        "token",
        "pass",
        "secret",
        "key",
        "credential",
        "dsn",
        "pwd",
        "pat",
    ];
    has_one_of(last, &words) && SECRET_NAME.is_match(last)
}

/// The value of a variable, an annotation or a label as a report shows it. References to other variables (`$(NAME)`) are
/// no secrets.
pub(crate) fn value<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    let is_reference = value.starts_with("$(") && value.ends_with(')');
    if value.is_empty() || is_reference {
        return Cow::Borrowed(value);
    }
    if is_secret_name(name) {
        Cow::Borrowed(MASK)
    } else {
        text(value)
    }
}

/// The help for an unquoted number or boolean in place of a string.
pub(crate) fn quote_it(name: &str, written: &str) -> String {
    match value(name, written) == written {
        true => format!("quote it: \"{written}\""),
        false => "quote it".to_owned(),
    }
}

/// Masks secrets in a text: `token=...`, `--token ...`, `"token": "..."`, `Bearer ...`, and passwords and tokens in URLs.
pub fn text(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    if may_name_secret(text) {
        for pattern in [&SECRET_BEHIND_FLAG, &SECRET_FLAG, &SECRET_IN_JSON, &BEARER] {
            shown = replaced(pattern, shown, hide_setting);
        }
    }
    if text.contains("://") && text.contains('@') {
        shown = replaced(&SECRET_IN_ADDRESS, shown, hide_password);
        shown = replaced(&TOKEN_IN_ADDRESS, shown, |found| {
            format!("{}{MASK}@", &found[1])
        });
    }
    shown
}

/// Whether a text may have one of the [`SECRET_WORDS`], or `Bearer`.
fn may_name_secret(text: &str) -> bool {
    let words = [
        "token",
        "passw",
        "passphrase",
        "pwd",
        "secret",
        "key",
        "bearer",
    ];
    has_one_of(text, &words)
}

/// Whether a text has one of the words, in any case. Most texts have none, and a regular expression takes long.
fn has_one_of(text: &str, words: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    words.iter().any(|word| text.contains(word))
}

fn replaced<'t>(
    pattern: &Regex,
    text: Cow<'t, str>,
    by: fn(&Captures<'_>) -> String,
) -> Cow<'t, str> {
    match pattern.is_match(&text) {
        true => Cow::Owned(pattern.replace_all(&text, by).into_owned()),
        false => text,
    }
}

/// A reference to another variable, `$(NAME)`, is no secret.
fn hide_setting(found: &Captures<'_>) -> String {
    let held = &found[2];
    let is_reference = held.starts_with("$(") && held.find(')') == Some(held.len() - 1);
    let is_shown = is_reference || held.contains(MASK);
    format!("{}{}", &found[1], if is_shown { held } else { MASK })
}

/// What follows a host and a port may hold an `@`, too: `http://host:80/@scope`.
fn hide_password(found: &Captures<'_>) -> String {
    let held = &found[2];
    let digits = held.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let is_port = digits.len() < held.len() && digits.starts_with('/');
    format!("{}{}@", &found[1], if is_port { held } else { MASK })
}

/// The byte ranges of secrets in a piece of YAML, in order: values of variables, annotations and labels whose names say
/// that they are secrets, arguments behind flags, and the data of Secrets. A piece that cannot be read is one secret.
pub(crate) fn secrets_in(text: &[u8]) -> Vec<Range<usize>> {
    let secrets = std::str::from_utf8(text).ok().and_then(secrets_of_piece);
    secrets.unwrap_or_else(|| iter::once(0..text.len()).collect())
}

fn secrets_of_piece(text: &str) -> Option<Vec<Range<usize>>> {
    if let Ok(tree) = parse(text) {
        return Some(secrets_of_tree(&tree, false));
    }
    let (before, completed) = completed(text);
    let tree = parse(&completed).ok()?;
    let found = secrets_of_tree(&tree, true).into_iter();
    let found = found.map(|secret| {
        let [start, end] = [secret.start, secret.end].map(|at| at.saturating_sub(before));
        start.min(text.len())..end.min(text.len())
    });
    Some(found.collect())
}

/// A piece of a flow collection as a flow sequence, with the brackets that it lacks, and their number before it.
fn completed(text: &str) -> (usize, String) {
    let (mut before, mut open) = (String::new(), Vec::new());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' | '\'' => skip_quoted(&mut characters, character),
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' if open.pop().is_none() => before.insert(0, '{'),
            ']' if open.pop().is_none() => before.insert(0, '['),
            _ => {}
        }
    }
    before.insert(0, '[');
    let trimmed = text.trim_end().trim_end_matches(',');
    let behind: String = open.into_iter().rev().collect();
    (before.len(), format!("{before}{trimmed}{behind}]"))
}

/// Skips the rest of a quoted scalar. A quote that stands for itself in single quotes begins another one.
fn skip_quoted(characters: &mut Chars<'_>, quote: char) {
    while let Some(character) = characters.next() {
        if character == quote {
            return;
        }
        if character == '\\' && quote == '"' {
            characters.next();
        }
    }
}

fn secrets_of_tree(tree: &Tree<'_>, is_cut: bool) -> Vec<Range<usize>> {
    let found = tree.ids().flat_map(|id| secrets_of(tree, id, is_cut));
    let mut found: Vec<Range<usize>> = found.collect();
    found.sort_by_key(|secret| secret.start);
    found
}

/// Fields that hold values under names that people choose.
const NAMED_VALUES: [&str; 2] = ["annotations", "labels"];

fn secrets_of(tree: &Tree<'_>, id: NodeId, is_cut: bool) -> Vec<Range<usize>> {
    if tree.kind(id).is_sequence() {
        return secrets_behind_flags(tree, id);
    }
    if !tree.kind(id).is_mapping() {
        return Vec::new();
    }
    let text = |key| tree.scalar_at(id, key);
    // Only Secrets have `stringData`. A cut piece may lack what the data is of.
    let may_be_secret = match text("kind") {
        Some(kind) => kind == "Secret",
        None => is_cut || tree.get(id, "stringData").is_some(),
    };
    let data = ["data", "stringData"].iter().filter(|_| may_be_secret);
    let data = data.filter_map(|field| tree.get(id, field));
    let data = data
        .flat_map(|field| tree.entries(field))
        .map(|(_, held)| held);
    let variable = tree
        .get(id, "name")
        .zip(tree.get(id, "value"))
        .and_then(|(name, held)| Some((tree.scalar(name)?, held)));
    let named = NAMED_VALUES.iter().filter_map(|field| tree.get(id, field));
    let named = named.flat_map(|field| tree.entries(field));
    let named = named.filter_map(|(key, held)| Some((tree.scalar(key)?, held)));
    let is_secret = |(name, held): &(&str, NodeId)| {
        tree.scalar(*held)
            .is_some_and(|held| value(name, held) == MASK)
    };
    let named = variable.into_iter().chain(named).filter(is_secret);
    let secrets = named.map(|(_, held)| held).chain(data);
    secrets.map(|held| tree.span(held)).collect()
}

/// The arguments behind flags such as `--token`.
fn secrets_behind_flags(tree: &Tree<'_>, list: NodeId) -> Vec<Range<usize>> {
    let items: Vec<NodeId> = tree.items(list).collect();
    let is_flag = |item: NodeId| {
        let text = tree.scalar(item);
        text.is_some_and(|text| FLAG_BEFORE_SECRET.is_match(text))
    };
    let is_secret = |item: NodeId| {
        let text = tree.scalar(item);
        text.is_some_and(|text| !text.starts_with(['-', '$']))
    };
    items
        .windows(2)
        .filter(|pair| is_flag(pair[0]) && is_secret(pair[1]))
        .map(|pair| tree.span(pair[1]))
        .collect()
}

/// Masks the secrets in a line. `at` is the offset of the line in the piece in which `secrets` were found.
pub(crate) fn hide(line: &[u8], at: usize, secrets: &[Range<usize>]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut shown = String::new();
    let mut from = 0;
    let first = secrets.partition_point(|secret| secret.end <= at);
    for secret in secrets[first..]
        .iter()
        .take_while(|secret| secret.start < at + line.len())
    {
        let start = secret.start.saturating_sub(at).max(from);
        let end = (secret.end - at).min(line.len());
        let Some(held) = line.get(start..end) else {
            continue;
        };
        let blanks = held.len() - held.trim_start().len();
        shown.push_str(line.get(from..start + blanks).unwrap_or_default());
        shown.push_str(if held.trim().is_empty() { "" } else { MASK });
        from = end;
    }
    shown.push_str(line.get(from..).unwrap_or_default());
    text(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "ROOKOUT_TOKEN",
            "DB_PASSWORD",
            "apiKey",
            "MY_API_KEY",
            "client-secret",
            "api-key",
            "GITHUBTOKEN",
            "PASSWD",
            "auth/token",
            "DB_PASS",
            "GITHUB_PAT",
            "MYSQL_PWD",
            "TOKEN2",
            "AccountKey",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "TOKENS_PER_MINUTE",
            "TOKENIZER",
            "SECRETARY",
            "KEYBOARD",
            "AUTHOR",
            "JAVA_TOOL_OPTIONS",
            "secret.example.com/port",
            "PWD",
            "BYPASS",
            "OLDPWD",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secrets_in_flags_and_addresses_are_hidden() {
        assert_eq!(
            value("JAVA_TOOL_OPTIONS", "-Xmx1g -Dtoken=abc -Da=b"),
            "-Xmx1g -Dtoken=•••••• -Da=b"
        );
        assert_eq!(
            value("URL", "https://me:abc@host/x"),
            "https://me:••••••@host/x"
        );
        assert_eq!(value("URL", "https://host:80/x"), "https://host:80/x");
        assert_eq!(value("TOKEN", "$(OTHER)"), "$(OTHER)");
        assert_eq!(value("TOKEN", "abc"), MASK);
        for (given, shown) in [
            ("-Dpassword=\"a b\" -Dx=y", "-Dpassword=•••••• -Dx=y"),
            ("run --token abc -v", "run --token •••••• -v"),
            ("\"--db.password abc\"", "\"--db.password ••••••\""),
            ("run --token $TOKEN", "run --token $TOKEN"),
            ("run --token \"$TOKEN\" -v", "run --token \"$TOKEN\" -v"),
            ("run --token \\\"$TOKEN\\\"", "run --token \\\"$TOKEN\\\""),
            ("run --token \"a b\" -v", "run --token •••••• -v"),
            ("run --token \\\"abc\\\" -v", "run --token •••••• -v"),
            ("run --token --verbose", "run --token --verbose"),
            ("the re-token word", "the re-token word"),
            ("-Dpassword='a b'", "-Dpassword=••••••"),
            ("-Dpassword=$(A)b", "-Dpassword=••••••"),
            ("-Dpassword=$(A)", "-Dpassword=$(A)"),
            ("https://abc@host/x", "https://••••••@host/x"),
            ("https://bob:a@b@host/x", "https://bob:••••••@host/x"),
            ("https://bob:a/b@host/x", "https://bob:••••••@host/x"),
            ("http://host:80/@scope/x", "http://host:80/@scope/x"),
            (
                "{\"password\": \"abc\", \"x\": 1}",
                "{\"password\": ••••••, \"x\": 1}",
            ),
            ("AccountKey=abc;Pwd=def;", "AccountKey=••••••;Pwd=••••••;"),
            (
                "Authorization: Bearer abc.def",
                "Authorization: Bearer ••••••",
            ),
        ] {
            assert_eq!(text(given), shown);
        }
    }

    fn shown(piece: &str) -> String {
        hide(piece.as_bytes(), 0, &secrets_in(piece.as_bytes()))
    }

    #[test]
    fn an_argument_behind_a_flag_is_hidden() {
        assert_eq!(
            shown("args: [run, --token, abc, --secret, $(X), -v]"),
            "args: [run, --token, ••••••, --secret, $(X), -v]"
        );
        assert_eq!(shown("- --api-key\n- abc\n"), "- --api-key\n- ••••••\n");
    }

    #[test]
    fn a_piece_of_a_flow_collection_shows_no_secret() {
        for piece in [
            r#"{"args": ["--token", "abc"]}, {"value": "say \"abc\"", "name": "DB_PASSWORD"},"#,
            r#"}, {"kind": "Secret", "stringData": {"a": "x {y} abc", "b": "abc", c: 'it''s abc'"#,
            "a: {\"abc",
            r#""data": {"a": "abc", "b": "abc"}, "kind": "Secret"}, {"kind": "#,
            r#"}, {"stringData": {"a": "abc""#,
            r#"}, {"value": "abc", "name": "MY_TOKEN"}, "#,
            r#"}, { "value" : "abc", "name" : "MY_TOKEN" }, { "example.com/token" : "abc" }, "#,
        ] {
            assert!(!shown(piece).contains("abc"), "{}", shown(piece));
        }
        for piece in [
            r#"}, {"kind": "ConfigMap", "data": {"a": "abc"}}, "#,
            r#"{"kind": "Pod", "metadata": {"name": "abc", "labels": {"app": "abc"}}}, {"kind": "A"}"#,
        ] {
            assert_eq!(shown(piece), piece);
        }
    }
}
