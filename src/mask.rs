//! Masks secrets in reports: a value is replaced by dots if its name says that it is a secret. The unified diff is not
//! masked, because it is a patch.

use regex_lite::Regex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use crate::yaml::parse::parse;
use crate::yaml::tree::{NodeId, Tree};

/// The text shown in place of a secret.
pub(crate) const MASK: &str = "••••••";

/// Names of variables, annotations and labels that hold secrets. `AUTH` is not among the words: it would also match
/// `OAUTH_URL` and `AUTHOR`.
static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    let words = "TOKEN|PASSW(OR)?D|PASSPHRASE|SECRET|(API|PRIVATE|ACCESS|LICENSE)[_.-]?KEY|CREDENTIALS?|DSN";
    Regex::new(&format!("(?i)(^|[_.-])(\\w*({words}))($|[_.-])")).expect("the pattern is constant")
});

/// A secret in a flag or a setting: `-Dtoken=abc`, `password=abc`.
static SECRET_FLAG: LazyLock<Regex> = LazyLock::new(|| {
    let words =
        "token|passw(?:or)?d|passphrase|secret|api[_.-]?key|private[_.-]?key|access[_.-]?key";
    Regex::new(&format!(r"(?i)([\w.-]*(?:{words})=)([^\s,;&\x22']+)"))
        .expect("the pattern is constant")
});

/// A password in a URL: `https://user:abc@host`.
static SECRET_IN_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(://[^/\s:@]*:)[^/\s@]+@").expect("the pattern is constant"));

/// Whether a variable, an annotation or a label of this name holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    // The prefix of an annotation says whose it is, not what it is.
    let last = name.rsplit('/').next().unwrap_or(name);
    SECRET_NAME.is_match(last)
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

/// Masks secrets in a text, given as `token=...` or in a URL.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if !text.contains(['=', '@']) {
        return Cow::Borrowed(text);
    }
    let hide = |found: &regex_lite::Captures<'_>| {
        let is_reference = found[2].starts_with("$(");
        format!(
            "{}{}",
            &found[1],
            if is_reference { &found[2] } else { MASK }
        )
    };
    let hidden = SECRET_FLAG.replace_all(text, hide);
    if !hidden.contains("://") {
        return hidden;
    }
    Cow::Owned(
        SECRET_IN_ADDRESS
            .replace_all(&hidden, format!("${{1}}{MASK}@"))
            .into_owned(),
    )
}

/// The byte ranges of secrets in a piece of YAML, in order: values of variables, annotations and labels whose names say
/// that they are secrets, and the data of Secrets.
pub(crate) fn secrets_in(text: &[u8]) -> Vec<Range<usize>> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Vec::new();
    };
    // A piece may be an item of a flow sequence, which ends in a comma.
    let trimmed = text.trim_end().trim_end_matches(',');
    match parse(trimmed) {
        Ok(tree) => {
            let found = tree.ids().flat_map(|id| secrets_of(&tree, id));
            let mut found: Vec<Range<usize>> = found.collect();
            found.sort_by_key(|secret| secret.start);
            found
        }
        Err(_) => secrets_by_sight(text),
    }
}

/// Fields that hold values under names that people choose.
const NAMED_VALUES: [&str; 2] = ["annotations", "labels"];

fn secrets_of(tree: &Tree<'_>, id: NodeId) -> Vec<Range<usize>> {
    if !tree.kind(id).is_mapping() {
        return Vec::new();
    }
    let text = |key| tree.get(id, key).and_then(|value| tree.scalar(value));
    if text("kind") == Some("Secret") {
        let fields = ["data", "stringData"]
            .into_iter()
            .filter_map(|field| tree.get(id, field));
        return fields
            .flat_map(|field| tree.entries(field))
            .map(|(_, value)| tree.span(value))
            .collect();
    }
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
    let secrets = variable.into_iter().chain(named).filter(is_secret);
    secrets.map(|(_, held)| tree.span(held)).collect()
}

/// `name: X` followed by `value: y`, on one line or two.
static NAME_AND_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    let held = r#"("[^"]*"|'[^']*'|[^,}\s]+)"#;
    let pattern =
        format!(r#"["']?name["']?:\s*["']?([\w.-]+)["']?\s*,?\s*["']?value["']?:\s*{held}"#);
    Regex::new(&pattern).expect("the pattern is constant")
});

/// Finds secrets by pattern in a piece that is no YAML by itself.
fn secrets_by_sight(text: &str) -> Vec<Range<usize>> {
    let found = NAME_AND_VALUE
        .captures_iter(text)
        .filter(|found| is_secret_name(&found[1]));
    found
        .filter_map(|found| found.get(2))
        .map(|held| held.range())
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
    }
}
